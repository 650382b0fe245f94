/* gemm_w4a16, host side: which kernel does a product, and whether blocks share its k. */
#include <kiln/ops/gemm.h>
#define KILN_HOST gemm_w4a16
#define KILN_HOST_KEEPS_CALLS
#include "kernels/common/matmul/matmul_gate.h"
#include "kernels/common/operator.h"
#include "kernels/gemm_w4a16/gemm_w4a16_layout.h"
#include "kernels/gemm_w4a16/gemm_w4a16_mapped_args.h"
#include "kernels/gemm_w4a16/gemm_w4a16_rows_args.h"
#include "kernels/gemm_w4a16/gemm_w4a16_shared_args.h"
#include "loader/tensor_map.h"
#include <kiln/w4a16.h>

/* k is divided where the tiles of d would not occupy the device, into pieces of at least SPLIT_LEAST, multiples of
 * SPLIT_STEP. There are then about TILES_BLOCKS blocks of gemm_w4a16_tiles, on every device. */
enum { TILES_BLOCKS = 128, SPLIT_LEAST = 512, SPLIT_STEP = 64, SPLITS_MOST = 32 };

_Static_assert(offsetof(kiln_gemm_w4a16_args, activated) + sizeof(matmul_gate) == sizeof(kiln_gemm_w4a16_args) &&
                   (int)MATMUL_COEFFICIENTS == (int)KILN_W4A16_COEFFICIENTS,
               "the fields of an activation");

/* ---- Checks ---- */

static kiln_status check_sizes(const char *name, const kiln_gemm_w4a16_params *params) {
    KILN__TRY(kiln__size_check(name, "m", params->m, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "n", params->n, params->gated ? INT32_MAX / 2 : INT32_MAX));
    KILN__TRY(kiln__size_check(name, "k", params->k, INT32_MAX));
    int64_t k = params->k, group = params->group;
    KILN__REQUIRE(k % 2 == 0, "%s: k is %lld: must be even", name, (long long)k);
    KILN__REQUIRE(group == 0 || group == 32 || group == 64 || group == 128 || group == 256 || group == k,
                  "%s: group is %lld: must be 32, 64, 128, 256 or k (0: k)", name, (long long)group);
    KILN__REQUIRE(group == 0 || k % group == 0, "%s: k is %lld: must be a multiple of group, %lld", name, (long long)k,
                  (long long)group);
    return KILN_OK;
}

static kiln_status check_options(const char *name, const kiln_gemm_w4a16_params *params) {
    KILN__REQUIRE((uint32_t)params->scale_layout <= KILN_W4A16_SCALES_K_N,
                  "%s: scale_layout is %d: must be n_k (0) or k_n (1)", name, params->scale_layout);
    KILN__REQUIRE((uint32_t)params->weight_layout <= KILN_W4A16_SM80_V1,
                  "%s: weight_layout is %d: must be canonical (0) or sm80_v1 (1)", name, params->weight_layout);
    KILN__REQUIRE((uint32_t)params->tile <= KILN_W4A16_TILE_256,
                  "%s: tile is %d: must be auto (0), portable (1), 64 (2), 128 (3) or 256 (4)", name, params->tile);
    KILN__REQUIRE(__builtin_isfinite(params->scale), "%s: scale is %g: must be finite", name, (double)params->scale);
    KILN__TRY(matmul_activation_check(name, params->activation));
    KILN__REQUIRE((uint32_t)params->gated <= 1, "%s: gated is %d: must be no (0) or yes (1)", name, params->gated);
    KILN__REQUIRE(!params->gated || !params->c, "%s: c is %p: must be NULL with gated", name, params->c);
    const float eps = params->norm_eps;
    KILN__REQUIRE(eps == 0.0f || (eps >= 1e-30f && eps <= 1e30f), "%s: norm_eps is %g: must be 0 or from 1e-30 to 1e30",
                  name, (double)eps);
    KILN__REQUIRE(!params->reserved, "%s: reserved is %d: must be 0", name, params->reserved);
    return KILN_OK;
}

/* The rows of weights. */
static int64_t weight_rows(const kiln_gemm_w4a16_params *params) {
    return params->gated ? 2 * params->n : params->n;
}

static int64_t groups_of(const kiln_gemm_w4a16_params *params) {
    return params->group ? params->k / params->group : 1;
}

/* Checks the factors of a product with k, and says whether they are aligned. */
static kiln_status check_factors(const char *name, const kiln_gemm_w4a16_params *params, int64_t a_stride,
                                 unsigned size_log2, uint32_t *out_wide) {
    const bool groups_first = params->scale_layout == KILN_W4A16_SCALES_K_N;
    int64_t k = params->k, n = weight_rows(params), groups = groups_of(params);
    int64_t rows = groups_first ? groups : n, cols = groups_first ? n : groups;
    KILN__TRY(kiln__tensor_check(name, "a", params->a, params->m, k, a_stride, size_log2));
    KILN__TRY(kiln__tensor_check(name, "weights", params->weights, n, k / 2, k / 2, 0));
    KILN__TRY(kiln__tensor_check(name, "scales", params->scales, rows, cols, cols, size_log2));
    if (params->zeros) KILN__TRY(kiln__tensor_check(name, "zeros", params->zeros, rows, cols, cols, size_log2));
    if (params->pre_scale) KILN__TRY(kiln__tensor_check(name, "pre_scale", params->pre_scale, 1, k, k, size_log2));
    if (params->norm_weight)
        KILN__TRY(kiln__tensor_check(name, "norm_weight", params->norm_weight, 1, k, k, size_log2));
    uintptr_t addresses = (uintptr_t)params->a | (uintptr_t)params->weights | (uintptr_t)params->pre_scale |
                          (uintptr_t)params->norm_weight;
    *out_wide = kiln__rows_wide(addresses, params->m, a_stride, size_log2) & (k % KILN_W4A16_CHUNK == 0);
    return KILN_OK;
}

