/* quantize_nvfp4: codes = E2M1 of x / (scale * g), with a scale in E4M3 for each block of 16 elements, and g = amax /
 * 2688.
 *
 * A thread quantises a block of 16 elements, all of which it reads itself, so that threads exchange nothing and the two
 * divisions are made once for 16 elements; four such blocks share the division that g takes. Neighbouring threads take
 * neighbouring blocks: with 16-bit elements each thread reads a sector, in two requests. Blocks that are incomplete or
 * not aligned go element by element.
 *
 * Where columns are not adjacent a block turns a tile of 128 columns by 64 rows of 16 bits, or 32 of f32, in shared
 * memory, and a thread takes blocks of 16 elements from there: where all of it is in the tensor, without questions
 * about each. When the tile was stored there element by element, an H200 took 61 us for 14336 x 4096 of bf16, and 55
 * with adjacent columns (2026-11-27).
 *
 * Floor: one read of x and one write of half a byte for each element and of a byte for each 16, at memory bandwidth:
 * 4.56 bytes an element of f32, 2.56 of 16 bits; docs/kernel-report.md has the instruction counts and the time that
 * they take; quantize_nvfp4_sm90a.cu has what was measured. Tried: 8 elements a thread and a shuffle, in a prototype on
 * an H100: 93 % of the speed of a copy, where one block per thread had 99 %.
 *
 * By the model of docs/kernel-report.md 16-bit elements issue for longer than 0.6 of the memory's time on gfx9 before
 * gfx90a, for 0.72 of it, and in tiles there, 0.82, on gfx90a, 0.64, sm_80, 0.61 to 0.63, and sm_100f, 0.65 to 0.7. Of
 * 17 instructions an element in tiles on sm_80 nine are its conversion, magnitude, product and code; the others turn
 * the tile and find the scale and 1 over it. Not measured. Test: build/tests/ops/quantize_nvfp4_test. Bench: build/kiln
 * bench quantize_nvfp4 */
#include "kernels/common/device.h"
#include "kernels/common/math/pairs.h"
#include "kernels/common/quantize/nvfp4_block_gpu.h"
#include "kernels/common/quantize/nvfp4_pairs_gpu.h"
#include "kernels/common/quantize/quantize_scale.h"
#include "kernels/common/quantize/transposed_gpu.h"
#include "kernels/common/reduce/greatest_number.h"
#include "kernels/common/span.h"
#include "kernels/common/values.h"
#include "kernels/quantize_nvfp4/quantize_nvfp4_args.h"
#include "kernels/quantize_nvfp4/quantize_nvfp4_transposed_args.h"

enum { VECTORS = KILN_NVFP4_BLOCK / KILN_VECTOR, BYTES = VECTORS * KILN_VECTOR_BYTES };

/* The greater of the greatest magnitude so far and an element's magnitude. NaN is not greater. */
KILN_INLINE float greater(float greatest, float value) {
    return kiln_fast_max(__builtin_fabsf(value), greatest);
}

/* The greatest magnitude of a block: of 16 bits two at a time, where the device compares these, with some sign or
 * without one. */
#if KILN_PAIRS_COMPARED || defined(KILN_GREATER_PAIR)
#if KILN_PAIRS_COMPARED
#define MAGNITUDES(pair)   (pair)
#define GREATER_PAIR(a, b) kiln_pair_greater(a, b)
#else
#define MAGNITUDES(pair)   ((pair)&0x7fff7fffu)
#define GREATER_PAIR(a, b) KILN_GREATER_PAIR(a, b)
#endif
KILN_INLINE float greatest_of(const kiln_vector *vectors, const float *) {
    float pair[2];
    uint32_t greatest = MAGNITUDES(vectors[0].words[0]);
    KILN_UNROLL
    for (int i = 1; i < 8; i++)
        greatest = GREATER_PAIR(greatest, MAGNITUDES(vectors[i / 4].words[i % 4]));
    kiln_pair_values(pair, GREATER_PAIR(greatest, greatest >> 16));
    return greater(0.0f, pair[0]);
}
#else
KILN_INLINE float greatest_of(const kiln_vector *, const float *values) {
    float greatest = 0.0f;
    KILN_UNROLL
    for (int i = 0; i < KILN_NVFP4_BLOCK; i++)
        greatest = greater(greatest, values[i]);
    return greatest;
}
#endif

