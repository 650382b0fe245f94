#include "paged_llama.h"
#include "docs/examples/llama/forward.h"
#include "docs/examples/llama/try.h"
#include <kiln/ops.h>
#include <stdlib.h>
#include <string.h>

/* The operators of one precision that see a batch. */
typedef struct operations {
    kiln_status (*mha_paged)(kiln_stream *stream, const kiln_mha_paged_params *params, size_t size);
    kiln_status (*workspace)(kiln_stream *stream, const kiln_mha_paged_params *params, size_t size, size_t *out_size);
    kiln_status (*gather)(kiln_stream *stream, const kiln_embedding_params *params, size_t size);
    kiln_status (*sample)(kiln_stream *stream, const kiln_sample_params *params, size_t size);
} operations;

static const operations precisions[] = {
    [LLAMA_F32] = {kiln_mha_paged_f32_sized, kiln_mha_paged_f32_workspace_size_sized, kiln_embedding_f32_sized,
                   kiln_sample_f32_sized},
    [LLAMA_F16] = {kiln_mha_paged_f16_sized, kiln_mha_paged_f16_workspace_size_sized, kiln_embedding_f16_sized,
                   kiln_sample_f16_sized},
    [LLAMA_BF16] = {kiln_mha_paged_bf16_sized, kiln_mha_paged_bf16_workspace_size_sized, kiln_embedding_bf16_sized,
                    kiln_sample_bf16_sized},
};

struct paged_llama {
    kiln_stream *stream;
    paged_llama_options options;
    const operations *run;
    llama_weights weights;
    llama_forward forward;
    paged_batch host, device; /* arrays in host_batch and device_batch */
    void *host_batch, *device_batch;
    void *gathered; /* [max_sequences, size]: the rows that are chosen from */
    void *logits;   /* [max_sequences, vocabulary_size] */
    void *workspace;
    size_t workspace_size;
    void *next, *host_next; /* int32_t [max_sequences] */
};

/* ---- A step ---- */

static kiln_mha_paged_params attention(const paged_llama *m, int32_t layer) {
    const llama_forward *f = &m->forward;
    const llama_config *c = &m->weights.config;
    return (kiln_mha_paged_params){.out = f->attended,
                                   .q = f->query,
                                   .k_cache = llama_layer_cache(f, f->key_cache, layer),
                                   .v_cache = llama_layer_cache(f, f->value_cache, layer),
                                   .block_table = m->device.block_table,
                                   .seqlens_k = m->device.lengths,
                                   .cu_seqlens_q = m->device.first_rows,
                                   .tokens = m->host.rows,
                                   .blocks = m->options.block_count,
                                   .block_size = m->options.block_size,
                                   .batch = m->host.sequences,
                                   .max_blocks_per_seq = m->host.max_blocks,
                                   .heads = c->heads,
                                   .kv_heads = c->kv_heads,
                                   .head_dim = llama_head_dim(c),
                                   .max_seqlen_q = m->host.max_rows_of_sequence,
                                   .causal = 1};
}

/* With what workspace there is: without, keys are not divided. */
static kiln_status attend(void *model, kiln_stream *stream, int32_t layer) {
    const paged_llama *m = model;
    kiln_mha_paged_params params = attention(m, layer);
    size_t size;
    TRY(m->run->workspace(stream, &params, sizeof params, &size));
    if (size && size <= m->workspace_size) {
        params.workspace = m->workspace;
        params.workspace_size = m->workspace_size;
    }
    return m->run->mha_paged(stream, &params, sizeof params);
}

/* Logits of the rows that are chosen from: all, where each sequence has one row and wants a token. */
static kiln_status classify(const paged_llama *m) {
    const llama_forward *f = &m->forward;
    const void *rows = f->normed;
    if (m->host.chosen < m->host.rows) {
        kiln_embedding_params params = {.y = m->gathered,
                                        .table = f->normed,
                                        .ids = m->device.chosen_rows,
                                        .rows = m->host.chosen,
                                        .cols = m->weights.config.size,
                                        .vocabulary = m->host.rows};
        TRY(m->run->gather(m->stream, &params, sizeof params));
        rows = m->gathered;
    }
    return llama_forward_logits(f, m->stream, rows, m->host.chosen, m->logits);
}

static kiln_status choose(const paged_llama *m) {
    kiln_sample_params params = {.y = m->next,
                                 .x = m->logits,
                                 .row_temperature = m->device.temperatures,
                                 .row_top_k = m->device.top_k,
                                 .row_top_p = m->device.top_p,
                                 .row_min_p = m->device.min_p,
                                 .row_seed = m->device.seeds,
                                 .row_position = m->device.draws,
                                 .rows = m->host.chosen,
                                 .cols = m->weights.config.vocabulary_size};
    return m->run->sample(m->stream, &params, sizeof params);
}

static kiln_status upload_batch(const paged_llama *m) {
    size_t head = (size_t)((const char *)m->host.block_table - (const char *)m->host_batch);
    size_t rows = (size_t)m->host.sequences * (size_t)m->host.max_blocks * sizeof *m->host.block_table;
    return kiln_copy(m->stream, m->device_batch, m->host_batch, head + rows, KILN_COPY_TO_DEVICE);
}

kiln_status paged_llama_step(paged_llama *m, int32_t *out_tokens) {
    const size_t size = (size_t)m->host.chosen * sizeof *out_tokens;
    m->forward.rows = m->host.rows;
    TRY(upload_batch(m));
    TRY(llama_forward_layers(&m->forward, m->stream));
    TRY(classify(m));
    TRY(choose(m));
    TRY(kiln_copy(m->stream, m->host_next, m->next, size, KILN_COPY_TO_HOST));
    TRY(kiln_stream_sync(m->stream));
    if (size) memcpy(out_tokens, m->host_next, size);
    return KILN_OK;
}

