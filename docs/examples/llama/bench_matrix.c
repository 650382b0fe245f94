#include "bench_matrix.h"
#include "forward.h"
#include "groups.h"
#include "half.h"
#include "try.h"
#include <kiln/w4a16.h>
#include <math.h>
#include <stdlib.h>

/* ---- The pattern ---- */

/* Elements: of the pattern of which all weights are, so that no matrix of a power of two repeats itself in its rows,
 * and between the places in it at which one kind of matrix and the next begin. */
enum { PATTERN = (8 << 20) - 8, BEGINS = 8, BEGIN_STEP = 4096, PATTERN_ROOM = PATTERN + BEGINS * BEGIN_STEP };

static void put_element(void *to, size_t index, float value, llama_precision precision) {
    if (precision == LLAMA_F32) ((float *)to)[index] = value;
    if (precision == LLAMA_F16) ((uint16_t *)to)[index] = to_f16(value);
    if (precision == LLAMA_BF16) ((uint16_t *)to)[index] = to_bf16(value);
}

static float get_element(const void *from, size_t index, llama_precision precision) {
    if (precision == LLAMA_F16) return from_f16(((const uint16_t *)from)[index]);
    if (precision == LLAMA_BF16) return from_bf16(((const uint16_t *)from)[index]);
    return ((const float *)from)[index];
}

kiln_status bench_pattern_make(const bench_format *f, int32_t size, void **out) {
    const float largest = sqrtf(3 / (float)size);
    uint64_t state = 1;
    TRY(kiln_host_alloc(f->stream->device, PATTERN_ROOM * f->element, out));
    for (size_t i = 0; i < PATTERN_ROOM; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        put_element(*out, i, largest * ((float)(uint32_t)(state >> 40) * 0x1p-23f - 1), f->precision);
    }
    return KILN_OK;
}

void bench_pattern_fill(const bench_format *f, void *pattern) {
    for (size_t i = 0; i < PATTERN_ROOM; i++)
        put_element(pattern, i, 1, f->precision);
}

/* Repeats the pattern in so many bytes of the device. */
static kiln_status repeat(const bench_format *f, const void *pattern, void *to, uint64_t size) {
    const uint64_t all = PATTERN * f->element;
    for (uint64_t done = 0; done < size; done += all) {
        const uint64_t some = size - done < all ? size - done : all;
        TRY(kiln_copy(f->stream, (char *)to + done, pattern, some, KILN_COPY_TO_DEVICE));
    }
    return KILN_OK;
}

/* ---- Making ---- */

static void *at(void *memory, int64_t layer, uint64_t size) {
    return (char *)memory + (uint64_t)layer * size;
}

static kiln_status make_plain(const bench_format *f, bench_memory *memory, const void *pattern, bench_matrix *m) {
    m->values_size = (uint64_t)(m->out * m->in) * f->element;
    TRY(bench_allocate(memory, (uint64_t)m->layers * m->values_size, &m->values));
    return repeat(f, pattern, m->values, (uint64_t)m->layers * m->values_size);
}

static kiln_status make_codes(const bench_format *f, bench_memory *memory, const void *pattern, bench_matrix *m) {
    const uint64_t elements = (uint64_t)(m->out * m->in);
    void *staging;
    m->values_size = elements;
    m->scales_size = (uint64_t)m->out * sizeof(float);
    TRY(bench_allocate(memory, (uint64_t)m->layers * m->values_size, &m->values));
    TRY(bench_allocate(memory, (uint64_t)m->layers * m->scales_size, &m->scales));
    TRY(kiln_memory_alloc(f->stream->device, elements * f->element, &staging));
    kiln_status status = repeat(f, pattern, staging, elements * f->element);
    for (int64_t layer = 0; layer < m->layers && status == KILN_OK; layer++) {
        const llama_codes to = {at(m->values, layer, m->values_size), at(m->scales, layer, m->scales_size)};
        status = f->operators->quantise(f->stream, f->precision, to, staging, m->out, m->in);
    }
    const kiln_status done = kiln_stream_sync(f->stream);
    kiln_memory_free(f->stream->device, staging);
    return status == KILN_OK ? done : status;
}

/* Quantises a layer's matrix on the host, in the device's layout, and copies it to all layers: packed integers, then
 * scales, then zeros. */
static kiln_status fill_w4a16(const bench_format *f, const void *pattern, const bench_matrix *m, float *elements,
                              uint8_t *canonical, uint8_t *packed) {
    uint8_t *scales = packed + m->values_size, *zeros = scales + m->scales_size;
    const int64_t count = m->out * m->in;
    for (int64_t i = 0; i < count; i++)
        elements[i] = get_element(pattern, (size_t)(i % PATTERN), f->precision);
    llama_groups_quantise(elements, m->out, m->in, f->precision, canonical, scales, zeros);
    TRY(kiln_w4a16_repack((kiln_w4a16_layout)m->layout, m->out, m->in, canonical, packed));
    for (int64_t layer = 0; layer < m->layers; layer++) {
        TRY(kiln_copy(f->stream, at(m->values, layer, m->values_size), packed, m->values_size, KILN_COPY_TO_DEVICE));
        TRY(kiln_copy(f->stream, at(m->scales, layer, m->scales_size), scales, m->scales_size, KILN_COPY_TO_DEVICE));
        TRY(kiln_copy(f->stream, at(m->zeros, layer, m->scales_size), zeros, m->scales_size, KILN_COPY_TO_DEVICE));
    }
    return KILN_OK;
}

