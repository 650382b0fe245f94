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
