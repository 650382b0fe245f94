#include "quantised.h"
#include "groups.h"
#include "try.h"
#include <kiln/ops.h>
#include <kiln/w4a16.h>
#include <stdlib.h>

/* The arrays that are quantised. */
static const size_t numbers[] = {LLAMA_query, LLAMA_key, LLAMA_value, LLAMA_out, LLAMA_gate, LLAMA_down, LLAMA_up};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

const char *llama_quantisation_name(llama_quantisation quantisation) {
    static const char *const names[] = {
        [LLAMA_AS_THEY_ARE] = "none", [LLAMA_W4A16] = "w4a16", [LLAMA_FP8] = "fp8", [LLAMA_INT8] = "int8"};
    return names[quantisation];
}

static void *layer_codes(const llama_quantised_array *array, int32_t layer) {
    return (char *)array->codes + (size_t)layer * array->codes_size;
}
/* Of an array's scales, or of its zeros. */
static void *layer_scales(void *scales, const llama_quantised_array *array, int32_t layer) {
    return (char *)scales + (size_t)layer * array->scales_size;
}

/* ---- W4A16 ---- */

static kiln_status multiply_w4a16(const llama_forward *f, kiln_stream *stream, void *y, const void *x, size_t number,
                                  int32_t layer, int64_t out, int64_t in) {
    static kiln_status (*const gemms[])(kiln_stream *, const kiln_gemm_w4a16_params *, size_t) = {
        [LLAMA_F32] = kiln_gemm_w4a16_f32_sized,
        [LLAMA_F16] = kiln_gemm_w4a16_f16_sized,
        [LLAMA_BF16] = kiln_gemm_w4a16_bf16_sized,
    };
    const llama_quantised_array *matrix = &f->quantised->arrays[number];
    kiln_gemm_w4a16_params params = {.d = y,
                                     .a = x,
                                     .weights = layer_codes(matrix, layer),
                                     .scales = layer_scales(matrix->scales, matrix, layer),
                                     .zeros = layer_scales(matrix->zeros, matrix, layer),
                                     .m = f->rows,
                                     .n = out,
                                     .k = in,
                                     .group = matrix->group,
                                     .weight_layout = matrix->layout};
    return gemms[f->weights->precision](stream, &params, sizeof params);
}

/* Whether bf16 takes the layout too is asked of its own image: that of sm_75 does not. */
kiln_status llama_w4a16_layout_of(kiln_stream *stream, llama_precision precision, int64_t n, int64_t k, int32_t *out) {
    kiln_w4a16_layout layout = KILN_W4A16_CANONICAL;
    if (precision != LLAMA_F32 && n % 16 == 0 && k % 64 == 0) TRY(kiln_w4a16_layout_of(stream, &layout));
    if (precision == LLAMA_BF16 && layout) {
        const kiln_gemm_w4a16_params params = {.m = 1, .n = n, .k = k, .weight_layout = (int32_t)layout};
        size_t size;
        if (kiln_gemm_w4a16_bf16_workspace_size(stream, &params, &size)) layout = KILN_W4A16_CANONICAL;
    }
    *out = (int32_t)layout;
    return KILN_OK;
}

/* A layer's matrix on the host: integers as they were found, and in the device's layout; scales, then zeros. */
typedef struct host_matrix {
    uint8_t *weights, *packed;
    char *scales, *zeros;
} host_matrix;

static kiln_status load_layers_w4a16(kiln_stream *stream, const llama_weight *weight, llama_precision precision,
                                     const host_matrix *host, llama_quantised_array *array) {
    const int64_t n = (int64_t)weight->rows, k = (int64_t)weight->cols;
    for (int32_t layer = 0; layer < (int32_t)weight->layers; layer++) {
        const float *matrix = weight->values + (size_t)layer * weight->rows * weight->cols;
        llama_groups_quantise(matrix, n, k, precision, host->weights, host->scales, host->zeros);
        TRY(kiln_w4a16_repack((kiln_w4a16_layout)array->layout, n, k, host->weights, host->packed));
        TRY(kiln_copy(stream, layer_codes(array, layer), host->packed, array->codes_size, KILN_COPY_TO_DEVICE));
        TRY(kiln_copy(stream, layer_scales(array->scales, array, layer), host->scales, array->scales_size,
                      KILN_COPY_TO_DEVICE));
        TRY(kiln_copy(stream, layer_scales(array->zeros, array, layer), host->zeros, array->scales_size,
                      KILN_COPY_TO_DEVICE));
        TRY(kiln_stream_sync(stream));
    }
    return KILN_OK;
}

