#include "bench_model.h"
#include "half.h"
#include "try.h"
#include <kiln/ops.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double THETA = 500000;
static const float EPSILON = 1e-5f;

struct bench_operations {
#define OPERATION(name) kiln_status (*name)(kiln_stream * stream, const kiln_##name##_params *params, size_t size);
    BENCH_OPERATIONS(OPERATION)
#undef OPERATION
    kiln_status (*gemm_workspace)(kiln_stream *stream, const kiln_gemm_params *params, size_t size, size_t *out_size);
    kiln_status (*mha_workspace)(kiln_stream *stream, const kiln_mha_params *params, size_t size, size_t *out_size);
    kiln_status (*argmax_workspace)(kiln_stream *stream, const kiln_argmax_params *params, size_t size,
                                    size_t *out_size);
};

#define OPERATION_f32(name)  .name = kiln_##name##_f32_sized,
#define OPERATION_f16(name)  .name = kiln_##name##_f16_sized,
#define OPERATION_bf16(name) .name = kiln_##name##_bf16_sized,
static const bench_operations precisions[] = {
    [LLAMA_F32] = {BENCH_OPERATIONS(OPERATION_f32).gemm_workspace = kiln_gemm_f32_workspace_size_sized,
                   .mha_workspace = kiln_mha_f32_workspace_size_sized,
                   .argmax_workspace = kiln_argmax_f32_workspace_size_sized},
    [LLAMA_F16] = {BENCH_OPERATIONS(OPERATION_f16).gemm_workspace = kiln_gemm_f16_workspace_size_sized,
                   .mha_workspace = kiln_mha_f16_workspace_size_sized,
                   .argmax_workspace = kiln_argmax_f16_workspace_size_sized},
    [LLAMA_BF16] = {BENCH_OPERATIONS(OPERATION_bf16).gemm_workspace = kiln_gemm_bf16_workspace_size_sized,
                    .mha_workspace = kiln_mha_bf16_workspace_size_sized,
                    .argmax_workspace = kiln_argmax_bf16_workspace_size_sized},
};

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

/* ---- Memory ---- */

kiln_status bench_allocate(bench_memory *memory, uint64_t size, void **out) {
    *out = NULL;
    if (memory->count == BENCH_BLOCKS) abort();
    TRY(kiln_memory_alloc(memory->device, size, out));
    memory->blocks[memory->count++] = *out;
    return KILN_OK;
}

void bench_free(bench_memory *memory) {
    while (memory->count)
        kiln_memory_free(memory->device, memory->blocks[--memory->count]);
}

/* Bytes of so many elements of the model's precision. */
static uint64_t bytes_of(const bench_model *m, int64_t rows, int64_t cols) {
    return (uint64_t)rows * (uint64_t)cols * m->element;
}

static int64_t heads_size(const bench_shape *s) { /* of queries, keys and values */
    return (int64_t)(s->heads + 2 * s->kv_heads) * s->head_dim;
}
static int64_t query_size(const bench_shape *s) {
    return (int64_t)s->heads * s->head_dim;
}
static int64_t key_size(const bench_shape *s) {
    return (int64_t)s->kv_heads * s->head_dim;
}

/* ---- Weights ---- */

/* Elements: of the pattern of which all weights are, so that no matrix of a power of two repeats itself in its rows,
 * and between the places in it at which one kind of matrix and the next begin. */
enum { PATTERN = (8 << 20) - 8, BEGIN_STEP = 4096, PATTERN_ROOM = PATTERN + 8 * BEGIN_STEP };

static void put_element(void *to, size_t index, float value, llama_precision precision) {
    if (precision == LLAMA_F32) ((float *)to)[index] = value;
    if (precision == LLAMA_F16) ((uint16_t *)to)[index] = to_f16(value);
    if (precision == LLAMA_BF16) ((uint16_t *)to)[index] = to_bf16(value);
}

