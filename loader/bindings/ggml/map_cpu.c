/* map on the CPU, once for each of its levels: map_args.h says what it computes, map_gpu.c how it is cut.
 *
 * Floor: the operands at memory bandwidth, where rows are contiguous and of floats; else an element at a time. */
#include "kernels/common/cpu.h"

#define ggml_kiln_half kiln_f16_to_f32_soft
#include "loader/bindings/ggml/map_index.h"

/* Whether the elements of a row of floats lie side by side. */
KILN_INLINE bool is_dense(const ggml_kiln_operand *o) {
    return o->type == GGML_KILN_F32 ? o->stride[0] == 4 : o->type <= GGML_KILN_BF16 && o->stride[0] == 2;
}

/* count elements of an operand's row from i on, as f32: those of the tensor itself, or in tile; NULL where it is
 * absent.
 */
KILN_INLINE const float *read_tile(float *tile, const ggml_kiln_operand *o, const char *row, uint32_t i,
                                   uint32_t count) {
    if (!o->data) return NULL;
    if (is_dense(o) && i + count <= o->size[0]) {
        if (o->type == GGML_KILN_F32) return kiln_tile_load(tile, row + i * 4, count, KILN_CPU_f32);
        if (o->type == GGML_KILN_F16) return kiln_tile_load(tile, row + i * 2, count, KILN_CPU_f16);
        return kiln_tile_load(tile, row + i * 2, count, KILN_CPU_bf16);
    }
    for (uint32_t n = 0; n < count; n++)
        tile[n] = ggml_kiln_read(o, row, i + n);
    return tile;
}

/* Takes results to y; f32 that lie side by side are there already. */
KILN_INLINE void write_tile(const ggml_kiln_operand *o, char *target, const float *tile, uint32_t count) {
    if (is_dense(o)) {
        if (o->type == GGML_KILN_F16) kiln_tile_write(target, tile, count, KILN_CPU_f16, false);
        if (o->type == GGML_KILN_BF16) kiln_tile_write(target, tile, count, KILN_CPU_bf16, false);
        return;
    }
    for (uint32_t n = 0; n < count; n++, target += o->stride[0]) {
        uint16_t half = o->type == GGML_KILN_F16 ? kiln_f32_to_f16_soft(tile[n]) : kiln_f32_to_bf16(tile[n]);
        if (o->type == GGML_KILN_F32) {
            memcpy(target, &tile[n], sizeof *tile);
        } else {
            memcpy(target, &half, sizeof half);
        }
    }
}

KILN_INLINE void combine(float *y, const float *x, const float *factors, const float *addends, uint32_t count,
                         float scale, float offset) {
    if (factors && addends) {
        KILN_INDEPENDENT
        for (uint32_t n = 0; n < count; n++)
            y[n] = kiln_fused(x[n], factors[n], addends[n]);
    } else if (factors) {
        KILN_INDEPENDENT
        for (uint32_t n = 0; n < count; n++)
            y[n] = kiln_fused(x[n], factors[n], offset);
    } else if (addends) {
        KILN_INDEPENDENT
        for (uint32_t n = 0; n < count; n++)
            y[n] = kiln_fused(x[n], scale, addends[n]);
    } else {
        KILN_INDEPENDENT
        for (uint32_t n = 0; n < count; n++)
            y[n] = kiln_fused(x[n], scale, offset);
    }
}

KILN_INLINE void do_row(const ggml_kiln_map_args *args, uint32_t row, uint32_t col, uint32_t col_end) {
    ggml_kiln_row r = ggml_kiln_row_of(args, row);
    if (r.absent) return;
    char *y = ggml_kiln_at(&args->y, args->scatter ? r.named : r.index[0], &r);
    const char *a = ggml_kiln_at(&args->a, args->scatter ? r.index[0] : r.named, &r);
    const char *b = ggml_kiln_at(&args->b, r.index[0], &r), *c = ggml_kiln_at(&args->c, r.index[0], &r);
    const bool in_y = args->y.type == GGML_KILN_F32 && is_dense(&args->y);
    float a_tile[KILN_TILE], b_tile[KILN_TILE], c_tile[KILN_TILE];
    for (uint32_t count; col < col_end; col += count) {
        count = (uint32_t)kiln_min(col_end - col, KILN_TILE);
        char *target = y + col * args->y.stride[0];
        const float *x = read_tile(a_tile, &args->a, a, col, count);
        const float *factors = read_tile(b_tile, &args->b, b, col, count);
        const float *addends = read_tile(c_tile, &args->c, c, col, count);
        float *result = in_y ? (float *)(void *)target : a_tile;
        combine(result, x, factors, addends, count, args->scale, args->offset);
        write_tile(&args->y, target, result, count);
    }
}

#define NAME_PASTE(level) ggml_kiln_map_##level
#define NAME(level)       NAME_PASTE(level)

extern kiln_cpu_function_type NAME(KILN_CPU_LEVEL);

void NAME(KILN_CPU_LEVEL)(const void *arguments, const kiln_cpu_span *span) {
    const ggml_kiln_map_args args = *(const ggml_kiln_map_args *)arguments;
    uint64_t rows = KILN_BLOCK >> args.lanes_log2, tile = (uint64_t)GGML_KILN_THREAD_ELEMENTS << args.lanes_log2;
    for (uint64_t block = span->begin; block < span->end; block++) {
        uint64_t col = block % span->grid[0] * tile, row = block / span->grid[0] * rows;
        uint64_t row_end = kiln_min(row + rows, args.rows), col_end = kiln_min(col + tile, args.size[0]);
        for (; row < row_end; row++)
            do_row(&args, (uint32_t)row, (uint32_t)col, (uint32_t)col_end);
    }
}
