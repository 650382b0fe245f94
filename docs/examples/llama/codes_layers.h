/* The layers' operators on codes of one format. quantised.c includes this once for each, with CODES defined as the
 * format's name among operators, fp8 or int8. */
#define CODES_JOIN_OF(before, codes, after) before##codes##after
#define CODES_JOIN(before, codes, after)    CODES_JOIN_OF(before, codes, after)
#define CODES_NAME(name)                    CODES_JOIN(name##_, CODES, )
#define CODES_PARAMS(op)                    CODES_JOIN(kiln_##op##_, CODES, _params)
#define CODES_FUNCTION(op, part)            .op = CODES_JOIN(kiln_##op##_, CODES, _##part##_sized)
#define CODES_FUNCTIONS(part)                                                                          \
    {                                                                                                  \
        CODES_FUNCTION(rmsnorm, part), CODES_FUNCTION(silu_mul, part), CODES_FUNCTION(quantize, part), \
            CODES_FUNCTION(gemm, part)                                                                 \
    }

static const struct {
    kiln_status (*rmsnorm)(kiln_stream *stream, const CODES_PARAMS(rmsnorm) * params, size_t size);
    kiln_status (*silu_mul)(kiln_stream *stream, const CODES_PARAMS(silu_mul) * params, size_t size);
    kiln_status (*quantize)(kiln_stream *stream, const CODES_PARAMS(quantize) * params, size_t size);
    kiln_status (*gemm)(kiln_stream *stream, const CODES_PARAMS(gemm) * params, size_t size);
} CODES_NAME(operators)[] = {
    [LLAMA_F32] = CODES_FUNCTIONS(f32), [LLAMA_F16] = CODES_FUNCTIONS(f16), [LLAMA_BF16] = CODES_FUNCTIONS(bf16)};

static kiln_status CODES_NAME(norm)(const llama_forward *f, kiln_stream *stream, const void *weights, bool add) {
    CODES_PARAMS(rmsnorm)
    params = {.codes = f->quantised->codes,
              .scales = f->quantised->code_scales,
              .sum = add ? f->residual : NULL,
              .x = add ? f->branch : f->residual,
              .residual = add ? f->residual : NULL,
              .weight = weights,
              .rows = f->rows,
              .cols = f->weights->config.size,
              .eps = LLAMA_EPSILON};
    return CODES_NAME(operators)[f->weights->precision].rmsnorm(stream, &params, sizeof params);
}

static kiln_status CODES_NAME(gate)(const llama_forward *f, kiln_stream *stream) {
    CODES_PARAMS(silu_mul)
    params = {.codes = f->quantised->codes,
              .scales = f->quantised->code_scales,
              .gate = f->gate,
              .up = f->up,
              .rows = f->rows,
              .cols = f->weights->config.hidden_size};
    return CODES_NAME(operators)[f->weights->precision].silu_mul(stream, &params, sizeof params);
}

/* A scale for each row of a matrix or of activations. */
static kiln_status CODES_NAME(quantise)(llama_precision precision, kiln_stream *stream, void *codes, float *scales,
                                        const void *x, int64_t rows, int64_t cols) {
    CODES_PARAMS(quantize)
    params = {.codes = codes, .scales = scales, .x = x, .rows = rows, .cols = cols, .scale_rows = rows};
    return CODES_NAME(operators)[precision].quantize(stream, &params, sizeof params);
}

static kiln_status CODES_NAME(attended)(const llama_forward *f, kiln_stream *stream) {
    const struct llama_quantised *q = f->quantised;
    return CODES_NAME(quantise)(f->weights->precision, stream, q->codes, q->code_scales, f->attended, f->rows,
                                f->weights->config.size);
}

static kiln_status CODES_NAME(multiply)(const llama_forward *f, kiln_stream *stream, void *y, const void *x,
                                        size_t number, int32_t layer, int64_t out, int64_t in) {
    (void)x;
    const llama_quantised_array *matrix = &f->quantised->arrays[number];
    CODES_PARAMS(gemm)
    params = {.d = y,
              .a = f->quantised->codes,
              .b = layer_codes(matrix, layer),
              .a_scales = f->quantised->code_scales,
              .b_scales = layer_scales(matrix->scales, matrix, layer),
              .m = f->rows,
              .n = out,
              .k = in};
    return CODES_NAME(operators)[f->weights->precision].gemm(stream, &params, sizeof params);
}

#undef CODES_JOIN_OF
#undef CODES_JOIN
#undef CODES_NAME
#undef CODES_PARAMS
#undef CODES_FUNCTION
#undef CODES_FUNCTIONS
#undef CODES
