/* Permission to use AMX tiles (Linux, Documentation/arch/x86/xstate). */
#ifndef KILN_LOADER_CPU_AMX_H
#define KILN_LOADER_CPU_AMX_H

#include <stdatomic.h>
#include <stdint.h>

/* Kinds of tile product that a processor may support. */
enum { KILN__CPU_AMX_INT8 = 1, KILN__CPU_AMX_BF16 = 2, KILN__CPU_AMX_F16 = 4 };

/* The products that kernels may use: none unless the last open of the CPU device allowed them. Tests that emulate the
 * instructions set it, while no kernel runs. */
extern _Atomic uint32_t kiln__cpu_amx;

/* Requests permission from the kernel to use tile state, for the whole process and its later threads. Signal frames
 * grow by 8 KB, so the caller must have allowed this. Returns the products that may be used; 0 if the processor has no
 * tiles or a thread's alternate signal stack is too small for the larger frame. */
uint32_t kiln__cpu_amx_request(void);

#endif