/* Whether the image has kernels for weights in sm80_v1. */
static bool takes_packed(const kiln_module *module) {
    return !module->kernels[KERNEL_gemm_w4a16_mma_rows_8].info.absent;
}

/* Checks that a product of weights in sm80_v1 is one that the image has kernels for. */
static kiln_status check_packed(const char *name, const kiln_gemm_w4a16_params *params, const kiln_module *module,
                                int64_t a_stride, unsigned size_log2) {
    const int64_t n = params->n, k = params->k;
    KILN__REQUIRE(takes_packed(module),
                  "%s: weight_layout is sm80_v1 (1), which this device's image does not take: must be canonical (0)",
                  name);
    KILN__REQUIRE(n % KILN_W4A16_TILE_ROWS == 0, "%s: n is %lld: must be a multiple of 16 in sm80_v1", name,
                  (long long)n);
    KILN__REQUIRE(k % KILN_W4A16_TILE_DEPTH == 0, "%s: k is %lld: must be a multiple of 64 in sm80_v1", name,
                  (long long)k);
    KILN__REQUIRE(params->tile != KILN_W4A16_TILE_PORTABLE,
                  "%s: tile is portable (1): must be auto (0), 64 (2), 128 (3) or 256 (4) in sm80_v1", name);
    KILN__REQUIRE(kiln__rows_wide((uintptr_t)params->a, params->m, a_stride, size_log2),
                  "%s: a is %p with rows of %lld elements: must have rows aligned to 16 bytes in sm80_v1", name,
                  params->a, (long long)a_stride);
    KILN__REQUIRE(kiln__rows_wide((uintptr_t)params->weights, 1, 0, 0),
                  "%s: weights is %p: must be 16-byte aligned in sm80_v1", name, (const void *)params->weights);
    KILN__REQUIRE(kiln__rows_wide((uintptr_t)params->pre_scale, 1, 0, 0),
                  "%s: pre_scale is %p: must be 16-byte aligned in sm80_v1", name, params->pre_scale);
    KILN__REQUIRE(kiln__rows_wide((uintptr_t)params->norm_weight, 1, 0, 0),
                  "%s: norm_weight is %p: must be 16-byte aligned in sm80_v1", name, params->norm_weight);
    return KILN_OK;
}

/* ---- Plans ---- */

/* How a product is computed. */
typedef struct plan {
    unsigned kernel;
    uint32_t rows, cols;         /* of a tile; rows 0: all of a */
    uint32_t splits, split;      /* how many blocks share the k of a tile, and how much of it each has */
    uint32_t threads;            /* of a block */
    uint32_t panels;             /* non-zero: scales and zeros pass through shared memory */
    uint32_t cluster;            /* blocks of a cluster, which do tiles beside each other; 0: none */
    uint32_t tiles;              /* of a cluster of two blocks, which share k and have rows of a in shared memory */
    uint32_t depth, factor_rows; /* as in kiln_gemm_w4a16_shared_args */
    uint32_t shared_bytes;       /* dynamic shared memory */
    bool normed;                 /* normalised rows of a go by way of the workspace */
    bool joined;                 /* sums do */
    bool required;               /* it cannot do without one */
    double cost;                 /* relative to that of other plans */
} plan;

static uint64_t tiles_of(int64_t count, uint32_t tile) {
    return ((uint64_t)count + tile - 1) / tile;
}

/* The tiles of a plan, those included that only complete a cluster. */
static double tile_count(const kiln_gemm_w4a16_params *params, const plan *way) {
    const uint32_t cluster = way->cluster ? way->cluster : 1;
    return (double)tiles_of(params->m, way->rows) * (double)tiles_of(weight_rows(params), way->cols * cluster) *
           cluster;
}

