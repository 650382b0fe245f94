/* What an operator writes that quantises its own result: a member of its arguments. A thread does an eight at a time, 8
 * columns of a row, of which a block of NVFP4 has two and a group of 128 columns sixteen. */
#ifndef KILN_KERNELS_COMMON_CODES_ARGS_H
#define KILN_KERNELS_COMMON_CODES_ARGS_H

#include "kernels/common/geometry.h"

enum {
    KILN_EIGHT = 8,
    KILN_EIGHTS_GROUP_LOG2 = 4, /* eights of a group of 128 columns; as many threads share a row at least */
    KILN_EIGHTS_GROUP = 1 << KILN_EIGHTS_GROUP_LOG2
};

typedef enum kiln_codes_format { KILN_CODES_E4M3, KILN_CODES_INT8, KILN_CODES_NVFP4 } kiln_codes_format;

KILN_ARGS_BEGIN
typedef struct kiln_codes_args {
    kiln_shape shape; /* rows of codes, or of NVFP4's scales; wide: all tensors' eights are aligned */
    uint8_t *codes;
    void *scales;        /* f32; E4M3 of NVFP4; NULL: not wanted */
    float *global_scale; /* of NVFP4; NULL: not wanted */
    int64_t rows;        /* of the result */
    int64_t codes_stride;
    int64_t scale_cols;
    float smax;
    float static_scale; /* 0: computed */
    uint32_t eights;    /* of a row; of NVFP4 those of its scales */
    uint32_t grouped;   /* non-zero: a scale for each 128 columns */
    uint32_t swizzled;
    uint32_t eight_bytes; /* of codes; of a known number clang would make one store, misaligned */
} kiln_codes_args;
KILN_ARGS_END

#endif
