/* The end of a tile of gemm's kernels by wgmma (gemm_wgmma.h, gemm_wgmma_rows.h), piece by piece: matmul_sm90a.h says
 * which elements a thread has. It adds c and the bias, takes the activation, rounds, and four threads of a row write
 * whole sectors of it. What is not aligned so, or beyond d's last columns, is written element by element.
 *
 * The activation takes the hardware's functions (special.h: an error of 3e-7 in the sigmoid), and no more terms of its
 * polynomial than it has: with math.h's, which take four times the instructions, tiles of k = 4096 took a sixth longer
 * on an H200. Pieces of two rows go through it together, and the bias of the next ones is loaded meanwhile: two warps
 * share a scheduler here, too few to hide what each waits for. */
#ifndef KILN_KERNELS_GEMM_PIECES_H
#define KILN_KERNELS_GEMM_PIECES_H

#include "kernels/arch/sm80.h"
#include "kernels/arch/sm90a_wgmma.h"
#include "kernels/common/matmul/matmul_sm90a.h"
#include "kernels/gemm/gemm_args.h"

enum : uint32_t {
    ADDEND_WORDS = PIECE * sizeof(kiln_element) / 4,
    SLAB_ROW = PART_COLS * 2, /* bytes of a warp's slab: 16 rows of a part, rounded */
    SLAB_BYTES = sizeof(kiln_element) == 2 ? 16 * SLAB_ROW : 0,
    SLABS = 2 /* of a warp, in turn */
};

/* Of a tile of so many columns: the last part may be half a part. */
KILN_INLINE constexpr uint32_t parts_of(uint32_t cols) {
    return (cols + PART_COLS - 1) / PART_COLS;
}

/* Whether pieces can be written, and read of c and of the bias, as they are. */
KILN_INLINE bool is_aligned(const kiln_gemm_args &args) {
    uint64_t d = (uint64_t)args.d | (uint64_t)(args.d_stride | args.d_batch_stride) * sizeof(kiln_element);
    uint64_t c = (uint64_t)args.c | (uint64_t)(args.c_stride | args.c_batch_stride) * sizeof(kiln_element);
    return !(d % KILN_VECTOR_BYTES) && !(((args.c ? c : 0) | (uint64_t)args.bias) % (2 * sizeof(kiln_element)));
}

KILN_INLINE kiln_element *row_of(const kiln_gemm_args &args, const work &w, uint32_t row) {
    return (kiln_element *)args.d + w.batch * args.d_batch_stride + row * args.d_stride;
}

/* Loads what is added in a piece's columns, of which the first is `col`: zeros beyond the last of n. Values are taken
 * of it where they are needed, so that nothing waits for the loads before. */
KILN_INLINE void load_addends(uint32_t *words, const kiln_element *row, uint32_t col, uint32_t n, bool whole) {
    enum : uint32_t { EACH = 4 / sizeof(kiln_element) }; /* elements of a word */
    KILN_UNROLL
    for (uint32_t i = 0; i < PIECE / EACH; i++) {
        const uint32_t at = col + i * EACH / 2 * 8 + i * EACH % 2;
        if (whole) {
            words[i] = *(const uint32_t *)(row + at);
            continue;
        }
        words[i] = at < n ? row[at] : 0;
        if (EACH == 2 && at + 1 < n) words[i] |= (uint32_t)row[at + 1] << 16;
    }
}

KILN_INLINE void take_addends(float *values, const uint32_t *words) {
#ifdef KILN_PART_f32
    KILN_UNROLL
    for (uint32_t i = 0; i < PIECE; i++)
        values[i] = kiln_float(words[i]);
#else
    KILN_UNROLL
    for (uint32_t i = 0; i < PIECE; i += 2)
        kiln_pair_values(values + i, words[i / 2]);
#endif
}

/* P's coefficients times -log2 e where it has two, none of them negative, or one, which is all but erf's. The second is
 * not 0 then, so that infinity times it is no NaN. */
KILN_INLINE bool is_short(const kiln_gemm_args &args) {
    return args.coefficients[2] == 0.0f;
}
KILN_INLINE void short_powers(float *powers, const kiln_gemm_args &args) {
    kiln_powers_of(powers, args.coefficients, 2);
    if (powers[1] == 0.0f) powers[1] = -0x1p-126f;
}

