/* gemm_nvfp4, host side: which kernel does a product, and whether blocks share its k. */
#include <kiln/ops/gemm.h>
#define KILN_HOST gemm_nvfp4
#define KILN_HOST_KEEPS_CALLS
#include "kernels/common/gates.h"
#include "kernels/common/operator.h"
#include "kernels/common/quantize/nvfp4_host.h"
#include "kernels/gemm_nvfp4/gemm_nvfp4_args.h"

/* k is divided where the tiles of d would not occupy the device, into pieces of at least SPLIT_LEAST, multiples of
 * SPLIT_STEP. By portable tiles there are then about TILES_BLOCKS blocks, on every device. */
enum { TILES_BLOCKS = 128, SPLIT_LEAST = 1024, SPLIT_STEP = 128, SPLITS_MOST = 32 };

/* The last fields of the argument struct, copied as they are. */
typedef struct gate {
    uint32_t gated;
    float bound;
    float coefficients[KILN_NVFP4_COEFFICIENTS];
} gate;

static const gate gates[] = {
    [KILN_GEMM_NONE] = {0},
    [KILN_GEMM_GELU_ERF] = {1, KILN__GATE_GELU_ERF},
    [KILN_GEMM_GELU_TANH] = {1, KILN__GATE_GELU_TANH},
    [KILN_GEMM_GELU_QUICK] = {1, KILN__GATE_GELU_QUICK},
    [KILN_GEMM_SILU] = {1, KILN__GATE_SILU},
};
enum { GATES = sizeof gates / sizeof *gates };

/* ---- Checks ---- */

/* A factor of a call, and what the messages about it name. */
typedef struct factor {
    const char *codes_name, *rows_name, *scales_name, *scale_rows_name, *scale_cols_name, *layout_name;
    const char *global_name, *globals_name;
    const uint8_t *codes, *scales;
    const float *global_scale;
    int64_t rows, k, stride, scale_rows, scale_cols, globals;
    int32_t layout;
} factor;

static int64_t round_up(int64_t size, int64_t multiple) {
    return size > 0 && size < INT64_MAX - multiple ? (size + multiple - 1) / multiple * multiple : size;
}

/* The factor with its defaults in place of zeros. */
static factor resolved(factor f) {
    const bool swizzled = f.layout == KILN_SCALES_128X4;
    const int64_t blocks = round_up(f.k, 1 << KILN__NVFP4_BLOCK_LOG2) >> KILN__NVFP4_BLOCK_LOG2;
    if (!f.scale_rows) f.scale_rows = swizzled ? round_up(f.rows, KILN__NVFP4_TILE_ROWS) : f.rows;
    if (!f.scale_cols) f.scale_cols = swizzled ? round_up(blocks, KILN__NVFP4_TILE_COLS) : blocks;
    if (!f.globals) f.globals = 1;
    if (!f.stride && f.scale_cols >= 0 && f.scale_cols <= INT32_MAX) f.stride = KILN__NVFP4_BLOCK_BYTES * f.scale_cols;
    return f;
}

static factor factor_a(const kiln_gemm_nvfp4_params *params) {
    const factor f = {
        "a",
        "m",
        "a_scales",
        "a_scale_rows",
        "a_scale_cols",
        "a_scale_layout",
        "a_global_scale",
        "a_global_rows",
        params->a,
        params->a_scales,
        params->a_global_scale,
        params->m,
        params->k,
        params->a_stride,
        params->a_scale_rows,
        params->a_scale_cols,
        params->a_global_rows,
        params->a_scale_layout,
    };
    return resolved(f);
}

static factor factor_b(const kiln_gemm_nvfp4_params *params) {
    const factor f = {
        "b",
        "n",
        "b_scales",
        "b_scale_rows",
        "b_scale_cols",
        "b_scale_layout",
        "b_global_scale",
        "b_global_rows",
        params->b,
        params->b_scales,
        params->b_global_scale,
        params->n,
        params->k,
        params->b_stride,
        params->b_scale_rows,
        params->b_scale_cols,
        params->b_global_rows,
        params->b_scale_layout,
    };
    return resolved(f);
}

