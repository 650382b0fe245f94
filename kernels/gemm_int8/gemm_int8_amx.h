/* gemm_int8_tiles by AMX, where the device was opened with allow_amx: products of tiles are added in int32, exactly,
 * hence to the same bits as by w8a8_cpu.h. Included once, by gemm_int8_vnni.h, which has the codes' vectors.
 *
 * As gemm_amx.h: a strip's sums and columns, with four codes of k in a lane, are tiles as they lie. Where groups have
 * scales, a group's products are added to zeros, and their sums then scaled; else columns of four groups are transposed
 * at a time.
 *
 * Floor: a tile's product of 16 x 16 x 64 takes 16 cycles. Tried by an emulator of these instructions: not measured. */
#include "kernels/common/amx_cpu.h"

enum { AMX_DEPTH = 4 * GROUP /* codes of a row */ };

/* What a strip is worked on with, in place of floats. */
typedef struct amx_strip {
    codes_vec columns[AMX_DEPTH / 4][TILE / KILN_VEC];
    int32_t products[KILN_AMX_ROWS][TILE]; /* of a group */
} amx_strip;
_Static_assert(offsetof(strip_scratch, columns) + sizeof(amx_strip) <= offsetof(strip_scratch, a),
               "is where floats are");
_Static_assert(sizeof(strip_scratch) % sizeof(codes_vec) == 0, "vectors are aligned behind it");
_Static_assert(sizeof(strip_scratch) + KILN_AMX_ROWS * AMX_DEPTH <= KILN_CPU_SCRATCH, "copies of a's rows fit");
_Static_assert(STRIP_ROWS >= STRIP * TILE && STRIP * TILE % KILN_AMX_ROWS == 0, "whole tiles of sums fit");

/* Adds a group's products of some rows, from the strip's row `row` on, with their scales to the sums. */
KILN_INLINE void add_scaled(strip_scratch *scratch, const kiln_w8a8_args *args, const strip *s, uint64_t k, size_t row,
                            size_t rows) {
    const amx_strip *codes = (const amx_strip *)(const void *)scratch->columns;
    for (size_t r = 0; r < rows; r++) {
        const kiln_vec left = KILN_VEC_SET(kiln_w8a8_scale(&args->a_scales, s->row + row + r, k / GROUP));
        for (size_t col = 0; col < TILE; col += KILN_VEC) {
            float *sum = &scratch->sums[row + r][col].scaled;
            const kiln_vec factors = KILN_VEC_MUL(left, KILN_VEC_LOAD(scratch->b_scales + col));
            const kiln_vec products = TO_F32(LOAD(&codes->products[r][col]));
            KILN_VEC_STORE(sum, KILN_VEC_FMA(products, factors, KILN_VEC_LOAD(sum)));
        }
    }
}

/* What multiply_strip does, of n codes: of a group at most where groups have scales, else of AMX_DEPTH. */
static void multiply_strip_amx(strip_scratch *scratch, const kiln_w8a8_args *args, const strip *s, uint64_t k,
                               size_t n) {
    const uint8_t *a = args->a + s->row * (uint64_t)args->a_stride + k;
    amx_strip *codes = (amx_strip *)(void *)scratch->columns;
    const size_t steps = (n + KILN_AMX_DEPTH_BYTES - 1) / KILN_AMX_DEPTH_BYTES;
    for (size_t v = 0; v < TILE / KILN_VEC; v++)
        for (size_t i = 0; i < n; i += CODES)
            transpose_codes(&codes->columns[i / 4], v, args->b + s->col * (uint64_t)args->b_stride + k + i,
                            (uint64_t)args->b_stride, s->cols, n - i);
    for (size_t i = 0; args->grouped && i < s->cols; i++)
        scratch->b_scales[i] = kiln_w8a8_scale(&args->b_scales, s->col + i, k / GROUP);
    kiln_amx_begin();
    for (size_t row = 0; row < s->rows; row += KILN_AMX_ROWS) {
        const size_t rows = kiln_min(s->rows - row, KILN_AMX_ROWS);
        uint64_t stride = (uint64_t)args->a_stride;
        const char *left = kiln_amx_rows((char *)(scratch + 1), (const char *)(a + row * stride), &stride, rows, n,
                                         steps * KILN_AMX_DEPTH_BYTES);
        void *sums = args->grouped ? (void *)codes->products : (void *)scratch->sums[row];
        if (args->grouped) memset(codes->products, 0, sizeof codes->products);
        kiln_amx_multiply(sums, left, stride, codes->columns, TILE * sizeof(int32_t), steps, KILN_AMX_INT8);
        if (args->grouped) add_scaled(scratch, args, s, k, row, rows);
    }
    kiln_amx_end();
}
