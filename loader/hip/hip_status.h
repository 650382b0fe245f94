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

/* The status of a failed call, with the text "call: hipErrorName (number)". Clears the thread's last error
 * (hipGetLastError), since kiln reports it. Marks the device lost if result leaves it unusable; device may be NULL if
 * there is none yet. result must not be 0. */
kiln_status kiln__hip_fail(kiln_device *device, const char *call, kiln__hip_error result) __attribute__((cold));

/* Clears the thread's last error, after one that kiln expected. */
void kiln__hip_forget(void);

/* Marks the device lost because of an error that was reported to the application. */
void kiln__hip_device_lose(kiln_device *device, uint32_t error);

/* KILN_ERROR_DRIVER, for a call that reported success but returned no handle. */
kiln_status kiln__hip_fail_empty(const char *call) __attribute__((cold));

#endif
