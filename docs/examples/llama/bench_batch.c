#include "bench_batch.h"
#include "bench_pass.h"
#include "try.h"
#include <stdlib.h>

/* ---- Passes ---- */

static bench_pass prefill_pass(bench_batch *b) {
    return (bench_pass){b, b->prompt, b->prompt_tokens, b->prompt_positions, b->prompt_slots, NULL};
}

static kiln_status record_prefill(void *batch) {
    bench_batch *b = batch;
    const bench_pass p = prefill_pass(b);
    TRY(bench_record_layers(&p));
    return bench_record_choice(&p, b->prompt - 1, 1, b->first);
}

/* slots, positions, lengths */
static uint64_t state_bytes(const bench_batch *b) {
    return (uint64_t)b->batch * (sizeof(int64_t) + 2 * sizeof(int32_t));
}

static bench_pass decode_pass(bench_batch *b) {
    const int64_t *slots = b->now;
    const int32_t *positions = (const int32_t *)(slots + b->batch);
    return (bench_pass){b, b->batch, b->tokens, positions, slots, positions + b->batch};
}

static kiln_status record_decode(void *batch) {
    bench_batch *b = batch;
    const bench_pass p = decode_pass(b);
    TRY(bench_record_layers(&p));
    return bench_record_choice(&p, 0, b->batch, b->tokens);
}

static kiln_status launch(bench_batch *b, llama_graph **graph, kiln_status (*record)(void *batch)) {
    if (*graph && llama_graph_launch(*graph, b->model->format.stream)) return KILN_OK;
    llama_graph_destroy(*graph); /* one that the driver does not launch: the calls will say why */
    *graph = NULL;
    return record(b);
}

kiln_status bench_prefill(bench_batch *b) {
    return launch(b, &b->prefill, record_prefill);
}

kiln_status bench_spread(bench_batch *b) {
    const bench_model *m = b->model;
    const uint64_t one = bench_cache_bytes(b, b->room), used = bench_cache_bytes(b, b->prompt);
    for (int64_t i = 0; i < (int64_t)m->shape->layers * b->batch; i++) {
        const uint64_t from = (uint64_t)(i / b->batch * b->batch) * one, to = (uint64_t)i * one;
        if (from == to) continue;
        TRY(kiln_copy(m->format.stream, (char *)b->key_cache + to, (char *)b->key_cache + from, used,
                      KILN_COPY_ON_DEVICE));
        TRY(kiln_copy(m->format.stream, (char *)b->value_cache + to, (char *)b->value_cache + from, used,
                      KILN_COPY_ON_DEVICE));
    }
    for (int64_t i = 1; i < b->batch; i++)
        TRY(kiln_copy(m->format.stream, b->first + i, b->first, sizeof *b->first, KILN_COPY_ON_DEVICE));
    return KILN_OK;
}

