/* quantize_nvfp4 on the CPU: the operator's definition. quantize_nvfp4_gpu.c says what its blocks do.
 *
 * Floor: one read of the tensor and one write of its codes at memory bandwidth.
 * Test: build/tests/ops/quantize_nvfp4_test. Bench: build/kiln bench quantize_nvfp4 --device cpu */
#include "kernels/common/quantize/nvfp4_cpu.h"
#include "kernels/common/quantize/transposed_cpu.h"
#include "kernels/quantize_nvfp4/quantize_nvfp4_args.h"
#include "kernels/quantize_nvfp4/quantize_nvfp4_transposed_args.h"

/* 1 over a row's global scale, which is stored with its first blocks. */
KILN_INLINE float row_encode(const kiln_quantize_nvfp4_args *args, uint64_t row, bool first) {
    const float global_scale = kiln_nvfp4_global(args->values[args->each ? row : 0], args->given);
    if (args->global_scale && first && (args->each || row == 0)) args->global_scale[row] = global_scale;
    return 1.0f / global_scale;
}

/* Stores what was made of a row from its number `block` on. */
KILN_INLINE void put_blocks(const kiln_quantize_nvfp4_args *args, uint64_t row, uint64_t block, uint64_t blocks,
                            const uint8_t *codes, const uint8_t *scales) {
    const uint64_t cols = (uint64_t)args->shape.cols;
    if (row < (uint64_t)args->rows)
        memcpy(args->codes + row * (uint64_t)args->codes_stride + block * KILN_NVFP4_BLOCK_BYTES, codes,
               blocks * KILN_NVFP4_BLOCK_BYTES);
    if (!args->swizzled) memcpy(args->scales + row * cols + block, scales, blocks);
    for (uint64_t i = 0; args->swizzled && i < blocks; i++)
        args->scales[kiln_nvfp4_swizzled(row, block + i, cols)] = scales[i];
}

/* Quantises the blocks of a row from `first` to before `end`. Elements beyond the row are zeros. */
KILN_INLINE void quantize_blocks(const kiln_quantize_nvfp4_args *args, uint64_t row, uint64_t first, uint64_t end,
                                 kiln_cpu_dtype dtype) {
    const bool inside = row < (uint64_t)args->rows;
    float encode = 1.0f, tile[KILN_TILE];
    uint8_t codes[KILN_TILE / 2], scales[KILN_NVFP4_TILE_BLOCKS];
    if (inside) encode = row_encode(args, row, first == 0);
    for (uint64_t block = first; block < end; block += KILN_NVFP4_TILE_BLOCKS) {
        uint64_t col = block * KILN_NVFP4_BLOCK, blocks = kiln_min(end - block, KILN_NVFP4_TILE_BLOCKS), count = 0;
        if (inside && col < (uint64_t)args->cols)
            count = kiln_min((uint64_t)args->cols - col, blocks * KILN_NVFP4_BLOCK);
        const void *x = kiln_at(args->x, row * (uint64_t)args->x_stride + col, dtype);
        const float *values = kiln_tile_read(tile, x, count, dtype);
        if (count < KILN_TILE) {
            if (values != tile) memcpy(tile, values, count * sizeof *tile);
            memset(tile + count, 0, (KILN_TILE - count) * sizeof *tile);
            values = tile;
        }
        kiln_nvfp4_encode(codes, scales, values, encode, KILN_NVFP4_TILE_BLOCKS);
        put_blocks(args, row, block, blocks, codes, scales);
    }
}

KILN_OUTLINED void quantize_nvfp4(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_quantize_nvfp4_args args =
        *(const kiln_quantize_nvfp4_args *)arguments; /* a copy, which no store can change */
    for (uint64_t block = span->begin; block < span->end; block++)
        for (kiln_cpu_work work = kiln_work_of(&args.shape, span, block); work.row < work.row_end; work.row++)
            quantize_blocks(&args, work.row, work.col, work.col_end, dtype);
}
KILN_CPU_KERNEL(quantize_nvfp4)

/* Where columns are not adjacent: tiles of 128 columns. */
KILN_OUTLINED void quantize_nvfp4_transposed(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    enum { TILE_BLOCKS = KILN_TRANSPOSED_COLS / KILN_NVFP4_BLOCK };
    const kiln_quantize_nvfp4_transposed_args args =
        *(const kiln_quantize_nvfp4_transposed_args *)arguments; /* a copy, which no store can change */
    const uint64_t scale_rows = (uint64_t)args.plain.shape.rows, scale_cols = (uint64_t)args.plain.shape.cols;
    kiln_transposed_scratch *scratch = span->scratch;
    float *values = scratch->tiles[0];
    uint8_t codes[TILE_BLOCKS * KILN_NVFP4_BLOCK_BYTES], scales[TILE_BLOCKS];
    for (uint64_t block = span->begin; block < span->end; block++) {
        const uint64_t tile = block % span->grid[0], first = block / span->grid[0] << args.x.rows_log2;
        const uint64_t end = kiln_min(first + (1ull << args.x.rows_log2), scale_rows);
        const kiln_transposed_tile at = kiln_transposed_tile_at(&args.x, first, tile * KILN_TRANSPOSED_COLS, dtype);
        memset(values, 0, sizeof scratch->tiles[0]); /* what is beyond x */
        kiln_transposed_load(&args.x, &at, values, dtype);
        for (uint64_t row = first; row < end; row++) {
            const float encode = row < (uint64_t)args.plain.rows ? row_encode(&args.plain, row, tile == 0) : 1.0f;
            kiln_nvfp4_encode(codes, scales, values + (row - first) * at.pitch, encode, TILE_BLOCKS);
            put_blocks(&args.plain, row, tile * TILE_BLOCKS, kiln_min(scale_cols - tile * TILE_BLOCKS, TILE_BLOCKS),
                       codes, scales);
        }
    }
}
KILN_CPU_KERNEL(quantize_nvfp4_transposed)
