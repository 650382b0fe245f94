/* vector_search on the CPU: the operator's definition. vector_search_gpu.c says what its blocks do.
 *
 * Each query in turn is compared with a tile of rows, which fits into the first-level cache. The k best so far are a
 * heap whose root is the least of them, so that a tile whose best score is no better has none of the k. The loop along
 * each row (codes_cpu.h) takes nearly all of the time.
 *
 * Floor: one read of the table at memory bandwidth for each tile of queries.
 * Test: build/tests/ops/vector_search_test. Bench: build/kiln bench vector_search --device cpu */
#include "kernels/common/cpu.h"
#include "kernels/common/reduce/rank_heap.h"
#include "kernels/vector_search/vector_search_args.h"

#include "kernels/vector_search/codes_cpu.h"

enum { QUERIES = KILN_VECTOR_SEARCH_QUERIES, ROWS = 64, TILE_BYTES = 16 << 10 };

typedef struct search_scratch {
    kiln_rank_heap heaps[QUERIES];
    query_codes queries[QUERIES];
    int32_t sums[ROWS];
    uint32_t keys[ROWS];
    float scores[ROWS];
    uint8_t codes[QUERY_BYTES]; /* of all queries */
} search_scratch;
_Static_assert(sizeof(search_scratch) <= KILN_CPU_SCRATCH, "fits");

/* Writes the count scores, at most ROWS, that keys stand for. The key of a distance is that of its negative. */
KILN_INLINE void put_scores(search_scratch *scratch, void *target, const uint32_t *keys, size_t count,
                            const kiln_vector_search_args *args, kiln_cpu_dtype dtype) {
    float *scores = kiln_tile_target(scratch->scores, target, dtype, false);
    KILN_INDEPENDENT
    for (size_t i = 0; i < count; i++) {
        float score = kiln_order_value(keys[i]);
        scores[i] = args->code_type == KILN_CODE_BINARY ? 0.0f - score : score;
    }
    kiln_tile_write(target, scores, count, dtype, false);
}

KILN_INLINE void rank_rows(search_scratch *scratch, const kiln_vector_search_args *args, uint64_t row, size_t count,
                           uint64_t query, uint32_t q, kiln_cpu_dtype dtype) {
    kiln_rank_heap *h = &scratch->heaps[q];
    uint32_t greatest = 0;
    if (args->code_type == KILN_CODE_BINARY) {
        KILN_INDEPENDENT
        for (size_t i = 0; i < count; i++)
            scratch->keys[i] = kiln_order_key(-(float)scratch->sums[i]);
    } else {
        const float left = args->query_scales ? args->query_scales[query] : 1.0f;
        KILN_INDEPENDENT
        for (size_t i = 0; i < count; i++) {
            const float right = args->table_scales ? args->table_scales[row + i] : 1.0f;
            scratch->keys[i] = kiln_order_key((float)scratch->sums[i] * (left * right));
        }
    }
    if (args->all_scores)
        put_scores(scratch, kiln_at_mut(args->all_scores, query * (uint64_t)args->rows + row, dtype), scratch->keys,
                   count, args, dtype);
    for (size_t i = 0; i < count; i++)
        greatest = scratch->keys[i] > greatest ? scratch->keys[i] : greatest;
    if (h->count == h->most && greatest <= kiln_rank_key(h->ranks[0])) return; /* rows ascend */
    for (size_t i = 0; i < count; i++)
        kiln_rank_offer(h, kiln_rank_of(scratch->keys[i], (uint32_t)(row + i)));
}

KILN_INLINE void choose_rows(search_scratch *scratch, const kiln_vector_search_args *args, uint64_t start, uint64_t end,
                             uint64_t query, uint32_t queries, kiln_cpu_dtype dtype) {
    const uint64_t rows = args->code_cols < TILE_BYTES / ROWS ? ROWS : kiln_min(TILE_BYTES / args->code_cols, ROWS);
    const uint32_t size = query_size(args->code_cols, args->code_type);
    for (uint32_t q = 0; q < queries; q++)
        take_query(&scratch->queries[q], scratch->codes + q * size,
                   args->query_codes + (query + q) * (uint64_t)args->query_stride, args->code_cols, args->code_type);
    for (uint64_t row = start, count; row < end; row += count) {
        count = kiln_min(rows, end - row);
        const uint8_t *codes = args->table_codes + row * (uint64_t)args->table_stride;
        for (uint32_t q = 0; q < queries; q++) {
            sum_rows(scratch->sums, &scratch->queries[q], codes, args->table_stride, count);
            rank_rows(scratch, args, row, count, query + q, q, dtype);
        }
    }
}

/* Writes the k best rows of a query, or leaves their ranks for another launch. */
KILN_INLINE void put_chosen(search_scratch *scratch, const kiln_vector_search_args *args, uint64_t query,
                            uint64_t slice, uint32_t q, kiln_cpu_dtype dtype) {
    kiln_rank_heap *h = &scratch->heaps[q];
    if (args->to) {
        uint64_t *to = args->to + (query * args->slices + slice) * args->k;
        for (uint32_t i = 0; i < args->k; i++)
            to[i] = i < h->count ? h->ranks[i] : 0;
        return;
    }
    kiln_rank_order(h);
    for (uint32_t start = 0, count; start < args->k; start += count) {
        count = (uint32_t)kiln_min(args->k - start, ROWS);
        const uint64_t at = query * args->k + start;
        for (uint32_t i = 0; i < count; i++) {
            scratch->keys[i] = kiln_rank_key(h->ranks[start + i]);
            args->indices[at + i] = (int32_t)kiln_rank_place(h->ranks[start + i]);
        }
        if (args->scores) put_scores(scratch, kiln_at_mut(args->scores, at, dtype), scratch->keys, count, args, dtype);
    }
}

KILN_OUTLINED void vector_search(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_vector_search_args args =
        *(const kiln_vector_search_args *)arguments; /* a copy, which no store can change */
    search_scratch *scratch = span->scratch;
    for (uint64_t block = span->begin; block < span->end; block++) {
        const uint64_t slice = block % span->grid[0], query = block / span->grid[0] * args.tile;
        if (query >= (uint64_t)args.queries) break;
        const uint64_t start = slice * args.slice, end = kiln_min(start + args.slice, (uint64_t)args.rows);
        const uint32_t queries = (uint32_t)kiln_min(args.tile, (uint64_t)args.queries - query);
        for (uint32_t q = 0; q < queries; q++) {
            scratch->heaps[q].count = 0;
            scratch->heaps[q].most = args.k;
        }
        if (args.from) {
            const uint64_t *from = args.from + query * (uint64_t)args.rows;
            for (uint64_t i = start; i < end; i++)
                if (from[i]) kiln_rank_offer(&scratch->heaps[0], from[i]);
        } else {
            choose_rows(scratch, &args, start, end, query, queries, dtype);
        }
        for (uint32_t q = 0; q < queries; q++)
            put_chosen(scratch, &args, query + q, slice, q, dtype);
    }
}
KILN_CPU_KERNEL(vector_search)
