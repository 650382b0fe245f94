/* The functions of operators.def. */
#ifndef GGML_KILN_OPERATORS_H
#define GGML_KILN_OPERATORS_H

#include "loader/bindings/ggml/backend.h"

#define GGML_KILN_OPERATOR(name, function, prepare)                     \
    bool ggml_kiln_##function##_supports(const struct ggml_tensor *op); \
    kiln_status ggml_kiln_##function##_run(ggml_kiln_backend *backend, const struct ggml_tensor *op);
#include "loader/bindings/ggml/operators.def"
#undef GGML_KILN_OPERATOR

kiln_status ggml_kiln_unary_prepare(ggml_kiln_backend *backend, const struct ggml_tensor *op, size_t *out_workspace);
kiln_status ggml_kiln_soft_max_prepare(ggml_kiln_backend *backend, const struct ggml_tensor *op, size_t *out_workspace);
kiln_status ggml_kiln_rope_prepare(ggml_kiln_backend *backend, const struct ggml_tensor *op, size_t *out_workspace);
kiln_status ggml_kiln_argmax_prepare(ggml_kiln_backend *backend, const struct ggml_tensor *op, size_t *out_workspace);
kiln_status ggml_kiln_mul_mat_prepare(ggml_kiln_backend *backend, const struct ggml_tensor *op, size_t *out_workspace);
kiln_status ggml_kiln_flash_attn_prepare(ggml_kiln_backend *backend, const struct ggml_tensor *op,
                                         size_t *out_workspace);

/* Whether a MUL_MAT that is supported is one of few rows, which mul_vec does; its workspace, and its calls. */
bool ggml_kiln_mul_vec_does(const struct ggml_tensor *op);
size_t ggml_kiln_mul_vec_workspace(const struct ggml_tensor *op);
kiln_status ggml_kiln_mul_vec_run(ggml_kiln_backend *backend, const struct ggml_tensor *op);

#endif
