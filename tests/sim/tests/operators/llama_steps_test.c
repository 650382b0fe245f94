/* What a step of docs/examples/llama asks of the driver and of the system, the first as any other: on CUDA the launch
 * of a graph; on no device any memory, and one wait, for the token. The signals of HSA's copies come from a pool, which
 * grows until it has enough for the copies of a step. And whose thread takes a step.
 *
 * KILN_SIM_DEVICES names the devices; unset, some of each vendor. The CPU is the last. The Makefile links this program
 * with --wrap, so that the example's calls and the library's own come here. */
#include "docs/examples/llama/decoder.h"
#include "tests/assert_ok.h"
#include "tests/sim/tests/operators/each_device.h"
#include <pthread.h>
#include <stdlib.h>

enum { STEPS = 24, COPIES = 2, COPY_SIGNALS = 3 };

static const llama_config config = {
    .size = 16, .hidden_size = 24, .layers = 2, .heads = 2, .kv_heads = 1, .vocabulary_size = 40, .length = STEPS};

/* A bundle of the program's own, which has no part of a precision: the decoder leaves it alone. */
static const kiln_part own_parts[] = {{.name = "own", .image_size = sizeof(kiln_image)}};
static const kiln_bundle own = {
    .version = KILN_BUNDLE_VERSION, .part_size = sizeof(kiln_part), .name = "own", .parts = own_parts, .part_count = 1};
KILN_LINK_BUNDLE(own);

/* ---- What is counted ---- */

static int allocations, waits, signals;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
char *__real_strdup(const char *text);
int __real_posix_memalign(void **out, size_t alignment, size_t size);
kiln_status __real_kiln_stream_sync(kiln_stream *waited_for);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
char *__wrap_strdup(const char *text);
int __wrap_posix_memalign(void **out, size_t alignment, size_t size);
kiln_status __wrap_kiln_stream_sync(kiln_stream *waited_for);

void *__wrap_malloc(size_t size) {
    allocations++;
    return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size) {
    allocations++;
    return __real_calloc(count, size);
}

char *__wrap_strdup(const char *text) {
    allocations++;
    return __real_strdup(text);
}

int __wrap_posix_memalign(void **out, size_t alignment, size_t size) {
    allocations++;
    return __real_posix_memalign(out, alignment, size);
}

kiln_status __wrap_kiln_stream_sync(kiln_stream *waited_for) {
    waits++;
    return __real_kiln_stream_sync(waited_for);
}

static void count_anew(void) {
    sim.reset();
    allocations = waits = 0;
}

static bool is_one_of(const char *name, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!strcmp(name, names[i])) return true;
    return false;
}

/* What the driver was called for since then, in order: but for questions, which cost it nothing, and new signals, which
 * are counted. */
static void expect_calls(const char *const *names, size_t count) {
    static const char *const questions[] = {"cuCtxGetCurrent", "cuCtxSetCurrent", "hsa_amd_pointer_info"};
    size_t found = 0;
    const char *name;
    for (uint64_t i = 0; (name = sim.call(i)); i++) {
        bool signal = !strcmp(name, "hsa_signal_create");
        signals += signal;
        if (signal || is_one_of(name, questions, sizeof questions / sizeof *questions)) continue;
        if (found == count) fail_msg("one call more than expected: %s", name);
        assert_string_equal(name, names[found++]);
    }
    assert_int_equal(found, count);
}

/* ---- The decoder ---- */

