#include "decoder.h"
#include "graph.h"
#include "half.h"
#include <kiln/ops.h>
#include <stdlib.h>

#define TRY(call)                                     \
    do {                                              \
        kiln_status try_status = (call);              \
        if (try_status != KILN_OK) return try_status; \
    } while (0)

static const float EPSILON = 1e-5f;
static const double THETA = 10000;

/* The operators of one precision. */
#define OPERATIONS(OPERATION) \
    OPERATION(embedding)      \
    OPERATION(rmsnorm)        \
    OPERATION(add_rmsnorm)    \
    OPERATION(gemm)           \
    OPERATION(rope)           \
    OPERATION(kv_store)       \
    OPERATION(mha)            \
    OPERATION(silu_mul)       \
    OPERATION(sample)

typedef struct operations {
#define OPERATION(name) kiln_status (*name)(kiln_stream * stream, const kiln_##name##_params *params, size_t size);
    OPERATIONS(OPERATION)
#undef OPERATION
    kiln_status (*mha_workspace)(kiln_stream *stream, const kiln_mha_params *params, size_t size, size_t *out_size);
    const char *part; /* of each operator's bundle */
} operations;

#define OPERATION_f32(name)  .name = kiln_##name##_f32_sized,
#define OPERATION_f16(name)  .name = kiln_##name##_f16_sized,
#define OPERATION_bf16(name) .name = kiln_##name##_bf16_sized,
static const operations precisions[] = {
    [LLAMA_F32] = {OPERATIONS(OPERATION_f32).mha_workspace = kiln_mha_f32_workspace_size_sized, .part = "f32"},
    [LLAMA_F16] = {OPERATIONS(OPERATION_f16).mha_workspace = kiln_mha_f16_workspace_size_sized, .part = "f16"},
    [LLAMA_BF16] = {OPERATIONS(OPERATION_bf16).mha_workspace = kiln_mha_bf16_workspace_size_sized, .part = "bf16"},
};

/* What a step is told: a copy in pinned memory, and one on the device, which the kernels read. */
typedef struct step_state {
    int32_t token, position, slot, length;
} step_state;

/* Activations: (name, elements). */
#define BUFFERS(BUFFER)                                                  \
    BUFFER(residual, c->size)                                            \
    BUFFER(normed, c->size)                                              \
    BUFFER(query, c->size)                                               \
    BUFFER(key, llama_kv_size(c))                                        \
    BUFFER(value, llama_kv_size(c))                                      \
    BUFFER(attended, c->size)                                            \
    BUFFER(branch, c->size)                                              \
    BUFFER(gate, c->hidden_size)                                         \
    BUFFER(up, c->hidden_size)                                           \
    BUFFER(logits, c->vocabulary_size)                                   \
    BUFFER(key_cache, (int64_t)c->layers * c->length * llama_kv_size(c)) \
    BUFFER(value_cache, (int64_t)c->layers * c->length * llama_kv_size(c))

struct llama_decoder {
    kiln_stream *stream;
    llama_config config;
    llama_options options;
    const operations *run;
    size_t element; /* bytes */
    void *weights[LLAMA_WEIGHT_COUNT];
#define BUFFER(name, count) void *name;
    BUFFERS(BUFFER)
#undef BUFFER
    int64_t *frequencies; /* of rope */
    void *workspace;
    size_t workspace_size;
    step_state *state, *host_state; /* of the device; pinned */
    int32_t *next, *host_next;
    void *host_logits;
    llama_graph *graph;
};

/* ---- Uploading ---- */

/* Converts count values into host memory of the stream's device. */
static void convert(void *to, const float *from, size_t count, llama_precision precision) {
    uint16_t *halves = to;
    if (precision == LLAMA_F32) memcpy(to, from, count * sizeof *from);
    for (size_t i = 0; i < count && precision != LLAMA_F32; i++)
        halves[i] = precision == LLAMA_F16 ? to_f16(from[i]) : to_bf16(from[i]);
}

static kiln_status upload(llama_decoder *d, void *to, const float *from, size_t count) {
    enum { CHUNK = 1 << 20 }; /* elements */
    void *staging = NULL;
    TRY(kiln_host_alloc(d->stream->device, CHUNK * d->element, &staging));
    kiln_status status = KILN_OK;
    for (size_t done = 0; done < count && status == KILN_OK; done += CHUNK) {
        size_t some = count - done < CHUNK ? count - done : CHUNK;
        convert(staging, from + done, some, d->options.precision);
        status = kiln_copy(d->stream, (char *)to + done * d->element, staging, some * d->element, KILN_COPY_TO_DEVICE);
        if (status == KILN_OK) status = kiln_stream_sync(d->stream);
    }
    kiln_host_free(d->stream->device, staging);
    return status;
}

