/* The one argument of amax's kernel for x whose columns are not adjacent. */
#ifndef KILN_KERNELS_AMAX_TRANSPOSED_ARGS_H
#define KILN_KERNELS_AMAX_TRANSPOSED_ARGS_H

#include "kernels/common/quantize/transposed_args.h"

KILN_ARGS_BEGIN
typedef struct kiln_amax_transposed_args {
    float *partials; /* [., partial_cols]: as in kiln_amax_args */
    kiln_transposed x;
    int64_t partial_cols;
    uint32_t tiles;  /* of a block, side by side */
    uint32_t shared; /* as in kiln_amax_args */
} kiln_amax_transposed_args;
KILN_ARGS_END

#endif