/* A model of small numbers. */
static llama_decoder *make_decoder(void) {
    const llama_config *c = &config;
    const bool own_classifier = false;
    llama_checkpoint checkpoint = {.config = config};
    llama_decoder *made;
    static float values[1 << 10];
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        values[i] = (float)(i * 97 % 256) / 256 - 0.5f;
#define WEIGHT(name, matrix_rows, matrix_cols, matrices)                                                 \
    checkpoint.weights[LLAMA_##name] =                                                                   \
        (llama_weight){#name, values, (size_t)(matrix_rows), (size_t)(matrix_cols), (size_t)(matrices)}; \
    assert_true((matrix_rows) * (matrix_cols) * (matrices) <= (int)(sizeof values / sizeof *values));
    LLAMA_WEIGHTS(WEIGHT)
#undef WEIGHT
    const llama_options options = {.precision = LLAMA_F32};
    assert_ok(llama_decoder_create(&stream, &checkpoint, &options, NULL, &made));
    return made;
}

static void expect_a_replay(void) {
    static const char *const cuda[] = {"cuMemcpyHtoDAsync_v2", "cuGraphLaunch", "cuMemcpyDtoHAsync_v2",
                                       "cuStreamSynchronize"};
    static const char *const rocm[] = {"hsa_amd_memory_async_copy", "hsa_amd_memory_async_copy"};
    if (info.backend == KILN_BACKEND_CUDA) expect_calls(cuda, sizeof cuda / sizeof *cuda);
    if (info.backend == KILN_BACKEND_ROCM) expect_calls(rocm, sizeof rocm / sizeof *rocm);
}

static void steps_take_no_memory_and_wait_once(void **state) {
    (void)state;
    llama_decoder *decoder = make_decoder();
    signals = 0;
    for (int32_t position = 0; position < STEPS; position++) {
        int32_t next, signals_before = signals;
        count_anew();
        assert_ok(llama_decoder_step(decoder, 1, position, &next));
        assert_int_equal(waits, 1);
        assert_int_equal(sim.violations(), 0);
        expect_a_replay();
        assert_int_equal(allocations, signals - signals_before);
    }
    assert_in_range(signals, 0, info.backend == KILN_BACKEND_ROCM ? COPIES * COPY_SIGNALS : 0);
    assert_int_equal(llama_decoder_has_graph(decoder), info.backend == KILN_BACKEND_CUDA);
    llama_decoder_destroy(decoder);
}

/* ---- Threads ---- */

/* The context that this thread has, on CUDA. */
static void *current_context(void) {
    int (*get)(void **context);
    void *context = NULL, *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (!driver) return NULL;
    *(void **)&get = dlsym(driver, "cuCtxGetCurrent");
    assert_non_null(get);
    assert_int_equal(get(&context), 0);
    dlclose(driver);
    return context;
}

typedef struct some_steps {
    llama_decoder *decoder;
    int32_t begin, end;
    kiln_status status;
} some_steps;

static void *take_steps(void *argument) {
    some_steps *s = argument;
    int32_t next;
    for (int32_t position = s->begin; position < s->end && s->status == KILN_OK; position++)
        s->status = llama_decoder_step(s->decoder, 1, position, &next);
    return NULL;
}

/* Each step by a thread of its own, and then by this one, which goes on with the context that it had. */
static void steps_are_of_any_thread(void **state) {
    (void)state;
    some_steps steps = {.decoder = make_decoder()};
    void *context = current_context();
    count_anew();
    for (; steps.begin < 4; steps.begin++) {
        pthread_t thread;
        steps.end = steps.begin + 1;
        assert_int_equal(pthread_create(&thread, NULL, take_steps, &steps), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_ok(steps.status);
    }
    steps.end = STEPS;
    take_steps(&steps);
    assert_ok(steps.status);
    assert_int_equal(sim.violations(), 0);
    assert_int_equal(llama_decoder_has_graph(steps.decoder), info.backend == KILN_BACKEND_CUDA);
    assert_ptr_equal(current_context(), context);
    llama_decoder_destroy(steps.decoder);
}

static int run(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_take_no_memory_and_wait_once),
        cmocka_unit_test(steps_are_of_any_thread),
    };
    return cmocka_run_group_tests_name(info.name, tests, each_device_setup, each_device_teardown);
}

int main(int argc, char **argv) {
    (void)argc;
    int failed = each_device(argv, "sm_75,sm_90,gfx942,gfx1100", run);
    const kiln_device_options options = {.backend = KILN_BACKEND_CPU};
    if (kiln_device_open(&options, &device) != KILN_OK) return 1;
    kiln_device_get_info(device, &info);
    return failed + run();
}
