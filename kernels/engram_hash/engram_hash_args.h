/* engram_hash: the one argument of its kernel, on every backend. */
#ifndef KILN_KERNELS_ENGRAM_HASH_ARGS_H
#define KILN_KERNELS_ENGRAM_HASH_ARGS_H

#include "kernels/common/geometry.h"
#include "kernels/common/varlen_args.h"

KILN_ARGS_BEGIN
typedef struct kiln_engram_hash_args {
    int64_t *rows;
    const void *ids;
    const void *history;
    const int32_t *lookup;
    const int64_t *multipliers;
    const int64_t *primes;
    const int64_t *offsets;
    kiln_varlen varlen;
    int64_t vocabulary; /* 0: no lookup */
    int64_t pad_id;
    uint32_t layers;
    uint32_t tokens;
    uint32_t orders;
    uint32_t heads;
    uint32_t lanes_log2; /* of the threads that share a token, at least one for each head */
    uint32_t run;        /* tokens per thread */
    uint32_t ids_64;     /* non-zero: ids and history have 64 bits, else 32 */
    uint32_t padding;
} kiln_engram_hash_args;
KILN_ARGS_END

#endif
