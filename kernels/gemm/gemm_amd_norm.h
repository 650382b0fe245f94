/* gemm of up to 16 rows that are normalised, and may be gated, in one launch by the matrix units of AMD chips, of bf16:
 * gemm_mma_norm_16. A block does 16 columns of d, or 8 of a gated product, whose rows of b are 8 for the gates and 8
 * for what they are multiplied with. Its waves share k, of which each takes GROUP chunks at a time, and add up their
 * sums in LDS. Nothing else goes through LDS: lanes load their parts of rows of both factors, and of the weights, as
 * the unit takes them, the next group while this one is multiplied. Rows of a are multiplied with the weights and
 * rounded once; the squares of what they were are added up in f32, and the sums divided by the root at the end.
 *
 * Floor: one read of b. Not measured. Simulated, 16 rows, 64 columns and k of 4096, gated, on gfx942, gfx1100 and
 * gfx1201: 5114, 7732 and 5274 instructions of a lane for each element of d in one launch, 10375, 10151 and 9961 in
 * four by way of the workspace. 8 rows: 10228, 15232 and 10548, by gemm_rows_fused 18916, 21392 and 20980. A row alone
 * took 1.7 to 2.3 times the instructions of that, so that up to 3 rows stay with it. No conflicts.
 * Includers define `few`, a chip's unit for products of 16 x 16:
 *   WAVE, ELEMENTS   lanes of a wave; elements of a product that a lane has, of column lane % 16 and row_of(lane, i)
 *   PARTS            vectors that make a chunk of a row: a lane has vector lane / 16 of row lane % 16
 *   multiply(a, b, sums)
 * Test: build/tests/ops/gemm_fused_test. Bench: build/kiln bench gemm */
#ifndef KILN_KERNELS_GEMM_AMD_NORM_H
#define KILN_KERNELS_GEMM_AMD_NORM_H

#include "kernels/gemm/gemm_portable.h"

#ifdef KILN_PART_bf16
enum : uint32_t {
    FEW_SIDE = 16,                        /* rows and columns */
    FEW_WAVES = KILN_BLOCK / few::WAVE,   /* of a block */
    CHUNK = few::PARTS * KILN_VECTOR,     /* elements of k */
    GROUP = 4,                            /* chunks */
    GROUP_DEPTH = GROUP * CHUNK,          /* elements of k */
    ROUND_DEPTH = FEW_WAVES * GROUP_DEPTH /* of all waves */
};

/* A lane's part of rows, from its vector on. */
struct norm_source {
    const kiln_element *a, *b, *weight;
    uint32_t own;
};

/* A lane's vectors of a group. */
struct norm_group {
    kiln_vector a[GROUP], b[GROUP], weight[GROUP];
};

/* What the waves of a block have of the sums, and of the squares of a row. */
struct norm_shared {
    float sums[FEW_WAVES][KILN_BLOCK], squares[FEW_WAVES][few::WAVE];
};

KILN_INLINE norm_source norm_start(const kiln_gemm_fused_args &args, uint32_t batch, uint64_t first) {
    const kiln_gemm_args &plain = args.plain;
    const uint32_t lane = kiln_thread() % few::WAVE, own = lane / FEW_SIDE * KILN_VECTOR;
    const uint64_t last = (uint64_t)plain.n - 1;
    uint64_t row = lane % FEW_SIDE, col = first + lane % FEW_SIDE % (args.halves ? FEW_SIDE / 2 : FEW_SIDE);
    if (row >= (uint64_t)plain.m) row = (uint64_t)plain.m - 1; /* beyond the last: that once more, for nothing */
    if (col > last) col = last;
    if (args.halves && lane % FEW_SIDE >= FEW_SIDE / 2) col += (uint64_t)plain.n;
    const kiln_element *a = (const kiln_element *)plain.a + batch * plain.a_batch_stride;
    const kiln_element *b = (const kiln_element *)plain.b + batch * plain.b_batch_stride;
    return {a + row * plain.a_stride + own, b + col * plain.b_stride + own,
            (const kiln_element *)args.norm_weight + own, own};
}

