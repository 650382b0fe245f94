/* printf of kernels. */
#ifndef KILN_TESTS_SIM_PTX_PRINT_H
#define KILN_TESTS_SIM_PTX_PRINT_H

#include "tests/sim/ptx/warp/ptx_warp.h"

/* The text at an address of global memory, as much of it as there is room for. false if it has no end where it may be
 * read, or none at all. */
bool ptx_text_read(ptx_warp *warp, uint64_t address, char *text, size_t size);

/* vprintf of a lane: its format, and the arguments one behind the other, each aligned to its size. Hands the text to
 * the launch. How many arguments there were; -1: the format is NULL; -2 after a fault. */
int32_t ptx_print(ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t format, uint64_t arguments);

#endif