/* kiln_fast_gated of a short P. t need not be bounded: 2^x ends in 0 and in infinity where the sigmoid does, and only
 * infinity times that 0 would be wrong. */
KILN_INLINE float short_gated(float t, const float *powers) {
    float sigmoid = kiln_fast_reciprocal(1.0f + kiln_fast_exp2(t * KILN_FMA(t * powers[1], t, powers[0])));
    return kiln_sm80_greater_or_nan_f32(t, -0x1.fffffep127f) * sigmoid;
}

/* The activation of COUNT numbers. */
template <uint32_t COUNT> KILN_INLINE void activate(const kiln_gemm_args &args, float *values) {
    float powers[KILN_GEMM_COEFFICIENTS];
    if (is_short(args)) {
        short_powers(powers, args);
        KILN_UNROLL
        for (uint32_t i = 0; i < COUNT; i++)
            values[i] = short_gated(values[i], powers);
        return;
    }
    kiln_powers_of(powers, args.coefficients, KILN_GEMM_COEFFICIENTS);
    KILN_UNROLL
    for (uint32_t i = 0; i < COUNT; i++)
        values[i] = kiln_fast_gated(values[i], args.bound, powers, KILN_GEMM_COEFFICIENTS);
}

/* The bias in a piece's columns, which begin at `first`; a tile's columns end at `end`. */
KILN_INLINE void load_bias(uint32_t *words, const kiln_gemm_args &args, uint32_t first, uint32_t end, bool aligned) {
    const bool whole = aligned && first + PART_COLS <= end;
    if (args.bias) load_addends(words, (const kiln_element *)args.bias, first + own_col(), end, whole);
}

/* Finishes pieces of ROWS rows, 8 apart, in PART_COLS columns from `first` on, and writes them. All lanes of the warp
 * must call this. */
template <uint32_t ROWS>
KILN_INLINE void end_pieces(const kiln_gemm_args &args, float *values, const uint32_t *bias_words, const work &w,
                            uint32_t row, uint32_t first, uint32_t end, bool aligned) {
    const uint32_t col = first + own_col();
    const bool whole = aligned && first + PART_COLS <= end;
    float bias[PIECE];
    take_addends(bias, bias_words);
    KILN_UNROLL
    for (uint32_t r = 0; r < ROWS && args.c; r++) {
        const uint32_t at = row + 8 * r;
        const kiln_element *c = (const kiln_element *)args.c + w.batch * args.c_batch_stride + at * args.c_stride;
        uint32_t words[ADDEND_WORDS] = {};
        float addends[PIECE];
        if (at < (uint32_t)args.m) load_addends(words, c, col, end, whole);
        take_addends(addends, words);
        KILN_UNROLL
        for (uint32_t i = 0; i < PIECE; i++)
            values[r * PIECE + i] = KILN_FMA(args.scale, values[r * PIECE + i], addends[i]);
    }
    const float scale = args.c ? 1.0f : args.scale;
    KILN_UNROLL
    for (uint32_t i = 0; i < ROWS * PIECE; i++)
        values[i] = KILN_FMA(scale, values[i], bias[i % PIECE]);
    if (args.gated) activate<ROWS * PIECE>(args, values);
    KILN_UNROLL
    for (uint32_t r = 0; r < ROWS; r++) {
        const uint32_t at = row + 8 * r;
        kiln_element *to = row_of(args, w, at);
        if (whole) {
            write_piece(to + first, values + r * PIECE, at < (uint32_t)args.m);
            continue;
        }
        KILN_UNROLL
        for (uint32_t i = 0; i < PIECE; i++) {
            const uint32_t place = col + i / 2 * 8 + i % 2;
            if (at < (uint32_t)args.m && place < end) to[place] = kiln_element_from_f32(values[r * PIECE + i]);
        }
    }
}

