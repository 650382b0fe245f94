/* libamdhip64, where the process has it loaded: its functions, and whether they can be used. */
#ifndef KILN_LOADER_HIP_DRIVER_H
#define KILN_LOADER_HIP_DRIVER_H

#include "loader/hip/hip_abi.h"
#include "loader/status.h"

/* HIP's functions by their names; optional ones may be NULL. */
typedef struct kiln__hip_table {
#define KILN_HIP(name, requirement, result, parameters) result(*name) parameters;
#include "loader/hip/symbols.def"
#undef KILN_HIP
} kiln__hip_table;

/* The one table of the process: valid, and constant, once kiln__hip_driver_ready has returned KILN_OK. */
extern kiln__hip_table kiln__hip __attribute__((visibility("hidden")));

/* Finds the HIP that the process has loaded, and initialises it, on the first call that succeeds; a failure is not
 * kept. kiln never loads HIP. Thread safe, and a fork at any moment leaves no lock behind in the child.
 * Returns KILN_OK; KILN_ERROR_NO_DRIVER (not loaded, or no device); KILN_ERROR_DRIVER_TOO_OLD (it lacks a function);
 * KILN_ERROR_FORKED; KILN_ERROR_OUT_OF_MEMORY; KILN_ERROR_DRIVER. */
kiln_status kiln__hip_driver_ready(void);

/* "libamdhip64.so.6, HIP 6.2". After readiness, as the next. */
const char *kiln__hip_driver_text(void);

/* Whether it is HIP 5.6 or later. What came before has two faults, which HIP 5.2 is known to have: a launch of a
 * module's kernel on a stream that is being captured runs at once, as if there were no capture; and once memory was
 * given back to a pool in stream order, no stream's destruction ever ends. */
bool kiln__hip_driver_is_recent(void);

#endif
