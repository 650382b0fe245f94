/* The one place where an hsa_status_t becomes a kiln_status. */
#ifndef KILN_LOADER_ROCM_STATUS_H
#define KILN_LOADER_ROCM_STATUS_H

#include "loader/device.h"
#include "loader/rocm/rocm_abi.h"

/* The status of a failed call, with the text "call: HSA_STATUS_NAME (0xnumber)". A result after which the device is of
 * no use marks it lost; device may be NULL where there is none yet. status must not be 0. */
kiln_status kiln__rocm_fail(kiln_device *device, const char *call, kiln__hsa_status status) __attribute__((cold));

/* Marks the device lost by an error that the application, or a queue's error callback, was told of. */
void kiln__rocm_device_lose(kiln_device *device, uint32_t error);

/* A call that reports success without a result is not believed: KILN_ERROR_DRIVER. */
kiln_status kiln__rocm_fail_empty(const char *call) __attribute__((cold));

#endif
