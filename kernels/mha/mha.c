/* mha, host side. */
#include "kernels/common/attention/attention_host.h"
#include "kernels/mha/mha_on_codes.h"

extern const kiln_bundle kiln__bundle_mha;

enum {
#define KILN_KERNEL(name) KERNEL_##name,
#include "kernels/mha/mha.def"
};

static const kiln__attention_operator operator_mha = {
    .number = KILN__OPERATOR_mha,
    .bundle = &kiln__bundle_mha,
    .attend = KERNEL_mha_attend,
    .join = KERNEL_mha_join,
    .tuned = KERNEL_mha_prefill_64,
    .tuned_count = KERNEL_mha_decode_cluster_256 - KERNEL_mha_prefill_64 + 1,
    .split_least = 64,
    .no_masks =
        1u << KERNEL_mha_wgmma_64 | 1u << KERNEL_mha_wgmma_96 | 1u << KERNEL_mha_wgmma_128 | 1u << KERNEL_mha_wgmma_256,
    .only_masks = 1u << KERNEL_mha_wgmma_mask_64 | 1u << KERNEL_mha_wgmma_mask_128,
    .clusters = 1u << KERNEL_mha_decode_cluster_128 | 1u << KERNEL_mha_decode_cluster_256,
};

/* The mask that is added to the scores, of a call whose longest sequences are known. */
static kiln_status read_mask(const char *name, const kiln_mha_params *params, unsigned part, kiln__attention *p) {
    const int64_t sizes[] = {params->mask_batch, params->mask_heads, params->mask_rows, params->mask_cols};
    static const char *const names[] = {"mask_batch", "mask_heads", "mask_rows", "mask_cols"};
    for (int i = 0; i < 4; i++)
        KILN__TRY(kiln__size_check(name, names[i], sizes[i], INT32_MAX));
    if (!params->mask) return KILN_OK;
    int64_t rows;
    KILN__REQUIRE(!params->compute, "%s: mask is %p: must be NULL unless compute is part (0)", name, params->mask);
    KILN__REQUIRE(sizes[0] == 1 || sizes[0] == p->batch, "%s: mask_batch is %lld: must be 1, or batch, which is %lld",
                  name, (long long)sizes[0], (long long)p->batch);
    KILN__REQUIRE(sizes[1] == 1 || sizes[1] == p->heads, "%s: mask_heads is %lld: must be 1, or heads, which is %lld",
                  name, (long long)sizes[1], (long long)p->heads);
    KILN__REQUIRE(sizes[2] >= p->max_seqlen_q,
                  "%s: mask_rows is %lld: must be at least the queries of a sequence, up to %lld", name,
                  (long long)sizes[2], (long long)p->max_seqlen_q);
    KILN__REQUIRE(sizes[3] >= p->max_seqlen_k,
                  "%s: mask_cols is %lld: must be at least the keys of a sequence, up to %lld", name,
                  (long long)sizes[3], (long long)p->max_seqlen_k);
    KILN__REQUIRE(!__builtin_mul_overflow(sizes[0] * sizes[1], sizes[2], &rows),
                  "%s: mask_rows is %lld: is too large for masks of %lld heads", name, (long long)sizes[2],
                  (long long)(sizes[0] * sizes[1]));
    KILN__TRY(kiln__tensor_check(name, "mask", params->mask, rows, sizes[3], sizes[3], kiln__part_size_log2(part)));
    p->args.mask_batch = (uint32_t)sizes[0];
    p->args.mask_heads = (uint32_t)sizes[1];
    p->args.mask_rows = (uint32_t)sizes[2];
    p->args.mask_cols = (uint32_t)sizes[3];
    return KILN_OK;
}

/* The call that params stand for; all but the tensors is checked. */
static kiln_status read_params(const char *name, const kiln_mha_params *params, unsigned part, kiln__attention *p) {
    *p = (kiln__attention){
        KILN__ATTENTION_OF(params),
        .softcap = params->softcap,
        .kv_rows = params->kv_tokens,
        .max_seqlen_k = params->max_seqlen_k,
        .args = {KILN__ATTENTION_ARGS_OF(params), .k = params->k, .v = params->v, .cu_seqlens_k = params->cu_seqlens_k,
                 .mask = params->mask, .k_stride = params->k_stride, .v_stride = params->v_stride,
                 .blocks = (uint32_t)params->kv_tokens},
    };
    KILN__REQUIRE((uint32_t)params->compute <= KILN_MHA_COMPUTE_NVFP4,
                  "%s: compute is %d: must be part (0), int8_x_fp8 (1), fp8 (2) or nvfp4 (3)", name, params->compute);
    KILN__REQUIRE(params->reserved == 0, "%s: reserved is %d: must be 0", name, params->reserved);
    KILN__REQUIRE(!params->compute || params->softcap == 0.0f,
                  "%s: softcap is %g: must be 0 unless compute is part (0)", name, (double)params->softcap);
    KILN__TRY(kiln__attention_sizes_check(name, p));
    KILN__TRY(kiln__size_check(name, "kv_tokens", params->kv_tokens, INT32_MAX));
    if (kiln__attention_is_empty(p)) return KILN_OK;
    KILN__TRY(kiln__attention_check(name, p));
    KILN__TRY(kiln__attention_length(name, "k", "kv_tokens", params->kv_tokens, p->batch, params->cu_seqlens_k,
                                     &p->max_seqlen_k));
    return read_mask(name, params, part, p);
}

static kiln_status mha(kiln_stream *stream, const kiln_mha_params *params, size_t params_size, unsigned part,
                       const char *name) {
    kiln_mha_params copy;
    kiln__attention p;
    KILN__PARAMS(name, params, params_size, &copy);
    KILN__TRY(kiln__stream_check(name, stream));
    KILN__TRY(read_params(name, params, part, &p));
    if (params->compute && !kiln__attention_is_empty(&p)) {
        KILN__TRY(kiln__attention_tensors_check(name, &p, kiln__part_size_log2(part)));
        return on_codes_run(stream, name, params, part);
    }
    return kiln__attention_call(stream, name, &p, part, &operator_mha);
}

static kiln_status mha_workspace(kiln_stream *stream, const kiln_mha_params *params, size_t params_size, unsigned part,
                                 size_t *out_size, const char *name) {
    KILN__REQUIRE(out_size, "%s_workspace_size: out_size is NULL", name);
    *out_size = 0;
    kiln_mha_params copy;
    kiln__attention p;
    KILN__PARAMS(name, params, params_size, &copy);
    KILN__TRY(kiln__stream_check(name, stream));
    KILN__TRY(read_params(name, params, part, &p));
    if (params->compute && !kiln__attention_is_empty(&p)) return on_codes_workspace(stream, params, part, out_size);
    return kiln__attention_workspace(stream, &p, part, &operator_mha, out_size);
}

#define MHA(part, size)                                                                                    \
    KILN__KEPT_OPERATOR_FUNCTION(mha, part)                                                                \
    kiln_status kiln_mha_##part##_workspace_size_sized(kiln_stream *stream, const kiln_mha_params *params, \
                                                       size_t params_size, size_t *out_size) {             \
        return mha_workspace(stream, params, params_size, KILN__PART_##part, out_size, "mha_" #part);      \
    }
KILN__FLOAT_PARTS(MHA)