/* Quantises the vectors of a block. Returns its scale. */
#if KILN_NVFP4_PAIRS
KILN_INLINE uint32_t quantize_vectors(kiln_eight_bytes *target, const kiln_vector *vectors, float encode) {
    uint32_t pairs[KILN_PAIRS];
    kiln_eight_bytes words;
    KILN_UNROLL
    for (int i = 0; i < KILN_PAIRS; i++)
        pairs[i] = vectors[i / 4].words[i % 4];
    const uint32_t scale = kiln_nvfp4_pairs(words.words, pairs, encode);
    *target = words;
    return scale;
}
#else
KILN_INLINE uint32_t quantize_vectors(kiln_eight_bytes *target, const kiln_vector *vectors, float encode) {
    float values[KILN_NVFP4_BLOCK];
    KILN_UNROLL
    for (int i = 0; i < VECTORS; i++)
        kiln_vector_values(&values[i * KILN_VECTOR], vectors[i]);
    const float greatest = greatest_of(vectors, values);
    const uint32_t scale = kiln_nvfp4_block_scale(greatest, encode);
    const float factor = kiln_nvfp4_any_factor(scale, encode);
    *target = kiln_nvfp4_block_codes(values, greatest, factor);
    return scale;
}
#endif

/* Quantises a whole, aligned block. Returns its scale. */
KILN_INLINE uint32_t quantize_whole(uint8_t *target, const char *x, float encode) {
    kiln_vector vectors[VECTORS];
    KILN_UNROLL
    for (int i = 0; i < VECTORS; i++)
        vectors[i] = ((const kiln_vector *)x)[i];
    return quantize_vectors((kiln_eight_bytes *)target, vectors, encode);
}

/* Quantises any block. Its first count elements, or all if these are fewer, are in the row; the others are zeros. */
KILN_INLINE uint32_t quantize_any(uint8_t *target, const kiln_element *x, uint32_t count, float encode) {
    float greatest = 0.0f;
    KILN_LOOP
    for (uint32_t i = 0; i < KILN_NVFP4_BLOCK && i < count; i++)
        greatest = greater(greatest, kiln_element_to_f32(x[i]));
    uint32_t scale = kiln_nvfp4_scale(kiln_bits(greatest), encode), low = 0;
    float factor = kiln_nvfp4_factor(scale, encode);
    KILN_LOOP
    for (uint32_t i = 0; i < KILN_NVFP4_BLOCK; i++) {
        uint32_t code = i < count ? kiln_e2m1_of(kiln_element_to_f32(x[i]) * factor) : 0u;
        if (i % 2) target[i / 2] = (uint8_t)(low | code << 4);
        low = code;
    }
    return scale;
}

/* The place of a block's scale from that of the tile's first, whose number is a multiple of 4: block / 4 * 512 + block
 * % 4 if swizzled. */
KILN_INLINE uint32_t place_of(const kiln_quantize_nvfp4_args *args, uint32_t block) {
    return block + block / 4 * (args->swizzled ? 512u - 4u : 0u);
}