/* Uniform numbers with which products of normed rows have a variance of about 1. */
static void make_pattern(void *pattern, int32_t size, llama_precision precision) {
    const float largest = sqrtf(3 / (float)size);
    uint64_t state = 1;
    for (size_t i = 0; i < PATTERN_ROOM; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        put_element(pattern, i, largest * ((float)(uint32_t)(state >> 40) * 0x1p-23f - 1), precision);
    }
}

/* Allocates a matrix of every layer and repeats the pattern in it. */
static kiln_status make_matrices(bench_model *m, const void *pattern, int64_t layers, int64_t rows, int64_t cols,
                                 void **out) {
    const uint64_t size = bytes_of(m, layers * rows, cols), all = PATTERN * m->element;
    const char *begin = (const char *)pattern + m->memory.count % 8 * BEGIN_STEP * m->element;
    TRY(bench_allocate(&m->memory, size, out));
    for (uint64_t done = 0; done < size; done += all) {
        const uint64_t some = size - done < all ? size - done : all;
        TRY(kiln_copy(m->stream, (char *)*out + done, begin, some, KILN_COPY_TO_DEVICE));
    }
    return KILN_OK;
}

static kiln_status make_weights(bench_model *m, void *pattern) {
    const bench_shape *s = m->shape;
    make_pattern(pattern, s->size, m->precision);
    TRY(make_matrices(m, pattern, 1, s->vocabulary, s->size, &m->embedding));
    m->classifier = m->embedding;
    if (!s->tied) TRY(make_matrices(m, pattern, 1, s->vocabulary, s->size, &m->classifier));
    TRY(make_matrices(m, pattern, s->layers, heads_size(s), s->size, &m->qkv));
    TRY(make_matrices(m, pattern, s->layers, s->size, query_size(s), &m->out));
    TRY(make_matrices(m, pattern, s->layers, 2 * (int64_t)s->hidden, s->size, &m->gate_up));
    TRY(make_matrices(m, pattern, s->layers, s->size, s->hidden, &m->down));
    TRY(kiln_stream_sync(m->stream));
    for (size_t i = 0; i < PATTERN_ROOM; i++)
        put_element(pattern, i, 1, m->precision);
    TRY(make_matrices(m, pattern, 1, 1, s->size, &m->ones));
    return kiln_stream_sync(m->stream);
}

static kiln_status make_frequencies(bench_model *m) {
    const int64_t pairs = m->shape->head_dim / 2;
    const size_t size = (size_t)pairs * sizeof *m->frequencies;
    void *memory, *host;
    TRY(bench_allocate(&m->memory, size, &memory));
    m->frequencies = memory;
    TRY(kiln_host_alloc(m->stream->device, size, &host));
    kiln_status status = kiln_rope_frequencies(THETA, NULL, pairs, host);
    if (status == KILN_OK) status = kiln_copy(m->stream, memory, host, size, KILN_COPY_TO_DEVICE);
    if (status == KILN_OK) status = kiln_stream_sync(m->stream);
    kiln_host_free(m->stream->device, host);
    return status;
}

/* Before the weights: a device without an image is known soon, and a capture loads nothing. */
static kiln_status load_kernels(const bench_model *m) {
    static const char *const names[] = {
#define OPERATION(name) #name,
        BENCH_OPERATIONS(OPERATION)
#undef OPERATION
    };
    const kiln_bundle *const *bundles;
    const kiln_module *module;
    size_t count;
    TRY(kiln_linked_bundles(&bundles, &count));
    for (size_t i = 0; i < count; i++)
        for (size_t name = 0; name < sizeof names / sizeof *names; name++)
            if (!strcmp(bundles[i]->name, names[name]))
                TRY(kiln_module_get(m->stream->device, bundles[i], llama_precision_name(m->precision), &module));
    return KILN_OK;
}

