#include "loader/rocm/rocm_status.h"

typedef struct rocm_error {
    const char *name;
    kiln__hsa_status number;
    kiln_status status;
} rocm_error;

static const rocm_error errors[] = {
#define KILN_ROCM_ERROR(name, number, kiln) {"HSA_STATUS_" #name, number, KILN_ERROR_##kiln},
#include "loader/rocm/rocm_errors.def"
#undef KILN_ROCM_ERROR
};

/* An error that is not on the list is reported by its number. */
static const rocm_error unlisted = {"an error that kiln does not know", 0, KILN_ERROR_DRIVER};

static const rocm_error *find(kiln__hsa_status status) {
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].number == status) return &errors[i];
    return &unlisted;
}

kiln_status kiln__rocm_fail(kiln_device *device, const char *call, kiln__hsa_status status) {
    const rocm_error *error = find(status);
    if (device && error->status == KILN_ERROR_DEVICE_LOST)
        kiln__device_lose(device, "%s: %s (0x%x)", call, error->name, (unsigned)status);
    return kiln__fail(error->status, "%s: %s (0x%x)", call, error->name, (unsigned)status);
}

void kiln__rocm_device_lose(kiln_device *device, uint32_t error) {
    kiln__device_lose(device, "%s (0x%x)", find((kiln__hsa_status)error)->name, error);
}

kiln_status kiln__rocm_fail_empty(const char *call) {
    return kiln__fail(KILN_ERROR_DRIVER, "%s: reported success without a result", call);
}
