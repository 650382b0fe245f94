/* libamdhip64, if the process has loaded it: its functions, and whether they can be used. */
#ifndef KILN_LOADER_HIP_DRIVER_H
#define KILN_LOADER_HIP_DRIVER_H

#include "loader/hip/hip_abi.h"
#include "loader/status.h"

/* HIP's functions under their own names; optional ones may be NULL. */
typedef struct kiln__hip_table {
#define KILN_HIP(name, requirement, result, parameters) result(*name) parameters;
#include "loader/hip/symbols.def"
#undef KILN_HIP
} kiln__hip_table;

/* The process's one table. Valid and constant once kiln__hip_driver_ready has returned KILN_OK. */
extern kiln__hip_table kiln__hip __attribute__((visibility("hidden")));

/* Finds and initialises the HIP that the process has loaded, once: after a failure, the next call tries again. kiln
 * never loads HIP. Thread safe; a fork at any moment leaves no lock held in the child.
 * Returns KILN_OK; KILN_ERROR_NO_DRIVER (not loaded, or no device); KILN_ERROR_DRIVER_TOO_OLD (it lacks a function);
 * KILN_ERROR_FORKED; KILN_ERROR_OUT_OF_MEMORY; KILN_ERROR_DRIVER. */
kiln_status kiln__hip_driver_ready(void);

/* "libamdhip64.so.6, HIP 6.2". This and the next are valid once HIP is ready. */
const char *kiln__hip_driver_text(void);

/* Whether it is HIP 5.6 or later. Earlier versions (seen in HIP 5.2) have two bugs: hipModuleLaunchKernel on a stream
 * that is being captured runs at once instead of being captured; and after a stream-ordered free to a pool, destroying
 * a stream hangs. */
bool kiln__hip_driver_is_recent(void);

#endif
