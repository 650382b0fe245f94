/* Permission to use AMX tiles (Linux, Documentation/arch/x86/xstate). */
#ifndef KILN_LOADER_CPU_AMX_H
#define KILN_LOADER_CPU_AMX_H

#include <stdbool.h>

/* Asks the kernel for the tile state, for the whole process and its later threads: signal frames grow by 8 KB, which is
 * why only a caller who allowed it gets it. Returns whether tiles may be used; false also where there are none, or
 * where a thread's alternate signal stack is too small for the larger frame. */
bool kiln__cpu_amx_request(void);

#endif
