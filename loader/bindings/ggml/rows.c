/* ggml's operators on rows: softmax, activations and the greatest element, by kiln's. */
#include "loader/bindings/ggml/operators.h"

/* ---- Softmax ----------------------------------------------------------------------------------------------------- */

/* Without sinks, and without ALiBi's slopes, which differ from head to head. */
bool ggml_kiln_soft_max_supports(const struct ggml_tensor *op) {
    const struct ggml_tensor *mask = op->src[1];
    if (op->type != GGML_TYPE_F32 || !ggml_kiln_is_row_operator(op) || op->src[2] || ggml_kiln_param(op, 1) > 0)
        return false;
    return !mask || (ggml_kiln_is_written(mask->type) && ggml_kiln_is_operand(mask));
}

static kiln_softmax_params soft_max_params(const struct ggml_tensor *op) {
    int64_t stride = ggml_kiln_row_stride(op);
    return (kiln_softmax_params){.y = op->data,
                                 .x = op->data,
                                 .rows = ggml_nrows(op),
                                 .cols = op->ne[0],
                                 .y_stride = stride,
                                 .x_stride = stride};
}

kiln_status ggml_kiln_soft_max_prepare(ggml_kiln_backend *backend, const struct ggml_tensor *op,
                                       size_t *out_workspace) {
    kiln_softmax_params params = soft_max_params(op);
    return kiln_softmax_f32_workspace_size(&backend->stream, &params, out_workspace);
}

kiln_status ggml_kiln_soft_max_run(ggml_kiln_backend *backend, const struct ggml_tensor *op) {
    kiln_softmax_params params = soft_max_params(op);
    params.workspace = backend->workspace;
    params.workspace_size = backend->workspace_size;
    float scale = ggml_kiln_param(op, 0);
    if (op->src[1] || scale != 1) {
        ggml_kiln_map_args args = {
            .y = ggml_kiln_operand_of(op), .a = ggml_kiln_operand_of(op->src[0]), .scale = scale, .offset = -0.0F};
        if (op->src[1]) args.c = ggml_kiln_operand_of(op->src[1]);
        GGML_KILN_TRY(ggml_kiln_map(backend, &args));
    } else {
        ggml_kiln_rows x;
        GGML_KILN_TRY(ggml_kiln_source_rows(backend, op, &x));
        params.x = x.data;
        params.x_stride = x.stride;
    }
    return kiln_softmax_f32(&backend->stream, &params);
}

/* ---- Activations ------------------------------------------------------------------------------------------------- */

/* y = gelu(x), by rows. */
static kiln_status gelu(ggml_kiln_backend *backend, const struct ggml_tensor *op, ggml_kiln_rows x, kiln_gelu approx) {
    kiln_add_gelu_params params = {.y = op->data,
                                   .x = x.data,
                                   .rows = ggml_nrows(op),
                                   .cols = op->ne[0],
                                   .y_stride = ggml_kiln_row_stride(op),
                                   .x_stride = x.stride,
                                   .approx = approx};
    return GGML_KILN_CALL(add_gelu, ggml_kiln_type_of(op->type), &backend->stream, &params);
}

static bool unary_gelu(enum ggml_unary_op op, kiln_gelu *out_approx) {
    switch (op) {
    case GGML_UNARY_OP_GELU:
        *out_approx = KILN_GELU_TANH;
        return true;
    case GGML_UNARY_OP_GELU_ERF:
        *out_approx = KILN_GELU_ERF;
        return true;
    case GGML_UNARY_OP_GELU_QUICK:
    case GGML_UNARY_OP_SILU:
        *out_approx = KILN_GELU_QUICK;
        return true;
    default:
        return false;
    }
}

bool ggml_kiln_unary_supports(const struct ggml_tensor *op) {
    kiln_gelu approx;
    return unary_gelu(ggml_get_unary_op(op), &approx) && ggml_kiln_is_row_operator(op);
}

/* silu(x) is x sigmoid(x), and the quick gelu t sigmoid(1.702 t): with t = x / 1.702 that is silu(x) / 1.702. Between
 * the steps it is in f32: in the result itself, or in workspace. */
static kiln_status silu(ggml_kiln_backend *backend, const struct ggml_tensor *op) {
    const float factor = 1.702F;
    ggml_kiln_operand y = ggml_kiln_operand_of(op), t = y;
    if (op->type != GGML_TYPE_F32) t = ggml_kiln_packed(backend->workspace, GGML_KILN_F32, op);
    int64_t stride = op->type == GGML_TYPE_F32 ? ggml_kiln_row_stride(op) : 0;
    kiln_add_gelu_params params = {.y = t.data,
                                   .x = t.data,
                                   .rows = ggml_nrows(op),
                                   .cols = op->ne[0],
                                   .y_stride = stride,
                                   .x_stride = stride,
                                   .approx = KILN_GELU_QUICK};
    ggml_kiln_map_args before = {.y = t, .a = ggml_kiln_operand_of(op->src[0]), .scale = 1 / factor, .offset = -0.0F};
    ggml_kiln_map_args behind = {.y = y, .a = t, .scale = factor, .offset = -0.0F};
    GGML_KILN_TRY(ggml_kiln_map(backend, &before));
    GGML_KILN_TRY(kiln_add_gelu_f32(&backend->stream, &params));
    return ggml_kiln_map(backend, &behind);
}

