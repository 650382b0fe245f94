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

/* A number that is newer than the list is still told. */
static const cuda_error unlisted = {"an error that kiln does not know", 0, KILN_ERROR_DRIVER};

kiln_status kiln__cuda_fail(kiln_device *device, const char *call, kiln__cu_result result) {
    const cuda_error *error = &unlisted;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].number == result) error = &errors[i];
    if (device && error->status == KILN_ERROR_DEVICE_LOST) kiln__device_lose(device);
    return kiln__fail(error->status, "%s: %s (%u)", call, error->name, result);
}

kiln_status kiln__cuda_fail_empty(const char *call) {
    return kiln__fail(KILN_ERROR_DRIVER, "%s: the driver reports success and gives nothing", call);
}
