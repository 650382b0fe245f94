/* add_gelu: y = gelu(x + bias), in f32, with one rounding.
 *
 * A block computes a tile of several rows. 1 to 256 threads share a row, and each takes up to two vectors of 16 bytes,
 * which it reads before it uses one, so that short rows leave no thread idle and the memory's latency is waited for
 * once. Without 16-byte alignment, and at a row's end, consecutive threads take consecutive elements.
 *
 * All forms of GELU are t sigmoid(t P(t^2)), whose coefficients come with the arguments: one code path, no branch.
 *
 * Floor: one read and one write of the tensor at memory bandwidth, 8 bytes an element of f32, 4 of 16 bits; bias comes
 * from the caches. docs/kernel-report.md has the instruction counts. Measured (H100 80GB HBM3, driver 580.159.04,
 * 2026-11-26; bf16, [16384, 4096], a copy of it 90.2 us): 91.1 us; before, with four vectors one after the other, 93.8
 * us. Test: build/tests/ops/add_gelu_test. Bench: build/kiln bench add_gelu */
#include "kernels/add_gelu/add_gelu_args.h"
#include "kernels/common/packed.h"
#include "kernels/common/span.h"

enum { AHEAD = 2 }; /* vectors that a thread has in flight */

/* kiln_fast_gated of two elements in fewer instructions. On NVIDIA t^2 is limited to the square of the bound, beyond
 * which the sigmoid is 0 or 1, and t to a finite number, whose product with 0 is -0. AMD's median limits t at once, and
 * its compiler joins the last product with the conversion to f16, which adds +0. */
KILN_INLINE void gate_two(float *t, float bound, const float *powers) {
    float c[2], arguments[2];
#if defined(__CUDACC__)
    const kiln_packed factor = kiln_pack(t[0], t[1]);
    float squares[2];
    kiln_unpack(squares, kiln_packed_mul(factor, factor));
    const kiln_packed square = kiln_pack(fminf(squares[0], bound * bound), fminf(squares[1], bound * bound));
    KILN_UNROLL
    for (int i = 0; i < 2; i++)
        c[i] = kiln_fast_max(t[i], -0x1p127f);
#else
    KILN_UNROLL
    for (int i = 0; i < 2; i++)
        c[i] = kiln_fast_clamp(t[i], bound);
    const kiln_packed factor = kiln_pack(c[0], c[1]), square = kiln_packed_mul(factor, factor);
#endif
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
        t[i] = c[i] * sigmoid;
#else
        t[i] = t[i] < -bound ? -0.0f : t[i] * sigmoid;
#endif
    }
}

KILN_ENTRY(add_gelu, kiln_add_gelu_args) {
    kiln_span s = kiln_span_of(&args.shape);
    if (!s.count) return;
    const kiln_element *x = kiln_span_of_input(s, args.x, args.x_stride);
    const kiln_element *bias = args.bias ? (const kiln_element *)args.bias + s.start : 0;
    kiln_element *y = kiln_span_in(s, args.y, args.y_stride);

    float powers[KILN_ADD_GELU_COEFFICIENTS];
    kiln_powers_of(powers, args.coefficients, KILN_ADD_GELU_COEFFICIENTS);

    KILN_LOOP
    for (uint32_t begin = s.first; begin < s.whole; begin += AHEAD * s.lanes) {
        kiln_vector in[AHEAD], add[AHEAD];
        KILN_UNROLL
        for (uint32_t k = 0, vector = begin; k < AHEAD; k++, vector += s.lanes)
            if (vector < s.whole) in[k] = kiln_vector_load(x + vector * KILN_VECTOR);
        if (bias) {
            KILN_UNROLL
            for (uint32_t k = 0, vector = begin; k < AHEAD; k++, vector += s.lanes)
                if (vector < s.whole) add[k] = kiln_vector_load(bias + vector * KILN_VECTOR);
        }
        KILN_UNROLL
        for (uint32_t k = 0, vector = begin; k < AHEAD; k++, vector += s.lanes) {
            if (vector >= s.whole) break;
            float values[KILN_VECTOR], addends[KILN_VECTOR];
            kiln_vector_values(values, in[k]);
            if (bias) {
                kiln_vector_values(addends, add[k]);
                KILN_UNROLL
                for (int i = 0; i < KILN_VECTOR; i++)
                    values[i] += addends[i];
            }
            KILN_UNROLL
            for (int i = 0; i < KILN_VECTOR; i += 2)
                gate_two(&values[i], args.bound, powers);
            kiln_vector_store(y + vector * KILN_VECTOR, kiln_vector_of(values));
        }
    }
    KILN_LOOP
    KILN_FOR_REST(s, i) {
        float addend = bias ? kiln_element_to_f32(bias[i]) : 0.0f;
        float t[2] = {kiln_element_to_f32(x[i]) + addend, 0.0f};
        gate_two(t, args.bound, powers);
        y[i] = kiln_element_from_f32(t[0]);
    }
}