kiln_status ggml_kiln_unary_prepare(ggml_kiln_backend *backend, const struct ggml_tensor *op, size_t *out_workspace) {
    GGML_UNUSED(backend);
    bool in_workspace = ggml_get_unary_op(op) == GGML_UNARY_OP_SILU && op->type != GGML_TYPE_F32;
    *out_workspace = in_workspace ? (size_t)ggml_nelements(op) * sizeof(float) : 0;
    return KILN_OK;
}

kiln_status ggml_kiln_unary_run(ggml_kiln_backend *backend, const struct ggml_tensor *op) {
    kiln_gelu approx = KILN_GELU_ERF;
    ggml_kiln_rows x;
    if (ggml_get_unary_op(op) == GGML_UNARY_OP_SILU) return silu(backend, op);
    unary_gelu(ggml_get_unary_op(op), &approx);
    GGML_KILN_TRY(ggml_kiln_source_rows(backend, op, &x));
    return gelu(backend, op, x, approx);
}

/* The gate and what it is multiplied with are two tensors, or the halves of one, which may be swapped. */
static void gate_and_up(const struct ggml_tensor *op, char **out_gate, char **out_up) {
    char *first = op->src[0]->data;
    char *second = op->src[1] ? op->src[1]->data : first + (size_t)op->ne[0] * op->nb[0];
    bool swapped = !op->src[1] && ggml_get_op_params_i32(op, 1);
    *out_gate = swapped ? second : first;
    *out_up = swapped ? first : second;
}

/* By silu_mul, which has two of them. */
static kiln_status gated(ggml_kiln_backend *backend, const struct ggml_tensor *op, kiln_glu activation) {
    char *gate, *up;
    gate_and_up(op, &gate, &up);
    kiln_silu_mul_params params = {
        .y = op->data,
        .gate = gate,
        .up = up,
        .rows = ggml_nrows(op),
        .cols = op->ne[0],
        .y_stride = ggml_kiln_row_stride(op),
        .gate_stride = ggml_kiln_row_stride(op->src[0]),
        .up_stride = ggml_kiln_row_stride(op->src[op->src[1] ? 1 : 0]),
        .activation = activation,
    };
    return GGML_KILN_CALL(silu_mul, ggml_kiln_type_of(op->type), &backend->stream, &params);
}

/* In two steps: y = gelu(gate), y = y * up. */
static kiln_status gated_gelu(ggml_kiln_backend *backend, const struct ggml_tensor *op, kiln_gelu approx) {
    char *gate, *up;
    gate_and_up(op, &gate, &up);
    GGML_KILN_TRY(
        gelu(backend, op, (ggml_kiln_rows){.data = gate, .stride = ggml_kiln_row_stride(op->src[0])}, approx));
    ggml_kiln_operand y = ggml_kiln_operand_of(op), factor = ggml_kiln_operand_of(op->src[op->src[1] ? 1 : 0]);
    factor.data = up;
    factor.size[0] = y.size[0];
    return ggml_kiln_map(backend, &(ggml_kiln_map_args){.y = y, .a = y, .b = factor, .offset = -0.0F});
}

bool ggml_kiln_glu_supports(const struct ggml_tensor *op) {
    switch (ggml_get_glu_op(op)) {
    case GGML_GLU_OP_SWIGLU:
    case GGML_GLU_OP_GEGLU:
    case GGML_GLU_OP_GEGLU_ERF:
    case GGML_GLU_OP_GEGLU_QUICK:
        break;
    default:
        return false;
    }
    return ggml_kiln_is_row_operator(op) && ggml_kiln_is_matrix(op->src[0]) &&
           (!op->src[1] || (op->src[1]->type == op->type && ggml_kiln_is_matrix(op->src[1])));
}

kiln_status ggml_kiln_glu_run(ggml_kiln_backend *backend, const struct ggml_tensor *op) {
    switch (ggml_get_glu_op(op)) {
    case GGML_GLU_OP_GEGLU:
        return gated(backend, op, KILN_GLU_GELU_TANH);
    case GGML_GLU_OP_GEGLU_ERF:
        return gated_gelu(backend, op, KILN_GELU_ERF);
    case GGML_GLU_OP_GEGLU_QUICK:
        return gated_gelu(backend, op, KILN_GELU_QUICK);
    default:
        return gated(backend, op, KILN_GLU_SILU);
    }
}

/* ---- The greatest element ---------------------------------------------------------------------------------------- */

bool ggml_kiln_argmax_supports(const struct ggml_tensor *op) {
    return op->src[0]->type == GGML_TYPE_F32 && ggml_kiln_is_matrix(op->src[0]) && ggml_kiln_is_operand(op->src[0]) &&
           op->type == GGML_TYPE_I32 && ggml_is_contiguous(op);
}

static kiln_argmax_params argmax_params(const struct ggml_tensor *op) {
    return (kiln_argmax_params){.y = op->data,
                                .x = op->src[0]->data,
                                .rows = ggml_nrows(op->src[0]),
                                .cols = op->src[0]->ne[0],
                                .x_stride = ggml_kiln_row_stride(op->src[0])};
}

kiln_status ggml_kiln_argmax_prepare(ggml_kiln_backend *backend, const struct ggml_tensor *op, size_t *out_workspace) {
    kiln_argmax_params params = argmax_params(op);
    return kiln_argmax_f32_workspace_size(&backend->stream, &params, out_workspace);
}

kiln_status ggml_kiln_argmax_run(ggml_kiln_backend *backend, const struct ggml_tensor *op) {
    kiln_argmax_params params = argmax_params(op);
    params.workspace = backend->workspace;
    params.workspace_size = backend->workspace_size;
    return kiln_argmax_f32(&backend->stream, &params);
}