static kiln_status check_limits(const char *name, const factor *f) {
    KILN__TRY(kiln__size_check(name, f->rows_name, f->rows, INT32_MAX));
    KILN__TRY(kiln__size_check(name, f->scale_rows_name, f->scale_rows, INT64_MAX));
    KILN__TRY(kiln__size_check(name, f->scale_cols_name, f->scale_cols, INT32_MAX));
    KILN__TRY(kiln__size_check(name, f->globals_name, f->globals, INT32_MAX));
    KILN__REQUIRE(f->layout == KILN_SCALES_LINEAR || f->layout == KILN_SCALES_128X4,
                  "%s: %s is %d: must be linear (0) or 128x4 (1)", name, f->layout_name, f->layout);
    return KILN_OK;
}

/* Checks a factor of a product with k. */
static kiln_status check_factor(const char *name, const factor *f) {
    const int64_t blocks = round_up(f->k, 1 << KILN__NVFP4_BLOCK_LOG2) >> KILN__NVFP4_BLOCK_LOG2;
    KILN__REQUIRE(f->scale_rows >= f->rows, "%s: %s is %lld: must be at least %s, %lld", name, f->scale_rows_name,
                  (long long)f->scale_rows, f->rows_name, (long long)f->rows);
    KILN__REQUIRE(f->scale_cols >= blocks, "%s: %s is %lld: must be at least k / 16 rounded up, %lld", name,
                  f->scale_cols_name, (long long)f->scale_cols, (long long)blocks);
    KILN__REQUIRE(f->globals == 1 || f->globals == f->rows, "%s: %s is %lld: must be 1 or %s, %lld", name,
                  f->globals_name, (long long)f->globals, f->rows_name, (long long)f->rows);
    if (f->layout == KILN_SCALES_128X4) {
        KILN__REQUIRE(f->scale_rows % KILN__NVFP4_TILE_ROWS == 0, "%s: %s is %lld: must be a multiple of 128 in 128x4",
                      name, f->scale_rows_name, (long long)f->scale_rows);
        KILN__REQUIRE(f->scale_cols % KILN__NVFP4_TILE_COLS == 0, "%s: %s is %lld: must be a multiple of 4 in 128x4",
                      name, f->scale_cols_name, (long long)f->scale_cols);
    }
    KILN__TRY(kiln__tensor_check(name, f->codes_name, f->codes, f->rows, KILN__NVFP4_BLOCK_BYTES * f->scale_cols,
                                 f->stride, 0));
    KILN__TRY(kiln__tensor_check(name, f->scales_name, f->scales, f->scale_rows, f->scale_cols, f->scale_cols, 0));
    return kiln__tensor_check(name, f->global_name, f->global_scale, 1, f->globals, f->globals, 2);
}

static kiln_nvfp4_operand argument_of(const factor *f) {
    return (kiln_nvfp4_operand){.codes = f->codes,
                                .scales = f->scales,
                                .global_scale = f->global_scale,
                                .stride = f->stride,
                                .scale_cols = f->scale_cols,
                                .swizzled = f->layout == KILN_SCALES_128X4,
                                .each = f->globals > 1};
}

/* Whether rows of codes are aligned to 16 bytes and their scales to 4; the addresses may be left out. */
static uint32_t is_wide(const factor *f, uintptr_t codes, uintptr_t scales) {
    const int64_t steps = f->rows > 1 ? f->scale_cols : 0;
    return kiln__rows_wide(codes, f->rows, f->stride, 0) & (((scales | (uintptr_t)steps) & 3) == 0) &
           (f->k % KILN_NVFP4_CHUNK == 0);
}

