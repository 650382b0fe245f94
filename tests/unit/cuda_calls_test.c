/* Calls that were made before (loader/call.h), with a strict driver: made again they launch the same, bit by bit; and
 * whatever a launch depends on makes a call another one. Nothing is executed. */
#include "tests/unit/cuda_fixture.h"

#include "kernels/common/operators.h"
#include "loader/call.h"
#include <kiln/ops.h>
#include <pthread.h>

enum { ON_SM_90 = 0, MEMORY_BYTES = 1 << 22, LAUNCHES_MOST = 8 };

typedef struct place {
    kiln_device *device;
    kiln_stream stream;
    void *memory;
} place;

static place open_place(void) {
    place made = {.device = fixture_open(ON_SM_90)};
    assert_ok(kiln_stream_open(made.device, 0, &made.stream));
    assert_ok(kiln_memory_alloc(made.device, MEMORY_BYTES, &made.memory));
    return made;
}

static void close_place(place *at) {
    kiln_memory_free(at->device, at->memory);
    kiln_stream_close(&at->stream);
    kiln_device_close(at->device);
}

static const unsigned gemm_slot = KILN__OPERATOR_gemm * KILN__PART_COUNT + KILN__PART_bf16;

/* Few rows, tiles with tensor maps, or tiles whose blocks share k. */
static kiln_gemm_params product(const place *at, int64_t m, bool shared) {
    kiln_gemm_params params = {.d = at->memory, .a = at->memory, .b = at->memory, .batch = 1, .m = m, .n = 512};
    params.k = 8192;
    if (shared) params.workspace = at->memory;
    if (shared) params.workspace_size = MEMORY_BYTES;
    return params;
}

/* Whether a call of gemm in bf16 with these parameters is kept; makes it if it is. */
static bool is_kept(kiln_stream *stream, const kiln_gemm_params *params) {
    kiln_status status = KILN_ERROR_DRIVER;
    const bool kept = kiln__call_again(stream, gemm_slot, params, sizeof *params, &status);
    if (kept) assert_ok(status);
    return kept;
}

static uint64_t launched(sim_launch *out_launches) {
    const uint64_t count = sim.launches();
    assert_in_range(count, 0, LAUNCHES_MOST);
    for (uint64_t i = 0; i < count; i++)
        assert_true(sim.launch(i, &out_launches[i]));
    return count;
}

/* Makes a call twice: the same launches go out. Returns how many. */
static uint64_t call_twice(kiln_stream *stream, kiln_operator_call call, const void *params, size_t size) {
    static sim_launch first[LAUNCHES_MOST], again[LAUNCHES_MOST];
    sim.reset();
    assert_ok(call(stream, params, size));
    const uint64_t count = launched(first);
    sim.reset();
    assert_ok(call(stream, params, size));
    assert_int_equal(sim.calls("cuTensorMapEncodeTiled"), 0);
    assert_int_equal(launched(again), count);
    for (uint64_t i = 0; i < count; i++) {
        assert_string_equal(again[i].kernel, first[i].kernel);
        assert_memory_equal(again[i].grid, first[i].grid, sizeof first[i].grid);
        assert_memory_equal(again[i].group, first[i].group, sizeof first[i].group);
        assert_memory_equal(again[i].cluster, first[i].cluster, sizeof first[i].cluster);
        assert_int_equal(again[i].shared_bytes, first[i].shared_bytes);
        assert_int_equal(again[i].arguments_size, first[i].arguments_size);
        assert_memory_equal(again[i].arguments, first[i].arguments, first[i].arguments_size);
    }
    return count;
}

static kiln_status call_gemm(kiln_stream *stream, const void *params, size_t params_size) {
    return kiln_gemm_bf16_sized(stream, params, params_size);
}

static kiln_status call_mha(kiln_stream *stream, const void *params, size_t params_size) {
    return kiln_mha_bf16_sized(stream, params, params_size);
}

static void test_a_call_made_again_launches_the_same(void **state) {
    (void)state;
    static const struct {
        int64_t m;
        bool shared;
        uint64_t launches;
    } rows[] = {{8, false, 1}, {64, false, 1}, {128, false, 1}, {65, true, 2}};
    place at = open_place();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const kiln_gemm_params params = product(&at, rows[i].m, rows[i].shared);
        assert_false(is_kept(&at.stream, &params));
        assert_int_equal(call_twice(&at.stream, call_gemm, &params, sizeof params), rows[i].launches);
        assert_true(is_kept(&at.stream, &params));
    }
    close_place(&at);
}

