/* engram_hash, host side. */
#include "kernels/engram_hash/engram_hash_args.h"
#include <kiln/ops/engram.h>
#define KILN_HOST engram_hash
#include "kernels/common/operator.h"

enum {
    COLUMNS = KILN_BLOCK,
    RUN = 16,
    BLOCKS = 256
}; /* heads of all orders; tokens per thread; blocks that fill a device */

static kiln_status sizes_check(const char *name, const kiln_engram_hash_params *params, int64_t batch) {
    KILN__TRY(kiln__size_check(name, "tokens", params->tokens, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "batch", params->batch, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "layers", params->layers, KILN_GRID_BLOCKS));
    KILN__TRY(kiln__size_check(name, "orders", params->orders, COLUMNS));
    KILN__TRY(kiln__size_check(name, "heads", params->heads, COLUMNS));
    KILN__REQUIRE(params->orders * params->heads <= COLUMNS, "%s: heads is %lld: must be at most %d / orders, %lld",
                  name, (long long)params->heads, COLUMNS, (long long)(COLUMNS / params->orders));
    KILN__TRY(kiln__size_check(name, "vocabulary", params->vocabulary, INT32_MAX));
    KILN__REQUIRE(params->cu_seqlens || params->tokens % batch == 0,
                  "%s: batch is %lld: must divide tokens, which is %lld, without cu_seqlens", name, (long long)batch,
                  (long long)params->tokens);
    KILN__TRY(kiln__index_type_check(name, params->index_type));
    KILN__REQUIRE(params->reserved == 0, "%s: reserved is %d: must be 0", name, params->reserved);
    return KILN_OK;
}

/* Checks the tensors that have an entry for each layer, and the optional ones. */
static kiln_status tensors_check(const char *name, const kiln_engram_hash_params *params, int64_t batch) {
    int64_t columns = params->orders * params->heads, layers = params->layers, orders = params->orders;
    unsigned index_log2 = kiln__index_size_log2(params->index_type);
    KILN__TRY(kiln__tensor_check(name, "rows", params->rows, layers * params->tokens, columns, columns, 3));
    KILN__TRY(kiln__tensor_check(name, "ids", params->ids, 1, params->tokens, params->tokens, index_log2));
    KILN__TRY(kiln__tensor_check(name, "multipliers", params->multipliers, layers, orders + 1, orders + 1, 3));
    KILN__TRY(kiln__tensor_check(name, "primes", params->primes, layers, columns, columns, 3));
    if (params->offsets) KILN__TRY(kiln__tensor_check(name, "offsets", params->offsets, layers, columns, columns, 3));
    if (params->history)
        KILN__TRY(kiln__tensor_check(name, "history", params->history, batch, orders, orders, index_log2));
    if (params->cu_seqlens)
        KILN__TRY(kiln__tensor_check(name, "cu_seqlens", params->cu_seqlens, 1, batch + 1, batch + 1, 2));
    if (params->lookup && params->vocabulary)
        KILN__TRY(kiln__tensor_check(name, "lookup", params->lookup, 1, params->vocabulary, params->vocabulary, 2));
    return KILN_OK;
}

static kiln_status engram_hash(kiln_stream *stream, const kiln_engram_hash_params *params, unsigned part,
                               const char *name) {
    int64_t batch = params->batch ? params->batch : 1, tokens = params->tokens;
    KILN__TRY(sizes_check(name, params, batch));
    uint32_t columns = (uint32_t)(params->orders * params->heads);
    if (KILN__UNLIKELY(!tokens || !params->layers || !columns)) return KILN_OK;
    KILN__TRY(tensors_check(name, params, batch));

    uint32_t lanes_log2 = columns > 1 ? 32 - (uint32_t)__builtin_clz(columns - 1) : 0, run = RUN;
    uint64_t slots = KILN_BLOCK >> lanes_log2;
    while (run > 1 && (uint64_t)(tokens * params->layers) < run * slots * BLOCKS)
        run /= 2;
    kiln_engram_hash_args args = {
        .rows = params->rows,
        .ids = params->ids,
        .history = params->history,
        .lookup = params->lookup,
        .multipliers = params->multipliers,
        .primes = params->primes,
        .offsets = params->offsets,
        .varlen = {params->cu_seqlens, (uint32_t)batch, (uint32_t)(tokens / batch)},
        .vocabulary = params->lookup ? params->vocabulary : 0,
        .pad_id = params->pad_id,
        .layers = (uint32_t)params->layers,
        .tokens = (uint32_t)tokens,
        .orders = (uint32_t)params->orders,
        .heads = (uint32_t)params->heads,
        .lanes_log2 = lanes_log2,
        .run = run,
        .ids_64 = params->index_type == KILN_INDEX_I64,
    };
    kiln_launch_config config;
    KILN__TRY(
        kiln__grid(name, ((uint64_t)tokens + run * slots - 1) / (run * slots), (uint64_t)params->layers, &config));
    return launch(stream, part, KERNEL_engram_hash, &config, &args, sizeof args);
}
