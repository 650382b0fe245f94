/* gemm_int8_tiles by AMX, where the device was opened with allow_amx: products of tiles are added in int32, exactly,
 * hence to the same bits as by w8a8_cpu.h. See amx_cpu.h. Included once, by gemm_int8_vnni.h.
 *
 * Where groups have scales, the products of a group's two tiles along k are added to zeros, and their sums then scaled.
 *
 * Floor: a tile's product of 16 x 16 x 64 takes 16 cycles. Measured on a processor: docs/benchmarks/cpu-model.md. */
#include "kernels/common/matmul/amx_cpu.h"

enum { AMX_GROUPS = KILN_AMX_DEPTH / GROUP, AMX_GROUP_STEPS = GROUP / KILN_AMX_TILE_BYTES };

/* Working memory for a block. */
typedef struct amx_scratch {
    kiln_amx_block block;
    kiln_amx_tile products[2][2]; /* of a group */
    float a_scales[AMX_GROUPS][KILN_MATMUL_BLOCK_ROWS], b_scales[AMX_GROUPS][KILN_MATMUL_BLOCK_COLUMNS];
    w8a8_sum sums[KILN_TILE]; /* of a row */
    finish_tiles tiles;
} amx_scratch;
_Static_assert(sizeof(amx_scratch) <= KILN_CPU_SCRATCH, "fits");
_Static_assert((int)TILE == (int)KILN_MATMUL_LAUNCHED, "tiles are what is launched");

/* Adds a group's products, with the scales of their rows and columns, to the sums, or begins with them. */
KILN_INLINE void add_scaled(kiln_amx_tile *sums, const kiln_amx_tile *products, const float *a_scales,
                            const float *b_scales, bool first) {
    for (size_t row = 0; row < KILN_AMX_TILE_ROWS; row++) {
        float *sum = (float *)(void *)sums->rows[row];
        const kiln_vec factors = KILN_VEC_MUL(KILN_VEC_SET(a_scales[row]), KILN_VEC_LOAD(b_scales));
        const kiln_vec before = first ? KILN_VEC_ZERO() : KILN_VEC_LOAD(sum);
        KILN_VEC_STORE(sum, KILN_VEC_FMA(TO_F32(LOAD(products->rows[row])), factors, before));
    }
}

/* Adds the products of groups that have scales, KILN_AMX_DEPTH bytes at most, to the sums, or begins with them. */
KILN_INLINE void multiply_groups(amx_scratch *scratch, const kiln_amx_rows *a, const kiln_amx_rows *b, size_t n,
                                 bool first) {
    kiln_amx_block *block = &scratch->block;
    kiln_amx_take_rows(block->a[0], a, n);
    for (size_t col = 0; col < b->count; col += 2 * KILN_AMX_TILE_ROWS) {
        kiln_amx_take_columns(block, b, col, n);
        for (size_t row = 0; row < a->count; row += 2 * KILN_AMX_TILE_ROWS) {
            const size_t tile = row / KILN_AMX_TILE_ROWS;
            for (size_t k = 0; k < n; k += GROUP) {
                const size_t steps = (kiln_min(n - k, GROUP) + KILN_AMX_TILE_BYTES - 1) / KILN_AMX_TILE_BYTES;
                const size_t step = k / GROUP * AMX_GROUP_STEPS;
                kiln_amx_zero_sums();
                for (size_t i = step; i < step + steps; i++)
                    kiln_amx_add_step(&block->a[0][tile][i], &block->a[0][tile + 1][i], block->b[i], KILN_AMX_INT8);
                kiln_amx_store_sums(scratch->products[0], scratch->products[1]);
                for (size_t i = 0; i < 4; i++)
                    add_scaled(&block->sums[tile + i / 2][col / KILN_AMX_TILE_ROWS + i % 2],
                               &scratch->products[i / 2][i % 2],
                               &scratch->a_scales[k / GROUP][row + i / 2 * KILN_AMX_TILE_ROWS],
                               &scratch->b_scales[k / GROUP][col + i % 2 * KILN_AMX_TILE_ROWS], first && k == 0);
            }
        }
    }
}

