/* Queues and signals of the simulated runtime as an application meets them: queues are drained in an order of the
 * seed's, which events and barrier packets bind; barrier packets wait for all or for any of their signals. */
#include "loader/rocm/rocm_backend.h"
#include "loader/rocm/rocm_driver.h"
#include "tests/unit/rocm_sim.h"
#include <pthread.h>

enum { SEEDS = 40, QUEUE_SIZE = 64, BARRIER_AND = 3, BARRIER_OR = 5, EQ = 0, NE = 1, LT = 2, GTE = 3 };
/* Ticks of 10 ns: long enough for what is going to happen, and for what is not. */
static const uint64_t FOR_EVER = UINT64_MAX, A_WHILE = 500000;

static kiln_device *device;
static kiln__hsa_queue *queues[2];

static kiln__hsa_signal signal_of(kiln__hsa_signal_value value) {
    kiln__hsa_signal signal;
    assert_int_equal(kiln__rocm.signal_create(value, 0, NULL, &signal), 0);
    return signal;
}

static int open_queues(void **state) {
    rocm_reset(state);
    device = rocm_open(0);
    const kiln__rocm_device *rocm = device->native;
    for (int i = 0; i < 2; i++)
        assert_int_equal(
            kiln__rocm.queue_create(rocm->agent, QUEUE_SIZE, 0, NULL, NULL, UINT32_MAX, UINT32_MAX, &queues[i]), 0);
    return 0;
}

static void close_queues(void) {
    for (int i = 0; i < 2; i++)
        assert_int_equal(kiln__rocm.queue_destroy(queues[i]), 0);
    kiln_device_close(device);
}

/* With these signals gone, of which {0} is none, nothing is left. */
static void close_clean(const kiln__hsa_signal *signals, int count) {
    for (int i = 0; i < count; i++)
        if (signals[i].handle) assert_int_equal(kiln__rocm.signal_destroy(signals[i]), 0);
    close_queues();
    rocm_assert_clean();
}

static void submit(kiln__hsa_queue *queue, uint32_t type, const kiln__hsa_signal *dependencies, int count,
                   kiln__hsa_signal completion) {
    const uint64_t index = kiln__rocm.queue_add_write_index(queue, 1);
    kiln__hsa_barrier_packet *packet = (kiln__hsa_barrier_packet *)queue->base_address + index % QUEUE_SIZE;
    const uint32_t header = type | 1u << KILN__HSA_PACKET_HEADER_BARRIER |
                            KILN__HSA_FENCE_SCOPE_SYSTEM << KILN__HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
                            KILN__HSA_FENCE_SCOPE_SYSTEM << KILN__HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE;
    packet->reserved1 = 0;
    packet->reserved2 = 0;
    for (int i = 0; i < 5; i++)
        packet->dep_signal[i].handle = i < count ? dependencies[i].handle : 0;
    packet->completion_signal = completion;
    __atomic_store_n((uint32_t *)(void *)packet, header, __ATOMIC_RELEASE);
    kiln__rocm.signal_store_release(queue->doorbell_signal, (kiln__hsa_signal_value)index);
}

static kiln__hsa_signal_value wait_for_zero(kiln__hsa_signal signal, uint64_t ticks) {
    return kiln__rocm.signal_wait(signal, EQ, 0, ticks, 0);
}

/* ---- Order ------------------------------------------------------------------------------------------------------- */

/* Two streams with a kernel each. Under how many seeds the first one's ran first. */
static int first_was_first(bool with_event) {
    const kiln_launch_config config = {.grid = {1}, .block = {64}};
    const scale_arguments arguments = {.x = (void *)0x1000, .y = (void *)0x2000, .count = 1};
    const kiln_kernel *scale = rocm_kernel(device, "scale");
    int right = 0;
    for (int seed = 1; seed <= SEEDS; seed++) {
        char text[16];
        snprintf(text, sizeof text, "%d", seed);
        sim.configure("KILN_SIM_SEED", text);
        kiln_stream streams[] = {rocm_stream(device, 0), rocm_stream(device, 0)};
        kiln_event *event;
        sim_launch launch = {0};
        assert_ok(kiln_event_create(device, 0, &event));
        sim.reset();
        assert_ok(kiln_launch(&streams[0], scale, &config, &arguments, sizeof arguments));
        if (with_event) {
            assert_ok(kiln_event_record(event, &streams[0]));
            assert_ok(kiln_stream_wait_event(&streams[1], event));
        }
        assert_ok(kiln_launch(&streams[1], scale, &config, &arguments, sizeof arguments));
        assert_ok(kiln_stream_sync(&streams[1]));
        assert_ok(kiln_stream_sync(&streams[0]));
        assert_int_equal(sim.launch(0, &launch), 1);
        right += launch.stream == (uintptr_t)streams[0].native;
        kiln_event_destroy(event);
        for (int i = 0; i < 2; i++)
            kiln_stream_close(&streams[i]);
    }
    sim.configure("KILN_SIM_SEED", NULL);
    return right;
}

