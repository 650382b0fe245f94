/* mha_quantize, host side: up to three launches, or two where an image reads k and v once. */
#include <kiln/ops/attention.h>

#define KILN_HOST mha_quantize
#include "kernels/common/operator.h"

#include "kernels/common/attention/attention_scales_host.h"
#include "kernels/common/attention/mha_quantize_host.h"
#include "kernels/mha_quantize/mha_quantize_once_args.h"

/* Whether nothing is to be written for q, and for k and v. */
static bool lacks_queries(const kiln_mha_quantize_params *params) {
    return !params->tokens || !params->heads || !params->head_dim;
}
static bool lacks_keys(const kiln_mha_quantize_params *params) {
    return !params->batch || !params->kv_heads || !params->head_dim;
}

static kiln_status check_sizes(const char *name, const kiln_mha_quantize_params *params) {
    KILN__TRY(kiln__size_check(name, "tokens", params->tokens, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "kv_tokens", params->kv_tokens, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "batch", params->batch, 1 << 24));
    KILN__TRY(kiln__size_check(name, "heads", params->heads, 1 << 16));
    KILN__TRY(kiln__size_check(name, "kv_heads", params->kv_heads, 1 << 16));
    KILN__TRY(kiln__size_check(name, "head_dim", params->head_dim, KILN_ATTENTION_DIM));
    KILN__TRY(kiln__size_check(name, "q_scale_rows", params->q_scale_rows, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "k_scale_rows", params->k_scale_rows, INT32_MAX));
    KILN__REQUIRE((uint32_t)params->code_type <= KILN_MHA_CODE_E4M3, "%s: code_type is %d: must be i8 (0) or u8 (1)",
                  name, params->code_type);
    KILN__REQUIRE(params->reserved == 0, "%s: reserved is %d: must be 0", name, params->reserved);
    return KILN_OK;
}

static kiln_status check_queries(const char *name, const kiln_mha_quantize_params *params, unsigned size_log2,
                                 kiln_mha_quantize_args *args) {
    const int64_t width = params->heads * params->head_dim;
    args->q_stride = params->q_stride ? params->q_stride : width;
    args->q_scale_rows = params->q_scale_rows;
    KILN__TRY(kiln__q_scale_index(name, params->tokens, &args->q_scale_rows, &args->q_index));
    KILN__TRY(kiln__tensor_check(name, "q", params->q, params->tokens, width, args->q_stride, size_log2));
    KILN__TRY(kiln__tensor_check(name, "q_codes", params->q_codes, params->tokens, width, width, 0));
    KILN__TRY(kiln__packed_check(name, "q_scales", params->q_scales, true, params->heads, args->q_scale_rows));
    args->q_codes = params->q_codes;
    args->q = params->q;
    args->q_scales = params->q_scales;
    args->tokens = (uint32_t)params->tokens;
    args->heads = (uint32_t)params->heads;
    args->wide &= kiln__rows_wide((uintptr_t)params->q, params->tokens, args->q_stride, size_log2) &&
                  !((uintptr_t)params->q_codes % KILN_MHA_QUANTIZE_PIECE);
    return KILN_OK;
}

/* One of k and v. */
static kiln_status check_keys(const char *name, const char *tensor, const void *data, const char *codes_name,
                              const void *codes, const kiln_mha_quantize_params *params, int64_t *stride,
                              unsigned size_log2, uint32_t *wide) {
    const int64_t width = params->kv_heads * params->head_dim;
    if (!*stride) *stride = width;
    if (!params->kv_tokens) return KILN_OK;
    KILN__TRY(kiln__tensor_check(name, tensor, data, params->kv_tokens, width, *stride, size_log2));
    KILN__TRY(kiln__tensor_check(name, codes_name, codes, params->kv_tokens, width, width, 0));
    *wide &= kiln__rows_wide((uintptr_t)data, params->kv_tokens, *stride, size_log2) &&
             !((uintptr_t)codes % KILN_MHA_QUANTIZE_PIECE);
    return KILN_OK;
}

