/* The passes of the bench's model: what puts a batch's tokens through the layers. */
#ifndef LLAMA_BENCH_PASS_H
#define LLAMA_BENCH_PASS_H

#include "bench_batch.h"

enum { BENCH_BLOCK = 16 }; /* keys, of a cache in blocks */

/* Bytes of so many elements of the model's precision. */
static inline uint64_t bench_bytes(const bench_model *m, int64_t rows, int64_t cols) {
    return (uint64_t)rows * (uint64_t)cols * m->format.element;
}

/* Bytes of so many keys, or values, in the cache. */
static inline uint64_t bench_cache_bytes(const bench_batch *b, int64_t keys) {
    const uint64_t element = b->cache_type == KILN_CACHE_OF_PRECISION ? b->model->format.element : 1;
    return (uint64_t)keys * (uint64_t)bench_key_size(b->model->shape) * element;
}

static inline void *bench_layer_cache(const bench_batch *b, void *cache, int64_t layer) {
    return (char *)cache + bench_cache_bytes(b, layer * b->batch * b->room);
}

/* Tokens on their way through the layers. */
typedef struct bench_pass {
    bench_batch *batch;
    int64_t rows;
    const int32_t *tokens, *positions;
    const int64_t *slots;
    const int32_t *lengths; /* of each sequence in the cache; NULL: the rows are one sequence, and see no cache */
} bench_pass;

/* Puts the layers on the stream. */
kiln_status bench_record_layers(const bench_pass *pass);

/* Puts the classifier on the stream, and the choice of the most likely tokens behind rows of the pass. */
kiln_status bench_record_choice(const bench_pass *pass, int64_t first, int64_t rows, int32_t *tokens);

/* Raises *most to the workspace that the pass wants. */
kiln_status bench_pass_workspace(const bench_pass *pass, size_t *most);

#endif
