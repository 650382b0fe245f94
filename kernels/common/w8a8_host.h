/* The host sides of gemm_fp8 and gemm_int8: which kernel does a product, and whether blocks share its k. Included after
 * operator.h; the includer defines W8A8_EXACT, the most columns whose products may be added up before they are scaled,
 * or 0 where there is no such number. Both operators' params have the same fields, and both have the same kernels. */
#include "kernels/common/gates.h"
#include "kernels/common/w8a8_args.h"

#define W8A8_KERNEL(kernel) KILN__JOIN(KERNEL_, KILN_HOST, _##kernel)

/* k is divided where d alone would not occupy the device, into pieces of at least SPLIT_LEAST. By portable tiles there
 * are then about TILES_BLOCKS blocks, on every device. */
enum { TILES_BLOCKS = 128, SPLIT_LEAST = 1024, SPLITS_MOST = 32, STAGES_LEAST = 2, STAGES_MOST = 3 };

/* The end of the argument struct, copied as it is. */
typedef struct gate {
    uint32_t gated;
    float bound;
    float coefficients[KILN_W8A8_COEFFICIENTS];
    uint32_t stages;
} gate;

static const gate gates[] = {
    [KILN_GEMM_NONE] = {0},
    [KILN_GEMM_GELU_ERF] = {1, KILN__GATE_GELU_ERF, 0},
    [KILN_GEMM_GELU_TANH] = {1, KILN__GATE_GELU_TANH, 0},
    [KILN_GEMM_GELU_QUICK] = {1, KILN__GATE_GELU_QUICK, 0},
    [KILN_GEMM_SILU] = {1, KILN__GATE_SILU, 0},
};
enum { GATES = sizeof gates / sizeof *gates };

/* ---- Checks ---- */

static int64_t groups_of(int64_t count) {
    return (count >> KILN_W8A8_GROUP_LOG2) + ((count & (KILN_W8A8_GROUP - 1)) != 0);
}

/* What the sentences about a factor's scales name. */
typedef struct scale_names {
    const char *scales, *rows, *cols;
} scale_names;

/* Checks how many scales a factor of rows x cols has, both positive, and says which code has which. */
static kiln_status check_scales(const char *name, const scale_names *names, const float *values, int64_t scale_rows,
                                int64_t scale_cols, int64_t rows, int64_t cols, kiln_w8a8_scales *scales) {
    int64_t row_groups = groups_of(rows), col_groups = groups_of(cols);
    if (!scale_rows) scale_rows = rows;
    if (!scale_cols) scale_cols = 1;
    KILN__REQUIRE(scale_rows == rows || scale_rows == row_groups || scale_rows == 1,
                  "%s: %s is %lld: must be 1, %lld (for every 128 rows) or %lld (for each)", name, names->rows,
                  (long long)scale_rows, (long long)row_groups, (long long)rows);
    KILN__REQUIRE(scale_cols == col_groups || scale_cols == 1,
                  "%s: %s is %lld: must be 1 or %lld (for every 128 columns)", name, names->cols, (long long)scale_cols,
                  (long long)col_groups);
    *scales = (kiln_w8a8_scales){.values = values,
                                 .cols = scale_cols,
                                 .rows_log2 = scale_rows == rows         ? 0
                                              : scale_rows == row_groups ? KILN_W8A8_GROUP_LOG2
                                                                         : 63,
                                 .step = scale_cols > 1};
    return kiln__tensor_check(name, names->scales, values, scale_rows, scale_cols, scale_cols, 2);
}

static kiln_status check_sizes(const char *name, const KILN__HOST_PARAMS *params) {
    KILN__TRY(kiln__size_check(name, "m", params->m, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "n", params->n, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "k", params->k, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "a_scale_rows", params->a_scale_rows, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "a_scale_cols", params->a_scale_cols, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "b_scale_rows", params->b_scale_rows, INT32_MAX));
    return kiln__size_check(name, "b_scale_cols", params->b_scale_cols, INT32_MAX);
}

static kiln_status check_options(const char *name, const KILN__HOST_PARAMS *params) {
    KILN__REQUIRE((uint32_t)params->activation < GATES,
                  "%s: activation is %d: must be none (0), gelu_erf (1), gelu_tanh (2), gelu_quick (3) or silu (4)",
                  name, params->activation);
    KILN__REQUIRE((uint32_t)params->tile <= KILN_GEMM_TILE_MEDIUM,
                  "%s: tile is %d: must be auto (0), portable (1), small (2), large (3) or medium (4)", name,
                  params->tile);
    KILN__REQUIRE(params->reserved == 0, "%s: reserved is %d: must be 0", name, params->reserved);
    KILN__REQUIRE(__builtin_isfinite(params->scale), "%s: scale is %g: must be finite", name, (double)params->scale);
    return KILN_OK;
}

