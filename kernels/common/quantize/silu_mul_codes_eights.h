/* silu_mul_fp8 and silu_mul_int8 from sm_80 on for SiLU, for aligned rows that a block shares and that have a scale
 * each: a thread computes two eights at a time as pairs of f32 (eights.h), and keeps them in shared memory until
 * the row's scale is known. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_SILU_MUL_CODES_EIGHTS_H
#define KILN_KERNELS_COMMON_QUANTIZE_SILU_MUL_CODES_EIGHTS_H

#include "kernels/common/device.h"
#include "kernels/common/math/glu_packed.h"
#include "kernels/common/quantize/eights.h"
#include "kernels/common/quantize/silu_mul_codes_gpu.h"
#include "kernels/common/quantize/silu_mul_gates.h"

enum { KILN_SILU_MUL_RESIDENT = 4 }; /* blocks of 256 threads at least: for five of them ptxas would spill */

/* Half an eight. */
typedef struct kiln_quad {
    kiln_packed low, high;
} __attribute__((aligned(16))) kiln_quad;

/* An eight in shared memory, a half in each of two rows of the block's threads. */
KILN_INLINE void kiln_eight_pairs_keep(kiln_codes_kept *kept, const kiln_packed *pairs) {
    KILN_UNROLL
    for (int half = 0; half < 2; half++)
        *(kiln_quad *)(kept + half * KILN_BLOCK) = kiln_quad{pairs[2 * half], pairs[2 * half + 1]};
}
KILN_INLINE void kiln_eight_pairs_recall(const kiln_codes_kept *kept, kiln_packed *pairs) {
    KILN_UNROLL
    for (int half = 0; half < 2; half++) {
        const kiln_quad quad = *(const kiln_quad *)(kept + half * KILN_BLOCK);
        pairs[2 * half] = quad.low;
        pairs[2 * half + 1] = quad.high;
    }
}

/* The results of COUNT eights of a thread, `step` columns apart from each other, with any gates. In a loop, for the
 * size of the image: they are shifted in through the last place. */
template <int COUNT>
KILN_INLINE void kiln_silu_mul_any(const kiln_silu_mul_codes_args *args, kiln_packed (*results)[KILN_EIGHT_PAIRS],
                                   const kiln_element *gate, const kiln_element *up, uint32_t step) {
    float values[COUNT * KILN_EIGHT] = {0};
    KILN_LOOP
    for (uint32_t i = 0; i < COUNT * KILN_EIGHT; i++) {
        const uint32_t col = i / KILN_EIGHT * step + i % KILN_EIGHT;
        KILN_UNROLL
        for (int e = 0; e + 1 < COUNT * KILN_EIGHT; e++)
            values[e] = values[e + 1];
        values[COUNT * KILN_EIGHT - 1] =
            kiln_glu_exactly(kiln_element_to_f32(gate[col]), args->bound, args->coefficients) *
            kiln_element_to_f32(up[col]);
    }
    KILN_UNROLL
    for (int e = 0; e < COUNT * KILN_EIGHT_PAIRS; e++)
        results[e / KILN_EIGHT_PAIRS][e % KILN_EIGHT_PAIRS] = kiln_pack(values[2 * e], values[2 * e + 1]);
}

/* Whether no gate of COUNT eights is beyond SiLU's bound in magnitude. NaN is. */
template <int COUNT> KILN_INLINE bool kiln_silu_mul_are_within(const kiln_eight_loaded *eights, float bound) {
    kiln_gates gates = kiln_gates_none();
    KILN_UNROLL
    for (int i = 0; i < COUNT * 4; i++) {
#if defined(KILN_PART_f32)
        const auto *half = &eights[i / 4].halves[i / 2 % 2];
        kiln_gates_take(&gates, i % 2 ? half->high : half->low);
#else
        kiln_gates_take(&gates, eights[i / 4].vector.words[i % 4]);
#endif
    }
    return kiln_gates_within(gates, bound);
}

/* The results of COUNT eights of a thread, `step` columns apart from each other. */
template <int COUNT>
KILN_INLINE void kiln_silu_mul_pairs(const kiln_silu_mul_codes_args *args, kiln_packed (*results)[KILN_EIGHT_PAIRS],
                                     const kiln_element *gate, const kiln_element *up, uint32_t step) {
    kiln_eight_loaded gates[COUNT], ups[COUNT];
    kiln_packed factors[KILN_EIGHT_PAIRS];
    KILN_UNROLL
    for (int i = 0; i < COUNT; i++) {
        gates[i] = kiln_eight_loaded_from(gate + i * step);
        ups[i] = kiln_eight_loaded_from(up + i * step);
    }
    if (kiln_silu_mul_are_within<COUNT>(gates, args->bound)) {
        KILN_UNROLL
        for (int i = 0; i < COUNT; i++) {
            kiln_eight_pairs(results[i], &gates[i]);
            kiln_eight_pairs(factors, &ups[i]);
            KILN_UNROLL
            for (int e = 0; e < KILN_EIGHT_PAIRS; e++)
                results[i][e] = kiln_packed_mul(kiln_packed_silu_within(results[i][e]), factors[e]);
        }
    } else {
        kiln_silu_mul_any<COUNT>(args, results, gate, up, step);
    }
}

