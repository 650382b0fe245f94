/* vector_search, host side: the first launch keeps the k best rows of each slice of the table, and further launches
 * keep the best of those, until the k best of the whole table remain. */
#include "kernels/vector_search/vector_search_args.h"
#include <kiln/ops/vector.h>
#define KILN_HOST vector_search
#include "kernels/common/operator.h"

_Static_assert((int)KILN_VECTOR_BINARY == (int)KILN_CODE_BINARY && (int)KILN_VECTOR_INT8 == (int)KILN_CODE_INT8 &&
                   (int)KILN_VECTOR_INT4 == (int)KILN_CODE_INT4,
               "kernels have the codes of ops/vector.h");

enum {
    SHARED_BYTES = 47 << 10, /* every device has these, and room for what does not depend on the call */
    SLICES = 1024,           /* at most */
    SLICE_BYTES = 128 << 10, /* at least: in smaller slices most rows would be among the best so far */
    SLICE_ROWS = 2048,       /* are enough, however short they are */
    JOINED = 8192,           /* ranks that a block merges, or those of JOINED_SLICES */
    JOINED_SLICES = 8,
    JOINED_STEP = 1024, /* that there is room for beside k others, at least */
    STEPS = 3,          /* whose ranks there is room for beside k others, while that is within STEPS_RANKS */
    STEPS_RANKS = 1024
};

