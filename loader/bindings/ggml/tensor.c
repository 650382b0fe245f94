/* What operators ask of tensors. */
#include "loader/bindings/ggml/backend.h"
#include <string.h>

bool ggml_kiln_is_matrix(const struct ggml_tensor *t) {
    size_t size = ggml_type_size(t->type);
    if (ggml_blck_size(t->type) != 1 || t->nb[0] != size || t->nb[1] % size) return false;
    if (ggml_nrows(t) > 1 && t->nb[1] < (size_t)t->ne[0] * size) return false;
    return (t->ne[2] == 1 || t->nb[2] == t->nb[1] * (size_t)t->ne[1]) &&
           (t->ne[3] == 1 || t->nb[3] == t->nb[1] * (size_t)t->ne[1] * (size_t)t->ne[2]);
}

int64_t ggml_kiln_row_stride(const struct ggml_tensor *t) {
    return ggml_nrows(t) > 1 ? (int64_t)(t->nb[1] / ggml_type_size(t->type)) : 0;
}

float ggml_kiln_param(const struct ggml_tensor *op, int number) {
    float value;
    memcpy(&value, &op->op_params[number], sizeof value);
    return value;
}

bool ggml_kiln_is_row_operator(const struct ggml_tensor *op) {
    return ggml_kiln_is_written(op->type) && op->type == op->src[0]->type && ggml_kiln_is_matrix(op) &&
           ggml_kiln_is_operand(op) && ggml_kiln_is_operand(op->src[0]);
}

kiln_status ggml_kiln_source_rows(ggml_kiln_backend *backend, const struct ggml_tensor *op, ggml_kiln_rows *out_x) {
    const struct ggml_tensor *x = op->src[0];
    *out_x = (ggml_kiln_rows){.data = x->data, .stride = ggml_kiln_row_stride(x)};
    if (ggml_kiln_is_matrix(x) && (x->data != op->data || x->nb[1] == op->nb[1])) return KILN_OK;
    *out_x = (ggml_kiln_rows){.data = op->data, .stride = ggml_kiln_row_stride(op)};
    return ggml_kiln_copy(backend, ggml_kiln_operand_of(op), ggml_kiln_operand_of(x));
}
