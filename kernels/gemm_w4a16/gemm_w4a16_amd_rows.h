/* gemm_w4a16 by the matrix units of AMD chips, f16 and bf16, of canonical weights and up to 16 rows of a:
 * gemm_w4a16_mma_few, where rows are 16-byte aligned and a group is a multiple of what a wave does at once, without
 * norm_weight, pre_scale and gates, which the portable kernels do (gemm_w4a16_gpu.c).
 *
 * A block does 16 rows of weights, of which its waves share k, 128 of it in a turn: CHUNKS times PARTS lanes of a row
 * read 16 bytes of it each, 32 integers, which are on their way while those of the turn before are multiplied, and as
 * many elements of a row of a, straight from memory, while the integers become numbers. Integers are numbers of 16 bits
 * exactly, and products are added over a turn for themselves; their sum times the scale is added in f32, and where
 * there are zeros, the sum of a, which products with ones make, times the zero. So weights are not rounded. At the end
 * the waves' sums meet in LDS.
 *
 * Floor: one read of the weights, half a byte an element. Not measured. Simulated, groups of 128 without zeros: a block
 * reads its weights, the rows of a, and a scale of each thread for 128 of k; no bank is met twice; and so many
 * instructions of a wave are there for each weight that one of its lanes reads, of the portable kernel for one row of a
 * and for eight:
 *
 *           f16   bf16   portable
 *   gfx90a  4.6   5.3    7.7   16.7
 *   gfx942  4.3   5.0    7.2   15.7
 *   gfx11   5.9   8.8    10.4  24.4
 *   gfx12   3.7   5.1    10.4  24.4
 *
 * Includers define `few`, a chip's matrix unit:
 *   WAVE, PARTS, CHUNKS    lanes of a wave; lanes that have different elements of a row, as often as CHUNKS in a turn
 *   sums                   a lane's elements of a product, ELEMENTS of them
 *   multiply(weights, a, sums)  adds the products of 32 elements of a lane's row of weights with those of its row of a
 *   row_of(lane, element): its row of weights; its row of a is lane % 16 */
#ifndef KILN_KERNELS_GEMM_W4A16_AMD_ROWS_H
#define KILN_KERNELS_GEMM_W4A16_AMD_ROWS_H

#include "kernels/common/tuned.h"
#include "kernels/gemm_w4a16/gemm_w4a16_amd_numbers.h"

enum : uint32_t {
    FEW_ROWS = 16, /* of a, and of weights */
    FEW_VECTORS = KILN_W4A16_CHUNK / KILN_VECTOR
};

/* 32 elements of a row as numbers. */
struct few_numbers {
    kiln_vector of[FEW_VECTORS];
};

/* What a lane has of a turn beside its elements of a. */
template <class few> struct few_turn {
    kiln_vector codes[few::CHUNKS];
    uint32_t scales[few::ELEMENTS], zeros[few::ELEMENTS];
};

/* Where a lane reads, at the beginning of k. */
template <class few> struct few_source {
    const uint8_t *codes;
    const kiln_element *a;
    uint64_t scales[few::ELEMENTS];
};

template <class few>
KILN_INLINE void few_load(few_turn<few> *to, const few_source<few> &from, const kiln_gemm_w4a16_args &args,
                          uint32_t k) {
    const uint64_t group = (k >> args.group_log2) * (uint64_t)args.scale_group_step;
    KILN_UNROLL
    for (uint32_t c = 0; c < few::CHUNKS; c++) {
        const uint32_t at = k + c * few::PARTS * KILN_W4A16_CHUNK;
        to->codes[c] = *(const kiln_vector *)(const void *)(from.codes + at / 2);
    }
    KILN_UNROLL
    for (uint32_t e = 0; e < few::ELEMENTS; e++)
        to->scales[e] = ((const kiln_element *)args.scales)[from.scales[e] + group];
    if (!args.zeros) return;
    KILN_UNROLL
    for (uint32_t e = 0; e < few::ELEMENTS; e++)
        to->zeros[e] = ((const kiln_element *)args.zeros)[from.scales[e] + group];
}

template <class few> KILN_INLINE void few_load_a(few_numbers *to, const few_source<few> &from, uint32_t k) {
    KILN_UNROLL
    for (uint32_t i = 0; i < few::CHUNKS * FEW_VECTORS; i++) {
        const uint32_t at = k + i / FEW_VECTORS * few::PARTS * KILN_W4A16_CHUNK + i % FEW_VECTORS * KILN_VECTOR;
        to[i / FEW_VECTORS].of[i % FEW_VECTORS] = kiln_vector_load(from.a + at);
    }
}

