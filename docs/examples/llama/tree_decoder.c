#include "tree_decoder.h"
#include "forward.h"
#include "graph.h"
#include "try.h"
#include <kiln/ops.h>
#include <stdlib.h>

/* The operators of one precision that see a sequence. */
typedef struct operations {
    kiln_status (*mha)(kiln_stream *stream, const kiln_mha_paged_params *params, size_t size);
    kiln_status (*mha_workspace)(kiln_stream *stream, const kiln_mha_paged_params *params, size_t size,
                                 size_t *out_size);
    kiln_status (*sample)(kiln_stream *stream, const kiln_sample_params *params, size_t size);
    kiln_status (*top_k)(kiln_stream *stream, const kiln_top_k_params *params, size_t size);
    kiln_status (*top_k_workspace)(kiln_stream *stream, const kiln_top_k_params *params, size_t size, size_t *out_size);
    kiln_status (*compact)(kiln_stream *stream, const kiln_kv_compact_params *params, size_t size);
} operations;

#define OPERATIONS(part)                                                                                         \
    {                                                                                                            \
        kiln_mha_paged_##part##_sized, kiln_mha_paged_##part##_workspace_size_sized, kiln_sample_##part##_sized, \
            kiln_top_k_##part##_sized, kiln_top_k_##part##_workspace_size_sized, kiln_kv_compact_##part##_sized  \
    }
static const operations precisions[] = {
    [LLAMA_F32] = OPERATIONS(f32), [LLAMA_F16] = OPERATIONS(f16), [LLAMA_BF16] = OPERATIONS(bf16)};

enum { BLOCK = 256, MASK_WORDS = LLAMA_NODES_MOST / 32 }; /* tokens of a block of the cache */

/* What a pass is told, and which nodes are kept after it: a copy in pinned memory, and one on the device, which the
 * kernels read. */
typedef struct pass_state {
    int64_t slots[LLAMA_NODES_MOST];
    int64_t seeds[LLAMA_NODES_MOST]; /* the same for all: what is drawn then depends on the position alone */
    int32_t tokens[LLAMA_NODES_MOST], positions[LLAMA_NODES_MOST];
    uint32_t mask[LLAMA_NODES_MOST][MASK_WORDS];
    int32_t path[LLAMA_NODES_MOST];
    int32_t length, accepted;
} pass_state;

struct llama_tree_decoder {
    kiln_stream *stream;
    const operations *run;
    llama_options options;
    llama_weights weights;
    struct llama_quantised *quantised;
    llama_forward forward;     /* of all nodes */
    int32_t nodes, candidates; /* of a pass; behind each node */
    int32_t cached;            /* tokens in the cache */
    const kiln_tree *chain;
    void *logits;
    void *workspace, *top_k_workspace;
    size_t workspace_size, top_k_workspace_size;
    int32_t *block_table;
    pass_state *state, *host_state; /* of the device; pinned */
    int32_t *next, *host_next;
    llama_graph *graph;
};

/* ---- A pass ---- */

/* The blocks of the cache lie one behind the other. */
static kiln_mha_paged_params attention(const llama_tree_decoder *d, int32_t layer) {
    const llama_forward *f = &d->forward;
    const llama_config *c = &d->weights.config;
    return (kiln_mha_paged_params){.out = f->attended,
                                   .q = f->query,
                                   .k_cache = llama_layer_cache(f, f->key_cache, layer),
                                   .v_cache = llama_layer_cache(f, f->value_cache, layer),
                                   .block_table = d->block_table,
                                   .seqlens_k = &d->state->length,
                                   .tokens = d->nodes,
                                   .blocks = f->capacity / BLOCK,
                                   .block_size = BLOCK,
                                   .batch = 1,
                                   .max_blocks_per_seq = f->capacity / BLOCK,
                                   .heads = c->heads,
                                   .kv_heads = c->kv_heads,
                                   .head_dim = llama_head_dim(c),
                                   .workspace = d->workspace,
                                   .workspace_size = d->workspace_size,
                                   .tree_mask = d->state->mask[0],
                                   .tree_words = MASK_WORDS};
}

static kiln_status attend(void *decoder, kiln_stream *stream, int32_t layer) {
    const llama_tree_decoder *d = decoder;
    kiln_mha_paged_params params = attention(d, layer);
    return d->run->mha(stream, &params, sizeof params);
}

