/* dequantize_w4a16, host side. */
#include "kernels/dequantize_w4a16/dequantize_w4a16_args.h"
#include <kiln/ops/gemm.h>
#define KILN_HOST dequantize_w4a16
#include "kernels/common/operator.h"

static kiln_status dequantize_w4a16(kiln_stream *stream, const kiln_dequantize_w4a16_params *params, unsigned part,
                                    const char *name) {
    const int64_t n = params->n, k = params->k, group = params->group;
    const bool groups_first = params->scale_layout == KILN_W4A16_SCALES_K_N;
    const unsigned size_log2 = kiln__part_size_log2(part);
    kiln__tensor y = kiln__tensor_of("y", params->y, params->y_stride);
    kiln_launch_config config;
    uint32_t wide;
    KILN__TRY(kiln__size_check(name, "n", n, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "k", k, INT32_MAX));
    KILN__REQUIRE(k % 2 == 0, "%s: k is %lld: must be even", name, (long long)k);
    KILN__REQUIRE(group == 0 || group == 32 || group == 64 || group == 128 || group == 256 || group == k,
                  "%s: group is %lld: must be 32, 64, 128, 256 or k (0: k)", name, (long long)group);
    KILN__REQUIRE(group == 0 || k % group == 0, "%s: k is %lld: must be a multiple of group, %lld", name, (long long)k,
                  (long long)group);
    KILN__REQUIRE((uint32_t)params->scale_layout <= KILN_W4A16_SCALES_K_N,
                  "%s: scale_layout is %d: must be n_k (0) or k_n (1)", name, params->scale_layout);
    KILN__REQUIRE(params->reserved == 0, "%s: reserved is %d: must be 0", name, params->reserved);
    if (KILN__UNLIKELY(!n || !k)) return KILN_OK;

    const int64_t groups = group ? k / group : 1;
    const int64_t rows = groups_first ? groups : n, cols = groups_first ? n : groups;
    KILN__TRY(kiln__tensors_check(name, &y, 1, n, k, size_log2, &wide));
    KILN__TRY(kiln__tensor_check(name, "weights", params->weights, n, k / 2, k / 2, 0));
    KILN__TRY(kiln__tensor_check(name, "scales", params->scales, rows, cols, cols, size_log2));
    if (params->zeros) KILN__TRY(kiln__tensor_check(name, "zeros", params->zeros, rows, cols, cols, size_log2));
    const uintptr_t places = (uintptr_t)params->weights | (n > 1 ? (uintptr_t)k / 2 : 0);
    wide &= (places & ((1u << (3 - size_log2)) - 1)) == 0; /* half a byte for each element of a vector */
    kiln_dequantize_w4a16_args args = {
        .y = params->y,
        .weights = params->weights,
        .scales = params->scales,
        .zeros = params->zeros,
        .y_stride = y.stride,
        .scale_row_step = groups_first ? 1 : groups,
        .scale_group_step = groups_first ? n : 1,
        .group_log2 =
            groups > 1 ? (uint32_t)__builtin_ctzll((unsigned long long)group) : KILN_DEQUANTIZE_W4A16_ONE_GROUP,
    };
    KILN__TRY(kiln__elementwise(name, n, k, size_log2, wide, &args.shape, &config));
    return launch(stream, part, KERNEL_dequantize_w4a16, &config, &args, sizeof args);
}
