/* The functions of atomics, for what else applies them. */
#ifndef KILN_TESTS_SIM_PTX_ATOMIC_H
#define KILN_TESTS_SIM_PTX_ATOMIC_H

#include "tests/sim/ptx/decode/ptx_decode.h"

/* Takes the function that is written into op->mode, or refuses. */
void ptx_take_atomic(ptx_decoder *decoder);
/* Whether red.async, and bulk reductions into shared memory, have the function and type. */
bool ptx_atomic_async_fits(const ptx_op *op);
/* Replaces the value at memory. */
void ptx_atomic_apply(const ptx_op *op, void *memory, uint64_t value);

#endif
