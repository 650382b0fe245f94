/* The model of docs/examples/llama as one would write it down in C, without kiln: loops over rows, on one thread. It is
 * compiled once for each level of instructions, with the flags that kiln's kernels get. */
#ifndef KILN_TESTS_BENCH_PLAIN_LLAMA_H
#define KILN_TESTS_BENCH_PLAIN_LLAMA_H

#include "docs/examples/llama/checkpoint.h"

/* Arrays of f32: (name, elements). */
#define PLAIN_LLAMA_BUFFERS(BUFFER)                                  \
    BUFFER(residual, c->size)                                        \
    BUFFER(normed, c->size)                                          \
    BUFFER(query, c->size)                                           \
    BUFFER(attended, c->size)                                        \
    BUFFER(branch, c->size)                                          \
    BUFFER(gate, c->hidden_size)                                     \
    BUFFER(up, c->hidden_size)                                       \
    BUFFER(scores, c->length)                                        \
    BUFFER(logits, c->vocabulary_size)                               \
    BUFFER(keys, (size_t)(c->layers * c->length * llama_kv_size(c))) \
    BUFFER(values, (size_t)(c->layers * c->length * llama_kv_size(c)))

typedef struct plain_llama {
    const llama_checkpoint *checkpoint;
#define BUFFER(name, count) float *name;
    PLAIN_LLAMA_BUFFERS(BUFFER)
#undef BUFFER
} plain_llama;

/* Puts a token at a position, which is the next one; returns the most likely token behind it. */
typedef int32_t plain_llama_step(plain_llama *llama, int32_t token, int32_t position);

extern plain_llama_step plain_llama_step_x86_64_v2, plain_llama_step_x86_64_v3, plain_llama_step_x86_64_v4,
    plain_llama_step_aarch64;

#endif
