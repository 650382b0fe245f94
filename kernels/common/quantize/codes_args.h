/* The outputs of an operator that quantises its own result, as a member of its arguments. A thread processes an "eight"
 * at a time, which is 8 columns of a row: a block of NVFP4 is two eights, and a group of 128 columns sixteen. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_CODES_ARGS_H
#define KILN_KERNELS_COMMON_QUANTIZE_CODES_ARGS_H

#include "kernels/common/geometry.h"

enum {
    KILN_EIGHT = 8,
    KILN_EIGHTS_GROUP_LOG2 = 4, /* eights in a group of 128 columns; at least as many threads share a row */
    KILN_EIGHTS_GROUP = 1 << KILN_EIGHTS_GROUP_LOG2
};

typedef enum kiln_codes_format { KILN_CODES_E4M3, KILN_CODES_INT8, KILN_CODES_NVFP4 } kiln_codes_format;

KILN_ARGS_BEGIN
typedef struct kiln_codes_args {
    kiln_shape shape; /* of the rows of codes, or of NVFP4's scales; wide: the eights of all tensors are aligned */
    uint8_t *codes;
    void *scales;        /* f32, or E4M3 for NVFP4; NULL: not wanted */
    float *global_scale; /* for NVFP4; NULL: not wanted */
    int64_t rows;        /* of the result */
    int64_t codes_stride;
    int64_t scale_cols;
    float smax;
    float static_scale; /* 0: computed */
    uint32_t eights;    /* per row; for NVFP4 those that its scales cover */
    uint32_t grouped;   /* non-zero: a scale for each 128 columns */
    uint32_t swizzled;
    uint32_t rounds; /* eights of each thread */
    uint32_t kept;   /* of which so many stay in dynamic shared memory between the passes */
    uint32_t padding;
} kiln_codes_args;
KILN_ARGS_END

#endif
