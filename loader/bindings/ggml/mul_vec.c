/* The host side of mul_vec, which does those of MUL_MAT that have weights of Q8_0 and few rows: where src1 is not on
 * the alignment that it takes, or its rows are not of one stride, a copy of it in workspace. */
#include "loader/bindings/ggml/mul_vec_args.h"
#include "loader/bindings/ggml/operators.h"

enum { ALIGNMENT = 8, ROWS = KILN_BLOCK / KILN_SUBGROUP };

bool ggml_kiln_mul_vec_does(const struct ggml_tensor *op) {
    const struct ggml_tensor *w = op->src[0], *x = op->src[1];
    return w->type == GGML_TYPE_Q8_0 && w->ne[2] == 1 && w->ne[3] == 1 && ggml_nrows(x) <= GGML_KILN_MUL_VEC_MOST;
}

static size_t place(const struct ggml_tensor *op, size_t *size) {
    const struct ggml_tensor *x = op->src[1];
    const bool in_place = x->type == GGML_TYPE_F32 && ggml_kiln_is_matrix(x) && (uintptr_t)x->data % ALIGNMENT == 0 &&
                          ggml_kiln_row_stride(x) * 4 % ALIGNMENT == 0;
    return ggml_kiln_place(size, x, GGML_KILN_F32, in_place);
}

size_t ggml_kiln_mul_vec_workspace(const struct ggml_tensor *op) {
    size_t size = 0;
    place(op, &size);
    return size;
}

kiln_status ggml_kiln_mul_vec_run(ggml_kiln_backend *backend, const struct ggml_tensor *op) {
    const struct ggml_tensor *w = op->src[0], *x = op->src[1];
    size_t size = 0, at = place(op, &size);
    ggml_kiln_mul_vec_args args = {
        .y = op->data,
        .x = x->data,
        .w = w->data,
        .y_stride = op->ne[0],
        .x_stride = ggml_kiln_row_stride(x),
        .w_stride = (int64_t)w->nb[1],
        .m = (uint32_t)ggml_nrows(x),
        .n = (uint32_t)op->ne[0],
        .blocks = (uint32_t)(w->ne[0] / GGML_KILN_MUL_VEC_BLOCK),
    };
    if (at != GGML_KILN_IN_PLACE) {
        ggml_kiln_operand packed = ggml_kiln_packed(backend->workspace + at, GGML_KILN_F32, x);
        GGML_KILN_TRY(ggml_kiln_copy(backend, packed, ggml_kiln_operand_of(x)));
        args.x = packed.data;
        args.x_stride = x->ne[0];
    }
    const uint32_t blocks = (args.n + ROWS - 1) / ROWS;
    const kiln_launch_config config = {
        .grid = {1, blocks < KILN_GRID_BLOCKS ? blocks : KILN_GRID_BLOCKS,
                 (blocks + KILN_GRID_BLOCKS - 1) >> KILN_GRID_BLOCKS_LOG2},
        .block = {KILN_BLOCK},
    };
    return kiln_launch(&backend->stream, backend->device->mul_vec, &config, &args, sizeof args);
}
