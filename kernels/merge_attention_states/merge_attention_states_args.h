/* merge_attention_states: the one argument of its kernel, on every backend. */
#ifndef KILN_KERNELS_MERGE_ATTENTION_STATES_ARGS_H
#define KILN_KERNELS_MERGE_ATTENTION_STATES_ARGS_H

#include "kernels/common/geometry.h"

KILN_ARGS_BEGIN
typedef struct kiln_merge_attention_states_args {
    void *out;
    float *lse; /* NULL: not wanted */
    const void *x;
    const float *x_lse;
    kiln_shape shape; /* rows are the heads of the tokens, each a tile */
    int64_t out_stride;
    int64_t x_stride;
    uint64_t x_part_stride;
    uint32_t parts;
    uint32_t tokens;
    uint32_t heads;
    uint32_t padding;
} kiln_merge_attention_states_args;
KILN_ARGS_END

#endif