kiln_status bench_model_open(kiln_stream *stream, const bench_shape *shape, llama_precision precision,
                             bench_model *out) {
    *out = (bench_model){.stream = stream,
                         .shape = shape,
                         .precision = precision,
                         .element = precision == LLAMA_F32 ? sizeof(float) : sizeof(uint16_t),
                         .run = &precisions[precision],
                         .memory = {.device = stream->device}};
    void *pattern;
    TRY(load_kernels(out));
    TRY(make_frequencies(out));
    TRY(kiln_host_alloc(stream->device, PATTERN_ROOM * out->element, &pattern));
    const kiln_status status = make_weights(out, pattern);
    if (status != KILN_OK) kiln_stream_sync(stream); /* a copy may still read the pattern */
    kiln_host_free(stream->device, pattern);
    return status;
}

void bench_model_close(bench_model *m) {
    bench_free(&m->memory);
}

/* Elements of a layer's matrices. */
static int64_t layer_elements(const bench_shape *s) {
    return s->size * (heads_size(s) + query_size(s) + 3 * (int64_t)s->hidden);
}

uint64_t bench_weight_bytes(const bench_model *m) {
    const bench_shape *s = m->shape;
    return bytes_of(m, s->layers, layer_elements(s)) + bytes_of(m, s->vocabulary, s->size);
}

double bench_prefill_operations(const bench_model *m, int64_t tokens) {
    const bench_shape *s = m->shape;
    const double pairs = 0.5 * (double)tokens * (double)(tokens + 1); /* of a query and a key that it sees */
    return 2 * (double)s->layers * ((double)tokens * (double)layer_elements(s) + 2 * pairs * (double)query_size(s)) +
           2 * (double)s->vocabulary * s->size;
}

/* ---- Passes ---- */

/* Tokens on their way through the layers. */
typedef struct pass {
    bench_batch *batch;
    int64_t rows;
    const int32_t *tokens, *positions;
    const int64_t *slots;
    const int32_t *lengths; /* of each sequence in the cache; NULL: the rows are one sequence, and see no cache */
} pass;

static kiln_status multiply(const bench_batch *b, void *d, const void *x, const void *weights, int64_t layer,
                            int64_t rows, int64_t out, int64_t in) {
    const bench_model *m = b->model;
    const kiln_gemm_params params = {.d = d,
                                     .a = x,
                                     .b = (const char *)weights + bytes_of(m, layer * out, in),
                                     .batch = 1,
                                     .m = rows,
                                     .n = out,
                                     .k = in,
                                     .workspace = b->workspace,
                                     .workspace_size = b->workspace_size};
    return m->run->gemm(m->stream, &params, sizeof params);
}

static kiln_mha_params attention(const pass *p, int64_t layer) {
    const bench_batch *b = p->batch;
    const bench_model *m = b->model;
    const bench_shape *s = m->shape;
    const int64_t room = b->batch * (b->prompt + b->steps), stride = heads_size(s);
    const char *heads = b->heads;
    kiln_mha_params params = {.out = b->attended,
                              .q = heads,
                              .k = heads + bytes_of(m, 1, query_size(s)),
                              .v = heads + bytes_of(m, 1, query_size(s) + key_size(s)),
                              .tokens = p->rows,
                              .kv_tokens = p->rows,
                              .batch = 1,
                              .heads = s->heads,
                              .kv_heads = s->kv_heads,
                              .head_dim = s->head_dim,
                              .q_stride = stride,
                              .k_stride = stride,
                              .v_stride = stride,
                              .workspace = b->workspace,
                              .workspace_size = b->workspace_size,
                              .causal = 1};
    if (!p->lengths) return params;
    params.k = (const char *)b->key_cache + bytes_of(m, layer * room, key_size(s));
    params.v = (const char *)b->value_cache + bytes_of(m, layer * room, key_size(s));
    params.seqlens_k = p->lengths;
    params.kv_tokens = room;
    params.batch = b->batch;
    params.k_stride = params.v_stride = 0;
    return params;
}