/* Checks the tensors and gives their strides in place of 0. */
static kiln_status check_tensors(const char *name, const KILN__HOST_PARAMS *params, unsigned size_log2,
                                 kiln_w8a8_args *args) {
    static const scale_names a_names = {"a_scales", "a_scale_rows", "a_scale_cols"};
    static const scale_names b_names = {"b_scales", "b_scale_rows", "b_scale_cols"};
    int64_t m = args->m, n = args->n, k = args->k;
    args->d_stride = params->d_stride ? params->d_stride : n;
    args->a_stride = params->a_stride ? params->a_stride : k;
    args->b_stride = params->b_stride ? params->b_stride : k;
    KILN__TRY(kiln__tensor_check(name, "d", params->d, m, n, args->d_stride, size_log2));
    if (params->bias) KILN__TRY(kiln__tensor_check(name, "bias", params->bias, 1, n, n, size_log2));
    if (!k) return KILN_OK;
    KILN__TRY(kiln__tensor_check(name, "a", params->a, m, k, args->a_stride, 0));
    KILN__TRY(kiln__tensor_check(name, "b", params->b, n, k, args->b_stride, 0));
    KILN__TRY(check_scales(name, &a_names, params->a_scales, params->a_scale_rows, params->a_scale_cols, m, k,
                           &args->a_scales));
    KILN__TRY(check_scales(name, &b_names, params->b_scales, params->b_scale_rows, params->b_scale_cols, n, k,
                           &args->b_scales));
    args->wide = kiln__rows_wide((uintptr_t)params->a, m, args->a_stride, 0) &
                 kiln__rows_wide((uintptr_t)params->b, n, args->b_stride, 0);
    return KILN_OK;
}

/* ---- Plans ---- */

/* How a product is done that no kernel for few rows does. */
typedef struct plan {
    unsigned kernel;
    uint32_t rows, cols;          /* of a tile */
    uint32_t stages, stage_bytes; /* of k in dynamic shared memory */
    uint32_t splits, split;       /* how many blocks share the k of a tile, and how much of it each has */
    double cost;                  /* relative to that of other plans */
} plan;

static uint64_t tiles_of(int64_t count, uint32_t tile) {
    return ((uint64_t)count + tile - 1) / tile;
}

static double tile_count(const KILN__HOST_PARAMS *params, const plan *way) {
    return (double)tiles_of(params->m, way->rows) * (double)tiles_of(params->n, way->cols);
}

/* Divides k into as many pieces of whole groups as make `blocks` blocks. */
static void divide(const KILN__HOST_PARAMS *params, double blocks, plan *way) {
    uint64_t k = (uint64_t)params->k, most = k / SPLIT_LEAST;
    double wanted = blocks / tile_count(params, way);
    uint64_t splits = wanted < SPLITS_MOST ? (uint64_t)wanted : SPLITS_MOST;
    if (splits > most) splits = most;
    if (splits <= 1) return;
    uint64_t each = (k + splits - 1) / splits;
    each = (each + KILN_W8A8_GROUP - 1) / KILN_W8A8_GROUP * KILN_W8A8_GROUP;
    way->split = (uint32_t)each;
    way->splits = (uint32_t)((k + each - 1) / each);
}

/* The time of a plan, in elements of d times elements of k that a multiprocessor does at a rate of 1: rounds of blocks,
 * and where k is divided a second launch that reads the partial sums. */
static double cost_of(const KILN__HOST_PARAMS *params, const plan *way, uint32_t multiprocessors, uint32_t rate) {
    /* Of an H100, whose multiprocessors do 3.8e12 such a second: 2 us, and 8 bytes at 3 TB/s. */
    const double join = 8e6, partial = 10;
    double rounds = __builtin_ceil(tile_count(params, way) * way->splits / multiprocessors);
    double cost = rounds * way->rows * way->cols * way->split / rate;
    if (way->splits == 1) return cost;
    return cost + (join + partial * (double)params->m * (double)params->n * way->splits) / 100;
}

