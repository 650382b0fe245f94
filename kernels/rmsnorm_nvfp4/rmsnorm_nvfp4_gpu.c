/* rmsnorm_nvfp4: s = x + residual, which is rounded and stored as sum; r = s / sqrt(mean of s^2 + eps) * weight
 * over each row, in f32, which is not stored; codes = E2M1 of r / (scale * g), with a scale in E4M3 for each
 * block of 16 columns, and g = amax / 2688 for each row.
 *
 * 16 or 32 threads share a row of up to 512 columns, and a whole block shares a longer one. The passes over a row are
 * the squares, of eights of columns in the order of their sum, then the greatest magnitude where it determines the
 * row's scale, and the codes, of blocks of 16 columns, so that no thread tells another a scale. Each pass reads the
 * inputs again, which are in a cache by then, so a row may have any length. Rows that are not aligned, and blocks that
 * are incomplete, go column by column.
 *
 * The order of each sum is fixed (codes_scale.h), whatever the alignment, so that the result has the CPU's bits.
 *
 * Floor: without a residual one read of x and one write of the codes at memory bandwidth, 4.56 bytes an element
 * of f32, 2.56 of 16 bits; the residual and the sum add one element each. docs/kernel-report.md has the
 * instruction counts and the time that they take, in which what a cache serves counts as memory: 10 bytes an element of
 * 16 bits. Tried: sums and results in shared memory between the passes, an eight at a time, which took 76 to 85
 * instructions an element of 16 bits on NVIDIA where this takes 25 to 42, and left room for three blocks. Not measured.
 *
 * Test: build/tests/ops/codes_test. Bench: build/kiln bench rmsnorm_nvfp4 */
#include "kernels/common/device.h"
#include "kernels/common/math/root.h"
#include "kernels/common/quantize/nvfp4_row_gpu.h"
#include "kernels/common/quantize/rmsnorm_codes_row.h"

/* x, or x + residual, of that many aligned columns. */
KILN_INLINE void read(float *values, const kiln_element *source, uint32_t number) {
    KILN_UNROLL
    for (uint32_t i = 0; i < number; i += KILN_VECTOR)
        kiln_vector_values(values + i, kiln_vector_load(source + i));
}
KILN_INLINE void sums_of(const kiln_rmsnorm_codes_row *r, float *sums, uint32_t col, uint32_t number) {
    float addends[KILN_NVFP4_BLOCK];
    read(sums, r->x + col, number);
    if (!r->args->residual) return;
    read(addends, r->residual + col, number);
    KILN_UNROLL
    for (uint32_t i = 0; i < number; i++)
        sums[i] += addends[i];
}

/* The results of an aligned block. stores: sum, too. */
KILN_INLINE void results_of(const kiln_rmsnorm_codes_row *r, float *values, float scale, uint32_t col, bool stores) {
    float weights[KILN_NVFP4_BLOCK];
    sums_of(r, values, col, KILN_NVFP4_BLOCK);
    if (stores) {
        KILN_UNROLL
        for (uint32_t i = 0; i < KILN_NVFP4_BLOCK; i += KILN_VECTOR)
            kiln_vector_store(r->sum + col + i, kiln_vector_of(values + i));
    }
    KILN_UNROLL
    for (int i = 0; i < KILN_NVFP4_BLOCK; i++)
        values[i] *= scale;
    if (!r->args->weight) return;
    read(weights, r->weight + col, KILN_NVFP4_BLOCK);
    KILN_UNROLL
    for (int i = 0; i < KILN_NVFP4_BLOCK; i++)
        values[i] *= weights[i];
}

/* Those of any block, column by column, with zeros beyond the row: they are shifted in through the last place. */
KILN_INLINE void any_results_of(const kiln_rmsnorm_codes_row *r, float *values, float scale, uint32_t col,
                                uint32_t cols, bool stores) {
    KILN_LOOP
    for (uint32_t i = 0; i < KILN_NVFP4_BLOCK; i++, col++) {
        float result = 0.0f;
        if (col < cols) {
            const float sum = kiln_rmsnorm_column(r, col);
            if (stores) r->sum[col] = kiln_element_from_f32(sum);
            result = kiln_rmsnorm_column_weigh(r, sum, scale, col);
        }
        KILN_UNROLL
        for (int e = 0; e + 1 < KILN_NVFP4_BLOCK; e++)
            values[e] = values[e + 1];
        values[KILN_NVFP4_BLOCK - 1] = result;
    }
}

/* What makes a row's results. */
typedef struct operation {
    kiln_rmsnorm_codes_row row;
    float scale;
    uint32_t cols;
} operation;

/* kiln_nvfp4_results. */
KILN_INLINE float block_of(const void *of, float *values, uint32_t col, uint32_t number, bool last, float greatest) {
    const operation *o = (const operation *)of;
    const bool stores = last && o->row.args->sum;
    (void)number;
    if (o->row.args->out.shape.wide && col + KILN_NVFP4_BLOCK <= o->cols)
        results_of(&o->row, values, o->scale, col, stores);
    else
        any_results_of(&o->row, values, o->scale, col, o->cols, stores);
    return last ? greatest : kiln_fast_max(kiln_nvfp4_block_greatest(values), greatest);
}

#if defined(__CUDACC__) /* for five resident blocks ptxas would spill */
#undef KILN_ENTRY_HEAD
#define KILN_ENTRY_HEAD extern "C" __global__ __launch_bounds__(KILN_BLOCK, 4) void
#endif

KILN_ENTRY(rmsnorm_nvfp4, kiln_rmsnorm_codes_args) {
    KILN_SHARED float exchange[KILN_SUBGROUPS];
    const kiln_codes_args *out = &args.out;
    const kiln_codes_place p = kiln_codes_place_of(out);
    if (p.beyond) return;
    operation o;
    o.row = kiln_rmsnorm_codes_row_of(&args, p.row);
    o.cols = p.inside ? (uint32_t)out->shape.cols : 0;
    float values[KILN_EIGHT], squares = 0.0f;
    KILN_LOOP
    for (uint32_t col = p.lane * KILN_EIGHT; col < o.cols; col += p.lanes * KILN_EIGHT) {
        if (out->shape.wide && col + KILN_EIGHT <= o.cols) {
            sums_of(&o.row, values, col, KILN_EIGHT);
            squares += kiln_eight_squares(values);
        } else {
            squares += kiln_rmsnorm_column_squares(&o.row, col, o.cols);
        }
    }
    squares = kiln_reduce(squares, out->shape.lanes_log2, exchange, KILN_REDUCE_SUM);
    o.scale = kiln_rsqrt(KILN_FMA(squares, args.mean, args.eps));
    kiln_barrier(); /* all have read the sum */
    kiln_nvfp4_row_passes(out, p, exchange, block_of, &o);
}
