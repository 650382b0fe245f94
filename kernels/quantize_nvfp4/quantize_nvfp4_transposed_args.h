/* The one argument of quantize_nvfp4's kernel for x whose columns are not adjacent. */
#ifndef KILN_KERNELS_QUANTIZE_NVFP4_TRANSPOSED_ARGS_H
#define KILN_KERNELS_QUANTIZE_NVFP4_TRANSPOSED_ARGS_H

#include "kernels/common/quantize/transposed_args.h"
#include "kernels/quantize_nvfp4/quantize_nvfp4_args.h"

KILN_ARGS_BEGIN
typedef struct kiln_quantize_nvfp4_transposed_args {
    kiln_quantize_nvfp4_args plain; /* shape: of the scales; wide: the codes of 16 elements are aligned */
    kiln_transposed x;
    int64_t whole; /* so many rows, the first ones, are in tiles that have all their rows, where vectors of x and the
                    * codes of 16 elements are aligned */
} kiln_quantize_nvfp4_transposed_args;
KILN_ARGS_END

#endif
