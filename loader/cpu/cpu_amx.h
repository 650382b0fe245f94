/* Permission to use AMX tiles (Linux, Documentation/arch/x86/xstate). */
#ifndef KILN_LOADER_CPU_AMX_H
#define KILN_LOADER_CPU_AMX_H

#include <stdatomic.h>
#include <stdint.h>

/* Products of tiles that a processor may have. */
enum { KILN__CPU_AMX_INT8 = 1, KILN__CPU_AMX_BF16 = 2, KILN__CPU_AMX_F16 = 4 };

/* Those that kernels may use: none unless the caller who opened the CPU last allowed them. Tests that execute these
 * instructions themselves set it, while no kernel runs. */
extern _Atomic uint32_t kiln__cpu_amx;

/* Asks the kernel for the tile state, for the whole process and its later threads: signal frames grow by 8 KB, which is
 * why only a caller who allowed it gets it. Returns the products that may be used; 0 also where there are no tiles, or
 * where a thread's alternate signal stack is too small for the larger frame. */
uint32_t kiln__cpu_amx_request(void);

#endif