static kiln_status check_options(const char *name, const kiln_gemm_nvfp4_params *params) {
    const factor a = factor_a(params), b = factor_b(params);
    KILN__TRY(kiln__size_check(name, "k", params->k, INT32_MAX));
    KILN__TRY(check_limits(name, &a));
    KILN__TRY(check_limits(name, &b));
    KILN__REQUIRE((uint32_t)params->activation < GATES,
                  "%s: activation is %d: must be none (0), gelu_erf (1), gelu_tanh (2), gelu_quick (3) or silu (4)",
                  name, params->activation);
    KILN__REQUIRE((uint32_t)params->tile <= KILN_GEMM_TILE_MEDIUM,
                  "%s: tile is %d: must be auto (0), portable (1), small (2), large (3) or medium (4)", name,
                  params->tile);
    KILN__REQUIRE(__builtin_isfinite(params->scale), "%s: scale is %g: must be finite", name, (double)params->scale);
    KILN__REQUIRE(params->reserved == 0, "%s: reserved is %d: must be 0", name, params->reserved);
    return KILN_OK;
}

/* ---- Plans ---- */

/* How a product is computed. */
typedef struct plan {
    unsigned kernel;
    uint32_t rows, cols;    /* of d, per block */
    uint32_t splits, split; /* how many blocks share the k of a tile, and how much of it each has */
    uint32_t shared_bytes;  /* dynamic shared memory */
    double cost;            /* relative to that of other plans */
} plan;

static uint64_t tiles_of(int64_t count, uint32_t tile) {
    return ((uint64_t)count + tile - 1) / tile;
}

static double tile_count(const kiln_gemm_nvfp4_params *params, const plan *way) {
    return (double)tiles_of(params->m, way->rows) * (double)tiles_of(params->n, way->cols);
}

/* Divides k into pieces such that there are about `blocks` blocks. */
static void divide(const kiln_gemm_nvfp4_params *params, double blocks, plan *way) {
    uint64_t k = (uint64_t)params->k, most = k / SPLIT_LEAST;
    double wanted = blocks / tile_count(params, way);
    uint64_t splits = wanted < (double)SPLITS_MOST ? (uint64_t)wanted : SPLITS_MOST;
    if (splits > most) splits = most;
    if (splits <= 1) return;
    uint64_t each = ((k + splits - 1) / splits + SPLIT_STEP - 1) / SPLIT_STEP * SPLIT_STEP;
    way->split = (uint32_t)each;
    way->splits = (uint32_t)((k + each - 1) / each);
}

/* The predicted time of a plan, in products that a multiprocessor computes at a rate of 1: the rounds of blocks and,
 * where k is divided, a second launch that reads the partial sums. */
static double cost_of(const kiln_gemm_nvfp4_params *params, const plan *way, uint32_t multiprocessors, uint32_t rate) {
    /* For an H100, whose multiprocessors do 1.9e12 of these a second in f16: 2 us, and 8 bytes at 3 TB/s. */
    const double join = 4e6, partial = 5;
    double rounds = __builtin_ceil(tile_count(params, way) * way->splits / multiprocessors);
    double cost = rounds * way->rows * way->cols * way->split / rate;
    if (way->splits == 1) return cost;
    return cost + (join + partial * (double)params->m * (double)params->n * way->splits) / 100;
}

static void consider(const kiln_gemm_nvfp4_params *params, const kiln_module *module, unsigned kernel, bool may_split,
                     plan *best) {
    const kiln_kernel_info *info = &module->kernels[kernel].info;
    const kiln_device_info *device = &module->device->info;
    const uint32_t shared_bytes = info->stages * info->stage_bytes;
    if (info->absent || !shared_bytes) return;
    if (shared_bytes > (uint32_t)device->max_shared_bytes) {
        kiln__plan_leave(&module->kernels[kernel], "the device has no shared memory for its stages");
        return;
    }
    plan way = {.kernel = kernel,
                .rows = info->tile[0],
                .cols = info->tile[1],
                .shared_bytes = shared_bytes,
                .splits = 1,
                .split = (uint32_t)params->k};
    uint32_t multiprocessors = (uint32_t)device->multiprocessors;
    for (int divided = 0; divided <= may_split; divided++) {
        if (divided) divide(params, multiprocessors, &way);
        way.cost = cost_of(params, &way, multiprocessors, info->rate);
        kiln__plan_weigh(&module->kernels[kernel], way.cost, way.splits);
        if (best->cost == 0.0 || way.cost < best->cost) *best = way;
    }
}

