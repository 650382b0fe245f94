#include "tree_decoder.h"
#include "forward.h"
#include "graph.h"
#include "try.h"
#include <kiln/ops.h>
#include <stdlib.h>

/* The operators of one precision that see a sequence. */
typedef struct operations {
    kiln_status (*mha)(kiln_stream *stream, const kiln_mha_params *params, size_t size);
    kiln_status (*mha_workspace)(kiln_stream *stream, const kiln_mha_params *params, size_t size, size_t *out_size);
    kiln_status (*sample)(kiln_stream *stream, const kiln_sample_params *params, size_t size);
    kiln_status (*compact)(kiln_stream *stream, const kiln_kv_compact_params *params, size_t size);
} operations;

static const operations precisions[] = {
    [LLAMA_F32] = {kiln_mha_f32_sized, kiln_mha_f32_workspace_size_sized, kiln_sample_f32_sized,
                   kiln_kv_compact_f32_sized},
    [LLAMA_F16] = {kiln_mha_f16_sized, kiln_mha_f16_workspace_size_sized, kiln_sample_f16_sized,
                   kiln_kv_compact_f16_sized},
    [LLAMA_BF16] = {kiln_mha_bf16_sized, kiln_mha_bf16_workspace_size_sized, kiln_sample_bf16_sized,
                    kiln_kv_compact_bf16_sized},
};

/* What a pass is told, and which nodes are kept after it: a copy in pinned memory, and one on the device, which the
 * kernels read. */
typedef struct pass_state {
    int64_t slots[LLAMA_NODES_MOST];
    int64_t seeds[LLAMA_NODES_MOST]; /* the same for all: what is drawn then depends on the position alone */
    int32_t tokens[LLAMA_NODES_MOST], positions[LLAMA_NODES_MOST];
    int32_t path[LLAMA_NODES_MOST];
    int32_t length, accepted;
} pass_state;

struct llama_tree_decoder {
    kiln_stream *stream;
    const operations *run;
    llama_options options;
    llama_weights weights;
    struct llama_quantised *quantised;
    llama_forward forward; /* of all nodes */
    int32_t nodes, cached; /* of a pass; tokens in the cache */
    const kiln_tree *chain;
    void *logits;
    void *workspace;
    size_t workspace_size;
    pass_state *state, *host_state; /* of the device; pinned */
    int32_t *next, *host_next;
    llama_graph *graph;
};

/* ---- A pass ---- */

static kiln_mha_params attention(const llama_tree_decoder *d, int32_t layer) {
    const llama_forward *f = &d->forward;
    const llama_config *c = &d->weights.config;
    return (kiln_mha_params){.out = f->attended,
                             .q = f->query,
                             .k = llama_layer_cache(f, f->key_cache, layer),
                             .v = llama_layer_cache(f, f->value_cache, layer),
                             .seqlens_k = &d->state->length,
                             .tokens = d->nodes,
                             .kv_tokens = f->capacity,
                             .batch = 1,
                             .heads = c->heads,
                             .kv_heads = c->kv_heads,
                             .head_dim = llama_head_dim(c),
                             .workspace = d->workspace,
                             .workspace_size = d->workspace_size,
                             .causal = 1};
}

static kiln_status attend(void *decoder, kiln_stream *stream, int32_t layer) {
    const llama_tree_decoder *d = decoder;
    kiln_mha_params params = attention(d, layer);
    return d->run->mha(stream, &params, sizeof params);
}

static kiln_status choose(const llama_tree_decoder *d) {
    kiln_sample_params params = {.y = d->next,
                                 .x = d->logits,
                                 .row_seed = d->state->seeds,
                                 .row_position = d->state->positions,
                                 .rows = d->nodes,
                                 .cols = d->weights.config.vocabulary_size,
                                 .temperature = d->options.temperature};
    return d->run->sample(d->stream, &params, sizeof params);
}

/* Puts a whole pass on the stream. */
static kiln_status record(void *decoder) {
    llama_tree_decoder *d = decoder;
    TRY(llama_forward_layers(&d->forward, d->stream));
    TRY(llama_forward_logits(&d->forward, d->stream, d->forward.normed, d->nodes, d->logits));
    return choose(d);
}

