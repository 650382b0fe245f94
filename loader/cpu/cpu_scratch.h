/* Scratch memory of CPU kernels, which is too large for the stacks of threads that are not kiln's.
 *
 * Each thread that runs a kernel needs its own, and no launch may allocate, so the memory must exist beforehand. A
 * stream is used by one thread at a time and therefore owns its caller's; the pool owns that of the threads that help.
 */
#ifndef KILN_LOADER_CPU_SCRATCH_H
#define KILN_LOADER_CPU_SCRATCH_H

#include "loader/status.h"

/* KILN_CPU_SCRATCH bytes for each of count threads, one after the other. Pages that no kernel touches are never made.
 * Released with free. Returns KILN_OK or KILN_ERROR_OUT_OF_MEMORY. */
kiln_status kiln__cpu_scratch_alloc(uint32_t count, void **out_scratch);

#endif