static kiln_status load_w4a16(kiln_stream *stream, const llama_weight *weight, const llama_weights *weights,
                              llama_quantised_array *array) {
    const int64_t n = (int64_t)weight->rows, k = (int64_t)weight->cols;
    void *host;
    array->group = llama_group_of(k);
    array->codes_size = (size_t)(n * k / 2);
    array->scales_size = (size_t)(n * (k / array->group)) * weights->element;
    TRY(llama_w4a16_layout_of(stream, weights->precision, n, k, &array->layout));
    TRY(kiln_memory_alloc(stream->device, array->codes_size * weight->layers, &array->codes));
    TRY(kiln_memory_alloc(stream->device, array->scales_size * weight->layers, &array->scales));
    TRY(kiln_memory_alloc(stream->device, array->scales_size * weight->layers, &array->zeros));
    TRY(kiln_host_alloc(stream->device, 2 * (array->codes_size + array->scales_size), &host));
    char *scales = host; /* the one whose elements have more than a byte first */
    const host_matrix matrix = {.scales = scales,
                                .zeros = scales + array->scales_size,
                                .weights = (uint8_t *)scales + 2 * array->scales_size,
                                .packed = (uint8_t *)scales + 2 * array->scales_size + array->codes_size};
    kiln_status status = load_layers_w4a16(stream, weight, weights->precision, &matrix, array);
    kiln_host_free(stream->device, host);
    return status;
}

/* ---- FP8 and INT8 ---- */

/* A layer's matrix. */
static llama_codes layer_matrix(const llama_quantised_array *array, int32_t layer) {
    return (llama_codes){layer_codes(array, layer), layer_scales(array->scales, array, layer)};
}

kiln_status llama_quantised_norm(const llama_forward *f, kiln_stream *stream, const void *weights, bool add) {
    const llama_codes_norm norm = {.to = f->quantised->activations,
                                   .sum = add ? f->residual : NULL,
                                   .x = add ? f->branch : f->residual,
                                   .residual = add ? f->residual : NULL,
                                   .weight = weights,
                                   .rows = f->rows,
                                   .cols = f->weights->config.size};
    return f->quantised->operators->norm(stream, f->weights->precision, &norm);
}

kiln_status llama_quantised_gate(const llama_forward *f, kiln_stream *stream) {
    const llama_codes_gate gate = {.to = f->quantised->activations,
                                   .gate = f->gate,
                                   .up = f->up,
                                   .rows = f->rows,
                                   .cols = f->weights->config.hidden_size};
    return f->quantised->operators->gate(stream, f->weights->precision, &gate);
}

kiln_status llama_quantised_attended(const llama_forward *f, kiln_stream *stream) {
    const struct llama_quantised *q = f->quantised;
    return q->operators->quantise(stream, f->weights->precision, q->activations, f->attended, f->rows,
                                  f->weights->config.size);
}

kiln_status llama_quantised_multiply(const llama_forward *f, kiln_stream *stream, void *y, const void *x, size_t number,
                                     int32_t layer, int64_t out, int64_t in) {
    const struct llama_quantised *q = f->quantised;
    if (!q->operators) return multiply_w4a16(f, stream, y, x, number, layer, out, in);
    const llama_codes_product product = {.d = y,
                                         .x = q->activations,
                                         .matrix = layer_matrix(&q->arrays[number], layer),
                                         .rows = f->rows,
                                         .out = out,
                                         .in = in};
    return q->operators->multiply(stream, f->weights->precision, &product);
}

