/* gemm_w4a16 by the matrix units of AMD chips, f16 and bf16, of canonical weights and up to 16 rows of a:
 * gemm_w4a16_mma_few, where rows are 16-byte aligned and k is a multiple of what a wave does at once; the portable
 * kernels do the rest (gemm_w4a16_gpu.c).
 *
 * A block does 16 rows of weights, or 8 of gates and the 8 that they are for. Its waves share k, STEP of it in a turn:
 * lanes of a row read parts of it, up to 16 bytes at a time, 32 integers, or their share of 32 where groups are shorter
 * than a turn. Those of the next turn are on their way while a turn's are multiplied. Rows of a come straight from
 * memory or, where they are normalised or have pre_scale, from LDS, where the block writes them, rounded once, all of k
 * or a part of it at a time. Weights are the second factor of a product, so that a lane's sums are of one row of
 * weights: it reads one scale and one zero for a group.
 *
 * Integers are numbers of 16 bits exactly: f16 as they are; bf16 greater by 24, bits of the integer beside constant
 * ones. Products are added over a group for themselves. Their sum times the scale is added in f32, and the sum of a,
 * which products with ones make, times the zero, in bf16 less 24 scales. So weights are not rounded. At the end the
 * waves' sums meet in LDS.
 *
 * Where both halves of a wave multiply the same rows (gfx11), each reads other weights and tells the other half its
 * words, but both read all of a.
 *
 * Floor: one read of the weights, half a byte an element. Not measured. Simulated: a block reads its weights once, rows
 * of a, and a scale of each lane for a group, and no bank is met twice. With k = 4096 so many instructions of a lane
 * are there for each weight, those around the loop included; groups are of 128 if nothing else is said:
 *
 *            1 row       1 row,      1 row,      8 rows,     portable:   8 rows,
 *                        groups      normalised  pre_scale   1 row       normalised
 *                        of 32
 *            f16   bf16  f16   bf16  f16   bf16  f16   bf16  f16   bf16  f16   bf16
 *   gfx90a   4.3   4.6   5.5   6.3   5.5   6.0   6.7   9.3   6.5   6.5   18.6  18.8
 *   gfx942   3.9   4.2   5.0   5.6   5.2   5.7   6.1   8.8   6.0   6.1   17.9  17.9
 *   gfx11    5.8   6.1   6.5   7.1   7.3   7.6   8.4   10.6  8.5   8.4   25.6  24.2
 *   gfx12    3.7   3.8   4.3   5.0   5.1   5.2   6.1   8.3   8.4   8.4   25.5  24.1
 *
 * Includers define `few`, a chip's matrix unit:
 *   WAVE, STEP, PARTS      lanes of a wave; its turn's depth; lanes that share a row of weights
 *   HALVES                 vectors of a row of a that a lane has beside one of weights: of all these lanes, or its own
 *   factor                 numbers of weights as the unit takes them: factor_of(codes), or words that are all(alike)
 *   sums                   a lane's elements of a product, ELEMENTS of them
 *   multiply(a, factor, sums)  adds the products of HALVES vectors of a and a factor
 *   row_of(lane, element): its row of a; its row of weights is lane % 16 */
#ifndef KILN_KERNELS_GEMM_W4A16_AMD_ROWS_H
#define KILN_KERNELS_GEMM_W4A16_AMD_ROWS_H

#include "kernels/common/tuned.h"
#include "kernels/gemm_w4a16/gemm_w4a16_amd_numbers.h"

enum : uint32_t {
    FEW_ROWS = 16,   /* of a, and of weights */
    FEW_PIECE = 512, /* elements of a row, a vector for each of PIECE_THREADS */
    FEW_PIECE_THREADS = FEW_PIECE / KILN_VECTOR,
    FEW_PIECES_LOG2 = 2, /* pieces that a block writes at once */
    FEW_PIECES = 1 << FEW_PIECES_LOG2
};

static_assert(FEW_PIECES * FEW_PIECE_THREADS == KILN_BLOCK, "a vector for each thread");