static kiln_top_k_params likeliest(const llama_tree_decoder *d) {
    return (kiln_top_k_params){.indices = d->next,
                               .x = d->logits,
                               .rows = d->nodes,
                               .cols = d->weights.config.vocabulary_size,
                               .k = d->candidates,
                               .workspace = d->top_k_workspace,
                               .workspace_size = d->top_k_workspace_size};
}

static kiln_status choose(const llama_tree_decoder *d) {
    const kiln_top_k_params several = likeliest(d);
    const kiln_sample_params one = {.y = d->next,
                                    .x = d->logits,
                                    .row_seed = d->state->seeds,
                                    .row_position = d->state->positions,
                                    .rows = d->nodes,
                                    .cols = d->weights.config.vocabulary_size,
                                    .temperature = d->options.temperature};
    return d->candidates > 1 ? d->run->top_k(d->stream, &several, sizeof several)
                             : d->run->sample(d->stream, &one, sizeof one);
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

/* What a row sees of the others: those behind the tree, which have no token, see themselves alone, and no other sees
 * them. */
static void set_mask(uint32_t mask[MASK_WORDS], const kiln_tree *tree, int32_t row) {
    for (int32_t word = 0; word < MASK_WORDS; word++)
        mask[word] = row < tree->nodes && word < tree->mask_words ? tree->mask[row * tree->mask_words + word] : 0;
    mask[row / 32] |= UINT32_C(1) << row % 32;
}

/* A pass has the same number of rows each time, so that a graph of it can be replayed. */
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
        set_mask(s->mask[i], tree, i);
    }
    TRY(upload_state(d));
    TRY(launch(d));
    size_t size = (size_t)d->nodes * (size_t)d->candidates * sizeof *d->next;
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

static kiln_status upload_block_table(llama_tree_decoder *d) {
    size_t count = (size_t)d->forward.capacity / BLOCK, size = count * sizeof *d->block_table;
    void *memory, *host;
    TRY(kiln_memory_alloc(d->stream->device, size, &memory));
    d->block_table = memory;
    TRY(kiln_host_alloc(d->stream->device, size, &host));
    for (size_t i = 0; i < count; i++)
        ((int32_t *)host)[i] = (int32_t)i;
    kiln_status status = kiln_copy(d->stream, memory, host, size, KILN_COPY_TO_DEVICE);
    if (status == KILN_OK) status = kiln_stream_sync(d->stream);
    kiln_host_free(d->stream->device, host);
    return status;
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
    TRY(kiln_memory_alloc(device, nodes * (size_t)d->candidates * sizeof *d->next, &memory));
    d->next = memory;
    TRY(kiln_host_alloc(device, sizeof *d->host_state, &memory));
    d->host_state = memory;
    TRY(kiln_host_alloc(device, nodes * (size_t)d->candidates * sizeof *d->host_next, &memory));
    d->host_next = memory;
    TRY(upload_block_table(d));
    kiln_mha_paged_params params = attention(d, 0);
    TRY(d->run->mha_workspace(d->stream, &params, sizeof params, &d->workspace_size));
    TRY(kiln_memory_alloc(device, d->workspace_size, &d->workspace));
    kiln_top_k_params several = likeliest(d);
    TRY(d->run->top_k_workspace(d->stream, &several, sizeof several, &d->top_k_workspace_size));
    return kiln_memory_alloc(device, d->top_k_workspace_size, &d->top_k_workspace);
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
                                      const llama_options *options, int32_t length, int32_t nodes, int32_t candidates,
                                      void (*progress)(size_t done, size_t all), llama_tree_decoder **out) {
    llama_tree_decoder *d = *out = calloc(1, sizeof *d);
    if (!d) return KILN_ERROR_OUT_OF_MEMORY;
    d->stream = stream;
    d->options = *options;
    d->run = &precisions[options->precision];
    d->nodes = nodes;
    d->candidates = candidates;
    d->forward.capacity = ((int64_t)length + nodes + BLOCK - 1) / BLOCK * BLOCK;
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
    kiln_memory_free(device, d->top_k_workspace);
    kiln_memory_free(device, d->block_table);
    kiln_memory_free(device, d->state);
    kiln_memory_free(device, d->next);
    kiln_host_free(device, d->host_state);
    kiln_host_free(device, d->host_next);
    kiln_tree_destroy(d->chain);
    free(d);
}
