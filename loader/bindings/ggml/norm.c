/* ggml's RMS_NORM by kiln's rmsnorm; with the product by a weight, and with the sum before it, by one call of rmsnorm
 * or add_rmsnorm. */
#include "loader/bindings/ggml/operators.h"

bool ggml_kiln_rms_norm_supports(const struct ggml_tensor *op) {
    float eps = ggml_kiln_param(op, 0);
    return op->type == GGML_TYPE_F32 && ggml_kiln_is_row_operator(op) && eps >= 1e-30F && eps <= 1e30F;
}

kiln_status ggml_kiln_rms_norm_run(ggml_kiln_backend *backend, const struct ggml_tensor *op) {
    ggml_kiln_rows x;
    GGML_KILN_TRY(ggml_kiln_source_rows(backend, op, &x));
    kiln_rmsnorm_params params = {.y = op->data,
                                  .x = x.data,
                                  .rows = ggml_nrows(op),
                                  .cols = op->ne[0],
                                  .y_stride = ggml_kiln_row_stride(op),
                                  .x_stride = x.stride,
                                  .eps = ggml_kiln_param(op, 0)};
    return kiln_rmsnorm_f32(&backend->stream, &params);
}

/* ---- Fused ------------------------------------------------------------------------------------------------------- */

/* Nodes that are done at once: sum may be absent. */
typedef struct group {
    const struct ggml_tensor *sum, *norm, *product, *weight;
} group;

static bool overlap(const struct ggml_tensor *a, const struct ggml_tensor *b) {
    const char *a_data = a->data, *b_data = b->data;
    return a_data < b_data + ggml_nbytes(b) && b_data < a_data + ggml_nbytes(a);
}

/* A result may be written where the source is, row by row, or elsewhere. */
static bool in_place_or_apart(const struct ggml_tensor *result, const struct ggml_tensor *source) {
    bool same = result->data == source->data && ggml_kiln_row_stride(result) == ggml_kiln_row_stride(source);
    return same || !overlap(result, source);
}

static bool is_matrix_of(const struct ggml_tensor *t, const struct ggml_tensor *shape) {
    return t->type == GGML_TYPE_F32 && ggml_are_same_shape(t, shape) && ggml_kiln_is_matrix(t);
}

/* One row, for all. */
static bool is_weight(const struct ggml_tensor *t, const struct ggml_tensor *norm) {
    return t->type == GGML_TYPE_F32 && ggml_nelements(t) == norm->ne[0] && t->ne[0] == norm->ne[0] &&
           ggml_is_contiguous(t);
}

/* What stands around the norm can be done with it: by its types and strides, and since no result lies where a source or
 * another result still is. */
static bool is_one_call(const group *g) {
    const struct ggml_tensor *x = g->sum ? g->sum->src[0] : g->norm->src[0];
    if (!ggml_kiln_rms_norm_supports(g->norm) || !is_weight(g->weight, g->norm) || g->weight == g->norm) return false;
    if (!is_matrix_of(g->product, g->norm) || !is_matrix_of(x, g->norm)) return false;
    if (!in_place_or_apart(g->product, x) || overlap(g->product, g->weight)) return false;
    if (!g->sum) return true;
    const struct ggml_tensor *residual = g->sum->src[1];
    return is_matrix_of(residual, g->norm) && is_matrix_of(g->sum, g->norm) && in_place_or_apart(g->sum, x) &&
           in_place_or_apart(g->sum, residual) && in_place_or_apart(g->product, residual) &&
           !overlap(g->sum, g->product) && !overlap(g->sum, g->weight);
}

/* The group that begins at a node, if the operators are these, and nothing else reads what would not be written. */
static bool group_at(struct ggml_cgraph *graph, int node, group *g) {
    static const enum ggml_op operators[] = {GGML_OP_ADD, GGML_OP_RMS_NORM, GGML_OP_MUL};
    bool has_sum = ggml_graph_node(graph, node)->op == GGML_OP_ADD;
    int count = has_sum ? 3 : 2, outputs[] = {node, node + 2};
    if (!ggml_can_fuse_subgraph(graph, node, count, operators + !has_sum, has_sum ? outputs : &(int){node + 1},
                                has_sum ? 2 : 1))
        return false;
    *g = (group){.sum = has_sum ? ggml_graph_node(graph, node) : NULL,
                 .norm = ggml_graph_node(graph, node + has_sum),
                 .product = ggml_graph_node(graph, node + has_sum + 1)};
    if (g->sum && g->norm->src[0] != g->sum) return false;
    bool first = g->product->src[0] == g->norm;
    g->weight = g->product->src[first];
    return first || g->product->src[1] == g->norm;
}

kiln_status ggml_kiln_norm_fused(ggml_kiln_backend *backend, struct ggml_cgraph *graph, int node, int *out_count) {
    enum ggml_op op = ggml_graph_node(graph, node)->op;
    group g;
    *out_count = 0;
    if ((op != GGML_OP_ADD && op != GGML_OP_RMS_NORM) || !group_at(graph, node, &g) || !is_one_call(&g)) return KILN_OK;
    *out_count = g.sum ? 3 : 2;
    float eps = ggml_kiln_param(g.norm, 0);
    if (!g.sum) {
        kiln_rmsnorm_params params = {.y = g.product->data,
                                      .x = g.norm->src[0]->data,
                                      .weight = g.weight->data,
                                      .rows = ggml_nrows(g.norm),
                                      .cols = g.norm->ne[0],
                                      .y_stride = ggml_kiln_row_stride(g.product),
                                      .x_stride = ggml_kiln_row_stride(g.norm->src[0]),
                                      .eps = eps};
        return kiln_rmsnorm_f32(&backend->stream, &params);
    }
    kiln_add_rmsnorm_params params = {.y = g.product->data,
                                      .sum = g.sum->data,
                                      .x = g.sum->src[0]->data,
                                      .residual = g.sum->src[1]->data,
                                      .weight = g.weight->data,
                                      .rows = ggml_nrows(g.norm),
                                      .cols = g.norm->ne[0],
                                      .y_stride = ggml_kiln_row_stride(g.product),
                                      .sum_stride = ggml_kiln_row_stride(g.sum),
                                      .x_stride = ggml_kiln_row_stride(g.sum->src[0]),
                                      .residual_stride = ggml_kiln_row_stride(g.sum->src[1]),
                                      .eps = eps};
    return kiln_add_rmsnorm_f32(&backend->stream, &params);
}
