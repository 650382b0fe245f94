/* mha_quantize_clear and mha_quantize_once: their one argument. */
#ifndef KILN_KERNELS_MHA_QUANTIZE_MHA_QUANTIZE_ONCE_ARGS_H
#define KILN_KERNELS_MHA_QUANTIZE_MHA_QUANTIZE_ONCE_ARGS_H

#include "kernels/common/attention/mha_quantize_args.h"

enum {
    KILN_MHA_QUANTIZE_SMALL = 1 << 15,    /* elements of k up to which three launches read k and v twice */
    KILN_MHA_QUANTIZE_ONCE = 128,         /* elements of a head that mha_quantize_once takes */
    KILN_MHA_QUANTIZE_COUNTERS = 1 << 16, /* at most, which a block zeroes */
    KILN_MHA_QUANTIZE_UNIT = 4096,        /* keys of a unit, at least, if there are so many */
    KILN_MHA_QUANTIZE_LAG = 640           /* blocks between a unit's statistics and its codes, about */
};

/* What numbers are divided by without a division: those of which the product with it is below 2^32. */
typedef struct kiln_divisor {
    uint32_t by;
    uint32_t reciprocal; /* 2^32 / by, rounded up; 0 for 1 */
} kiln_divisor;

/* Blocks of one kind that are spread among others: the first, and each so-many-th after it, until all are. */
typedef struct kiln_spread {
    uint32_t count;
    kiln_divisor every;
} kiln_spread;

/* A unit is some successive sequences of one head of k or v. Units are in the order [groups, kv_heads, k and v]. */
KILN_ARGS_BEGIN
typedef struct kiln_mha_quantize_once_args {
    kiln_mha_quantize_args of;
    uint32_t *arrived; /* [batch, kv_heads, k and v]: chunks of a sequence whose statistics are there */
    uint32_t *joined;  /* [units]: sequences whose means and scales are there */
    uint32_t counters; /* all of these, which are in a row */
    uint32_t group;    /* sequences of a unit */
    uint32_t units;
    kiln_divisor heads;
    kiln_divisor kv_heads;
    kiln_divisor chunks_of_sequence;
    kiln_divisor keys_of_sequence;
    uint32_t lag;       /* periods by which the codes of a unit come after its statistics */
    kiln_spread chunks; /* of a unit, among all blocks of a period */
    kiln_spread fewer;  /* of the rest: the tiles of a unit, or those of queries */
    uint32_t tiles;     /* of a unit */
    uint32_t queries;   /* tiles of queries in a period */
} kiln_mha_quantize_once_args;
KILN_ARGS_END

#endif
