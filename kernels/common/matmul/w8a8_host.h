/* The host sides of gemm_fp8 and gemm_int8: which kernel does a product, and whether blocks share its k. Included after
 * operator.h and matmul_host.h; the includer defines W8A8_EXACT, the most columns whose products may be added up before
 * they are scaled, or 0 where there is no such number, and the functions check_own_option and asks_fast for the one
 * field that only one operator's params have. Otherwise both have the same fields and the same kernels. */
#include "kernels/common/matmul/matmul_host.h"
#include "kernels/common/matmul/w8a8_mapped_args.h"

#define W8A8_KERNEL(kernel) KILN__JOIN(KERNEL_, KILN_HOST, _##kernel)

_Static_assert(offsetof(kiln_w8a8_args, gated) + sizeof(matmul_gate) == offsetof(kiln_w8a8_args, stages),
               "activations are copied as they are");

/* For an H100, whose multiprocessors do 3.8e12 products a second: 2 us for a launch, and 8 bytes at 3 TB/s. */
static const matmul_times times = {.split_least = 1024, .last = 1200, .join = 8e6, .partial = 10};

/* ---- Checks ---- */

static int64_t groups_of(int64_t count) {
    return (count >> KILN_W8A8_GROUP_LOG2) + ((count & (KILN_W8A8_GROUP - 1)) != 0);
}

/* What the messages about a factor's scales name. */
typedef struct scale_names {
    const char *scales, *rows, *cols;
} scale_names;

/* Checks the number of scales of a factor of rows x cols, both positive, and says which code has which scale. */
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

/* Checks the tensors and resolves strides of 0. */
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

static matmul_sizes sizes_of(const KILN__HOST_PARAMS *params) {
    return (matmul_sizes){1, params->m, params->n, params->k};
}

/* The kernels with matrix instructions need rows aligned to 16 bytes. */
static matmul_plan plan_of(const KILN__HOST_PARAMS *params, const kiln_module *module, uint32_t wide, bool may_split) {
    static const matmul_kernel tuned[] = {{W8A8_KERNEL(wgmma_large), KILN_GEMM_TILE_LARGE},
                                          {W8A8_KERNEL(wgmma_small), KILN_GEMM_TILE_SMALL},
                                          {W8A8_KERNEL(wgmma_medium), KILN_GEMM_TILE_MEDIUM},
                                          {W8A8_KERNEL(mma_large), KILN_GEMM_TILE_LARGE},
                                          {W8A8_KERNEL(mma_small), KILN_GEMM_TILE_SMALL}};
    const matmul_sizes sizes = sizes_of(params);
    matmul_plan best = {.kernel = W8A8_KERNEL(tiles),
                        .rows = KILN_W8A8_TILE,
                        .cols = KILN_W8A8_TILE,
                        .cluster = 1,
                        .splits = 1,
                        .split = (uint32_t)params->k};
    for (size_t i = 0; wide && params->k && i < sizeof tuned / sizeof *tuned; i++)
        if (params->tile == KILN_GEMM_TILE_AUTO || params->tile == (int32_t)tuned[i].tile)
            consider(&sizes, params->a_stride | params->b_stride, &times, module, tuned[i].kernel, may_split, &best);
    if (best.cost == 0)
        kiln__plan_take(&module->kernels[best.kernel],
                        wide ? "no tuned kernel is for this call" : "rows of a or b do not begin on 16 bytes");
    if (best.cost == 0 && may_split) divide(&sizes, &times, TILES_BLOCKS, KILN_W8A8_GROUP, &best);
    return best;
}

/* ---- Launches ---- */

/* How many blocks for few rows a multiprocessor has at once: they prefetch before the preceding kernel has ended. */
enum { EARLY_BLOCKS = 3 };

/* A kernel for products of few rows, and the columns and rows of d that a block of it does. */
typedef struct few_rows {
    const kiln_kernel *kernel; /* NULL: none */
    uint32_t columns, rows;
} few_rows;

/* The kernel of few rows by mma for the product, if there is one for that many. */
static few_rows mma_rows_kernel(const KILN__HOST_PARAMS *params, const kiln_module *module, uint32_t wide) {
    bool tuned = wide && params->tile == KILN_GEMM_TILE_AUTO && params->k && params->k % KILN_VECTOR_BYTES == 0;
    for (unsigned i = W8A8_KERNEL(mma_rows_8); tuned && i <= W8A8_KERNEL(mma_rows_16); i++) {
        const kiln_kernel_info *info = &module->kernels[i].info;
        if (!info->absent && params->m <= (int64_t)info->tile[0])
            return (few_rows){&module->kernels[i], info->tile[1], info->tile[0]};
    }
    return (few_rows){0};
}

/* The portable one. */
static few_rows rows_kernel(const KILN__HOST_PARAMS *params, const kiln_module *module) {
    if (params->m > KILN_W8A8_ROWS_MOST || params->tile != KILN_GEMM_TILE_AUTO) return (few_rows){0};
    return (few_rows){&module->kernels[W8A8_KERNEL(rows)], KILN_W8A8_BLOCK_COLUMNS, KILN_W8A8_ROWS};
}

/* The kernel of few rows by wgmma for the product; NULL if there is none. */
static const kiln_kernel *wgmma_rows_kernel(const KILN__HOST_PARAMS *params, const kiln_module *module, uint32_t wide) {
    const matmul_sizes sizes = sizes_of(params);
    if (!wide || params->tile != KILN_GEMM_TILE_AUTO || !params->k) return NULL;
    return cluster_kernel(&sizes, params->a_stride | params->b_stride, module, W8A8_KERNEL(wgmma_rows_1),
                          W8A8_KERNEL(wgmma_rows_4), 1.0);
}

