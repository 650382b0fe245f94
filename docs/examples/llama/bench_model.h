/* A model of random weights, for measuring: the architecture of Llama 3 with queries, keys and values in one product,
 * and gate and up in another. */
#ifndef LLAMA_BENCH_MODEL_H
#define LLAMA_BENCH_MODEL_H

#include "bench_matrix.h"

typedef struct bench_shape {
    const char *name;
    int32_t size, hidden, layers, heads, kv_heads, head_dim, vocabulary;
    bool tied; /* the classifier is the embedding */
} bench_shape;

/* The shape of that name, or NULL. */
const bench_shape *bench_shape_find(const char *name);

/* Elements of a token's queries, of its keys, and of both and its values. */
static inline int64_t bench_query_size(const bench_shape *s) {
    return (int64_t)s->heads * s->head_dim;
}
static inline int64_t bench_key_size(const bench_shape *s) {
    return (int64_t)s->kv_heads * s->head_dim;
}
static inline int64_t bench_heads_size(const bench_shape *s) {
    return bench_query_size(s) + 2 * bench_key_size(s);
}

typedef struct bench_model {
    bench_format format;
    const bench_shape *shape;
    bench_memory memory;

    /* Quantised are those of the layers: all but the embedding and the classifier. */
    bench_matrix embedding, classifier, qkv, out, gate_up, down;
    bench_matrix ones; /* every norm's weights */
    int64_t *frequencies;
} bench_model;

/* Loads the kernels and makes the weights; waits until they are on the device. The model must stay where it is. After a
 * failure it is to be closed as ever. */
kiln_status bench_model_open(kiln_stream *stream, const bench_shape *shape, llama_precision precision,
                             llama_quantisation quantisation, bench_model *out);
void bench_model_close(bench_model *model);

/* Loads the kernels of operators by their names, of which NULL is the last: a capture loads none. */
kiln_status bench_load_kernels(const bench_model *model, const char *const *names);

/* The bytes of weights that a pass over few tokens reads. */
uint64_t bench_weight_bytes(const bench_model *model);

/* Operations of the products of one pass over so many tokens of one sequence, which sees none before it, with the
 * logits of the last. */
double bench_prefill_operations(const bench_model *model, int64_t tokens);

#endif
