/* The host sides of mha_int8_x_fp8_fwd and mha_fp8_fwd, whose params have the same fields and which have the same
 * kernels. Included after operator.h. */
#include "kernels/common/attention/attention_codes_call_host.h"
#include "kernels/common/attention/attention_codes_mapped_args.h"
#include "kernels/common/attention/attention_scales_host.h"

#define CODES_KERNEL(kernel) KILN__JOIN(KERNEL_, KILN_HOST, _##kernel)

enum {
    KERNELS = 0
#define KILN_KERNEL(name) +1
#include KILN__ROWS
};

extern const kiln_bundle KILN__JOIN(kiln__bundle_, KILN_HOST, );

static const kiln__attention_operator attention_operator = {
    .number = KILN__JOIN(KILN__OPERATOR_, KILN_HOST, ),
    .bundle = &KILN__JOIN(kiln__bundle_, KILN_HOST, ),
    .attend = CODES_KERNEL(attend),
    .join = CODES_KERNEL(join),
    .tuned = CODES_KERNEL(join) + 1,
    .tuned_count = KERNELS - CODES_KERNEL(join) - 1,
};

/* The call that params describe. Everything but the tensors is checked. */
static kiln_status read_params(const char *name, const KILN__HOST_PARAMS *params, kiln__attention *p,
                               kiln_attention_codes_args *args) {
    *p = (kiln__attention){
        KILN__ATTENTION_OF(params),
        .max_seqlen_k = params->max_seqlen_k,
        .kv_rows = params->kv_tokens,
        .args = {KILN__ATTENTION_ARGS_OF(params), .k = params->k, .v = params->v, .cu_seqlens_k = params->cu_seqlens_k,
                 .k_stride = params->k_stride, .v_stride = params->v_stride, .blocks = (uint32_t)params->kv_tokens},
    };
    *args = (kiln_attention_codes_args){KILN__ATTENTION_SCALES_OF(params)};
    KILN__REQUIRE(params->reserved == 0, "%s: reserved is %d: must be 0", name, params->reserved);
    KILN__TRY(kiln__attention_sizes_check(name, p));
    KILN__TRY(kiln__size_check(name, "kv_tokens", params->kv_tokens, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "q_scale_rows", params->q_scale_rows, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "k_scale_rows", params->k_scale_rows, INT32_MAX));
    if (kiln__attention_is_empty(p)) return KILN_OK;
    KILN__TRY(kiln__attention_check(name, p));
    KILN__TRY(kiln__q_scale_index(name, p->tokens, &args->q_scale_rows, &args->q_index));
    KILN__TRY(kiln__k_scale_index(name, params->kv_tokens, &args->k_scale_rows, &args->k_index));
    return kiln__attention_length(name, "k", "kv_tokens", params->kv_tokens, p->batch, params->cu_seqlens_k,
                                  &p->max_seqlen_k);
}

static kiln_status check_tensors(const char *name, kiln__attention *p, const kiln_attention_codes_args *codes,
                                 unsigned size_log2) {
    kiln_attention_args *args = &p->args;
    const int64_t size = p->head_dim;
    KILN__TRY(kiln__heads_check(name, "out", args->out, p->tokens, p->heads, size, &args->out_stride, size_log2));
    KILN__TRY(kiln__heads_check(name, "q", args->q, p->tokens, p->heads, size, &args->q_stride, 0));
    if (p->kv_rows) {
        KILN__TRY(kiln__heads_check(name, "k", args->k, p->kv_rows, p->kv_heads, size, &args->k_stride, 0));
        KILN__TRY(kiln__heads_check(name, "v", args->v, p->kv_rows, p->kv_heads, size, &args->v_stride, 0));
    }
    KILN__TRY(kiln__attention_scales_check(name, p, codes));
    args->wide =
        kiln__rows_wide((uintptr_t)args->k | (uintptr_t)args->v, p->kv_rows, args->k_stride | args->v_stride, 0) &
        kiln__rows_wide(0, p->kv_heads, size, 0);
    p->aligned = args->wide && size % KILN_VECTOR_BYTES == 0 &&
                 kiln__rows_wide((uintptr_t)args->q, p->tokens, args->q_stride, 0) &&
                 kiln__rows_wide((uintptr_t)args->out, p->tokens, args->out_stride, size_log2);
    return KILN_OK;
}

