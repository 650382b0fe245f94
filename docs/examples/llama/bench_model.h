/* A model of random weights, for measuring: the architecture of Llama 3 with queries, keys and values in one product,
 * and gate and up in another, and a batch of sequences of the same length. Everything that a pass needs is allocated
 * before it, so that it can be captured as a graph. */
#ifndef LLAMA_BENCH_MODEL_H
#define LLAMA_BENCH_MODEL_H

#include "graph.h"
#include "weights.h"

typedef struct bench_shape {
    const char *name;
    int32_t size, hidden, layers, heads, kv_heads, head_dim, vocabulary;
    bool tied; /* the classifier is the embedding */
} bench_shape;

/* The shape of that name, or NULL. */
const bench_shape *bench_shape_find(const char *name);

/* The operators of a precision. */
#define BENCH_OPERATIONS(OPERATION) \
    OPERATION(embedding)            \
    OPERATION(rmsnorm)              \
    OPERATION(add_rmsnorm)          \
    OPERATION(gemm)                 \
    OPERATION(rope)                 \
    OPERATION(kv_store)             \
    OPERATION(mha)                  \
    OPERATION(silu_mul)             \
    OPERATION(argmax)

typedef struct bench_operations bench_operations;

/* Memory of the device that is freed together. */
enum { BENCH_BLOCKS = 24 };
typedef struct bench_memory {
    kiln_device *device;
    void *blocks[BENCH_BLOCKS];
    size_t count;
} bench_memory;

kiln_status bench_allocate(bench_memory *memory, uint64_t size, void **out);
void bench_free(bench_memory *memory);

typedef struct bench_model {
    kiln_stream *stream;
    const bench_shape *shape;
    llama_precision precision;
    size_t element; /* bytes */
    const bench_operations *run;
    bench_memory memory;

    /* [out, in], of all layers one after the other */
    void *embedding, *classifier, *qkv, *out, *gate_up, *down;
    void *ones; /* every norm's weights */
    int64_t *frequencies;
} bench_model;

/* Loads the kernels and makes the weights; waits until they are on the device. After a failure the model is to be
 * closed as ever. */
kiln_status bench_model_open(kiln_stream *stream, const bench_shape *shape, llama_precision precision,
                             bench_model *out);
void bench_model_close(bench_model *model);

/* The bytes of weights that a pass over few tokens reads. */
uint64_t bench_weight_bytes(const bench_model *model);

/* Operations of the products of one pass over so many tokens of one sequence, which sees none before it, with the
 * logits of the last. */
double bench_prefill_operations(const bench_model *model, int64_t tokens);

/* A batch at work. */
typedef struct bench_batch {
    const bench_model *model;
    bench_memory memory;
    int64_t batch, prompt, steps;

    void *residual, *normed, *heads, *attended, *branch, *gates, *hidden, *logits;
    void *key_cache, *value_cache; /* [layers, batch, prompt + steps, kv_heads * head_dim] */
    void *workspace;
    size_t workspace_size;

    int32_t *prompt_tokens, *prompt_positions;
    int64_t *prompt_slots;
    int32_t *tokens, *first; /* [batch]: the last ones, and those behind the prompt */
    void *now;               /* of a step: slots, positions and lengths, [batch] each */
    void *schedule;          /* of all steps */
    llama_graph *prefill, *decode;
} bench_batch;

/* Allocates a batch and captures its passes. After a failure the batch is to be closed as ever. */
kiln_status bench_batch_open(const bench_model *model, int64_t batch, int64_t prompt, int64_t steps, bench_batch *out);
void bench_batch_close(bench_batch *batch);

/* Puts the pass over the prompt of the first sequence on the stream; `first` is then what follows it. */
kiln_status bench_prefill(bench_batch *batch);

/* Gives all sequences the first one's cache, and its next token. */
kiln_status bench_spread(bench_batch *batch);

/* Puts so many steps on the stream, from the end of the prompt on, each of one token of every sequence. */
kiln_status bench_decode(bench_batch *batch, int64_t steps);

/* The operators, for measuring them alone. */
kiln_status bench_gemm(const bench_model *model, void *d, const void *a, const void *b, int64_t m, int64_t n,
                       int64_t k);
kiln_status bench_argmax(const bench_model *model, int32_t *y, const void *x, int64_t rows, int64_t cols);

#endif