static kiln_status upload_weights(llama_decoder *d, const llama_checkpoint *checkpoint,
                                  void (*progress)(size_t done, size_t all)) {
    for (size_t i = 0; i < LLAMA_WEIGHT_COUNT; i++) {
        const llama_weight *weight = &checkpoint->weights[i];
        size_t count = weight->rows * weight->cols * weight->layers;
        if (progress) progress(i, LLAMA_WEIGHT_COUNT);
        if (i == LLAMA_old_rope) continue;
        TRY(kiln_memory_alloc(d->stream->device, count * d->element, &d->weights[i]));
        TRY(upload(d, d->weights[i], weight->values, count));
    }
    if (!checkpoint->own_classifier) d->weights[LLAMA_classifier] = d->weights[LLAMA_embedding];
    if (progress) progress(LLAMA_WEIGHT_COUNT, LLAMA_WEIGHT_COUNT);
    return KILN_OK;
}

static kiln_status upload_frequencies(llama_decoder *d) {
    kiln_device *device = d->stream->device;
    int64_t pairs = llama_head_dim(&d->config) / 2;
    size_t size = (size_t)pairs * sizeof *d->frequencies;
    void *memory, *host;
    TRY(kiln_memory_alloc(device, size, &memory));
    d->frequencies = memory;
    TRY(kiln_host_alloc(device, size, &host));
    kiln_status status = kiln_rope_frequencies(THETA, NULL, pairs, host);
    if (status == KILN_OK) status = kiln_copy(d->stream, memory, host, size, KILN_COPY_TO_DEVICE);
    if (status == KILN_OK) status = kiln_stream_sync(d->stream);
    kiln_host_free(device, host);
    return status;
}

/* ---- A step ---- */

/* A layer's matrix. */
static const void *weight(const llama_decoder *d, size_t number, int32_t layer, int64_t rows, int64_t cols) {
    return (const char *)d->weights[number] + (size_t)(layer * rows * cols) * d->element;
}

static void *cache(const llama_decoder *d, void *all, int32_t layer) {
    int64_t size = (int64_t)d->config.length * llama_kv_size(&d->config);
    return (char *)all + (size_t)(layer * size) * d->element;
}

/* y = matrix x, for a matrix [out, in]. */
static kiln_status multiply(llama_decoder *d, void *y, const void *x, const void *matrix, int64_t out, int64_t in) {
    kiln_gemm_params params = {.d = y, .a = x, .b = matrix, .batch = 1, .m = 1, .n = out, .k = in};
    return d->run->gemm(d->stream, &params, sizeof params);
}

static kiln_status norm(llama_decoder *d, const void *weights) {
    kiln_rmsnorm_params params = {
        .y = d->normed, .x = d->residual, .weight = weights, .rows = 1, .cols = d->config.size, .eps = EPSILON};
    return d->run->rmsnorm(d->stream, &params, sizeof params);
}

/* Adds the branch to the residual stream, and norms the sum. */
static kiln_status add_and_norm(llama_decoder *d, const void *weights) {
    kiln_add_rmsnorm_params params = {.y = d->normed,
                                      .sum = d->residual,
                                      .x = d->branch,
                                      .residual = d->residual,
                                      .weight = weights,
                                      .rows = 1,
                                      .cols = d->config.size,
                                      .eps = EPSILON};
    return d->run->add_rmsnorm(d->stream, &params, sizeof params);
}

static kiln_status rotate(llama_decoder *d, void *x, int64_t heads) {
    kiln_rope_params params = {.y = x,
                               .x = x,
                               .positions = &d->state->position,
                               .frequencies = d->frequencies,
                               .tokens = 1,
                               .heads = heads,
                               .pairs = llama_head_dim(&d->config) / 2,
                               .layout = KILN_ROPE_INTERLEAVED};
    return d->run->rope(d->stream, &params, sizeof params);
}

static kiln_status store(llama_decoder *d, int32_t layer) {
    kiln_kv_store_params params = {.key_cache = cache(d, d->key_cache, layer),
                                   .value_cache = cache(d, d->value_cache, layer),
                                   .key = d->key,
                                   .value = d->value,
                                   .slot_mapping = &d->state->slot,
                                   .tokens = 1,
                                   .cols = llama_kv_size(&d->config),
                                   .capacity = d->config.length};
    return d->run->kv_store(d->stream, &params, sizeof params);
}