paged_batch *paged_llama_batch(paged_llama *m) {
    return &m->host;
}

/* ---- Life ---- */

/* Places the arrays of a batch in one piece of memory, or, without memory, says how large it is. */
static size_t place_batch(const paged_llama *m, char *memory, paged_batch *out) {
    const int32_t max_rows = m->options.max_rows, max_sequences = m->options.max_sequences;
    const int32_t max_blocks = (m->weights.config.length + m->options.block_size - 1) / m->options.block_size;
    size_t offset = 0;
    out->max_blocks = max_blocks;
#define PLACE(name, type, count)                               \
    if (memory) out->name = (type *)(void *)(memory + offset); \
    offset += (size_t)(count) * sizeof(type);
    PAGED_BATCH_ARRAYS(PLACE)
#undef PLACE
    return offset;
}

static kiln_status allocate_batch(paged_llama *m) {
    kiln_device *device = m->stream->device;
    const size_t next_size = (size_t)m->options.max_sequences * sizeof(int32_t);
    size_t size = place_batch(m, NULL, &m->host);
    TRY(kiln_host_alloc(device, size, &m->host_batch));
    TRY(kiln_memory_alloc(device, size, &m->device_batch));
    memset(m->host_batch, 0, size);
    place_batch(m, m->host_batch, &m->host);
    place_batch(m, m->device_batch, &m->device);
    TRY(kiln_memory_alloc(device, next_size, &m->next));
    return kiln_host_alloc(device, next_size, &m->host_next);
}

static kiln_status allocate_cache(paged_llama *m) {
    kiln_device *device = m->stream->device;
    const llama_config *c = &m->weights.config;
    m->forward.capacity = (int64_t)m->options.block_count * m->options.block_size;
    size_t size = (size_t)c->layers * (size_t)m->forward.capacity * (size_t)llama_kv_size(c) * m->weights.element;
    TRY(kiln_memory_alloc(device, size, &m->forward.key_cache));
    return kiln_memory_alloc(device, size, &m->forward.value_cache);
}

/* As much as any batch of sequences of one row asks for. */
static kiln_status allocate_workspace(paged_llama *m) {
    for (int32_t batch = 1; batch <= m->options.max_sequences; batch++) {
        size_t size;
        m->host.sequences = m->host.rows = batch;
        m->host.max_rows_of_sequence = 1;
        kiln_mha_paged_params params = attention(m, 0);
        TRY(m->run->workspace(m->stream, &params, sizeof params, &size));
        if (size > m->workspace_size) m->workspace_size = size;
    }
    return kiln_memory_alloc(m->stream->device, m->workspace_size, &m->workspace);
}

/* A step of one sequence of two tokens, of which one is chosen from: every kernel is loaded then. It uses the cache's
 * first block, which is written again before it is read. */
static kiln_status warm_up(paged_llama *m) {
    paged_batch *b = &m->host;
    int32_t token;
    b->sequences = b->chosen = 1;
    b->rows = b->max_rows_of_sequence = m->options.max_rows > 1 && m->weights.config.length > 1 ? 2 : 1;
    for (int32_t i = 0; i < b->rows; i++) {
        b->positions[i] = i;
        b->slots[i] = i;
    }
    b->first_rows[1] = b->lengths[0] = b->rows;
    b->temperatures[0] = 1;
    return paged_llama_step(m, &token);
}

static kiln_status create(paged_llama *m, const llama_checkpoint *checkpoint) {
    kiln_device *device = m->stream->device;
    const size_t sequences = (size_t)m->options.max_sequences;
    TRY(llama_weights_upload(m->stream, checkpoint, m->options.precision, NULL, &m->weights));
    const llama_config *c = &m->weights.config;
    m->forward.weights = &m->weights;
    TRY(llama_forward_allocate(&m->forward, device, m->options.max_rows));
    TRY(allocate_cache(m));
    TRY(allocate_batch(m));
    TRY(kiln_memory_alloc(device, sequences * (size_t)c->size * m->weights.element, &m->gathered));
    TRY(kiln_memory_alloc(device, sequences * (size_t)c->vocabulary_size * m->weights.element, &m->logits));
    m->forward.tokens = m->device.tokens;
    m->forward.positions = m->device.positions;
    m->forward.slots = m->device.slots;
    m->forward.attend = attend;
    m->forward.user = m;
    TRY(allocate_workspace(m));
    return warm_up(m);
}

kiln_status paged_llama_create(kiln_stream *stream, const llama_checkpoint *checkpoint,
                               const paged_llama_options *options, paged_llama **out) {
    paged_llama *m = *out = calloc(1, sizeof *m);
    if (!m) return KILN_ERROR_OUT_OF_MEMORY;
    m->stream = stream;
    m->options = *options;
    m->run = &precisions[options->precision];
    kiln_status status = create(m, checkpoint);
    if (status == KILN_OK) return status;
    paged_llama_destroy(m);
    *out = NULL;
    return status;
}

void paged_llama_destroy(paged_llama *m) {
    if (!m) return;
    kiln_device *device = m->stream->device;
    kiln_stream_sync(m->stream);
    llama_weights_free(device, &m->weights);
    llama_forward_free(&m->forward, device);
    void *const memory[] = {
        m->forward.key_cache, m->forward.value_cache, m->device_batch, m->gathered, m->logits, m->workspace, m->next};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        kiln_memory_free(device, memory[i]);
    kiln_host_free(device, m->host_batch);
    kiln_host_free(device, m->host_next);
    free(m);
}
