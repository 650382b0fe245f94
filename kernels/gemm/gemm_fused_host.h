/* gemm, host side, of calls that normalise the rows of a, gate the result, or both: by one kernel, or by a launch that
 * normalises, and another that gates where no kernel does, by way of the workspace.
 *
 * Included once, by gemm.c. */

static kiln_status gemm(kiln_stream *stream, const kiln_gemm_params *params, size_t params_size, unsigned part,
                        const char *name);
static kiln_status gemm_workspace(kiln_stream *stream, const kiln_gemm_params *params, size_t params_size,
                                  unsigned part, size_t *out_size, const char *name);

static bool is_fused(const kiln_gemm_params *params) {
    return (params->norm_weight && params->k) || params->gated;
}

static kiln_status check_fused(const char *name, const kiln_gemm_params *params) {
    const float eps = params->norm_eps;
    KILN__REQUIRE(eps == 0.0f || (eps >= 1e-30f && eps <= 1e30f), "%s: norm_eps is %g: must be 0 or from 1e-30 to 1e30",
                  name, (double)eps);
    KILN__REQUIRE((uint32_t)params->gated <= 1, "%s: gated is %d: must be no (0) or yes (1)", name, params->gated);
    KILN__REQUIRE(!params->gated || !params->c, "%s: c is given: must be NULL if gated", name);
    KILN__REQUIRE(!params->gated || params->n <= INT32_MAX / 2, "%s: n is %lld: must be at most %d if gated", name,
                  (long long)params->n, INT32_MAX / 2);
    return KILN_OK;
}

/* The kernel that does the call in one launch, if there is one. Where matrix units do few rows, but not these, several
 * launches with them are taken for faster than f32 arithmetic: f16 with norm_weight, whose products with a overflow. */
static rows_kernel fused_kernel_of(const kiln_gemm_params *params, const kiln_module *module, uint32_t wide) {
    const bool normed = params->norm_weight && params->k;
    const unsigned first = normed ? KERNEL_gemm_mma_norm_8 : KERNEL_gemm_mma_gated_8;
    const unsigned last = normed ? KERNEL_gemm_mma_norm_16 : KERNEL_gemm_mma_gated_16;
    rows_kernel few = rows_kernel_of(params, module, wide, first, last, KERNEL_gemm_rows_fused);
    if (!few.resident && plain_rows_kernel_of(params, module, wide).resident) few.kernel = NULL;
    if (few.resident) few.row_sums++; /* of its squares */
    if (params->gated) few.columns /= 2;
    return few;
}

/* The bytes of a packed tensor in the workspace, added to *bytes. */
static kiln_status add_packed(const char *name, const char *tensor, const kiln_gemm_params *params, int64_t cols,
                              unsigned size_log2, uint64_t *bytes) {
    enum { MASK = KILN_VECTOR_BYTES - 1 };
    uint64_t count;
    bool overflow = __builtin_mul_overflow((uint64_t)params->m * (uint64_t)params->batch, (uint64_t)cols, &count) ||
                    count > INT64_MAX >> 4;
    KILN__REQUIRE(!overflow, "%s: %s is too large: %lld matrices of %lld x %lld", name, tensor,
                  (long long)params->batch, (long long)params->m, (long long)cols);
    *bytes += ((count << size_log2) + MASK) & ~(uint64_t)MASK;
    return KILN_OK;
}

/* The call that is left when a launch normalises the rows of a first, or else one gates the product: what it reads from
 * that launch, or leaves to it, lies at the workspace's beginning, and the rest is its own workspace. */