KILN_ENTRY(quantize_nvfp4, kiln_quantize_nvfp4_args) {
    kiln_span s = kiln_span_of(&args.shape);
    if (!s.count) return;
    const uint64_t cols = (uint64_t)args.shape.cols, start = s.start * KILN_NVFP4_BLOCK;
    const bool inside = s.row < (uint64_t)args.rows;
    const kiln_element *x = (const kiln_element *)args.x + s.row * (uint64_t)args.x_stride + start;
    uint8_t *target = args.codes + s.row * (uint64_t)args.codes_stride + start / 2;
    uint8_t *scales = args.scales;
    scales += args.swizzled ? kiln_nvfp4_swizzled(s.row, s.start, cols) : s.row * cols + s.start;
    const uint64_t left = start < (uint64_t)args.cols ? (uint64_t)args.cols - start : 0;
    const uint32_t most = s.count * KILN_NVFP4_BLOCK, count = left < most ? (uint32_t)left : most; /* elements */
    const uint32_t whole = inside && args.shape.wide ? count / KILN_NVFP4_BLOCK : 0;
    float global_scale = 1.0f;
    if (inside) global_scale = kiln_nvfp4_any_global(args.values[args.each ? s.row : 0], args.given);
    const float encode = kiln_nvfp4_any_encode(global_scale);
    uint32_t i = s.first, each = i < whole ? (whole - 1 - i) / s.lanes + 1 : 0;
    const char *from = (const char *)x + i * BYTES;
    uint8_t *to = target + i * KILN_NVFP4_BLOCK_BYTES;
    KILN_LOOP
    for (; each; each--, i += s.lanes) { /* with pointers, which the compiler does not compute anew each time */
        scales[place_of(&args, i)] = (uint8_t)quantize_whole(to, from, encode);
        from += s.lanes * BYTES;
        to += s.lanes * KILN_NVFP4_BLOCK_BYTES;
    }
    KILN_LOOP
    for (; i < s.count; i += s.lanes) {
        const uint32_t col = i * KILN_NVFP4_BLOCK;
        uint32_t scale = 0;
        if (inside) scale = quantize_any(target + col / 2, x + col, col < count ? count - col : 0, encode);
        scales[place_of(&args, i)] = (uint8_t)scale;
    }
    const bool first = inside && s.start == 0 && s.first == 0 && (args.each || s.row == 0);
    if (args.global_scale && first) args.global_scale[s.row] = global_scale;
}

typedef struct transposed_shared {
    kiln_vector tile[KILN_TRANSPOSED_VECTORS];
    float encode[KILN_TRANSPOSED_ROWS]; /* 1 / g of each row */
} transposed_shared;

enum { BLOCKS_LOG2 = KILN_TRANSPOSED_COLS_LOG2 - 4 }; /* of a row of the tile */

/* 1 / g of the rows from the first on of which the tensor has so many. Those up to `end` have scales. */
KILN_INLINE void find_encodes(const kiln_quantize_nvfp4_args *plain, uint64_t first, uint32_t rows, uint32_t end,
                              float *encodes) {
    const uint32_t own = kiln_thread();
    if (own >= end) return;
    const uint64_t row = first + own;
    float global_scale = 1.0f;
    if (own < rows) global_scale = kiln_nvfp4_any_global(plain->values[plain->each ? row : 0], plain->given);
    encodes[own] = kiln_nvfp4_any_encode(global_scale);
    const bool stores = own < rows && kiln_tile() == 0 && (plain->each || row == 0);
    if (plain->global_scale && stores) plain->global_scale[row] = global_scale;
}

/* Returns whether it did the block's tile, which it does if all of it is in the tensor, and aligned. */
KILN_INLINE bool quantize_tile(const kiln_quantize_nvfp4_transposed_args *args, transposed_shared *shared) {
    enum { ROWS = KILN_TRANSPOSED_LINES, STEP = KILN_BLOCK >> BLOCKS_LOG2, MOVED = STEP >> KILN_VECTOR_LOG2 & 7 };
    const kiln_quantize_nvfp4_args *plain = &args->plain;
    kiln_transposed t = args->x;
    t.rows_log2 = KILN_TRANSPOSED_LINES_LOG2; /* known to the compiler */
    const uint64_t first = kiln_block() * ROWS, col = (uint64_t)kiln_tile() * KILN_TRANSPOSED_COLS;
    if (first + ROWS > (uint64_t)args->whole || col + KILN_TRANSPOSED_COLS > (uint64_t)t.cols) return false;
    kiln_transposed_load_whole(&t, first, col, shared->tile);
    find_encodes(plain, first, ROWS, ROWS, shared->encode);
    kiln_barrier();

    const uint32_t r = kiln_thread() >> BLOCKS_LOG2, b = kiln_thread() & ((1u << BLOCKS_LOG2) - 1);
    const uint64_t scale_cols = (uint64_t)plain->shape.cols, block = ((uint64_t)kiln_tile() << BLOCKS_LOG2) + b;
    uint8_t *target = plain->codes + first * (uint64_t)plain->codes_stride + block * KILN_NVFP4_BLOCK_BYTES;
    uint8_t *scales = plain->scales;
    scales += plain->swizzled ? kiln_nvfp4_swizzled(first + r, block, scale_cols)
                              : first * scale_cols + block + r * scale_cols;
    target += r * (uint64_t)plain->codes_stride;
    const uint64_t apart = plain->swizzled ? 4 : STEP * scale_cols; /* a tile's rows are 64 of the 128 at most */
    uint32_t place = kiln_transposed_place(&t, r, b * VECTORS);
    const float *encode = shared->encode + r;
    KILN_UNROLL
    for (uint32_t i = 0; i < ROWS; i += STEP) {
        kiln_vector vectors[VECTORS];
        KILN_UNROLL
        for (uint32_t j = 0; j < VECTORS; j++)
            vectors[j] = shared->tile[place ^ j];
        *scales = (uint8_t)quantize_vectors((kiln_eight_bytes *)target, vectors, *encode);
        place = (place ^ MOVED) + STEP * KILN_LINE;
        target += STEP * (uint64_t)plain->codes_stride;
        scales += apart;
        encode += STEP;
    }
    return true;
}