static void consider(const KILN__HOST_PARAMS *params, const kiln_module *module, unsigned kernel, bool may_split,
                     plan *best) {
    const kiln_kernel_info *info = &module->kernels[kernel].info;
    const kiln_device_info *device = &module->device->info;
    if (info->absent || !info->stage_bytes) return;
    uint32_t stages = (uint32_t)device->max_shared_bytes / info->stage_bytes;
    if (stages < STAGES_LEAST) {
        kiln__plan_leave(&module->kernels[kernel], "the device has no shared memory for its stages");
        return;
    }
    plan way = {.kernel = kernel,
                .rows = info->tile[0],
                .cols = info->tile[1],
                .stages = stages < STAGES_MOST ? stages : STAGES_MOST,
                .stage_bytes = info->stage_bytes,
                .splits = 1,
                .split = (uint32_t)params->k};
    uint32_t multiprocessors = (uint32_t)device->multiprocessors;
    for (int divided = 0; divided <= may_split; divided++) {
        if (divided) divide(params, multiprocessors, &way);
        way.cost = cost_of(params, &way, multiprocessors, info->rate);
        kiln__plan_weigh(&module->kernels[kernel], way.cost, way.splits);
        if (!best->cost || way.cost < best->cost) *best = way;
    }
}

/* The kernels of matrix instructions need rows on 16 bytes. */
static plan plan_of(const KILN__HOST_PARAMS *params, const kiln_module *module, uint32_t wide, bool may_split) {
    plan best = {.kernel = W8A8_KERNEL(tiles),
                 .rows = KILN_W8A8_TILE,
                 .cols = KILN_W8A8_TILE,
                 .splits = 1,
                 .split = (uint32_t)params->k};
    static const struct {
        unsigned kernel;
        kiln_gemm_tile tile;
    } tuned[] = {{W8A8_KERNEL(mma_large), KILN_GEMM_TILE_LARGE}, {W8A8_KERNEL(mma_small), KILN_GEMM_TILE_SMALL}};
    for (size_t i = 0; wide && params->k && i < sizeof tuned / sizeof *tuned; i++)
        if (params->tile == KILN_GEMM_TILE_AUTO || params->tile == (int32_t)tuned[i].tile)
            consider(params, module, tuned[i].kernel, may_split, &best);
    if (!best.cost)
        kiln__plan_take(&module->kernels[best.kernel],
                        wide ? "no tuned kernel is for this call" : "rows of a or b do not begin on 16 bytes");
    if (!best.cost && may_split) divide(params, TILES_BLOCKS, &best);
    return best;
}

/* The bytes of a plan's partial sums. */
static kiln_status partials_size(const char *name, const KILN__HOST_PARAMS *params, const plan *way, size_t *out_size) {
    uint64_t count;
    *out_size = 0;
    bool overflow =
        __builtin_mul_overflow((uint64_t)params->m * (uint64_t)params->n, way->splits * sizeof(float), &count) ||
        count > INT64_MAX;
    KILN__REQUIRE(!overflow, "%s: d is too large: %lld x %lld", name, (long long)params->m, (long long)params->n);
    if (way->splits > 1) *out_size = count;
    return KILN_OK;
}

/* ---- Launches ---- */

/* The kernel for products of few rows, where there is one for so many. Its columns and rows of d go into *out_columns
 * and *out_rows. */
static const kiln_kernel *rows_kernel(const KILN__HOST_PARAMS *params, const kiln_module *module, uint32_t wide,
                                      uint32_t *out_columns, uint32_t *out_rows) {
    bool tuned = wide && params->tile == KILN_GEMM_TILE_AUTO && params->k && params->k % KILN_VECTOR_BYTES == 0;
    for (unsigned i = W8A8_KERNEL(mma_rows_8); tuned && i <= W8A8_KERNEL(mma_rows_16); i++) {
        const kiln_kernel_info *info = &module->kernels[i].info;
        *out_columns = info->tile[1];
        *out_rows = info->tile[0];
        if (!info->absent && params->m <= (int64_t)info->tile[0]) return &module->kernels[i];
    }
    *out_columns = KILN_W8A8_BLOCK_COLUMNS;
    *out_rows = KILN_W8A8_ROWS;
    bool few = params->m <= KILN_W8A8_ROWS_MOST && params->tile == KILN_GEMM_TILE_AUTO;
    return few ? &module->kernels[W8A8_KERNEL(rows)] : NULL;
}

