/* quantize_embedding: rows as bits, int8 or int4, and their scales.
 *
 * The threads that share a row are as many as it has units of eight columns, up to 32, or a whole block. A thread
 * converts a unit at a time and stores its codes with one access. Where there are scales, an earlier pass finds the
 * greatest magnitude; a thread's first unit, which is all that it has of most rows, stays in registers, and the rest is
 * read twice, the second time from a cache. The squares are summed in the pass that makes the codes, in units of the
 * scale, where they can neither overflow nor vanish.
 *
 * Rows of 16-bit elements that 32 threads share, and that become int8, stay in registers as they are.
 *
 * Floor: one read of x and one write of the codes at memory bandwidth; docs/kernel-report.md has the instruction counts
 * and the time that they take. Of the 12 instructions an element of 16 bits on sm_100, which issue in 0.8 of the
 * memory's time (predicted), 6 are a conversion, a product, a square and a code's, the others reductions, scales and
 * addresses of 32 elements. Not measured.
 *
 * Test: build/tests/ops/vector_search_test. Bench: build/kiln bench quantize_embedding */
#include "kernels/common/device.h"
#include "kernels/common/math/reciprocal_step.h"
#include "kernels/common/quantize/codes_gpu.h"
#include "kernels/common/reduce/greatest_or_nan.h"
#include "kernels/common/reduce/row_reduce.h"
#include "kernels/common/reduce/subgroup_any.h"
#include "kernels/quantize_embedding/embedding_codes.h"
#if defined(__CUDACC__)
#include "kernels/arch/sm86.h"
#endif

enum { UNIT = KILN_EMBEDDING_UNIT };
static_assert((int)UNIT == (int)KILN_EIGHT, "a unit is an eight");

/* The greater magnitude, on some devices with some sign. NaN is not greater. */
KILN_INLINE float greater_of(float greatest, float value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
    return kiln_sm86_greater_f32(greatest, value);
#else
    return kiln_fast_max(__builtin_fabsf(value), greatest);
#endif
}

/* The elements of a unit; zeros beyond the row. */
KILN_INLINE kiln_eight_bits take_unit(const kiln_element *x, uint32_t unit, const kiln_shape *shape) {
    const uint32_t cols = (uint32_t)shape->cols, first = unit * UNIT, left = first < cols ? cols - first : 0;
    return kiln_eight_load(x + first, left < UNIT ? left : UNIT, shape->wide);
}

KILN_INLINE void put_unit(const kiln_quantize_embedding_args *args, uint8_t *codes, uint32_t unit, uint64_t code) {
    const uint32_t at = unit * args->unit_bytes;
    if (args->whole && args->code_type == KILN_CODE_INT8) {
        *(uint64_t *)(codes + at) = code;
    } else if (args->whole && args->code_type == KILN_CODE_INT4) {
        *(uint32_t *)(codes + at) = (uint32_t)code;
    } else {
        KILN_LOOP
        for (uint32_t i = 0; i < args->unit_bytes && at + i < args->code_cols; i++, code >>= 8)
            codes[at + i] = (uint8_t)code;
    }
}

/* Turns a unit's numbers in units of the scale into its codes, as kiln_embedding_codes has them, and limits the numbers
 * as kiln_embedding_bounded does. */
KILN_INLINE uint64_t codes_of_unit(float *numbers, float smax, uint32_t code_type) {
    if (kiln_any_nan(numbers)) {
        KILN_UNROLL
        for (uint32_t i = 0; i < UNIT; i++)
            numbers[i] = numbers[i] == numbers[i] ? numbers[i] : 0.0f;
    }
    if (code_type == KILN_CODE_BINARY) return kiln_embedding_codes(numbers, smax, KILN_CODE_BINARY);
    float sums[UNIT]; /* with the integers in their low bits, those of int4 from 8 on */
    const float anchor = code_type == KILN_CODE_INT8 ? 0x1.8p23f : 0x1.8p23f + 8.0f;
    KILN_UNROLL
    for (uint32_t i = 0; i < UNIT; i++) {
        numbers[i] = kiln_fast_clamp(numbers[i], smax);
        sums[i] = numbers[i] + anchor;
    }
    uint32_t low = kiln_float_bytes(sums, 1, 0), high = kiln_float_bytes(sums + 4, 1, 0);
    if (code_type == KILN_CODE_INT8) return (uint64_t)high << 32 | low;
    const uint32_t halves[] = {low | low >> 4, high | high >> 4};
    low = (halves[0] & 0xffu) | (halves[0] >> 8 & 0xff00u);
    high = (halves[1] & 0xffu) | (halves[1] >> 8 & 0xff00u);
    return high << 16 | low;
}

#if !defined(KILN_PART_f32)
enum { HELD = 4 };

/* Over a subgroup. AMD's compiler would convert elements in front of an unrolled reduction, for 20 registers more. */
KILN_INLINE float reduce_subgroup(float value, uint32_t lanes_log2, kiln_reduction reduction) {
#if defined(__HIP__)
    return kiln_reduce(value, lanes_log2, 0, reduction);
#else
    return kiln_subgroup_reduce(value, KILN_SUBGROUP_LOG2, reduction);
#endif
}

/* Quantises aligned rows of finite elements to int8, of which a thread has up to HELD units: these stay in registers,
 * and no product is beyond smax by more than rounding. Returns whether it did the subgroup's rows. */
