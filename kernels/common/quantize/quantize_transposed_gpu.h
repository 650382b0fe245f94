/* The kernel of quantize_fp8 and quantize_int8 on devices where x's columns are not adjacent. The includer defines
 * KILN_QUANTIZE_EIGHT as for quantize_gpu.h, what quantize_finite.h asks for, and its entry point over
 * kiln_quantize_transposed.
 *
 * A block turns a tile in shared memory (transposed_gpu.h), finds the greatest magnitudes there if scales are computed,
 * and stores the codes, 32 bytes of a row at a time. Where a scale is of more than a tile, of whole rows or of 128
 * rows, it goes through its tiles twice, the second time from the last to the first, and reads again those alone that
 * are not in shared memory. A group of 128 rows is there, but for half of f32's where a block has 64 KiB at most; rows
 * are if half the memory that a block can have has room for them. Longer rows are read twice, the second time from a
 * cache, or by clusters: quantize_transposed_cluster.h.
 *
 * Whole tiles of groups of 128 columns are for quantize_transposed_tile.h, which takes half as many instructions.
 *
 * Tried: the codes of a thread's vectors unrolled on sm_90a and sm_100, 1.3 instructions an element fewer (simulated)
 * for 58 registers instead of 46 and images larger by a tenth.
 *
 * Floor: that of the kernel for adjacent columns. Measured on an H200 (driver 580.159.04, 2026-11-27; CUDA graphs,
 * cold), when a block had memory for one tile and stored single elements there, 14336 x 4096 of bf16 with an x_stride
 * of 1: 57 us with scales of 128 columns, 104 (fp8) and 111 (int8) with those of rows, which are read twice; adjacent
 * columns take 46, 49 and 50. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_QUANTIZE_TRANSPOSED_GPU_H
#define KILN_KERNELS_COMMON_QUANTIZE_QUANTIZE_TRANSPOSED_GPU_H

#include "kernels/common/device.h"
#include "kernels/common/math/two.h"
#include "kernels/common/quantize/quantize_finite.h"
#include "kernels/common/quantize/quantize_gpu.h"
#include "kernels/common/quantize/quantize_transposed_args.h"
#include "kernels/common/quantize/transposed_greatest.h"

typedef struct kiln_quantize_transposed_shared {
    float of_lines[KILN_TRANSPOSED_LINES]; /* the greatest magnitudes */
    float factors[KILN_TRANSPOSED_ROWS];
} kiln_quantize_transposed_shared;

/* The factors of so many rows from the first on: those of a block's first tile, which are those of all its tiles. */
KILN_INLINE void kiln_quantize_transposed_scales(const kiln_quantize_transposed_args *args, uint64_t first,
                                                 uint32_t rows, kiln_quantize_transposed_shared *shared) {
    const kiln_quantize_args *q = &args->quantize;
    const uint32_t own = kiln_thread();
    if (own >= rows) return;
    const uint64_t row = first + own, place = kiln_quantize_scale_at(q, row, kiln_tile());
    const float value = q->source == KILN_QUANTIZE_COMPUTED
                            ? kiln_transposed_greatest(&args->x, shared->of_lines, own, q->rows_log2 != 0)
                            : q->values[place];
    float scale = value >= 0x1p-126f ? value : 1.0f, over = 1.0f;
    KILN_LOOP /* kiln_quantize_scale, and 1 over it: so that there is one division in the code */
        for (uint32_t pass = q->source == KILN_QUANTIZE_GIVEN; pass < 2; pass++) {
        const float finite = value < 0x1.fffffep127f ? value : 0x1.fffffep127f;
        const float quotient = (pass ? 1.0f : finite) / (pass ? scale : q->smax);
        over = quotient;
        if (!pass) scale = finite >= q->smax * 0x1p-126f ? quotient : 1.0f;
    }
    shared->factors[own] = over;
    if (q->scales && kiln_quantize_is_first(q, row, kiln_tile())) q->scales[place] = scale;
}

/* The codes of a tile. finite: whether a thread knows of its elements, and of their products, what quantize_finite.h
 * says. */
