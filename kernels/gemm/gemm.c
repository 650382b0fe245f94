/* gemm, host side: which kernel does a product, and whether blocks share its k. */
#include "kernels/common/gates.h"
#include "kernels/common/host.h"
#include "kernels/gemm/gemm_mapped_args.h"
#include <kiln/ops/gemm.h>

extern const kiln_bundle kiln__bundle_gemm;

enum {
#define KILN_KERNEL(name) KERNEL_##name,
#include "kernels/gemm/gemm.def"
};

/* k is divided where d alone would not occupy the device, into pieces of at least SPLIT_LEAST. By gemm_tiles there are
 * then about TILES_BLOCKS blocks, on every device. */
enum { TILES_BLOCKS = 128, SPLIT_LEAST = 512, SPLITS_MOST = 32, STAGES_LEAST = 2, STAGES_MOST = 3 };

/* The end of the argument struct, copied as it is. */
typedef struct gate {
    uint32_t gated;
    float bound;
    float coefficients[KILN_GEMM_COEFFICIENTS];
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

static kiln_status check_sizes(const char *name, const kiln_gemm_params *params) {
    KILN__TRY(kiln__size_check(name, "batch", params->batch, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "m", params->m, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "n", params->n, INT32_MAX));
    return kiln__size_check(name, "k", params->k, INT32_MAX);
}

/* A tensor of `batch` matrices. Gives its strides in place of 0. */
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

/* How a product is done that no kernel for few rows does. */
typedef struct plan {
    unsigned kernel;
    uint32_t rows, cols;          /* of a tile */
    uint32_t stages, stage_bytes; /* of k in dynamic shared memory */
    uint32_t cluster;             /* blocks that do tiles below each other together */
    uint32_t splits, split;       /* how many blocks share the k of a tile, and how much of it each has */
    double cost;                  /* relative to that of other plans */
} plan;

static uint64_t tiles_of(int64_t count, uint32_t tile) {
    return ((uint64_t)count + tile - 1) / tile;
}

static double tile_count(const kiln_gemm_params *params, const plan *way) {
    uint64_t down = (tiles_of(params->m, way->rows) + way->cluster - 1) / way->cluster * way->cluster;
    return (double)down * (double)tiles_of(params->n, way->cols) * (double)params->batch;
}

/* Divides k into as many pieces as make `blocks` blocks. */
static void divide(const kiln_gemm_params *params, double blocks, uint32_t depth, plan *way) {
    uint64_t k = (uint64_t)params->k, most = k / SPLIT_LEAST;
    double wanted = blocks / tile_count(params, way);
    uint64_t splits = wanted < SPLITS_MOST ? (uint64_t)wanted : SPLITS_MOST;
    if (splits > most) splits = most;
    if (splits <= 1) return;
    uint64_t each = (k + splits - 1) / splits;
    each = (each + depth - 1) / depth * depth;
    way->split = (uint32_t)each;
    way->splits = (uint32_t)((k + each - 1) / each);
}

/* The time of a plan, in elements of d times elements of k that a multiprocessor does at a rate of 1: rounds of blocks,
 * and where k is divided a second launch that reads the partial sums. */
static double cost_of(const kiln_gemm_params *params, const plan *way, uint32_t multiprocessors, uint32_t rate) {
    /* Of an H100, whose multiprocessors do 1.9e12 such a second: 2 us, and 8 bytes at 3 TB/s. */
    const double join = 4e6, partial = 5;
    /* The end of the last tile, beside which nothing is multiplied, in elements of k at a rate of 100. */
    const double last = 6;
    double rounds = __builtin_ceil(tile_count(params, way) * way->splits / multiprocessors);
    double cost = way->rows * way->cols * (rounds * way->split / rate + last);
    if (way->splits == 1) return cost;
    double elements = (double)params->m * (double)params->n * (double)params->batch;
    return cost + (join + partial * elements * way->splits) / 100;
}

/* Whether tensor maps reach all of a and b, and 32 bits count the tiles: for kernels whose blocks do many of them. */
static bool is_mapped(const kiln_gemm_params *params, const plan *way) {
    const int64_t strides = params->a_stride | params->b_stride | params->a_batch_stride | params->b_batch_stride;
    const double a = (double)params->m * (double)params->k, b = (double)params->n * (double)params->k;
    const double most = (double)KILN__TENSOR_MAP_STRIDE_MOST / 2;
    return strides < KILN__TENSOR_MAP_STRIDE_MOST / 2 && a < most && b < most &&
           tile_count(params, way) * SPLITS_MOST < INT32_MAX;
}

static void consider(const kiln_gemm_params *params, const kiln_module *module, unsigned kernel, bool may_split,
                     plan *best) {
    const kiln_kernel_info *info = &module->kernels[kernel].info;
    const kiln_device_info *device = &module->device->info;
    if (info->absent || !info->stage_bytes) return;
    uint32_t stages = (uint32_t)device->max_shared_bytes / info->stage_bytes;
    if (stages < (info->stages ? info->stages : STAGES_LEAST)) {
        kiln__plan_leave(&module->kernels[kernel], "the device has no shared memory for its stages");
        return;
    }
    uint32_t stages_most = info->stages ? info->stages : STAGES_MOST;
    plan way = {.kernel = kernel,
                .rows = info->tile[0],
                .cols = info->tile[1],
                .stages = stages < stages_most ? stages : stages_most,
                .stage_bytes = info->stage_bytes,
                .cluster = info->cluster ? info->cluster : 1,
                .splits = 1,
                .split = (uint32_t)params->k};
    uint32_t multiprocessors = (uint32_t)device->multiprocessors / way.cluster * way.cluster;
    if (!multiprocessors || (kiln__tensor_map_count(info) && !is_mapped(params, &way))) return;
    for (int divided = 0; divided <= may_split; divided++) {
        if (divided) divide(params, multiprocessors, info->tile[2], &way);
        way.cost = cost_of(params, &way, multiprocessors, info->rate);
        kiln__plan_weigh(&module->kernels[kernel], way.cost, way.splits);
        if (!best->cost || way.cost < best->cost) *best = way;
    }
}

/* The kernels of matrix instructions need rows on 16 bytes. */
static plan plan_of(const kiln_gemm_params *params, const kiln_module *module, uint32_t wide, bool may_split) {
    plan best = {.kernel = KERNEL_gemm_tiles,
                 .rows = KILN_GEMM_TILE,
                 .cols = KILN_GEMM_TILE,
                 .cluster = 1,
                 .splits = 1,
                 .split = (uint32_t)params->k};
    static const struct {
        unsigned kernel;
        kiln_gemm_tile tile;
    } tuned[] = {{KERNEL_gemm_wgmma_large, KILN_GEMM_TILE_LARGE},
                 {KERNEL_gemm_wgmma_small, KILN_GEMM_TILE_SMALL},
                 {KERNEL_gemm_wgmma_medium, KILN_GEMM_TILE_MEDIUM},
                 {KERNEL_gemm_mma_large, KILN_GEMM_TILE_LARGE},
                 {KERNEL_gemm_mma_small, KILN_GEMM_TILE_SMALL}};
    for (size_t i = 0; wide && params->k && i < sizeof tuned / sizeof *tuned; i++)
        if (params->tile == KILN_GEMM_TILE_AUTO || params->tile == (int32_t)tuned[i].tile)
            consider(params, module, tuned[i].kernel, may_split, &best);
    if (!best.cost)
        kiln__plan_take(&module->kernels[best.kernel],
                        wide ? "no tuned kernel is for this call" : "rows of a or b do not begin on 16 bytes");
    if (!best.cost && may_split) divide(params, TILES_BLOCKS, KILN_GEMM_DEPTH, &best);
    return best;
}

/* The bytes of a plan's partial sums. */
static kiln_status partials_size(const char *name, const kiln_gemm_params *params, const plan *way, size_t *out_size) {
    uint64_t count;
    *out_size = 0;
    bool overflow =
        __builtin_mul_overflow((uint64_t)params->m * (uint64_t)params->n, (uint64_t)params->batch, &count) ||
        __builtin_mul_overflow(count, way->splits * sizeof(float), &count) || count > INT64_MAX;
    KILN__REQUIRE(!overflow, "%s: d is too large: %lld matrices of %lld x %lld", name, (long long)params->batch,
                  (long long)params->m, (long long)params->n);
    if (way->splits > 1) *out_size = count;
    return KILN_OK;
}

/* ---- Launches ---- */

/* The kernel for products of few rows, where there is one for so many: that of matrix units for more than one row. Its
 * columns go into *out_columns. */
static const kiln_kernel *rows_kernel(const kiln_gemm_params *params, const kiln_module *module, uint32_t wide,
                                      uint32_t *out_columns) {
    bool tuned = wide && params->tile == KILN_GEMM_TILE_AUTO && params->k % (KILN_VECTOR_BYTES / 2) == 0;
    for (unsigned i = KERNEL_gemm_mma_rows_8; tuned && params->m > 1 && i <= KERNEL_gemm_mma_rows_16; i++) {
        const kiln_kernel_info *info = &module->kernels[i].info;
        *out_columns = info->tile[1];
        if (!info->absent && params->m <= (int64_t)info->tile[0]) return &module->kernels[i];
    }
    *out_columns = KILN_GEMM_BLOCK_COLUMNS;
    return params->m <= KILN_GEMM_ROWS ? &module->kernels[KERNEL_gemm_rows] : NULL;
}

static kiln_status launch_rows(kiln_stream *stream, const kiln_kernel *kernel, uint32_t columns,
                               const kiln_gemm_args *args, const char *name) {
    kiln_launch_config config;
    KILN__TRY(kiln__grid(name, tiles_of(args->n, columns), args->batch, &config));
    return kiln__operator_launch(stream, kernel, &config, args, sizeof *args);
}

/* A factor of so many rows, as a tensor map has it. */
static kiln__tensor_layout layout_of(const void *data, int64_t rows, int64_t stride, int64_t batch_stride,
                                     const kiln_gemm_args *args, unsigned size_log2) {
    return (kiln__tensor_layout){
        .data = data,
        .element_bytes = 1u << size_log2,
        .rank = 3,
        .sizes = {(uint64_t)args->k, (uint64_t)rows, args->batch},
        .strides = {0, (uint64_t)stride << size_log2, (uint64_t)batch_stride << size_log2},
    };
}

/* A kernel that copies by tensor maps: a block for each multiprocessor does one tile after the other. */
static kiln_status launch_mapped(kiln_stream *stream, const kiln_kernel *kernel, const kiln_gemm_args *args,
                                 const plan *way, const kiln_launch_config *tiles, unsigned size_log2) {
    const kiln__tensor_layout factors[] = {
        layout_of(args->a, args->m, args->a_stride, args->a_batch_stride, args, size_log2),
        layout_of(args->b, args->n, args->b_stride, args->b_batch_stride, args, size_log2)};
    const uint32_t down = (args->tile_rows + way->cluster - 1) / way->cluster * way->cluster;
    const uint64_t all = (uint64_t)tiles->grid[0] * down * args->splits * args->batch;
    const uint32_t most = (uint32_t)stream->device->info.multiprocessors / way->cluster * way->cluster;
    const kiln_launch_config config = {.grid = {all < most ? (uint32_t)all : most, 1, 1},
                                       .block = {kernel->info.max_threads, 1, 1},
                                       .dynamic_shared_bytes = tiles->dynamic_shared_bytes};
    kiln_gemm_mapped_args mapped = {.plain = *args};
    KILN__TRY(kiln__tensor_maps_encode(kernel, factors, &mapped));
    return kiln__operator_launch(stream, kernel, &config, &mapped, sizeof mapped);
}

static kiln_status launch_tiles(kiln_stream *stream, const kiln_kernel *kernels, const kiln_gemm_args *args,
                                const plan *way, unsigned size_log2, const char *name) {
    kiln_launch_config config, joining;
    const kiln_kernel *kernel = &kernels[way->kernel];
    const uint64_t columns = ((uint64_t)args->n + KILN_BLOCK - 1) >> KILN_BLOCK_LOG2;
    if (args->splits > 1) {
        KILN__TRY(kiln__grid(name, columns, (uint64_t)args->m * args->batch, &joining));
        KILN__TRY(kiln__operator_fits(stream, name, &joining));
    }
    uint64_t blocks = (uint64_t)args->tile_rows * args->splits * args->batch;
    KILN__TRY(kiln__grid(name, tiles_of(args->n, way->cols), blocks, &config));
    config.dynamic_shared_bytes = way->stages * way->stage_bytes;
    KILN__TRY(kiln__tensor_map_count(&kernel->info)
                  ? launch_mapped(stream, kernel, args, way, &config, size_log2)
                  : kiln__operator_launch(stream, kernel, &config, args, sizeof *args));
    if (args->splits == 1) return KILN_OK;
    return kiln__operator_launch(stream, &kernels[KERNEL_gemm_join], &joining, args, sizeof *args);
}

/* Plans the product, divided if the workspace is there for it, and writes the plan into the arguments. */
static kiln_status choose_plan(kiln_gemm_args *args, const kiln_gemm_params *params, const kiln_module *module,
                               const char *name, plan *out_plan) {
    size_t needed;
    *out_plan = plan_of(params, module, args->wide, params->workspace || params->workspace_size);
    KILN__TRY(partials_size(name, params, out_plan, &needed));
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
    args->stages = out_plan->stages;
    args->tile_rows = (uint32_t)tiles_of(params->m, out_plan->rows);
    return KILN_OK;
}

static kiln_status gemm(kiln_stream *stream, const kiln_gemm_params *params, size_t params_size, unsigned part,
                        const char *name) {
    kiln_gemm_params copy;
    KILN__PARAMS(name, params, params_size, &copy);
    KILN__TRY(kiln__stream_check(name, stream));
    KILN__TRY(check_sizes(name, params));
    KILN__REQUIRE((uint32_t)params->activation < GATES,
                  "%s: activation is %d: must be none (0), gelu_erf (1), gelu_tanh (2), gelu_quick (3) or silu (4)",
                  name, params->activation);
    KILN__REQUIRE((uint32_t)params->tile <= KILN_GEMM_TILE_MEDIUM,
                  "%s: tile is %d: must be auto (0), portable (1), small (2), large (3) or medium (4)", name,
                  params->tile);
    KILN__REQUIRE(params->reserved == 0, "%s: reserved is %d: must be 0", name, params->reserved);
    KILN__REQUIRE(__builtin_isfinite(params->scale), "%s: scale is %g: must be finite", name, (double)params->scale);
    int64_t batch = params->batch, m = params->m, n = params->n, k = params->k;
    if (KILN__UNLIKELY(!batch || !m || !n)) return KILN_OK;

    unsigned size_log2 = kiln__part_size_log2(part);
    matrices d = {"d", params->d, m, n, params->d_stride, params->d_batch_stride};
    matrices a = {"a", params->a, m, k, params->a_stride, params->a_batch_stride};
    matrices b = {"b", params->b, n, k, params->b_stride, params->b_batch_stride};
    matrices c = {"c", params->c, m, n, params->c_stride, params->c_batch_stride};
    KILN__TRY(check_matrices(name, &d, batch, size_log2));
    if (k) {
        KILN__TRY(check_matrices(name, &a, batch, size_log2));
        KILN__TRY(check_matrices(name, &b, batch, size_log2));
    }
    if (c.data) KILN__TRY(check_matrices(name, &c, batch, size_log2));
    if (params->bias) KILN__TRY(kiln__tensor_check(name, "bias", params->bias, 1, n, n, size_log2));
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
    };
    memcpy((char *)&args + offsetof(kiln_gemm_args, gated), &gates[(uint32_t)params->activation], sizeof(gate));
    const kiln_module *module;
    plan way;
    KILN__TRY(kiln__operator_require(stream, KILN__OPERATOR_gemm, part, &kiln__bundle_gemm, &module));
    uint32_t columns;
    const kiln_kernel *few = rows_kernel(params, module, args.wide, &columns);
    if (few) kiln__plan_take(few, "is for so few rows");
    if (few) return launch_rows(stream, few, columns, &args, name);
    KILN__TRY(choose_plan(&args, params, module, name, &way));
    return launch_tiles(stream, module->kernels, &args, &way, size_log2, name);
}

