/* The scheduler of loader/bindings/triton without the server: many generations at once, on the CPU, have the tokens
 * that the example's decoder gives each alone; each that is accepted ends once, whatever happens to it. */
#include "docs/examples/llama/decoder.h"
#include "docs/examples/llama/tokenizer.h"
#include "loader/bindings/triton/scheduler.h"
#include "tests/assert_ok.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { VOCABULARY = 96, LENGTH = 64, MANY = 40, THREADS = 4 };

static llama_checkpoint checkpoint;
static float *values;

/* A number of a sequence that looks random, by a multiplication (SplitMix64). */
static uint64_t mix(uint64_t number) {
    number = (number + 1) * 0x9e3779b97f4a7c15;
    number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9;
    number = (number ^ number >> 27) * 0x94d049bb133111eb;
    return number ^ number >> 31;
}

/* A model of random weights. */
static int make_model(void **state) {
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

static int free_model(void **state) {
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

static void take_token(generation *g, int32_t token) {
    request *r = g->user;
    assert_int_equal(g->tokens[g->count - 1], token);
    if (++r->given == r->cancel_after) r->cancel = true;
}

static bool is_cancelled(generation *g) {
    request *r = g->user;
    return r->cancel;
}

static void end(generation *g, generation_end why, const char *text) {
    request *r = g->user;
    pthread_mutex_lock(&lock);
    r->why = why;
    snprintf(r->text, sizeof r->text, "%s", text);
    r->ends++;
    pthread_cond_broadcast(&ended);
    pthread_mutex_unlock(&lock);
}

static void wait_for(request *r) {
    pthread_mutex_lock(&lock);
    while (!r->ends)
        pthread_cond_wait(&ended, &lock);
    pthread_mutex_unlock(&lock);
}

/* Request number n of a run: the prompts of four in a row begin with the same tokens. */
static void make_request(request *r, int32_t n, int32_t prompt, int32_t max_tokens, const sampling *how) {
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

static void observe(void *user, const scheduler_counts *now) {
    (void)user;
    pthread_mutex_lock(&lock);
    counts = *now;
    pthread_mutex_unlock(&lock);
}

static scheduler *start(int32_t max_batch, int32_t max_step_tokens, int32_t blocks, int32_t max_queue) {
    const scheduler_options options = {.engine = {.device = {.backend = KILN_BACKEND_CPU, .threads = 1},
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

static void submit(scheduler *s, request *r) {
    assert_int_equal(scheduler_submit(s, &r->generation), SUBMIT_ACCEPTED);
}

/* ---- The same tokens ---- */

/* What the example's decoder puts behind a request's prompt, and why it ends. */
static int32_t decode_alone(const request *r, int32_t max_tokens, int32_t tokens[LENGTH + 1]) {
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

typedef struct share {
    scheduler *s;
    request *requests;
    int32_t begin, end;
} share;

static void *submit_share(void *argument) {
    const share *mine = argument;
    for (int32_t i = mine->begin; i < mine->end; i++)
        submit(mine->s, &mine->requests[i]);
    return NULL;
}

/* Submits all from several threads, and waits for all. */
static void run_together(scheduler *s, request *requests) {
    pthread_t threads[THREADS];
    share shares[THREADS];
    for (int i = 0; i < THREADS; i++) {
        shares[i] = (share){s, requests, i * MANY / THREADS, (i + 1) * MANY / THREADS};
        assert_int_equal(pthread_create(&threads[i], NULL, submit_share, &shares[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int32_t i = 0; i < MANY; i++)
        wait_for(&requests[i]);
}

static int32_t prompt_of(int32_t n) {
    return 1 + (int32_t)(mix((uint64_t)n) % 24);
}

static int32_t max_tokens_of(int32_t n) {
    return 1 + (int32_t)(mix((uint64_t)n + 100) % 60);
}

/* Few blocks, so that some are preempted, and few tokens a step, so that prompts are computed in pieces. */
static void greedy_tokens_are_the_decoders(void **state) {
    (void)state;
    static request requests[MANY];
    const sampling greedy = {.temperature = 0};
    scheduler *s = start(8, 11, 40, MANY);
    for (int32_t i = 0; i < MANY; i++)
        make_request(&requests[i], i, prompt_of(i), max_tokens_of(i), &greedy);
    run_together(s, requests);
    scheduler_destroy(s);
    for (int32_t i = 0; i < MANY; i++) {
        int32_t tokens[LENGTH + 1];
        int32_t count = decode_alone(&requests[i], max_tokens_of(i), tokens);
        assert_int_equal(requests[i].generation.count, count);
        assert_memory_equal(requests[i].tokens, tokens, sizeof *tokens * (size_t)count);
        bool full = count == requests[i].prompt + max_tokens_of(i) || count == LENGTH;
        assert_int_equal(requests[i].why, full ? GENERATION_LENGTH : GENERATION_STOP);
        assert_int_equal(requests[i].given, count - requests[i].prompt);
        assert_int_equal(requests[i].ends, 1);
    }
    assert_true(counts.engine.preemptions > 0);
    assert_true(counts.engine.reused_tokens > 0);
    assert_int_equal(counts.accepted_requests, MANY);
}

static void sampled_tokens_depend_on_their_seed_alone(void **state) {
    (void)state;
    static request together[MANY], alone[MANY];
    scheduler *many = start(16, 32, 200, MANY), *one = start(1, 5, 16, 1);
    for (int32_t i = 0; i < MANY; i++) {
        const sampling how = {.temperature = 0.5f + (float)(i % 3),
                              .top_k = i % 4 * 10,
                              .top_p = i % 5 ? 0.8f : 0,
                              .min_p = i % 7 ? 0 : 0.05f,
                              .seed = i * 77};
        make_request(&together[i], i, prompt_of(i), max_tokens_of(i), &how);
        make_request(&alone[i], i, prompt_of(i), max_tokens_of(i), &how);
    }
    run_together(many, together);
    for (int32_t i = 0; i < MANY; i++) {
        submit(one, &alone[i]);
        wait_for(&alone[i]);
        assert_int_equal(alone[i].generation.count, together[i].generation.count);
        assert_memory_equal(alone[i].tokens, together[i].tokens, sizeof alone[i].tokens);
    }
    scheduler_destroy(one);
    scheduler_destroy(many);
}

/* ---- What is refused, and what ends early ---- */

static void long_prompts_and_full_queues_are_refused(void **state) {
    (void)state;
    static request requests[MANY], fits, too_long;
    const sampling greedy = {.temperature = 0};
    scheduler *s = start(1, 4, 10, 3); /* 40 tokens of cache */
    assert_int_equal(scheduler_max_length(s), 40);
    make_request(&too_long, 0, 40, 1, &greedy);
    assert_int_equal(scheduler_submit(s, &too_long.generation), SUBMIT_TOO_LONG);
    make_request(&fits, 0, 39, 50, &greedy);
    submit(s, &fits);
    wait_for(&fits);
    assert_true(fits.why == GENERATION_STOP || fits.generation.count == 40);
    int32_t refused = 0;
    for (int32_t i = 0; i < MANY; i++) {
        make_request(&requests[i], i, 30, 10, &greedy);
        if (scheduler_submit(s, &requests[i].generation) == SUBMIT_FULL) {
            refused++;
            requests[i].ends = 1;
        }
    }
    for (int32_t i = 0; i < MANY; i++)
        wait_for(&requests[i]);
    scheduler_destroy(s);
    assert_true(refused > 0);
    assert_int_equal(counts.refused_requests, refused);
    assert_int_equal(counts.accepted_requests, MANY - refused + 1);
}

static void cancelled_requests_end_and_others_go_on(void **state) {
    (void)state;
    static request requests[MANY];
    const sampling hot = {.temperature = 3, .seed = 5};
    scheduler *s = start(4, 16, 64, MANY);
    for (int32_t i = 0; i < MANY; i++) {
        make_request(&requests[i], i, 5, 30, &hot);
        if (i % 3 == 1) requests[i].cancel_after = 2;
        if (i % 3 == 2) requests[i].cancel = true; /* before it runs */
    }
    run_together(s, requests);
    scheduler_destroy(s);
    for (int32_t i = 0; i < MANY; i++) {
        const request *r = &requests[i];
        bool stopped = r->why == GENERATION_STOP;
        if (i % 3 == 0) assert_true(stopped || r->given == 30);
        if (i % 3 == 1) assert_true(stopped || (r->given == 2 && r->why == GENERATION_CANCELLED));
        if (i % 3 == 2) assert_true(r->given == 0 && r->why == GENERATION_CANCELLED);
        assert_int_equal(r->ends, 1);
    }
}

static void closing_ends_all_that_was_accepted(void **state) {
    (void)state;
    static request requests[MANY];
    const sampling hot = {.temperature = 2, .seed = 9};
    for (int32_t round = 0; round < 5; round++) {
        scheduler *s = start(4, 16, 64, MANY);
        for (int32_t i = 0; i < MANY; i++) {
            make_request(&requests[i], i, 10, 50, &hot);
            submit(s, &requests[i]);
        }
        const struct timespec some = {.tv_nsec = round * 1000000};
        nanosleep(&some, NULL);
        scheduler_destroy(s);
        for (int32_t i = 0; i < MANY; i++) {
            assert_int_equal(requests[i].ends, 1);
            if (requests[i].why != GENERATION_CLOSED) continue;
            assert_string_equal(requests[i].text, "the model is being unloaded");
        }
    }
}

static void what_cannot_be_opened_says_why(void **state) {
    (void)state;
    const scheduler_options options = {.engine = {.device = {.backend = KILN_BACKEND_CPU, .cpu_level = "none"},
                                                  .max_batch = 1,
                                                  .max_step_tokens = 1,
                                                  .block_count = 16,
                                                  .block_size = 4},
                                       .max_queue = 1};
    char reason[LLAMA_REASON_SIZE] = "";
    scheduler *s;
    assert_int_equal(scheduler_create(&checkpoint, &options, &s, reason), KILN_ERROR_NOT_FOUND);
    assert_null(s);
    assert_non_null(strstr(reason, "not found: "));
    scheduler_destroy(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(greedy_tokens_are_the_decoders),
        cmocka_unit_test(sampled_tokens_depend_on_their_seed_alone),
        cmocka_unit_test(long_prompts_and_full_queues_are_refused),
        cmocka_unit_test(cancelled_requests_end_and_others_go_on),
        cmocka_unit_test(closing_ends_all_that_was_accepted),
        cmocka_unit_test(what_cannot_be_opened_says_why),
    };
    return cmocka_run_group_tests(tests, make_model, free_model);
}