KILN_INLINE void kiln_quantize_transposed_put(const kiln_quantize_transposed_args *args, kiln_transposed_tile at,
                                              const kiln_vector *tile, const float *factors, bool finite) {
    const kiln_quantize_args *q = &args->quantize;
    const uint32_t line = kiln_thread() / KILN_LINE_THREADS, r = line & ((1u << args->x.rows_log2) - 1);
    if (r >= at.rows) return;
    uint8_t *codes = (uint8_t *)q->codes + (at.row + r) * (uint64_t)q->codes_stride + at.col;
    const uint32_t first = (line >> args->x.rows_log2) * KILN_TRANSPOSED_COLS, own = kiln_transposed_own(line);
    const uint32_t place = kiln_transposed_place(&args->x, line, own);
    const float factor = finite ? factors[r] * KILN_QUANTIZE_UNIT : factors[r];
    const bool whole = q->shape.wide && first + KILN_TRANSPOSED_COLS <= at.cols;
    KILN_LOOP
    for (uint32_t i = 0; i < KILN_LINE_EACH; i++) {
        const uint32_t number = i * KILN_LINE_THREADS, c = first + (own ^ number) * KILN_VECTOR;
        if (!whole && c >= at.cols) continue;
        float values[8] = {0.0f};
        kiln_vector_values(values, tile[place ^ number]);
        KILN_UNROLL
        for (int j = 0; j < KILN_VECTOR; j += 2) {
            const kiln_two two = kiln_two_mul(kiln_two_of(values[j], values[j + 1]), kiln_two_of(factor, factor));
            values[j] = two.x;
            values[j + 1] = two.y;
        }
        kiln_eight_bytes bytes;
        if (finite) {
            KILN_UNROLL
            for (int word = 0; word < KILN_QUADS; word++)
                bytes.words[word] = KILN_QUANTIZE_FINITE(values + 4 * word);
        } else {
            bytes = KILN_QUANTIZE_EIGHT(values, q->smax);
        }
        if (whole || (q->shape.wide && c + KILN_VECTOR <= at.cols)) {
            kiln_quantize_codes words;
            KILN_UNROLL
            for (int j = 0; j < KILN_QUADS; j++)
                words.words[j] = bytes.words[j];
            *(kiln_quantize_codes *)(codes + c) = words;
            continue;
        }
        KILN_LOOP
        for (uint32_t j = c; j < c + KILN_VECTOR && j < at.cols; j++) {
            codes[j] = (uint8_t)bytes.words[0];
            bytes.words[0] = bytes.words[0] >> 8 | bytes.words[1] << 24;
            bytes.words[1] >>= 8;
        }
    }
}

/* A block's tiles. tiles: shared memory of args->held. */
KILN_INLINE void kiln_quantize_transposed(const kiln_quantize_transposed_args *args, kiln_vector *tiles,
                                          kiln_quantize_transposed_shared *shared) {
    const kiln_transposed *t = &args->x;
    const uint64_t first = kiln_block() * args->quantize.block_rows;
    if (first >= (uint64_t)t->rows) return; /* the whole block */
    const bool computed = args->quantize.source == KILN_QUANTIZE_COMPUTED;
    const uint32_t count = args->tiles, cols_log2 = kiln_transposed_cols_log2(t);
    kiln_greatest_magnitude greatest = kiln_greatest_magnitude_none();
    kiln_transposed_tile at = kiln_transposed_at(t, first, (uint64_t)kiln_tile() << cols_log2);
    const uint32_t rows = at.rows;
    KILN_LOOP
    for (uint32_t step = computed ? 0 : count; step < 2 * count; step++) {
        const bool again = step >= count;
        const uint32_t number = again ? 2 * count - 1 - step : step;
        if (count > 1)
            at = kiln_transposed_at(t, first + (args->down ? (uint64_t)number << t->rows_log2 : 0),
                                    (uint64_t)(kiln_tile() + (args->down ? 0 : number)) << cols_log2);
        kiln_vector *tile = tiles + (number & args->mask) * KILN_TRANSPOSED_VECTORS;
        if (!again || !computed || number + args->held < count) kiln_transposed_load(t, at, tile);
        if (step == count) {
            if (computed) kiln_transposed_tell(greatest, shared->of_lines);
            kiln_barrier();
            kiln_quantize_transposed_scales(args, first, rows, shared);
        }
        kiln_barrier();
        if (again)
            kiln_quantize_transposed_put(args, at, tile, shared->factors, false);
        else
            kiln_transposed_take(t, tile, &greatest);
        if (args->held == 1) kiln_barrier(); /* else that of the next step is in front of the next use of the tile */
    }
}

#endif
