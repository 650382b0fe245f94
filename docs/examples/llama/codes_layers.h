/* The operators of codes.h for one format. codes.c includes this once for each, with CODES defined as the format's name
 * among operators, fp8 or int8. */
#define CODES_JOIN_OF(before, codes, after) before##codes##after
#define CODES_JOIN(before, codes, after)    CODES_JOIN_OF(before, codes, after)
#define CODES_NAME(name)                    CODES_JOIN(name##_, CODES, )
#define CODES_PARAMS(op)                    CODES_JOIN(kiln_##op##_, CODES, _params)
#define CODES_FUNCTION(op, part)            .op = CODES_JOIN(kiln_##op##_, CODES, _##part##_sized)
#define CODES_FUNCTIONS(part)                                                                          \
    {                                                                                                  \
        CODES_FUNCTION(rmsnorm, part), CODES_FUNCTION(silu_mul, part), CODES_FUNCTION(quantize, part), \
            CODES_FUNCTION(gemm, part),                                                                \
            .gemm_workspace = CODES_JOIN(kiln_gemm_, CODES, _##part##_workspace_size_sized)            \
    }

static const struct {
    kiln_status (*rmsnorm)(kiln_stream *stream, const CODES_PARAMS(rmsnorm) * params, size_t size);
    kiln_status (*silu_mul)(kiln_stream *stream, const CODES_PARAMS(silu_mul) * params, size_t size);
    kiln_status (*quantize)(kiln_stream *stream, const CODES_PARAMS(quantize) * params, size_t size);
    kiln_status (*gemm)(kiln_stream *stream, const CODES_PARAMS(gemm) * params, size_t size);
    kiln_status (*gemm_workspace)(kiln_stream *stream, const CODES_PARAMS(gemm) * params, size_t size,
                                  size_t *out_size);
} CODES_NAME(functions)[] = {
    [LLAMA_F32] = CODES_FUNCTIONS(f32), [LLAMA_F16] = CODES_FUNCTIONS(f16), [LLAMA_BF16] = CODES_FUNCTIONS(bf16)};

static kiln_status CODES_NAME(norm)(kiln_stream *stream, llama_precision precision, const llama_codes_norm *norm) {
    const CODES_PARAMS(rmsnorm) params = {.codes = norm->to.codes,
                                          .scales = norm->to.scales,
                                          .sum = norm->sum,
                                          .x = norm->x,
                                          .residual = norm->residual,
                                          .weight = norm->weight,
                                          .rows = norm->rows,
                                          .cols = norm->cols,
                                          .eps = LLAMA_EPSILON};
    return CODES_NAME(functions)[precision].rmsnorm(stream, &params, sizeof params);
}

static kiln_status CODES_NAME(gate)(kiln_stream *stream, llama_precision precision, const llama_codes_gate *gate) {
    const CODES_PARAMS(silu_mul) params = {.codes = gate->to.codes,
                                           .scales = gate->to.scales,
                                           .gate = gate->gate,
                                           .up = gate->up,
                                           .rows = gate->rows,
                                           .cols = gate->cols};
    return CODES_NAME(functions)[precision].silu_mul(stream, &params, sizeof params);
}

static kiln_status CODES_NAME(quantise)(kiln_stream *stream, llama_precision precision, llama_codes to, const void *x,
                                        int64_t rows, int64_t cols) {
    const CODES_PARAMS(quantize)
        params = {.codes = to.codes, .scales = to.scales, .x = x, .rows = rows, .cols = cols, .scale_rows = rows};
    return CODES_NAME(functions)[precision].quantize(stream, &params, sizeof params);
}

static CODES_PARAMS(gemm) CODES_NAME(product)(const llama_codes_product *product) {
    return (CODES_PARAMS(gemm)){.d = product->d,
                                .a = product->x.codes,
                                .b = product->matrix.codes,
                                .a_scales = product->x.scales,
                                .b_scales = product->matrix.scales,
                                .m = product->rows,
                                .n = product->out,
                                .k = product->in,
                                .workspace = product->workspace,
                                .workspace_size = product->workspace_size};
}

static kiln_status CODES_NAME(multiply)(kiln_stream *stream, llama_precision precision,
                                        const llama_codes_product *product) {
    const CODES_PARAMS(gemm) params = CODES_NAME(product)(product);
    return CODES_NAME(functions)[precision].gemm(stream, &params, sizeof params);
}

static kiln_status CODES_NAME(workspace_size)(kiln_stream *stream, llama_precision precision,
                                              const llama_codes_product *product, size_t *out) {
    const CODES_PARAMS(gemm) params = CODES_NAME(product)(product);
    return CODES_NAME(functions)[precision].gemm_workspace(stream, &params, sizeof params, out);
}

const llama_codes_operators CODES_NAME(llama_codes) = {.norm = CODES_NAME(norm),
                                                       .gate = CODES_NAME(gate),
                                                       .quantise = CODES_NAME(quantise),
                                                       .multiply = CODES_NAME(multiply),
                                                       .workspace_size = CODES_NAME(workspace_size)};

#undef CODES_JOIN_OF
#undef CODES_JOIN
#undef CODES_NAME
#undef CODES_PARAMS
#undef CODES_FUNCTION
#undef CODES_FUNCTIONS
#undef CODES
