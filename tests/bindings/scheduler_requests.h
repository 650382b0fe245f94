/* What tests of the scheduler share: a model of random weights, and requests that note what becomes of them. */
#ifndef KILN_TESTS_BINDINGS_SCHEDULER_REQUESTS_H
#define KILN_TESTS_BINDINGS_SCHEDULER_REQUESTS_H

#include "docs/examples/llama/decoder.h"
#include "docs/examples/llama/tokenizer.h"
#include "loader/bindings/triton/scheduler.h"
#include "tests/assert_ok.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { VOCABULARY = 96, LENGTH = 64 };

static llama_checkpoint checkpoint;
static float *values;

/* A number of a sequence that looks random, by a multiplication (SplitMix64). */
static inline uint64_t mix(uint64_t number) {
    number = (number + 1) * 0x9e3779b97f4a7c15;
    number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9;
    number = (number ^ number >> 27) * 0x94d049bb133111eb;
    return number ^ number >> 31;
}

/* A model of random weights. */
static inline int make_model(void **state) {
    (void)state;
    const llama_config made = {.size = 32,
                               .hidden_size = 48,
                               .layers = 2,
                               .heads = 4,
                               .kv_heads = 2,
                               .vocabulary_size = VOCABULARY,
                               .length = LENGTH};
    const llama_config *c = &made;
    const bool own_classifier = false;
    const size_t most = (size_t)VOCABULARY * 64;
    values = malloc(most * sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < most; i++)
        values[i] = (float)(mix(i) % 2048) / 1024 - 1;
    checkpoint.config = made;
#define WEIGHT(name, matrix_rows, matrix_cols, matrices)                                                   \
    checkpoint.weights[LLAMA_##name] = (llama_weight){#name, values + LLAMA_##name, (size_t)(matrix_rows), \
                                                      (size_t)(matrix_cols), (size_t)(matrices)};          \
    assert_true((size_t)((matrix_rows) * (matrix_cols) * (matrices)) + LLAMA_WEIGHT_COUNT <= most);
    LLAMA_WEIGHTS(WEIGHT)
#undef WEIGHT
    return 0;
}

static inline int free_model(void **state) {
    (void)state;
    free(values);
    return 0;
}

/* ---- Requests ---- */

typedef struct request {
    generation generation;
    int32_t tokens[LENGTH + 1], prompt;
    atomic_int ends, given;
    atomic_bool cancel;
    int cancel_after; /* tokens; 0: never */
    generation_end why;
    char text[256];
} request;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;

static inline void take_token(generation *g, int32_t token) {
    request *r = g->user;
    assert_int_equal(g->tokens[g->count - 1], token);
    if (++r->given == r->cancel_after) r->cancel = true;
}

static inline bool is_cancelled(generation *g) {
    request *r = g->user;
    return r->cancel;
}

static inline void end(generation *g, generation_end why, const char *text) {
    request *r = g->user;
    pthread_mutex_lock(&lock);
    r->why = why;
    snprintf(r->text, sizeof r->text, "%s", text);
    r->ends++;
    pthread_cond_broadcast(&ended);
    pthread_mutex_unlock(&lock);
}

static inline void wait_for(request *r) {
    pthread_mutex_lock(&lock);
    while (!r->ends)
        pthread_cond_wait(&ended, &lock);
    pthread_mutex_unlock(&lock);
}

/* Request number n of a run: the prompts of four in a row begin with the same tokens. */
static inline void make_request(request *r, int32_t n, int32_t prompt, int32_t max_tokens, const sampling *how) {
    *r = (request){.prompt = prompt};
    for (int32_t i = 0; i < prompt; i++)
        r->tokens[i] = i == 0   ? LLAMA_BEGIN
                       : i <= 9 ? 3 + (int32_t)(mix((uint64_t)(n / 4 * 1000 + i)) % (VOCABULARY - 3))
                                : 3 + (int32_t)(mix((uint64_t)(n * 1000 + i)) % (VOCABULARY - 3));
    r->generation = (generation){.tokens = r->tokens,
                                 .count = prompt,
                                 .max_tokens = max_tokens,
                                 .sampling = *how,
                                 .user = r,
                                 .token = take_token,
                                 .is_cancelled = is_cancelled,
                                 .end = end};
}

static scheduler_counts counts;

static inline void observe(void *user, const scheduler_counts *now) {
    (void)user;
    pthread_mutex_lock(&lock);
    counts = *now;
    pthread_mutex_unlock(&lock);
}

/* A scheduler with blocks of 4 tokens. */
static inline scheduler *start_on(const kiln_device_options *device_options, int32_t max_batch, int32_t max_step_tokens,
                                  int32_t blocks, int32_t max_queue) {
    const scheduler_options options = {.engine = {.device = *device_options,
                                                  .precision = LLAMA_F32,
                                                  .max_batch = max_batch,
                                                  .max_step_tokens = max_step_tokens,
                                                  .block_count = blocks,
                                                  .block_size = 4},
                                       .max_queue = max_queue,
                                       .observe = observe};
    char reason[LLAMA_REASON_SIZE] = "";
    scheduler *s;
    if (scheduler_create(&checkpoint, &options, &s, reason) != KILN_OK) fail_msg("%s", reason);
    return s;
}

static inline void submit(scheduler *s, request *r) {
    assert_int_equal(scheduler_submit(s, &r->generation), SUBMIT_ACCEPTED);
}

/* What the example's decoder puts behind a request's prompt, and why it ends. */
static inline int32_t decode_alone(const request *r, int32_t max_tokens, int32_t tokens[LENGTH + 1]) {
    const llama_options options = {.precision = LLAMA_F32};
    const kiln_device_options cpu = {.backend = KILN_BACKEND_CPU, .threads = 1};
    kiln_device *device;
    kiln_stream stream;
    llama_decoder *decoder;
    int32_t count = r->prompt, next;
    assert_ok(kiln_device_open(&cpu, &device));
    assert_ok(kiln_stream_open(device, 0, &stream));
    assert_ok(llama_decoder_create(&stream, &checkpoint, &options, NULL, &decoder));
    memcpy(tokens, r->tokens, sizeof *tokens * (size_t)count);
    for (int32_t i = 0; i < count && count < r->prompt + max_tokens && count < LENGTH; i++) {
        assert_ok(llama_decoder_step(decoder, tokens[i], i, &next));
        if (i + 1 < count) continue;
        if (next == LLAMA_BEGIN || next == LLAMA_END) break;
        tokens[count++] = next;
    }
    llama_decoder_destroy(decoder);
    kiln_stream_close(&stream);
    kiln_device_close(device);
    return count;
}

#endif