static kiln_status attend(const pass *p, int64_t layer) {
    const bench_batch *b = p->batch;
    const bench_model *m = b->model;
    const bench_shape *s = m->shape;
    const int64_t room = b->batch * (b->prompt + b->steps), stride = heads_size(s);
    char *heads = b->heads;
    TRY(multiply(b, heads, b->normed, m->qkv, layer, p->rows, stride, s->size));
    const kiln_rope_params rope = {.y = heads,
                                   .x = heads,
                                   .positions = p->positions,
                                   .frequencies = m->frequencies,
                                   .tokens = p->rows,
                                   .heads = s->heads + s->kv_heads,
                                   .pairs = s->head_dim / 2,
                                   .y_stride = stride,
                                   .x_stride = stride};
    TRY(m->run->rope(m->stream, &rope, sizeof rope));
    const kiln_kv_store_params store = {.key_cache = (char *)b->key_cache + bytes_of(m, layer * room, key_size(s)),
                                        .value_cache = (char *)b->value_cache + bytes_of(m, layer * room, key_size(s)),
                                        .key = heads + bytes_of(m, 1, query_size(s)),
                                        .value = heads + bytes_of(m, 1, query_size(s) + key_size(s)),
                                        .slot_mapping = p->slots,
                                        .tokens = p->rows,
                                        .cols = key_size(s),
                                        .capacity = room,
                                        .key_stride = stride,
                                        .value_stride = stride,
                                        .index_type = KILN_INDEX_I64};
    TRY(m->run->kv_store(m->stream, &store, sizeof store));
    const kiln_mha_params mha = attention(p, layer);
    TRY(m->run->mha(m->stream, &mha, sizeof mha));
    return multiply(b, b->branch, b->attended, m->out, layer, p->rows, s->size, query_size(s));
}

static kiln_status feed_forward(const pass *p, int64_t layer) {
    const bench_batch *b = p->batch;
    const bench_model *m = b->model;
    const bench_shape *s = m->shape;
    TRY(multiply(b, b->gates, b->normed, m->gate_up, layer, p->rows, 2 * (int64_t)s->hidden, s->size));
    const kiln_silu_mul_params params = {.y = b->hidden, .gate = b->gates, .rows = p->rows, .cols = s->hidden};
    TRY(m->run->silu_mul(m->stream, &params, sizeof params));
    return multiply(b, b->branch, b->hidden, m->down, layer, p->rows, s->size, s->hidden);
}

static kiln_status add_and_norm(const pass *p) {
    const bench_batch *b = p->batch;
    const kiln_add_rmsnorm_params params = {.y = b->normed,
                                            .sum = b->residual,
                                            .x = b->branch,
                                            .residual = b->residual,
                                            .weight = b->model->ones,
                                            .rows = p->rows,
                                            .cols = b->model->shape->size,
                                            .eps = EPSILON};
    return b->model->run->add_rmsnorm(b->model->stream, &params, sizeof params);
}

static kiln_status record_layers(const pass *p) {
    const bench_batch *b = p->batch;
    const bench_model *m = b->model;
    const bench_shape *s = m->shape;
    const kiln_embedding_params embedding = {.y = b->residual,
                                             .table = m->embedding,
                                             .ids = p->tokens,
                                             .rows = p->rows,
                                             .cols = s->size,
                                             .vocabulary = s->vocabulary};
    const kiln_rmsnorm_params norm = {
        .y = b->normed, .x = b->residual, .weight = m->ones, .rows = p->rows, .cols = s->size, .eps = EPSILON};
    TRY(m->run->embedding(m->stream, &embedding, sizeof embedding));
    TRY(m->run->rmsnorm(m->stream, &norm, sizeof norm));
    for (int32_t layer = 0; layer < s->layers; layer++) {
        TRY(attend(p, layer));
        TRY(add_and_norm(p));
        TRY(feed_forward(p, layer));
        TRY(add_and_norm(p));
    }
    return KILN_OK;
}

