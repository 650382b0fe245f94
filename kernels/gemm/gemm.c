/* gemm, host side: which kernel does a product, and whether blocks share its k. */
#include "kernels/common/matmul/matmul_host.h"
#include "kernels/gemm/gemm_fused_args.h"
#include "kernels/gemm/gemm_mapped_args.h"
#include <kiln/ops/gemm.h>

extern const kiln_bundle kiln__bundle_gemm;

enum {
#define KILN_KERNEL(name) KERNEL_##name,
#include "kernels/gemm/gemm.def"
};

_Static_assert(offsetof(kiln_gemm_args, gated) + sizeof(matmul_gate) == offsetof(kiln_gemm_args, stages),
               "activations are copied as they are");

/* For an H200, whose multiprocessors do 3.3e12 products of bf16 a second: 1.2 us for a second launch, and for a partial
 * sum, from a tile's end through gemm_join, the 6 ps that were measured. */
static const matmul_times times = {.split_least = 512, .last = 200, .join = 4e6, .partial = 20};

/* ---- Checks ---- */

static kiln_status check_sizes(const char *name, const kiln_gemm_params *params) {
    KILN__TRY(kiln__size_check(name, "batch", params->batch, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "m", params->m, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "n", params->n, INT32_MAX));
    return kiln__size_check(name, "k", params->k, INT32_MAX);
}

/* A tensor of `batch` matrices. Resolves strides of 0. */
typedef struct matrices {
    const char *name;
    const void *data;
    int64_t rows, cols;
    int64_t stride, batch_stride;
} matrices;

/* Inlined, so that the tensors need not be in memory. */
KILN__HOST_SIDE kiln_status check_matrices(const char *name, matrices *tensor, int64_t batch, unsigned size_log2) {
    if (!tensor->stride) tensor->stride = tensor->cols;
    KILN__TRY(
        kiln__tensor_check(name, tensor->name, tensor->data, tensor->rows, tensor->cols, tensor->stride, size_log2));
    if (!tensor->batch_stride) tensor->batch_stride = tensor->rows * tensor->stride;
    KILN__REQUIRE(tensor->batch_stride >= tensor->cols,
                  "%s: %s_batch_stride is %lld: must be 0 or at least the %lld elements of a row", name, tensor->name,
                  (long long)tensor->batch_stride, (long long)tensor->cols);
    int64_t count;
    bool overflow = __builtin_mul_overflow(batch, tensor->batch_stride, &count) || count > INT64_MAX >> 3;
    KILN__REQUIRE(!overflow, "%s: %s is too large: %lld matrices with a stride of %lld elements", name, tensor->name,
                  (long long)batch, (long long)tensor->batch_stride);
    return KILN_OK;
}

static uint32_t wide(const matrices *a, const matrices *b, int64_t batch, unsigned size_log2) {
    return kiln__rows_wide((uintptr_t)a->data, a->rows, a->stride, size_log2) &
           kiln__rows_wide((uintptr_t)b->data, b->rows, b->stride, size_log2) &
           kiln__rows_wide(0, batch, a->batch_stride | b->batch_stride, size_log2);
}

/* ---- Plans ---- */

static matmul_sizes sizes_of(const kiln_gemm_params *params) {
    return (matmul_sizes){params->batch, params->m, params->n, params->k};
}

/* Whether the call leaves the choice open or asks for this tile. Of several large ones it then asks for the others
 * where their columns divide n and those of the widest do not; of several small ones for that of 80 columns, and for no
 * other, where these divide n and 64 do not. Small tiles in clusters are for more rows than one tile has. */
