/* The one place where an hsa_status_t becomes a kiln_status. */
#ifndef KILN_LOADER_ROCM_STATUS_H
#define KILN_LOADER_ROCM_STATUS_H

#include "loader/device.h"
#include "loader/rocm/rocm_abi.h"

/* The status of a failed call, with the text "call: HSA_STATUS_NAME (0xnumber)". Marks the device lost if status leaves
 * it unusable; device may be NULL if there is none yet. status must not be 0. */
kiln_status kiln__rocm_fail(kiln_device *device, const char *call, kiln__hsa_status status) __attribute__((cold));

/* Marks the device lost because of an error that was reported to the application or to a queue's error callback. */
void kiln__rocm_device_lose(kiln_device *device, uint32_t error);

/* KILN_ERROR_DRIVER, for a call that reported success but returned no result. */
kiln_status kiln__rocm_fail_empty(const char *call) __attribute__((cold));

#endif
