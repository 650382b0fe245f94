/* gemm_tiles of bf16 and f16 by AMX: gemm_dot.h tells when, and transposes columns. Included once, by gemm_dot.h.
 *
 * A strip's sums and columns are tiles as they lie: a row of 64 sums is four tiles wide, and 16 rows of columns, each
 * of two numbers of k, are the other factor of 64 bytes of rows of a, which are read where they are. All of it is in
 * the second-level cache.
 *
 * Floor: a tile's product of 16 x 16 x 32 takes 16 cycles. Tried by an emulator of these instructions: not measured. */
#include "kernels/common/amx_cpu.h"

enum { AMX_COPY_BYTES = DOT_DEPTH * sizeof(uint16_t) };

_Static_assert(sizeof(strip_scratch) + KILN_AMX_ROWS * AMX_COPY_BYTES <= KILN_CPU_SCRATCH, "copies of a's rows fit");
_Static_assert(STRIP_ROWS >= STRIP * TILE && STRIP * TILE % KILN_AMX_ROWS == 0, "whole tiles of sums fit");

/* What multiply_strip does, of n elements. */
KILN_INLINE void multiply_strip_tiles(strip_scratch *scratch, const kiln_gemm_args *args, const strip *s, uint64_t k,
                                      size_t n, kiln_cpu_dtype dtype) {
    const uint64_t b_stride = (uint64_t)args->b_stride, a_stride = (uint64_t)args->a_stride;
    const uint16_t *b = (const uint16_t *)args->b + s->batch * (uint64_t)args->b_batch_stride + s->col * b_stride + k;
    const uint16_t *a = (const uint16_t *)args->a + s->batch * (uint64_t)args->a_batch_stride + s->row * a_stride + k;
    dot_strip *pairs = (dot_strip *)(void *)scratch->columns;
    const size_t bytes = n * sizeof *a, steps = (bytes + KILN_AMX_DEPTH_BYTES - 1) / KILN_AMX_DEPTH_BYTES;
    take_pairs(pairs, b, b_stride, s->cols, n);
    kiln_amx_begin();
    for (size_t row = 0; row < s->rows; row += KILN_AMX_ROWS) {
        const size_t rows = kiln_min(s->rows - row, KILN_AMX_ROWS);
        uint64_t stride = a_stride * sizeof *a;
        const char *left = kiln_amx_rows((char *)(scratch + 1), (const char *)(a + row * a_stride), &stride, rows,
                                         bytes, steps * KILN_AMX_DEPTH_BYTES);
        kiln_amx_multiply(scratch->sums[row], left, stride, pairs->columns, TILE * sizeof(float), steps,
                          dtype == KILN_CPU_f16 ? KILN_AMX_F16 : KILN_AMX_BF16);
        if (k + n == s->k_end) finish_rows(scratch, args, s, row, row + rows, dtype);
    }
    kiln_amx_end();
}

static void multiply_strip_bf16_tiles(strip_scratch *scratch, const kiln_gemm_args *args, const strip *s, uint64_t k,
                                      size_t n) {
    multiply_strip_tiles(scratch, args, s, k, n, KILN_CPU_bf16);
}

static void multiply_strip_f16_tiles(strip_scratch *scratch, const kiln_gemm_args *args, const strip *s, uint64_t k,
                                     size_t n) {
    multiply_strip_tiles(scratch, args, s, k, n, KILN_CPU_f16);
}