static bool is_asked(const kiln_gemm_params *params, const kiln_module *module, const matmul_kernel *tuned) {
    const kiln_kernel_info *info = &module->kernels[tuned->kernel].info;
    const bool is_80 = tuned->kernel == KERNEL_gemm_wgmma_small_80;
    if ((is_80 || tuned->kernel == KERNEL_gemm_wgmma_small_2) && params->m <= (int64_t)info->tile[0]) return false;
    if (params->tile == KILN_GEMM_TILE_AUTO) return true;
    if (params->tile != (int32_t)tuned->tile) return false;
    if (tuned->tile == KILN_GEMM_TILE_SMALL) {
        const kiln_kernel_info *small_80 = &module->kernels[KERNEL_gemm_wgmma_small_80].info;
        const bool divides = params->n % 64 && params->n % 80 == 0;
        return is_80 == (divides && !small_80->absent && params->m > (int64_t)small_80->tile[0]);
    }
    bool other = tuned->kernel == KERNEL_gemm_wgmma_large_224 || tuned->kernel == KERNEL_gemm_wgmma_large_192;
    return !other || (!info->absent && params->n % 256 && params->n % info->tile[1] == 0);
}

/* Replaces the plan of gemm_ffma by that of the portable kernel where its tiles, a fourth as large, occupy the device
 * better. On an H200 its rate was two thirds of that of gemm_ffma. */
static void consider_portable(const matmul_sizes *sizes, const kiln_module *module, bool may_split, matmul_plan *best) {
    const uint32_t rate = module->kernels[best->kernel].info.rate * 2 / 3;
    matmul_plan way = {.kernel = KERNEL_gemm_tiles,
                       .rows = KILN_GEMM_TILE,
                       .cols = KILN_GEMM_TILE,
                       .cluster = 1,
                       .splits = 1,
                       .split = (uint32_t)sizes->k};
    if (may_split) divide(sizes, &times, TILES_BLOCKS, KILN_GEMM_DEPTH, &way);
    way.cost = cost_of(sizes, &times, &way, (uint32_t)module->device->info.multiprocessors, rate);
    kiln__plan_weigh(&module->kernels[way.kernel], way.cost, way.splits);
    if (way.cost < best->cost) *best = way;
}

/* The tuned kernels need rows aligned to 16 bytes. Those with matrix instructions round elements of f32 to TF32, which
 * gemm_ffma does not. */
static matmul_plan plan_of(const kiln_gemm_params *params, const kiln_module *module, unsigned size_log2, uint32_t wide,
                           bool may_split) {
    const bool may_round = size_log2 < 2 || params->compute == KILN_GEMM_COMPUTE_TF32;
    static const matmul_kernel tuned[] = {
        {KERNEL_gemm_wgmma_large, KILN_GEMM_TILE_LARGE},     {KERNEL_gemm_wgmma_small, KILN_GEMM_TILE_SMALL},
        {KERNEL_gemm_wgmma_medium, KILN_GEMM_TILE_MEDIUM},   {KERNEL_gemm_wgmma_large_224, KILN_GEMM_TILE_LARGE},
        {KERNEL_gemm_wgmma_large_192, KILN_GEMM_TILE_LARGE}, {KERNEL_gemm_mma_large, KILN_GEMM_TILE_LARGE},
        {KERNEL_gemm_mma_small, KILN_GEMM_TILE_SMALL},       {KERNEL_gemm_ffma, KILN_GEMM_TILE_LARGE},
        {KERNEL_gemm_wgmma_small_2, KILN_GEMM_TILE_SMALL},   {KERNEL_gemm_wgmma_small_80, KILN_GEMM_TILE_SMALL}};
    const matmul_sizes sizes = sizes_of(params);
    const int64_t strides = params->a_stride | params->b_stride | params->a_batch_stride | params->b_batch_stride;
    matmul_plan best = {.kernel = KERNEL_gemm_tiles,
                        .rows = KILN_GEMM_TILE,
                        .cols = KILN_GEMM_TILE,
                        .cluster = 1,
                        .splits = 1,
                        .split = (uint32_t)params->k};
    for (size_t i = 0; wide && params->k && i < sizeof tuned / sizeof *tuned; i++)
        if (may_round == (tuned[i].kernel != KERNEL_gemm_ffma) && is_asked(params, module, &tuned[i]))
            consider(&sizes, strides, &times, module, tuned[i].kernel, may_split, &best);
    if (best.kernel == KERNEL_gemm_ffma && params->tile == KILN_GEMM_TILE_AUTO)
        consider_portable(&sizes, module, may_split, &best);
    if (best.cost == 0)
        kiln__plan_take(&module->kernels[best.kernel],
                        wide ? "no tuned kernel is for this call" : "rows of a or b do not begin on 16 bytes");
    if (best.cost == 0 && may_split) divide(&sizes, &times, TILES_BLOCKS, KILN_GEMM_DEPTH, &best);
    return best;
}