/* What a lane has of a turn beside its elements of a: RUNS times neighbouring integers of its row of weights, and their
 * groups'. SMALL: groups are of KILN_W4A16_CHUNK, or those of 64 count as two. */
template <class few, bool SMALL> struct few_turn {
    enum : uint32_t {
        GROUPS = SMALL ? few::STEP / KILN_W4A16_CHUNK : 1,
        MOST = few::STEP / GROUPS / few::PARTS,
        RUN = MOST < KILN_W4A16_CHUNK ? MOST : KILN_W4A16_CHUNK,
        RUN_VECTORS = RUN / KILN_VECTOR,
        RUNS = few::STEP / few::PARTS / RUN,
        VECTORS = RUNS * RUN_VECTORS,
        GROUP_VECTORS = VECTORS / GROUPS,
        A_VECTORS = VECTORS * few::HALVES
    };
    struct run {
        uint32_t words[RUN_VECTORS];
    } __attribute__((aligned(RUN_VECTORS * sizeof(uint32_t)))) codes[RUNS];
    uint32_t scales[GROUPS], zeros[GROUPS];

    /* Where a vector of the turn is in k. */
    KILN_INLINE uint32_t place_of(uint32_t vector) {
        return vector / RUN_VECTORS * (few::PARTS * RUN) + vector % RUN_VECTORS * KILN_VECTOR;
    }
};

/* Where a lane reads, at the beginning of k. */
struct few_source {
    const uint8_t *codes;
    const kiln_element *scales, *zeros;
};

template <class few, bool SMALL>
KILN_INLINE void few_load(few_turn<few, SMALL> *to, const few_source &from, const kiln_gemm_w4a16_args &args,
                          uint32_t k) {
    typedef few_turn<few, SMALL> turn;
    const uint8_t *codes = from.codes + k / 2;
    KILN_UNROLL
    for (uint32_t r = 0; r < turn::RUNS; r++)
        to->codes[r] = *(const typename turn::run *)(const void *)(codes + turn::place_of(r * turn::RUN_VECTORS) / 2);
    uint64_t groups[turn::GROUPS];
    KILN_UNROLL
    for (uint32_t g = 0; g < turn::GROUPS; g++) {
        groups[g] = ((k + g * KILN_W4A16_CHUNK) >> args.group_log2) * (uint64_t)(uint32_t)args.scale_group_step;
        to->scales[g] = from.scales[groups[g]];
        if (NUMBERS_MORE) to->zeros[g] = 0;
    }
    if (!args.zeros) return;
    KILN_UNROLL
    for (uint32_t g = 0; g < turn::GROUPS; g++)
        to->zeros[g] = from.zeros[groups[g]];
}

/* What the products of a turn's groups are multiplied with, in pairs of registers: where the chip multiplies two at
 * once (waves of 64), each is else half of a pair whose other may be on its way. */
template <uint32_t GROUPS> struct few_factors { kiln_two pairs[(GROUPS + 1) / 2]; };

template <class few, uint32_t GROUPS> KILN_INLINE few_factors<GROUPS> few_factors_of(const float (&of)[GROUPS]) {
    few_factors<GROUPS> factors;
    KILN_UNROLL
    for (uint32_t i = 0; i < GROUPS; i += 2) {
        factors.pairs[i / 2] = kiln_two_of(of[i], of[GROUPS > 1 ? i + 1 : i]);
        if (few::WAVE == 64) asm("" : "+v"(factors.pairs[i / 2]));
    }
    return factors;
}

/* Adds to the sums a group's products times a factor. */
template <class few> KILN_INLINE void few_add(float *sums, typename few::sums products, float factor) {
    KILN_UNROLL
    for (uint32_t e = 0; e < few::ELEMENTS; e++)
        sums[e] = KILN_FMA(products[e], factor, sums[e]);
}

/* Adds to the sums the products of a turn: those with numbers times the scale, and where there are zeros or numbers are
 * greater than the integers, the sum of a, which products with ones make, times what is missing. */