static kiln_status load_layers_of_codes(kiln_stream *stream, const llama_weight *weight,
                                        const llama_codes_operators *operators, const llama_weights *weights,
                                        void *staging, llama_quantised_array *array) {
    const size_t count = weight->rows * weight->cols;
    for (int32_t layer = 0; layer < (int32_t)weight->layers; layer++) {
        TRY(llama_weights_put(stream, weights, staging, weight->values + (size_t)layer * count, count));
        TRY(operators->quantise(stream, weights->precision, layer_matrix(array, layer), staging, (int64_t)weight->rows,
                                (int64_t)weight->cols));
    }
    return kiln_stream_sync(stream);
}

static kiln_status load_codes(kiln_stream *stream, const llama_weight *weight, const llama_codes_operators *operators,
                              const llama_weights *weights, llama_quantised_array *array) {
    void *staging;
    array->codes_size = weight->rows * weight->cols;
    array->scales_size = weight->rows * sizeof(float);
    TRY(kiln_memory_alloc(stream->device, array->codes_size * weight->layers, &array->codes));
    TRY(kiln_memory_alloc(stream->device, array->scales_size * weight->layers, &array->scales));
    TRY(kiln_memory_alloc(stream->device, array->codes_size * weights->element, &staging));
    kiln_status status = load_layers_of_codes(stream, weight, operators, weights, staging, array);
    kiln_memory_free(stream->device, staging);
    return status;
}

/* ---- Life ---- */

uint32_t llama_quantised_set(llama_quantisation quantisation) {
    uint32_t set = 0;
    for (size_t i = 0; i < NUMBERS && quantisation != LLAMA_AS_THEY_ARE; i++)
        set |= 1u << numbers[i];
    return set;
}

/* The codes of activations, and the operators on them. */
static kiln_status take_operators(kiln_stream *stream, llama_quantisation quantisation, const llama_config *c,
                                  int64_t rows, struct llama_quantised *q) {
    void *scales;
    if (quantisation == LLAMA_W4A16) return KILN_OK;
    q->operators = quantisation == LLAMA_FP8 ? &llama_codes_fp8 : &llama_codes_int8;
    const int64_t most = c->hidden_size > c->size ? c->hidden_size : c->size;
    TRY(kiln_memory_alloc(stream->device, (size_t)(rows * most), &q->activations.codes));
    TRY(kiln_memory_alloc(stream->device, (size_t)rows * sizeof(float), &scales));
    q->activations.scales = scales;
    return KILN_OK;
}

kiln_status llama_quantised_create(kiln_stream *stream, const llama_checkpoint *checkpoint,
                                   llama_quantisation quantisation, const llama_weights *weights, int64_t rows,
                                   struct llama_quantised **out) {
    *out = NULL;
    if (quantisation == LLAMA_AS_THEY_ARE) return KILN_OK;
    struct llama_quantised *q = *out = calloc(1, sizeof *q);
    if (!q) return KILN_ERROR_OUT_OF_MEMORY;
    TRY(take_operators(stream, quantisation, &checkpoint->config, rows, q));
    for (size_t i = 0; i < NUMBERS; i++) {
        const llama_weight *weight = &checkpoint->weights[numbers[i]];
        llama_quantised_array *array = &q->arrays[numbers[i]];
        TRY(q->operators ? load_codes(stream, weight, q->operators, weights, array)
                         : load_w4a16(stream, weight, weights, array));
    }
    return KILN_OK;
}

void llama_quantised_destroy(kiln_device *device, struct llama_quantised *q) {
    if (!q) return;
    for (size_t i = 0; i < LLAMA_WEIGHT_COUNT; i++) {
        kiln_memory_free(device, q->arrays[i].codes);
        kiln_memory_free(device, q->arrays[i].scales);
        kiln_memory_free(device, q->arrays[i].zeros);
    }
    kiln_memory_free(device, q->activations.codes);
    kiln_memory_free(device, q->activations.scales);
    free(q);
}
