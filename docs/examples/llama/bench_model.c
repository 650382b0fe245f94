#include "bench_model.h"
#include "try.h"
#include <string.h>

static const double THETA = 500000;

const bench_shape *bench_shape_find(const char *name) {
    static const bench_shape shapes[] = {
#define BENCH_SHAPE(name, size, hidden, layers, heads, kv_heads, head_dim, vocabulary, tied) \
    {name, size, hidden, layers, heads, kv_heads, head_dim, vocabulary, tied},
#include "bench_shapes.def"
#undef BENCH_SHAPE
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (!strcmp(shapes[i].name, name)) return &shapes[i];
    return NULL;
}

/* ---- Weights ---- */

static kiln_status make_matrices(bench_model *m, void *pattern) {
    const bench_shape *s = m->shape;
    const bench_format *f = &m->format;
    m->embedding = m->classifier = (bench_matrix){.layers = 1, .out = s->vocabulary, .in = s->size};
    m->qkv = (bench_matrix){.layers = s->layers, .out = bench_heads_size(s), .in = s->size};
    m->out = (bench_matrix){.layers = s->layers, .out = s->size, .in = bench_query_size(s)};
    m->gate_up = (bench_matrix){.layers = s->layers, .out = 2 * (int64_t)s->hidden, .in = s->size};
    m->down = (bench_matrix){.layers = s->layers, .out = s->size, .in = s->hidden};
    m->ones = (bench_matrix){.layers = 1, .out = 1, .in = s->size};
    TRY(bench_matrix_make(f, &m->memory, pattern, false, &m->embedding));
    if (s->tied)
        m->classifier = m->embedding;
    else
        TRY(bench_matrix_make(f, &m->memory, pattern, false, &m->classifier));
    TRY(bench_matrix_make(f, &m->memory, pattern, true, &m->qkv));
    TRY(bench_matrix_make(f, &m->memory, pattern, true, &m->out));
    TRY(bench_matrix_make(f, &m->memory, pattern, true, &m->gate_up));
    TRY(bench_matrix_make(f, &m->memory, pattern, true, &m->down));
    TRY(kiln_stream_sync(f->stream));
    bench_pattern_fill(f, pattern);
    TRY(bench_matrix_make(f, &m->memory, pattern, false, &m->ones));
    return kiln_stream_sync(f->stream);
}

static kiln_status make_weights(bench_model *m) {
    const bench_format *f = &m->format;
    void *pattern;
    TRY(bench_pattern_make(f, m->shape->size, &pattern));
    const kiln_status status = make_matrices(m, pattern);
    if (status != KILN_OK) kiln_stream_sync(f->stream); /* a copy may still read the pattern */
    kiln_host_free(f->stream->device, pattern);
    return status;
}

static kiln_status make_frequencies(bench_model *m) {
    const int64_t pairs = m->shape->head_dim / 2;
    const size_t size = (size_t)pairs * sizeof *m->frequencies;
    void *memory, *host;
    TRY(bench_allocate(&m->memory, size, &memory));
    m->frequencies = memory;
    TRY(kiln_host_alloc(m->format.stream->device, size, &host));
    kiln_status status = kiln_rope_frequencies(THETA, NULL, pairs, host);
    if (status == KILN_OK) status = kiln_copy(m->format.stream, memory, host, size, KILN_COPY_TO_DEVICE);
    if (status == KILN_OK) status = kiln_stream_sync(m->format.stream);
    kiln_host_free(m->format.stream->device, host);
    return status;
}

kiln_status bench_load_kernels(const bench_model *m, const char *const *names) {
    const kiln_bundle *const *bundles;
    const kiln_module *module;
    size_t count;
    TRY(kiln_linked_bundles(&bundles, &count));
    for (; *names; names++)
        for (size_t i = 0; i < count; i++)
            if (!strcmp(bundles[i]->name, *names))
                TRY(kiln_module_get(m->format.stream->device, bundles[i], llama_precision_name(m->format.precision),
                                    &module));
    return KILN_OK;
}

/* Before the weights: a device without an image is known soon. */
static kiln_status load_kernels(const bench_model *m) {
    static const char *const always[] = {"embedding",     "rmsnorm", "add_rmsnorm", "gemm",   "rope", "kv_store",
                                         "rope_kv_store", "mha",     "silu_mul",    "argmax", NULL};
    static const char *const quantised[][5] = {
        [LLAMA_AS_THEY_ARE] = {NULL},
        [LLAMA_W4A16] = {"gemm_w4a16"},
        [LLAMA_FP8] = {"rmsnorm_fp8", "silu_mul_fp8", "quantize_fp8", "gemm_fp8"},
        [LLAMA_INT8] = {"rmsnorm_int8", "silu_mul_int8", "quantize_int8", "gemm_int8"}};
    TRY(bench_load_kernels(m, always));
    return bench_load_kernels(m, quantised[m->format.quantisation]);
}

kiln_status bench_model_open(kiln_stream *stream, const bench_shape *shape, llama_precision precision,
                             llama_quantisation quantisation, bench_model *out) {
    static const llama_codes_operators *const operators[] = {[LLAMA_AS_THEY_ARE] = NULL,
                                                             [LLAMA_W4A16] = NULL,
                                                             [LLAMA_FP8] = &llama_codes_fp8,
                                                             [LLAMA_INT8] = &llama_codes_int8};
    *out = (bench_model){.format = {.stream = stream,
                                    .precision = precision,
                                    .element = precision == LLAMA_F32 ? sizeof(float) : sizeof(uint16_t),
                                    .quantisation = quantisation,
                                    .run = bench_operations_of(precision),
                                    .operators = operators[quantisation]},
                         .shape = shape,
                         .memory = {.device = stream->device}};
    TRY(load_kernels(out));
    TRY(make_frequencies(out));
    return make_weights(out);
}

void bench_model_close(bench_model *m) {
    bench_free(&m->memory);
}

/* ---- What a pass costs ---- */

uint64_t bench_weight_bytes(const bench_model *m) {
    const bench_matrix *const matrices[] = {&m->qkv, &m->out, &m->gate_up, &m->down, &m->classifier};
    uint64_t sum = 0;
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++)
        sum += bench_matrix_bytes(matrices[i]);
    return sum;
}

/* Elements of a layer's matrices. */
static int64_t layer_elements(const bench_shape *s) {
    return s->size * (bench_heads_size(s) + bench_query_size(s) + 3 * (int64_t)s->hidden);
}

double bench_prefill_operations(const bench_model *m, int64_t tokens) {
    const bench_shape *s = m->shape;
    const double pairs = 0.5 * (double)tokens * (double)(tokens + 1); /* of a query and a key that it sees */
    return 2 * (double)s->layers *
               ((double)tokens * (double)layer_elements(s) + 2 * pairs * (double)bench_query_size(s)) +
           2 * (double)s->vocabulary * s->size;
}
