/* quantize_fp8 and quantize_int8 where x's columns are not adjacent: the one argument of their kernels, on every
 * backend. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_QUANTIZE_TRANSPOSED_ARGS_H
#define KILN_KERNELS_COMMON_QUANTIZE_QUANTIZE_TRANSPOSED_ARGS_H

#include "kernels/common/quantize/quantize_args.h"
#include "kernels/common/quantize/transposed_args.h"

enum { KILN_QUANTIZE_CLUSTER = 8 }; /* blocks that have rows together: quantize_transposed_cluster.h */

KILN_ARGS_BEGIN
typedef struct kiln_quantize_transposed_args {
    kiln_quantize_args quantize; /* shape: its sizes, and wide: vectors of codes are aligned */
    kiln_transposed x;
    uint32_t tiles; /* of a block: those of whole rows, or those of a group of rows that has a computed scale */
    uint32_t down;  /* non-zero: they are one below the other */
    uint32_t held;  /* tiles for which a block has shared memory on devices: all, or a power of two */
    uint32_t mask;  /* tile n is in the memory of number n & mask */
    int64_t whole;  /* so many rows, the first ones, are in blocks that have one tile, of all rows and columns that it
                     * can have, aligned, each of whose lines has a computed scale for codes up to their greatest */
} kiln_quantize_transposed_args;
KILN_ARGS_END

#endif