static kiln_mha_params attention(const llama_decoder *d, int32_t layer) {
    return (kiln_mha_params){.out = d->attended,
                             .q = d->query,
                             .k = cache(d, d->key_cache, layer),
                             .v = cache(d, d->value_cache, layer),
                             .seqlens_k = &d->state->length,
                             .tokens = 1,
                             .kv_tokens = d->config.length,
                             .batch = 1,
                             .heads = d->config.heads,
                             .kv_heads = d->config.kv_heads,
                             .head_dim = llama_head_dim(&d->config),
                             .workspace = d->workspace,
                             .workspace_size = d->workspace_size};
}

static kiln_status attend(llama_decoder *d, int32_t layer) {
    const llama_config *c = &d->config;
    int64_t size = c->size, kv_size = llama_kv_size(c);
    TRY(multiply(d, d->query, d->normed, weight(d, LLAMA_query, layer, size, size), size, size));
    TRY(multiply(d, d->key, d->normed, weight(d, LLAMA_key, layer, kv_size, size), kv_size, size));
    TRY(multiply(d, d->value, d->normed, weight(d, LLAMA_value, layer, kv_size, size), kv_size, size));
    TRY(rotate(d, d->query, c->heads));
    TRY(rotate(d, d->key, c->kv_heads));
    TRY(store(d, layer));
    kiln_mha_params params = attention(d, layer);
    TRY(d->run->mha(d->stream, &params, sizeof params));
    return multiply(d, d->branch, d->attended, weight(d, LLAMA_out, layer, size, size), size, size);
}

static kiln_status feed_forward(llama_decoder *d, int32_t layer) {
    int64_t size = d->config.size, hidden = d->config.hidden_size;
    TRY(multiply(d, d->gate, d->normed, weight(d, LLAMA_gate, layer, hidden, size), hidden, size));
    TRY(multiply(d, d->up, d->normed, weight(d, LLAMA_up, layer, hidden, size), hidden, size));
    kiln_silu_mul_params params = {.y = d->gate, .gate = d->gate, .up = d->up, .rows = 1, .cols = hidden};
    TRY(d->run->silu_mul(d->stream, &params, sizeof params));
    return multiply(d, d->branch, d->gate, weight(d, LLAMA_down, layer, size, hidden), size, hidden);
}

static kiln_status choose(llama_decoder *d) {
    kiln_sample_params params = {.y = d->next,
                                 .x = d->logits,
                                 .row_position = &d->state->position,
                                 .rows = 1,
                                 .cols = d->config.vocabulary_size,
                                 .seed = (int64_t)d->options.seed,
                                 .temperature = d->options.temperature};
    return d->run->sample(d->stream, &params, sizeof params);
}

/* Puts a whole step on the stream. */
static kiln_status record(void *decoder) {
    llama_decoder *d = decoder;
    const llama_config *c = &d->config;
    kiln_embedding_params params = {.y = d->residual,
                                    .table = d->weights[LLAMA_embedding],
                                    .ids = &d->state->token,
                                    .rows = 1,
                                    .cols = c->size,
                                    .vocabulary = c->vocabulary_size};
    TRY(d->run->embedding(d->stream, &params, sizeof params));
    TRY(norm(d, weight(d, LLAMA_attention_norm, 0, 1, c->size)));
    for (int32_t layer = 0; layer < c->layers; layer++) {
        TRY(attend(d, layer));
        TRY(add_and_norm(d, weight(d, LLAMA_hidden_norm, layer, 1, c->size)));
        TRY(feed_forward(d, layer));
        bool last = layer + 1 == c->layers;
        TRY(add_and_norm(d,
                         last ? d->weights[LLAMA_final_norm] : weight(d, LLAMA_attention_norm, layer + 1, 1, c->size)));
    }
    TRY(multiply(d, d->logits, d->normed, d->weights[LLAMA_classifier], c->vocabulary_size, c->size));
    return choose(d);
}

static kiln_status launch(llama_decoder *d) {
    if (d->graph && llama_graph_launch(d->graph, d->stream)) return KILN_OK;
    llama_graph_destroy(d->graph); /* one that the driver does not launch: the calls will say why */
    d->graph = NULL;
    return record(d);
}

kiln_status llama_decoder_step(llama_decoder *d, int32_t token, int32_t position, int32_t *out_next) {
    *d->host_state = (step_state){.token = token, .position = position, .slot = position, .length = position + 1};
    TRY(kiln_copy(d->stream, d->state, d->host_state, sizeof *d->state, KILN_COPY_TO_DEVICE));
    TRY(launch(d));
    TRY(kiln_copy(d->stream, d->host_next, d->next, sizeof *d->next, KILN_COPY_TO_HOST));
    TRY(kiln_stream_sync(d->stream));
    *out_next = *d->host_next;
    return KILN_OK;
}