/* The most likely tokens behind rows of normed. */
static kiln_status record_choice(const bench_batch *b, const void *normed, int64_t rows, int32_t *tokens) {
    const bench_model *m = b->model;
    const bench_shape *s = m->shape;
    TRY(multiply(b, b->logits, normed, m->classifier, 0, rows, s->vocabulary, s->size));
    const kiln_argmax_params params = {.y = tokens,
                                       .x = b->logits,
                                       .rows = rows,
                                       .cols = s->vocabulary,
                                       .workspace = b->workspace,
                                       .workspace_size = b->workspace_size};
    return m->run->argmax(m->stream, &params, sizeof params);
}

static pass prefill_pass(bench_batch *b) {
    return (pass){b, b->prompt, b->prompt_tokens, b->prompt_positions, b->prompt_slots, NULL};
}

static kiln_status record_prefill(void *batch) {
    bench_batch *b = batch;
    const pass p = prefill_pass(b);
    TRY(record_layers(&p));
    const void *last = (const char *)b->normed + bytes_of(b->model, b->prompt - 1, b->model->shape->size);
    return record_choice(b, last, 1, b->first);
}

/* slots, positions, lengths */
static uint64_t state_bytes(const bench_batch *b) {
    return (uint64_t)b->batch * (sizeof(int64_t) + 2 * sizeof(int32_t));
}

static pass decode_pass(bench_batch *b) {
    const int64_t *slots = b->now;
    const int32_t *positions = (const int32_t *)(slots + b->batch);
    return (pass){b, b->batch, b->tokens, positions, slots, positions + b->batch};
}

static kiln_status record_decode(void *batch) {
    bench_batch *b = batch;
    const pass p = decode_pass(b);
    TRY(record_layers(&p));
    return record_choice(b, b->normed, b->batch, b->tokens);
}

static kiln_status launch(bench_batch *b, llama_graph **graph, kiln_status (*record)(void *batch)) {
    if (*graph && llama_graph_launch(*graph, b->model->stream)) return KILN_OK;
    llama_graph_destroy(*graph); /* one that the driver does not launch: the calls will say why */
    *graph = NULL;
    return record(b);
}

kiln_status bench_prefill(bench_batch *b) {
    return launch(b, &b->prefill, record_prefill);
}

kiln_status bench_spread(bench_batch *b) {
    const bench_model *m = b->model;
    const uint64_t one = bytes_of(m, b->prompt + b->steps, key_size(m->shape));
    const uint64_t used = bytes_of(m, b->prompt, key_size(m->shape));
    for (int64_t i = 0; i < (int64_t)m->shape->layers * b->batch; i++) {
        const uint64_t from = (uint64_t)(i / b->batch * b->batch) * one, to = (uint64_t)i * one;
        if (from == to) continue;
        TRY(kiln_copy(m->stream, (char *)b->key_cache + to, (char *)b->key_cache + from, used, KILN_COPY_ON_DEVICE));
        TRY(kiln_copy(m->stream, (char *)b->value_cache + to, (char *)b->value_cache + from, used,
                      KILN_COPY_ON_DEVICE));
    }
    for (int64_t i = 1; i < b->batch; i++)
        TRY(kiln_copy(m->stream, b->first + i, b->first, sizeof *b->first, KILN_COPY_ON_DEVICE));
    return KILN_OK;
}

kiln_status bench_decode(bench_batch *b, int64_t steps) {
    kiln_stream *stream = b->model->stream;
    TRY(kiln_copy(stream, b->tokens, b->first, (size_t)b->batch * sizeof *b->tokens, KILN_COPY_ON_DEVICE));
    for (int64_t i = 0; i < steps; i++) {
        const char *state = (const char *)b->schedule + (uint64_t)i * state_bytes(b);
        TRY(kiln_copy(stream, b->now, state, state_bytes(b), KILN_COPY_ON_DEVICE));
        TRY(launch(b, &b->decode, record_decode));
    }
    return KILN_OK;
}

/* ---- A batch ---- */

