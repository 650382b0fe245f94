/* Memory in stream order through HSA, whose runtime has none: what a stream frees stays allocated until its work is
 * done, is given out again, and goes back to the runtime. And memory that another device was let into. */
#include "tests/unit/rocm_sim.h"

enum { SIZE = 1 << 16 };

typedef struct fixture {
    kiln_device *device;
    kiln_stream stream, other;
} fixture;

static int setup(void **state) {
    static fixture shared;
    rocm_reset(state);
    shared.device = rocm_open(0);
    shared.stream = rocm_stream(shared.device, 0);
    shared.other = rocm_stream(shared.device, 0);
    *state = &shared;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    sim_rocm.hold(0);
    kiln_stream_close(&f->other);
    kiln_stream_close(&f->stream);
    kiln_device_close(f->device);
    rocm_assert_clean();
    return 0;
}

static void *allocate(kiln_stream *stream, size_t size) {
    void *memory;
    assert_ok(kiln_memory_alloc_async(stream, size, &memory));
    assert_non_null(memory);
    return memory;
}

/* While the stream has work, it alone gets back what it freed; afterwards any stream does. */
static void freed_memory_is_its_streams_until_it_is_done(void **state) {
    fixture *f = *state;
    void *memory = allocate(&f->stream, SIZE);
    sim_rocm.hold(1);
    assert_ok(kiln_memory_free_async(&f->stream, memory));
    void *different = allocate(&f->other, SIZE);
    assert_ptr_not_equal(different, memory);
    assert_ptr_equal(allocate(&f->stream, SIZE), memory);
    assert_ok(kiln_memory_free_async(&f->stream, memory));
    sim_rocm.hold(0);
    assert_ok(kiln_stream_sync(&f->stream));
    assert_ptr_equal(allocate(&f->other, SIZE), memory);
    kiln_memory_free(f->device, memory);
    kiln_memory_free(f->device, different);
}

/* No allocation of the runtime's is made for a step that allocates what the step before it freed. */
static void steps_take_what_they_freed(void **state) {
    fixture *f = *state;
    uint64_t calls = 0;
    for (int step = 0; step < 10; step++) {
        void *small = allocate(&f->stream, SIZE), *large = allocate(&f->stream, 4 * SIZE);
        if (step == 1) calls = sim.calls("hsa_amd_memory_pool_allocate");
        assert_ok(kiln_memory_free_async(&f->stream, large));
        assert_ok(kiln_memory_free_async(&f->stream, small));
    }
    assert_int_equal(sim.calls("hsa_amd_memory_pool_allocate"), calls);
}

static void the_smallest_that_suits_is_taken(void **state) {
    fixture *f = *state;
    void *large = allocate(&f->stream, 4 * SIZE), *small = allocate(&f->stream, SIZE);
    sim_rocm.hold(1);
    assert_ok(kiln_memory_free_async(&f->stream, small));
    assert_ok(kiln_memory_free_async(&f->stream, large));
    void *between = allocate(&f->stream, 2 * SIZE - 1); /* half of the large one would lie idle */
    assert_ptr_not_equal(between, large);
    assert_ptr_equal(allocate(&f->stream, SIZE - 100), small);
    assert_ptr_equal(allocate(&f->stream, 2 * SIZE), large);
    sim_rocm.hold(0);
    assert_ok(kiln_stream_sync(&f->stream));
    kiln_memory_free(f->device, large);
    kiln_memory_free(f->device, small);
    kiln_memory_free(f->device, between);
}

/* What is kept is of no use to anybody who lacks memory. */
static void what_is_done_goes_back_for_an_allocation(void **state) {
    fixture *f = *state;
    void *memory = allocate(&f->stream, SIZE), *out;
    assert_ok(kiln_memory_free_async(&f->stream, memory));
    assert_ok(kiln_stream_sync(&f->stream));
    const uint64_t calls = sim.calls("hsa_amd_memory_pool_free");
    sim.fault("hsa_amd_memory_pool_allocate", 1, 0x1008);
    assert_ok(kiln_memory_alloc(f->device, SIZE, &out));
    assert_int_equal(sim.calls("hsa_amd_memory_pool_free"), calls + 1);
    sim.fault("hsa_amd_memory_pool_allocate", 1, 0x1008);
    assert_error(kiln_memory_alloc(f->device, SIZE, &memory), KILN_ERROR_OUT_OF_MEMORY, "OUT_OF_RESOURCES");
    assert_null(memory);
    kiln_memory_free(f->device, out);
}

static void what_cannot_be_freed_is_refused(void **state) {
    fixture *f = *state;
    char local = 0, *memory = allocate(&f->stream, SIZE);
    void *host;
    const char rule[] = "must be of an allocation on rocm:0, and its beginning";
    assert_ok(kiln_host_alloc(f->device, SIZE, &host));
    assert_error(kiln_memory_free_async(&f->stream, &local), KILN_ERROR_INVALID_ARGUMENT, rule);
    assert_error(kiln_memory_free_async(&f->stream, memory + 16), KILN_ERROR_INVALID_ARGUMENT, rule);
    assert_error(kiln_memory_free_async(&f->stream, host), KILN_ERROR_INVALID_ARGUMENT, rule);
    assert_ok(kiln_memory_free_async(&f->stream, NULL));
    assert_ok(kiln_memory_free_async(&f->stream, memory));
    assert_error(kiln_memory_free_async(&f->stream, memory), KILN_ERROR_INVALID_ARGUMENT, "is freed already");
    kiln_host_free(f->device, host);
}

/* A device's memory is the other's to reach from the call on. */
static void a_peer_reaches_what_is_allocated_then(void **state) {
    fixture *f = *state;
    kiln_device *peer = rocm_open(1);
    void *near, *far;
    assert_ok(kiln_device_enable_peer(f->device, peer));
    assert_ok(kiln_device_enable_peer(f->device, peer));
    assert_ok(kiln_memory_alloc(f->device, SIZE, &near));
    assert_ok(kiln_memory_alloc(peer, SIZE, &far));
    assert_ok(kiln_fill(&f->stream, far, 7, SIZE));
    assert_ok(kiln_copy(&f->stream, near, far, SIZE, KILN_COPY_ON_DEVICE));
    assert_ok(kiln_stream_sync(&f->stream));
    assert_int_equal(((const uint8_t *)near)[SIZE - 1], 7);
    kiln_memory_free(f->device, near);
    kiln_memory_free(peer, far);
    kiln_device_close(peer);
}

int main(int argc, char **argv) {
    (void)argc;
    rocm_sim_start(argv, "gfx90a,gfx942");
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(freed_memory_is_its_streams_until_it_is_done),
        TEST(steps_take_what_they_freed),
        TEST(the_smallest_that_suits_is_taken),
        TEST(what_is_done_goes_back_for_an_allocation),
        TEST(what_cannot_be_freed_is_refused),
        TEST(a_peer_reaches_what_is_allocated_then),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
