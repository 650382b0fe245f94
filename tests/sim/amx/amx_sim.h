/* The AMX of a processor that has none: each instruction of kernels/arch/amx.h raises SIGILL there, and a handler
 * decodes and executes it (Intel, "64 and IA-32 Architectures Software Developer's Manual", volume 2: LDTILECFG,
 * TILERELEASE, TILEZERO, TILELOADD, TILESTORED, TDPBF16PS, TDPBSSD; "Intel Architecture Instruction Set Extensions":
 * TDPFP16PS). What it computes is simulated; the code around it runs as it is. It needs AVX-512F, whose arithmetic with
 * subnormal numbers as 0 is that of tiles.
 *
 * A processor that has tiles executes its own: without permission it would execute LDTILECFG and refuse the rest, and
 * the handler would not see what is configured. */
#ifndef KILN_TESTS_SIM_AMX_AMX_SIM_H
#define KILN_TESTS_SIM_AMX_AMX_SIM_H

#include <stdbool.h>
#include <stdint.h>

/* Whether this machine can simulate, and needs to. */
bool amx_sim_can(void);

/* From here to amx_sim_leave all threads may execute instructions of AMX: simulated where amx_sim_can, each thread
 * beginning without tiles; elsewhere by the processor, whose permission is asked for the whole process. Returns the
 * products that can be executed, KILN__CPU_AMX_...: all of them simulated, else what the processor has; 0 where there
 * is neither. leave returns how many products were simulated, and whether a thread still has tiles: any one of those
 * that were simulated, else the calling one. */
uint32_t amx_sim_enter(void);
uint64_t amx_sim_leave(bool *out_held);

/* Called by the handler for what a processor refuses, and for instructions of AMX that are not simulated; must not
 * return. NULL: writes the text to stderr and aborts. */
extern void (*amx_sim_refused)(const char *text);

#endif