static int64_t greater(int64_t a, int64_t b) {
    return a > b ? a : b;
}
static int64_t quotient(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

/* Room for count ranks: a power of two. */
static uint32_t capacity_for(int64_t count) {
    return 1u << (64 - __builtin_clzll((uint64_t)count - 1));
}

/* Divides a call into blocks. The division does not depend on the call's pointers. */
static void cut(const kiln_vector_search_params *params, kiln_vector_search_args *args) {
    int64_t k = params->k;
    args->lanes_log2 = params->code_cols <= 4 * KILN_VECTOR_BYTES ? 2 : 3;
    uint32_t step = (uint32_t)KILN_VECTOR_SEARCH_ROWS * KILN_BLOCK >> args->lanes_log2;
    int64_t least = SLICE_BYTES / params->code_cols;
    least = greater(least < SLICE_ROWS ? least : SLICE_ROWS, 2 * k);
    args->slice = (uint32_t)(quotient(greater(quotient(params->rows, SLICES), least), step) * step);
    args->slices = (uint32_t)quotient(params->rows, args->slice);
    args->capacity = capacity_for(k + STEPS * step <= STEPS_RANKS ? k + STEPS * step : k + step);
    args->steps = (args->capacity - (uint32_t)k) / step;
}

/* Divides the ranks that the slices left. */
static void cut_again(kiln_vector_search_args *args) {
    args->rows = (int64_t)args->slices * args->k;
    args->slice = (uint32_t)greater(JOINED / args->k, JOINED_SLICES) * args->k;
    args->slices = (uint32_t)quotient(args->rows, args->slice);
    args->capacity = capacity_for(args->k + JOINED_STEP);
    args->steps = 1;
    args->tile = 1;
}

static uint64_t ranks_size(const kiln_vector_search_args *args) {
    uint64_t size = (uint64_t)args->queries * args->slices * args->k * sizeof *args->to;
    return (size + KILN_VECTOR_BYTES - 1) / KILN_VECTOR_BYTES * KILN_VECTOR_BYTES;
}

/* Each launch reads ranks from one half of the workspace and leaves its own in the other. The first launch leaves the
 * most. */
static uint64_t workspace_needed(kiln_vector_search_args args) {
    if (args.slices == 1) return 0;
    uint64_t size = ranks_size(&args);
    cut_again(&args);
    return size + (args.slices > 1 ? ranks_size(&args) : 0);
}

static kiln_status check_sizes(const char *name, const kiln_vector_search_params *params) {
    KILN__TRY(kiln__size_check(name, "queries", params->queries, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "rows", params->rows, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "code_cols", params->code_cols, KILN_VECTOR_CODE_COLS_MOST));
    KILN__TRY(kiln__size_check(name, "k", params->k, KILN_VECTOR_SEARCH_MOST));
    KILN__REQUIRE(params->k <= params->rows, "%s: k is %lld: must be at most the %lld rows", name, (long long)params->k,
                  (long long)params->rows);
    KILN__REQUIRE(params->code_type >= KILN_VECTOR_BINARY && params->code_type <= KILN_VECTOR_INT4,
                  "%s: code_type is %d: must be binary (0), int8 (1) or int4 (2)", name, params->code_type);
    KILN__REQUIRE(params->reserved == 0, "%s: reserved is %d: must be 0", name, params->reserved);
    return KILN_OK;
}

static bool is_empty(const kiln_vector_search_params *params) {
    return !params->queries || !params->k || !params->code_cols;
}

/* Launches once: chooses from the table's rows, or from ranks. */
static kiln_status launch_choice(kiln_stream *stream, unsigned part, const kiln_vector_search_args *args,
                                 uint32_t query_bytes, const char *name) {
    kiln_launch_config config;
    uint64_t tiles = ((uint64_t)args->queries + args->tile - 1) / args->tile;
    KILN__TRY(kiln__grid(name, args->slices, tiles, &config));
    config.dynamic_shared_bytes = args->tile * (args->capacity * (uint32_t)sizeof *args->to + query_bytes);
    return launch(stream, part, KERNEL_vector_search, &config, args, sizeof *args);
}

static kiln_status check_tensors(const char *name, const kiln_vector_search_params *params,
                                 const kiln_vector_search_args *args, unsigned part) {
    int64_t queries = params->queries, rows = params->rows, cols = params->code_cols, k = params->k;
    if (params->scores)
        KILN__TRY(kiln__tensor_check(name, "scores", params->scores, queries, k, k, kiln__part_size_log2(part)));
    KILN__TRY(kiln__tensor_check(name, "indices", params->indices, queries, k, k, 2));
    if (params->all_scores)
        KILN__TRY(kiln__tensor_check(name, "all_scores", params->all_scores, queries, rows, rows,
                                     kiln__part_size_log2(part)));
    KILN__TRY(kiln__tensor_check(name, "query_codes", params->query_codes, queries, cols, args->query_stride, 0));
    KILN__TRY(kiln__tensor_check(name, "table_codes", params->table_codes, rows, cols, args->table_stride, 0));
    if (params->query_scales)
        KILN__TRY(kiln__tensor_check(name, "query_scales", params->query_scales, 1, queries, queries, 2));
    if (params->table_scales)
        KILN__TRY(kiln__tensor_check(name, "table_scales", params->table_scales, 1, rows, rows, 2));
    return KILN_OK;
}

static kiln_status vector_search(kiln_stream *stream, const kiln_vector_search_params *params, unsigned part,
                                 const char *name) {
    KILN__TRY(check_sizes(name, params));
    if (KILN__UNLIKELY(is_empty(params))) return KILN_OK;
    kiln_vector_search_args args = {
        .scores = params->scores,
        .indices = params->indices,
        .all_scores = params->all_scores,
        .query_codes = params->query_codes,
        .table_codes = params->table_codes,
        .query_scales = params->query_scales,
        .table_scales = params->code_type == KILN_VECTOR_BINARY ? NULL : params->table_scales,
        .queries = params->queries,
        .rows = params->rows,
        .query_stride = params->query_codes_stride ? params->query_codes_stride : params->code_cols,
        .table_stride = params->table_codes_stride ? params->table_codes_stride : params->code_cols,
        .code_cols = (uint32_t)params->code_cols,
        .k = (uint32_t)params->k,
        .code_type = (uint32_t)params->code_type,
    };
    KILN__TRY(check_tensors(name, params, &args, part));
    args.wide = kiln__rows_wide((uintptr_t)args.table_codes, args.rows, args.table_stride, 0);
    cut(params, &args);
    const uint32_t vectors = (args.code_cols + KILN_VECTOR_BYTES - 1) / KILN_VECTOR_BYTES;
    const uint32_t query_bytes = vectors * KILN_VECTOR_BYTES * (args.code_type == KILN_CODE_INT4 ? 2 : 1);
    const uint32_t room = args.capacity * (uint32_t)sizeof *args.to + query_bytes;
    args.tile = args.queries > 1 && KILN_VECTOR_SEARCH_QUERIES * room <= SHARED_BYTES ? KILN_VECTOR_SEARCH_QUERIES : 1;
    if (args.slices == 1) return launch_choice(stream, part, &args, query_bytes, name);

    KILN__TRY(kiln__workspace_check(name, params->workspace, params->workspace_size, workspace_needed(args)));
    uint64_t *here = params->workspace, *there = here + ranks_size(&args) / sizeof *here;
    args.to = here;
    KILN__TRY(launch_choice(stream, part, &args, query_bytes, name));
    while (args.slices > 1) {
        args.from = here;
        cut_again(&args);
        args.to = args.slices > 1 ? there : NULL;
        KILN__TRY(launch_choice(stream, part, &args, 0, name));
        there = here;
        here = args.to;
    }
    return KILN_OK;
}

static kiln_status vector_search_workspace_size(kiln_stream *stream, const kiln_vector_search_params *params,
                                                unsigned part, const char *name, size_t *out_size) {
    (void)stream;
    (void)part;
    KILN__TRY(check_sizes(name, params));
    if (is_empty(params)) return KILN_OK;
    kiln_vector_search_args args = {.queries = params->queries, .rows = params->rows, .k = (uint32_t)params->k};
    cut(params, &args);
    *out_size = workspace_needed(args);
    return KILN_OK;
}
