/* ggml's operators that go element by element, all by map: sums, products, scaling, copies and rows by number. */
#include "loader/bindings/ggml/operators.h"

/* y = a * b + c of tensors, of which b and c may be NULL: the scale and -0, which changes no sum. */
static kiln_status map_tensors(ggml_kiln_backend *backend, const struct ggml_tensor *y, const struct ggml_tensor *a,
                               const struct ggml_tensor *b, const struct ggml_tensor *c, float scale) {
    ggml_kiln_map_args args = {
        .y = ggml_kiln_operand_of(y), .a = ggml_kiln_operand_of(a), .scale = scale, .offset = -0.0F};
    if (b) args.b = ggml_kiln_operand_of(b);
    if (c) args.c = ggml_kiln_operand_of(c);
    return ggml_kiln_map(backend, &args);
}

/* A result in f32 or 16 bits, of one or two such operands. */
static bool is_float_map(const struct ggml_tensor *op) {
    if (!ggml_kiln_is_written(op->type) || !ggml_kiln_is_operand(op)) return false;
    for (int i = 0; i < 2; i++)
        if (op->src[i] && (!ggml_kiln_is_written(op->src[i]->type) || !ggml_kiln_is_operand(op->src[i]))) return false;
    return true;
}

/* ---- Sums and products ------------------------------------------------------------------------------------------- */

static bool binary_supports(const struct ggml_tensor *op) {
    return is_float_map(op) && ggml_can_repeat(op->src[1], op->src[0]);
}

bool ggml_kiln_add_supports(const struct ggml_tensor *op) {
    return binary_supports(op);
}
kiln_status ggml_kiln_add_run(ggml_kiln_backend *backend, const struct ggml_tensor *op) {
    return map_tensors(backend, op, op->src[0], NULL, op->src[1], 1);
}

bool ggml_kiln_sub_supports(const struct ggml_tensor *op) {
    return binary_supports(op);
}
kiln_status ggml_kiln_sub_run(ggml_kiln_backend *backend, const struct ggml_tensor *op) {
    return map_tensors(backend, op, op->src[1], NULL, op->src[0], -1);
}

bool ggml_kiln_mul_supports(const struct ggml_tensor *op) {
    return binary_supports(op);
}
kiln_status ggml_kiln_mul_run(ggml_kiln_backend *backend, const struct ggml_tensor *op) {
    return map_tensors(backend, op, op->src[0], op->src[1], NULL, 1);
}

bool ggml_kiln_sqr_supports(const struct ggml_tensor *op) {
    return is_float_map(op);
}
kiln_status ggml_kiln_sqr_run(ggml_kiln_backend *backend, const struct ggml_tensor *op) {
    return map_tensors(backend, op, op->src[0], op->src[0], NULL, 1);
}

bool ggml_kiln_scale_supports(const struct ggml_tensor *op) {
    return is_float_map(op);
}
kiln_status ggml_kiln_scale_run(ggml_kiln_backend *backend, const struct ggml_tensor *op) {
    float offset = ggml_kiln_param(op, 1);
    ggml_kiln_map_args args = {.y = ggml_kiln_operand_of(op),
                               .a = ggml_kiln_operand_of(op->src[0]),
                               .scale = ggml_kiln_param(op, 0),
                               .offset = offset == 0 ? -0.0F : offset};
    return ggml_kiln_map(backend, &args);
}

/* ---- Copies ------------------------------------------------------------------------------------------------------ */

/* Tensors of other shapes have their elements in the same order: the one that is contiguous is given the other's. */
bool ggml_kiln_copy_supports(const struct ggml_tensor *op) {
    const struct ggml_tensor *x = op->src[0];
    if (!ggml_kiln_is_written(op->type) || !ggml_kiln_is_operand(op) || !ggml_kiln_is_operand(x)) return false;
    return ggml_are_same_shape(op, x) || ggml_is_contiguous(op) ||
           (ggml_kiln_is_written(x->type) && ggml_is_contiguous(x));
}

kiln_status ggml_kiln_copy_run(ggml_kiln_backend *backend, const struct ggml_tensor *op) {
    const struct ggml_tensor *source = op->src[0];
    ggml_kiln_operand y = ggml_kiln_operand_of(op), x = ggml_kiln_operand_of(source);
    if (!ggml_are_same_shape(op, source)) {
        if (ggml_is_contiguous(op)) {
            y = ggml_kiln_packed(op->data, (ggml_kiln_type)y.type, source);
        } else {
            x = ggml_kiln_packed(source->data, (ggml_kiln_type)x.type, op);
        }
    }
    return ggml_kiln_copy(backend, y, x);
}

bool ggml_kiln_repeat_supports(const struct ggml_tensor *op) {
    return is_float_map(op);
}
kiln_status ggml_kiln_repeat_run(ggml_kiln_backend *backend, const struct ggml_tensor *op) {
    return ggml_kiln_copy(backend, ggml_kiln_operand_of(op), ggml_kiln_operand_of(op->src[0]));
}

/* ---- Rows by number ---------------------------------------------------------------------------------------------- */

static bool rows_support(const struct ggml_tensor *op, const struct ggml_tensor *x, const struct ggml_tensor *ids) {
    size_t id_size = ggml_type_size(ids->type);
    if (ids->type != GGML_TYPE_I32 && ids->type != GGML_TYPE_I64) return false;
    for (int i = 0; i < 3; i++)
        if (ids->nb[i] % id_size || ids->ne[i] > INT32_MAX) return false;
    return ggml_kiln_is_written(op->type) && ggml_kiln_is_operand(op) && ggml_kiln_is_operand(x);
}

/* The index goes over the rows that are named: those of y, or with scatter those of x. */
static kiln_status map_rows(ggml_kiln_backend *backend, const struct ggml_tensor *op, const struct ggml_tensor *x,
                            const struct ggml_tensor *ids, bool scatter) {
    const struct ggml_tensor *walked = scatter ? x : op;
    ggml_kiln_map_args args = {
        .y = ggml_kiln_operand_of(op),
        .a = ggml_kiln_operand_of(x),
        .ids = ids->data,
        .ids_wide = ids->type == GGML_TYPE_I64,
        .limit = (uint32_t)(scatter ? op : x)->ne[1],
        .scatter = scatter,
        .scale = 1,
        .offset = -0.0F,
    };
    for (int i = 0; i < 3; i++) {
        args.ids_stride[i] = (int64_t)ids->nb[i];
        args.ids_size[i] = (uint32_t)ids->ne[i];
    }
    for (int i = 0; i < GGML_MAX_DIMS; i++)
        args.size[i] = (uint32_t)walked->ne[i];
    return ggml_kiln_map(backend, &args);
}

bool ggml_kiln_get_rows_supports(const struct ggml_tensor *op) {
    return rows_support(op, op->src[0], op->src[1]);
}
kiln_status ggml_kiln_get_rows_run(ggml_kiln_backend *backend, const struct ggml_tensor *op) {
    return map_rows(backend, op, op->src[0], op->src[1], false);
}

bool ggml_kiln_set_rows_supports(const struct ggml_tensor *op) {
    return rows_support(op, op->src[0], op->src[1]);
}
kiln_status ggml_kiln_set_rows_run(ggml_kiln_backend *backend, const struct ggml_tensor *op) {
    return map_rows(backend, op, op->src[0], op->src[1], true);
}
