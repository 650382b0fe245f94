/* mha, host side. */
#include "kernels/common/attention_host.h"
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
    .tuned_count = KERNEL_mha_decode_256 - KERNEL_mha_prefill_64 + 1,
};

/* The call that params stand for; all but the tensors is checked. */
static kiln_status read_params(const char *name, const kiln_mha_params *params, kiln__attention *p) {
    *p = (kiln__attention){
        KILN__ATTENTION_OF(params),
        .kv_rows = params->kv_tokens,
        .max_seqlen_k = params->max_seqlen_k,
        .args = {KILN__ATTENTION_ARGS_OF(params), .k = params->k, .v = params->v, .cu_seqlens_k = params->cu_seqlens_k,
                 .k_stride = params->k_stride, .v_stride = params->v_stride, .blocks = (uint32_t)params->kv_tokens},
    };
    KILN__REQUIRE((uint32_t)params->compute <= KILN_MHA_COMPUTE_FP8,
                  "%s: compute is %d: must be part (0), int8_x_fp8 (1) or fp8 (2)", name, params->compute);
    KILN__REQUIRE(params->reserved == 0, "%s: reserved is %d: must be 0", name, params->reserved);
    KILN__REQUIRE(!params->compute || params->softcap == 0.0f, "%s: softcap is %g: must be 0 with compute", name,
                  (double)params->softcap);
    KILN__TRY(kiln__attention_sizes_check(name, p));
    KILN__TRY(kiln__size_check(name, "kv_tokens", params->kv_tokens, INT32_MAX));
    if (kiln__attention_is_empty(p)) return KILN_OK;
    KILN__TRY(kiln__attention_check(name, p));
    return kiln__attention_length(name, "k", "kv_tokens", params->kv_tokens, p->batch, params->cu_seqlens_k,
                                  &p->max_seqlen_k);
}

static kiln_status mha(kiln_stream *stream, const kiln_mha_params *params, size_t params_size, unsigned part,
                       const char *name) {
    kiln_mha_params copy;
    kiln__attention p;
    KILN__PARAMS(name, params, params_size, &copy);
    KILN__TRY(kiln__stream_check(name, stream));
    KILN__TRY(read_params(name, params, &p));
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
    KILN__TRY(read_params(name, params, &p));
    if (params->compute && !kiln__attention_is_empty(&p)) return on_codes_workspace(stream, params, part, out_size);
    return kiln__attention_workspace(stream, &p, part, &operator_mha, out_size);
}

#define MHA(part, size)                                                                                    \
    KILN__OPERATOR_FUNCTION(mha, part)                                                                     \
    kiln_status kiln_mha_##part##_workspace_size_sized(kiln_stream *stream, const kiln_mha_params *params, \
                                                       size_t params_size, size_t *out_size) {             \
        return mha_workspace(stream, params, params_size, KILN__PART_##part, out_size, "mha_" #part);      \
    }
KILN__FLOAT_PARTS(MHA)