static kiln_status check_all_keys(const char *name, const kiln_mha_quantize_params *params, unsigned size_log2,
                                  kiln_mha_quantize_args *args) {
    const int64_t channels = params->batch * params->kv_heads, size = params->head_dim;
    KILN__TRY(cut(name, CUT_OF(params), args));
    args->k_stride = params->k_stride;
    args->v_stride = params->v_stride;
    args->k_scale_rows = params->k_scale_rows;
    KILN__TRY(kiln__k_scale_index(name, params->kv_tokens, &args->k_scale_rows, &args->k_index));
    KILN__TRY(
        check_keys(name, "k", params->k, "k_codes", params->k_codes, params, &args->k_stride, size_log2, &args->wide));
    KILN__TRY(
        check_keys(name, "v", params->v, "v_codes", params->v_codes, params, &args->v_stride, size_log2, &args->wide));
    if (params->kv_tokens)
        KILN__TRY(kiln__packed_check(name, "k_scales", params->k_scales, true, params->kv_heads, args->k_scale_rows));
    KILN__TRY(kiln__packed_check(name, "v_scales", params->v_scales, true, channels, size));
    KILN__TRY(kiln__packed_check(name, "k_means", params->k_means, true, channels, size));
    KILN__TRY(kiln__packed_check(name, "v_means", params->v_means, false, channels, size));
    KILN__TRY(kiln__packed_check(name, "cu_seqlens_k", params->cu_seqlens_k, false, 1, params->batch + 1));
    KILN__TRY(kiln__packed_check(name, "seqlens_k", params->seqlens_k, false, 1, params->batch));
    args->k_codes = params->k_codes;
    args->v_codes = params->v_codes;
    args->k_scales = params->k_scales;
    args->v_scales = params->v_scales;
    args->k_means = params->k_means;
    args->v_means = params->v_means;
    args->k = params->k;
    args->v = params->v;
    args->cu_seqlens_k = params->cu_seqlens_k;
    args->seqlens_k = params->seqlens_k;
    args->kv_tokens = (uint32_t)params->kv_tokens;
    args->batch = (uint32_t)params->batch;
    args->kv_heads = (uint32_t)params->kv_heads;
    return KILN_OK;
}

/* The tiles of a number of tokens. */
static uint64_t tiles_of(uint64_t tokens) {
    return (tokens + KILN_MHA_QUANTIZE_TOKENS - 1) / KILN_MHA_QUANTIZE_TOKENS;
}

/* ---- k and v read once ------------------------------------------------------------------------------------------- */

/* The bytes of mha_quantize_once's counters, at most: a unit has a sequence at least. */
static uint64_t counters_size(const kiln_mha_quantize_params *params) {
    return 4 * (uint64_t)params->batch * (uint64_t)params->kv_heads * sizeof(uint32_t);
}

static uint64_t workspace_of(const kiln_mha_quantize_params *params, const kiln_mha_quantize_args *args) {
    return partials_size(CUT_OF(params), args) + counters_size(params);
}

/* How many sequences of `length` keys a unit has: whole tiles, and no fewer keys than asked for. */
static uint64_t group_of(uint32_t length, uint32_t batch) {
    const uint32_t even = length & -length; /* the greatest power of two that divides it */
    const uint64_t whole = even < KILN_MHA_QUANTIZE_TOKENS ? KILN_MHA_QUANTIZE_TOKENS / even : 1;
    const uint64_t least = ((uint64_t)KILN_MHA_QUANTIZE_UNIT + length - 1) / length;
    const uint64_t group = (least + whole - 1) / whole * whole;
    return group < batch ? group : batch;
}

/* Whether each tile has tokens of one sequence, and they are as mha_quantize_once wants them. */
static bool once_takes(const kiln_mha_quantize_args *args) {
    const uint64_t elements = (uint64_t)args->kv_tokens * args->kv_heads * args->head_dim;
    const bool whole = args->batch == 1 || args->max_seqlen_k % KILN_MHA_QUANTIZE_TOKENS == 0;
    return args->wide && args->head_dim == KILN_MHA_QUANTIZE_ONCE && !args->cu_seqlens_k && !args->seqlens_k && whole &&
           elements > KILN_MHA_QUANTIZE_SMALL;
}

static kiln_divisor divisor_of(uint64_t by) {
    return (kiln_divisor){(uint32_t)by, by > 1 ? (uint32_t)(((1ull << 32) + by - 1) / by) : 0};
}

/* Fills in all but the pointers. *out_items: the blocks of a period. Returns false where these or the
 * counters are too many. */
static bool once_cut(const kiln_mha_quantize_args *args, kiln_mha_quantize_once_args *once, uint64_t *out_items) {
    const uint64_t heads = 2 * (uint64_t)args->kv_heads;
    const uint64_t group = group_of(args->max_seqlen_k, args->batch), keys = group * args->max_seqlen_k;
    const uint64_t units = (args->batch + group - 1) / group * heads;
    const uint64_t tiles = tiles_of(keys), all_queries = tiles_of(args->tokens) * args->heads;
    const uint64_t chunks = group * args->chunks, about = chunks + tiles + all_queries / units;
    uint64_t lag = 1 + (KILN_MHA_QUANTIZE_LAG + about - 1) / about; /* the last of a unit's to the first */
    if (lag > units) lag = units;
    const uint64_t queries = (all_queries + units + lag - 1) / (units + lag);
    const uint64_t fewer = queries < tiles ? queries : tiles, counters = heads * args->batch + units;
    const uint64_t items = chunks + tiles + queries, of_period = args->heads * queries + args->kv_heads;
    *out_items = items;
    if (items > UINT16_MAX || (units + lag) * of_period > UINT32_MAX) return false; /* for the divisors */
    if (counters > KILN_MHA_QUANTIZE_COUNTERS) return false;
    *once = (kiln_mha_quantize_once_args){
        .of = *args,
        .counters = (uint32_t)counters,
        .group = (uint32_t)group,
        .units = (uint32_t)units,
        .heads = divisor_of(args->heads),
        .kv_heads = divisor_of(args->kv_heads),
        .chunks_of_sequence = divisor_of(args->chunks),
        .keys_of_sequence = divisor_of(args->max_seqlen_k),
        .lag = (uint32_t)lag,
        .chunks = {(uint32_t)chunks, divisor_of(items / chunks)},
        .fewer = {(uint32_t)fewer, divisor_of(fewer ? (tiles + queries) / fewer : 1)},
        .tiles = (uint32_t)tiles,
        .queries = (uint32_t)queries,
    };
    return true;
}

