/* What the host sides of attention on codes share with that of mha_quantize: how many scales there are says which
 * tokens of a head share one. */
#ifndef KILN_KERNELS_COMMON_ATTENTION_ATTENTION_SCALES_HOST_H
#define KILN_KERNELS_COMMON_ATTENTION_ATTENTION_SCALES_HOST_H

#include "kernels/common/attention/attention_codes_args.h"
#include "kernels/common/host.h"

/* A way for tokens to share scales. The first that gives the number of scales applies. */
typedef struct kiln__scale_way {
    kiln_scale_index index;
    const char *text;
} kiln__scale_way;

static const kiln__scale_way kiln__q_scale_ways[] = {
    {{0, 0, 0, 0}, "for each token"},
    {{7, 0, 0, 0}, "for every 128 tokens"},
    {{5, 0, 0, 0}, "for every 32"},
    {{5, 3, 7, 0}, "for each eighth one of every 32"},
};
static const kiln__scale_way kiln__k_scale_ways[] = {
    {{0, 0, 0, 0}, "for each token"},
    {{6, 0, 0, 0}, "for every 64 tokens"},
    {{6, 2, 7, 1}, "for each fourth pair of every 64"},
};

static inline int64_t kiln__scale_count(kiln_scale_index index, int64_t tokens) {
    return ((tokens + ((int64_t)1 << index.high) - 1) >> index.high) << index.bits;
}

/* Finds the way for a head with a positive number of tokens and that many scales; 0 means the first way, and is
 * replaced by its number. */
static inline kiln_status kiln__scale_index_find(const char *name, const char *size, const kiln__scale_way *ways,
                                                 size_t way_count, int64_t tokens, int64_t *scale_rows,
                                                 kiln_scale_index *out_index) {
    if (!*scale_rows) *scale_rows = tokens;
    for (size_t i = 0; i < way_count; i++)
        if (kiln__scale_count(ways[i].index, tokens) == *scale_rows) {
            *out_index = ways[i].index;
            return KILN_OK;
        }
    const kiln__scale_way *last = &ways[way_count - 1];
    KILN__REQUIRE(false, "%s: %s is %lld: must be %lld (%s), %lld (%s) or another of the numbers that the header names",
                  name, size, (long long)*scale_rows, (long long)tokens, ways[0].text,
                  (long long)kiln__scale_count(last->index, tokens), last->text);
    return KILN_OK;
}

static inline kiln_status kiln__q_scale_index(const char *name, int64_t tokens, int64_t *scale_rows,
                                              kiln_scale_index *out_index) {
    KILN__TRY(kiln__size_check(name, "q_scale_rows", *scale_rows, INT32_MAX));
    return kiln__scale_index_find(name, "q_scale_rows", kiln__q_scale_ways,
                                  sizeof kiln__q_scale_ways / sizeof *kiln__q_scale_ways, tokens, scale_rows,
                                  out_index);
}

static inline kiln_status kiln__k_scale_index(const char *name, int64_t tokens, int64_t *scale_rows,
                                              kiln_scale_index *out_index) {
    KILN__TRY(kiln__size_check(name, "k_scale_rows", *scale_rows, INT32_MAX));
    return kiln__scale_index_find(name, "k_scale_rows", kiln__k_scale_ways,
                                  sizeof kiln__k_scale_ways / sizeof *kiln__k_scale_ways, tokens, scale_rows,
                                  out_index);
}

#endif