static void queues_are_drained_in_the_seeds_order(void **state) {
    (void)state;
    assert_in_range(first_was_first(false), 1, SEEDS - 1);
    close_clean(NULL, 0);
}

static void an_event_orders_two_queues(void **state) {
    (void)state;
    assert_int_equal(first_was_first(true), SEEDS);
    close_clean(NULL, 0);
}

/* ---- Barrier packets --------------------------------------------------------------------------------------------- */

static void a_barrier_and_waits_for_all(void **state) {
    (void)state;
    const kiln__hsa_signal on[] = {signal_of(1), {0}, signal_of(7), signal_of(1)}, done = on[3];
    submit(queues[0], BARRIER_AND, on, 3, done);
    kiln__rocm.signal_store_relaxed(on[0], 0);
    assert_int_equal(wait_for_zero(done, A_WHILE), 1);
    kiln__rocm.signal_store_release(on[2], 0);
    assert_int_equal(wait_for_zero(done, FOR_EVER), 0);
    close_clean(on, 4);
}

/* A signal that is none counts as met to the one, and as not met to the other. */
static void a_barrier_or_waits_for_any(void **state) {
    (void)state;
    const kiln__hsa_signal on[] = {signal_of(1), {0}, signal_of(7), signal_of(1)}, done = on[3];
    submit(queues[0], BARRIER_OR, on, 3, done);
    assert_int_equal(wait_for_zero(done, A_WHILE), 1);
    kiln__rocm.signal_store_release(on[2], 0);
    assert_int_equal(wait_for_zero(done, FOR_EVER), 0);
    close_clean(on, 4);
}

/* What waits behind a barrier packet waits, too, and not what another queue has. */
static void a_packet_waits_for_another_queues(void **state) {
    (void)state;
    const kiln__hsa_signal signals[] = {signal_of(1), signal_of(1)}, between = signals[0], last = signals[1];
    submit(queues[0], BARRIER_AND, &between, 1, (kiln__hsa_signal){0});
    submit(queues[0], BARRIER_AND, NULL, 0, last);
    assert_int_equal(wait_for_zero(last, A_WHILE), 1);
    submit(queues[1], BARRIER_AND, NULL, 0, between);
    assert_int_equal(wait_for_zero(last, FOR_EVER), 0);
    assert_int_equal(kiln__rocm.signal_load(between), 0);
    close_clean(signals, 2);
}

static void a_barrier_or_on_nothing_is_a_violation(void **state) {
    (void)state;
    submit(queues[0], BARRIER_OR, NULL, 0, (kiln__hsa_signal){0});
    assert_non_null(strstr(sim.violation(), "a barrier-OR has no dependency"));
    close_queues();
}

/* ---- Copies ------------------------------------------------------------------------------------------------------ */

enum { COPIES = 3, BYTES = 64, WRONG_TYPE = 4 };

static bool unlock_is_a_violation(void *host) {
    sim.reset();
    assert_int_equal(kiln__rocm.memory_unlock(host), 0);
    return sim.violations();
}

/* A queue that was stopped takes with it what waits for its packets, and what waits for that. A copy that another queue
 * releases is in flight until it has run. */