static kiln_status make_w4a16(const bench_format *f, bench_memory *memory, const void *pattern, bench_matrix *m) {
    kiln_device *device = f->stream->device;
    void *packed;
    m->group = llama_group_of(m->in);
    m->values_size = (uint64_t)(m->out * m->in / 2);
    m->scales_size = (uint64_t)(m->out * (m->in / m->group)) * f->element;
    TRY(llama_w4a16_layout_of(f->stream, f->precision, m->out, m->in, &m->layout));
    TRY(bench_allocate(memory, (uint64_t)m->layers * m->values_size, &m->values));
    TRY(bench_allocate(memory, (uint64_t)m->layers * m->scales_size, &m->scales));
    TRY(bench_allocate(memory, (uint64_t)m->layers * m->scales_size, &m->zeros));
    TRY(kiln_host_alloc(device, m->values_size + 2 * m->scales_size, &packed));
    float *elements = malloc((size_t)(m->out * m->in) * sizeof *elements);
    uint8_t *canonical = malloc(m->values_size);
    kiln_status status = KILN_ERROR_OUT_OF_MEMORY;
    if (elements && canonical) status = fill_w4a16(f, pattern, m, elements, canonical, packed);
    const kiln_status done = kiln_stream_sync(f->stream);
    free(elements);
    free(canonical);
    kiln_host_free(device, packed);
    return status == KILN_OK ? done : status;
}

kiln_status bench_matrix_make(const bench_format *f, bench_memory *memory, const void *pattern, bool is_quantised,
                              bench_matrix *m) {
    const char *begin = (const char *)pattern + memory->count % BEGINS * BEGIN_STEP * f->element;
    m->format = f;
    m->is_quantised = is_quantised && f->quantisation != LLAMA_AS_THEY_ARE;
    if (!m->is_quantised) return make_plain(f, memory, begin, m);
    return f->operators ? make_codes(f, memory, begin, m) : make_w4a16(f, memory, begin, m);
}

uint64_t bench_matrix_bytes(const bench_matrix *m) {
    return (uint64_t)m->layers * (m->values_size + (m->zeros ? 2 : 1) * m->scales_size);
}

/* ---- Products ---- */

static kiln_gemm_params plain_product(const bench_matrix *m, int64_t layer, const bench_activations *a, void *d) {
    return (kiln_gemm_params){.d = d,
                              .a = a->x,
                              .b = at(m->values, layer, m->values_size),
                              .c = a->added,
                              .batch = 1,
                              .m = a->rows,
                              .n = a->is_gated ? m->out / 2 : m->out,
                              .k = m->in,
                              .workspace = a->workspace,
                              .workspace_size = a->workspace_size,
                              .activation = a->is_gated ? KILN_GEMM_SILU : KILN_GEMM_NONE,
                              .norm_weight = a->norm_weight,
                              .norm_eps = LLAMA_EPSILON,
                              .gated = a->is_gated};
}

static llama_codes_product codes_product(const bench_matrix *m, int64_t layer, const bench_activations *a, void *d) {
    return (llama_codes_product){.d = d,
                                 .x = a->codes,
                                 .matrix = {at(m->values, layer, m->values_size), at(m->scales, layer, m->scales_size)},
                                 .rows = a->rows,
                                 .out = m->out,
                                 .in = m->in,
                                 .workspace = a->workspace,
                                 .workspace_size = a->workspace_size};
}

static kiln_gemm_w4a16_params w4a16_product(const bench_matrix *m, int64_t layer, const bench_activations *a, void *d) {
    return (kiln_gemm_w4a16_params){.d = d,
                                    .a = a->x,
                                    .weights = at(m->values, layer, m->values_size),
                                    .scales = at(m->scales, layer, m->scales_size),
                                    .zeros = at(m->zeros, layer, m->scales_size),
                                    .m = a->rows,
                                    .n = a->is_gated ? m->out / 2 : m->out,
                                    .k = m->in,
                                    .group = m->group,
                                    .workspace = a->workspace,
                                    .workspace_size = a->workspace_size,
                                    .weight_layout = m->layout,
                                    .c = a->added,
                                    .norm_weight = a->norm_weight,
                                    .norm_eps = LLAMA_EPSILON,
                                    .activation = a->is_gated ? KILN_GEMM_SILU : KILN_GEMM_NONE,
                                    .gated = a->is_gated};
}

kiln_status bench_matrix_multiply(const bench_matrix *m, int64_t layer, const bench_activations *a, void *d) {
    const bench_format *f = m->format;
    if (!m->is_quantised) {
        const kiln_gemm_params params = plain_product(m, layer, a, d);
        return f->run->gemm(f->stream, &params, sizeof params);
    }
    if (f->operators) {
        const llama_codes_product product = codes_product(m, layer, a, d);
        return f->operators->multiply(f->stream, f->precision, &product);
    }
    const kiln_gemm_w4a16_params params = w4a16_product(m, layer, a, d);
    return f->run->gemm_w4a16(f->stream, &params, sizeof params);
}

kiln_status bench_matrix_workspace(const bench_matrix *m, const bench_activations *a, size_t *out) {
    const bench_format *f = m->format;
    if (!m->is_quantised) {
        const kiln_gemm_params params = plain_product(m, 0, a, m->values);
        return f->run->gemm_workspace(f->stream, &params, sizeof params, out);
    }
    if (f->operators) {
        const llama_codes_product product = codes_product(m, 0, a, m->values);
        return f->operators->workspace_size(f->stream, f->precision, &product, out);
    }
    const kiln_gemm_w4a16_params params = w4a16_product(m, 0, a, m->values);
    return f->run->gemm_w4a16_workspace(f->stream, &params, sizeof params, out);
}
