/* ggml's MUL_MAT: dst[m, n] = src1[m, k] src0[n, k]^T in f32, for each pair of matrices, by kiln's gemm.
 *
 * Matrices of f16 and bf16 are multiplied in their type: src1 is rounded to it, and so is the product, as other GPU
 * backends of ggml do; where the graph asks for GGML_PREC_F32, in f32. Weights of Q4_0 and Q4_1 are multiplied as they
 * are, by gemm_w4a16 (w4a16.c), and so are those of Q8_0 with few rows, by mul_vec (mul_vec.c); other quantised
 * matrices are brought into f16, on the CPU into f32. What has to be converted, or lies so that gemm cannot read it, is
 * packed in workspace first. */
#include "loader/bindings/ggml/operators.h"

/* A call: the type that it is multiplied in, and where in workspace what lies; or that it is used as it is. */
typedef struct product {
    ggml_kiln_type type;
    const ggml_kiln_w4a16 *w4a16; /* src0 as gemm_w4a16 takes it; NULL: gemm is called */
    size_t a, b, d;               /* src1, src0, dst */
    size_t gemm, gemm_size, size;
} product;

/* Whether gemm can read the matrices where they are. */
static bool is_direct(const struct ggml_tensor *t, ggml_kiln_type type) {
    size_t size = ggml_type_size(t->type), row = (size_t)t->ne[0] * size;
    if (ggml_kiln_type_of(t->type) != type || t->nb[0] != size) return false;
    for (int i = 1; i < GGML_MAX_DIMS; i++)
        if (t->nb[i] % size || (t->ne[i] > 1 && t->nb[i] < row)) return false;
    return true;
}

static bool is_exact(const struct ggml_tensor *op) {
    return ggml_get_op_params_i32(op, 0) == GGML_PREC_F32;
}

static ggml_kiln_type type_of(const ggml_kiln_backend *backend, const struct ggml_tensor *op) {
    ggml_kiln_type type = ggml_kiln_type_of(op->src[0]->type);
    if (is_exact(op)) return GGML_KILN_F32;
    if (type <= GGML_KILN_BF16) return type;
    return ggml_kiln_on_cpu(backend->device) ? GGML_KILN_F32 : GGML_KILN_F16;
}

bool ggml_kiln_mul_mat_supports(const struct ggml_tensor *op) {
    const struct ggml_tensor *b = op->src[0], *a = op->src[1];
    return op->type == GGML_TYPE_F32 && ggml_is_contiguous(op) && ggml_kiln_is_operand(op) && ggml_kiln_is_operand(a) &&
           ggml_kiln_is_operand(b) && (a->type == GGML_TYPE_F32 || a->type == b->type) &&
           ggml_kiln_is_written(a->type) && b->ne[0] > 0;
}

/* ---- Calls of gemm and gemm_w4a16 -------------------------------------------------------------------------------- */

static int64_t elements(int64_t bytes, ggml_kiln_type type) {
    return bytes / (type == GGML_KILN_F32 ? 4 : 2);
}

/* The strides and sizes of the calls. Each does all matrices of src0 in one slice of its fourth dimension, with one of
 * those of src1 that share it; if there is a single one, all of src1 that follow each other are one matrix. */
static kiln_gemm_params shape(const struct ggml_tensor *op, ggml_kiln_type type, const ggml_kiln_operand *a,
                              const ggml_kiln_operand *b, const ggml_kiln_operand *d, int64_t *out_shared) {
    int64_t batch = b->size[2], shared = a->size[2] / b->size[2], m = a->size[1];
    if (batch == 1 && a->stride[2] == a->stride[1] * a->size[1]) {
        m *= shared;
        shared = 1;
    }
    *out_shared = shared;
    return (kiln_gemm_params){
        .batch = batch,
        .m = m,
        .n = op->ne[0],
        .k = op->src[0]->ne[0],
        .d_stride = elements(d->stride[1], type),
        .a_stride = m > 1 ? elements(a->stride[1], type) : 0,
        .b_stride = op->ne[0] > 1 ? elements(b->stride[1], type) : 0,
        .d_batch_stride = batch > 1 ? elements(d->stride[2] * shared, type) : 0,
        .a_batch_stride = batch > 1 ? elements(a->stride[2] * shared, type) : 0,
        .b_batch_stride = batch > 1 ? elements(b->stride[2], type) : 0,
    };
}

static kiln_gemm_w4a16_params w4a16_shape(const ggml_kiln_w4a16 *w, const kiln_gemm_params *gemm) {
    return (kiln_gemm_w4a16_params){
        .weights = (const uint8_t *)w->memory,
        .scales = w->memory + w->scales,
        .zeros = w->blocks_type == GGML_TYPE_Q4_1 ? w->memory + w->zeros : NULL,
        .m = gemm->m,
        .n = gemm->n,
        .k = gemm->k,
        .group = ggml_blck_size(w->blocks_type),
        .d_stride = gemm->d_stride,
        .a_stride = gemm->a_stride,
        .weight_layout = (int32_t)w->layout,
    };
}

static kiln_status workspace_size(ggml_kiln_backend *backend, const product *p, const kiln_gemm_params *gemm,
                                  size_t *out_size) {
    if (!p->w4a16) return GGML_KILN_WORKSPACE(gemm, p->type, &backend->stream, gemm, out_size);
    const kiln_gemm_w4a16_params params = w4a16_shape(p->w4a16, gemm);
    return GGML_KILN_WORKSPACE(gemm_w4a16, p->type, &backend->stream, &params, out_size);
}

