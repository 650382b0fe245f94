/* What the host sides of attention to quantised tensors share, those of codes of 8 bits and that of NVFP4: the scales
 * and means that they take, and the grids of their kernels. attention_host.h has how rows and keys are divided among
 * blocks. */
#ifndef KILN_KERNELS_COMMON_ATTENTION_ATTENTION_CODES_CALL_HOST_H
#define KILN_KERNELS_COMMON_ATTENTION_ATTENTION_CODES_CALL_HOST_H

#include "kernels/common/attention/attention_codes_args.h"
#include "kernels/common/attention/attention_host.h"

/* What has the same name in their params: an initialiser of the args. */
#define KILN__ATTENTION_SCALES_OF(params)                                                               \
    .q_scales = (params)->q_scales, .k_scales = (params)->k_scales, .v_scales = (params)->v_scales,     \
    .k_means = (params)->k_means, .v_means = (params)->v_means, .q_scale_rows = (params)->q_scale_rows, \
    .k_scale_rows = (params)->k_scale_rows

/* All tensors but out, q, k and v. */
static inline kiln_status kiln__attention_scales_check(const char *name, const kiln__attention *p,
                                                       const kiln_attention_codes_args *codes) {
    const kiln_attention_args *args = &p->args;
    const int64_t size = p->head_dim, channels = p->batch * p->kv_heads;
    KILN__TRY(kiln__packed_check(name, "q_scales", codes->q_scales, true, p->heads, codes->q_scale_rows));
    if (p->kv_rows)
        KILN__TRY(kiln__packed_check(name, "k_scales", codes->k_scales, true, p->kv_heads, codes->k_scale_rows));
    KILN__TRY(kiln__packed_check(name, "v_scales", codes->v_scales, true, channels, size));
    KILN__TRY(kiln__packed_check(name, "k_means", codes->k_means, false, channels, size));
    KILN__TRY(kiln__packed_check(name, "v_means", codes->v_means, false, channels, size));
    KILN__TRY(kiln__packed_check(name, "lse", args->lse, false, p->heads, p->tokens));
    KILN__TRY(kiln__packed_check(name, "cu_seqlens_q", args->cu_seqlens_q, false, 1, p->batch + 1));
    KILN__TRY(kiln__packed_check(name, "cu_seqlens_k", args->cu_seqlens_k, false, 1, p->batch + 1));
    return kiln__packed_check(name, "seqlens_k", args->seqlens_k, false, 1, p->batch);
}

/* The launch of the blocks that attend, and that of those that join what they leave, where they share keys. */
static inline kiln_status kiln__attention_codes_grids(kiln_stream *stream, const char *name,
                                                      const kiln_attention_args *args, const kiln__attention_plan *way,
                                                      kiln_launch_config *attending, kiln_launch_config *joining) {
    const uint64_t heads = (uint64_t)args->kv_heads * args->group;
    if (args->partials) {
        KILN__TRY(kiln__grid(name, (heads + KILN_ATTENTION_SUBGROUPS - 1) / KILN_ATTENTION_SUBGROUPS,
                             (uint64_t)args->tokens, joining));
        KILN__TRY(kiln__operator_fits(stream, name, joining));
    }
    KILN__TRY(kiln__grid(name, args->row_tiles, (uint64_t)args->batch * args->kv_heads * args->splits, attending));
    attending->block[0] = way->threads;
    attending->dynamic_shared_bytes = way->shared_bytes;
    return KILN_OK;
}

#endif