kiln_status llama_decoder_logits(llama_decoder *d, float *out_logits) {
    size_t count = (size_t)d->config.vocabulary_size;
    const uint16_t *halves = d->host_logits;
    TRY(kiln_copy(d->stream, d->host_logits, d->logits, count * d->element, KILN_COPY_TO_HOST));
    TRY(kiln_stream_sync(d->stream));
    if (d->options.precision == LLAMA_F32) memcpy(out_logits, d->host_logits, count * sizeof *out_logits);
    for (size_t i = 0; i < count && d->options.precision != LLAMA_F32; i++)
        out_logits[i] = d->options.precision == LLAMA_F16 ? from_f16(halves[i]) : from_bf16(halves[i]);
    return KILN_OK;
}

bool llama_decoder_has_graph(const llama_decoder *d) {
    return d->graph != NULL;
}

/* ---- Life ---- */

static kiln_status allocate(llama_decoder *d) {
    kiln_device *device = d->stream->device;
    const llama_config *c = &d->config;
    void *memory; /* of fields that are no void pointers */
#define BUFFER(name, count) TRY(kiln_memory_alloc(device, (size_t)(count)*d->element, &d->name));
    BUFFERS(BUFFER)
#undef BUFFER
    TRY(kiln_memory_alloc(device, sizeof *d->state, &memory));
    d->state = memory;
    TRY(kiln_memory_alloc(device, sizeof *d->next, &memory));
    d->next = memory;
    TRY(kiln_host_alloc(device, sizeof *d->host_state, &memory));
    d->host_state = memory;
    TRY(kiln_host_alloc(device, sizeof *d->host_next, &memory));
    d->host_next = memory;
    TRY(kiln_host_alloc(device, (size_t)c->vocabulary_size * d->element, &d->host_logits));
    kiln_mha_params params = attention(d, 0);
    TRY(d->run->mha_workspace(d->stream, &params, sizeof params, &d->workspace_size));
    return kiln_memory_alloc(device, d->workspace_size, &d->workspace);
}

/* Loads the kernels of every operator that the program calls. A device without an image for one is known before the
 * weights are on it, and nothing is left for a step to load. */
static kiln_status load_kernels(const llama_decoder *d) {
    const kiln_bundle *const *bundles;
    const kiln_module *module;
    kiln_part part;
    size_t count;
    TRY(kiln_linked_bundles(&bundles, &count));
    for (size_t i = 0; i < count; i++) {
        if (kiln_bundle_find_part(bundles[i], d->run->part, &part) != KILN_OK) continue; /* one of the program's own */
        TRY(kiln_module_get(d->stream->device, bundles[i], part.name, &module));
    }
    return KILN_OK;
}

static kiln_status create(llama_decoder *d, const llama_checkpoint *checkpoint,
                          void (*progress)(size_t done, size_t all)) {
    TRY(load_kernels(d));
    TRY(allocate(d));
    TRY(upload_frequencies(d));
    TRY(upload_weights(d, checkpoint, progress));
    kiln_status status;
    d->graph = llama_graph_capture(d->stream, record, d, &status);
    return status;
}

kiln_status llama_decoder_create(kiln_stream *stream, const llama_checkpoint *checkpoint, const llama_options *options,
                                 void (*progress)(size_t done, size_t all), llama_decoder **out) {
    llama_decoder *d = *out = calloc(1, sizeof *d);
    if (!d) return KILN_ERROR_OUT_OF_MEMORY;
    d->stream = stream;
    d->config = checkpoint->config;
    d->options = *options;
    d->run = &precisions[options->precision];
    d->element = options->precision == LLAMA_F32 ? sizeof(float) : sizeof(uint16_t);
    kiln_status status = create(d, checkpoint, progress);
    if (status == KILN_OK) return status;
    llama_decoder_destroy(d);
    *out = NULL;
    return status;
}

void llama_decoder_destroy(llama_decoder *d) {
    if (!d) return;
    kiln_device *device = d->stream->device;
    kiln_stream_sync(d->stream);
    llama_graph_destroy(d->graph);
    if (d->weights[LLAMA_classifier] == d->weights[LLAMA_embedding]) d->weights[LLAMA_classifier] = NULL;
    for (size_t i = 0; i < LLAMA_WEIGHT_COUNT; i++)
        kiln_memory_free(device, d->weights[i]);
#define BUFFER(name, count) kiln_memory_free(device, d->name);
    BUFFERS(BUFFER)
#undef BUFFER
    kiln_memory_free(device, d->frequencies);
    kiln_memory_free(device, d->workspace);
    kiln_memory_free(device, d->state);
    kiln_memory_free(device, d->next);
    kiln_host_free(device, d->host_state);
    kiln_host_free(device, d->host_next);
    kiln_host_free(device, d->host_logits);
    free(d);
}