/* Writes a piece's sums into the partial ones, where blocks share k. */
KILN_INLINE void write_partials(const kiln_gemm_args &args, const float *sums, const work &w, uint32_t row,
                                uint32_t col, uint32_t end) {
    if (row >= (uint32_t)args.m) return;
    float *to = args.partials;
    to += ((uint64_t)(w.split * args.batch + w.batch) * (uint64_t)args.m + row) * (uint64_t)args.n;
    KILN_UNROLL
    for (uint32_t i = 0; i < PIECE; i++) {
        uint32_t at = col + i / 2 * 8 + i % 2;
        if (at < end) to[at] = sums[i];
    }
}

/* The two pieces of a part. Registers have no index: a jump, and not a choice among all of them for each number. */
template <uint32_t PARTS> KILN_INLINE void take_pieces(float *pieces, const float *sums, uint32_t part) {
#define TAKE(number)                                           \
    case number:                                               \
        take_piece(pieces, sums, number % PARTS, 0);           \
        take_piece(pieces + PIECE, sums, number % PARTS, 1);   \
        asm volatile("" ::: "memory"); /* keeps it a branch */ \
        break;
    switch (part) {
        TAKE(1)
        TAKE(2)
        TAKE(3)
        TAKE(4)
        TAKE(5)
        TAKE(6)
        TAKE(7)
    default:
        take_piece(pieces, sums, 0, 0);
        take_piece(pieces + PIECE, sums, 0, 1);
    }
#undef TAKE
}

/* Rounds two pieces, and writes those that are present by whole sectors; `to` and `below` are the first of their
 * PART_COLS columns. Four threads of a row exchange their words by the warp's slab, if it has one, which takes a fourth
 * of the instructions that shuffles take; only then may there be fewer `columns`. All lanes of the warp must call this,
 * and use another slab the next time. */
template <bool HAS_SLAB>
KILN_INLINE void write_pieces(kiln_element *to, kiln_element *below, const float *pieces, bool upper, bool lower,
                              uint8_t *slab, uint32_t columns = PART_COLS) {
#ifndef KILN_PART_f32
    if constexpr (HAS_SLAB) {
        const uint32_t lane = kiln_thread() % 32, row = lane % 16, own = lane / 4, vector = lane % 4;
        const uint32_t into = kiln_sm90a_shared(slab) + row * SLAB_ROW;
        uint32_t words[PIECE];
        KILN_UNROLL
        for (uint32_t i = 0; i < PIECE; i++)
            words[i] = kiln_pair_of(pieces + 2 * i);
        KILN_UNROLL
        for (uint32_t half = 0; half < 2; half++) { /* 16 columns; vectors are swizzled */
            const uint32_t *left = words + 2 * half, *right = left + PIECE / 2;
            const uint32_t four[4] = {left[0], right[0], left[1], right[1]};
            kiln_sm90a_stmatrix_x4(into + ((2 * half + lane / 16) ^ row / 2 % 4) * KILN_VECTOR_BYTES, four);
        }
        __syncwarp();
        const uint8_t *from = slab + own * SLAB_ROW + (vector ^ own / 2 % 4) * KILN_VECTOR_BYTES;
        const kiln_vector first = *(const kiln_vector *)from, second = *(const kiln_vector *)(from + 8 * SLAB_ROW);
        const bool present = vector * KILN_VECTOR < columns;
        if (upper && present) kiln_vector_store(to + vector * KILN_VECTOR, first);
        if (lower && present) kiln_vector_store(below + vector * KILN_VECTOR, second);
        return;
    }
#endif
    write_piece(to, pieces, upper);
    write_piece(below, pieces + PIECE, lower);
}

/* The parts of a whole tile to which at most the bias is added, without a branch in the loop over them but for the jump
 * of take_pieces. */