/* The scales of n codes from k on, of the strip's rows and columns. */
KILN_INLINE void take_scales(amx_scratch *scratch, const kiln_w8a8_args *args, const strip *s, uint64_t k, size_t n) {
    for (size_t group = 0; group * GROUP < n; group++) {
        for (size_t row = 0; row < s->rows; row++)
            scratch->a_scales[group][row] = kiln_w8a8_scale(&args->a_scales, s->row + row, k / GROUP + group);
        for (size_t col = 0; col < s->cols; col++)
            scratch->b_scales[group][col] = kiln_w8a8_scale(&args->b_scales, s->col + col, k / GROUP + group);
    }
}

/* The strip, as wide as a block of AMX, that begins with a block of the launch. */
KILN_INLINE strip block_of(const kiln_w8a8_args *args, const kiln_cpu_span *span, uint64_t block) {
    const uint64_t tiles = args->tile_rows * (uint64_t)span->grid[0], tile = block % tiles;
    const uint64_t most = kiln_min(span->end - block, tiles - tile);
    const kiln_matmul_rectangle r = kiln_matmul_rectangle_of(tile, most, args->tile_rows, span->grid[0]);
    strip s = {.split = (uint32_t)(block / tiles), .row = r.row * TILE, .col = r.col * TILE, .blocks = r.rows * r.cols};
    s.rows = kiln_min((uint64_t)args->m - s.row, r.rows * TILE);
    s.cols = kiln_min((uint64_t)args->n - s.col, r.cols * TILE);
    s.k = (uint64_t)s.split * args->split;
    s.k_end = kiln_min(s.k + args->split, (uint64_t)args->k);
    return s;
}

/* Writes the results of a row of a block. */
KILN_INLINE void finish_block_row(amx_scratch *scratch, const kiln_w8a8_args *args, const strip *s, size_t row,
                                  kiln_cpu_dtype dtype) {
    strip part = *s;
    for (size_t col = 0; col < s->cols; col += part.cols) {
        part.col = s->col + col;
        part.cols = kiln_min(s->cols - col, KILN_TILE);
        kiln_amx_sums_of(scratch->sums, &scratch->block, row, col, part.cols);
        finish_row(&scratch->tiles, args, scratch->sums, &part, row, dtype);
    }
}

static void amx_tiles(const kiln_w8a8_args *args, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    amx_scratch *scratch = span->scratch;
    strip s;
    kiln_amx_begin();
    memset(scratch->a_scales, 0, sizeof scratch->a_scales);
    memset(scratch->b_scales, 0, sizeof scratch->b_scales);
    for (uint64_t block = span->begin; block < span->end; block += s.blocks) {
        s = block_of(args, span, block);
        if (s.split >= args->splits) break;
        const uint64_t a_stride = (uint64_t)args->a_stride, b_stride = (uint64_t)args->b_stride;
        kiln_amx_rows a = {args->a + s.row * a_stride + s.k, a_stride, s.rows};
        kiln_amx_rows b = {args->b + s.col * b_stride + s.k, b_stride, s.cols};
        if (!args->grouped) kiln_amx_multiply(&scratch->block, &a, &b, s.k_end - s.k, KILN_AMX_INT8);
        for (uint64_t k = s.k; args->grouped && k < s.k_end; k += KILN_AMX_DEPTH) {
            const size_t n = kiln_min(s.k_end - k, KILN_AMX_DEPTH);
            take_scales(scratch, args, &s, k, n);
            multiply_groups(scratch, &a, &b, n, k == s.k);
            a.first += n;
            b.first += n;
        }
        for (size_t row = 0; row < s.rows; row++)
            finish_block_row(scratch, args, &s, row, dtype);
    }
    kiln_amx_end();
}
