/* The one place where a CUresult becomes a kiln_status. */
#ifndef KILN_LOADER_CUDA_STATUS_H
#define KILN_LOADER_CUDA_STATUS_H

#include "loader/cuda/cuda_abi.h"
#include "loader/device.h"

enum {
#define KILN_CUDA_ERROR(name, number, status) KILN__CU_ERROR_##name = number,
#include "loader/cuda/cuda_errors.def"
#undef KILN_CUDA_ERROR
};

/* The status of a failed driver call, with the text "call: CUDA_ERROR_NAME (number)". A result after which the context
 * is of no use marks the device lost; device may be NULL where there is none yet. result must not be 0. */
kiln_status kiln__cuda_fail(kiln_device *device, const char *call, kiln__cu_result result) __attribute__((cold));

/* Marks the device lost by an error that the application was told of. */
void kiln__cuda_device_lose(kiln_device *device, uint32_t error);

/* A driver call that reports success without a handle is not believed: KILN_ERROR_DRIVER. */
kiln_status kiln__cuda_fail_empty(const char *call) __attribute__((cold));

#endif
