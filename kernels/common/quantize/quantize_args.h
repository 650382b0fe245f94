/* quantize_fp8 and quantize_int8: the one argument of their kernels, on every
 * backend. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_QUANTIZE_ARGS_H
#define KILN_KERNELS_COMMON_QUANTIZE_QUANTIZE_ARGS_H

#include "kernels/common/geometry.h"

enum {
    KILN_QUANTIZE_GROUP_LOG2 = 7,
    KILN_QUANTIZE_GROUP = 1 << KILN_QUANTIZE_GROUP_LOG2,
    KILN_QUANTIZE_MANY = 512, /* rows */
    KILN_QUANTIZE_TIMES = 4
};

/* Where the scales come from. */
typedef enum kiln_quantize_source {
    KILN_QUANTIZE_HELD,     /* as COMPUTED, by a block that has shared memory for all of them (quantize_held.h) */
    KILN_QUANTIZE_COMPUTED, /* the scale's own elements, all of which the threads that share it have */
    KILN_QUANTIZE_AMAX,     /* their greatest magnitudes, which the caller gives */
    KILN_QUANTIZE_GIVEN
} kiln_quantize_source;

KILN_ARGS_BEGIN
typedef struct kiln_quantize_args {
    void *codes;   /* bytes */
    float *scales; /* NULL: not wanted */
    const void *x;
    const float *values; /* [scale_rows, scale_cols], for AMAX and GIVEN */
    kiln_shape shape;    /* wide: vectors of codes are aligned too */
    int64_t codes_stride;
    int64_t x_stride;
    int64_t scale_cols;
    uint32_t rows_log2;  /* rows that share a scale, as a logarithm: 0, KILN_QUANTIZE_GROUP_LOG2, or 63 for all */
    uint32_t grouped;    /* non-zero: a scale is for a tile; else for a whole row */
    uint32_t block_rows; /* per block: those that share a scale that it computes, or KILN_BLOCK >> lanes_log2, times
                          * KILN_QUANTIZE_TIMES where there are many */
    uint32_t scale_lanes_log2; /* threads that share a computed scale: lanes_log2 or KILN_BLOCK_LOG2 */
    float smax;
    uint32_t source; /* kiln_quantize_source */
} kiln_quantize_args;
KILN_ARGS_END

#endif
