/* The scheduler on simulated devices: the tokens of the CPU's decoder, and a device that is lost under way. */
#include "tests/bindings/scheduler_requests.h"
#include "tests/sim/core/sim_client.h"

enum { REQUESTS = 5 };

static sim_control sim;
static kiln_device_options options;

static void tokens_are_the_decoders(void **state) {
    (void)state;
    static request requests[REQUESTS];
    const sampling greedy = {.temperature = 0};
    scheduler *s = start_on(&options, 4, 9, 24, REQUESTS);
    for (int32_t i = 0; i < REQUESTS; i++) {
        make_request(&requests[i], i, 3 + 4 * i, 6, &greedy);
        submit(s, &requests[i]);
    }
    for (int32_t i = 0; i < REQUESTS; i++) {
        int32_t tokens[LENGTH + 1];
        wait_for(&requests[i]);
        int32_t count = decode_alone(&requests[i], 6, tokens);
        assert_int_equal(requests[i].generation.count, count);
        assert_memory_equal(requests[i].tokens, tokens, sizeof *tokens * (size_t)count);
    }
    scheduler_destroy(s);
    assert_int_equal(sim.violations(), 0);
}

/* Those that run and wait are told why, and the next request is answered by the device opened anew. */
static void a_lost_device_fails_what_runs_and_is_opened_again(void **state) {
    (void)state;
    static request requests[REQUESTS], later, again;
    const sampling greedy = {.temperature = 0};
    const struct timespec more_than_a_second = {.tv_sec = 1, .tv_nsec = 100000000};
    scheduler *s = start_on(&options, 3, 16, 60, REQUESTS);
    sim.fault("cuStreamSynchronize", 4, 719); /* CUDA_ERROR_LAUNCH_FAILED */
    for (int32_t i = 0; i < REQUESTS; i++) {
        make_request(&requests[i], i, 5, 40, &greedy);
        submit(s, &requests[i]);
    }
    int32_t failed = 0;
    for (int32_t i = 0; i < REQUESTS; i++) {
        wait_for(&requests[i]);
        assert_int_equal(requests[i].ends, 1);
        if (requests[i].why != GENERATION_FAILED) continue;
        failed++;
        assert_non_null(strstr(requests[i].text, "device lost: "));
        assert_non_null(strstr(requests[i].text, "CUDA_ERROR_LAUNCH_FAILED"));
    }
    assert_true(failed > 0);
    make_request(&later, 0, 5, 4, &greedy);
    submit(s, &later);
    wait_for(&later); /* at once: the device is not tried yet */
    assert_int_equal(later.why, GENERATION_FAILED);
    nanosleep(&more_than_a_second, NULL);
    make_request(&again, 0, 5, 4, &greedy);
    submit(s, &again);
    wait_for(&again);
    if (again.why == GENERATION_FAILED) fail_msg("%s", again.text);
    scheduler_destroy(s);
    assert_int_equal(counts.engine.failed_requests, failed + 1);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest on_both[] = {cmocka_unit_test(tokens_are_the_decoders)};
    const struct CMUnitTest on_cuda[] = {cmocka_unit_test(a_lost_device_fails_what_runs_and_is_opened_again)};
    setenv("KILN_SIM_RECORD", "0", 1);
    setenv("KILN_SIM_DEVICES", "sm_90,gfx942", 0);
    sim_client_start(argv, NULL);
    sim_client_open("libhsa-runtime64.so.1", &sim);
    options = (kiln_device_options){.backend = KILN_BACKEND_ROCM};
    int failed = cmocka_run_group_tests_name("gfx942", on_both, make_model, free_model);
    sim_client_open("libcuda.so.1", &sim);
    options = (kiln_device_options){.backend = KILN_BACKEND_CUDA};
    failed += cmocka_run_group_tests_name("sm_90", on_both, make_model, free_model);
    return failed + cmocka_run_group_tests_name("sm_90, lost", on_cuda, make_model, free_model);
}
