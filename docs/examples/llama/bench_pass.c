#include "bench_pass.h"
#include "forward.h"
#include "try.h"

/* Activations that a product reads. */
static bench_activations activations(const bench_batch *b, const void *x, int64_t rows) {
    return (bench_activations){
        .x = x, .codes = b->codes, .rows = rows, .workspace = b->workspace, .workspace_size = b->workspace_size};
}

/* Whether products normalise what they read, gate and add their results themselves: of matrices as they are or with 4
 * bits, and of as few rows as gemm and gemm_w4a16 normalise and gate in one launch. */
static bool is_fused(const bench_pass *p) {
    enum { FUSED_ROWS = 16 };
    return !p->batch->model->format.operators && p->rows <= FUSED_ROWS;
}

/* The product of rows of the residual stream, normalised, from one on. */
static kiln_status multiply_normed(const bench_pass *p, void *d, const bench_matrix *matrix, int64_t layer,
                                   int64_t first, int64_t rows) {
    const bench_batch *b = p->batch;
    const bool fused = is_fused(p);
    const char *stream = fused ? b->residual : b->normed;
    bench_activations a = activations(b, stream + bench_bytes(b->model, first, b->model->shape->size), rows);
    if (fused) a.norm_weight = b->model->ones.values;
    a.is_gated = fused && matrix == &b->model->gate_up;
    return bench_matrix_multiply(matrix, layer, &a, d);
}

/* The product that is a layer's branch, or that is added to the residual stream. */
static kiln_status multiply_branch(const bench_pass *p, const void *x, const bench_matrix *matrix, int64_t layer) {
    const bench_batch *b = p->batch;
    bench_activations a = activations(b, x, p->rows);
    if (is_fused(p)) a.added = b->residual;
    return bench_matrix_multiply(matrix, layer, &a, is_fused(p) ? b->residual : b->branch);
}

/* Of a prompt's rows to one another. */
static kiln_mha_params prompt_attention(const bench_pass *p) {
    const bench_batch *b = p->batch;
    const bench_model *m = b->model;
    const bench_shape *s = m->shape;
    const int64_t stride = bench_heads_size(s);
    const char *heads = b->heads;
    return (kiln_mha_params){.out = b->attended,
                             .q = heads,
                             .k = heads + bench_bytes(m, 1, bench_query_size(s)),
                             .v = heads + bench_bytes(m, 1, bench_query_size(s) + bench_key_size(s)),
                             .tokens = p->rows,
                             .kv_tokens = p->rows,
                             .batch = 1,
                             .heads = s->heads,
                             .kv_heads = s->kv_heads,
                             .head_dim = s->head_dim,
                             .q_stride = stride,
                             .k_stride = stride,
                             .v_stride = stride,
                             .workspace = b->workspace,
                             .workspace_size = b->workspace_size,
                             .causal = 1};
}

/* Of a row of each sequence to its cache. */
static kiln_mha_params cache_attention(const bench_pass *p, int64_t layer) {
    const bench_batch *b = p->batch;
    kiln_mha_params params = prompt_attention(p);
    params.k = bench_layer_cache(b, b->key_cache, layer);
    params.v = bench_layer_cache(b, b->value_cache, layer);
    params.seqlens_k = p->lengths;
    params.kv_tokens = b->batch * b->room;
    params.batch = b->batch;
    params.k_stride = params.v_stride = 0;
    return params;
}

/* The same to a cache in blocks. */
static kiln_mha_paged_params paged_attention(const bench_pass *p, int64_t layer) {
    const bench_batch *b = p->batch;
    const bench_shape *s = b->model->shape;
    return (kiln_mha_paged_params){.out = b->attended,
                                   .q = b->heads,
                                   .k_cache = bench_layer_cache(b, b->key_cache, layer),
                                   .v_cache = bench_layer_cache(b, b->value_cache, layer),
                                   .block_table = b->block_table,
                                   .seqlens_k = p->lengths,
                                   .tokens = p->rows,
                                   .blocks = b->batch * b->room / BENCH_BLOCK,
                                   .block_size = BENCH_BLOCK,
                                   .batch = b->batch,
                                   .max_blocks_per_seq = b->room / BENCH_BLOCK,
                                   .heads = s->heads,
                                   .kv_heads = s->kv_heads,
                                   .head_dim = s->head_dim,
                                   .q_stride = bench_heads_size(s),
                                   .workspace = b->workspace,
                                   .workspace_size = b->workspace_size,
                                   .causal = 1,
                                   .cache_type = b->cache_type};
}

static bool is_paged(const bench_pass *p) {
    return p->lengths && p->batch->block_table;
}

static kiln_status attention(const bench_pass *p, int64_t layer) {
    const bench_format *f = &p->batch->model->format;
    if (is_paged(p)) {
        const kiln_mha_paged_params params = paged_attention(p, layer);
        return f->run->mha_paged(f->stream, &params, sizeof params);
    }
    const kiln_mha_params params = p->lengths ? cache_attention(p, layer) : prompt_attention(p);
    return f->run->mha(f->stream, &params, sizeof params);
}