static kiln_status launch(llama_tree_decoder *d) {
    if (d->graph && llama_graph_launch(d->graph, d->stream)) return KILN_OK;
    llama_graph_destroy(d->graph); /* one that the driver does not launch: the calls will say why */
    d->graph = NULL;
    return record(d);
}

static kiln_status upload_state(const llama_tree_decoder *d) {
    return kiln_copy(d->stream, d->state, d->host_state, sizeof *d->state, KILN_COPY_TO_DEVICE);
}

/* A pass has the same number of rows each time, so that a graph of it can be replayed. The rows behind the tree have no
 * token, and stand behind all that the tree's see. */
kiln_status llama_tree_decoder_pass(llama_tree_decoder *d, const kiln_tree *tree, const int32_t *tokens,
                                    const int32_t **out_next) {
    pass_state *s = d->host_state;
    s->length = d->cached + d->nodes;
    for (int32_t i = 0; i < d->nodes; i++) {
        bool in_tree = i < tree->nodes;
        s->slots[i] = d->cached + i;
        s->seeds[i] = (int64_t)d->options.seed;
        s->tokens[i] = in_tree ? tokens[i] : LLAMA_NO_DRAFT;
        s->positions[i] = d->cached + (in_tree ? tree->positions[i] : i);
    }
    TRY(upload_state(d));
    TRY(launch(d));
    size_t size = (size_t)d->nodes * sizeof *d->next;
    TRY(kiln_copy(d->stream, d->host_next, d->next, size, KILN_COPY_TO_HOST));
    TRY(kiln_stream_sync(d->stream));
    *out_next = d->host_next;
    return KILN_OK;
}

kiln_status llama_tree_decoder_fill(llama_tree_decoder *d, const int32_t *tokens, int32_t count) {
    while (d->cached < count) {
        int32_t some = count - d->cached < d->nodes ? count - d->cached : d->nodes;
        int32_t nodes[LLAMA_NODES_MOST];
        const int32_t *next;
        for (int32_t i = 0; i < d->nodes; i++)
            nodes[i] = i < some ? tokens[d->cached + i] : LLAMA_NO_DRAFT;
        TRY(llama_tree_decoder_pass(d, d->chain, nodes, &next));
        d->cached += some;
    }
    return KILN_OK;
}

/* ---- What is kept of a pass ---- */

static kiln_status compact(const llama_tree_decoder *d, int32_t layer) {
    const llama_forward *f = &d->forward;
    kiln_kv_compact_params params = {.key_cache = llama_layer_cache(f, f->key_cache, layer),
                                     .value_cache = llama_layer_cache(f, f->value_cache, layer),
                                     .slot_mapping = d->state->slots,
                                     .path = d->state->path,
                                     .accepted = &d->state->accepted,
                                     .batch = 1,
                                     .nodes = d->nodes,
                                     .depth = LLAMA_NODES_MOST,
                                     .cols = llama_kv_size(&d->weights.config),
                                     .capacity = f->capacity,
                                     .index_type = KILN_INDEX_I64};
    return d->run->compact(d->stream, &params, sizeof params);
}

kiln_status llama_tree_decoder_keep(llama_tree_decoder *d, const int32_t *path, int32_t accepted) {
    bool in_place = true;
    for (int32_t i = 0; i < accepted; i++) {
        d->host_state->path[i] = path[i];
        in_place = in_place && path[i] == i;
    }
    d->cached += accepted;
    if (in_place) return KILN_OK;
    d->host_state->accepted = accepted;
    TRY(upload_state(d));
    for (int32_t layer = 0; layer < d->weights.config.layers; layer++)
        TRY(compact(d, layer));
    return kiln_stream_sync(d->stream); /* the pinned copy is about to be filled anew */
}

bool llama_tree_decoder_has_graph(const llama_tree_decoder *d) {
    return d->graph != NULL;
}

/* ---- Life ---- */

static kiln_status make_chain(int32_t nodes, const kiln_tree **out) {
    int32_t parents[LLAMA_NODES_MOST];
    for (int32_t i = 0; i < nodes; i++)
        parents[i] = i - 1;
    return kiln_tree_create(parents, nodes, out);
}