KILN_INLINE bool quantize_held(const kiln_quantize_embedding_args *args, uint64_t row, uint32_t lane, uint32_t units) {
    const uint32_t lanes_log2 = args->shape.lanes_log2, lanes = 1u << lanes_log2;
    const bool aligned = args->shape.wide && args->whole && (uint64_t)args->shape.cols == args->units * UNIT;
    if (!aligned || args->code_type != KILN_CODE_INT8 || args->smax != 127.0f || args->units > HELD * lanes ||
        lanes_log2 != KILN_SUBGROUP_LOG2)
        return false;
    const kiln_element *x = (const kiln_element *)args->x + row * (uint64_t)args->x_stride + lane * UNIT;
    kiln_vector held[HELD];
    KILN_UNROLL
    for (uint32_t i = 0; i < HELD; i++) {
        held[i] = (kiln_vector){{0, 0, 0, 0}};
        if (lane + i * lanes < units) held[i] = kiln_vector_load(x + i * lanes * UNIT);
    }
    kiln_greatest_or_nan magnitude = kiln_greatest_or_nan_of(held[0]);
    KILN_UNROLL
    for (uint32_t i = 1; i < HELD; i++)
        kiln_greatest_or_nan_take(&magnitude, held[i]);
    const uint32_t bits = kiln_greatest_or_nan_bits(magnitude);
    const float greatest = reduce_subgroup(kiln_float(bits), lanes_log2, KILN_REDUCE_MAX);

    /* kiln_embedding_scale, and 1 over it: kiln_scale_quickly (codes_sm90a.h) says why. */
    const float start = 1.0f / 127.0f, near = greatest * start;
    const float scale = KILN_FMA(KILN_FMA(-127.0f, near, greatest), start, near);
    const float factor = kiln_reciprocal_step(scale, kiln_fast_reciprocal(scale));
    const bool usual = bits < 0x7f800000u && greatest >= 0x1p-64f && greatest <= 0x1p64f && ~kiln_bits(scale) << 9;
    if (kiln_subgroup_any(units && !usual)) return false;

    uint8_t *codes = args->codes + row * (uint64_t)args->codes_stride + lane * UNIT;
    float squares = 0.0f;
    KILN_UNROLL
    for (uint32_t i = 0; i < HELD; i++, codes += lanes * UNIT) {
        if (lane + i * lanes >= units) break;
        float values[UNIT], sums[UNIT];
        kiln_vector_values(values, held[i]);
        KILN_UNROLL
        for (uint32_t j = 0; j < UNIT; j++) {
            values[j] *= factor;
            sums[j] = values[j] + 0x1.8p23f; /* the integers are in the low bits */
            squares = KILN_FMA(values[j], values[j], squares);
        }
        *(kiln_eight_bytes *)codes =
            (kiln_eight_bytes){{kiln_float_bytes(sums, 1, 0), kiln_float_bytes(sums + 4, 1, 0)}};
    }
    if (!args->scales) return true;
    if (args->normalize) squares = reduce_subgroup(squares, lanes_log2, KILN_REDUCE_SUM);
    if (lane == 0 && units) args->scales[row] = args->normalize ? kiln_embedding_normalized(scale, squares) : scale;
    return true;
}
#endif

KILN_ENTRY(quantize_embedding, kiln_quantize_embedding_args) {
    KILN_SHARED float exchange[KILN_SUBGROUPS];
    const uint32_t lanes_log2 = args.shape.lanes_log2, lanes = 1u << lanes_log2, lane = kiln_thread() & (lanes - 1);
    const uint64_t row = (kiln_block() << (KILN_BLOCK_LOG2 - lanes_log2)) + (kiln_thread() >> lanes_log2);
    if (row - (kiln_thread() >> lanes_log2) >= (uint64_t)args.shape.rows) return; /* the whole block */
    const uint32_t units = row < (uint64_t)args.shape.rows ? args.units : 0;
#if !defined(KILN_PART_f32)
    if (quantize_held(&args, row, lane, units)) return;
#endif
    const kiln_element *x = (const kiln_element *)args.x + row * (uint64_t)args.x_stride;
    kiln_eight_bits kept = {};
    float values[UNIT], greatest = 0.0f, squares = 0.0f, scale = 1.0f;
    if (lane < units) kept = take_unit(x, lane, &args.shape);

    if (args.code_type != KILN_CODE_BINARY) { /* by all threads, including those without a row */
        KILN_LOOP
        for (uint32_t unit = lane; unit < units; unit += lanes) {
            kiln_eight_values(values, unit == lane ? kept : take_unit(x, unit, &args.shape));
            KILN_UNROLL
            for (uint32_t i = 0; i < UNIT; i++)
                greatest = greater_of(greatest, values[i]);
        }
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
        greatest = __builtin_fabsf(greatest);
#endif
        scale = kiln_embedding_scale(kiln_reduce(greatest, lanes_log2, exchange, KILN_REDUCE_MAX), args.smax);
    }
    const float factor = 1.0f / scale;
    uint8_t *codes = args.codes + row * (uint64_t)args.codes_stride;
    KILN_LOOP
    for (uint32_t unit = lane; unit < units; unit += lanes) {
        kiln_eight_values(values, unit == lane ? kept : take_unit(x, unit, &args.shape));
        KILN_UNROLL
        for (uint32_t i = 0; i < UNIT; i++)
            values[i] *= factor;
        put_unit(&args, codes, unit, codes_of_unit(values, args.smax, args.code_type));
        if (args.code_type == KILN_CODE_BINARY) continue;
        KILN_UNROLL
        for (uint32_t i = 0; i < UNIT; i++)
            squares = KILN_FMA(values[i], values[i], squares);
    }
    if (!args.scales) return;
    if (args.normalize) squares = kiln_reduce(squares, lanes_log2, exchange, KILN_REDUCE_SUM);
    if (lane == 0 && units) args.scales[row] = args.normalize ? kiln_embedding_normalized(scale, squares) : scale;
}
