/* rope3d, host side. */
#include "kernels/common/rotary/rotate_host.h"
#include "kernels/rope3d/rope3d_args.h"
#include <kiln/ops/rope.h>

extern const kiln_bundle kiln__bundle_rope3d;

enum {
#define KILN_KERNEL(name) KERNEL_##name,
#include "kernels/rope3d/rope3d.def"
};

static kiln_status check_options(const char *name, const kiln_rope3d_params *params) {
    int64_t pairs = params->pairs;
    KILN__REQUIRE((uint32_t)params->layout <= KILN_ROPE_HALF, "%s: layout is %d: must be interleaved (0) or half (1)",
                  name, params->layout);
    KILN__REQUIRE(params->reserved == 0, "%s: reserved is %d: must be 0", name, params->reserved);
    KILN__REQUIRE(params->frame_pairs >= 0 && params->frame_pairs <= pairs,
                  "%s: frame_pairs is %lld: must be from 0 to the %lld pairs", name, (long long)params->frame_pairs,
                  (long long)pairs);
    KILN__REQUIRE(params->row_pairs >= 0 && params->row_pairs <= pairs - params->frame_pairs,
                  "%s: row_pairs is %lld: must be from 0 to the %lld pairs that are left", name,
                  (long long)params->row_pairs, (long long)(pairs - params->frame_pairs));
    return KILN_OK;
}

static kiln_status rope3d(kiln_stream *stream, const kiln_rope3d_params *params, size_t params_size, unsigned part,
                          const char *name) {
    kiln_rope3d_params copy;
    KILN__PARAMS(name, params, params_size, &copy);
    int64_t batch = params->batch, heads = params->heads, pairs = params->pairs, rows;
    KILN__TRY(kiln__stream_check(name, stream));
    KILN__TRY(kiln__size_check(name, "batch", batch, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "tokens", params->tokens, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "heads", heads, KILN__ROTATE_MOST));
    KILN__TRY(kiln__size_check(name, "pairs", pairs, KILN__ROTATE_MOST));
    rows = batch * params->tokens;
    KILN__REQUIRE(rows <= INT32_MAX, "%s: tokens is %lld: is too large for a batch of %lld: at most 2^31 - 1 together",
                  name, (long long)params->tokens, (long long)batch);
    KILN__TRY(check_options(name, params));
    if (KILN__UNLIKELY(!rows || !heads || !pairs)) return KILN_OK;

    unsigned size_log2 = kiln__part_size_log2(part);
    kiln__rotated y = {"y", params->y, params->y_stride, params->y_head_stride};
    kiln__rotated x = {"x", params->x, params->x_stride, params->x_head_stride};
    KILN__TRY(kiln__rotated_check(name, &y, rows, heads, pairs, size_log2));
    KILN__TRY(kiln__rotated_check(name, &x, rows, heads, pairs, size_log2));
    KILN__TRY(kiln__tensor_check(name, "grids", params->grids, batch, 3, 3, 2));
    KILN__TRY(kiln__tensor_check(name, "frequencies", params->frequencies, 1, pairs, pairs, 3));
    KILN__TRY(kiln__rotated_in_place_check(name, &y, &x));

    const kiln_module *module;
    KILN__TRY(kiln__operator_require(stream, KILN__OPERATOR_rope3d, part, &kiln__bundle_rope3d, &module));
    unsigned lanes_log2 = kiln__rotate_lanes_log2(pairs, size_log2);
    bool given = params->frame_pairs || params->row_pairs;
    int64_t frame_pairs = given ? params->frame_pairs : pairs - 2 * (pairs / 3);
    int64_t row_pairs = given ? params->row_pairs : pairs / 3;
    const kiln_rope3d_args args = {
        .y = params->y,
        .x = params->x,
        .grids = params->grids,
        .frequencies = (const uint64_t *)params->frequencies,
        .y_stride = y.stride,
        .y_head_stride = y.head_stride,
        .x_stride = x.stride,
        .x_head_stride = x.head_stride,
        .batch = (uint32_t)batch,
        .tokens = (uint32_t)params->tokens,
        .heads = (uint32_t)heads,
        .pairs = (uint32_t)pairs,
        .first = (uint32_t)frame_pairs,
        .second = (uint32_t)(frame_pairs + row_pairs),
        .lanes_log2 = lanes_log2,
        .step = params->layout == KILN_ROPE_HALF ? (uint32_t)pairs : 1,
        .wide = kiln__rotated_wide(&y, &x, rows, heads, pairs, size_log2),
    };
    kiln_launch_config config;
    KILN__TRY(kiln__grid(name, kiln__blocks(heads, lanes_log2), (uint64_t)rows, &config));
    return kiln__operator_launch(stream, &module->kernels[KERNEL_rope3d], &config, &args, sizeof args);
}

#define FUNCTION(part, size) KILN__OPERATOR_FUNCTION(rope3d, part)
KILN__FLOAT_PARTS(FUNCTION)
