/* The operators that the bench's model calls, of each precision. */
#ifndef LLAMA_BENCH_OPERATIONS_H
#define LLAMA_BENCH_OPERATIONS_H

#include "weights.h"
#include <kiln/ops.h>

#define BENCH_OPERATIONS(OPERATION) \
    OPERATION(embedding)            \
    OPERATION(rmsnorm)              \
    OPERATION(add_rmsnorm)          \
    OPERATION(gemm)                 \
    OPERATION(gemm_w4a16)           \
    OPERATION(rope)                 \
    OPERATION(kv_store)             \
    OPERATION(rope_kv_store)        \
    OPERATION(mha)                  \
    OPERATION(mha_paged)            \
    OPERATION(silu_mul)             \
    OPERATION(argmax)

/* Those of them that take a workspace. */
#define BENCH_WORKSPACES(WORKSPACE) \
    WORKSPACE(gemm)                 \
    WORKSPACE(gemm_w4a16)           \
    WORKSPACE(mha)                  \
    WORKSPACE(mha_paged)            \
    WORKSPACE(argmax)

typedef struct bench_operations {
#define OPERATION(name) kiln_status (*name)(kiln_stream * stream, const kiln_##name##_params *params, size_t size);
#define WORKSPACE(name)                                                                                    \
    kiln_status (*name##_workspace)(kiln_stream * stream, const kiln_##name##_params *params, size_t size, \
                                    size_t *out_size);
    BENCH_OPERATIONS(OPERATION)
    BENCH_WORKSPACES(WORKSPACE)
#undef OPERATION
#undef WORKSPACE
} bench_operations;

const bench_operations *bench_operations_of(llama_precision precision);

#endif