static kiln_status call(ggml_kiln_backend *backend, const product *p, const kiln_gemm_params *gemm) {
    if (!p->w4a16) return GGML_KILN_CALL(gemm, p->type, &backend->stream, gemm);
    kiln_gemm_w4a16_params params = w4a16_shape(p->w4a16, gemm);
    params.a = gemm->a;
    params.d = gemm->d;
    params.workspace = gemm->workspace;
    params.workspace_size = gemm->workspace_size;
    return GGML_KILN_CALL(gemm_w4a16, p->type, &backend->stream, &params);
}

static char *matrix_at(const ggml_kiln_operand *o, int64_t i2, int64_t i3) {
    return (char *)o->data + i2 * o->stride[2] + i3 * o->stride[3];
}

static kiln_status multiply(ggml_kiln_backend *backend, const struct ggml_tensor *op, const product *p,
                            const ggml_kiln_operand *a, const ggml_kiln_operand *b, const ggml_kiln_operand *d) {
    int64_t shared;
    kiln_gemm_params params = shape(op, p->type, a, b, d, &shared);
    params.workspace = p->gemm_size ? backend->workspace + p->gemm : NULL;
    params.workspace_size = p->gemm_size;
    const int64_t slices = a->size[3] / b->size[3];
    for (int64_t i3 = 0; i3 < a->size[3]; i3++)
        for (int64_t i2 = 0; i2 < shared; i2++) {
            params.a = matrix_at(a, i2, i3);
            params.b = matrix_at(b, 0, i3 / slices);
            params.d = matrix_at(d, i2, i3);
            GGML_KILN_TRY(call(backend, p, &params));
        }
    return KILN_OK;
}

/* ---- Workspace --------------------------------------------------------------------------------------------------- */

static ggml_kiln_operand placed(const ggml_kiln_backend *backend, size_t at, const struct ggml_tensor *t,
                                ggml_kiln_type type) {
    return at == GGML_KILN_IN_PLACE ? ggml_kiln_operand_of(t) : ggml_kiln_packed(backend->workspace + at, type, t);
}

static kiln_status plan(ggml_kiln_backend *backend, const struct ggml_tensor *op, product *p) {
    int64_t shared;
    *p = (product){.type = type_of(backend, op)};
    if (!is_exact(op)) p->w4a16 = ggml_kiln_w4a16_find(backend, op->src[0]);
    if (p->w4a16) p->type = p->w4a16->type;
    p->a = ggml_kiln_place(&p->size, op->src[1], p->type,
                           is_direct(op->src[1], p->type) && (!p->w4a16 || p->type == GGML_KILN_F32));
    p->b =
        p->w4a16 ? GGML_KILN_IN_PLACE : ggml_kiln_place(&p->size, op->src[0], p->type, is_direct(op->src[0], p->type));
    p->d = ggml_kiln_place(&p->size, op, p->type, p->type == GGML_KILN_F32);
    ggml_kiln_operand a = placed(backend, p->a, op->src[1], p->type), b = placed(backend, p->b, op->src[0], p->type);
    ggml_kiln_operand d = placed(backend, p->d, op, p->type);
    kiln_gemm_params params = shape(op, p->type, &a, &b, &d, &shared);
    p->gemm = p->size;
    GGML_KILN_TRY(workspace_size(backend, p, &params, &p->gemm_size));
    p->size += p->gemm_size;
    return KILN_OK;
}

kiln_status ggml_kiln_mul_mat_prepare(ggml_kiln_backend *backend, const struct ggml_tensor *op, size_t *out_workspace) {
    product p;
    *out_workspace = 0;
    if (ggml_kiln_mul_vec_does(op)) {
        *out_workspace = ggml_kiln_mul_vec_workspace(op);
        return KILN_OK;
    }
    if (!is_exact(op)) GGML_KILN_TRY(ggml_kiln_w4a16_prepare(backend, op->src[0]));
    GGML_KILN_TRY(plan(backend, op, &p));
    *out_workspace = p.size;
    return KILN_OK;
}

kiln_status ggml_kiln_mul_mat_run(ggml_kiln_backend *backend, const struct ggml_tensor *op) {
    product p;
    if (ggml_kiln_mul_vec_does(op)) return ggml_kiln_mul_vec_run(backend, op);
    GGML_KILN_TRY(plan(backend, op, &p));
    ggml_kiln_operand a = placed(backend, p.a, op->src[1], p.type), b = placed(backend, p.b, op->src[0], p.type);
    ggml_kiln_operand d = placed(backend, p.d, op, p.type);
    if (p.a != GGML_KILN_IN_PLACE) GGML_KILN_TRY(ggml_kiln_copy(backend, a, ggml_kiln_operand_of(op->src[1])));
    if (p.b != GGML_KILN_IN_PLACE) GGML_KILN_TRY(ggml_kiln_copy(backend, b, ggml_kiln_operand_of(op->src[0])));
    GGML_KILN_TRY(multiply(backend, op, &p, &a, &b, &d));
    return p.d == GGML_KILN_IN_PLACE ? KILN_OK : ggml_kiln_copy(backend, ggml_kiln_operand_of(op), d);
}
