/* gemm_tiles of bf16 and f16 by AMX, where the device was opened with allow_amx and the call asks for dot products: see
 * amx_cpu.h. Included once, by gemm_dot.h.
 *
 * Floor: a tile's product of 16 x 16 x 32 takes 16 cycles. Measured on a processor: docs/benchmarks/cpu-model.md. */
#include "kernels/common/matmul/amx_cpu.h"

/* Working memory for a block. */
typedef struct amx_scratch {
    kiln_amx_block block;
    float sums[KILN_TILE]; /* of a row */
    finish_tiles tiles;
} amx_scratch;
_Static_assert(sizeof(amx_scratch) <= KILN_CPU_SCRATCH, "fits");

/* Writes the results of a row of a strip. */
KILN_INLINE void finish_row(amx_scratch *scratch, const kiln_gemm_args *args, const strip *s, size_t row,
                            kiln_cpu_dtype dtype) {
    for (size_t col = 0, count; col < s->cols; col += count) {
        count = kiln_min(s->cols - col, KILN_TILE);
        kiln_amx_sums_of(scratch->sums, &scratch->block, row, col, count);
        if (args->partials) {
            uint64_t matrix = ((uint64_t)s->split * args->batch + s->batch) * (uint64_t)args->m;
            uint64_t place = (matrix + s->row + row) * (uint64_t)args->n + s->col + col;
            memcpy(args->partials + place, scratch->sums, count * sizeof *scratch->sums);
        } else {
            finish(&scratch->tiles, args, scratch->sums, s->batch, s->row + row, s->col + col, count, dtype);
        }
    }
}

KILN_INLINE void amx_tiles(const kiln_gemm_args *args, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    enum { SIZE = sizeof(uint16_t) };
    amx_scratch *scratch = span->scratch;
    const uint64_t a_stride = (uint64_t)args->a_stride * SIZE, b_stride = (uint64_t)args->b_stride * SIZE;
    strip s;
    kiln_amx_begin();
    for (uint64_t block = span->begin; block < span->end; block += s.blocks) {
        s = strip_of(args, span, block);
        if (s.batch >= args->batch) break;
        const uint8_t *a = (const uint8_t *)args->a + s.batch * (uint64_t)args->a_batch_stride * SIZE;
        const uint8_t *b = (const uint8_t *)args->b + s.batch * (uint64_t)args->b_batch_stride * SIZE;
        const kiln_amx_rows left = {a + s.row * a_stride + s.k * SIZE, a_stride, s.rows};
        const kiln_amx_rows right = {b + s.col * b_stride + s.k * SIZE, b_stride, s.cols};
        kiln_amx_multiply(&scratch->block, &left, &right, (s.k_end - s.k) * SIZE,
                          dtype == KILN_CPU_f16 ? KILN_AMX_F16 : KILN_AMX_BF16);
        for (size_t row = 0; row < s.rows; row++)
            finish_row(scratch, args, &s, row, dtype);
    }
    kiln_amx_end();
}

/* Computes the blocks, if AMX may: false if not. Without k there are no sums to begin with. */
KILN_INLINE bool gemm_amx(const kiln_gemm_args *args, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    if (dtype == KILN_CPU_f32 || args->stages != KILN_GEMM_COMPUTE_DOT || !args->k) return false;
    if (!KILN_CPU_HAS_AMX(dtype == KILN_CPU_f16 ? KILN__CPU_AMX_F16 : KILN__CPU_AMX_BF16)) return false;
    amx_tiles(args, span, dtype);
    return true;
}
