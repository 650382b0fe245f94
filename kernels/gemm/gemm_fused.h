/* gemm's kernels for calls that normalise the rows of a, gate the result, or both; for any chip and any alignment.
 *
 * gemm_rows_fused: gemm_rows in one launch with both. The squares of a's rows are added up beside the products, whose
 * sums are divided by the root at the end: a is still read once. Of a gated product a subgroup does 2 columns, by 2
 * rows of b for the gates and 2 for what they are multiplied with.
 *
 * gemm_norm and gemm_gate: what comes before and after the product of more rows, in launches of their own, by way of
 * the workspace. A block normalises a row, which it reads a second time from a cache; a thread gates a vector.
 *
 * Floor: one read of b for gemm_rows_fused; one read and one write of a, and one read of the product and one write of
 * d. Not measured. */
#ifndef KILN_KERNELS_GEMM_FUSED_H
#define KILN_KERNELS_GEMM_FUSED_H

#include "kernels/common/math/root.h"
#include "kernels/common/reduce/reduce.h"
#include "kernels/common/values.h"
#include "kernels/gemm/gemm_fused_args.h"

KILN_INLINE float norm_scale(const kiln_gemm_fused_args &args, float squares) {
    return kiln_rsqrt(KILN_FMA(squares, args.mean, args.eps));
}

/* Writes an element of a gated product from the sums of its halves. */
KILN_INLINE void finish_halves(const kiln_gemm_args *args, float gate, float up, uint32_t batch, uint64_t row,
                               uint64_t col) {
    const kiln_element *bias = (const kiln_element *)args->bias;
    kiln_element *d = (kiln_element *)args->d;
    float gate_offset = 0.0f, up_offset = 0.0f;
    if (bias) {
        gate_offset = kiln_element_to_f32(bias[col]);
        up_offset = kiln_element_to_f32(bias[(uint64_t)args->n + col]);
    }
    d[batch * args->d_batch_stride + row * args->d_stride + col] =
        kiln_element_from_f32(finish(args, gate, 0.0f, gate_offset) * (KILN_FMA(args->scale, up, 0.0f) + up_offset));
}

KILN_ENTRY(gemm_rows_fused, kiln_gemm_fused_args) {
    enum { ROWS = KILN_GEMM_ROWS, COLUMNS = KILN_GEMM_COLUMNS };
    const kiln_gemm_args &plain = args.plain;
    uint32_t lane = kiln_thread() % KILN_SUBGROUP, batch = (uint32_t)kiln_block(), rows = (uint32_t)plain.m;
    const uint32_t each = args.halves ? COLUMNS / 2 : COLUMNS; /* columns of d */
    uint64_t first = ((uint64_t)kiln_tile() * (KILN_BLOCK / KILN_SUBGROUP) + kiln_thread() / KILN_SUBGROUP) * each;
    if (batch >= plain.batch) return; /* the whole block */
    const kiln_element *weight = (const kiln_element *)args.norm_weight;
    const kiln_element *a = (const kiln_element *)plain.a + batch * plain.a_batch_stride;
    const kiln_element *b = (const kiln_element *)plain.b + batch * plain.b_batch_stride, *columns[COLUMNS];
    float sums[ROWS][COLUMNS] = {{0.0f}}, squares[ROWS] = {0.0f};
    float left[KILN_VECTOR], right[COLUMNS][KILN_VECTOR], factors[KILN_VECTOR];
    KILN_UNROLL
    for (uint32_t c = 0; c < COLUMNS; c++) { /* beyond the last one: that once more, for nothing */
        uint64_t col = first + c % each, row = col < (uint64_t)plain.n ? col : (uint64_t)plain.n - 1;
        columns[c] = b + (c < each ? row : row + (uint64_t)plain.n) * (uint64_t)plain.b_stride;
    }
    KILN_UNROLL
    for (uint32_t i = 0; i < KILN_VECTOR; i++)
        factors[i] = 1.0f;

    uint64_t whole = plain.wide ? (uint64_t)plain.k / KILN_VECTOR * KILN_VECTOR : 0;
    KILN_LOOP
    for (uint64_t k = lane * KILN_VECTOR; k < whole; k += KILN_SUBGROUP * KILN_VECTOR) {
        KILN_UNROLL
        for (uint32_t c = 0; c < COLUMNS; c++)
            widen(kiln_vector_load(columns[c] + k), right[c]);
        if (weight) widen(kiln_vector_load(weight + k), factors);
        KILN_UNROLL
        for (uint32_t r = 0; r < ROWS; r++) {
            if (r >= rows) continue;
            widen(kiln_vector_load(a + r * plain.a_stride + k), left);
            KILN_UNROLL
            for (uint32_t i = 0; i < KILN_VECTOR; i++) {
                squares[r] = KILN_FMA(left[i], left[i], squares[r]);
                left[i] *= factors[i];
            }
            KILN_UNROLL
            for (uint32_t c = 0; c < COLUMNS; c++) {
                KILN_UNROLL
                for (uint32_t i = 0; i < KILN_VECTOR; i++)
                    sums[r][c] = KILN_FMA(left[i], right[c][i], sums[r][c]);
            }
        }
    }
    KILN_LOOP
    for (uint64_t k = whole + lane; k < (uint64_t)plain.k; k += KILN_SUBGROUP) {
        const float factor = weight ? kiln_element_to_f32(weight[k]) : 1.0f;
        KILN_UNROLL
        for (uint32_t r = 0; r < ROWS; r++) {
            if (r >= rows) continue;
            float value = kiln_element_to_f32(a[r * plain.a_stride + k]);
            squares[r] = KILN_FMA(value, value, squares[r]);
            value *= factor;
            KILN_UNROLL
            for (uint32_t c = 0; c < COLUMNS; c++)
                sums[r][c] = KILN_FMA(value, kiln_element_to_f32(columns[c][k]), sums[r][c]);
        }
    }

    /* Each thread ends up with the sum of its lane, and of its row the sum of squares. */
    float result = 0.0f, square = 0.0f;
    KILN_UNROLL
    for (uint32_t r = 0; r < ROWS; r++) {
        if (r >= rows) continue;
        KILN_UNROLL
        for (uint32_t c = 0; c <= COLUMNS; c++) {
            float sum = c < COLUMNS ? sums[r][c % COLUMNS] : squares[r];
            KILN_UNROLL
            for (uint32_t mask = 1; mask < KILN_SUBGROUP; mask *= 2)
                sum += kiln_shuffle_xor(sum, mask);
            if (c < COLUMNS)
                result = lane == r * COLUMNS + c ? sum : result;
            else
                square = lane / COLUMNS == r ? sum : square;
        }
    }
    if (weight) result *= norm_scale(args, square);
    const float up = kiln_shuffle_xor(result, COLUMNS / 2);
    uint64_t row = lane / COLUMNS, col = first + lane % COLUMNS;
    if (row >= rows || lane % COLUMNS >= each || col >= (uint64_t)plain.n) return;
    if (args.halves)
        finish_halves(&plain, result, up, batch, row, col);
    else
        finish_element(&plain, result, batch, row, col);
}

