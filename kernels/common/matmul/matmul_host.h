/* The host sides of matrix products d[m x n] = a[m x k] b[n x k]^T: the choice of a kernel for products
 * that are not for few rows, the division of k among blocks, and launches with tensor maps. */
#ifndef KILN_KERNELS_COMMON_MATMUL_MATMUL_HOST_H
#define KILN_KERNELS_COMMON_MATMUL_MATMUL_HOST_H

#include <kiln/ops/gemm.h>

#include "kernels/common/matmul/matmul_gate.h"
#include "loader/tensor_map.h"

/* k is divided where the tiles of d alone would not occupy the device. The portable kernel then has about TILES_BLOCKS
 * blocks on every device. */
enum { TILES_BLOCKS = 128, SPLITS_MOST = 32, STAGES_LEAST = 2, STAGES_MOST = 3 };

/* ---- Options ---- */

static kiln_status matmul_options_check(const char *name, int32_t activation, int32_t tile, float scale) {
    KILN__TRY(matmul_activation_check(name, activation));
    KILN__REQUIRE((uint32_t)tile <= KILN_GEMM_TILE_MEDIUM,
                  "%s: tile is %d: must be auto (0), portable (1), small (2), large (3) or medium (4)", name, tile);
    KILN__REQUIRE(__builtin_isfinite(scale), "%s: scale is %g: must be finite", name, (double)scale);
    return KILN_OK;
}

/* ---- Plans ---- */

typedef struct matmul_sizes {
    int64_t batch, m, n, k;
} matmul_sizes;

/* What takes time besides the products, for an operator, in units of the products (elements of d times elements of k)
 * that a multiprocessor computes in the same time at a rate of 100. */
typedef struct matmul_times {
    uint32_t split_least; /* of k */
    double last;          /* for each element of the last tile, whose end overlaps with no products */
    double join;          /* the second launch where k is divided */
    double partial;       /* for each partial sum, which is written and read */
} matmul_times;

/* How a product is computed. */
typedef struct matmul_plan {
    unsigned kernel;
    uint32_t rows, cols;          /* of a tile */
    uint32_t stages, stage_bytes; /* of k in dynamic shared memory */
    uint32_t cluster;             /* blocks of a cluster, which compute tiles below each other */
    uint32_t splits, split;       /* how many blocks share the k of a tile, and how much of it each has */
    double cost;                  /* relative to that of other plans; 0: none yet */
} matmul_plan;

/* A kernel of tiles that only some images have. */
typedef struct matmul_kernel {
    unsigned kernel;
    kiln_gemm_tile tile;
} matmul_kernel;

static uint64_t tiles_of(int64_t count, uint32_t tile) {
    return ((uint64_t)count + tile - 1) / tile;
}

static double tile_count(const matmul_sizes *sizes, const matmul_plan *way) {
    uint64_t down = (tiles_of(sizes->m, way->rows) + way->cluster - 1) / way->cluster * way->cluster;
    return (double)down * (double)tiles_of(sizes->n, way->cols) * (double)sizes->batch;
}

/* Divides k into pieces, multiples of `depth`, such that there are about `blocks` blocks. */
static void divide(const matmul_sizes *sizes, const matmul_times *times, double blocks, uint32_t depth,
                   matmul_plan *way) {
    uint64_t k = (uint64_t)sizes->k, most = k / times->split_least;
    double wanted = blocks / tile_count(sizes, way);
    uint64_t splits = wanted < (double)SPLITS_MOST ? (uint64_t)wanted : SPLITS_MOST;
    if (splits > most) splits = most;
    if (splits <= 1) return;
    uint64_t each = (k + splits - 1) / splits;
    each = (each + depth - 1) / depth * depth;
    way->split = (uint32_t)each;
    way->splits = (uint32_t)((k + each - 1) / each);
}

/* The predicted time of a plan: rounds of blocks and, where k is divided, a second launch for the partial sums. */
static double cost_of(const matmul_sizes *sizes, const matmul_times *times, const matmul_plan *way,
                      uint32_t multiprocessors, uint32_t rate) {
    double rounds = __builtin_ceil(tile_count(sizes, way) * way->splits / multiprocessors);
    double cost = way->rows * way->cols * (rounds * way->split / rate + times->last / 100);
    if (way->splits == 1) return cost;
    double elements = (double)sizes->m * (double)sizes->n * (double)sizes->batch;
    return cost + (times->join + times->partial * elements * way->splits) / 100;
}

/* Whether tensor maps reach all of a and b (strides is the bitwise or of theirs) and 32 bits count the tiles, as
 * kernels whose blocks compute several tiles need. */
static bool is_mapped(const matmul_sizes *sizes, int64_t strides, const matmul_plan *way) {
    const double a = (double)sizes->m * (double)sizes->k, b = (double)sizes->n * (double)sizes->k;
    const double most = (double)KILN__TENSOR_MAP_STRIDE_MOST / sizeof(float);
    return strides < KILN__TENSOR_MAP_STRIDE_MOST / (int64_t)sizeof(float) && a < most && b < most &&
           tile_count(sizes, way) * (double)SPLITS_MOST < INT32_MAX;
}

