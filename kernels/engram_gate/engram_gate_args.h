/* engram_gate: the one argument of its kernel, on every backend. */
#ifndef KILN_KERNELS_ENGRAM_GATE_ARGS_H
#define KILN_KERNELS_ENGRAM_GATE_ARGS_H

#include "kernels/common/geometry.h"

KILN_ARGS_BEGIN
typedef struct kiln_engram_gate_args {
    void *y;
    void *normed; /* NULL: not wanted */
    const void *key;
    const void *query;
    const void *value;
    const void *key_weight; /* NULL: 1 */
    const void *query_weight;
    const void *norm_weight;
    kiln_shape shape; /* a row for each token, with all of its groups; a tile for each group */
    int64_t y_stride;
    int64_t normed_stride;
    int64_t key_stride;
    int64_t query_stride;
    int64_t value_stride;
    float mean;  /* 1 / cols */
    float scale; /* 1 / sqrt(cols) */
    float eps;
    float norm_eps;
} kiln_engram_gate_args;
KILN_ARGS_END

#endif
