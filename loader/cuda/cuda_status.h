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

/* The status of a failed driver call, with the text "call: CUDA_ERROR_NAME (number)". Marks the device lost if result
 * leaves the context unusable; device may be NULL if there is none yet. result must not be 0. */
kiln_status kiln__cuda_fail(kiln_device *device, const char *call, kiln__cu_result result) __attribute__((cold));

/* Marks the device lost because of an error that was reported to the application. */
void kiln__cuda_device_lose(kiln_device *device, uint32_t error);

/* KILN_ERROR_DRIVER, for a driver call that reported success but returned no handle. */
kiln_status kiln__cuda_fail_empty(const char *call) __attribute__((cold));

#endif