static void consider(const matmul_sizes *sizes, int64_t strides, const matmul_times *times, const kiln_module *module,
                     unsigned kernel, bool may_split, matmul_plan *best) {
    const kiln_kernel_info *info = &module->kernels[kernel].info;
    const kiln_device_info *device = &module->device->info;
    if (info->absent || !info->stage_bytes) return;
    uint32_t stages = (uint32_t)device->max_shared_bytes / info->stage_bytes;
    if (stages < (info->stages ? info->stages : STAGES_LEAST)) {
        kiln__plan_leave(&module->kernels[kernel], "the device has no shared memory for its stages");
        return;
    }
    uint32_t stages_most = info->stages ? info->stages : STAGES_MOST;
    matmul_plan way = {.kernel = kernel,
                       .rows = info->tile[0],
                       .cols = info->tile[1],
                       .stages = stages < stages_most ? stages : stages_most,
                       .stage_bytes = info->stage_bytes,
                       .cluster = info->cluster ? info->cluster : 1,
                       .splits = 1,
                       .split = (uint32_t)sizes->k};
    uint32_t multiprocessors = (uint32_t)device->multiprocessors / way.cluster * way.cluster;
    if (!multiprocessors || (kiln__tensor_map_count(info) && !is_mapped(sizes, strides, &way))) return;
    for (int divided = 0; divided <= may_split; divided++) {
        if (divided) divide(sizes, times, multiprocessors, info->tile[2], &way);
        way.cost = cost_of(sizes, times, &way, multiprocessors, info->rate);
        kiln__plan_weigh(&module->kernels[kernel], way.cost, way.splits);
        if (best->cost == 0 || way.cost < best->cost) *best = way;
    }
}

/* Of the kernels for few rows from `first` to `last`, whose clusters have more and more blocks that share a tile's k,
 * the one of which each multiprocessor has that many blocks, as far as each has some of k to do: joining sums costs as
 * much as ten stages. NULL if none does the product. */
static const kiln_kernel *cluster_kernel(const matmul_sizes *sizes, int64_t strides, const kiln_module *module,
                                         unsigned first, unsigned last, double blocks) {
    enum { STAGES_OF_PART = 16 };
    const kiln_kernel *chosen = NULL;
    for (unsigned i = first; i <= last; i++) {
        const kiln_kernel_info *info = &module->kernels[i].info;
        const int64_t parts = info->cluster ? info->cluster : 1;
        const matmul_plan way = {.rows = info->tile[0], .cols = info->tile[1], .cluster = 1};
        if (info->absent || sizes->m > (int64_t)info->tile[0] || !is_mapped(sizes, strides, &way) ||
            module->device->info.max_shared_bytes < (int32_t)(info->stages * info->stage_bytes))
            return chosen;
        if (chosen && sizes->k < parts * STAGES_OF_PART * info->tile[2]) break;
        chosen = &module->kernels[i];
        if (tile_count(sizes, &way) * (double)parts >= blocks * module->device->info.multiprocessors) break;
    }
    return chosen;
}

/* The bytes of a plan's partial sums. */
static kiln_status partials_size(const char *name, const matmul_sizes *sizes, const matmul_plan *way,
                                 size_t *out_size) {
    uint64_t count;
    *out_size = 0;
    bool overflow = __builtin_mul_overflow((uint64_t)sizes->m * (uint64_t)sizes->n, (uint64_t)sizes->batch, &count) ||
                    __builtin_mul_overflow(count, way->splits * sizeof(float), &count) || count > INT64_MAX;
    KILN__REQUIRE(!overflow, "%s: d is too large: %lld matrices of %lld x %lld", name, (long long)sizes->batch,
                  (long long)sizes->m, (long long)sizes->n);
    if (way->splits > 1) *out_size = count;
    return KILN_OK;
}

/* ---- Launches ---- */

/* The layout of a factor for a tensor map. Strides are in elements of 1 << size_log2 bytes. */
static kiln__tensor_layout layout_of(const void *data, int64_t rows, int64_t stride, int64_t batch_stride,
                                     const matmul_sizes *sizes, unsigned size_log2) {
    return (kiln__tensor_layout){
        .data = data,
        .element_bytes = 1u << size_log2,
        .rank = 3,
        .sizes = {(uint64_t)sizes->k, (uint64_t)rows, (uint64_t)sizes->batch},
        .strides = {0, (uint64_t)stride << size_log2, (uint64_t)batch_stride << size_log2},
    };
}

/* Launches a kernel that copies a and b by tensor maps, which this writes into the arguments. There is a block for each
 * multiprocessor, which computes one tile after the other. */
static kiln_status launch_mapped(kiln_stream *stream, const kiln_kernel *kernel, const matmul_sizes *sizes,
                                 const matmul_plan *way, const kiln__tensor_layout *factors, void *args,
                                 size_t args_size) {
    const uint64_t all = (uint64_t)(tile_count(sizes, way) * way->splits);
    const uint32_t most = (uint32_t)stream->device->info.multiprocessors / way->cluster * way->cluster;
    const kiln_launch_config config = {.grid = {all < most ? (uint32_t)all : most, 1, 1},
                                       .block = {kernel->info.max_threads, 1, 1},
                                       .dynamic_shared_bytes = way->stages * way->stage_bytes};
    KILN__TRY(kiln__tensor_maps_encode(kernel, factors, args));
    return kiln__call_launch(stream, kernel, &config, args, args_size);
}

/* A cluster for each tile. Each of its blocks has *out_split of k. */
static kiln_launch_config clusters_config(const kiln_kernel *kernel, const matmul_sizes *sizes, uint32_t *out_split) {
    const kiln_kernel_info *info = &kernel->info;
    const uint32_t parts = info->cluster ? info->cluster : 1;
    const uint64_t depth = info->tile[2], steps = tiles_of(sizes->k, (uint32_t)depth);
    *out_split = (uint32_t)((steps + parts - 1) / parts * depth);
    return (kiln_launch_config){
        .grid = {(uint32_t)(tiles_of(sizes->n, info->tile[1]) * (uint64_t)sizes->batch * parts), 1, 1},
        .block = {info->max_threads, 1, 1},
        .dynamic_shared_bytes = info->stages * info->stage_bytes};
}

#endif