static kiln_status allocate(bench_batch *b) {
    const bench_model *m = b->model;
    const bench_shape *s = m->shape;
    const int64_t rows = b->prompt > b->batch ? b->prompt : b->batch;
    const int64_t room = s->layers * b->batch * (b->prompt + b->steps);
    void *memory; /* of fields that are no void pointers */
    TRY(bench_allocate(&b->memory, bytes_of(m, rows, s->size), &b->residual));
    TRY(bench_allocate(&b->memory, bytes_of(m, rows, s->size), &b->normed));
    TRY(bench_allocate(&b->memory, bytes_of(m, rows, s->size), &b->branch));
    TRY(bench_allocate(&b->memory, bytes_of(m, rows, heads_size(s)), &b->heads));
    TRY(bench_allocate(&b->memory, bytes_of(m, rows, query_size(s)), &b->attended));
    TRY(bench_allocate(&b->memory, bytes_of(m, rows, 2 * (int64_t)s->hidden), &b->gates));
    TRY(bench_allocate(&b->memory, bytes_of(m, rows, s->hidden), &b->hidden));
    TRY(bench_allocate(&b->memory, bytes_of(m, b->batch, s->vocabulary), &b->logits));
    TRY(bench_allocate(&b->memory, bytes_of(m, room, key_size(s)), &b->key_cache));
    TRY(bench_allocate(&b->memory, bytes_of(m, room, key_size(s)), &b->value_cache));
    TRY(bench_allocate(&b->memory, (uint64_t)b->prompt * sizeof(int32_t), &memory));
    b->prompt_tokens = memory;
    TRY(bench_allocate(&b->memory, (uint64_t)b->prompt * sizeof(int32_t), &memory));
    b->prompt_positions = memory;
    TRY(bench_allocate(&b->memory, (uint64_t)b->prompt * sizeof(int64_t), &memory));
    b->prompt_slots = memory;
    TRY(bench_allocate(&b->memory, (uint64_t)b->batch * sizeof(int32_t), &memory));
    b->tokens = memory;
    TRY(bench_allocate(&b->memory, (uint64_t)b->batch * sizeof(int32_t), &memory));
    b->first = memory;
    TRY(bench_allocate(&b->memory, state_bytes(b), &b->now));
    return bench_allocate(&b->memory, (uint64_t)b->steps * state_bytes(b), &b->schedule);
}

static void write_prompt(const bench_batch *b, int64_t *slots, int32_t *positions, int32_t *tokens) {
    uint32_t state = 1;
    for (int64_t i = 0; i < b->prompt; i++) {
        state = state * 1664525u + 1013904223u;
        slots[i] = i;
        positions[i] = (int32_t)i;
        tokens[i] = (int32_t)((state >> 8) % (uint32_t)b->model->shape->vocabulary);
    }
}

static void write_schedule(const bench_batch *b, char *schedule) {
    const int64_t capacity = b->prompt + b->steps;
    for (int64_t step = 0; step < b->steps; step++) {
        int64_t *slots = (int64_t *)(void *)(schedule + (uint64_t)step * state_bytes(b));
        int32_t *positions = (int32_t *)(slots + b->batch), *lengths = positions + b->batch;
        for (int64_t i = 0; i < b->batch; i++) {
            slots[i] = i * capacity + b->prompt + step;
            positions[i] = (int32_t)(b->prompt + step);
            lengths[i] = (int32_t)(b->prompt + step + 1);
        }
    }
}

