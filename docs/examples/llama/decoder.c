#include "decoder.h"
#include "forward.h"
#include "graph.h"
#include "half.h"
#include "try.h"
#include <kiln/ops.h>
#include <stdlib.h>

/* The operators of one precision that see a sequence. */
typedef struct operations {
    kiln_status (*mha)(kiln_stream *stream, const kiln_mha_params *params, size_t size);
    kiln_status (*mha_workspace)(kiln_stream *stream, const kiln_mha_params *params, size_t size, size_t *out_size);
    kiln_status (*mha_paged)(kiln_stream *stream, const kiln_mha_paged_params *params, size_t size);
    kiln_status (*mha_paged_workspace)(kiln_stream *stream, const kiln_mha_paged_params *params, size_t size,
                                       size_t *out_size);
    kiln_status (*sample)(kiln_stream *stream, const kiln_sample_params *params, size_t size);
} operations;

#define OPERATIONS(part)                                                                                \
    {                                                                                                   \
        kiln_mha_##part##_sized, kiln_mha_##part##_workspace_size_sized, kiln_mha_paged_##part##_sized, \
            kiln_mha_paged_##part##_workspace_size_sized, kiln_sample_##part##_sized                    \
    }
static const operations precisions[] = {
    [LLAMA_F32] = OPERATIONS(f32),
    [LLAMA_F16] = OPERATIONS(f16),
    [LLAMA_BF16] = OPERATIONS(bf16),
};

/* What a step is told: a copy in pinned memory, and one on the device, which the kernels read. */
typedef struct step_state {
    int64_t slot;
    int32_t token, position, length;
    int32_t block; /* 0: the one of an fp8 cache, which is paged, that has all slots */
} step_state;

/* Memory beside the activations: (name, bytes). */
#define BUFFERS(BUFFER)                                             \
    BUFFER(logits, (size_t)c->vocabulary_size * d->weights.element) \
    BUFFER(forward.key_cache, llama_cache_size(&d->forward))        \
    BUFFER(forward.value_cache, llama_cache_size(&d->forward))

struct llama_decoder {
    kiln_stream *stream;
    llama_options options;
    const operations *run;
    llama_weights weights;
    struct llama_quantised *quantised;
    llama_forward forward; /* of one row */
    void *logits;
    void *workspace;
    size_t workspace_size;
    step_state *state, *host_state; /* of the device; pinned */
    int32_t *next, *host_next;
    void *host_logits;
    llama_graph *graph;
};

/* ---- A step ---- */

static kiln_mha_params attention(const llama_decoder *d, int32_t layer) {
    const llama_forward *f = &d->forward;
    const llama_config *c = &d->weights.config;
    return (kiln_mha_params){.out = f->attended,
                             .q = f->query,
                             .k = llama_layer_cache(f, f->key_cache, layer),
                             .v = llama_layer_cache(f, f->value_cache, layer),
                             .seqlens_k = &d->state->length,
                             .tokens = 1,
                             .kv_tokens = c->length,
                             .batch = 1,
                             .heads = c->heads,
                             .kv_heads = c->kv_heads,
                             .head_dim = llama_head_dim(c),
                             .workspace = d->workspace,
                             .workspace_size = d->workspace_size};
}

/* The same of an fp8 cache. */
static kiln_mha_paged_params paged_attention(const llama_decoder *d, int32_t layer) {
    const llama_forward *f = &d->forward;
    const llama_config *c = &d->weights.config;
    return (kiln_mha_paged_params){.out = f->attended,
                                   .q = f->query,
                                   .k_cache = llama_layer_cache(f, f->key_cache, layer),
                                   .v_cache = llama_layer_cache(f, f->value_cache, layer),
                                   .block_table = &d->state->block,
                                   .seqlens_k = &d->state->length,
                                   .tokens = 1,
                                   .blocks = 1,
                                   .block_size = f->capacity,
                                   .batch = 1,
                                   .max_blocks_per_seq = 1,
                                   .heads = c->heads,
                                   .kv_heads = c->kv_heads,
                                   .head_dim = llama_head_dim(c),
                                   .workspace = d->workspace,
                                   .workspace_size = d->workspace_size,
                                   .cache_type = f->cache_type};
}

static kiln_status attend(void *decoder, kiln_stream *stream, int32_t layer) {
    const llama_decoder *d = decoder;
    if (d->options.fp8_cache) {
        kiln_mha_paged_params params = paged_attention(d, layer);
        return d->run->mha_paged(stream, &params, sizeof params);
    }
    kiln_mha_params params = attention(d, layer);
    return d->run->mha(stream, &params, sizeof params);
}

