/* ggml's FLASH_ATTN_EXT by kiln's mha; calls with ALiBi's slopes or with sinks are left to others. Queries come in f32:
 * keys of f16, bf16 or f32 say in which type it is computed, quantised ones are brought into f16. */
#include "loader/bindings/ggml/operators.h"

enum { PARAM_SCALE, PARAM_SLOPES, PARAM_SOFTCAP };

/* A call: its type, and where in workspace what lies; or that it is used as it is. */
typedef struct attention {
    ggml_kiln_type type;
    size_t q, k, v, mask, out;
    size_t mha, mha_size, size;
} attention;

/* ggml's [head_dim, tokens, heads, batch] as [head_dim, heads, tokens, batch], kiln's order. */
static ggml_kiln_operand by_token(ggml_kiln_operand operand) {
    return ggml_kiln_permuted(operand, 1, 2);
}

static ggml_kiln_operand packed_by_token(const ggml_kiln_backend *backend, size_t at, ggml_kiln_type type,
                                         const struct ggml_tensor *t) {
    int64_t element = type == GGML_KILN_F32 ? 4 : 2;
    ggml_kiln_operand o = {.data = backend->workspace + at,
                           .type = type,
                           .size = {(uint32_t)t->ne[0], (uint32_t)t->ne[2], (uint32_t)t->ne[1], (uint32_t)t->ne[3]},
                           .stride = {element, element * t->ne[0], element * t->ne[0] * t->ne[2],
                                      element * t->ne[0] * t->ne[2] * t->ne[1]}};
    return o;
}

/* Whether mha can read the tensor where it is: heads packed within a token, sequences behind each other. */
static bool is_direct(const struct ggml_tensor *t, ggml_kiln_type type) {
    size_t size = ggml_type_size(t->type), head = (size_t)t->ne[0] * size;
    return ggml_kiln_type_of(t->type) == type && t->nb[0] == size && (t->ne[2] == 1 || t->nb[2] == head) &&
           t->nb[1] % size == 0 && t->nb[1] >= head * (size_t)t->ne[2] &&
           (t->ne[3] == 1 || t->nb[3] == t->nb[1] * (size_t)t->ne[1]);
}

static ggml_kiln_type type_of(const struct ggml_tensor *k) {
    return ggml_kiln_is_written(k->type) ? ggml_kiln_type_of(k->type) : GGML_KILN_F16;
}

/* Whether mha can be given the mask, of [keys, at least the queries, heads or 1, batch or 1]. */
static bool is_mask(const struct ggml_tensor *mask, const struct ggml_tensor *q, const struct ggml_tensor *k) {
    return mask->type == GGML_TYPE_F16 && ggml_is_contiguous(mask) && ggml_kiln_is_operand(mask) &&
           mask->ne[0] >= k->ne[1] && mask->ne[1] >= q->ne[1] && (mask->ne[2] == 1 || mask->ne[2] == q->ne[2]) &&
           (mask->ne[3] == 1 || mask->ne[3] == q->ne[3]);
}

bool ggml_kiln_flash_attn_supports(const struct ggml_tensor *op) {
    const struct ggml_tensor *q = op->src[0], *k = op->src[1], *v = op->src[2];
    float softcap = ggml_kiln_param(op, PARAM_SOFTCAP);
    if (op->src[4] || ggml_kiln_param(op, PARAM_SLOPES) > 0) return false;
    if (op->src[3] && !is_mask(op->src[3], q, k)) return false;
    if (op->type != GGML_TYPE_F32 || !ggml_is_contiguous(op) || !ggml_kiln_is_operand(op)) return false;
    if (!ggml_kiln_is_operand(q) || !ggml_kiln_is_operand(k) || !ggml_kiln_is_operand(v)) return false;
    return q->type == GGML_TYPE_F32 && k->type == v->type && q->ne[0] == v->ne[0] && q->ne[0] <= 256 &&
           k->ne[2] == v->ne[2] && q->ne[2] % k->ne[2] == 0 && q->ne[2] <= 1 << 16 &&
           (softcap == 0 || (softcap >= 1e-6F && softcap <= 1e6F)) && ggml_kiln_param(op, PARAM_SCALE) != 0;
}

static ggml_kiln_operand placed(const ggml_kiln_backend *backend, size_t at, ggml_kiln_type type,
                                const struct ggml_tensor *t) {
    return at == GGML_KILN_IN_PLACE ? by_token(ggml_kiln_operand_of(t)) : packed_by_token(backend, at, type, t);
}

static int64_t token_stride(const ggml_kiln_operand *o) {
    return o->size[2] > 1 ? o->stride[2] / (o->type == GGML_KILN_F32 ? 4 : 2) : 0;
}

