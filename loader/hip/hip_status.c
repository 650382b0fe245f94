#include "loader/hip/hip_status.h"
#include "loader/hip/hip_driver.h"

typedef struct hip_error {
    const char *name;
    kiln__hip_error number;
    kiln_status status;
} hip_error;

static const hip_error errors[] = {
#define KILN_HIP_ERROR(name, number, status) {"hipError" #name, number, KILN_##status},
#include "loader/hip/hip_errors.def"
#undef KILN_HIP_ERROR
};

/* An error that is not on the list is reported by its number. */
static const hip_error unlisted = {"an error that kiln does not know", 0, KILN_ERROR_DRIVER};

static const hip_error *find(kiln__hip_error result) {
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].number == result) return &errors[i];
    return &unlisted;
}

void kiln__hip_forget(void) {
    (void)kiln__hip.hipGetLastError();
}

kiln_status kiln__hip_fail(kiln_device *device, const char *call, kiln__hip_error result) {
    const hip_error *error = find(result);
    kiln__hip_forget();
    if (device && error->status == KILN_ERROR_DEVICE_LOST)
        kiln__device_lose(device, "%s: %s (%u)", call, error->name, result);
    return kiln__fail(error->status, "%s: %s (%u)", call, error->name, result);
}

void kiln__hip_device_lose(kiln_device *device, uint32_t error) {
    kiln__device_lose(device, "%s (%u)", find(error)->name, error);
}

kiln_status kiln__hip_fail_empty(const char *call) {
    return kiln__fail(KILN_ERROR_DRIVER, "%s: HIP reports success and gives nothing", call);
}