/* Makes the plan for few rows. Returns whether the image or the portable source has one. */
static bool plan_rows(const kiln_gemm_nvfp4_params *params, const kiln_module *module, uint32_t wide, plan *way) {
    const kiln_kernel_info *info = &module->kernels[KERNEL_gemm_nvfp4_mma_rows].info;
    *way = (plan){.kernel = KERNEL_gemm_nvfp4_rows,
                  .rows = KILN_NVFP4_ROWS,
                  .cols = KILN_NVFP4_BLOCK_COLUMNS,
                  .splits = 1,
                  .split = (uint32_t)params->k};
    if (params->tile != KILN_GEMM_TILE_AUTO) return false;
    if (wide && params->k && !info->absent && params->m <= (int64_t)info->tile[0]) {
        way->kernel = KERNEL_gemm_nvfp4_mma_rows;
        way->rows = info->tile[0];
        way->cols = info->tile[1];
        return true;
    }
    return params->m <= KILN_NVFP4_ROWS_MOST;
}

static plan plan_of(const kiln_gemm_nvfp4_params *params, const kiln_module *module, uint32_t wide, bool may_split) {
    plan best;
    if (plan_rows(params, module, wide, &best)) {
        kiln__plan_take(&module->kernels[best.kernel], "is for so few rows");
        return best;
    }
    best = (plan){.kernel = KERNEL_gemm_nvfp4_tiles,
                  .rows = KILN_NVFP4_TILE,
                  .cols = KILN_NVFP4_TILE,
                  .splits = 1,
                  .split = (uint32_t)params->k};
    static const struct {
        unsigned kernel;
        kiln_gemm_tile tile;
    } tuned[] = {{KERNEL_gemm_nvfp4_mma_large, KILN_GEMM_TILE_LARGE},
                 {KERNEL_gemm_nvfp4_mma_small, KILN_GEMM_TILE_SMALL}};
    for (size_t i = 0; wide && params->k && i < sizeof tuned / sizeof *tuned; i++)
        if (params->tile == KILN_GEMM_TILE_AUTO || params->tile == (int32_t)tuned[i].tile)
            consider(params, module, tuned[i].kernel, may_split, &best);
    if (best.cost == 0.0)
        kiln__plan_take(&module->kernels[best.kernel],
                        wide ? "no tuned kernel is for this call" : "rows of a or b do not begin on 16 bytes");
    if (best.cost == 0.0 && may_split) divide(params, TILES_BLOCKS, &best);
    return best;
}

/* The bytes of a plan's partial sums. */
static kiln_status partials_size(const char *name, const kiln_gemm_nvfp4_params *params, const plan *way,
                                 size_t *out_size) {
    uint64_t count = (uint64_t)params->m * (uint64_t)params->n;
    bool overflow = __builtin_mul_overflow(count, way->splits * sizeof(float), &count) || count > INT64_MAX;
    KILN__REQUIRE(!overflow, "%s: d is too large: %lld x %lld", name, (long long)params->m, (long long)params->n);
    *out_size = way->splits > 1 ? count : 0;
    return KILN_OK;
}

/* ---- Launches ---- */