/* As kiln__attention_divide_keys, for partial results with one number more. */
static uint64_t divide_keys(kiln__attention *p, const kiln__attention_plan *way) {
    uint64_t size = kiln__attention_divide_keys(p, way);
    return size ? size + p->args.splits * (uint64_t)p->tokens * (uint64_t)p->heads * sizeof(float) : 0;
}

static kiln_status divide_keys_in(const char *name, kiln__attention *p, const kiln__attention_plan *way) {
    uint64_t needed = divide_keys(p, way);
    if (!needed) return KILN_OK;
    KILN__TRY(kiln__workspace_check(name, p->workspace, p->workspace_size, needed));
    p->args.partials = p->workspace;
    return KILN_OK;
}

/* A kernel that copies k and v by tensor maps. */
static kiln_status launch_mapped(kiln_stream *stream, const kiln_kernel *kernel, const kiln_launch_config *config,
                                 const kiln__attention *p, const kiln_attention_codes_args *codes) {
    const kiln__tensor_layout layouts[] = {kiln__attention_layout(p, p->args.k, p->args.k_stride, 1),
                                           kiln__attention_layout(p, p->args.v, p->args.v_stride, 1)};
    kiln_attention_codes_mapped_args args = {.codes = *codes};
    KILN__TRY(kiln__tensor_maps_encode(kernel, layouts, &args));
    return kiln__call_launch(stream, kernel, config, &args, sizeof args);
}

static kiln_status launch_all(kiln_stream *stream, const char *name, const kiln__attention *p,
                              const kiln_attention_codes_args *args, const kiln__attention_plan *way,
                              const kiln_kernel *join) {
    const kiln_attention_args *plain = &args->plain;
    kiln_launch_config config, joining;
    KILN__TRY(kiln__attention_codes_grids(stream, name, plain, way, &config, &joining));
    if (kiln__tensor_map_count(&way->kernel->info))
        KILN__TRY(launch_mapped(stream, way->kernel, &config, p, args));
    else
        KILN__TRY(kiln__call_launch(stream, way->kernel, &config, args, sizeof *args));
    if (!plain->partials) return KILN_OK;
    return kiln__call_launch(stream, join, &joining, plain, sizeof *plain);
}

static kiln_status KILN_HOST(kiln_stream *stream, const KILN__HOST_PARAMS *params, unsigned part, const char *name) {
    kiln__attention p;
    kiln_attention_codes_args args;
    KILN__TRY(read_params(name, params, &p, &args));
    if (KILN__UNLIKELY(kiln__attention_is_empty(&p))) return KILN_OK;
    KILN__TRY(check_tensors(name, &p, &args, kiln__part_size_log2(part)));
    const kiln_module *module;
    KILN__TRY(kiln__operator_require(stream, attention_operator.number, part, attention_operator.bundle, &module));
    kiln__attention_arguments(&p);
    kiln__attention_plan way = kiln__attention_plan_of(&p, &attention_operator, module, p.aligned);
    kiln__attention_divide_rows(&p, &way);
    if (p.workspace || p.workspace_size) KILN__TRY(divide_keys_in(name, &p, &way));
    args.plain = p.args;
    return launch_all(stream, name, &p, &args, &way, &module->kernels[CODES_KERNEL(join)]);
}

static kiln_status KILN__JOIN(, KILN_HOST, _workspace_size)(kiln_stream *stream, const KILN__HOST_PARAMS *params,
                                                            unsigned part, const char *name, size_t *out_size) {
    kiln__attention p;
    kiln_attention_codes_args args;
    const kiln_module *module;
    KILN__TRY(read_params(name, params, &p, &args));
    if (kiln__attention_is_empty(&p)) return KILN_OK;
    KILN__TRY(kiln__operator_require(stream, attention_operator.number, part, attention_operator.bundle, &module));
    kiln__attention_arguments(&p);
    for (int aligned = 0; aligned <= 1; aligned++) { /* enough in either case */
        kiln__attention_plan way = kiln__attention_plan_of(&p, &attention_operator, module, aligned);
        kiln__attention_divide_rows(&p, &way);
        uint64_t size = divide_keys(&p, &way);
        if (size > *out_size) *out_size = size;
    }
    return KILN_OK;
}