/* Of a prompt, whose rows attend to its rotated keys where they are. */
static kiln_status rotate_then_store(const bench_pass *p, int64_t layer) {
    const bench_batch *b = p->batch;
    const bench_model *m = b->model;
    const bench_format *f = &m->format;
    const bench_shape *s = m->shape;
    const int64_t stride = bench_heads_size(s), query = bench_query_size(s), key = bench_key_size(s);
    char *heads = b->heads;
    const kiln_rope_params rope = {.y = heads,
                                   .x = heads,
                                   .positions = p->positions,
                                   .frequencies = m->frequencies,
                                   .tokens = p->rows,
                                   .heads = s->heads + s->kv_heads,
                                   .pairs = s->head_dim / 2,
                                   .y_stride = stride,
                                   .x_stride = stride};
    TRY(f->run->rope(f->stream, &rope, sizeof rope));
    const kiln_kv_store_params store = {.key_cache = bench_layer_cache(b, b->key_cache, layer),
                                        .value_cache = bench_layer_cache(b, b->value_cache, layer),
                                        .key = heads + bench_bytes(m, 1, query),
                                        .value = heads + bench_bytes(m, 1, query + key),
                                        .slot_mapping = p->slots,
                                        .tokens = p->rows,
                                        .cols = key,
                                        .capacity = b->batch * b->room,
                                        .key_stride = stride,
                                        .value_stride = stride,
                                        .index_type = KILN_INDEX_I64,
                                        .cache_type = b->cache_type};
    return f->run->kv_store(f->stream, &store, sizeof store);
}

/* Of a step, whose rows attend to the cache. */
static kiln_status rotate_and_store(const bench_pass *p, int64_t layer) {
    const bench_batch *b = p->batch;
    const bench_model *m = b->model;
    const bench_format *f = &m->format;
    const bench_shape *s = m->shape;
    const int64_t stride = bench_heads_size(s), query = bench_query_size(s), key = bench_key_size(s);
    char *heads = b->heads;
    const kiln_rope_kv_store_params params = {.query_out = heads,
                                              .key_cache = bench_layer_cache(b, b->key_cache, layer),
                                              .value_cache = bench_layer_cache(b, b->value_cache, layer),
                                              .query = heads,
                                              .key = heads + bench_bytes(m, 1, query),
                                              .value = heads + bench_bytes(m, 1, query + key),
                                              .slot_mapping = p->slots,
                                              .positions = p->positions,
                                              .frequencies = m->frequencies,
                                              .tokens = p->rows,
                                              .heads = s->heads,
                                              .kv_heads = s->kv_heads,
                                              .head_dim = s->head_dim,
                                              .pairs = s->head_dim / 2,
                                              .capacity = b->batch * b->room,
                                              .query_out_stride = stride,
                                              .query_stride = stride,
                                              .key_stride = stride,
                                              .value_stride = stride,
                                              .slot_type = KILN_INDEX_I64,
                                              .cache_type = b->cache_type};
    return f->run->rope_kv_store(f->stream, &params, sizeof params);
}

static kiln_status attend(const bench_pass *p, int64_t layer) {
    const bench_batch *b = p->batch;
    const bench_model *m = b->model;
    const bench_format *f = &m->format;
    const int64_t query = bench_query_size(m->shape);
    TRY(multiply_normed(p, b->heads, &m->qkv, layer, 0, p->rows));
    TRY(p->lengths ? rotate_and_store(p, layer) : rotate_then_store(p, layer));
    TRY(attention(p, layer));
    if (f->operators) TRY(f->operators->quantise(f->stream, f->precision, b->codes, b->attended, p->rows, query));
    return multiply_branch(p, b->attended, &m->out, layer);
}

static kiln_status activate(const bench_pass *p) {
    const bench_batch *b = p->batch;
    const bench_format *f = &b->model->format;
    if (f->operators) {
        const llama_codes_gate gate = {
            .to = b->codes, .gate = b->gates, .rows = p->rows, .cols = b->model->shape->hidden};
        return f->operators->gate(f->stream, f->precision, &gate);
    }
    const kiln_silu_mul_params params = {
        .y = b->hidden, .gate = b->gates, .rows = p->rows, .cols = b->model->shape->hidden};
    return f->run->silu_mul(f->stream, &params, sizeof params);
}

static kiln_status feed_forward(const bench_pass *p, int64_t layer) {
    const bench_batch *b = p->batch;
    TRY(multiply_normed(p, is_fused(p) ? b->hidden : b->gates, &b->model->gate_up, layer, 0, p->rows));
    if (!is_fused(p)) TRY(activate(p));
    return multiply_branch(p, b->hidden, &b->model->down, layer);
}

