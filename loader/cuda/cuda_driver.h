/* libcuda.so.1, opened with dlopen: its functions, and whether it can be used. */
#ifndef KILN_LOADER_CUDA_DRIVER_H
#define KILN_LOADER_CUDA_DRIVER_H

#include "loader/cuda/cuda_abi.h"
#include "loader/status.h"

/* The driver's functions by their documented names; optional ones may be NULL. */
typedef struct kiln__cuda_table {
#define KILN_CUDA(field, name, requirement, result, parameters) result(*field) parameters;
#include "loader/cuda/symbols.def"
#undef KILN_CUDA
} kiln__cuda_table;

/* The process's one table, which costs a launch one load. Valid and constant once kiln__cuda_driver_ready has returned
 * KILN_OK, and so whenever a device is open. */
extern kiln__cuda_table kiln__cuda __attribute__((visibility("hidden")));

/* Finds, opens and initialises the driver, once: after a failure, the next call tries again. Thread safe; a fork at any
 * moment leaves no lock held in the child. The library is never closed. Returns KILN_OK; KILN_ERROR_NO_DRIVER (absent,
 * a stub, or no device; only this lets another backend be tried); KILN_ERROR_DRIVER_TOO_OLD (it lacks a function, or
 * does not match the kernel module or the device); KILN_ERROR_FORKED (kiln or the application began to initialise it
 * before a fork); KILN_ERROR_OUT_OF_MEMORY; KILN_ERROR_DEVICE_LOST; KILN_ERROR_DRIVER. */
kiln_status kiln__cuda_driver_ready(void);

/* The driver's CUDA version, major * 1000 + minor * 10, and the name under which it was opened. Valid once ready. */
int32_t kiln__cuda_driver_version(void);
const char *kiln__cuda_driver_library(void);

#endif