/* ---- Launches ---- */

/* Blocks of the kernels for few rows by matrix units: their warps share k. */
enum { ROWS_WARPS_MOST = 16, ROWS_WARPS_LEAST = 4, ROWS_WARP_DEPTH = 128 };

typedef struct rows_kernel {
    const kiln_kernel *kernel; /* NULL: none is for so many rows */
    uint32_t columns;          /* of d, of a block */
    uint32_t row_sums;         /* that a warp leaves in shared memory for each row of a */
    uint32_t resident;         /* warps of a multiprocessor, of all its blocks; 0: a block has KILN_BLOCK threads */
} rows_kernel;

/* The kernel for products of few rows, if there is one for that many: with matrix units, from `first` to `last`, if the
 * image has it; else the portable one. Where a block's warps are fixed, rows less than a quarter of its own take fewer
 * instructions by the portable one (simulated). */
static rows_kernel rows_kernel_of(const kiln_gemm_params *params, const kiln_module *module, uint32_t wide,
                                  unsigned first, unsigned last, unsigned portable) {
    bool tuned = wide && params->tile == KILN_GEMM_TILE_AUTO && params->k % (KILN_VECTOR_BYTES / 2) == 0;
    for (unsigned i = first; tuned && i <= last; i++) {
        const kiln_kernel_info *info = &module->kernels[i].info;
        if (info->absent || params->m > (int64_t)info->tile[0]) continue;
        const bool fixed = info->max_threads == KILN_BLOCK; /* a block's warps, whatever the device and k */
        if (fixed && 4 * params->m < (int64_t)info->tile[0]) continue;
        return (rows_kernel){&module->kernels[i], info->tile[1], info->tile[1],
                             fixed ? 0 : info->max_threads / KILN_SUBGROUP};
    }
    return (rows_kernel){.kernel = params->m <= KILN_GEMM_ROWS ? &module->kernels[portable] : NULL,
                         .columns = KILN_GEMM_BLOCK_COLUMNS};
}

static rows_kernel plain_rows_kernel_of(const kiln_gemm_params *params, const kiln_module *module, uint32_t wide) {
    return rows_kernel_of(params, module, wide, KERNEL_gemm_mma_rows_8, KERNEL_gemm_mma_rows_16, KERNEL_gemm_rows);
}

/* The kernel of few rows by wgmma for the product; NULL if there is none. */
static const kiln_kernel *wgmma_rows_kernel(const kiln_gemm_params *params, const kiln_module *module, bool wide) {
    const matmul_sizes sizes = sizes_of(params);
    const int64_t strides = params->a_stride | params->b_stride | params->a_batch_stride | params->b_batch_stride;
    if (!wide || params->tile != KILN_GEMM_TILE_AUTO || !params->k) return NULL;
    return cluster_kernel(&sizes, strides, module, KERNEL_gemm_wgmma_rows_1, KERNEL_gemm_wgmma_rows_4, 0.9);
}

static kiln_status launch_clusters(kiln_stream *stream, const kiln_kernel *kernel, const matmul_sizes *sizes,
                                   const kiln_gemm_args *args) {
    kiln_gemm_mapped_args mapped = {.plain = *args, .early = kiln__operator_overlaps(stream, kernel)};
    const kiln_launch_config config = clusters_config(kernel, sizes, &mapped.plain.split);
    const kiln__tensor_layout factors[] = {layout_of(args->a, args->m, args->a_stride, args->a_batch_stride, sizes, 1),
                                           layout_of(args->b, args->n, args->b_stride, args->b_batch_stride, sizes, 1)};
    mapped.plain.splits = 1;
    KILN__TRY(kiln__tensor_maps_encode(kernel, factors, &mapped));
    return kiln__call_launch(stream, kernel, &config, &mapped, sizeof mapped);
}