/* Of the residual stream as it is, for products that are not quantised. */
static kiln_status add_and_norm(const bench_pass *p) {
    const bench_batch *b = p->batch;
    const bench_format *f = &b->model->format;
    const kiln_add_rmsnorm_params params = {.y = b->normed,
                                            .sum = b->residual,
                                            .x = b->branch,
                                            .residual = b->residual,
                                            .weight = b->model->ones.values,
                                            .rows = p->rows,
                                            .cols = b->model->shape->size,
                                            .eps = LLAMA_EPSILON};
    return f->run->add_rmsnorm(f->stream, &params, sizeof params);
}

/* Norms the residual stream for a layer, after adding the branch to it if `add` says so, unless products do that. */
static kiln_status norm(const bench_pass *p, bool add) {
    const bench_batch *b = p->batch;
    const bench_format *f = &b->model->format;
    const int32_t size = b->model->shape->size;
    if (is_fused(p)) return KILN_OK;
    if (f->operators) {
        const llama_codes_norm params = {.to = b->codes,
                                         .sum = add ? b->residual : NULL,
                                         .x = add ? b->branch : b->residual,
                                         .residual = add ? b->residual : NULL,
                                         .weight = b->model->ones.values,
                                         .rows = p->rows,
                                         .cols = size};
        return f->operators->norm(f->stream, f->precision, &params);
    }
    if (!add) {
        const kiln_rmsnorm_params params = {.y = b->normed,
                                            .x = b->residual,
                                            .weight = b->model->ones.values,
                                            .rows = p->rows,
                                            .cols = size,
                                            .eps = LLAMA_EPSILON};
        return f->run->rmsnorm(f->stream, &params, sizeof params);
    }
    return add_and_norm(p);
}

kiln_status bench_record_layers(const bench_pass *p) {
    const bench_batch *b = p->batch;
    const bench_model *m = b->model;
    const bench_shape *s = m->shape;
    const kiln_embedding_params embedding = {.y = b->residual,
                                             .table = m->embedding.values,
                                             .ids = p->tokens,
                                             .rows = p->rows,
                                             .cols = s->size,
                                             .vocabulary = s->vocabulary};
    TRY(m->format.run->embedding(m->format.stream, &embedding, sizeof embedding));
    TRY(norm(p, false));
    for (int32_t layer = 0; layer < s->layers; layer++) {
        TRY(attend(p, layer));
        TRY(norm(p, true));
        TRY(feed_forward(p, layer));
        /* the classifier is not quantised */
        TRY(layer + 1 < s->layers || is_fused(p) ? norm(p, true) : add_and_norm(p));
    }
    return KILN_OK;
}

kiln_status bench_record_choice(const bench_pass *p, int64_t first, int64_t rows, int32_t *tokens) {
    const bench_batch *b = p->batch;
    const bench_model *m = b->model;
    const bench_shape *s = m->shape;
    TRY(multiply_normed(p, b->logits, &m->classifier, 0, first, rows));
    const kiln_argmax_params params = {.y = tokens,
                                       .x = b->logits,
                                       .rows = rows,
                                       .cols = s->vocabulary,
                                       .workspace = b->workspace,
                                       .workspace_size = b->workspace_size};
    return m->format.run->argmax(m->format.stream, &params, sizeof params);
}

/* ---- Workspace ---- */

static void keep_larger(size_t *most, size_t size) {
    if (size > *most) *most = size;
}

static kiln_status attention_workspace(const bench_pass *p, size_t *out) {
    const bench_format *f = &p->batch->model->format;
    if (is_paged(p)) {
        const kiln_mha_paged_params params = paged_attention(p, 0);
        return f->run->mha_paged_workspace(f->stream, &params, sizeof params, out);
    }
    const kiln_mha_params params = p->lengths ? cache_attention(p, 0) : prompt_attention(p);
    return f->run->mha_workspace(f->stream, &params, sizeof params, out);
}

kiln_status bench_pass_workspace(const bench_pass *p, size_t *most) {
    const bench_batch *b = p->batch;
    const bench_model *m = b->model;
    const bench_format *f = &m->format;
    const bench_matrix *const matrices[] = {&m->qkv, &m->out, &m->gate_up, &m->down, &m->classifier};
    bench_activations a = activations(b, b->normed, p->rows);
    const kiln_argmax_params argmax = {.y = b->tokens, .x = b->logits, .rows = b->batch, .cols = m->shape->vocabulary};
    size_t size;
    if (is_fused(p)) a.norm_weight = m->ones.values; /* where it takes workspace */
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++) {
        a.is_gated = is_fused(p) && matrices[i] == &m->gate_up;
        TRY(bench_matrix_workspace(matrices[i], &a, &size));
        keep_larger(most, size);
    }
    TRY(attention_workspace(p, &size));
    keep_larger(most, size);
    TRY(f->run->argmax_workspace(f->stream, &argmax, sizeof argmax, &size));
    keep_larger(most, size);
    return KILN_OK;
}