/* Attention to many keys of few sequences, whose blocks share them in clusters. */
static void test_launches_in_clusters_are_kept(void **state) {
    (void)state;
    static sim_launch seen;
    place at = open_place();
    kiln_mha_params params = {.out = at.memory, .q = at.memory, .k = at.memory, .v = at.memory, .batch = 1};
    params.heads = params.kv_heads = 8;
    params.head_dim = 128;
    params.tokens = 1;
    params.kv_tokens = 8192;
    assert_int_equal(call_twice(&at.stream, call_mha, &params, sizeof params), 1);
    assert_true(sim.launch(0, &seen));
    assert_true(seen.cluster[1] > 1);
    close_place(&at);
}

/* A call is that of its parameters, each byte of them. */
static void test_each_byte_of_the_parameters_counts(void **state) {
    (void)state;
    place at = open_place();
    kiln_gemm_params params = product(&at, 128, false);
    assert_ok(kiln_gemm_bf16(&at.stream, &params));
    for (size_t i = 0; i < sizeof params; i++) {
        ((uint8_t *)&params)[i] ^= 1;
        assert_false(is_kept(&at.stream, &params));
        ((uint8_t *)&params)[i] ^= 1;
    }
    assert_true(is_kept(&at.stream, &params));
    close_place(&at);
}

/* Nor is it another operator's, another precision's, another device's, or that of the same device opened later. */
static void test_a_call_is_of_its_operator_and_device(void **state) {
    (void)state;
    place at = open_place();
    const kiln_gemm_params params = product(&at, 128, false);
    kiln_status status;
    assert_ok(kiln_gemm_bf16(&at.stream, &params));
    assert_true(is_kept(&at.stream, &params));
    assert_false(kiln__call_again(&at.stream, gemm_slot + 1, &params, sizeof params, &status));
    kiln_device *other = fixture_open(1);
    kiln_stream others;
    assert_ok(kiln_stream_open(other, 0, &others));
    assert_false(is_kept(&others, &params));
    kiln_stream_close(&others);
    kiln_device_close(other);
    close_place(&at);
    place later = open_place();
    assert_false(is_kept(&later.stream, &params));
    close_place(&later);
}

/* On a stream whose kernels overlap, a kernel is told to begin early. */
static void test_a_programmatic_stream_has_calls_of_its_own(void **state) {
    (void)state;
    static sim_launch plain, early;
    place at = open_place();
    const kiln_gemm_params params = product(&at, 128, false);
    assert_ok(kiln_gemm_bf16(&at.stream, &params));
    assert_ok(kiln_stream_set_programmatic(&at.stream, 1));
    assert_false(is_kept(&at.stream, &params));
    for (int i = 0; i < 2; i++) {
        sim.reset();
        assert_ok(kiln_gemm_bf16(&at.stream, &params));
        assert_true(sim.launch(0, &early));
        assert_true(early.overlap);
    }
    assert_true(is_kept(&at.stream, &params));
    assert_ok(kiln_stream_set_programmatic(&at.stream, 0));
    assert_false(is_kept(&at.stream, &params));
    sim.reset();
    assert_ok(kiln_gemm_bf16(&at.stream, &params));
    assert_true(sim.launch(0, &plain));
    assert_false(plain.overlap);
    assert_memory_not_equal(plain.arguments, early.arguments, plain.arguments_size);
    close_place(&at);
}

static int see_nothing(void *user, const char *text, size_t size) {
    (void)user;
    (void)text;
    (void)size;
    return 0;
}

/* Traced calls go the whole way, and so do those with the parameters of another version. */
static void test_calls_that_are_not_kept(void **state) {
    (void)state;
    place at = open_place();
    kiln_gemm_params params = product(&at, 128, false);
    struct {
        kiln_gemm_params params;
        uint64_t later;
    } newer = {params, 0};
    assert_ok(kiln_gemm_bf16_sized(&at.stream, &newer.params, sizeof newer));
    assert_false(is_kept(&at.stream, &params));
    assert_ok(kiln_trace_start(at.device, 16));
    assert_ok(kiln_gemm_bf16(&at.stream, &params));
    assert_false(is_kept(&at.stream, &params));
    assert_ok(kiln_trace_stop(at.device, KILN_TRACE_TEXT, see_nothing, NULL));
    params.k = -1;
    assert_status(kiln_gemm_bf16(&at.stream, &params), KILN_ERROR_INVALID_ARGUMENT);
    assert_false(is_kept(&at.stream, &params));
    params.k = 8192;
    assert_ok(kiln_gemm_bf16(&at.stream, &params));
    assert_true(is_kept(&at.stream, &params));
    assert_status(kiln_gemm_bf16(NULL, &params), KILN_ERROR_INVALID_ARGUMENT);
    assert_status(kiln_gemm_bf16(&at.stream, NULL), KILN_ERROR_INVALID_ARGUMENT);
    sim.fault("cuLaunchKernel", 1, 700);
    assert_status(kiln_gemm_bf16(&at.stream, &params), KILN_ERROR_DEVICE_LOST);
    assert_status(kiln_gemm_bf16(&at.stream, &params), KILN_ERROR_DEVICE_LOST);
    close_place(&at);
}

