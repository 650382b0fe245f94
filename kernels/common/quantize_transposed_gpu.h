/* The kernel of quantize_fp8 and quantize_int8 on devices where x's columns are not adjacent. The includer defines
 * KILN_QUANTIZE_EIGHT as for quantize_gpu.h, and its entry point over kiln_quantize_transposed.
 *
 * A block turns a tile in shared memory (transposed_gpu.h), finds the greatest magnitudes there if scales are computed,
 * and stores the codes, 128 columns of a row at a time. Where a scale is of more than a tile, of whole rows or of 128
 * rows, it goes through its tiles twice, the second time from the last to the first, which a cache still has; a tile
 * that is the only one is read once.
 *
 * Floor: that of the kernel for adjacent columns. Measured on an H200 (driver 580.159.04, 2026-11-27; CUDA graphs,
 * cold), 14336 x 4096 of bf16 with an x_stride of 1: 57 us with scales of 128 columns, 104 (fp8) and 111 (int8) with
 * those of rows, which are read twice; adjacent columns take 46, 49 and 50. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_TRANSPOSED_GPU_H
#define KILN_KERNELS_COMMON_QUANTIZE_TRANSPOSED_GPU_H

#include "kernels/common/quantize_gpu.h"
#include "kernels/common/quantize_transposed_args.h"
#include "kernels/common/transposed_greatest.h"

typedef struct kiln_quantize_transposed_shared {
    kiln_transposed_shared x;
    float factors[KILN_TRANSPOSED_ROWS];
} kiln_quantize_transposed_shared;

/* The factors of a tile's rows; tile is the number of its first column's 128. */
KILN_INLINE void kiln_quantize_transposed_scales(const kiln_quantize_transposed_args *args, uint64_t row, uint64_t tile,
                                                 kiln_quantize_transposed_shared *shared) {
    const kiln_quantize_args *q = &args->quantize;
    const uint32_t own = kiln_thread();
    if (own >= kiln_transposed_inside(args->x.rows, row, args->x.rows_log2)) return;
    const uint64_t at = kiln_quantize_scale_at(q, row + own, tile);
    const float value = q->source == KILN_QUANTIZE_COMPUTED
                            ? kiln_transposed_greatest(&args->x, &shared->x, own, q->rows_log2 != 0)
                            : q->values[at];
    float scale = value >= 0x1p-126f ? value : 1.0f, over = 1.0f;
    KILN_LOOP /* kiln_quantize_scale, and 1 over it: so that there is one division in the code */
        for (uint32_t pass = q->source == KILN_QUANTIZE_GIVEN; pass < 2; pass++) {
        const float finite = value < 0x1.fffffep127f ? value : 0x1.fffffep127f;
        const float quotient = (pass ? 1.0f : finite) / (pass ? scale : q->smax);
        over = quotient;
        if (!pass) scale = finite >= q->smax * 0x1p-126f ? quotient : 1.0f;
    }
    shared->factors[own] = over;
    if (q->scales && kiln_quantize_is_first(q, row + own, tile)) q->scales[at] = scale;
}

/* The codes of a tile. */
KILN_INLINE void kiln_quantize_transposed_put(const kiln_quantize_transposed_args *args, uint64_t row, uint64_t col,
                                              const kiln_quantize_transposed_shared *shared) {
    const kiln_quantize_args *q = &args->quantize;
    const uint32_t rows = kiln_transposed_inside(args->x.rows, row, args->x.rows_log2);
    const uint32_t cols = kiln_transposed_inside(args->x.cols, col, kiln_transposed_cols_log2(&args->x));
    const uint32_t vector = kiln_thread() % KILN_LINE;
    KILN_LOOP
    for (uint32_t line = kiln_thread() / KILN_LINE; line < KILN_TRANSPOSED_LINES; line += KILN_BLOCK / KILN_LINE) {
        const uint32_t r = line & ((1u << args->x.rows_log2) - 1);
        const uint32_t c = (line >> args->x.rows_log2) * KILN_TRANSPOSED_COLS + vector * KILN_VECTOR;
        if (r >= rows || c >= cols) continue;
        uint8_t *codes = (uint8_t *)q->codes + (row + r) * (uint64_t)q->codes_stride + col + c;
        const float factor = shared->factors[r];
        float values[8] = {0.0f};
        kiln_vector_values(values, shared->x.tile[kiln_transposed_place(line, vector)]);
        KILN_UNROLL
        for (int i = 0; i < KILN_VECTOR; i++)
            values[i] *= factor;
        kiln_eight_bytes bytes = KILN_QUANTIZE_EIGHT(values, q->smax);
        if (q->shape.wide && c + KILN_VECTOR <= cols) {
            kiln_quantize_codes whole;
            KILN_UNROLL
            for (int i = 0; i < KILN_QUADS; i++)
                whole.words[i] = bytes.words[i];
            *(kiln_quantize_codes *)codes = whole;
            continue;
        }
        KILN_LOOP
        for (uint32_t i = 0; i < KILN_VECTOR && c + i < cols; i++) {
            codes[i] = (uint8_t)bytes.words[0];
            bytes.words[0] = bytes.words[0] >> 8 | bytes.words[1] << 24;
            bytes.words[1] >>= 8;
        }
    }
}

/* A block's tiles. */
KILN_INLINE void kiln_quantize_transposed(const kiln_quantize_transposed_args *args,
                                          kiln_quantize_transposed_shared *shared) {
    const kiln_transposed *t = &args->x;
    const uint64_t first = kiln_block() * args->quantize.block_rows;
    if (first >= (uint64_t)t->rows) return; /* the whole block */
    const bool computed = args->quantize.source == KILN_QUANTIZE_COMPUTED;
    const uint32_t inside = kiln_transposed_inside(t->rows, first, KILN_QUANTIZE_GROUP_LOG2);
    const uint32_t down = (inside + (1u << t->rows_log2) - 1) >> t->rows_log2, tiles = args->down ? down : args->tiles;
    kiln_transposed_clear(&shared->x);
    KILN_LOOP
    for (uint32_t step = computed ? 0 : tiles; step < 2 * tiles; step++) {
        const bool again = step >= tiles;
        const uint32_t number = again ? 2 * tiles - 1 - step : step;
        const uint64_t row = first + (args->down ? (uint64_t)number << t->rows_log2 : 0);
        const uint64_t tile = kiln_tile() + (args->down ? 0 : number), col = tile << kiln_transposed_cols_log2(t);
        if (!computed || step != tiles) kiln_transposed_load(t, row, col, shared->x.tile);
        if (again) kiln_quantize_transposed_scales(args, row, tile, shared);
        kiln_barrier();
        if (again)
            kiln_quantize_transposed_put(args, row, col, shared);
        else
            kiln_transposed_take(&shared->x);
        kiln_barrier();
    }
}

#endif