template <uint32_t COLS, bool HAS_SLAB>
KILN_INLINE void write_parts(const kiln_gemm_args &args, const float *sums, uint32_t *bias, const work &w, uint32_t row,
                             uint8_t *slabs) {
    enum : uint32_t { PARTS = parts_of(COLS), EACH = 4 / sizeof(kiln_element) /* elements of a word */ };
    const kiln_element *from = (const kiln_element *)args.bias + w.col + own_col();
    const bool gated = args.gated, upper = row < (uint32_t)args.m, lower = row + 8 < (uint32_t)args.m;
    const float scale = args.scale;
    kiln_element *to = row_of(args, w, row) + w.col, *below = to + 8 * args.d_stride;
    float powers[2];
    short_powers(powers, args);
    KILN_LOOP
    for (uint32_t part = 0; part < PARTS; part++) {
        float pieces[2 * PIECE], addends[PIECE];
        uint32_t next[ADDEND_WORDS] = {};
        take_pieces<PARTS>(pieces, sums, part);
        KILN_UNROLL
        for (uint32_t i = 0; i < ADDEND_WORDS; i++) { /* come while this part is finished */
            const uint32_t at = (part + 1) * PART_COLS + i * EACH / 2 * 8 + i * EACH % 2;
            if (args.bias && at < COLS) next[i] = *(const uint32_t *)(from + at);
        }
        take_addends(addends, bias);
        KILN_UNROLL
        for (uint32_t i = 0; i < 2 * PIECE; i++)
            pieces[i] = KILN_FMA(scale, pieces[i], addends[i % PIECE]);
        KILN_UNROLL
        for (uint32_t i = 0; i < 2 * PIECE; i++)
            if (gated) pieces[i] = short_gated(pieces[i], powers);
        write_pieces<HAS_SLAB>(to + part * PART_COLS, below + part * PART_COLS, pieces, upper, lower,
                               slabs + part % SLABS * SLAB_BYTES, COLS - part * PART_COLS);
        KILN_UNROLL
        for (uint32_t i = 0; i < ADDEND_WORDS; i++)
            bias[i] = next[i];
    }
}

/* The end of a tile: a thread's sums of COLS columns of `row` and of the row 8 below it. `bias` has been loaded, of the
 * first columns. `slabs` are the warp's, if it has any. */
template <uint32_t COLS, bool HAS_SLAB>
KILN_INLINE void write_tile(const kiln_gemm_args &args, const float *sums, uint32_t *bias, const work &w, uint32_t row,
                            bool aligned, uint8_t *slabs) {
    enum : uint32_t { PARTS = parts_of(COLS) };
    const uint32_t end = w.col + COLS < (uint32_t)args.n ? w.col + COLS : (uint32_t)args.n;
    if (PARTS % SLABS) __syncwarp(); /* before the slab that the last tile's last part went by */
    if (aligned && args.splits == 1 && !args.c && !args.bias && !args.gated && w.col + COLS <= (uint32_t)args.n) {
        kiln_element *to = row_of(args, w, row) + w.col, *below = to + 8 * args.d_stride;
        const bool upper = row < (uint32_t)args.m, lower = row + 8 < (uint32_t)args.m;
        KILN_UNROLL
        for (uint32_t part = 0; part < PARTS; part++) {
            float pieces[2 * PIECE];
            take_piece(pieces, sums, part, 0);
            take_piece(pieces + PIECE, sums, part, 1);
            KILN_UNROLL
            for (uint32_t i = 0; i < 2 * PIECE; i++)
                pieces[i] *= args.scale;
            write_pieces<HAS_SLAB>(to + part * PART_COLS, below + part * PART_COLS, pieces, upper, lower,
                                   slabs + part % SLABS * SLAB_BYTES, COLS - part * PART_COLS);
        }
        return;
    }
    if (aligned && args.splits == 1 && !args.c && w.col + COLS <= (uint32_t)args.n && is_short(args)) {
        write_parts<COLS, HAS_SLAB>(args, sums, bias, w, row, slabs);
        return;
    }
    KILN_LOOP
    for (uint32_t part = 0; part < PARTS; part++) {
        const uint32_t first = w.col + part * PART_COLS;
        float pieces[2 * PIECE];
        uint32_t next[ADDEND_WORDS] = {};
        take_pieces<PARTS>(pieces, sums, part);
        if (args.splits > 1) {
            write_partials(args, pieces, w, row, first + own_col(), end);
            write_partials(args, pieces + PIECE, w, row + 8, first + own_col(), end);
            continue;
        }
        if (part + 1 < PARTS) load_bias(next, args, first + PART_COLS, end, aligned); /* comes while this is finished */
        end_pieces<2>(args, pieces, bias, w, row, first, end, aligned);
        KILN_UNROLL
        for (uint32_t i = 0; i < ADDEND_WORDS; i++)
            bias[i] = next[i];
    }
}

#endif