/* Keeps them in shared memory, and returns the greater of a magnitude and theirs, with some sign. */
template <int COUNT>
KILN_INLINE float kiln_silu_mul_keep(const kiln_silu_mul_codes_args *args, kiln_codes_kept *kept,
                                     const kiln_element *gate, const kiln_element *up, float greatest) {
    kiln_packed results[COUNT][KILN_EIGHT_PAIRS];
    kiln_silu_mul_pairs<COUNT>(args, results, gate, up, KILN_BLOCK * KILN_EIGHT);
    KILN_UNROLL
    for (int i = 0; i < COUNT; i++) {
        greatest = kiln_eight_greater_or_nan(results[i], greatest);
        kiln_eight_pairs_keep(kept + i * 2 * KILN_BLOCK, results[i]);
    }
    return greatest;
}

/* Writes the codes of a thread's eights that are kept, and their row's scale. */
KILN_INLINE void kiln_eights_put_kept(const kiln_codes_args *args, kiln_codes_place p, uint32_t eights,
                                      const kiln_codes_kept *kept, float greatest, kiln_codes_exchange *exchange,
                                      kiln_codes_format format) {
    greatest = kiln_eights_block_greatest(__builtin_fabsf(greatest), exchange); /* NaN has the greatest bits */
    const bool finite = kiln_eights_finite(greatest, format);
    kiln_packed values[1][KILN_EIGHT_PAIRS];
    if (!finite) {
        float singles[KILN_EIGHT];
        greatest = 0.0f;
        KILN_LOOP
        for (uint32_t eight = p.lane, at = p.lane; eight < eights; eight += KILN_BLOCK, at += 2 * KILN_BLOCK) {
            kiln_eight_pairs_recall(kept + at, values[0]);
            kiln_eight_unpack(singles, values[0]);
            greatest = kiln_eight_greatest(singles, greatest);
        }
        kiln_barrier(); /* all have read what was exchanged before */
        greatest = kiln_eights_block_greatest(greatest, exchange);
    }
    const kiln_scale_factor s = kiln_eights_scale_factor(args, greatest, kiln_eights_most(format));
    if (args->scales && p.lane == 0) ((float *)args->scales)[p.row] = s.scale;
    uint8_t *codes = args->codes + p.row * (uint64_t)args->codes_stride + p.lane * KILN_EIGHT;
    kept += p.lane;
    if (finite) {
        KILN_LOOP
        for (int32_t left = (int32_t)(eights - p.lane); left > 0; left -= 2 * KILN_BLOCK) {
            kiln_eight_pairs_recall(kept, values[0]);
            *(kiln_eight_bytes *)codes = kiln_eight_codes_finite(values[0], s.factor, format);
            if (left > KILN_BLOCK) {
                kiln_eight_pairs_recall(kept + 2 * KILN_BLOCK, values[0]);
                *(kiln_eight_bytes *)(codes + KILN_BLOCK * KILN_EIGHT) =
                    kiln_eight_codes_finite(values[0], s.factor, format);
            }
            kept += 4 * KILN_BLOCK;
            codes += 2 * KILN_BLOCK * KILN_EIGHT;
        }
    } else {
        KILN_LOOP
        for (uint32_t eight = p.lane; eight < eights; eight += KILN_BLOCK) {
            kiln_eight_pairs_recall(kept, values[0]);
            *(kiln_eight_bytes *)codes = kiln_eight_codes_special(values[0], s.factor, format);
            kept += 2 * KILN_BLOCK;
            codes += KILN_BLOCK * KILN_EIGHT;
        }
    }
}

/* Returns whether it did the call. */
KILN_INLINE bool kiln_silu_mul_eights(const kiln_silu_mul_codes_args *args, kiln_codes_kept *kept,
                                      kiln_codes_exchange *exchange, kiln_codes_format format) {
    enum { COUNT = KILN_VECTOR > 4 || __CUDA_ARCH__ >= 1000 ? 2 : 1, STEP = KILN_BLOCK * KILN_EIGHT };
    const kiln_codes_args *out = &args->out;
    if (!args->four) return false;
    const kiln_codes_place p = kiln_codes_place_of_block(out);
    if (p.beyond) return true;
    const uint32_t eights = (uint32_t)out->shape.cols / KILN_EIGHT, col = p.lane * KILN_EIGHT;
    const kiln_element *gate = (const kiln_element *)args->gate + p.row * (uint64_t)args->gate_stride + col;
    const kiln_element *up = (const kiln_element *)args->up + p.row * (uint64_t)args->up_stride + col;
    if (eights == COUNT * KILN_BLOCK) {
        kiln_packed results[COUNT][KILN_EIGHT_PAIRS];
        kiln_silu_mul_pairs<COUNT>(args, results, gate, up, STEP);
        kiln_eights_put<COUNT, true>(out, p, eights, results, exchange, format);
        return true;
    }
    kiln_codes_kept *keep = kept + p.lane;
    float greatest = 0.0f;
    KILN_LOOP
    for (uint32_t left = eights / (COUNT * KILN_BLOCK); left; left--) {
        greatest = kiln_silu_mul_keep<COUNT>(args, keep, gate, up, greatest);
        gate += COUNT * STEP;
        up += COUNT * STEP;
        keep += COUNT * 2 * KILN_BLOCK;
    }
    KILN_LOOP
    for (uint32_t left = eights % (COUNT * KILN_BLOCK); p.lane < left; left -= left < KILN_BLOCK ? left : KILN_BLOCK) {
        greatest = kiln_silu_mul_keep<1>(args, keep, gate, up, greatest);
        gate += STEP;
        up += STEP;
        keep += 2 * KILN_BLOCK;
    }
    kiln_eights_put_kept(out, p, eights, kept, greatest, exchange, format);
    return true;
}

#endif
