#include "loader/cuda/cuda_status.h"

typedef struct cuda_error {
    const char *name;
    kiln__cu_result number;
    kiln_status status;
} cuda_error;

static const cuda_error errors[] = {
#define KILN_CUDA_ERROR(name, number, status) {"CUDA_ERROR_" #name, number, KILN_##status},
#include "loader/cuda/cuda_errors.def"
#undef KILN_CUDA_ERROR
};

/* An error that is not on the list is reported by its number. */
static const cuda_error unlisted = {"an error that kiln does not know", 0, KILN_ERROR_DRIVER};

static const cuda_error *find(kiln__cu_result result) {
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].number == result) return &errors[i];
    return &unlisted;
}

kiln_status kiln__cuda_fail(kiln_device *device, const char *call, kiln__cu_result result) {
    const cuda_error *error = find(result);
    if (device && error->status == KILN_ERROR_DEVICE_LOST)
        kiln__device_lose(device, "%s: %s (%u)", call, error->name, result);
    return kiln__fail(error->status, "%s: %s (%u)", call, error->name, result);
}

void kiln__cuda_device_lose(kiln_device *device, uint32_t error) {
    kiln__device_lose(device, "%s (%u)", find(error)->name, error);
}

kiln_status kiln__cuda_fail_empty(const char *call) {
    return kiln__fail(KILN_ERROR_DRIVER, "%s: the driver reports success and gives nothing", call);
}