/* Whether rows of a and b can be on 16 bytes, going by their strides. */
static bool strides_wide(const kiln_gemm_params *params, unsigned size_log2) {
    int64_t a_stride = params->a_stride ? params->a_stride : params->k;
    int64_t b_stride = params->b_stride ? params->b_stride : params->k;
    return kiln__rows_wide(0, params->m, a_stride, size_log2) && kiln__rows_wide(0, params->n, b_stride, size_log2);
}

/* Enough for the call whether its tensors are aligned or not. */
static kiln_status gemm_workspace(kiln_stream *stream, const kiln_gemm_params *params, size_t params_size,
                                  unsigned part, size_t *out_size, const char *name) {
    KILN__REQUIRE(out_size, "%s_workspace_size: out_size is NULL", name);
    *out_size = 0;
    kiln_gemm_params copy;
    KILN__PARAMS(name, params, params_size, &copy);
    KILN__TRY(kiln__stream_check(name, stream));
    KILN__TRY(check_sizes(name, params));
    if (!params->batch || !params->m || !params->n || params->m <= KILN_GEMM_ROWS) return KILN_OK;
    const kiln_module *module;
    KILN__TRY(kiln__operator_require(stream, KILN__OPERATOR_gemm, part, &kiln__bundle_gemm, &module));
    for (uint32_t wide = 0; wide <= strides_wide(params, kiln__part_size_log2(part)); wide++) {
        plan way = plan_of(params, module, wide, true);
        size_t size;
        KILN__TRY(partials_size(name, params, &way, &size));
        if (size > *out_size) *out_size = size;
    }
    return KILN_OK;
}

#define GEMM(part, size)                                                                                     \
    KILN__OPERATOR_FUNCTION(gemm, part)                                                                      \
    kiln_status kiln_gemm_##part##_workspace_size_sized(kiln_stream *stream, const kiln_gemm_params *params, \
                                                        size_t params_size, size_t *out_size) {              \
        return gemm_workspace(stream, params, params_size, KILN__PART_##part, out_size, "gemm_" #part);      \
    }
KILN__FLOAT_PARTS(GEMM)
