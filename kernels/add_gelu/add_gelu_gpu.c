/* add_gelu: y = gelu(x + bias), in f32, with one rounding.
 *
 * A block computes a tile of several rows. 1 to 256 threads share a row, and each takes up to two vectors of 16 bytes,
 * which it reads before it uses one, so that short rows leave no thread idle and the memory's latency is waited for
 * once. Without 16-byte alignment, and at a row's end, consecutive threads take consecutive elements.
 *
 * All forms of GELU are t sigmoid(t P(t^2)), whose coefficients come with the arguments: one code path, no branch.
 *
 * Floor: one read and one write of the tensor at memory bandwidth, 8 bytes an element of f32, 4 of 16 bits; bias comes
 * from the caches. Instructions in 16 bits take longer than 0.6 of the memory's time on sm_100 (0.66 to 0.68) and on
 * the early chips of gfx9 (0.72 to 0.75; predicted): P of erf has 9 coefficients, and a third are those of a thread's
 * begin, which four vectors for each thread would share; that cost an H100 1 to 2 % of the time. Measured (H100 80GB
 * HBM3, driver 580.159.04, 2026-11-26; bf16, [16384, 4096], a copy of it 90.2 us): 91.1 us; before, with four vectors
 * one after the other, 93.8 us. Test: build/tests/ops/add_gelu_test. Bench: build/kiln bench add_gelu */
#include "kernels/add_gelu/add_gelu_args.h"
#include "kernels/common/math/packed.h"
#include "kernels/common/span.h"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000 && !defined(KILN_PART_f32)
#include "kernels/arch/sm100.h"
#endif

enum { AHEAD = 2 }; /* vectors that a thread has, all in flight */

/* kiln_fast_gated of two elements in fewer instructions: t need not be limited to the bound, since P of the greatest
 * squares is great, too, and the sigmoid 0 or 1. Of -inf the factor of 0 is a finite number, whose product is -0. AMD's
 * compiler joins the last product with the conversion to f16, which adds +0. */
KILN_INLINE void gate_two(float *t, float bound, const float *powers) {
    float arguments[2];
    const kiln_packed factor = kiln_pack(t[0], t[1]), square = kiln_packed_mul(factor, factor);
    enum { LAST = KILN_ADD_GELU_COEFFICIENTS - 1 };
    kiln_packed p = kiln_pack(powers[LAST], powers[LAST]);
    KILN_UNROLL
    for (int i = LAST - 1; i >= 0; i--)
        p = kiln_packed_fma(p, square, kiln_pack(powers[i], powers[i]));
    kiln_unpack(arguments, kiln_packed_mul(factor, p));
    KILN_UNROLL
    for (int i = 0; i < 2; i++) {
        const float sigmoid = kiln_fast_reciprocal(1.0f + kiln_fast_exp2(arguments[i]));
#if defined(__CUDACC__)
        t[i] = kiln_fast_max(t[i], -0x1p127f) * sigmoid;
#else
        t[i] = t[i] < -bound ? -0.0f : t[i] * sigmoid;
#endif
    }
}

/* Adds a vector's elements to sums. */
KILN_INLINE void add_vector(float *sums, kiln_vector vector) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000 && !defined(KILN_PART_f32)
    KILN_UNROLL
    for (int i = 0; i < 4; i++)
#if defined(KILN_PART_f16)
        kiln_sm100_add_f16x2(&sums[2 * i], vector.words[i]);
#else
        kiln_sm100_add_bf16x2(&sums[2 * i], vector.words[i]);
#endif
#else
    float addends[KILN_VECTOR];
    kiln_vector_values(addends, vector);
    KILN_UNROLL
    for (int i = 0; i < KILN_VECTOR; i++)
        sums[i] += addends[i];
#endif
}

/* The thread's vectors, which are `step` elements apart. */
KILN_INLINE void put_vectors(const kiln_add_gelu_args *args, kiln_element *y, const kiln_element *x,
                             const kiln_element *bias, uint32_t count, uint32_t step, const float *powers) {
    kiln_vector in[AHEAD], add[AHEAD];
    KILN_UNROLL
    for (uint32_t k = 0; k < AHEAD; k++)
        if (k < count) in[k] = kiln_vector_load(x + k * step);
    if (args->bias) {
        KILN_UNROLL
        for (uint32_t k = 0; k < AHEAD; k++)
            if (k < count) add[k] = kiln_vector_load(bias + k * step);
    }
    KILN_UNROLL
    for (uint32_t k = 0; k < AHEAD; k++) {
        if (k >= count) break;
        float values[KILN_VECTOR];
        kiln_vector_values(values, in[k]);
        if (args->bias) add_vector(values, add[k]);
        KILN_UNROLL
        for (int i = 0; i < KILN_VECTOR; i += 2)
            gate_two(&values[i], args->bound, powers);
        kiln_vector_store(y + k * step, kiln_vector_of(values));
    }
}

KILN_ENTRY(add_gelu, kiln_add_gelu_args) {
    kiln_span s = kiln_span_of(&args.shape);
    if (!s.count) return;
    const kiln_element *x = kiln_span_of_input(s, args.x, args.x_stride);
    const kiln_element *bias = (const kiln_element *)args.bias + s.start;
    kiln_element *y = kiln_span_in(s, args.y, args.y_stride);

    float powers[KILN_ADD_GELU_COEFFICIENTS];
    kiln_powers_of(powers, args.coefficients, KILN_ADD_GELU_COEFFICIENTS);

    if (s.first < s.whole) {
        const uint32_t at = s.first * KILN_VECTOR;
        put_vectors(&args, y + at, x + at, bias + at, s.first + s.lanes < s.whole ? 2 : 1, s.lanes * KILN_VECTOR,
                    powers);
    }
    KILN_LOOP
    KILN_FOR_REST(s, i) {
        float addend = args.bias ? kiln_element_to_f32(bias[i]) : 0.0f;
        float t[2] = {kiln_element_to_f32(x[i]) + addend, 0.0f};
        gate_two(t, args.bound, powers);
        y[i] = kiln_element_from_f32(t[0]);
    }
}