#if defined(__CUDACC__) && __CUDA_ARCH__ < 900 && \
    !defined(KILN_PART_f32) /* six blocks resident, as without whole tiles */
#undef KILN_ENTRY_HEAD
#define KILN_ENTRY_HEAD extern "C" __global__ __launch_bounds__(KILN_BLOCK, 6) void
#endif

KILN_ENTRY(quantize_nvfp4_transposed, kiln_quantize_nvfp4_transposed_args) {
    KILN_SHARED transposed_shared shared;
    if (quantize_tile(&args, &shared)) return;
    const kiln_quantize_nvfp4_args *plain = &args.plain;
    const kiln_transposed *t = &args.x;
    const uint64_t first = kiln_block() << t->rows_log2, scale_cols = (uint64_t)plain->shape.cols;
    if (first >= (uint64_t)plain->shape.rows) return; /* the whole block */
    const kiln_transposed_tile at = kiln_transposed_at(t, first, (uint64_t)kiln_tile() << KILN_TRANSPOSED_COLS_LOG2);
    const uint32_t own = kiln_thread(), rows = at.rows;
    const uint32_t end = kiln_transposed_inside(plain->shape.rows, first, t->rows_log2);
    kiln_transposed_load(t, at, shared.tile);
    find_encodes(plain, first, rows, end, shared.encode);
    kiln_barrier();
    KILN_LOOP
    for (uint32_t n = own; n < end << BLOCKS_LOG2; n += KILN_BLOCK) {
        const uint32_t r = n >> BLOCKS_LOG2, b = n & ((1u << BLOCKS_LOG2) - 1);
        const uint64_t row = first + r, block = (kiln_tile() << BLOCKS_LOG2) + b;
        if (block >= scale_cols) continue;
        kiln_vector vectors[VECTORS];
        KILN_UNROLL
        for (uint32_t i = 0; i < VECTORS; i++)
            vectors[i] = shared.tile[kiln_transposed_place(t, r, b * VECTORS + i)];
        kiln_eight_bytes words;
        const uint32_t scale = quantize_vectors(&words, vectors, shared.encode[r]);
        plain->scales[plain->swizzled ? kiln_nvfp4_swizzled(row, block, scale_cols) : row * scale_cols + block] =
            (uint8_t)scale;
        if (r >= rows) continue;
        uint8_t *target = plain->codes + row * (uint64_t)plain->codes_stride + block * KILN_NVFP4_BLOCK_BYTES;
        if (plain->shape.wide) {
            *(kiln_eight_bytes *)target = words;
            continue;
        }
        KILN_LOOP
        for (uint32_t i = 0; i < KILN_NVFP4_BLOCK_BYTES; i++) {
            target[i] = (uint8_t)words.words[0];
            words.words[0] = words.words[0] >> 8 | words.words[1] << 24;
            words.words[1] >>= 8;
        }
    }
}