kiln_status bench_decode(bench_batch *b, int64_t steps) {
    kiln_stream *stream = b->model->format.stream;
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
    const uint64_t cache = bench_cache_bytes(b, s->layers * b->batch * b->room);
    const int64_t widest = s->hidden > bench_query_size(s) ? s->hidden : bench_query_size(s);
    void *memory; /* of fields that are no void pointers */
    TRY(bench_allocate(&b->memory, bench_bytes(m, rows, s->size), &b->residual));
    TRY(bench_allocate(&b->memory, bench_bytes(m, rows, s->size), &b->normed));
    TRY(bench_allocate(&b->memory, bench_bytes(m, rows, s->size), &b->branch));
    TRY(bench_allocate(&b->memory, bench_bytes(m, rows, bench_heads_size(s)), &b->heads));
    TRY(bench_allocate(&b->memory, bench_bytes(m, rows, bench_query_size(s)), &b->attended));
    TRY(bench_allocate(&b->memory, bench_bytes(m, rows, 2 * (int64_t)s->hidden), &b->gates));
    TRY(bench_allocate(&b->memory, bench_bytes(m, rows, s->hidden), &b->hidden));
    TRY(bench_allocate(&b->memory, bench_bytes(m, b->batch, s->vocabulary), &b->logits));
    TRY(bench_allocate(&b->memory, cache, &b->key_cache));
    TRY(bench_allocate(&b->memory, cache, &b->value_cache));
    if (m->format.operators) {
        TRY(bench_allocate(&b->memory, (uint64_t)(rows * (widest > s->size ? widest : s->size)), &b->codes.codes));
        TRY(bench_allocate(&b->memory, (uint64_t)rows * sizeof(float), &memory));
        b->codes.scales = memory;
    }
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
    for (int64_t step = 0; step < b->steps; step++) {
        int64_t *slots = (int64_t *)(void *)(schedule + (uint64_t)step * state_bytes(b));
        int32_t *positions = (int32_t *)(slots + b->batch), *lengths = positions + b->batch;
        for (int64_t i = 0; i < b->batch; i++) {
            slots[i] = i * b->room + b->prompt + step;
            positions[i] = (int32_t)(b->prompt + step);
            lengths[i] = (int32_t)(b->prompt + step + 1);
        }
    }
}

static kiln_status upload_plan(bench_batch *b) {
    kiln_stream *stream = b->model->format.stream;
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

/* As much as the more demanding of both passes wants. */
static kiln_status allocate_workspace(bench_batch *b) {
    const bench_pass passes[] = {prefill_pass(b), decode_pass(b)};
    size_t most = 0;
    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++)
        TRY(bench_pass_workspace(&passes[i], &most));
    TRY(bench_allocate(&b->memory, most, &b->workspace));
    b->workspace_size = most;
    return KILN_OK;
}

/* E4M3 codes are kept in blocks, and attention to them is mha_paged's. */
static kiln_status use_fp8_cache(bench_batch *b) {
    static const char *const names[] = {"mha_paged", NULL};
    const size_t size = (size_t)(b->batch * b->room / BENCH_BLOCK) * sizeof *b->block_table;
    void *table, *memory;
    b->cache_type = KILN_CACHE_E4M3;
    TRY(bench_load_kernels(b->model, names));
    TRY(bench_allocate(&b->memory, size, &memory));
    TRY(kiln_host_alloc(b->memory.device, size, &table));
    b->block_table = memory;
    for (size_t i = 0; i < size / sizeof *b->block_table; i++)
        ((int32_t *)table)[i] = (int32_t)i;
    const kiln_status status = kiln_copy(b->model->format.stream, memory, table, size, KILN_COPY_TO_DEVICE);
    const kiln_status done = kiln_stream_sync(b->model->format.stream);
    kiln_host_free(b->memory.device, table);
    return status == KILN_OK ? done : status;
}

kiln_status bench_batch_open(const bench_model *model, bool fp8_cache, int64_t batch, int64_t prompt, int64_t steps,
                             bench_batch *out) {
    kiln_stream *stream = model->format.stream;
    kiln_status status;
    *out = (bench_batch){.model = model,
                         .memory = {.device = stream->device},
                         .batch = batch,
                         .prompt = prompt,
                         .steps = steps,
                         .room = prompt + steps};
    if (fp8_cache) {
        out->room = (out->room + BENCH_BLOCK - 1) / BENCH_BLOCK * BENCH_BLOCK;
        TRY(use_fp8_cache(out));
    }
    TRY(allocate(out));
    TRY(upload_plan(out));
    TRY(allocate_workspace(out));
    out->prefill = llama_graph_capture(stream, record_prefill, out, &status);
    TRY(status);
    out->decode = llama_graph_capture(stream, record_decode, out, &status);
    return status;
}

void bench_batch_close(bench_batch *b) {
    llama_graph_destroy(b->prefill);
    llama_graph_destroy(b->decode);
    bench_free(&b->memory);
}
