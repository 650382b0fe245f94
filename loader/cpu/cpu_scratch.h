/* Scratch memory of CPU kernels, which is too large for the stacks of the application's threads.
 *
 * Each thread that runs a kernel needs its own, and no launch may allocate, so the memory must exist beforehand. A
 * stream is used by one thread at a time, so it owns its caller's; the pool owns that of the helping threads. */
#ifndef KILN_LOADER_CPU_SCRATCH_H
#define KILN_LOADER_CPU_SCRATCH_H

#include "loader/status.h"

/* Allocates KILN_CPU_SCRATCH contiguous bytes for each of count threads. Untouched pages cost no memory. Free with
 * free(). Returns KILN_OK or KILN_ERROR_OUT_OF_MEMORY. */
kiln_status kiln__cpu_scratch_alloc(uint32_t count, void **out_scratch);

#endif
