/* top_k, host side: each launch keeps k elements of each chunk of a row, until a row is one chunk. */
#include "kernels/top_k/top_k_args.h"
#include <kiln/ops/sample.h>
#define KILN_HOST top_k
#include "kernels/common/operator.h"

_Static_assert((int)KILN_TOP_K_MOST == (int)KILN_TOP_K_RANKS, "ops/sample.h says what kernels have room for");

enum {
    BLOCKS = 1024,        /* are as many as a device works on at a time */
    CHUNK_MOST = 1 << 17, /* elements */
    CHUNK_RANKS = 64,     /* the most that are chosen from more than KILN_TOP_K_CHUNK: passes for more read all again */
    JOINED = 64           /* candidates that a subgroup chooses from: a block would mostly wait */
};

static uint64_t chunks_of(uint64_t count, uint64_t chunk) {
    return (count + chunk - 1) / chunk;
}

/* The elements of a row that a block chooses from. Fewer chunks leave fewer candidates, and a row that is one takes one
 * launch, but there must be blocks enough. */
static uint64_t chunk_of(uint64_t rows, uint64_t cols, uint64_t k) {
    uint64_t chunk = KILN_TOP_K_CHUNK;
    while (chunk < cols && chunk < CHUNK_MOST && k <= CHUNK_RANKS && rows * chunks_of(cols, 2 * chunk) >= BLOCKS)
        chunk *= 2;
    return chunk;
}

/* How many candidates the chunks of count elements leave: k each, and the last chunk no more than it has. */
static uint64_t left_of(uint64_t count, uint64_t k, uint64_t chunk) {
    uint64_t whole = chunks_of(count, chunk) - 1, last = count - whole * chunk;
    return whole * k + (last < k ? last : k);
}

static uint64_t candidates_size(uint64_t rows, uint64_t count) {
    uint64_t size = rows * count * sizeof(kiln_top_k_candidate);
    return (size + KILN_VECTOR_BYTES - 1) / KILN_VECTOR_BYTES * KILN_VECTOR_BYTES;
}

/* Each launch reads candidates from one half of the workspace and leaves its own in the other. The first launch leaves
 * the most. Longer chunks need less, but their number depends on the rows: fewer rows never need more than many. */
static uint64_t workspace_needed(int64_t rows, int64_t cols, int64_t k) {
    if (cols <= KILN_TOP_K_CHUNK || !rows || !k) return 0;
    uint64_t first = left_of((uint64_t)cols, (uint64_t)k, KILN_TOP_K_CHUNK);
    uint64_t size = candidates_size((uint64_t)rows, first);
    if (first > KILN_TOP_K_CHUNK)
        size += candidates_size((uint64_t)rows, left_of(first, (uint64_t)k, KILN_TOP_K_CHUNK));
    return size;
}

/* At least four groups of a block's threads for each element that is wanted, and as many as a subgroup has threads,
 * tell a bound of the greatest elements well. */
static uint32_t group_log2_of(int64_t k) {
    uint32_t log2 = 0;
    while (log2 < KILN_BLOCK_LOG2 - KILN_SUBGROUP_LOG2 && k * 4 <= KILN_BLOCK >> (log2 + 1))
        log2++;
    return log2;
}

static kiln_status check_sizes(const char *name, const kiln_top_k_params *params) {
    KILN__TRY(kiln__size_check(name, "rows", params->rows, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "cols", params->cols, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "k", params->k, KILN_TOP_K_MOST));
    KILN__REQUIRE(params->k <= params->cols, "%s: k is %lld: must be at most the %lld cols", name, (long long)params->k,
                  (long long)params->cols);
    return KILN_OK;
}

/* Launches once: chooses from shape.cols elements or candidates of each row. */
static kiln_status launch_choice(kiln_stream *stream, unsigned part, const kiln_top_k_args *args, const char *name) {
    kiln_launch_config config;
    unsigned each_log2 = KILN_BLOCK_LOG2 - args->shape.lanes_log2;
    uint64_t blocks = ((uint64_t)args->shape.rows + (1u << each_log2) - 1) >> each_log2;
    KILN__TRY(kiln__grid(name, chunks_of((uint64_t)args->shape.cols, (uint64_t)args->shape.tile), blocks, &config));
    return launch(stream, part, KERNEL_top_k, &config, args, sizeof *args);
}

static kiln_status top_k(kiln_stream *stream, const kiln_top_k_params *params, unsigned part, const char *name) {
    KILN__TRY(check_sizes(name, params));
    int64_t rows = params->rows, cols = params->cols, k = params->k;
    if (KILN__UNLIKELY(!rows || !k)) return KILN_OK;

    unsigned size_log2 = kiln__part_size_log2(part);
    kiln__tensor x = kiln__tensor_of("x", params->x, params->x_stride);
    uint32_t wide;
    if (params->values) KILN__TRY(kiln__tensor_check(name, "values", params->values, rows, k, k, size_log2));
    KILN__TRY(kiln__tensor_check(name, "indices", params->indices, rows, k, k, 2));
    KILN__TRY(kiln__tensors_check(name, &x, 1, rows, cols, size_log2, &wide));
    bool is_short = cols <= KILN_TOP_K_SHORT_COLS && k <= KILN_TOP_K_SHORT_RANKS;
    kiln_top_k_args args = {
        .values = params->values,
        .indices = params->indices,
        .x = params->x,
        .shape = {.rows = rows,
                  .cols = cols,
                  .tile = (uint32_t)chunk_of((uint64_t)rows, (uint64_t)cols, (uint64_t)k),
                  .lanes_log2 = is_short ? KILN_SUBGROUP_LOG2 : KILN_BLOCK_LOG2,
                  .wide = wide},
        .x_stride = x.stride,
        .k = (uint32_t)k,
        .group_log2 = group_log2_of(k),
    };
    if (args.shape.cols <= args.shape.tile) return launch_choice(stream, part, &args, name);

    KILN__TRY(kiln__workspace_check(name, params->workspace, params->workspace_size, workspace_needed(rows, cols, k)));
    kiln_top_k_candidate *here = params->workspace, *there = NULL;
    while (args.shape.cols > args.shape.tile) {
        args.to_count = (uint32_t)left_of((uint64_t)args.shape.cols, (uint64_t)k, (uint64_t)args.shape.tile);
        args.to = here;
        if (!there) there = here + candidates_size((uint64_t)rows, args.to_count) / sizeof *here;
        KILN__TRY(launch_choice(stream, part, &args, name));
        args.from = args.to;
        args.shape.cols = args.to_count;
        args.shape.tile = KILN_TOP_K_CHUNK;
        here = there;
        there = args.to;
    }
    args.to = NULL;
    if (args.to_count <= JOINED && k <= KILN_TOP_K_SHORT_RANKS) args.shape.lanes_log2 = KILN_SUBGROUP_LOG2;
    return launch_choice(stream, part, &args, name);
}

static kiln_status top_k_workspace_size(kiln_stream *stream, const kiln_top_k_params *params, unsigned part,
                                        const char *name, size_t *out_size) {
    (void)stream;
    (void)part;
    KILN__TRY(check_sizes(name, params));
    *out_size = workspace_needed(params->rows, params->cols, params->k);
    return KILN_OK;
}