template <class few, bool SMALL>
KILN_INLINE void few_multiply(float *sums, const few_turn<few, SMALL> &turn, const kiln_vector *a,
                              const kiln_gemm_w4a16_args &args) {
    typedef few_turn<few, SMALL> few_turn;
    float scales[few_turn::GROUPS], rest[few_turn::GROUPS];
    KILN_UNROLL
    for (uint32_t g = 0; g < few_turn::GROUPS; g++)
        scales[g] = kiln_element_to_f32((kiln_element)turn.scales[g]);
    const few_factors<few_turn::GROUPS> factors = few_factors_of<few>(scales);
    KILN_UNROLL
    for (uint32_t g = 0; g < few_turn::GROUPS; g++) {
        typename few::sums products = {};
        KILN_UNROLL
        for (uint32_t i = g * few_turn::GROUP_VECTORS; i < (g + 1) * few_turn::GROUP_VECTORS; i++) {
            const uint32_t codes = turn.codes[i / few_turn::RUN_VECTORS].words[i % few_turn::RUN_VECTORS];
            products = few::multiply(a + i * few::HALVES, few::factor_of(codes), products);
        }
        few_add<few>(sums, products, factors.pairs[g / 2][g % 2]);
    }
    if (!NUMBERS_MORE && !args.zeros) return;
    KILN_UNROLL
    for (uint32_t g = 0; g < few_turn::GROUPS; g++) {
        const float zero = kiln_element_to_f32((kiln_element)turn.zeros[g]);
        rest[g] = NUMBERS_MORE ? KILN_FMA(-(float)NUMBERS_MORE, scales[g], zero) : zero;
    }
    const few_factors<few_turn::GROUPS> missing = few_factors_of<few>(rest);
    KILN_UNROLL
    for (uint32_t g = 0; g < few_turn::GROUPS; g++) {
        typename few::sums products = {};
        KILN_UNROLL
        for (uint32_t i = g * few_turn::GROUP_VECTORS; i < (g + 1) * few_turn::GROUP_VECTORS; i++)
            products = few::multiply(a + i * few::HALVES, few::all(ONES), products);
        few_add<few>(sums, products, missing.pairs[g / 2][g % 2]);
    }
}

/* Finds what rows of a are normalised by. */
KILN_INLINE void few_find_norms(const kiln_gemm_w4a16_args &args, float *norms, float *exchange) {
    const kiln_element *a = (const kiln_element *)args.a;
    KILN_LOOP
    for (uint32_t row = 0; row < (uint32_t)args.m; row++, a += args.a_stride) {
        float squares = 0.0f, values[KILN_VECTOR];
        KILN_LOOP
        for (uint32_t k = kiln_thread() * KILN_VECTOR; k < (uint32_t)args.k; k += KILN_BLOCK * KILN_VECTOR) {
            kiln_vector_values(values, kiln_vector_load(a + k));
            squares = kiln_add_squares(squares, values);
        }
        squares = kiln_reduce(squares, KILN_BLOCK_LOG2, exchange, KILN_REDUCE_SUM);
        if (kiln_thread() == 0) norms[row] = norm_of(&args, squares);
    }
    kiln_barrier();
}

/* Multiplies values with a vector of factors. */
KILN_INLINE void few_scale(float *values, const kiln_element *factors) {
    float by[KILN_VECTOR];
    kiln_vector_values(by, kiln_vector_load(factors));
    KILN_UNROLL
    for (uint32_t i = 0; i < KILN_VECTOR; i++)
        values[i] *= by[i];
}

/* The vector of a row from column `at` on, normalised and times pre_scale, rounded once. */
KILN_INLINE kiln_vector few_normed(const kiln_gemm_w4a16_args &args, kiln_vector vector, float norm, uint32_t at) {
    float values[KILN_VECTOR];
    asm("" : "+v"(at)); /* else factors stay in registers from row to row */
    kiln_vector_values(values, vector);
    KILN_UNROLL
    for (uint32_t i = 0; i < KILN_VECTOR; i++)
        values[i] *= norm;
    few_scale(values, (const kiln_element *)args.norm_weight + at);
    if (args.pre_scale) few_scale(values, (const kiln_element *)args.pre_scale + at);
    return kiln_vector_of(values);
}