static kiln_status launch_plan(kiln_stream *stream, const kiln_kernel *kernels, const kiln_gemm_nvfp4_args *args,
                               const plan *way, const char *name) {
    kiln_launch_config config, joining;
    if (args->splits > 1) {
        KILN__TRY(kiln__grid(name, tiles_of(args->n, KILN_BLOCK), (uint64_t)args->m, &joining));
        KILN__TRY(kiln__operator_fits(stream, name, &joining));
    }
    KILN__TRY(kiln__grid(name, tiles_of(args->n, way->cols), (uint64_t)args->tile_rows * args->splits, &config));
    config.dynamic_shared_bytes = way->shared_bytes;
    KILN__TRY(kiln__call_launch(stream, &kernels[way->kernel], &config, args, sizeof *args));
    if (args->splits == 1) return KILN_OK;
    return kiln__call_launch(stream, &kernels[KERNEL_gemm_nvfp4_join], &joining, args, sizeof *args);
}

static kiln_status gemm_nvfp4(kiln_stream *stream, const kiln_gemm_nvfp4_params *params, unsigned part,
                              const char *name) {
    const int64_t m = params->m, n = params->n, k = params->k;
    const unsigned size_log2 = kiln__part_size_log2(part);
    KILN__TRY(check_options(name, params));
    if (KILN__UNLIKELY(!m || !n)) return KILN_OK;
    const factor a = factor_a(params), b = factor_b(params);
    kiln_gemm_nvfp4_args args = {
        .d = params->d,
        .bias = params->bias,
        .m = m,
        .n = n,
        .k = k,
        .d_stride = params->d_stride ? params->d_stride : n,
        .scale = params->scale == 0.0f ? 1.0f : params->scale,
    };
    KILN__TRY(kiln__tensor_check(name, "d", params->d, m, n, args.d_stride, size_log2));
    if (params->bias) KILN__TRY(kiln__tensor_check(name, "bias", params->bias, 1, n, n, size_log2));
    if (k) {
        KILN__TRY(check_factor(name, &a));
        KILN__TRY(check_factor(name, &b));
        args.a = argument_of(&a);
        args.b = argument_of(&b);
        args.wide =
            is_wide(&a, (uintptr_t)a.codes, (uintptr_t)a.scales) & is_wide(&b, (uintptr_t)b.codes, (uintptr_t)b.scales);
    }
    memcpy((char *)&args + offsetof(kiln_gemm_nvfp4_args, gated), &gates[(uint32_t)params->activation], sizeof(gate));
    const kiln_module *module;
    KILN__TRY(kiln__operator_require(stream, KILN__OPERATOR_gemm_nvfp4, part, &kiln__bundle_gemm_nvfp4, &module));
    size_t needed = 0;
    plan way = plan_of(params, module, args.wide, params->workspace || params->workspace_size);
    KILN__TRY(partials_size(name, params, &way, &needed));
    if (needed) {
        KILN__TRY(kiln__workspace_check(name, params->workspace, params->workspace_size, needed));
        args.partials = params->workspace;
    }
    args.splits = way.splits;
    args.split = way.split;
    args.tile_rows = (uint32_t)tiles_of(m, way.rows);
    return launch_plan(stream, module->kernels, &args, &way, name);
}

/* Enough for the call, whether its tensors are aligned or not. */
static kiln_status gemm_nvfp4_workspace_size(kiln_stream *stream, const kiln_gemm_nvfp4_params *params, unsigned part,
                                             const char *name, size_t *out_size) {
    const factor a = factor_a(params), b = factor_b(params);
    const kiln_module *module;
    KILN__TRY(check_options(name, params));
    if (!params->m || !params->n) return KILN_OK;
    KILN__TRY(kiln__operator_require(stream, KILN__OPERATOR_gemm_nvfp4, part, &kiln__bundle_gemm_nvfp4, &module));
    uint32_t aligned = is_wide(&a, 0, 0) & is_wide(&b, 0, 0);
    for (uint32_t wide = 0; wide <= aligned; wide++) {
        plan way = plan_of(params, module, wide, true);
        size_t size = 0;
        KILN__TRY(partials_size(name, params, &way, &size));
        if (size > *out_size) *out_size = size;
    }
    return KILN_OK;
}
