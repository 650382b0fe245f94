/* softmax_update, host side: a row is one tile, whatever its length. */
#include "kernels/softmax_update/softmax_update_args.h"
#include <kiln/ops/softmax.h>
#define KILN_HOST softmax_update
#include "kernels/common/operator.h"

/* Checks the states of a number of rows. They may be NULL unless they are required. */
static kiln_status check_states(const char *name, const char *tensor, const float *states, int64_t rows,
                                bool required) {
    return states || required ? kiln__tensor_check(name, tensor, states, 3, rows, rows, 2) : KILN_OK;
}

static kiln_status softmax_update(kiln_stream *stream, const kiln_softmax_update_params *params, unsigned part,
                                  const char *name) {
    int64_t rows = params->rows, cols = params->cols;
    KILN__TRY(kiln__size_check(name, "rows", rows, INT64_MAX >> 5));
    KILN__TRY(kiln__size_check(name, "cols", cols, INT32_MAX));
    if (KILN__UNLIKELY(!rows)) return KILN_OK;

    unsigned size_log2 = kiln__part_size_log2(part);
    KILN__REQUIRE(params->x || params->other, "%s: x is NULL: may be so only where other is given", name);
    KILN__REQUIRE(params->x || !cols, "%s: cols is %lld: must be 0 where x is NULL", name, (long long)cols);
    KILN__TRY(check_states(name, "states", params->states, rows, true));
    KILN__TRY(check_states(name, "before", params->before, rows, false));
    KILN__TRY(check_states(name, "other", params->other, rows, false));
    if (params->scale) KILN__TRY(kiln__tensor_check(name, "scale", params->scale, 1, rows, rows, 2));
    if (params->lse) KILN__TRY(kiln__tensor_check(name, "lse", params->lse, 1, rows, rows, 2));
    kiln__tensor x = kiln__tensor_of("x", params->x, params->x_stride);
    uint32_t wide = 0;
    if (cols) KILN__TRY(kiln__tensors_check(name, &x, 1, rows, cols, size_log2, &wide));

    uint64_t vectors = kiln__vectors(cols, size_log2);
    unsigned each_log2 = kiln__thread_vectors_log2_of(rows, vectors, KILN_SOFTMAX_UPDATE_VECTORS_LOG2);
    unsigned lanes_log2 = kiln__lanes_log2_of(vectors, each_log2);
    const kiln_softmax_update_args args = {
        .states = params->states,
        .scale = params->scale,
        .lse = params->lse,
        .x = params->x,
        .before = params->before,
        .other = params->other,
        .shape = {.rows = rows, .cols = cols, .tile = (uint32_t)cols, .lanes_log2 = lanes_log2, .wide = wide},
        .x_stride = x.stride,
    };
    kiln_launch_config config;
    KILN__TRY(kiln__grid(name, 1, kiln__blocks(rows, lanes_log2), &config));
    return launch(stream, part, KERNEL_softmax_update, &config, &args, sizeof args);
}