/* Writes rows of a to LDS from k on, as they are multiplied: normalised, and times pre_scale, or times it alone. As
 * many threads as a piece has vectors are at one, others of the block at others, or where there are few, at other rows.
 */
template <bool NORMED>
KILN_INLINE void few_keep(const kiln_gemm_w4a16_args &args, kiln_vector *kept, const float *norms, uint32_t k,
                          uint32_t end) {
    const uint32_t pieces = (end - k + FEW_PIECE - 1) / FEW_PIECE, pitch = args.split / KILN_VECTOR + 1;
    const uint32_t across_log2 = pieces >= FEW_PIECES ? FEW_PIECES_LOG2 : pieces > 1;
    const uint32_t group = (uint32_t)__builtin_amdgcn_readfirstlane((int)(kiln_thread() / FEW_PIECE_THREADS));
    KILN_LOOP
    for (uint32_t piece = group & ((1u << across_log2) - 1); piece < pieces; piece += 1u << across_log2) {
        const uint32_t vector = piece * FEW_PIECE_THREADS + kiln_thread() % FEW_PIECE_THREADS;
        const uint32_t at = k + vector * KILN_VECTOR;
        if (at >= end) continue;
        kiln_vector factors = {};
        if (!NORMED) factors = kiln_vector_load((const kiln_element *)args.pre_scale + at);
        KILN_LOOP
        for (uint32_t row = group >> across_log2; row < (uint32_t)args.m; row += FEW_PIECES >> across_log2) {
            const kiln_vector a = kiln_vector_load((const kiln_element *)args.a + row * (uint64_t)args.a_stride + at);
            kept[row * pitch + vector] = NORMED ? few_normed(args, a, norms[row], at) : times(a, factors);
        }
    }
}

/* A lane's vectors of a row of a in a turn, from memory or LDS. */
template <class few, bool SMALL> KILN_INLINE void few_load_a(kiln_vector *to, const kiln_element *row) {
    typedef few_turn<few, SMALL> turn;
    KILN_UNROLL
    for (uint32_t i = 0; i < turn::A_VECTORS; i++)
        to[i] = kiln_vector_load(row + turn::place_of(i / few::HALVES) + i % few::HALVES * turn::RUN);
}

/* Adds to the sums all products of a wave. KEPT: rows of a are multiplied as few_keep has them in LDS. */
template <class few, bool SMALL, bool KEPT>
KILN_INLINE void few_multiply_all(float *sums, const few_source &base, const kiln_gemm_w4a16_args &args,
                                  kiln_vector *kept, const float *norms) {
    typedef few_turn<few, SMALL> few_turn;
    const uint32_t lane = kiln_thread() % few::WAVE, part = lane / FEW_ROWS % few::PARTS * few_turn::RUN;
    const uint32_t a_part = few::HALVES > 1 ? 0 : part;
    const uint32_t wave = (uint32_t)__builtin_amdgcn_readfirstlane((int)(kiln_thread() / few::WAVE));
    const uint32_t round = KILN_BLOCK / few::WAVE * few::STEP, depth = KEPT ? args.split : (uint32_t)args.k;
    const bool has_a = lane % FEW_ROWS < (uint32_t)args.m;
    const few_source source = {base.codes + part / 2, base.scales, base.zeros};
    kiln_vector a[few_turn::A_VECTORS] = {}; /* zeros where there is no row */
    KILN_LOOP
    for (uint32_t first = 0; first < (uint32_t)args.k; first += depth) {
        const uint32_t end = first + depth < (uint32_t)args.k ? first + depth : (uint32_t)args.k;
        const kiln_element *row = (const kiln_element *)args.a + lane % FEW_ROWS * (uint64_t)args.a_stride + a_part;
        uint32_t k = first + wave * few::STEP;
        few_turn turn;
        if (k < end) few_load<few>(&turn, source, args, k);
        if (KEPT) {
            if (first) kiln_barrier(); /* what was there has been read */
            if (args.norm_weight)
                few_keep<true>(args, kept, norms, first, end);
            else
                few_keep<false>(args, kept, norms, first, end);
            kiln_barrier();
            row = (const kiln_element *)kept + lane % FEW_ROWS * (depth + KILN_VECTOR) + a_part - first;
        }
        KILN_LOOP
        for (; k < end; k += round) {
            few_turn next;
            if (has_a) few_load_a<few, SMALL>(a, row + k);
            asm(""
                : "+v"(
                    a[few_turn::A_VECTORS - 1].words[0])); /* else these are waited for together with the next turn */
            if (k + round < end) few_load<few>(&next, source, args, k + round);
            __builtin_amdgcn_sched_barrier(0); /* else what was loaded is waited for before products are made */
            few_multiply<few>(sums, turn, a, args);
            turn = next;
        }
    }
}