template <class few>
KILN_INLINE void few_multiply(float *sums, const few_turn<few> &turn, const few_numbers *a,
                              const kiln_gemm_w4a16_args &args) {
    few_numbers numbers;
    typename few::sums products = {};
    KILN_UNROLL
    for (uint32_t c = 0; c < few::CHUNKS; c++) {
        KILN_UNROLL
        for (uint32_t i = 0; i < FEW_VECTORS; i++)
            numbers.of[i] = numbers_of(turn.codes[c].words[i]);
        products = few::multiply(numbers, a[c], products);
    }
    KILN_UNROLL
    for (uint32_t e = 0; e < few::ELEMENTS; e++)
        sums[e] = KILN_FMA(products[e], kiln_element_to_f32((kiln_element)turn.scales[e]), sums[e]);
    if (!args.zeros) return;
    KILN_UNROLL
    for (uint32_t i = 0; i < FEW_VECTORS; i++)
        numbers.of[i] = {{ONES, ONES, ONES, ONES}};
    products = {};
    KILN_UNROLL
    for (uint32_t c = 0; c < few::CHUNKS; c++)
        products = few::multiply(numbers, a[c], products);
    KILN_UNROLL
    for (uint32_t e = 0; e < few::ELEMENTS; e++)
        sums[e] = KILN_FMA(products[e], kiln_element_to_f32((kiln_element)turn.zeros[e]), sums[e]);
}

template <class few> KILN_INLINE void gemm_w4a16_few(const kiln_gemm_w4a16_args &args) {
    enum : uint32_t {
        WAVES = KILN_BLOCK / few::WAVE,
        DEPTH_OF_WAVE = few::CHUNKS * few::PARTS * KILN_W4A16_CHUNK,
        DEPTH_OF_ALL = WAVES * DEPTH_OF_WAVE,
        RESULTS = FEW_ROWS * FEW_ROWS
    };
    static_assert(RESULTS == KILN_BLOCK && few::ELEMENTS * few::WAVE == RESULTS, "a result for each thread");
    KILN_SHARED float exchange[WAVES][RESULTS];
    if (kiln_block()) return; /* the whole block */
    const uint32_t lane = kiln_thread() % few::WAVE, wave = kiln_thread() / few::WAVE;
    const uint32_t part = lane / FEW_ROWS % few::PARTS, end = (uint32_t)args.k;
    const uint64_t first = (uint64_t)kiln_tile() * FEW_ROWS, last = (uint64_t)args.n - 1;
    const uint64_t beside = first + lane % FEW_ROWS, row = beside < last ? beside : last;
    few_source<few> source;
    source.codes = args.weights + row * ((uint64_t)args.k / 2) + part * (KILN_W4A16_CHUNK / 2);
    source.a = (const kiln_element *)args.a + lane % FEW_ROWS * (uint64_t)args.a_stride + part * KILN_W4A16_CHUNK;
    KILN_UNROLL
    for (uint32_t e = 0; e < few::ELEMENTS; e++) {
        const uint64_t of = first + few::row_of(lane, e);
        source.scales[e] = (of < last ? of : last) * (uint64_t)args.scale_row_step;
    }

    float sums[few::ELEMENTS] = {};
    few_turn<few> turn, next;
    few_numbers of_a[few::CHUNKS] = {}; /* zeros where there is no row */
    const bool has_a = lane % FEW_ROWS < (uint32_t)args.m;
    uint32_t k = wave * DEPTH_OF_WAVE;
    if (k < end) few_load(&next, source, args, k);
    KILN_LOOP
    for (; k < end; k += DEPTH_OF_ALL) {
        turn = next;
        if (has_a) few_load_a(of_a, source, k);
        if (k + DEPTH_OF_ALL < end) few_load(&next, source, args, k + DEPTH_OF_ALL);
        __builtin_amdgcn_sched_barrier(0); /* else what was loaded is waited for before products are made */
        few_multiply(sums, turn, of_a, args);
    }
    KILN_UNROLL
    for (uint32_t e = 0; e < few::ELEMENTS; e++)
        exchange[wave][e * few::WAVE + lane] = sums[e];
    kiln_barrier();
    const uint64_t d_row = lane % FEW_ROWS, d_col = first + few::row_of(lane, wave);
    float sum = 0.0f;
    KILN_UNROLL
    for (uint32_t w = 0; w < WAVES; w++)
        sum += exchange[w][kiln_thread()];
    if (d_row < (uint64_t)args.m && d_col <= last) finish_element(&args, sum, d_row, d_col);
}

#endif
