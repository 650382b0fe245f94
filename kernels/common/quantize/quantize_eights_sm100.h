/* quantize_int8 on sm_100 and later for aligned rows of 16-bit elements with a computed scale each and smax 127, of
 * which each thread of a block has the same number of eights: without questions about each, by instructions for two f32
 * (eights.h). */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_QUANTIZE_EIGHTS_SM100_H
#define KILN_KERNELS_COMMON_QUANTIZE_QUANTIZE_EIGHTS_SM100_H

#include "kernels/common/device.h"
#include "kernels/common/math/pairs.h"
#include "kernels/common/quantize/eights.h"
#include "kernels/common/quantize/quantize_gpu.h"

/* Whether each thread of a block has COUNT eights of its row, and nothing is asked for but that row's scale. */
template <int COUNT> KILN_INLINE bool kiln_quantize_even(const kiln_quantize_args *args) {
    return args->source == KILN_QUANTIZE_COMPUTED && !args->rows_log2 && !args->grouped && args->shape.wide &&
           args->shape.cols == COUNT * KILN_BLOCK * KILN_EIGHT && args->smax == 127.0f;
}

/* A block's row. Returns whether it did it, which it does not if there are infinities or NaN. */
template <int COUNT>
KILN_INLINE bool kiln_quantize_eights(const kiln_quantize_args *args, kiln_codes_exchange *exchange) {
    enum { STEP = KILN_BLOCK * KILN_EIGHT };
    const uint64_t row = kiln_block();
    const uint32_t first = kiln_thread() * KILN_EIGHT;
    if (row >= (uint64_t)args->shape.rows) return true;
    const kiln_element *x = (const kiln_element *)args->x + row * (uint64_t)args->x_stride + first;
    kiln_eight_loaded held[COUNT];
    KILN_UNROLL
    for (int i = 0; i < COUNT; i++)
        held[i] = kiln_eight_loaded_from(x + i * STEP);
    uint32_t pair = held[0].vector.words[0];
    KILN_UNROLL
    for (int i = 1; i < COUNT * KILN_EIGHT_PAIRS; i++)
        pair = kiln_pair_greater_or_nan(pair, held[i / KILN_EIGHT_PAIRS].vector.words[i % KILN_EIGHT_PAIRS]);
    float both[2];
    kiln_pair_values(both, pair);
    const float own = __builtin_fabsf(kiln_sm86_greater_or_nan_f32(both[0], both[1]));
    const float greatest = kiln_eights_block_greatest(own, exchange); /* NaN has the greatest bits */
    if (!(greatest < KILN_INFINITY)) return false;
    kiln_codes_args scale;
    scale.smax = 127.0f;
    scale.static_scale = 0.0f;
    const kiln_scale_factor s = kiln_eights_scale_factor(&scale, greatest, 127.0f);
    if (args->scales && first == 0) args->scales[row] = s.scale;
    uint8_t *codes = (uint8_t *)args->codes + row * (uint64_t)args->codes_stride + first;
    KILN_UNROLL
    for (int i = 0; i < COUNT; i++) {
        kiln_packed pairs[KILN_EIGHT_PAIRS];
        kiln_eight_pairs(pairs, &held[i]);
        *(kiln_eight_bytes *)(codes + i * STEP) = kiln_eight_codes_finite(pairs, s.factor, KILN_CODES_INT8);
    }
    return true;
}

/* Returns whether it did the call. */
KILN_INLINE bool kiln_quantize_even_rows(const kiln_quantize_args *args, kiln_codes_exchange *exchange) {
    if (kiln_quantize_even<4>(args)) return kiln_quantize_eights<4>(args, exchange);
    return kiln_quantize_even<2>(args) && kiln_quantize_eights<2>(args, exchange);
}

#endif