/* How much workspace that needs. */
static kiln_status find_workspace(llama_decoder *d) {
    if (d->options.fp8_cache) {
        kiln_mha_paged_params params = paged_attention(d, 0);
        return d->run->mha_paged_workspace(d->stream, &params, sizeof params, &d->workspace_size);
    }
    kiln_mha_params params = attention(d, 0);
    return d->run->mha_workspace(d->stream, &params, sizeof params, &d->workspace_size);
}

static kiln_status choose(llama_decoder *d) {
    kiln_sample_params params = {.y = d->next,
                                 .x = d->logits,
                                 .row_position = &d->state->position,
                                 .rows = 1,
                                 .cols = d->weights.config.vocabulary_size,
                                 .seed = (int64_t)d->options.seed,
                                 .temperature = d->options.temperature};
    return d->run->sample(d->stream, &params, sizeof params);
}

/* Puts a whole step on the stream. */
static kiln_status record(void *decoder) {
    llama_decoder *d = decoder;
    TRY(llama_forward_layers(&d->forward, d->stream));
    TRY(llama_forward_logits(&d->forward, d->stream, d->forward.normed, 1, d->logits));
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
    size_t count = (size_t)d->weights.config.vocabulary_size;
    const uint16_t *halves = d->host_logits;
    TRY(kiln_copy(d->stream, d->host_logits, d->logits, count * d->weights.element, KILN_COPY_TO_HOST));
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
    const llama_config *c = &d->weights.config;
    void *memory; /* of fields that are no void pointers */
    TRY(llama_forward_allocate(&d->forward, device, 1));
#define BUFFER(name, size) TRY(kiln_memory_alloc(device, size, &d->name));
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
    TRY(kiln_host_alloc(device, (size_t)c->vocabulary_size * d->weights.element, &d->host_logits));
    TRY(find_workspace(d));
    return kiln_memory_alloc(device, d->workspace_size, &d->workspace);
}

/* What the forward pass reads and writes. */
static void connect(llama_decoder *d) {
    d->forward.rows = 1;
    d->forward.tokens = &d->state->token;
    d->forward.positions = &d->state->position;
    d->forward.slots = &d->state->slot;
    d->forward.attend = attend;
    d->forward.user = d;
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
        if (kiln_bundle_find_part(bundles[i], llama_precision_name(d->options.precision), &part) != KILN_OK)
            continue; /* one of the program's own */
        TRY(kiln_module_get(d->stream->device, bundles[i], part.name, &module));
    }
    return KILN_OK;
}

static kiln_status create(llama_decoder *d, const llama_checkpoint *checkpoint,
                          void (*progress)(size_t done, size_t all)) {
    TRY(load_kernels(d));
    TRY(llama_weights_upload_without(d->stream, checkpoint, d->options.precision,
                                     llama_quantised_set(d->options.quantisation), progress, &d->weights));
    TRY(llama_quantised_create(d->stream, checkpoint, d->options.quantisation, &d->weights, 1, &d->quantised));
    d->forward.weights = &d->weights;
    d->forward.quantised = d->quantised;
    d->forward.capacity = d->weights.config.length;
    if (d->options.fp8_cache) { /* a block has a power of two of slots */
        d->forward.cache_type = KILN_CACHE_E4M3;
        for (d->forward.capacity = 1; d->forward.capacity < d->weights.config.length;)
            d->forward.capacity *= 2;
    }
    TRY(allocate(d));
    connect(d);
    kiln_status status;
    d->graph = llama_graph_capture(d->stream, record, d, &status);
    return status;
}

kiln_status llama_decoder_create(kiln_stream *stream, const llama_checkpoint *checkpoint, const llama_options *options,
                                 void (*progress)(size_t done, size_t all), llama_decoder **out) {
    llama_decoder *d = *out = calloc(1, sizeof *d);
    if (!d) return KILN_ERROR_OUT_OF_MEMORY;
    d->stream = stream;
    d->options = *options;
    d->run = &precisions[options->precision];
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
    llama_quantised_destroy(device, d->quantised);
    llama_weights_free(device, &d->weights);
    llama_forward_free(&d->forward, device);
#define BUFFER(name, size) kiln_memory_free(device, d->name);
    BUFFERS(BUFFER)
#undef BUFFER
    kiln_memory_free(device, d->workspace);
    kiln_memory_free(device, d->state);
    kiln_memory_free(device, d->next);
    kiln_host_free(device, d->host_state);
    kiln_host_free(device, d->host_next);
    kiln_host_free(device, d->host_logits);
    free(d);
}
