/* The functions of atomics, for what else applies them. */
#ifndef KILN_TESTS_SIM_PTX_ATOMIC_H
#define KILN_TESTS_SIM_PTX_ATOMIC_H

#include "tests/sim/ptx/decode/ptx_decode.h"

/* Takes the function that is written into op->mode, or refuses. */
void ptx_take_atomic(ptx_decoder *decoder);
/* Whether red.async, and bulk reductions into shared memory, have the function and type. */
bool ptx_atomic_async_fits(const ptx_op *op);
/* Whether bulk reductions into global memory have them; and those of tensors, whose type is the map's. */
bool ptx_atomic_bulk_fits(const ptx_op *op);
bool ptx_atomic_tensor_fits(const ptx_op *op);
/* Reduces size bytes at memory, of elements of a type, with those at bytes, as bulk copies do. */
void ptx_atomic_reduce(const ptx_op *op, ptx_type type, bool flushes, void *memory, const uint8_t *bytes,
                       uint32_t size);
/* Replaces the value at memory. */
void ptx_atomic_apply(const ptx_op *op, void *memory, uint64_t value);

#endif