/* The warps of a block: as many as let all blocks be on the device at once, or the kernel's own number where it has no
 * room for all of them; each has a part of k. */
static uint32_t rows_warps(const rows_kernel *few, uint64_t blocks, int64_t k) {
    const uint64_t multiprocessors = (uint64_t)few->kernel->device->info.multiprocessors;
    const uint64_t each = (blocks + multiprocessors - 1) / multiprocessors; /* of a multiprocessor */
    uint32_t warps = ROWS_WARPS_MOST;
    while (warps > ROWS_WARPS_LEAST && each * warps > few->resident)
        warps /= 2;
    if (each * warps > few->resident) warps = few->kernel->info.tile[2] / ROWS_WARP_DEPTH;
    while (warps > ROWS_WARPS_LEAST && warps * ROWS_WARP_DEPTH > k)
        warps /= 2;
    return warps;
}

/* `args` are the kernel's, which begin with `plain`. */
static kiln_status launch_rows(kiln_stream *stream, const rows_kernel *few, const kiln_gemm_args *plain,
                               const void *args, size_t args_size, const char *name) {
    const uint64_t tiles = tiles_of(plain->n, few->columns);
    kiln_launch_config config;
    KILN__TRY(kiln__grid(name, tiles, plain->batch, &config));
    if (few->resident) {
        const uint32_t warps = rows_warps(few, tiles * plain->batch, plain->k);
        config.block[0] = warps * KILN_SUBGROUP;
        config.dynamic_shared_bytes = warps * few->row_sums * few->kernel->info.tile[0] * (uint32_t)sizeof(float);
    }
    return kiln__call_launch(stream, few->kernel, &config, args, args_size);
}

static kiln_status launch_tiles(kiln_stream *stream, const kiln_kernel *kernels, const kiln_gemm_args *args,
                                const matmul_sizes *sizes, const matmul_plan *way, unsigned size_log2,
                                const char *name) {
    kiln_launch_config config, joining;
    const kiln_kernel *join = &kernels[KERNEL_gemm_join];
    uint32_t columns = KILN_BLOCK; /* of a block that joins */
    const kiln_kernel *kernel = &kernels[way->kernel];
    if (args->splits > 1) {
        if (kiln__tensor_map_count(&kernel->info) && !kernels[KERNEL_gemm_wgmma_join].info.absent) {
            join = &kernels[KERNEL_gemm_wgmma_join];
            columns = (uint32_t)KILN_BLOCK * (KILN_VECTOR_BYTES >> size_log2);
        }
        KILN__TRY(kiln__grid(name, tiles_of(args->n, columns), (uint64_t)args->m * args->batch, &joining));
        KILN__TRY(kiln__operator_fits(stream, name, &joining));
    }
    if (kiln__tensor_map_count(&kernel->info)) {
        kiln__tensor_layout factors[] = {
            layout_of(args->a, args->m, args->a_stride, args->a_batch_stride, sizes, size_log2),
            layout_of(args->b, args->n, args->b_stride, args->b_batch_stride, sizes, size_log2)};
        factors[0].tf32 = factors[1].tf32 = size_log2 == 2;
        kiln_gemm_mapped_args mapped = {.plain = *args, .early = kiln__operator_overlaps(stream, kernel)};
        KILN__TRY(launch_mapped(stream, kernel, sizes, way, factors, &mapped, sizeof mapped));
    } else {
        uint64_t blocks = (uint64_t)args->tile_rows * args->splits * args->batch;
        KILN__TRY(kiln__grid(name, tiles_of(args->n, way->cols), blocks, &config));
        if (way->stages) config.block[0] = kernel->info.max_threads; /* of the tuned kernels */
        config.dynamic_shared_bytes = way->stages * way->stage_bytes;
        KILN__TRY(kiln__call_launch(stream, kernel, &config, args, sizeof *args));
    }
    if (args->splits == 1) return KILN_OK;
    return kiln__call_launch(stream, join, &joining, args, sizeof *args);
}