/* Loads the group from k on, which begins before `end`; zeros from there on. */
KILN_INLINE void norm_load(norm_group *to, const norm_source &from, uint32_t k, uint32_t end) {
    if (k + GROUP_DEPTH <= end) {
        KILN_UNROLL
        for (uint32_t c = 0; c < GROUP; c++) {
            to->b[c] = kiln_vector_load(from.b + k + c * CHUNK);
            to->a[c] = kiln_vector_load(from.a + k + c * CHUNK);
            to->weight[c] = kiln_vector_load(from.weight + k + c * CHUNK);
        }
        return;
    }
    KILN_UNROLL
    for (uint32_t c = 0; c < GROUP; c++) {
        const uint32_t at = k + c * CHUNK;
        to->b[c] = to->a[c] = to->weight[c] = {};
        if (at + from.own >= end) continue;
        to->b[c] = kiln_vector_load(from.b + at);
        to->a[c] = kiln_vector_load(from.a + at);
        to->weight[c] = kiln_vector_load(from.weight + at);
    }
}

/* Adds the products of a group, and the squares of the lane's elements of a. */
KILN_INLINE void norm_add(const norm_group &of, few::sums *sums, float *squares) {
    KILN_UNROLL
    for (uint32_t c = 0; c < GROUP; c++) {
        kiln_vector a;
        float values[KILN_VECTOR], factors[KILN_VECTOR];
        kiln_vector_values(values, of.a[c]);
        kiln_vector_values(factors, of.weight[c]);
        KILN_UNROLL
        for (uint32_t i = 0; i < KILN_VECTOR; i++) {
            *squares = KILN_FMA(values[i], values[i], *squares);
            values[i] *= factors[i];
        }
        a = kiln_vector_of(values);
        *sums = few::multiply(a, of.b[c], *sums);
    }
}

KILN_ENTRY(gemm_mma_norm_16, kiln_gemm_fused_args) {
    KILN_SHARED norm_shared shared;
    const kiln_gemm_args &plain = args.plain;
    const uint32_t lane = kiln_thread() % few::WAVE, batch = (uint32_t)kiln_block(), end = (uint32_t)plain.k;
    const uint32_t wave = (uint32_t)__builtin_amdgcn_readfirstlane((int)(kiln_thread() / few::WAVE));
    const uint32_t columns = args.halves ? FEW_SIDE / 2 : FEW_SIDE; /* of d */
    const uint64_t first = (uint64_t)kiln_tile() * columns;
    if (batch >= plain.batch) return; /* the whole block */
    const norm_source source = norm_start(args, batch, first);
    norm_group even, odd;
    few::sums sums = {};
    float squares = 0.0f;
    uint32_t k = wave * GROUP_DEPTH;
    if (k < end) norm_load(&even, source, k, end);
    KILN_LOOP
    while (k < end) {
        if (k + ROUND_DEPTH < end) norm_load(&odd, source, k + ROUND_DEPTH, end);
        norm_add(even, &sums, &squares);
        k += ROUND_DEPTH;
        if (k >= end) break;
        if (k + ROUND_DEPTH < end) norm_load(&even, source, k + ROUND_DEPTH, end);
        norm_add(odd, &sums, &squares);
        k += ROUND_DEPTH;
    }

    KILN_UNROLL
    for (uint32_t r = 0; r < few::ELEMENTS; r++)
        shared.sums[wave][r * few::WAVE + lane] = sums[r];
    shared.squares[wave][lane] = squares;
    kiln_barrier();
    const uint32_t place = kiln_thread(), row = few::row_of(lane, place / few::WAVE);
    float sum = 0.0f, square = 0.0f;
    KILN_UNROLL
    for (uint32_t w = 0; w < FEW_WAVES; w++) {
        sum += shared.sums[w][place];
        KILN_UNROLL
        for (uint32_t part = 0; part < few::PARTS; part++)
            square += shared.squares[w][part * FEW_SIDE + row];
    }
    sum *= norm_scale(args, square);
    const float up = kiln_shuffle_xor(sum, FEW_SIDE / 2);
    const uint64_t col = first + lane % FEW_SIDE;
    if (row >= (uint32_t)plain.m || lane % FEW_SIDE >= columns || col >= (uint64_t)plain.n) return;
    if (args.halves)
        finish_halves(&plain, sum, up, batch, row, col);
    else
        finish_element(&plain, sum, batch, row, col);
}
#endif

#endif