/* partials: their bytes. *out_launched: whether the image has the kernels, and the call is one for them. */
static kiln_status launch_once(kiln_stream *stream, unsigned part, const kiln_mha_quantize_args *args,
                               uint64_t partials, const char *name, bool *out_launched) {
    const kiln_module *module;
    KILN__TRY(kiln__operator_require(stream, KILN__OPERATOR_mha_quantize, part, &kiln__bundle_mha_quantize, &module));
    const kiln_kernel *clear = &module->kernels[KERNEL_mha_quantize_clear];
    const kiln_kernel *kernel = &module->kernels[KERNEL_mha_quantize_once];
    kiln_mha_quantize_once_args once;
    kiln_launch_config one, config;
    uint64_t items;
    *out_launched = !kernel->info.absent && once_takes(args) && once_cut(args, &once, &items);
    if (!*out_launched) return KILN_OK;
    once.arrived = (uint32_t *)((char *)args->partials + partials);
    once.joined = once.arrived + 2 * (uint64_t)args->batch * args->kv_heads;
    KILN__TRY(kiln__grid(name, 1, 1, &one));
    KILN__TRY(kiln__grid(name, items, (uint64_t)once.units + once.lag, &config));
    KILN__TRY(kiln__operator_launch(stream, clear, &one, &once, sizeof once));
    return kiln__operator_launch(stream, kernel, &config, &once, sizeof once);
}

static kiln_status mha_quantize(kiln_stream *stream, const kiln_mha_quantize_params *params, unsigned part,
                                const char *name) {
    const unsigned size_log2 = kiln__part_size_log2(part);
    kiln_mha_quantize_args args = {.head_dim = (uint32_t)params->head_dim, .e4m3 = (uint32_t)params->code_type};
    kiln_launch_config channels, join, codes;
    KILN__TRY(check_sizes(name, params));
    const bool queries = !lacks_queries(params), keys = !lacks_keys(params);
    if (KILN__UNLIKELY(!queries && !keys)) return KILN_OK;
    args.wide = params->head_dim % KILN_MHA_QUANTIZE_PIECE == 0;
    args.columns_log2 = columns_log2(params->head_dim);
    if (queries) KILN__TRY(check_queries(name, params, size_log2, &args));
    if (keys) KILN__TRY(check_all_keys(name, params, size_log2, &args));

    bool launched = false;
    const uint64_t longest = args.tokens > args.kv_tokens ? args.tokens : args.kv_tokens;
    const uint64_t heads = (uint64_t)args.batch * args.kv_heads * 2;
    if (keys) {
        KILN__TRY(kiln__grid(name, args.chunks ? args.chunks : 1, heads, &channels));
        KILN__TRY(kiln__grid(name, 1, heads, &join));
        KILN__TRY(kiln__operator_fits(stream, name, &channels));
        if (args.chunks)
            KILN__TRY(
                kiln__workspace_check(name, params->workspace, params->workspace_size, workspace_of(params, &args)));
        args.partials = params->workspace;
    }
    KILN__TRY(kiln__grid(name, args.heads + 2 * (uint64_t)args.kv_heads, tiles_of(longest), &codes));
    KILN__TRY(kiln__operator_fits(stream, name, &codes));
    if (keys && args.chunks)
        KILN__TRY(launch_once(stream, part, &args, partials_size(CUT_OF(params), &args), name, &launched));
    if (launched) return KILN_OK;
    if (keys && args.chunks)
        KILN__TRY(launch(stream, part, KERNEL_mha_quantize_channels, &channels, &args, sizeof args));
    if (keys) KILN__TRY(launch(stream, part, KERNEL_mha_quantize_join, &join, &args, sizeof args));
    return longest ? launch(stream, part, KERNEL_mha_quantize_codes, &codes, &args, sizeof args) : KILN_OK;
}

static kiln_status mha_quantize_workspace_size(kiln_stream *stream, const kiln_mha_quantize_params *params,
                                               unsigned part, const char *name, size_t *out_size) {
    kiln_mha_quantize_args args = {0};
    (void)stream;
    (void)part;
    KILN__TRY(check_sizes(name, params));
    if (lacks_keys(params)) return KILN_OK;
    KILN__TRY(cut(name, CUT_OF(params), &args));
    *out_size = args.chunks ? workspace_of(params, &args) : 0;
    return KILN_OK;
}