static kiln_mha_params params_of(const struct ggml_tensor *op, const ggml_kiln_operand *q, const ggml_kiln_operand *k,
                                 const ggml_kiln_operand *v) {
    return (kiln_mha_params){
        .q = q->data,
        .k = k->data,
        .v = v->data,
        .tokens = (int64_t)q->size[2] * q->size[3],
        .kv_tokens = (int64_t)k->size[2] * k->size[3],
        .batch = q->size[3],
        .heads = q->size[1],
        .kv_heads = k->size[1],
        .head_dim = q->size[0],
        .q_stride = token_stride(q),
        .k_stride = token_stride(k),
        .v_stride = token_stride(v),
        .scale = ggml_kiln_param(op, PARAM_SCALE),
        .softcap = ggml_kiln_param(op, PARAM_SOFTCAP),
    };
}

static kiln_status plan(ggml_kiln_backend *backend, const struct ggml_tensor *op, attention *p,
                        kiln_mha_params *out_params) {
    const struct ggml_tensor *q = op->src[0], *k = op->src[1], *v = op->src[2];
    const struct ggml_tensor *mask = op->src[3];
    ggml_kiln_type type = type_of(k);
    *p = (attention){.type = type, .mask = GGML_KILN_IN_PLACE};
    p->q = ggml_kiln_place(&p->size, q, type, is_direct(q, type));
    p->k = ggml_kiln_place(&p->size, k, type, is_direct(k, type));
    p->v = ggml_kiln_place(&p->size, v, type, is_direct(v, type));
    if (mask) p->mask = ggml_kiln_place(&p->size, mask, type, type == GGML_KILN_F16);
    p->out = ggml_kiln_place(&p->size, op, type, type == GGML_KILN_F32);
    ggml_kiln_operand q_rows = placed(backend, p->q, type, q), k_rows = placed(backend, p->k, type, k);
    ggml_kiln_operand v_rows = placed(backend, p->v, type, v);
    *out_params = params_of(op, &q_rows, &k_rows, &v_rows);
    if (mask) {
        out_params->mask = p->mask == GGML_KILN_IN_PLACE ? mask->data : backend->workspace + p->mask;
        out_params->mask_batch = mask->ne[3];
        out_params->mask_heads = mask->ne[2];
        out_params->mask_rows = mask->ne[1];
        out_params->mask_cols = mask->ne[0];
    }
    p->mha = p->size;
    GGML_KILN_TRY(GGML_KILN_WORKSPACE(mha, type, &backend->stream, out_params, &p->mha_size));
    p->size += p->mha_size;
    return KILN_OK;
}

kiln_status ggml_kiln_flash_attn_prepare(ggml_kiln_backend *backend, const struct ggml_tensor *op,
                                         size_t *out_workspace) {
    attention p;
    kiln_mha_params params;
    *out_workspace = 0;
    GGML_KILN_TRY(plan(backend, op, &p, &params));
    *out_workspace = p.size;
    return KILN_OK;
}

static kiln_status pack(ggml_kiln_backend *backend, size_t at, ggml_kiln_type type, const struct ggml_tensor *t) {
    if (at == GGML_KILN_IN_PLACE) return KILN_OK;
    return ggml_kiln_copy(backend, packed_by_token(backend, at, type, t), by_token(ggml_kiln_operand_of(t)));
}

kiln_status ggml_kiln_flash_attn_run(ggml_kiln_backend *backend, const struct ggml_tensor *op) {
    attention p;
    kiln_mha_params params;
    GGML_KILN_TRY(plan(backend, op, &p, &params));
    GGML_KILN_TRY(pack(backend, p.q, p.type, op->src[0]));
    GGML_KILN_TRY(pack(backend, p.k, p.type, op->src[1]));
    GGML_KILN_TRY(pack(backend, p.v, p.type, op->src[2]));
    if (p.mask != GGML_KILN_IN_PLACE)
        GGML_KILN_TRY(ggml_kiln_copy(backend, ggml_kiln_packed(backend->workspace + p.mask, p.type, op->src[3]),
                                     ggml_kiln_operand_of(op->src[3])));
    params.workspace = p.mha_size ? backend->workspace + p.mha : NULL;
    params.workspace_size = p.mha_size;
    params.out = p.out == GGML_KILN_IN_PLACE ? op->data : backend->workspace + p.out;
    GGML_KILN_TRY(GGML_KILN_CALL(mha, p.type, &backend->stream, &params));
    if (p.out == GGML_KILN_IN_PLACE) return KILN_OK;
    /* ggml's result has kiln's order. */
    return ggml_kiln_copy(backend, ggml_kiln_operand_of(op), ggml_kiln_packed(params.out, p.type, op));
}