static kiln_status allocate(llama_tree_decoder *d) {
    kiln_device *device = d->stream->device;
    const llama_config *c = &d->weights.config;
    size_t cache = (size_t)c->layers * (size_t)d->forward.capacity * (size_t)llama_kv_size(c) * d->weights.element;
    size_t nodes = (size_t)d->nodes;
    void *memory; /* of fields that are no void pointers */
    TRY(llama_forward_allocate(&d->forward, device, d->nodes));
    TRY(kiln_memory_alloc(device, cache, &d->forward.key_cache));
    TRY(kiln_memory_alloc(device, cache, &d->forward.value_cache));
    TRY(kiln_memory_alloc(device, nodes * (size_t)c->vocabulary_size * d->weights.element, &d->logits));
    TRY(kiln_memory_alloc(device, sizeof *d->state, &memory));
    d->state = memory;
    TRY(kiln_memory_alloc(device, nodes * sizeof *d->next, &memory));
    d->next = memory;
    TRY(kiln_host_alloc(device, sizeof *d->host_state, &memory));
    d->host_state = memory;
    TRY(kiln_host_alloc(device, nodes * sizeof *d->host_next, &memory));
    d->host_next = memory;
    kiln_mha_params params = attention(d, 0);
    TRY(d->run->mha_workspace(d->stream, &params, sizeof params, &d->workspace_size));
    return kiln_memory_alloc(device, d->workspace_size, &d->workspace);
}

/* What the forward pass reads and writes. */
static void connect(llama_tree_decoder *d) {
    d->forward.rows = d->nodes;
    d->forward.tokens = d->state->tokens;
    d->forward.positions = d->state->positions;
    d->forward.slots = d->state->slots;
    d->forward.attend = attend;
    d->forward.user = d;
}

/* A pass and a move of nothing load the kernels: capturing a graph must not, and a pass should not. */
static kiln_status take_first_pass(llama_tree_decoder *d) {
    const int32_t *next;
    int32_t tokens[LLAMA_NODES_MOST] = {0};
    TRY(llama_tree_decoder_pass(d, d->chain, tokens, &next));
    return compact(d, 0);
}

static kiln_status create(llama_tree_decoder *d, const llama_checkpoint *checkpoint,
                          void (*progress)(size_t done, size_t all)) {
    kiln_status status;
    TRY(make_chain(d->nodes, &d->chain));
    TRY(llama_weights_upload_without(d->stream, checkpoint, d->options.precision,
                                     llama_quantised_set(d->options.quantisation), progress, &d->weights));
    TRY(llama_quantised_create(d->stream, checkpoint, d->options.quantisation, &d->weights, d->nodes, &d->quantised));
    d->forward.weights = &d->weights;
    d->forward.quantised = d->quantised;
    TRY(allocate(d));
    connect(d);
    *d->host_state = (pass_state){0};
    TRY(take_first_pass(d));
    d->graph = llama_graph_capture(d->stream, record, d, &status);
    return status;
}

kiln_status llama_tree_decoder_create(kiln_stream *stream, const llama_checkpoint *checkpoint,
                                      const llama_options *options, int32_t length, int32_t nodes,
                                      void (*progress)(size_t done, size_t all), llama_tree_decoder **out) {
    llama_tree_decoder *d = *out = calloc(1, sizeof *d);
    if (!d) return KILN_ERROR_OUT_OF_MEMORY;
    d->stream = stream;
    d->options = *options;
    d->run = &precisions[options->precision];
    d->nodes = nodes;
    d->forward.capacity = (int64_t)length + nodes;
    kiln_status status = create(d, checkpoint, progress);
    if (status == KILN_OK) return status;
    llama_tree_decoder_destroy(d);
    *out = NULL;
    return status;
}

void llama_tree_decoder_destroy(llama_tree_decoder *d) {
    if (!d) return;
    kiln_device *device = d->stream->device;
    kiln_stream_sync(d->stream);
    llama_graph_destroy(d->graph);
    llama_quantised_destroy(device, d->quantised);
    llama_weights_free(device, &d->weights);
    llama_forward_free(&d->forward, device);
    kiln_memory_free(device, d->forward.key_cache);
    kiln_memory_free(device, d->forward.value_cache);
    kiln_memory_free(device, d->logits);
    kiln_memory_free(device, d->workspace);
    kiln_memory_free(device, d->state);
    kiln_memory_free(device, d->next);
    kiln_host_free(device, d->host_state);
    kiln_host_free(device, d->host_next);
    kiln_tree_destroy(d->chain);
    free(d);
}