/* A call with more launches, more arguments or another call in it is not kept, whichever of them was. */
static void test_calls_that_have_no_room(void **state) {
    (void)state;
    static const char nothing[KILN__CALL_ARGUMENTS_BYTES + 8];
    enum { SLOT = 3 };
    const uint64_t params[] = {1, 2};
    const kiln_launch_config config = {.grid = {1, 1, 1}, .block = {1, 1, 1}};
    place at = open_place();
    const kiln_gemm_params small = product(&at, 8, false);
    const kiln_module *module;
    kiln__call call;
    kiln_status status;
    fixture_cubin cubin = fixture_make_cubin(90);
    const kiln_image images[] = {fixture_image("sm_90", KILN_IMAGE_CUBIN, &cubin, sizeof cubin)};
    static fixture_bundle bundle;
    fixture_bundle_init(&bundle, images, 1);
    assert_ok(kiln_module_get(at.device, &bundle.bundle, "f32", &module));
    for (int rule = 0; rule < 4; rule++) {
        kiln__call_begin(&call);
        for (int i = 0; i < (rule == 1 ? KILN__CALL_LAUNCHES + 1 : 1); i++)
            assert_ok(kiln__call_launch(&at.stream, &module->kernels[0], &config, nothing,
                                        rule == 2 ? sizeof nothing : module->kernels[0].arguments_size));
        if (rule == 3) assert_ok(kiln_gemm_bf16(&at.stream, &small));
        assert_ok(kiln__call_end(&call, &at.stream, SLOT, params, sizeof params, KILN_OK));
        const bool kept = kiln__call_again(&at.stream, SLOT, params, sizeof params, &status);
        assert_int_equal(kept, rule == 0);
        close_place(&at);
        at = open_place(); /* another device, on which nothing is kept */
        fixture_bundle_init(&bundle, images, 1);
        assert_ok(kiln_module_get(at.device, &bundle.bundle, "f32", &module));
    }
    close_place(&at);
}

/* ---- Threads ---- */

enum { THREADS = 4, CALLS = 400 };

typedef struct caller {
    pthread_t thread;
    kiln_device *device;
    void *memory;
    int64_t first;
    bool passed;
} caller;

/* Calls that fall to the same slots as the other threads', and some of which all make. */
static void *call_many(void *given) {
    caller *mine = given;
    kiln_stream stream;
    mine->passed = kiln_stream_open(mine->device, 0, &stream) == KILN_OK;
    for (int i = 0; i < CALLS && mine->passed; i++) {
        const place at = {mine->device, stream, mine->memory};
        kiln_gemm_params params = product(&at, 128, false);
        params.n = 8 * (i % 64 + mine->first);
        mine->passed = kiln_gemm_bf16(&stream, &params) == KILN_OK;
    }
    kiln_stream_close(&stream);
    return NULL;
}

static void test_threads_that_call_at_once(void **state) {
    (void)state;
    caller callers[THREADS];
    place at = open_place();
    const kiln_gemm_params params = product(&at, 128, false);
    assert_ok(kiln_gemm_bf16(&at.stream, &params)); /* loads */
    for (int i = 0; i < THREADS; i++) {
        callers[i] = (caller){.device = at.device, .memory = at.memory, .first = 1 + i};
        assert_int_equal(pthread_create(&callers[i].thread, NULL, call_many, &callers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(callers[i].thread, NULL), 0);
        assert_true(callers[i].passed);
    }
    close_place(&at);
}

int main(int argc, char **argv) {
    (void)argc;
    fixture_start(argv, "sm_90,sm_90");
    const struct CMUnitTest tests[] = {
        fixture_test(test_a_call_made_again_launches_the_same),
        fixture_test(test_launches_in_clusters_are_kept),
        fixture_test(test_each_byte_of_the_parameters_counts),
        fixture_test(test_a_call_is_of_its_operator_and_device),
        fixture_test(test_a_programmatic_stream_has_calls_of_its_own),
        fixture_test(test_calls_that_are_not_kept),
        fixture_test(test_calls_that_have_no_room),
        fixture_test(test_threads_that_call_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
