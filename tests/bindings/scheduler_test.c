/* The scheduler of loader/bindings/triton without the server: many generations at once, on the CPU, have the tokens
 * that the example's decoder gives each alone; each that is accepted ends once, whatever happens to it. */
#include "tests/bindings/scheduler_requests.h"
#include <time.h>

enum { MANY = 40, THREADS = 4 };

static scheduler *start(int32_t max_batch, int32_t max_step_tokens, int32_t blocks, int32_t max_queue) {
    const kiln_device_options cpu = {.backend = KILN_BACKEND_CPU, .threads = 1};
    return start_on(&cpu, max_batch, max_step_tokens, blocks, max_queue);
}

/* ---- The same tokens ---- */

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