/* Plans the product, with k divided if there is a workspace for it, and writes the plan into the arguments. */
static kiln_status choose_plan(kiln_gemm_args *args, const kiln_gemm_params *params, const kiln_module *module,
                               unsigned size_log2, const char *name, matmul_plan *out_plan) {
    const matmul_sizes sizes = sizes_of(params);
    size_t needed;
    *out_plan = plan_of(params, module, size_log2, args->wide, params->workspace || params->workspace_size);
    KILN__TRY(partials_size(name, &sizes, out_plan, &needed));
    if (needed) {
        KILN__REQUIRE(params->workspace_size >= needed,
                      "%s: workspace_size is %zu: must be at least %zu, or 0 without a workspace", name,
                      params->workspace_size, needed);
        KILN__REQUIRE(params->workspace && !((uintptr_t)params->workspace & (KILN_VECTOR_BYTES - 1)),
                      "%s: workspace is %p: must be 16-byte aligned device memory", name, params->workspace);
        args->partials = params->workspace;
    }
    args->splits = out_plan->splits;
    args->split = out_plan->split;
    if (out_plan->stages) args->stages = out_plan->stages;
    args->tile_rows = (uint32_t)tiles_of(params->m, out_plan->rows);
    return KILN_OK;
}

#include "kernels/gemm/gemm_fused_host.h"

static kiln_status gemm(kiln_stream *stream, const kiln_gemm_params *params, size_t params_size, unsigned part,
                        const char *name) {
    kiln_gemm_params copy;
    KILN__PARAMS(name, params, params_size, &copy);
    KILN__TRY(kiln__stream_check(name, stream));
    KILN__TRY(check_sizes(name, params));
    KILN__TRY(matmul_options_check(name, params->activation, params->tile, params->scale));
    KILN__REQUIRE((uint32_t)params->compute <= KILN_GEMM_COMPUTE_DOT,
                  "%s: compute is %d: must be f32 (0), tf32 (1) or dot (2)", name, params->compute);
    KILN__TRY(check_fused(name, params));
    int64_t batch = params->batch, m = params->m, n = params->n, k = params->k;
    if (KILN__UNLIKELY(!batch || !m || !n)) return KILN_OK;

    unsigned size_log2 = kiln__part_size_log2(part);
    matrices d = {"d", params->d, m, n, params->d_stride, params->d_batch_stride};
    matrices a = {"a", params->a, m, k, params->a_stride, params->a_batch_stride};
    const int64_t b_rows = params->gated ? 2 * n : n;
    matrices b = {"b", params->b, b_rows, k, params->b_stride, params->b_batch_stride};
    matrices c = {"c", params->c, m, n, params->c_stride, params->c_batch_stride};
    KILN__TRY(check_matrices(name, &d, batch, size_log2));
    if (k) {
        KILN__TRY(check_matrices(name, &a, batch, size_log2));
        KILN__TRY(check_matrices(name, &b, batch, size_log2));
    }
    if (c.data) KILN__TRY(check_matrices(name, &c, batch, size_log2));
    if (params->bias) KILN__TRY(kiln__tensor_check(name, "bias", params->bias, 1, b_rows, b_rows, size_log2));
    if (params->norm_weight && k)
        KILN__TRY(kiln__tensor_check(name, "norm_weight", params->norm_weight, 1, k, k, size_log2));
    KILN__REQUIRE(d.data != c.data || (d.stride == c.stride && d.batch_stride == c.batch_stride),
                  "%s: d is c, but d_stride or d_batch_stride is not that of c: must be equal", name);

    kiln_gemm_args args = {
        .d = params->d,
        .a = params->a,
        .b = params->b,
        .c = params->c,
        .bias = params->bias,
        .m = m,
        .n = n,
        .k = k,
        .d_stride = d.stride,
        .a_stride = a.stride,
        .b_stride = b.stride,
        .c_stride = c.stride,
        .d_batch_stride = d.batch_stride,
        .a_batch_stride = a.batch_stride,
        .b_batch_stride = b.batch_stride,
        .c_batch_stride = c.batch_stride,
        .batch = (uint32_t)batch,
        .wide = wide(&a, &b, batch, size_log2),
        .scale = params->scale == 0.0f ? 1.0f : params->scale,
        .stages = (uint32_t)params->compute, /* which the CPU, having no stages, reads from there */
    };
    memcpy((char *)&args + offsetof(kiln_gemm_args, gated), &matmul_gates[params->activation], sizeof(matmul_gate));
    const kiln_module *module;
    matmul_plan way;
    const matmul_sizes sizes = sizes_of(params);
    KILN__TRY(kiln__operator_require(stream, KILN__OPERATOR_gemm, part, &kiln__bundle_gemm, &module));
    if (is_fused(params)) return launch_fused(stream, params, module, &args, part, name);
    const rows_kernel few = plain_rows_kernel_of(params, module, args.wide);
    if (few.kernel) kiln__plan_take(few.kernel, "is for so few rows");
    if (few.kernel) return launch_rows(stream, &few, &args, &args, sizeof args, name);
    const kiln_kernel *cluster = wgmma_rows_kernel(params, module, args.wide);
    if (cluster) kiln__plan_take(cluster, "is for so few rows");
    if (cluster) return launch_clusters(stream, cluster, &sizes, &args);
    KILN__TRY(choose_plan(&args, params, module, size_log2, name, &way));
    return launch_tiles(stream, module->kernels, &args, &sizes, &way, size_log2, name);
}

