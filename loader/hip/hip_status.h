/* The one place where a hipError_t becomes a kiln_status. */
#ifndef KILN_LOADER_HIP_STATUS_H
#define KILN_LOADER_HIP_STATUS_H

#include "loader/device.h"
#include "loader/hip/hip_abi.h"

enum {
#define KILN_HIP_ERROR(name, number, status) KILN__hipError##name = number,
#include "loader/hip/hip_errors.def"
#undef KILN_HIP_ERROR
};

/* The status of a failed call, with the text "call: hipErrorName (number)". HIP keeps a thread's last error for
 * hipGetLastError: kiln has told it, so the application is not told again. A result after which nothing works marks
 * the device lost; device may be NULL where there is none yet. result must not be 0. */
kiln_status kiln__hip_fail(kiln_device *device, const char *call, kiln__hip_error result) __attribute__((cold));

/* The thread's last error is one that kiln expected. */
void kiln__hip_forget(void);

/* Marks the device lost by an error that the application was told of. */
void kiln__hip_device_lose(kiln_device *device, uint32_t error);

/* A call that reports success without a handle is not believed: KILN_ERROR_DRIVER. */
kiln_status kiln__hip_fail_empty(const char *call) __attribute__((cold));

#endif