/* Divides k into pieces such that there are about `blocks` blocks. */
static void divide(const kiln_gemm_w4a16_params *params, double blocks, plan *way) {
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
static double cost_of(const kiln_gemm_w4a16_params *params, const plan *way, uint32_t multiprocessors, uint32_t rate) {
    /* For an H100, whose multiprocessors do 1.9e12 of these a second: 2 us, and 8 bytes at 3 TB/s. */
    const double join = 4e6, partial = 5;
    double cost = __builtin_ceil(tile_count(params, way) * way->splits / multiprocessors) * way->rows * way->cols *
                  way->split / rate;
    if (way->splits == 1 && !params->gated) return cost;
    return cost + (join + partial * (double)params->m * (double)weight_rows(params) * way->splits) / 100;
}

/* Whether a kernel for few rows of weights in sm80_v1 has scales and zeros in shared memory, of as much of k as its
 * shape says at most: those of groups shorter than its steps, and zeros of others, where a row's lie together, in
 * vectors. */
static bool takes_panels(const kiln_gemm_w4a16_params *params, const kiln_kernel_info *info) {
    enum { STEP = 128 };
    const uintptr_t addresses = (uintptr_t)params->scales | (uintptr_t)params->zeros;
    const int64_t groups = groups_of(params), group = params->group;
    return info->stage_bytes && group && group * KILN_W4A16_PANEL_GROUPS <= (int64_t)info->tile[2] &&
           (group < STEP || params->zeros) && params->scale_layout == KILN_W4A16_SCALES_N_K && !params->pre_scale &&
           groups > 1 && kiln__rows_wide(addresses, weight_rows(params), groups, 1);
}

/* Whether kernels for few rows of weights in sm80_v1 may normalise rows themselves: those of bf16. */
static bool normalises(const kiln_gemm_w4a16_params *params, const kiln_module *module) {
    return params->norm_weight && !module->kernels[KERNEL_gemm_w4a16_mma_norm_8].info.absent && !params->pre_scale;
}

/* The plan for few rows of weights in sm80_v1. The warps of a block share k: 16 for 8 rows and 8 for 16, which
 * multiprocessors have registers for, where each block has one for itself, else half as many. */
static plan few_rows_plan_of(const kiln_gemm_w4a16_params *params, const kiln_module *module, unsigned kernel) {
    const bool fused =
        kernel == KERNEL_gemm_w4a16_mma_rows_8 && params->k <= KILN_W4A16_NORM_DEPTH && normalises(params, module);
    const unsigned taken = fused ? KERNEL_gemm_w4a16_mma_norm_8 : kernel;
    const kiln_kernel_info *info = &module->kernels[taken].info;
    const uint32_t *tile = info->tile;
    const bool alone = tiles_of(weight_rows(params), tile[1]) <= (uint64_t)module->device->info.multiprocessors;
    const uint32_t most = info->max_threads / KILN_BLOCK * KILN_BLOCK, threads = alone ? most : most / 2;
    const bool panels = takes_panels(params, info), second = params->k > params->group * KILN_W4A16_PANEL_GROUPS;
    const uint32_t row_columns = tile[1] + (fused ? 1 : 0); /* a column of squares */
    const uint32_t sums_bytes = threads / KILN_SUBGROUP * tile[0] * row_columns * (uint32_t)sizeof(float);
    const uint32_t panel_bytes = panels ? info->stage_bytes << second : 0; /* in the same place */
    const uint32_t factor_bytes = fused ? (uint32_t)params->k * (uint32_t)sizeof(uint16_t) : 0;
    kiln__plan_take(&module->kernels[taken], "is for so few rows");
    return (plan){.kernel = taken,
                  .cols = tile[1],
                  .splits = 1,
                  .split = (uint32_t)params->k,
                  .threads = threads,
                  .panels = panels,
                  .shared_bytes = factor_bytes + (sums_bytes > panel_bytes ? sums_bytes : panel_bytes),
                  .normed = params->norm_weight && !fused};
}

/* How much of k, up to `half`, a block has of so many rows of a in so much shared memory at once: all, or equal parts
 * of whole rounds of the steps that its warps have ahead. 0: there is no room for a round. */
static uint64_t shared_depth_of(uint64_t half, uint64_t rows, uint64_t bytes, uint64_t round) {
    const uint64_t most = KILN_W4A16_SHARED_STEPS * KILN_W4A16_SHARED_STEP, row_bytes = bytes / rows;
    const uint64_t elements = row_bytes / sizeof(uint16_t), padding = KILN_W4A16_SHARED_PADDING / sizeof(uint16_t);
    const uint64_t fit = elements < padding ? 0 : elements - padding, room = fit < most ? fit : most;
    if (half <= room) return half;
    const uint64_t longest = round ? room / round * round : 0;
    if (!longest) return 0;
    const uint64_t parts = (half + longest - 1) / longest;
    return ((half + parts - 1) / parts + round - 1) / round * round;
}

/* Whether such a kernel is faster than the others, by how many tiles a cluster has: on an H200 it was from 14 on, for
 * more than 8 rows with factors of their columns from 3 on, and slower where 2 or 4 tiles share long rows. With one
 * tile it has twice as many blocks as the others, which was not measured, nor were 5 to 13 tiles. */
static bool pays_shared_rows(const kiln_gemm_w4a16_params *params, uint64_t tiles) {
    const bool factors = params->norm_weight || params->pre_scale;
    return tiles == 1 || tiles >= 8 || (params->m > 8 && factors && tiles >= 3);
}

/* The plan by a kernel that has rows of a in shared memory, of as many clusters of two blocks as find room at once; no
 * threads where it is not for the call. A multiprocessor has registers for 14 warps: of one block, or where that takes
 * more than one round and a half of k fits twice, of two. */
static plan shared_rows_plan_of(const kiln_gemm_w4a16_params *params, const kiln_module *module, unsigned taken) {
    enum { STEP = KILN_W4A16_SHARED_STEP, WARPS = KILN_W4A16_SHARED_WARPS, RESERVED = 1024, AHEAD = 6 /* 2 or 3 */ };
    const kiln_device_info *device = &module->device->info;
    const kiln_kernel_info *info = &module->kernels[taken].info;
    const uint64_t most = (uint64_t)device->max_shared_bytes, pairs = (uint64_t)device->multiprocessors / 2;
    const int64_t k = params->k, group = params->group;
    if (info->absent || !pairs || params->m > info->tile[0] || k % STEP || group % STEP) return (plan){.threads = 0};
    const bool fused = normalises(params, module), factors = fused || params->pre_scale;
    const uint64_t rows = (uint64_t)params->m + factors, half = tiles_of(k, 2 * STEP) * STEP;
    const uint64_t tiles = tiles_of(weight_rows(params), info->tile[1]);
    const uint64_t sums = info->tile[0] * info->tile[1] * sizeof(float);
    const uint64_t half_bytes = (most + RESERVED) / 2 - RESERVED - KILN_W4A16_SHARED_HEAD - WARPS / 2 * sums / 2;
    const bool twice = tiles > pairs * WARPS && shared_depth_of(half, rows, half_bytes, half) == half;
    const uint64_t blocks = twice ? 2 : 1, warps = WARPS / blocks;
    const uint64_t rounds = tiles_of((int64_t)tiles, (uint32_t)(pairs * blocks * warps));
    const uint64_t each = tiles_of((int64_t)tiles, (uint32_t)(pairs * blocks * rounds));
    const uint64_t parts_most = warps / each, parts = half / STEP < parts_most ? half / STEP : parts_most;
    const uint64_t offset = KILN_W4A16_SHARED_HEAD + each * sums / 2, all_sums = each * parts * sums;
    const uint64_t depth = shared_depth_of(half, rows, most - offset, AHEAD * parts * STEP);
    const uint64_t rows_bytes = rows * (depth * sizeof(uint16_t) + KILN_W4A16_SHARED_PADDING);
    if (!depth || !pays_shared_rows(params, each)) return (plan){.threads = 0};
    kiln__plan_take(&module->kernels[taken], "is for so few rows");
    return (plan){.kernel = taken,
                  .cols = info->tile[1],
                  .splits = 1,
                  .split = (uint32_t)half,
                  .tiles = (uint32_t)each,
                  .depth = (uint32_t)depth,
                  .factor_rows = factors,
                  .threads = (uint32_t)(each * parts) * KILN_SUBGROUP,
                  .shared_bytes = (uint32_t)(offset + (rows_bytes > all_sums ? rows_bytes : all_sums)),
                  .normed = params->norm_weight && !fused};
}

/* The kernels of tiles by matrix units. */
typedef struct tile_kernel {
    unsigned kernel;
    int32_t tile;
} tile_kernel;

/* For weights in sm80_v1: an image has those of wgmma or those of mma.sync. */
static const tile_kernel packed_tiles[] = {
    {KERNEL_gemm_w4a16_mma_64, KILN_W4A16_TILE_64},     {KERNEL_gemm_w4a16_mma_128, KILN_W4A16_TILE_128},
    {KERNEL_gemm_w4a16_wgmma_32, KILN_W4A16_TILE_AUTO}, {KERNEL_gemm_w4a16_wgmma_64, KILN_W4A16_TILE_64},
    {KERNEL_gemm_w4a16_wgmma_128, KILN_W4A16_TILE_128}, {KERNEL_gemm_w4a16_wgmma_128_256, KILN_W4A16_TILE_128},
    {KERNEL_gemm_w4a16_wgmma_256, KILN_W4A16_TILE_256}};

/* For canonical weights. */
static const tile_kernel canonical_tiles[] = {{KERNEL_gemm_w4a16_mma_small, KILN_W4A16_TILE_64},
                                              {KERNEL_gemm_w4a16_mma_large, KILN_W4A16_TILE_128}};
enum {
    PACKED_TILES = sizeof packed_tiles / sizeof *packed_tiles,
    CANONICAL_TILES = sizeof canonical_tiles / sizeof *canonical_tiles
};

/* Whether the image has a kernel of the tile that the call asks for. */
static bool has_tile(const kiln_gemm_w4a16_params *params, const kiln_module *module, const tile_kernel *tiles,
                     unsigned count) {
    for (unsigned i = 0; i < count; i++)
        if (params->tile && tiles[i].tile == params->tile && !module->kernels[tiles[i].kernel].info.absent) return true;
    return false;
}

/* The plan by that of the kernels which takes the least time; a cost of 0 where the image has none. */
static plan tiles_plan_of(const kiln_gemm_w4a16_params *params, const kiln_module *module, const tile_kernel *tiles,
                          unsigned count, bool may_split) {
    const uint32_t multiprocessors = (uint32_t)module->device->info.multiprocessors;
    const bool asked = has_tile(params, module, tiles, count);
    plan best = {.cost = 0};
    for (unsigned i = 0; i < count; i++) {
        const unsigned kernel = tiles[i].kernel;
        const kiln_kernel_info *info = &module->kernels[kernel].info;
        if (info->absent || (asked && params->tile != tiles[i].tile)) continue;
        plan way = {.kernel = kernel,
                    .rows = info->tile[0],
                    .cols = info->tile[1],
                    .splits = 1,
                    .split = (uint32_t)params->k,
                    .threads = kiln__tensor_map_count(info) ? info->max_threads : KILN_BLOCK,
                    .cluster = info->cluster,
                    .shared_bytes = (info->stages ? info->stages : KILN_W4A16_STAGES) * info->stage_bytes,
                    .normed = params->norm_weight != NULL};
        for (int divided = 0; divided <= may_split; divided++) {
            if (divided) divide(params, multiprocessors, &way);
            way.cost = cost_of(params, &way, multiprocessors, info->rate);
            kiln__plan_weigh(&module->kernels[kernel], way.cost, way.splits);
            if (best.cost == 0 || way.cost < best.cost) best = way;
        }
    }
    return best;
}

/* The plan for weights in sm80_v1. */
static plan packed_plan_of(const kiln_gemm_w4a16_params *params, const kiln_module *module, bool may_split) {
    for (unsigned i = KERNEL_gemm_w4a16_mma_shared_8; i <= KERNEL_gemm_w4a16_mma_shared_16; i++) {
        const plan shared = shared_rows_plan_of(params, module, i);
        if (params->tile == KILN_W4A16_TILE_AUTO && shared.threads) return shared;
    }
    for (unsigned i = KERNEL_gemm_w4a16_mma_rows_8; i <= KERNEL_gemm_w4a16_mma_rows_16; i++) {
        const int64_t rows = module->kernels[i].info.tile[0];
        if (params->tile == KILN_W4A16_TILE_AUTO && params->m <= rows) return few_rows_plan_of(params, module, i);
    }
    return tiles_plan_of(params, module, packed_tiles, PACKED_TILES, may_split);
}

/* The plan for canonical weights by kernels that every image has. */
static plan portable_plan_of(const kiln_gemm_w4a16_params *params, const kiln_module *module, bool may_split) {
    const bool few = params->m <= KILN_W4A16_ROWS, fused = params->norm_weight || params->gated;
    plan way = {.kernel = KERNEL_gemm_w4a16_tiles,
                .rows = KILN_W4A16_TILE,
                .cols = KILN_W4A16_TILE,
                .splits = 1,
                .split = (uint32_t)params->k,
                .threads = KILN_BLOCK,
                .normed = params->norm_weight && params->k};
    if (few)
        way = (plan){.kernel = fused ? KERNEL_gemm_w4a16_fused_rows : KERNEL_gemm_w4a16_rows,
                     .cols = KILN_W4A16_BLOCK_COLUMNS,
                     .splits = 1,
                     .threads = KILN_BLOCK,
                     .normed = params->norm_weight && params->pre_scale && params->k};
    kiln__plan_take(&module->kernels[way.kernel], few ? "is for so few rows of weights that are not repacked"
                                                      : "is for weights that are not repacked");
    if (!few && may_split) divide(params, TILES_BLOCKS, &way);
    return way;
}

/* The plan for few rows and canonical weights by matrix units; no threads where the image has no kernel for the call,
 * or the call asks for another. A block has rows of a in shared memory, all of k or as much as there is room for, and
 * normalises them itself if that is all or there is no workspace. */
static plan few_canonical_plan_of(const kiln_gemm_w4a16_params *params, const kiln_module *module, bool wide,
                                  bool has_workspace) {
    const kiln_kernel *kernel = &module->kernels[KERNEL_gemm_w4a16_mma_few];
    const kiln_kernel_info *info = &kernel->info;
    const bool tiles = params->m > KILN_W4A16_ROWS && has_tile(params, module, canonical_tiles, CANONICAL_TILES);
    if (info->absent || tiles || params->tile == KILN_W4A16_TILE_PORTABLE || params->m > info->tile[0])
        return (plan){.threads = 0};
    if (!params->k || !wide || params->k % KILN_W4A16_STEP) {
        kiln__plan_leave(kernel, "is for 16-byte aligned rows and k a multiple of 128");
        return (plan){.threads = 0};
    }
    int64_t depth = info->tile[2];
    while (depth < params->k && 2 * depth * params->m <= KILN_W4A16_KEPT)
        depth *= 2;
    const bool normed = params->norm_weight && has_workspace && depth < params->k;
    const bool kept = params->pre_scale || (params->norm_weight && !normed); /* rows of a are in shared memory */
    kiln__plan_take(kernel, "is for so few rows of weights that are not repacked");
    return (plan){.kernel = KERNEL_gemm_w4a16_mma_few,
                  .cols = info->tile[1],
                  .splits = 1,
                  .split = (uint32_t)depth,
                  .threads = info->max_threads,
                  .shared_bytes =
                      kept ? (uint32_t)(params->m * (depth * (int64_t)sizeof(uint16_t) + KILN_VECTOR_BYTES)) : 0,
                  .normed = normed};
}

/* The plan for canonical weights. `wide`: rows of a and of weights, pre_scale and norm_weight are 16-byte aligned, and
 * k is a multiple of KILN_W4A16_CHUNK. */
static plan canonical_plan_of(const kiln_gemm_w4a16_params *params, const kiln_module *module, bool wide,
                              bool may_split) {
    const bool many = params->m > KILN_W4A16_ROWS && params->k && params->tile != KILN_W4A16_TILE_PORTABLE;
    const plan few = few_canonical_plan_of(params, module, wide, may_split);
    if (few.threads) return few;
    if (many && wide) {
        const plan way = tiles_plan_of(params, module, canonical_tiles, CANONICAL_TILES, may_split);
        if (way.cost != 0) return way;
    }
    for (unsigned i = 0; many && !wide && i < CANONICAL_TILES; i++) {
        const kiln_kernel *kernel = &module->kernels[canonical_tiles[i].kernel];
        if (!kernel->info.absent) kiln__plan_leave(kernel, "rows are not 16-byte aligned or k is not a multiple of 32");
    }
    return portable_plan_of(params, module, may_split);
}

static plan plan_of(const kiln_gemm_w4a16_params *params, const kiln_module *module, bool wide, bool may_split) {
    const bool packed = params->weight_layout == KILN_W4A16_SM80_V1 && params->k;
    plan way = packed ? packed_plan_of(params, module, may_split) : canonical_plan_of(params, module, wide, may_split);
    const bool activated = params->activation && way.kernel == KERNEL_gemm_w4a16_tiles;
    const bool spared = way.kernel == KERNEL_gemm_w4a16_mma_few;
    way.required = (way.normed && !spared) || (params->gated && way.rows) || activated;
    way.joined = way.splits > 1 || (params->gated && way.rows) || activated;
    return way;
}

/* The bytes of a plan's normalised rows of a, before its partial sums. */
static uint64_t normed_size(const kiln_gemm_w4a16_params *params, const plan *way, unsigned size_log2) {
    const uint64_t bytes = (uint64_t)params->m * (uint64_t)params->k << size_log2;
    return way->normed ? (bytes + KILN_VECTOR_BYTES - 1) / KILN_VECTOR_BYTES * KILN_VECTOR_BYTES : 0;
}

/* The bytes of all that goes by way of the workspace. */
static kiln_status workspace_size(const char *name, const kiln_gemm_w4a16_params *params, const plan *way,
                                  unsigned size_log2, size_t *out_size) {
    uint64_t count = (uint64_t)params->m * (uint64_t)weight_rows(params);
    bool overflow = __builtin_mul_overflow(count, way->splits * sizeof(float), &count);
    overflow |= count > INT64_MAX;
    if (!way->joined) count = 0;
    overflow |= __builtin_add_overflow(count, normed_size(params, way, size_log2), &count) || count > INT64_MAX;
    KILN__REQUIRE(!overflow, "%s: d is too large: %lld x %lld", name, (long long)params->m, (long long)params->n);
    *out_size = count;
    return KILN_OK;
}

/* ---- Launches ---- */

/* Launches a kernel that copies by tensor maps, with a block for each multiprocessor, which does one tile after the
 * other. */
static kiln_status launch_mapped(kiln_stream *stream, const kiln_kernel *kernel, const kiln_gemm_w4a16_args *args,
                                 const plan *way, const char *name) {
    enum { TILE_WORDS = KILN_W4A16_TILE_BYTES / 4 };
    const uint64_t rows = (uint64_t)args->n / KILN_W4A16_TILE_ROWS;
    const uint64_t words = (uint64_t)args->k / KILN_W4A16_TILE_DEPTH * TILE_WORDS;
    const uint32_t cluster = way->cluster ? way->cluster : 1;
    const uint64_t most = (uint64_t)stream->device->info.multiprocessors / cluster * cluster;
    uint64_t tiles = (uint64_t)args->tile_rows * tiles_of(args->n, way->cols * cluster) * cluster;
    bool overflow = __builtin_mul_overflow(tiles, (uint64_t)args->splits, &tiles) || tiles > INT32_MAX;
    KILN__REQUIRE(!overflow, "%s: d is too large: %lld x %lld", name, (long long)args->m, (long long)args->n);
    const kiln__tensor_layout factors[] = {{.data = args->a,
                                            .element_bytes = sizeof(uint16_t),
                                            .rank = 3,
                                            .sizes = {(uint64_t)args->k, (uint64_t)args->m, 1},
                                            .strides = {0, (uint64_t)args->a_stride * sizeof(uint16_t)}},
                                           {.data = args->weights,
                                            .element_bytes = sizeof(uint32_t),
                                            .rank = 3,
                                            .sizes = {words, rows, 1},
                                            .strides = {0, words * sizeof(uint32_t)}}};
    const kiln_launch_config config = {.grid = {(uint32_t)(tiles < most ? tiles : most), 1, 1},
                                       .block = {way->threads, 1, 1},
                                       .dynamic_shared_bytes = way->shared_bytes};
    kiln_gemm_w4a16_mapped_args mapped = {.plain = *args, .early = kiln__operator_overlaps(stream, kernel)};
    KILN__TRY(kiln__tensor_maps_encode(kernel, factors, &mapped));
    return kiln__call_launch(stream, kernel, &config, &mapped, sizeof mapped);
}

static bool is_for_few_packed_rows(unsigned kernel) {
    return kernel >= KERNEL_gemm_w4a16_mma_rows_8 && kernel <= KERNEL_gemm_w4a16_mma_norm_8;
}

static kiln_status launch_rows(kiln_stream *stream, const kiln_kernel *kernel, const kiln_launch_config *config,
                               const kiln_gemm_w4a16_args *args, const plan *way) {
    const kiln_gemm_w4a16_rows_args rows = {
        .plain = *args, .panels = way->panels, .early = kiln__operator_overlaps(stream, kernel)};
    return kiln__call_launch(stream, kernel, config, &rows, sizeof rows);
}

/* Launches clusters whose blocks share k, which need no workspace for it. */
static kiln_status launch_shared_rows(kiln_stream *stream, const kiln_kernel *kernel, const kiln_gemm_w4a16_args *args,
                                      const plan *way) {
    const uint64_t rows = (uint64_t)(args->paired ? 2 * args->n : args->n);
    const uint64_t clusters = (tiles_of((int64_t)rows, way->cols) + way->tiles - 1) / way->tiles;
    const kiln_launch_config config = {.grid = {(uint32_t)clusters * 2, 1, 1},
                                       .block = {way->threads, 1, 1},
                                       .dynamic_shared_bytes = way->shared_bytes};
    const kiln_gemm_w4a16_shared_args shared = {.plain = *args,
                                                .tiles = way->tiles,
                                                .depth = way->depth,
                                                .factor_rows = way->factor_rows,
                                                .early = kiln__operator_overlaps(stream, kernel)};
    return kiln__call_launch(stream, kernel, &config, &shared, sizeof shared);
}

/* Writes the normalised rows of a to `normed`, which takes their place. */
static kiln_status launch_norm(kiln_stream *stream, const kiln_kernel *kernels, kiln_gemm_w4a16_args *args,
                               void *normed, unsigned size_log2, const char *name) {
    kiln_gemm_w4a16_args norm = *args;
    kiln_launch_config config;
    norm.d = normed;
    norm.d_stride = args->k;
    norm.wide = kiln__rows_wide((uintptr_t)args->a | (uintptr_t)args->norm_weight, args->m, args->a_stride | args->k,
                                size_log2) &&
                (args->k << size_log2) % KILN_VECTOR_BYTES == 0;
    KILN__TRY(kiln__grid(name, 1, (uint64_t)args->m, &config));
    KILN__TRY(kiln__call_launch(stream, &kernels[KERNEL_gemm_w4a16_norm], &config, &norm, sizeof norm));
    args->a = normed;
    args->a_stride = args->k;
    args->norm_weight = NULL;
    return KILN_OK;
}

static kiln_status launch_plan(kiln_stream *stream, const kiln_kernel *kernels, kiln_gemm_w4a16_args *args,
                               const plan *way, void *normed, unsigned size_log2, const char *name) {
    const kiln_kernel *kernel = &kernels[way->kernel];
    const bool mapped = kiln__tensor_map_count(&kernel->info) != 0, tiles = way->rows != 0;
    const kiln_kernel *join = &kernels[mapped ? KERNEL_gemm_w4a16_wgmma_join : KERNEL_gemm_w4a16_join];
    const int64_t n = args->n, rows = args->paired ? 2 * n : n;
    const uint32_t paired = args->paired;
    kiln_launch_config config, joining;
    if (way->joined) {
        const uint32_t columns = KILN_BLOCK * (mapped ? KILN_VECTOR_BYTES / (uint32_t)sizeof(uint16_t) : 1);
        KILN__TRY(kiln__grid(name, tiles_of(n, columns), (uint64_t)args->m, &joining));
        KILN__TRY(kiln__operator_fits(stream, name, &joining));
    }
    if (way->normed) KILN__TRY(launch_norm(stream, kernels, args, normed, size_log2, name));
    if (args->norm_weight && way->kernel != KERNEL_gemm_w4a16_mma_few) args->pre_scale = args->norm_weight;
    if (tiles) {
        args->n = rows;
        args->paired = 0;
    }
    if (mapped) {
        KILN__TRY(launch_mapped(stream, kernel, args, way, name));
    } else if (way->tiles) {
        KILN__TRY(launch_shared_rows(stream, kernel, args, way));
    } else {
        KILN__TRY(kiln__grid(name, tiles_of(rows, way->cols), (uint64_t)args->tile_rows * args->splits, &config));
        config.block[0] = way->threads;
        config.dynamic_shared_bytes = way->shared_bytes;
        KILN__TRY(is_for_few_packed_rows(way->kernel) ? launch_rows(stream, kernel, &config, args, way)
                                                      : kiln__call_launch(stream, kernel, &config, args, sizeof *args));
    }
    if (!way->joined) return KILN_OK;
    args->n = n;
    args->paired = paired;
    return kiln__call_launch(stream, join, &joining, args, sizeof *args);
}

static kiln_status gemm_w4a16(kiln_stream *stream, const kiln_gemm_w4a16_params *params, unsigned part,
                              const char *name) {
    KILN__TRY(check_options(name, params));
    KILN__TRY(check_sizes(name, params));
    const int64_t m = params->m, n = params->n, k = params->k, rows = weight_rows(params);
    if (KILN__UNLIKELY(!m || !n)) return KILN_OK;

    const bool groups_first = params->scale_layout == KILN_W4A16_SCALES_K_N;
    const int64_t group = params->group, groups = groups_of(params);
    unsigned size_log2 = kiln__part_size_log2(part);
    kiln_gemm_w4a16_args args = {
        .d = params->d,
        .a = params->a,
        .weights = params->weights,
        .scales = params->scales,
        .zeros = params->zeros,
        .bias = params->bias,
        .pre_scale = params->pre_scale,
        .m = m,
        .n = n,
        .k = k,
        .d_stride = params->d_stride ? params->d_stride : n,
        .a_stride = params->a_stride ? params->a_stride : k,
        .scale_row_step = groups_first ? 1 : groups,
        .scale_group_step = groups_first ? rows : 1,
        .group_log2 = groups > 1 ? (uint32_t)__builtin_ctzll((unsigned long long)group) : KILN_W4A16_ONE_GROUP,
        .scale = params->scale == 0.0f ? 1.0f : params->scale,
        .c = params->c,
        .norm_weight = k ? params->norm_weight : NULL,
        .c_stride = params->c_stride ? params->c_stride : n,
        .norm_eps = params->norm_eps == 0.0f ? 1e-6f : params->norm_eps,
        .mean = k ? 1.0f / (float)k : 0.0f,
        .paired = (uint32_t)params->gated,
    };
    memcpy((char *)&args + offsetof(kiln_gemm_w4a16_args, activated), &matmul_gates[params->activation],
           sizeof(matmul_gate));
    KILN__TRY(kiln__tensor_check(name, "d", params->d, m, n, args.d_stride, size_log2));
    if (k) KILN__TRY(check_factors(name, params, args.a_stride, size_log2, &args.wide));
    if (params->bias) KILN__TRY(kiln__tensor_check(name, "bias", params->bias, 1, rows, rows, size_log2));
    if (params->c) {
        KILN__TRY(kiln__tensor_check(name, "c", params->c, m, n, args.c_stride, size_log2));
        KILN__TRY(kiln__in_place_check(name, "d", params->d, args.d_stride, "c", params->c, args.c_stride));
    }

    const kiln_module *module;
    KILN__TRY(kiln__operator_require(stream, KILN__OPERATOR_gemm_w4a16, part, &kiln__bundle_gemm_w4a16, &module));
    if (params->weight_layout == KILN_W4A16_SM80_V1 && k)
        KILN__TRY(check_packed(name, params, module, args.a_stride, size_log2));
    size_t needed = 0;
    const bool has_workspace = params->workspace || params->workspace_size;
    plan way = plan_of(params, module, args.wide, has_workspace);
    KILN__TRY(workspace_size(name, params, &way, size_log2, &needed));
    if (needed) {
        KILN__REQUIRE(params->workspace_size >= needed, "%s: workspace_size is %zu: must be at least %zu%s", name,
                      params->workspace_size, needed,
                      way.required ? " for norm_weight, gated or activation with so many rows"
                                   : ", or 0 without a workspace");
        KILN__TRY(kiln__workspace_check(name, params->workspace, params->workspace_size, needed));
    }
    void *normed = params->workspace;
    if (way.joined) args.partials = (void *)((char *)params->workspace + normed_size(params, &way, size_log2));
    args.splits = way.splits;
    args.split = way.split;
    args.tile_rows = way.rows ? (uint32_t)tiles_of(m, way.rows) : 1;
    return launch_plan(stream, module->kernels, &args, &way, normed, size_log2, name);
}

static kiln_status gemm_w4a16_workspace_size(kiln_stream *stream, const kiln_gemm_w4a16_params *params, unsigned part,
                                             const char *name, size_t *out_size) {
    const kiln_module *module;
    KILN__TRY(check_options(name, params));
    KILN__TRY(check_sizes(name, params));
    if (!params->m || !params->n) return KILN_OK;
    KILN__TRY(kiln__operator_require(stream, KILN__OPERATOR_gemm_w4a16, part, &kiln__bundle_gemm_w4a16, &module));
    KILN__REQUIRE(params->weight_layout == KILN_W4A16_CANONICAL || takes_packed(module),
                  "%s: weight_layout is sm80_v1 (1), which this device's image does not take: must be canonical (0)",
                  name);
    /* The call may have tensors at any place: enough for each way to do it. */
    const bool may_be_wide = params->k % KILN_W4A16_CHUNK == 0;
    const plan any = plan_of(params, module, false, true), wide = plan_of(params, module, may_be_wide, true);
    size_t size = 0, wide_size = 0;
    KILN__TRY(workspace_size(name, params, &any, kiln__part_size_log2(part), &size));
    KILN__TRY(workspace_size(name, params, &wide, kiln__part_size_log2(part), &wide_size));
    *out_size = size > wide_size ? size : wide_size;
    return KILN_OK;
}

kiln_status kiln_w4a16_layout_of(kiln_stream *stream, kiln_w4a16_layout *out_layout) {
    const kiln_module *module;
    KILN__REQUIRE(out_layout, "kiln_w4a16_layout_of: out_layout is NULL");
    *out_layout = KILN_W4A16_CANONICAL;
    KILN__TRY(kiln__stream_check("kiln_w4a16_layout_of", stream));
    KILN__TRY(
        kiln__operator_require(stream, KILN__OPERATOR_gemm_w4a16, KILN__PART_f16, &kiln__bundle_gemm_w4a16, &module));
    if (takes_packed(module)) *out_layout = KILN_W4A16_SM80_V1;
    return KILN_OK;
}