static void copies_that_a_stopped_queue_has_nothing_to_do_with_run(void **state) {
    (void)state;
    static uint8_t host[COPIES][BYTES];
    const kiln__rocm_device *rocm = device->native;
    const kiln__hsa_signal released = signal_of(1), never = signal_of(1);
    kiln__hsa_signal copied[COPIES];
    void *memory, *locked[COPIES];
    assert_ok(kiln_memory_alloc(device, BYTES, &memory));
    for (int i = 0; i < COPIES; i++) {
        copied[i] = signal_of(1);
        assert_int_equal(kiln__rocm.memory_lock(host[i], BYTES, (kiln__hsa_agent *)&rocm->agent, 1, &locked[i]), 0);
    }
    submit(queues[0], WRONG_TYPE, NULL, 0, (kiln__hsa_signal){0});
    submit(queues[0], BARRIER_AND, NULL, 0, never);
    const kiln__hsa_signal waits_for[COPIES] = {released, never, copied[1]};
    for (int i = 0; i < COPIES; i++)
        assert_int_equal(
            kiln__rocm.async_copy(locked[i], rocm->host, memory, rocm->agent, BYTES, 1, &waits_for[i], copied[i]), 0);
    for (int i = COPIES - 1; i > 0; i--)
        assert_false(unlock_is_a_violation(host[i]));
    assert_true(unlock_is_a_violation(host[0]));
    submit(queues[1], BARRIER_AND, NULL, 0, released);
    assert_int_equal(wait_for_zero(copied[0], FOR_EVER), 0);
    assert_int_equal(wait_for_zero(copied[1], A_WHILE), 1);
    kiln_memory_free(device, memory);
    close_queues();
}

/* ---- Signals ----------------------------------------------------------------------------------------------------- */

static void *store_later(void *signal) {
    kiln__rocm.signal_store_release(*(const kiln__hsa_signal *)signal, -3);
    return NULL;
}

static void a_wait_ends_with_its_condition_or_its_time(void **state) {
    (void)state;
    static const struct {
        uint32_t condition;
        kiln__hsa_signal_value compare, first, second; /* the first value does not meet it, the second does */
    } cases[] = {{EQ, -3, 5, -3}, {NE, 5, 5, -3}, {LT, 5, 5, -3}, {GTE, -3, -4, -3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kiln__hsa_signal signal = signal_of(cases[i].first);
        pthread_t thread;
        assert_int_equal(kiln__rocm.signal_load(signal), cases[i].first);
        assert_int_equal(kiln__rocm.signal_wait(signal, cases[i].condition, cases[i].compare, A_WHILE, 0),
                         cases[i].first);
        assert_int_equal(kiln__rocm.signal_wait(signal, cases[i].condition, cases[i].compare, 0, 1), cases[i].first);
        assert_int_equal(pthread_create(&thread, NULL, store_later, &signal), 0);
        assert_int_equal(kiln__rocm.signal_wait(signal, cases[i].condition, cases[i].compare, FOR_EVER, 0),
                         cases[i].second);
        pthread_join(thread, NULL);
        assert_int_equal(kiln__rocm.signal_destroy(signal), 0);
    }
    close_clean(NULL, 0);
}

static void a_signal_that_is_gone_is_a_violation(void **state) {
    (void)state;
    const kiln__hsa_signal gone = signal_of(1);
    assert_int_equal(kiln__rocm.signal_destroy(gone), 0);
    kiln__rocm.signal_store_relaxed(gone, 0);
    assert_int_equal(sim.violations(), 1);
    kiln__rocm.signal_wait(gone, EQ, 0, FOR_EVER, 0);
    assert_int_equal(sim.violations(), 2);
    assert_int_not_equal(kiln__rocm.signal_destroy(gone), 0);
    assert_int_equal(sim.violations(), 3);
    submit(queues[0], BARRIER_AND, &gone, 1, (kiln__hsa_signal){0});
    assert_non_null(strstr(sim.violation(), "dependency 0 is no live signal"));
    close_queues();
}

int main(int argc, char **argv) {
    (void)argc;
    rocm_sim_start(argv, "gfx90a");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(queues_are_drained_in_the_seeds_order, open_queues),
        cmocka_unit_test_setup(an_event_orders_two_queues, open_queues),
        cmocka_unit_test_setup(a_barrier_and_waits_for_all, open_queues),
        cmocka_unit_test_setup(a_barrier_or_waits_for_any, open_queues),
        cmocka_unit_test_setup(a_packet_waits_for_another_queues, open_queues),
        cmocka_unit_test_setup(a_barrier_or_on_nothing_is_a_violation, open_queues),
        cmocka_unit_test_setup(a_wait_ends_with_its_condition_or_its_time, open_queues),
        cmocka_unit_test_setup(a_signal_that_is_gone_is_a_violation, open_queues),
        cmocka_unit_test_setup(copies_that_a_stopped_queue_has_nothing_to_do_with_run,
                               open_queues), /* what waits stays */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