static kiln_status launch_clusters(kiln_stream *stream, const kiln_kernel *kernel, const matmul_sizes *sizes,
                                   const kiln_w8a8_args *args, bool fast) {
    kiln_w8a8_mapped_args mapped = {.plain = *args, .fast = fast, .early = kiln__operator_overlaps(stream, kernel)};
    const kiln_launch_config config = clusters_config(kernel, sizes, &mapped.plain.split);
    const kiln__tensor_layout factors[] = {layout_of(args->a, args->m, args->a_stride, 0, sizes, 0),
                                           layout_of(args->b, args->n, args->b_stride, 0, sizes, 0)};
    mapped.plain.splits = 1;
    KILN__TRY(kiln__tensor_maps_encode(kernel, factors, &mapped));
    return kiln__call_launch(stream, kernel, &config, &mapped, sizeof mapped);
}

static kiln_status launch_tiles(kiln_stream *stream, const kiln_kernel *kernels, const kiln_w8a8_args *args,
                                const matmul_sizes *sizes, const matmul_plan *way, bool fast, const char *name) {
    kiln_launch_config config, joining;
    const kiln_kernel *kernel = &kernels[way->kernel];
    if (args->splits > 1) {
        KILN__TRY(kiln__grid(name, tiles_of(args->n, KILN_BLOCK), (uint64_t)args->m, &joining));
        KILN__TRY(kiln__operator_fits(stream, name, &joining));
    }
    if (kiln__tensor_map_count(&kernel->info)) {
        const kiln__tensor_layout factors[] = {layout_of(args->a, args->m, args->a_stride, 0, sizes, 0),
                                               layout_of(args->b, args->n, args->b_stride, 0, sizes, 0)};
        kiln_w8a8_mapped_args mapped = {.plain = *args, .fast = fast, .early = kiln__operator_overlaps(stream, kernel)};
        KILN__TRY(launch_mapped(stream, kernel, sizes, way, factors, &mapped, sizeof mapped));
    } else {
        KILN__TRY(kiln__grid(name, tiles_of(args->n, way->cols), (uint64_t)args->tile_rows * args->splits, &config));
        config.dynamic_shared_bytes = way->stages * way->stage_bytes;
        KILN__TRY(kiln__call_launch(stream, kernel, &config, args, sizeof *args));
    }
    if (args->splits == 1) return KILN_OK;
    return kiln__call_launch(stream, &kernels[W8A8_KERNEL(join)], &joining, args, sizeof *args);
}

/* Plans the product, with k divided if there is a workspace for it, and writes the plan into the arguments. */
static kiln_status choose_plan(kiln_w8a8_args *args, const KILN__HOST_PARAMS *params, const kiln_module *module,
                               const char *name, matmul_plan *out_plan) {
    const matmul_sizes sizes = sizes_of(params);
    size_t needed;
    *out_plan = plan_of(params, module, args->wide, params->workspace || params->workspace_size);
    KILN__TRY(partials_size(name, &sizes, out_plan, &needed));
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
    KILN__TRY(matmul_options_check(name, params->activation, params->tile, params->scale));
    KILN__TRY(check_own_option(name, params));
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
    args.grouped = args.a_scales.step || args.b_scales.step || (W8A8_EXACT > 0 && params->k > W8A8_EXACT);
    memcpy((char *)&args + offsetof(kiln_w8a8_args, gated), &matmul_gates[params->activation], sizeof(matmul_gate));
    const kiln_module *module;
    KILN__TRY(kiln__operator_require(stream, KILN__JOIN(KILN__OPERATOR_, KILN_HOST, ), part,
                                     &KILN__JOIN(kiln__bundle_, KILN_HOST, ), &module));
    const matmul_sizes sizes = sizes_of(params);
    few_rows few = mma_rows_kernel(params, module, args.wide);
    const kiln_kernel *cluster = few.kernel ? NULL : wgmma_rows_kernel(params, module, args.wide);
    if (cluster) {
        kiln__plan_take(cluster, "is for so few rows");
        return launch_clusters(stream, cluster, &sizes, &args, asks_fast(params));
    }
    if (!few.kernel) few = rows_kernel(params, module);
    if (few.kernel) {
        kiln_launch_config config;
        kiln__plan_take(few.kernel, "is for so few rows");
        if (kiln__operator_overlaps(stream, few.kernel))
            args.stages = EARLY_BLOCKS * (uint32_t)stream->device->info.multiprocessors;
        KILN__TRY(kiln__grid(name, tiles_of(args.n, few.columns), tiles_of(args.m, few.rows), &config));
        return kiln__call_launch(stream, few.kernel, &config, &args, sizeof args);
    }
    matmul_plan way;
    KILN__TRY(choose_plan(&args, params, module, name, &way));
    return launch_tiles(stream, module->kernels, &args, &sizes, &way, asks_fast(params), name);
}

/* Enough for the call, whether its tensors are aligned or not. */
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
    const matmul_sizes sizes = sizes_of(params);
    for (uint32_t wide = 0; wide <= aligned; wide++) {
        if (wgmma_rows_kernel(params, module, wide)) continue;
        matmul_plan way = plan_of(params, module, wide, true);
        size_t size;
        KILN__TRY(partials_size(name, &sizes, &way, &size));
        if (size > *out_size) *out_size = size;
    }
    return KILN_OK;
}
