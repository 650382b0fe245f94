#include "forward.h"
#include "quantised.h"
#include "try.h"
#include <kiln/ops.h>

/* The operators of one precision. */
#define OPERATIONS(OPERATION) \
    OPERATION(embedding)      \
    OPERATION(rmsnorm)        \
    OPERATION(add_rmsnorm)    \
    OPERATION(gemm)           \
    OPERATION(rope_kv_store)  \
    OPERATION(silu_mul)

typedef struct operations {
#define OPERATION(name) kiln_status (*name)(kiln_stream * stream, const kiln_##name##_params *params, size_t size);
    OPERATIONS(OPERATION)
#undef OPERATION
} operations;

#define OPERATION_f32(name)  .name = kiln_##name##_f32_sized,
#define OPERATION_f16(name)  .name = kiln_##name##_f16_sized,
#define OPERATION_bf16(name) .name = kiln_##name##_bf16_sized,
static const operations precisions[] = {
    [LLAMA_F32] = {OPERATIONS(OPERATION_f32)},
    [LLAMA_F16] = {OPERATIONS(OPERATION_f16)},
    [LLAMA_BF16] = {OPERATIONS(OPERATION_bf16)},
};

static const operations *run(const llama_forward *f) {
    return &precisions[f->weights->precision];
}

kiln_status llama_forward_allocate(llama_forward *f, kiln_device *device, int64_t rows) {
    const llama_config *c = &f->weights->config;
#define ACTIVATION(name, count) \
    TRY(kiln_memory_alloc(device, (size_t)(rows * (count)) * f->weights->element, &f->name));
    LLAMA_ACTIVATIONS(ACTIVATION)
#undef ACTIVATION
    return KILN_OK;
}

void llama_forward_free(llama_forward *f, kiln_device *device) {
#define ACTIVATION(name, count)        \
    kiln_memory_free(device, f->name); \
    f->name = NULL;
    LLAMA_ACTIVATIONS(ACTIVATION)
#undef ACTIVATION
}

/* Bytes of a layer's part of a cache. */
static size_t layer_size(const llama_forward *f) {
    size_t element = f->cache_type == KILN_CACHE_E4M3 ? 1 : f->weights->element;
    return (size_t)(f->capacity * llama_kv_size(&f->weights->config)) * element;
}

size_t llama_cache_size(const llama_forward *f) {
    return (size_t)f->weights->config.layers * layer_size(f);
}

void *llama_layer_cache(const llama_forward *f, void *cache, int32_t layer) {
    return (char *)cache + (size_t)layer * layer_size(f);
}

/* y = x times the matrix, [out, in], transposed. */
static kiln_status multiply(const llama_forward *f, kiln_stream *stream, void *y, const void *x, const void *matrix,
                            int64_t rows, int64_t out, int64_t in) {
    kiln_gemm_params params = {.d = y, .a = x, .b = matrix, .batch = 1, .m = rows, .n = out, .k = in};
    return run(f)->gemm(stream, &params, sizeof params);
}

/* The same with a layer's matrix, which may be quantised. */
static kiln_status project(const llama_forward *f, kiln_stream *stream, void *y, const void *x, size_t number,
                           int32_t layer, int64_t out, int64_t in) {
    if (f->quantised) return llama_quantised_multiply(f, stream, y, x, number, layer, out, in);
    return multiply(f, stream, y, x, llama_layer_weight(f->weights, number, layer), f->rows, out, in);
}

static kiln_status norm(const llama_forward *f, kiln_stream *stream, const void *weights) {
    if (f->quantised && f->quantised->operators) return llama_quantised_norm(f, stream, weights, false);
    kiln_rmsnorm_params params = {.y = f->normed,
                                  .x = f->residual,
                                  .weight = weights,
                                  .rows = f->rows,
                                  .cols = f->weights->config.size,
                                  .eps = LLAMA_EPSILON};
    return run(f)->rmsnorm(stream, &params, sizeof params);
}

/* Adds the branch to the residual stream, and norms the sum; the last one for the classifier, which is not quantised.
 */
static kiln_status add_and_norm(const llama_forward *f, kiln_stream *stream, const void *weights, bool last) {
    if (f->quantised && f->quantised->operators && !last) return llama_quantised_norm(f, stream, weights, true);
    kiln_add_rmsnorm_params params = {.y = f->normed,
                                      .sum = f->residual,
                                      .x = f->branch,
                                      .residual = f->residual,
                                      .weight = weights,
                                      .rows = f->rows,
                                      .cols = f->weights->config.size,
                                      .eps = LLAMA_EPSILON};
    return run(f)->add_rmsnorm(stream, &params, sizeof params);
}