static kiln_status next_call(kiln_stream *stream, const kiln_gemm_params *params, unsigned part, const char *name,
                             kiln_gemm_params *next, uint64_t *out_size) {
    const unsigned size_log2 = kiln__part_size_log2(part);
    char *workspace = params->workspace; /* NULL: the size alone is asked for */
    uint64_t bytes = 0;
    size_t own;
    *next = *params;
    if (params->norm_weight && params->k) {
        next->norm_weight = NULL;
        next->a = workspace;
        next->a_stride = next->a_batch_stride = 0;
        KILN__TRY(add_packed(name, "a", params, params->k, size_log2, &bytes));
    } else {
        next->gated = 0;
        next->n *= 2;
        next->activation = KILN_GEMM_NONE;
        next->d = workspace;
        next->d_stride = next->d_batch_stride = 0;
        KILN__TRY(add_packed(name, "d", params, next->n, size_log2, &bytes));
    }
    KILN__TRY(gemm_workspace(stream, next, sizeof *next, part, &own, name));
    next->workspace = workspace && own ? workspace + bytes : NULL;
    next->workspace_size = own;
    *out_size = bytes + own;
    return KILN_OK;
}

/* Enough for the call, whether its tensors are aligned or not; 0 if one kernel does it either way. */
static kiln_status fused_workspace(kiln_stream *stream, const kiln_gemm_params *params, const kiln_module *module,
                                   unsigned part, bool may_be_wide, size_t *out_size, const char *name) {
    kiln_gemm_params next;
    for (uint32_t wide = 0; wide <= may_be_wide; wide++)
        if (!fused_kernel_of(params, module, wide).kernel)
            return next_call(stream, params, part, name, &next, out_size);
    return KILN_OK;
}

/* A launch that normalises before the call that is left, or gates after it. */
static kiln_status launch_stages(kiln_stream *stream, const kiln_gemm_params *params, const kiln_module *module,
                                 kiln_gemm_fused_args *args, unsigned part, const char *name) {
    const unsigned size_log2 = kiln__part_size_log2(part);
    const uint32_t vector = KILN_VECTOR_BYTES >> size_log2;
    const bool normed = args->norm_weight;
    const kiln_kernel *kernel = &module->kernels[normed ? KERNEL_gemm_norm : KERNEL_gemm_gate];
    const uint64_t tiles = normed ? 1 : tiles_of(params->n, KILN_BLOCK * vector);
    kiln_gemm_params next;
    uint64_t needed;
    kiln_launch_config config;
    KILN__TRY(next_call(stream, params, part, name, &next, &needed));
    KILN__TRY(kiln__workspace_check(name, params->workspace, params->workspace_size, needed));
    KILN__TRY(kiln__grid(name, tiles, (uint64_t)params->m * (uint64_t)params->batch, &config));
    kiln__plan_take(kernel, normed ? "normalises the rows of a first" : "gates the product");
    args->packed = params->workspace;
    if (normed) {
        args->plain.wide &= params->k % vector == 0;
        KILN__TRY(kiln__call_launch(stream, kernel, &config, args, sizeof *args));
        return gemm(stream, &next, sizeof next, part, name);
    }
    const int64_t strides = args->plain.d_stride | args->plain.d_batch_stride;
    args->plain.wide = params->n % vector == 0 && kiln__rows_wide((uintptr_t)params->d, 2, strides, size_log2);
    KILN__TRY(gemm(stream, &next, sizeof next, part, name));
    return kiln__call_launch(stream, kernel, &config, args, sizeof *args);
}

static kiln_status launch_fused(kiln_stream *stream, const kiln_gemm_params *params, const kiln_module *module,
                                const kiln_gemm_args *plain, unsigned part, const char *name) {
    const bool normed = params->norm_weight && params->k;
    kiln_gemm_fused_args args = {.plain = *plain,
                                 .norm_weight = normed ? params->norm_weight : NULL,
                                 .mean = normed ? 1.0f / (float)params->k : 0.0f,
                                 .eps = params->norm_eps == 0.0f ? 1e-6f : params->norm_eps,
                                 .halves = (uint32_t)params->gated};
    args.plain.wide &= normed ? kiln__rows_wide((uintptr_t)params->norm_weight, 1, 0, kiln__part_size_log2(part)) : 1;
    const rows_kernel few = fused_kernel_of(params, module, args.plain.wide);
    if (!few.kernel) return launch_stages(stream, params, module, &args, part, name);
    kiln__plan_take(few.kernel, "is for so few rows");
    return launch_rows(stream, &few, plain, &args, sizeof args, name);
}
