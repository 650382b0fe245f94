/* Extensions that not every machine of a CPU level has: a kernel of that level checks for them when it runs. */
#ifndef KILN_KERNELS_COMMON_EXTENSIONS_H
#define KILN_KERNELS_COMMON_EXTENSIONS_H

#include "loader/cpu/cpu_amx.h"
#include <stdbool.h>

/* If it is true, kernels behave as if the machine had none of them. Only tests set it, while no kernel runs. */
extern bool kiln__cpu_extensions_off;

#define KILN_CPU_HAS(feature) (!kiln__cpu_extensions_off && __builtin_cpu_supports(feature))

/* Which products of AMX tiles a kernel may use: KILN__CPU_AMX_INT8 and so on. */
#define KILN_CPU_HAS_AMX(products) \
    (!kiln__cpu_extensions_off && atomic_load_explicit(&kiln__cpu_amx, memory_order_relaxed) & (products))

#endif