/* Rotates the queries in place, and the keys on their way into the cache. */
static kiln_status rotate_and_store(const llama_forward *f, kiln_stream *stream, int32_t layer) {
    const llama_config *c = &f->weights->config;
    kiln_rope_kv_store_params params = {.query_out = f->query,
                                        .key_cache = llama_layer_cache(f, f->key_cache, layer),
                                        .value_cache = llama_layer_cache(f, f->value_cache, layer),
                                        .query = f->query,
                                        .key = f->key,
                                        .value = f->value,
                                        .slot_mapping = f->slots,
                                        .positions = f->positions,
                                        .frequencies = f->weights->frequencies,
                                        .tokens = f->rows,
                                        .heads = c->heads,
                                        .kv_heads = c->kv_heads,
                                        .head_dim = llama_head_dim(c),
                                        .pairs = llama_head_dim(c) / 2,
                                        .capacity = f->capacity,
                                        .layout = KILN_ROPE_INTERLEAVED,
                                        .slot_type = KILN_INDEX_I64,
                                        .cache_type = f->cache_type};
    return run(f)->rope_kv_store(stream, &params, sizeof params);
}

static kiln_status attend(const llama_forward *f, kiln_stream *stream, int32_t layer) {
    const llama_config *c = &f->weights->config;
    int64_t size = c->size, kv_size = llama_kv_size(c);
    TRY(project(f, stream, f->query, f->normed, LLAMA_query, layer, size, size));
    TRY(project(f, stream, f->key, f->normed, LLAMA_key, layer, kv_size, size));
    TRY(project(f, stream, f->value, f->normed, LLAMA_value, layer, kv_size, size));
    TRY(rotate_and_store(f, stream, layer));
    TRY(f->attend(f->user, stream, layer));
    if (f->quantised && f->quantised->operators) TRY(llama_quantised_attended(f, stream));
    return project(f, stream, f->branch, f->attended, LLAMA_out, layer, size, size);
}

/* The gate's activation times up, in the gate's place. */
static kiln_status activate(const llama_forward *f, kiln_stream *stream) {
    if (f->quantised && f->quantised->operators) return llama_quantised_gate(f, stream);
    kiln_silu_mul_params params = {
        .y = f->gate, .gate = f->gate, .up = f->up, .rows = f->rows, .cols = f->weights->config.hidden_size};
    return run(f)->silu_mul(stream, &params, sizeof params);
}

static kiln_status feed_forward(const llama_forward *f, kiln_stream *stream, int32_t layer) {
    int64_t size = f->weights->config.size, hidden = f->weights->config.hidden_size;
    TRY(project(f, stream, f->gate, f->normed, LLAMA_gate, layer, hidden, size));
    TRY(project(f, stream, f->up, f->normed, LLAMA_up, layer, hidden, size));
    TRY(activate(f, stream));
    return project(f, stream, f->branch, f->gate, LLAMA_down, layer, size, hidden);
}

kiln_status llama_forward_layers(const llama_forward *f, kiln_stream *stream) {
    const llama_weights *w = f->weights;
    const llama_config *c = &w->config;
    kiln_embedding_params params = {.y = f->residual,
                                    .table = w->arrays[LLAMA_embedding],
                                    .ids = f->tokens,
                                    .rows = f->rows,
                                    .cols = c->size,
                                    .vocabulary = c->vocabulary_size};
    TRY(run(f)->embedding(stream, &params, sizeof params));
    TRY(norm(f, stream, llama_layer_weight(w, LLAMA_attention_norm, 0)));
    for (int32_t layer = 0; layer < c->layers; layer++) {
        TRY(attend(f, stream, layer));
        TRY(add_and_norm(f, stream, llama_layer_weight(w, LLAMA_hidden_norm, layer), false));
        TRY(feed_forward(f, stream, layer));
        bool last = layer + 1 == c->layers;
        TRY(add_and_norm(f, stream,
                         last ? w->arrays[LLAMA_final_norm] : llama_layer_weight(w, LLAMA_attention_norm, layer + 1),
                         last));
    }
    return KILN_OK;
}

kiln_status llama_forward_logits(const llama_forward *f, kiln_stream *stream, const void *normed, int64_t rows,
                                 void *logits) {
    const llama_config *c = &f->weights->config;
    return multiply(f, stream, logits, normed, f->weights->arrays[LLAMA_classifier], rows, c->vocabulary_size, c->size);
}