KILN_ENTRY(gemm_norm, kiln_gemm_fused_args) {
    KILN_SHARED float exchange[KILN_SUBGROUPS];
    const kiln_gemm_args &plain = args.plain;
    const uint64_t row = kiln_block(), batch = row / (uint64_t)plain.m, k_end = (uint64_t)plain.k;
    if (batch >= plain.batch) return; /* the whole block */
    const kiln_element *weight = (const kiln_element *)args.norm_weight;
    const kiln_element *a = (const kiln_element *)plain.a;
    a += batch * (uint64_t)plain.a_batch_stride + (row - batch * (uint64_t)plain.m) * (uint64_t)plain.a_stride;
    kiln_element *packed = (kiln_element *)args.packed + row * k_end;
    const uint64_t whole = plain.wide ? k_end / KILN_VECTOR * KILN_VECTOR : 0;
    float sum = 0.0f, values[KILN_VECTOR], factors[KILN_VECTOR];
    KILN_LOOP
    for (uint64_t k = kiln_thread() * KILN_VECTOR; k < whole; k += KILN_BLOCK * KILN_VECTOR) {
        kiln_vector_values(values, kiln_vector_load(a + k));
        KILN_UNROLL
        for (uint32_t i = 0; i < KILN_VECTOR; i++)
            sum = KILN_FMA(values[i], values[i], sum);
    }
    KILN_LOOP
    for (uint64_t k = whole + kiln_thread(); k < k_end; k += KILN_BLOCK) {
        const float value = kiln_element_to_f32(a[k]);
        sum = KILN_FMA(value, value, sum);
    }
    const float scale = norm_scale(args, kiln_reduce(sum, KILN_BLOCK_LOG2, exchange, KILN_REDUCE_SUM));
    KILN_LOOP
    for (uint64_t k = kiln_thread() * KILN_VECTOR; k < whole; k += KILN_BLOCK * KILN_VECTOR) {
        kiln_vector_values(values, kiln_vector_load(a + k));
        kiln_vector_values(factors, kiln_vector_load(weight + k));
        KILN_UNROLL
        for (uint32_t i = 0; i < KILN_VECTOR; i++)
            values[i] = values[i] * scale * factors[i];
        kiln_vector_store(packed + k, kiln_vector_of(values));
    }
    KILN_LOOP
    for (uint64_t k = whole + kiln_thread(); k < k_end; k += KILN_BLOCK)
        packed[k] = kiln_element_from_f32(kiln_element_to_f32(a[k]) * scale * kiln_element_to_f32(weight[k]));
}

KILN_INLINE float gate_of(const kiln_gemm_args *args, float gate, float up) {
    if (args->gated) gate = kiln_gated(gate, args->bound, args->coefficients, KILN_GEMM_COEFFICIENTS);
    return gate * up;
}

KILN_ENTRY(gemm_gate, kiln_gemm_fused_args) {
    const kiln_gemm_args &plain = args.plain;
    const uint64_t col = ((uint64_t)kiln_tile() * KILN_BLOCK + kiln_thread()) * KILN_VECTOR, n = (uint64_t)plain.n;
    const uint64_t row = kiln_block(), batch = row / (uint64_t)plain.m;
    if (col >= n || batch >= plain.batch) return;
    const kiln_element *gates = (const kiln_element *)args.packed + row * 2 * n + col, *ups = gates + n;
    kiln_element *d = (kiln_element *)plain.d + col;
    d += batch * (uint64_t)plain.d_batch_stride + (row - batch * (uint64_t)plain.m) * (uint64_t)plain.d_stride;
    float values[KILN_VECTOR], factors[KILN_VECTOR];
    if (plain.wide) {
        kiln_vector_values(values, kiln_vector_load(gates));
        kiln_vector_values(factors, kiln_vector_load(ups));
        KILN_UNROLL
        for (uint32_t i = 0; i < KILN_VECTOR; i++)
            values[i] = gate_of(&plain, values[i], factors[i]);
        kiln_vector_store(d, kiln_vector_of(values));
        return;
    }
    KILN_LOOP
    for (uint32_t i = 0; i < KILN_VECTOR && col + i < n; i++)
        d[i] = kiln_element_from_f32(gate_of(&plain, kiln_element_to_f32(gates[i]), kiln_element_to_f32(ups[i])));
}

#endif
