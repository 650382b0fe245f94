/* ggml's ROPE by kiln's rope. Whatever stretches or divides the frequencies - a scale, YaRN, Llama 3's factors - is in
 * a table of frequencies, which is made when a graph is prepared and kept as long as the backend. */
#include "loader/bindings/ggml/operators.h"
#include <math.h>
#include <string.h>

enum {
    PARAM_PAIRS = 1,
    PARAM_MODE,
    PARAM_LENGTH = 4,
    PARAM_THETA,
    PARAM_SCALE,
    PARAM_MIX,
    PARAM_ATTENTION,
    PARAM_FAST,
    PARAM_SLOW,
    PARAM_OFFSET = 15
};

static int64_t pairs_of(const struct ggml_tensor *op) {
    return ggml_get_op_params_i32(op, PARAM_PAIRS) / 2;
}

/* Whether kiln's rope can read or write the tensor: tokens and heads have strides, and none lies in another. */
static bool is_rotatable(const struct ggml_tensor *t, int64_t pairs) {
    size_t size = ggml_type_size(t->type), head = (size_t)(2 * pairs) * size;
    return t->nb[0] == size && t->nb[1] % size == 0 && t->nb[2] % size == 0 && t->nb[1] >= head &&
           t->nb[2] >= (size_t)(t->ne[1] - 1) * t->nb[1] + head;
}

bool ggml_kiln_rope_supports(const struct ggml_tensor *op) {
    const struct ggml_tensor *positions = op->src[1], *factors = op->src[2];
    int32_t mode = ggml_get_op_params_i32(op, PARAM_MODE);
    float theta = ggml_kiln_param(op, PARAM_THETA), scale = ggml_kiln_param(op, PARAM_SCALE);
    if (op->type != GGML_TYPE_F32 && op->type != GGML_TYPE_F16) return false;
    if (op->type != op->src[0]->type || !ggml_kiln_is_operand(op) || !ggml_kiln_is_operand(op->src[0])) return false;
    if ((mode != GGML_ROPE_TYPE_NORMAL && mode != GGML_ROPE_TYPE_NEOX) || ggml_get_op_params_i32(op, PARAM_OFFSET))
        return false;
    if (!(theta >= 1 && theta <= 1e30F && scale > 0 && ggml_kiln_param(op, PARAM_ATTENTION) > 0)) return false;
    if (positions->type != GGML_TYPE_I32 || positions->nb[0] != sizeof(int32_t)) return false;
    /* Factors are read when the graph is prepared: they must be there by then. */
    if (factors && (factors->type != GGML_TYPE_F32 || factors->op != GGML_OP_NONE || !ggml_is_contiguous(factors)))
        return false;
    return ggml_get_op_params_i32(op, PARAM_PAIRS) % 2 == 0 && pairs_of(op) > 0 && pairs_of(op) <= 1 << 20 &&
           op->ne[1] <= 1 << 20 && is_rotatable(op, pairs_of(op));
}

/* ---- Frequencies ------------------------------------------------------------------------------------------------- */

/* How much of pair i is left as it was trained, by YaRN: the others are stretched by scale. */
static float kept(const struct ggml_tensor *op, const float range[2], int64_t i) {
    float place = ((float)i - range[0]) / fmaxf(0.001F, range[1] - range[0]);
    return (1 - fminf(1, fmaxf(0, place))) * ggml_kiln_param(op, PARAM_MIX);
}

/* In the units of kiln_rope_params; whole turns make no difference. */
static kiln_status frequencies_of(const struct ggml_tensor *op, const float *factors, int64_t *frequencies) {
    const int64_t pairs = pairs_of(op);
    const float scale = ggml_kiln_param(op, PARAM_SCALE), theta = ggml_kiln_param(op, PARAM_THETA);
    float range[2] = {0, 0};
    if (ggml_kiln_param(op, PARAM_MIX) != 0)
        ggml_rope_yarn_corr_dims((int)(2 * pairs), ggml_get_op_params_i32(op, PARAM_LENGTH), theta,
                                 ggml_kiln_param(op, PARAM_FAST), ggml_kiln_param(op, PARAM_SLOW), range);
    GGML_KILN_TRY(kiln_rope_frequencies(theta, NULL, pairs, frequencies));
    for (int64_t i = 0; i < pairs; i++) {
        float mix = kept(op, range, i);
        long double turns = (long double)frequencies[i] * ((long double)scale * (1 - mix) + mix);
        if (factors) turns /= factors[i];
        frequencies[i] = (int64_t)(uint64_t)fmodl(turns, 0x1p64L);
    }
    return KILN_OK;
}

static ggml_kiln_rotation *rotation_find(const ggml_kiln_backend *backend, const struct ggml_tensor *op) {
    ggml_kiln_rotation *rotation = backend->rotations;
    while (rotation && (memcmp(rotation->op_params, op->op_params, sizeof op->op_params) != 0 ||
                        rotation->factors != (op->src[2] ? op->src[2]->data : NULL)))
        rotation = rotation->next;
    return rotation;
}