static kiln_status launch_tiles(kiln_stream *stream, const kiln_kernel *kernels, const kiln_w8a8_args *args,
                                const plan *way, const char *name) {
    kiln_launch_config config, joining;
    if (args->splits > 1) {
        KILN__TRY(kiln__grid(name, tiles_of(args->n, KILN_BLOCK), (uint64_t)args->m, &joining));
        KILN__TRY(kiln__operator_fits(stream, name, &joining));
    }
    KILN__TRY(kiln__grid(name, tiles_of(args->n, way->cols), (uint64_t)args->tile_rows * args->splits, &config));
    config.dynamic_shared_bytes = way->stages * way->stage_bytes;
    KILN__TRY(kiln__operator_launch(stream, &kernels[way->kernel], &config, args, sizeof *args));
    if (args->splits == 1) return KILN_OK;
    return kiln__operator_launch(stream, &kernels[W8A8_KERNEL(join)], &joining, args, sizeof *args);
}

/* Plans the product, divided if the workspace is there for it, and writes the plan into the arguments. */
static kiln_status choose_plan(kiln_w8a8_args *args, const KILN__HOST_PARAMS *params, const kiln_module *module,
                               const char *name, plan *out_plan) {
    size_t needed;
    *out_plan = plan_of(params, module, args->wide, params->workspace || params->workspace_size);
    KILN__TRY(partials_size(name, params, out_plan, &needed));
    if (needed) {
        KILN__TRY(kiln__workspace_check(name, params->workspace, params->workspace_size, needed));
        args->partials = params->workspace;
    }
    args->splits = out_plan->splits;
    args->split = out_plan->split;
    args->stages = out_plan->stages;
    args->tile_rows = (uint32_t)tiles_of(params->m, out_plan->rows);
    return KILN_OK;
}

static kiln_status KILN_HOST(kiln_stream *stream, const KILN__HOST_PARAMS *params, unsigned part, const char *name) {
    KILN__TRY(check_sizes(name, params));
    KILN__TRY(check_options(name, params));
    if (KILN__UNLIKELY(!params->m || !params->n)) return KILN_OK;
    kiln_w8a8_args args = {
        .d = params->d,
        .a = (const uint8_t *)params->a,
        .b = (const uint8_t *)params->b,
        .bias = params->bias,
        .m = params->m,
        .n = params->n,
        .k = params->k,
        .scale = params->scale == 0.0f ? 1.0f : params->scale,
    };
    KILN__TRY(check_tensors(name, params, kiln__part_size_log2(part), &args));
    args.grouped = args.a_scales.step || args.b_scales.step || (W8A8_EXACT && params->k > W8A8_EXACT);
    memcpy((char *)&args + offsetof(kiln_w8a8_args, gated), &gates[(uint32_t)params->activation], sizeof(gate));
    const kiln_module *module;
    KILN__TRY(kiln__operator_require(stream, KILN__JOIN(KILN__OPERATOR_, KILN_HOST, ), part,
                                     &KILN__JOIN(kiln__bundle_, KILN_HOST, ), &module));
    uint32_t columns, rows;
    const kiln_kernel *few = rows_kernel(params, module, args.wide, &columns, &rows);
    if (few) {
        kiln_launch_config config;
        kiln__plan_take(few, "is for so few rows");
        KILN__TRY(kiln__grid(name, tiles_of(args.n, columns), tiles_of(args.m, rows), &config));
        return kiln__operator_launch(stream, few, &config, &args, sizeof args);
    }
    plan way;
    KILN__TRY(choose_plan(&args, params, module, name, &way));
    return launch_tiles(stream, module->kernels, &args, &way, name);
}

/* Enough for the call whether its tensors are aligned or not. */
static kiln_status KILN__JOIN(, KILN_HOST, _workspace_size)(kiln_stream *stream, const KILN__HOST_PARAMS *params,
                                                            unsigned part, const char *name, size_t *out_size) {
    KILN__TRY(check_sizes(name, params));
    if (!params->m || !params->n || (params->m <= KILN_W8A8_ROWS_MOST && params->tile == KILN_GEMM_TILE_AUTO))
        return KILN_OK;
    int64_t a_stride = params->a_stride ? params->a_stride : params->k;
    int64_t b_stride = params->b_stride ? params->b_stride : params->k;
    uint32_t aligned = kiln__rows_wide(0, params->m, a_stride, 0) & kiln__rows_wide(0, params->n, b_stride, 0);
    const kiln_module *module;
    KILN__TRY(kiln__operator_require(stream, KILN__JOIN(KILN__OPERATOR_, KILN_HOST, ), part,
                                     &KILN__JOIN(kiln__bundle_, KILN_HOST, ), &module));
    for (uint32_t wide = 0; wide <= aligned; wide++) {
        plan way = plan_of(params, module, wide, true);
        size_t size;
        KILN__TRY(partials_size(name, params, &way, &size));
        if (size > *out_size) *out_size = size;
    }
    return KILN_OK;
}