template <class few> KILN_INLINE void gemm_w4a16_few(const kiln_gemm_w4a16_args &args) {
    enum : uint32_t { WAVES = KILN_BLOCK / few::WAVE, RESULTS = FEW_ROWS * FEW_ROWS };
    static_assert(RESULTS == KILN_BLOCK && few::ELEMENTS * few::WAVE == RESULTS, "a result for each thread");
    KILN_SHARED float exchange[WAVES][RESULTS], norms[FEW_ROWS];
    KILN_DYNAMIC_SHARED(kiln_vector, kept);
    if (kiln_block()) return; /* the whole block */
    const uint32_t lane = kiln_thread() % few::WAVE, wave = kiln_thread() / few::WAVE, own = lane % FEW_ROWS;
    const uint32_t columns = args.paired ? FEW_ROWS / 2 : FEW_ROWS; /* of d */
    const uint64_t first = (uint64_t)kiln_tile() * columns, last = (uint64_t)args.n - 1;
    const uint64_t beside = first + own % columns, beyond = own < columns ? 0 : (uint64_t)args.n;
    const uint64_t row = (beside < last ? beside : last) + beyond; /* of weights */
    const uint64_t groups = row * (uint64_t)args.scale_row_step;
    const few_source source = {.codes = args.weights + row * ((uint64_t)args.k / 2),
                               .scales = (const kiln_element *)args.scales + groups,
                               .zeros = (const kiln_element *)(args.zeros ? args.zeros : args.scales) + groups};
    float sums[few::ELEMENTS] = {};
    if (args.norm_weight) few_find_norms(args, norms, exchange[0]);
    const bool small = 1u << args.group_log2 < few::STEP, keep = args.norm_weight || args.pre_scale;
    if (small && keep)
        few_multiply_all<few, true, true>(sums, source, args, kept, norms);
    else if (small)
        few_multiply_all<few, true, false>(sums, source, args, kept, norms);
    else if (keep)
        few_multiply_all<few, false, true>(sums, source, args, kept, norms);
    else
        few_multiply_all<few, false, false>(sums, source, args, kept, norms);

    KILN_UNROLL
    for (uint32_t e = 0; e < few::ELEMENTS; e++)
        exchange[wave][e * few::WAVE + lane] = sums[e];
    kiln_barrier();
    float sum = 0.0f;
    KILN_UNROLL
    for (uint32_t w = 0; w < WAVES; w++)
        sum += exchange[w][kiln_thread()];
    const float other = kiln_shuffle_xor(sum, FEW_ROWS / 2);
    const uint64_t d_row = few::row_of(lane, wave), d_col = first + own;
    if (d_row >= (uint64_t)args.m || own >= columns || d_col > last) return;
    if (args.paired)
        finish_pair(&args, sum, other, d_row, d_col);
    else
        finish_element(&args, sum, d_row, d_col);
}

#endif