/* Whether the strides allow rows of a and b to be aligned to 16 bytes. */
static bool strides_wide(const kiln_gemm_params *params, unsigned size_log2) {
    int64_t a_stride = params->a_stride ? params->a_stride : params->k;
    int64_t b_stride = params->b_stride ? params->b_stride : params->k;
    return kiln__rows_wide(0, params->m, a_stride, size_log2) && kiln__rows_wide(0, params->n, b_stride, size_log2);
}

/* Enough for the call, whether its tensors are aligned or not. */
static kiln_status gemm_workspace(kiln_stream *stream, const kiln_gemm_params *params, size_t params_size,
                                  unsigned part, size_t *out_size, const char *name) {
    KILN__REQUIRE(out_size, "%s_workspace_size: out_size is NULL", name);
    *out_size = 0;
    kiln_gemm_params copy;
    KILN__PARAMS(name, params, params_size, &copy);
    KILN__TRY(kiln__stream_check(name, stream));
    KILN__TRY(check_sizes(name, params));
    KILN__TRY(check_fused(name, params));
    if (!params->batch || !params->m || !params->n) return KILN_OK;
    if (params->m <= KILN_GEMM_ROWS && !is_fused(params)) return KILN_OK;
    const kiln_module *module;
    KILN__TRY(kiln__operator_require(stream, KILN__OPERATOR_gemm, part, &kiln__bundle_gemm, &module));
    const matmul_sizes sizes = sizes_of(params);
    const bool may_be_wide = strides_wide(params, kiln__part_size_log2(part));
    if (is_fused(params)) return fused_workspace(stream, params, module, part, may_be_wide, out_size, name);
    for (uint32_t wide = 0; wide <= may_be_wide; wide++) {
        if (wgmma_rows_kernel(params, module, wide)) continue;
        matmul_plan way = plan_of(params, module, kiln__part_size_log2(part), wide, true);
        size_t size;
        KILN__TRY(partials_size(name, &sizes, &way, &size));
        if (size > *out_size) *out_size = size;
    }
    return KILN_OK;
}

#define GEMM(part, size)                                                                                     \
    KILN__KEPT_OPERATOR_FUNCTION(gemm, part)                                                                 \
    kiln_status kiln_gemm_##part##_workspace_size_sized(kiln_stream *stream, const kiln_gemm_params *params, \
                                                        size_t params_size, size_t *out_size) {              \
        return gemm_workspace(stream, params, params_size, KILN__PART_##part, out_size, "gemm_" #part);      \
    }
KILN__FLOAT_PARTS(GEMM)