static kiln_status upload_plan(bench_batch *b) {
    kiln_stream *stream = b->model->stream;
    const size_t prompt = (size_t)b->prompt, schedule = (size_t)b->steps * state_bytes(b);
    int64_t *slots = malloc(prompt * (sizeof(int64_t) + 2 * sizeof(int32_t)) + schedule);
    if (!slots) return KILN_ERROR_OUT_OF_MEMORY;
    int32_t *positions = (int32_t *)(slots + prompt), *tokens = positions + prompt;
    char *states = (char *)(tokens + prompt);
    write_prompt(b, slots, positions, tokens);
    write_schedule(b, states);
    kiln_status status = kiln_copy(stream, b->prompt_slots, slots, prompt * sizeof *slots, KILN_COPY_TO_DEVICE);
    if (status == KILN_OK)
        status = kiln_copy(stream, b->prompt_positions, positions, prompt * sizeof *positions, KILN_COPY_TO_DEVICE);
    if (status == KILN_OK)
        status = kiln_copy(stream, b->prompt_tokens, tokens, prompt * sizeof *tokens, KILN_COPY_TO_DEVICE);
    if (status == KILN_OK) status = kiln_copy(stream, b->schedule, states, schedule, KILN_COPY_TO_DEVICE);
    const kiln_status done = kiln_stream_sync(stream);
    free(slots);
    return status == KILN_OK ? done : status;
}

static void keep_larger(size_t *most, size_t size) {
    if (size > *most) *most = size;
}

/* As much as the most demanding call of both passes wants. */
static kiln_status allocate_workspace(bench_batch *b) {
    const bench_model *m = b->model;
    const bench_shape *s = m->shape;
    const int64_t layers[][2] = {{heads_size(s), s->size},
                                 {s->size, query_size(s)},
                                 {2 * (int64_t)s->hidden, s->size},
                                 {s->size, s->hidden},
                                 {s->vocabulary, s->size}};
    const int64_t rows[] = {b->prompt, b->batch};
    const pass passes[] = {prefill_pass(b), decode_pass(b)};
    size_t size, most = 0;
    for (size_t i = 0; i < 2; i++) {
        for (size_t layer = 0; layer < sizeof layers / sizeof *layers; layer++) {
            const kiln_gemm_params gemm = {
                .d = b->gates, .batch = 1, .m = rows[i], .n = layers[layer][0], .k = layers[layer][1]};
            TRY(m->run->gemm_workspace(m->stream, &gemm, sizeof gemm, &size));
            keep_larger(&most, size);
        }
        const kiln_mha_params mha = attention(&passes[i], 0);
        TRY(m->run->mha_workspace(m->stream, &mha, sizeof mha, &size));
        keep_larger(&most, size);
    }
    const kiln_argmax_params argmax = {.y = b->tokens, .x = b->logits, .rows = b->batch, .cols = s->vocabulary};
    TRY(m->run->argmax_workspace(m->stream, &argmax, sizeof argmax, &size));
    keep_larger(&most, size);
    TRY(bench_allocate(&b->memory, most, &b->workspace));
    b->workspace_size = most;
    return KILN_OK;
}

kiln_status bench_batch_open(const bench_model *model, int64_t batch, int64_t prompt, int64_t steps, bench_batch *out) {
    kiln_status status;
    *out = (bench_batch){
        .model = model, .memory = {.device = model->stream->device}, .batch = batch, .prompt = prompt, .steps = steps};
    TRY(allocate(out));
    TRY(upload_plan(out));
    TRY(allocate_workspace(out));
    out->prefill = llama_graph_capture(model->stream, record_prefill, out, &status);
    TRY(status);
    out->decode = llama_graph_capture(model->stream, record_decode, out, &status);
    return status;
}

void bench_batch_close(bench_batch *b) {
    llama_graph_destroy(b->prefill);
    llama_graph_destroy(b->decode);
    bench_free(&b->memory);
}

/* ---- Operators alone ---- */

kiln_status bench_gemm(const bench_model *m, void *d, const void *a, const void *b, int64_t rows, int64_t cols,
                       int64_t k) {
    const kiln_gemm_params params = {.d = d, .a = a, .b = b, .batch = 1, .m = rows, .n = cols, .k = k};
    return m->run->gemm(m->stream, &params, sizeof params);
}

kiln_status bench_argmax(const bench_model *m, int32_t *y, const void *x, int64_t rows, int64_t cols) {
    const kiln_argmax_params params = {.y = y, .x = x, .rows = rows, .cols = cols};
    return m->run->argmax(m->stream, &params, sizeof params);
}