static kiln_status rotation_fill(ggml_kiln_backend *backend, const struct ggml_tensor *op, ggml_kiln_rotation *rotation,
                                 int64_t *host) {
    const size_t pairs = (size_t)pairs_of(op);
    float *factors = op->src[2] ? (float *)(host + pairs) : NULL; /* behind the frequencies */
    if (factors) {
        GGML_KILN_TRY(
            kiln_copy(&backend->stream, factors, op->src[2]->data, pairs * sizeof *factors, KILN_COPY_TO_HOST));
        GGML_KILN_TRY(kiln_stream_sync(&backend->stream));
    }
    GGML_KILN_TRY(frequencies_of(op, factors, host));
    GGML_KILN_TRY(kiln_copy(&backend->stream, rotation->frequencies, host, pairs * sizeof *host, KILN_COPY_TO_DEVICE));
    return kiln_stream_sync(&backend->stream);
}

/* With factors the table is written anew for each graph, as they may have changed; else it is made once. */
kiln_status ggml_kiln_rope_prepare(ggml_kiln_backend *backend, const struct ggml_tensor *op, size_t *out_workspace) {
    const size_t pairs = (size_t)pairs_of(op);
    ggml_kiln_rotation *rotation = rotation_find(backend, op);
    *out_workspace = 0;
    if (rotation && (!op->src[2] || rotation->graph == backend->graph)) return KILN_OK;
    if (!rotation) {
        rotation = calloc(1, sizeof *rotation);
        if (!rotation) return KILN_ERROR_OUT_OF_MEMORY;
        kiln_status status = kiln_memory_alloc(backend->device->device, pairs * sizeof *rotation->frequencies,
                                               (void **)&rotation->frequencies);
        if (status) {
            free(rotation);
            return status;
        }
        memcpy(rotation->op_params, op->op_params, sizeof op->op_params);
        rotation->factors = op->src[2] ? op->src[2]->data : NULL;
        rotation->next = backend->rotations;
        backend->rotations = rotation;
    }
    int64_t *host = malloc(pairs * (sizeof *host + sizeof(float)));
    if (!host) return KILN_ERROR_OUT_OF_MEMORY;
    kiln_status status = rotation_fill(backend, op, rotation, host);
    free(host);
    rotation->graph = backend->graph;
    return status;
}

/* ---- The call ---------------------------------------------------------------------------------------------------- */

/* What cosines and sines are multiplied with: YaRN's growth of the attention is ggml's to add. */
static float attention_scale(const struct ggml_tensor *op) {
    float scale = ggml_kiln_param(op, PARAM_ATTENTION);
    if (ggml_kiln_param(op, PARAM_MIX) != 0) scale *= 1 + 0.1F * logf(1 / ggml_kiln_param(op, PARAM_SCALE));
    return scale;
}

/* Elements behind the pairs, and rows that kiln's rope cannot read, are copied first and turned in place. */
kiln_status ggml_kiln_rope_run(ggml_kiln_backend *backend, const struct ggml_tensor *op) {
    const struct ggml_tensor *x = op->src[0];
    const int64_t pairs = pairs_of(op);
    const ggml_kiln_rotation *rotation = rotation_find(backend, op);
    const int64_t size = (int64_t)ggml_type_size(op->type);
    bool same_strides = x->nb[1] == op->nb[1] && x->nb[2] == op->nb[2] && x->nb[3] == op->nb[3];
    if (!is_rotatable(x, pairs) || (x->data == op->data && !same_strides) ||
        (x->data != op->data && 2 * pairs < op->ne[0])) {
        GGML_KILN_TRY(ggml_kiln_copy(backend, ggml_kiln_operand_of(op), ggml_kiln_operand_of(x)));
        x = op;
    }
    for (int64_t i = 0; i < op->ne[3]; i++) {
        kiln_rope_params params = {
            .y = (char *)op->data + (size_t)i * op->nb[3],
            .x = (char *)x->data + (size_t)i * x->nb[3],
            .positions = op->src[1]->data,
            .frequencies = rotation->frequencies,
            .tokens = op->ne[2],
            .heads = op->ne[1],
            .pairs = pairs,
            .y_stride = (int64_t)op->nb[2] / size,
            .y_head_stride = (int64_t)op->nb[1] / size,
            .x_stride = (int64_t)x->nb[2] / size,
            .x_head_stride = (int64_t)x->nb[1] / size,
            .scale = attention_scale(op),
            .layout =
                ggml_get_op_params_i32(op, PARAM_MODE) == GGML_ROPE_TYPE_NEOX ? KILN_ROPE_HALF : KILN_ROPE_INTERLEAVED,
        };
        GGML_KILN_TRY(GGML_KILN_CALL(rope, ggml_kiln_type_of(op->type), &backend->stream, &params));
    }
    return KILN_OK;
}
