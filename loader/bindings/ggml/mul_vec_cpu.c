/* mul_vec on the CPU, once for each of its levels: mul_vec_args.h says what it computes. A block of the grid is as many
 * rows of w as a GPU's; a block of w becomes floats in registers, which up to GROUP rows of x are multiplied by.
 *
 * Floor: w at memory bandwidth, 34 bytes for 32 weights; with several rows of x, a multiply-add for each weight and
 * row.
 */
#include "kernels/common/cpu.h"
#include "loader/bindings/ggml/mul_vec_args.h"

enum { LANES = 16, GROUP = 4, ROWS = KILN_BLOCK / KILN_SUBGROUP };

/* Row n of w with `count` rows of x, a constant, from row m on. */
KILN_INLINE void do_rows(const ggml_kiln_mul_vec_args *args, uint64_t n, uint32_t m, const uint32_t count) {
    const char *block = (const char *)args->w + (int64_t)n * args->w_stride;
    const float *x = args->x + m * args->x_stride;
    float sums[GROUP][LANES] = {{0}};
    for (uint32_t i = 0; i < args->blocks; i++, block += GGML_KILN_MUL_VEC_BYTES) {
        const float scale = kiln_f16_to_f32_soft(*(const uint16_t *)(const void *)block);
        const int8_t *codes = (const int8_t *)block + 2;
        for (uint32_t half = 0; half < GGML_KILN_MUL_VEC_BLOCK; half += LANES, x += LANES) {
            float w[LANES];
            for (uint32_t lane = 0; lane < LANES; lane++)
                w[lane] = (float)codes[half + lane] * scale;
            for (uint32_t row = 0; row < count; row++)
                for (uint32_t lane = 0; lane < LANES; lane++)
                    sums[row][lane] = kiln_fused(w[lane], x[row * args->x_stride + lane], sums[row][lane]);
        }
    }
    for (uint32_t row = 0; row < count; row++) {
        float *y = args->y + (m + row) * args->y_stride + n;
        *y = 0;
        for (uint32_t lane = 0; lane < LANES; lane++)
            *y += sums[row][lane];
    }
}

#define NAME_PASTE(level) ggml_kiln_mul_vec_##level
#define NAME(level)       NAME_PASTE(level)

extern kiln_cpu_function_type NAME(KILN_CPU_LEVEL);

void NAME(KILN_CPU_LEVEL)(const void *arguments, const kiln_cpu_span *span) {
    const ggml_kiln_mul_vec_args args = *(const ggml_kiln_mul_vec_args *)arguments;
    const uint64_t end = kiln_min(span->end * ROWS, args.n);
    for (uint64_t n = span->begin * ROWS; n < end; n++) {
        uint32_t m = 0;
        for (; m + GROUP <= args.m; m += GROUP)
            do_rows(&args, n, m, GROUP);
        for (; m < args.m; m++)
            do_rows(&args, n, m, 1);
    }
}
