/* The CPU as a device: opened, launched on, forked under. */
#include "loader/backend.h"
#include "loader/cpu/cpu_amx.h"
#include "loader/cpu/cpu_features.h"
#include "tests/assert_ok.h"
#include "tests/unit/emulated.h"
#include <fenv.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include <cmocka.h>

#include "tests/unit/documented.h"

enum { TIMEOUT_S = 60 };

/* ---- Kernels of the test's own, for every level of this host ----------------------------------------------------- */

typedef struct count_arguments {
    _Atomic uint32_t *seen; /* one for each group */
    uint32_t grid[3];
    uint32_t pause_us; /* in each call, so that the workers are called */
    _Atomic uint32_t *wrong;
} count_arguments;

static void count_groups(const void *arguments, const kiln_cpu_span *span) {
    const count_arguments *count = arguments;
    if (count->pause_us) usleep(count->pause_us);
    uint64_t groups = (uint64_t)count->grid[0] * count->grid[1] * count->grid[2];
    if (memcmp(span->grid, count->grid, sizeof span->grid) != 0 || span->end > groups || span->begin >= span->end) {
        (*count->wrong)++;
        return;
    }
    for (uint64_t i = span->begin; i < span->end; i++)
        count->seen[i]++;
}

typedef struct float_arguments {
    _Atomic uint32_t *wrong;
    float denormal, third;
} float_arguments;

static bool float_state_is_normal(float denormal, float third) {
    volatile float tiny = denormal, one = 1, three = 3;
    volatile float product = tiny * one, up = one / three, down = -one / three;
    return product == denormal && product != 0 && up == third && down == -third;
}

static void check_floats(const void *arguments, const kiln_cpu_span *span) {
    const float_arguments *floats = arguments;
    usleep(100);
    if (!float_state_is_normal(floats->denormal, floats->third)) (*floats->wrong)++;
    volatile float zero = 0;
    volatile float nan = zero / zero; /* raises a flag, which is not the caller's */
    (void)nan;
    (void)span;
}

/* Fills its scratch, lets others run, and counts what is no longer as it was. */
typedef struct scratch_arguments {
    _Atomic uint32_t *calls, *wrong;
} scratch_arguments;

static void use_scratch(const void *arguments, const kiln_cpu_span *span) {
    const scratch_arguments *scratch = arguments;
    unsigned char *bytes = span->scratch, mark = (unsigned char)++*scratch->calls;
    uint32_t wrong = (uintptr_t)bytes % 64 != 0;
    memset(bytes, mark, KILN_CPU_SCRATCH);
    usleep(100);
    for (size_t i = 0; i < KILN_CPU_SCRATCH; i++)
        wrong += bytes[i] != mark;
    *scratch->wrong += wrong;
}

static const kiln_kernel_info kernels[] = {
    {.name = "count", .arguments_size = sizeof(count_arguments), .function = count_groups},
    {.name = "floats", .arguments_size = sizeof(float_arguments), .function = check_floats},
    {.name = "scratch", .arguments_size = sizeof(scratch_arguments), .function = use_scratch},
};
enum { KERNELS = sizeof kernels / sizeof kernels[0] };
static const char *const kernel_names[] = {"count", "floats", "scratch"};
static const kiln_kernel_info no_functions[] = {{.name = "count"}, {.name = "floats"}, {.name = "scratch"}};

#define CPU_IMAGE(name, table) \
    { .target = name, .kind = KILN_IMAGE_CPU, .kernel_size = sizeof(kiln_kernel_info), .kernels = table }
static const kiln_image images[] = {CPU_IMAGE("x86-64-v2", kernels), CPU_IMAGE("aarch64", kernels)};
static const kiln_image broken_images[] = {CPU_IMAGE("x86-64-v2", no_functions), CPU_IMAGE("aarch64", no_functions)};
static const kiln_part parts[] = {
    {.name = "u32",
     .images = images,
     .kernel_names = kernel_names,
     .image_count = 2,
     .image_size = sizeof(kiln_image),
     .kernel_count = KERNELS},
    {.name = "broken",
     .images = broken_images,
     .kernel_names = kernel_names,
     .image_count = 2,
     .image_size = sizeof(kiln_image),
     .kernel_count = KERNELS},
};
static const kiln_bundle bundle = {.version = KILN_BUNDLE_VERSION,
                                   .part_size = sizeof(kiln_part),
                                   .name = "cpu_test",
                                   .parts = parts,
                                   .part_count = 2};

typedef struct fixture {
    kiln_device *device;
    kiln_stream stream;
    const kiln_kernel *count, *floats, *scratch;
} fixture;

static fixture open_cpu(kiln_device_options options) {
    fixture cpu;
    const kiln_module *module;
    options.backend = KILN_BACKEND_CPU;
    assert_ok(kiln_device_open(&options, &cpu.device));
    assert_int_equal(kiln_stream_open(cpu.device, 0, &cpu.stream), KILN_OK);
    assert_ok(kiln_module_get(cpu.device, &bundle, "u32", &module));
    assert_int_equal(kiln_module_find_kernel(module, "count", &cpu.count), KILN_OK);
    assert_int_equal(kiln_module_find_kernel(module, "floats", &cpu.floats), KILN_OK);
    assert_int_equal(kiln_module_find_kernel(module, "scratch", &cpu.scratch), KILN_OK);
    return cpu;
}

static void close_cpu(fixture *cpu) {
    kiln_stream_close(&cpu->stream);
    kiln_device_close(cpu->device);
}

/* Launches count over a grid; whether each group ran once. */
static bool covers_grid(fixture *cpu, uint32_t x, uint32_t y, uint32_t z, uint32_t pause_us) {
    uint64_t groups = (uint64_t)(x ? x : 1) * (y ? y : 1) * (z ? z : 1);
    _Atomic uint32_t wrong = 0;
    count_arguments arguments = {.seen = calloc(groups, sizeof(uint32_t)),
                                 .grid = {x ? x : 1, y ? y : 1, z ? z : 1},
                                 .pause_us = pause_us,
                                 .wrong = &wrong};
    kiln_launch_config config = {.grid = {x, y, z}, .block = {256, 1, 1}};
    bool good = arguments.seen &&
                kiln_launch(&cpu->stream, cpu->count, &config, &arguments, sizeof arguments) == KILN_OK && wrong == 0;
    for (uint64_t i = 0; i < groups; i++)
        good = good && arguments.seen[i] == 1;
    free((void *)arguments.seen);
    return good;
}

/* ---- Open -------------------------------------------------------------------------------------------------------- */

static void test_info(void **state) {
    (void)state;
    kiln__cpu_features features;
    kiln__cpu_features_read(&features);
    const kiln__cpu_target *best = kiln__cpu_features_best(&features);
    assert_non_null(best);
    fixture cpu = open_cpu((kiln_device_options){.threads = 3});
    kiln_device_info info;
    assert_int_equal(kiln_device_get_info(cpu.device, &info), KILN_OK);
    assert_int_equal(info.backend, KILN_BACKEND_CPU);
    assert_int_equal(info.target.backend, KILN_BACKEND_CPU);
    assert_string_equal(info.target.processor, best->name);
    assert_int_equal(info.multiprocessors, 3);
    assert_int_equal(info.wave_size, 1);
    assert_true(strlen(info.name) > 0);
    assert_true(info.memory_bytes > 0);
    close_cpu(&cpu);
}

static void expect_refusal(kiln_device_options options, kiln_status status, const char *text) {
    kiln_device *device = (kiln_device *)&options;
    options.backend = KILN_BACKEND_CPU;
    assert_int_equal(kiln_device_open(&options, &device), status);
    assert_null(device);
    if (!strstr(kiln_last_error(), text)) fail_msg("\"%s\" does not say \"%s\"", kiln_last_error(), text);
}

static void test_levels(void **state) {
    (void)state;
    const char *foreign = strcmp(KILN__CPU_HOST, "aarch64") == 0 ? "x86-64-v2" : "aarch64";
    expect_refusal((kiln_device_options){.cpu_level = "x86-64-v9"}, KILN_ERROR_NOT_FOUND, "x86-64-v2, x86-64-v3");
    expect_refusal((kiln_device_options){.cpu_level = foreign}, KILN_ERROR_UNSUPPORTED, foreign);
    kiln__cpu_features features;
    kiln__cpu_features_read(&features);
    for (size_t i = 0; i < kiln__cpu_target_count; i++) {
        const kiln__cpu_target *row = &kiln__cpu_targets[i];
        if (strcmp(row->host, KILN__CPU_HOST) != 0) continue;
        const char *missing = kiln__cpu_features_missing(&features, row->level);
        if (missing) {
            expect_refusal((kiln_device_options){.cpu_level = row->name}, KILN_ERROR_UNSUPPORTED, missing);
            continue;
        }
        fixture cpu = open_cpu((kiln_device_options){.cpu_level = row->name});
        assert_string_equal(cpu.device->info.target.processor, row->name);
        close_cpu(&cpu);
    }
}

static void test_open_refuses(void **state) {
    (void)state;
    expect_refusal((kiln_device_options){.ordinal = 1}, KILN_ERROR_NOT_FOUND, "ordinal");
    expect_refusal((kiln_device_options){.threads = -1}, KILN_ERROR_INVALID_ARGUMENT, "threads");
    expect_refusal((kiln_device_options){.threads = 1025}, KILN_ERROR_INVALID_ARGUMENT, "threads");
}

/* ---- Launch ------------------------------------------------------------------------------------------------------ */

static void test_spans_cover_every_group_once(void **state) {
    (void)state;
    static const int32_t threads[] = {1, 2, 3, 7};
    unsigned seed = (unsigned)time(NULL);
    print_message("# seed %u\n", seed);
    srand(seed);
    for (size_t t = 0; t < sizeof threads / sizeof threads[0]; t++) {
        fixture cpu = open_cpu((kiln_device_options){.threads = threads[t]});
        assert_true(covers_grid(&cpu, 0, 0, 0, 0));
        for (int i = 0; i < 100; i++) {
            uint32_t x = (uint32_t)rand() % 60, y = (uint32_t)rand() % 30, z = (uint32_t)rand() % 10;
            assert_true(covers_grid(&cpu, x, y, z, i % 4 ? 0 : 50));
        }
        close_cpu(&cpu);
    }
}

static void test_launch_refuses(void **state) {
    (void)state;
    fixture cpu = open_cpu((kiln_device_options){0});
    _Atomic uint32_t wrong = 0;
    count_arguments arguments = {.grid = {1, 1, 1}, .wrong = &wrong};
    kiln_launch_config clusters = {.cluster = {2, 1, 1}}, huge = {.grid = {UINT32_MAX, UINT32_MAX, UINT32_MAX}};
    assert_int_equal(kiln_launch(&cpu.stream, cpu.count, &clusters, &arguments, sizeof arguments),
                     KILN_ERROR_UNSUPPORTED);
    assert_non_null(strstr(kiln_last_error(), "cluster"));
    const kiln_launch_config flagged = {.flags = KILN_LAUNCH_PROGRAMMATIC};
    assert_int_equal(kiln_launch(&cpu.stream, cpu.count, &flagged, &arguments, sizeof arguments),
                     KILN_ERROR_UNSUPPORTED);
    assert_non_null(strstr(kiln_last_error(), "cpu has no programmatic dependent launch"));
    assert_int_equal(kiln_launch(&cpu.stream, cpu.count, &huge, &arguments, sizeof arguments),
                     KILN_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(kiln_last_error(), "grid"));
    assert_int_equal(kiln_launch(&cpu.stream, cpu.count, &huge, &arguments, sizeof arguments - 1),
                     KILN_ERROR_INVALID_ARGUMENT);
    const kiln_module *module;
    assert_int_equal(kiln_module_get(cpu.device, &bundle, "broken", &module), KILN_ERROR_CORRUPT_IMAGE);
    assert_non_null(strstr(kiln_last_error(), "count"));
    close_cpu(&cpu);
}

/* ---- Float state ------------------------------------------------------------------------------------------------- */

/* Flushes denormals on this thread, as hosts do. Returns the state to restore. */
static uint64_t flush_denormals(void) {
    uint64_t before;
#if defined(__x86_64__)
    before = _mm_getcsr();
    _mm_setcsr((uint32_t)before | 0x8040u);
#else
    __asm__ volatile("mrs %0, fpcr" : "=r"(before));
    __asm__ volatile("msr fpcr, %0" : : "r"(before | (uint64_t)1 << 24));
#endif
    return before;
}

static uint64_t read_float_state(void) {
    uint64_t control;
#if defined(__x86_64__)
    control = _mm_getcsr();
#else
    uint64_t flags;
    __asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr" : "=r"(control), "=r"(flags));
    control = control << 32 | flags;
#endif
    return control;
}

static void restore_float_state(uint64_t before) {
#if defined(__x86_64__)
    _mm_setcsr((uint32_t)before);
#else
    __asm__ volatile("msr fpcr, %0" : : "r"(before));
#endif
}

/* A host pool whose every call is in a state of its own. */
static void run_in_odd_state(void *user, size_t count, void (*body)(void *context, size_t index), void *context) {
    _Atomic uint32_t *wrong = user;
    int own = fegetround();
    static const int roundings[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO, FE_TONEAREST};
    for (size_t i = 0; i < count; i++) {
        fesetround(roundings[i % 4]);
        uint64_t before = read_float_state();
        body(context, i);
        if (read_float_state() != before) (*wrong)++;
    }
    fesetround(own);
}

static void test_float_state_is_normal_and_restored(void **state) {
    (void)state;
    _Atomic uint32_t wrong = 0;
    float_arguments arguments = {.wrong = &wrong, .denormal = 1e-40f, .third = 1.0f / 3.0f};
    kiln_launch_config config = {.grid = {64, 1, 1}};
    const kiln_device_options options[] = {
        {.threads = 1},
        {.threads = 3},
        {.threads = 2, .parallel_for = run_in_odd_state, .parallel_user = (void *)&wrong}};
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        fixture cpu = open_cpu(options[i]);
        uint64_t own = flush_denormals();
        fesetround(FE_UPWARD);
        bool odd = !float_state_is_normal(arguments.denormal, arguments.third);
        uint64_t before = read_float_state();
        kiln_status status = kiln_launch(&cpu.stream, cpu.floats, &config, &arguments, sizeof arguments);
        uint64_t after = read_float_state();
        restore_float_state(own);
        fesetround(FE_TONEAREST);
        assert_true(odd); /* the test's state would have shown */
        assert_int_equal(status, KILN_OK);
        assert_int_equal(wrong, 0);
        assert_int_equal(after, before);
        close_cpu(&cpu);
    }
}

/* ---- Streams, memory, events ------------------------------------------------------------------------------------- */

static void test_no_queue_to_borrow(void **state) {
    (void)state;
    fixture cpu = open_cpu((kiln_device_options){0});
    kiln_stream stream;
    assert_int_equal(kiln_stream_borrow(cpu.device, &cpu, &stream), KILN_ERROR_INVALID_ARGUMENT);
    assert_null(stream.device);
    assert_int_equal(kiln_stream_borrow(cpu.device, NULL, &stream), KILN_OK);
    assert_int_equal(kiln_stream_sync(&stream), KILN_OK);
    kiln_stream_close(&stream);
    close_cpu(&cpu);
}

static _Atomic uint32_t scratch_calls, scratch_wrong;

/* Launches on a stream of the thread's own. */
static void *launch_with_scratch(void *context) {
    const fixture *cpu = context;
    const scratch_arguments arguments = {&scratch_calls, &scratch_wrong};
    const kiln_launch_config config = {.grid = {60}};
    kiln_stream stream;
    if (kiln_stream_open(cpu->device, 0, &stream) != KILN_OK) scratch_wrong++;
    for (int i = 0; i < 5; i++)
        if (kiln_launch(&stream, cpu->scratch, &config, &arguments, sizeof arguments) != KILN_OK) scratch_wrong++;
    kiln_stream_close(&stream);
    return NULL;
}

static void run_in_turn(void *user, size_t count, void (*body)(void *context, size_t index), void *context) {
    (void)user;
    for (size_t i = 0; i < count; i++)
        body(context, i);
}

static void test_each_call_has_scratch_of_its_own(void **state) {
    (void)state;
    static const kiln_device_options options[] = {
        {.threads = 1}, {.threads = 3}, {.threads = 3, .parallel_for = run_in_turn}};
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        fixture cpu = open_cpu(options[i]);
        pthread_t callers[3];
        scratch_calls = scratch_wrong = 0;
        for (int t = 0; t < 3; t++)
            assert_int_equal(pthread_create(&callers[t], NULL, launch_with_scratch, &cpu), 0);
        for (int t = 0; t < 3; t++)
            pthread_join(callers[t], NULL);
        close_cpu(&cpu);
        assert_in_range(scratch_calls, 3 * 5, 3 * 5 * 60);
        assert_int_equal(scratch_wrong, 0);
    }
}

static void test_no_driver_to_be_lost_by(void **state) {
    (void)state;
    fixture cpu = open_cpu((kiln_device_options){0});
    void *memory;
    kiln_device_mark_lost(cpu.device, 1);
    assert_int_equal(kiln_memory_alloc(cpu.device, 16, &memory), KILN_OK);
    kiln_memory_free(cpu.device, memory);
    close_cpu(&cpu);
}

static void test_copy_and_fill(void **state) {
    (void)state;
    static const size_t sizes[] = {1, 255, 4096, (1 << 18) - 1, 1 << 18, (1 << 18) + 1, (1 << 24) + 3};
    fixture cpu = open_cpu((kiln_device_options){.threads = 3});
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t size = sizes[i];
        uint8_t *from, *to;
        assert_int_equal(kiln_memory_alloc(cpu.device, size + 2, (void **)&from), KILN_OK);
        assert_int_equal(kiln_host_alloc(cpu.device, size + 2, (void **)&to), KILN_OK);
        assert_int_equal((uintptr_t)from % 256, 0);
        assert_int_equal((uintptr_t)to % 256, 0);
        for (size_t j = 0; j < size + 2; j++)
            from[j] = (uint8_t)(j * 7 + j / 251);
        memset(to, 0xee, size + 2);
        assert_int_equal(kiln_copy(&cpu.stream, to + 1, from, size, KILN_COPY_ON_DEVICE), KILN_OK);
        assert_memory_equal(to + 1, from, size);
        assert_int_equal(to[0], 0xee);
        assert_int_equal(to[size + 1], 0xee);
        assert_int_equal(kiln_fill(&cpu.stream, to + 1, 0x5a, size), KILN_OK);
        for (size_t j = 1; j <= size; j++)
            if (to[j] != 0x5a) fail_msg("byte %zu of %zu is not filled", j, size);
        assert_int_equal(to[0], 0xee);
        assert_int_equal(to[size + 1], 0xee);
        kiln_memory_free(cpu.device, from);
        kiln_host_free(cpu.device, to);
    }
    close_cpu(&cpu);
}

/* Memory of two huge pages or more begins where one does; all of it can be written. */
static void test_large_memory_is_of_huge_pages(void **state) {
    (void)state;
    enum { HUGE_PAGE = 2 << 20 };
    static const size_t sizes[] = {1, 2 * HUGE_PAGE - 1, 2 * HUGE_PAGE, 3 * HUGE_PAGE + 5};
    fixture cpu = open_cpu((kiln_device_options){0});
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char *memory;
        assert_int_equal(kiln_memory_alloc(cpu.device, sizes[i], (void **)&memory), KILN_OK);
        assert_int_equal((uintptr_t)memory % (sizes[i] < 2 * HUGE_PAGE ? 256 : HUGE_PAGE), 0);
        memset(memory, 0x5a, sizes[i]);
        assert_int_equal(memory[sizes[i] - 1], 0x5a);
        kiln_memory_free(cpu.device, memory);
    }
    close_cpu(&cpu);
}

static void test_out_of_memory(void **state) {
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* the sanitizers' allocators end the program instead */
#endif
    fixture cpu = open_cpu((kiln_device_options){0});
    void *memory = &cpu;
    assert_int_equal(kiln_memory_alloc(cpu.device, SIZE_MAX / 2, &memory), KILN_ERROR_OUT_OF_MEMORY);
    assert_null(memory);
    close_cpu(&cpu);
}

static void test_queries(void **state) {
    (void)state;
    fixture cpu = open_cpu((kiln_device_options){0});
    int32_t done = 0;
    uint64_t available = 0, total = 0;
    kiln_event *event;
    assert_ok(kiln_stream_query(&cpu.stream, &done));
    assert_int_equal(done, 1);
    done = 0;
    assert_ok(kiln_event_create(cpu.device, 0, &event));
    assert_ok(kiln_event_record(event, &cpu.stream));
    assert_ok(kiln_event_query(event, &done));
    assert_int_equal(done, 1);
    assert_ok(kiln_memory_get_info(cpu.device, &available, &total));
    assert_true(available && available <= total);
    kiln_event_destroy(event);
    close_cpu(&cpu);
}

/* What is a driver's on a GPU is nothing here, or the same as without a stream. */
static void test_memory_and_events_of_a_synchronous_stream(void **state) {
    (void)state;
    fixture cpu = open_cpu((kiln_device_options){0});
    void *memory, *seen;
    char own[8];
    kiln_event *event;
    assert_ok(kiln_memory_alloc_async(&cpu.stream, 64, &memory));
    assert_ok(kiln_fill(&cpu.stream, memory, 1, 64));
    assert_ok(kiln_memory_free_async(&cpu.stream, memory));
    assert_ok(kiln_host_register(cpu.device, own, sizeof own, &seen));
    assert_ptr_equal(seen, own);
    kiln_host_unregister(cpu.device, own);
    assert_ok(kiln_event_borrow(cpu.device, NULL, &event));
    assert_ok(kiln_stream_wait_event(&cpu.stream, event));
    assert_ok(kiln_event_sync(event));
    kiln_event_destroy(event);
    assert_int_equal(kiln_event_borrow(cpu.device, own, &event), KILN_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(kiln_last_error(), "must be NULL, since the CPU has no events"));
    assert_null(event);
    close_cpu(&cpu);
}

static void test_events_are_in_order(void **state) {
    (void)state;
    fixture cpu = open_cpu((kiln_device_options){0});
    kiln_event *start, *end;
    double forwards, backwards;
    assert_int_equal(kiln_event_create(cpu.device, 0, &start), KILN_OK);
    assert_int_equal(kiln_event_create(cpu.device, 0, &end), KILN_OK);
    assert_int_equal(kiln_event_record(start, &cpu.stream), KILN_OK);
    usleep(2000);
    assert_int_equal(kiln_event_record(end, &cpu.stream), KILN_OK);
    assert_int_equal(kiln_event_sync(end), KILN_OK);
    assert_int_equal(kiln_stream_wait_event(&cpu.stream, end), KILN_OK);
    assert_int_equal(kiln_event_elapsed(start, end, &forwards), KILN_OK);
    assert_int_equal(kiln_event_elapsed(end, start, &backwards), KILN_OK);
    assert_true(forwards >= 2e6);
    assert_true(backwards == -forwards);
    kiln_event_destroy(start);
    kiln_event_destroy(end);
    close_cpu(&cpu);
}

static void test_attributes(void **state) {
    (void)state;
    fixture cpu = open_cpu((kiln_device_options){0});
    kiln_kernel_attributes attributes;
    uint32_t groups;
    assert_int_equal(kiln_kernel_get_attributes(cpu.count, &attributes), KILN_OK);
    assert_int_equal(attributes.arguments_size, sizeof(count_arguments));
    assert_int_equal(kiln_kernel_get_occupancy(cpu.count, 256, 0, &groups), KILN_OK);
    assert_int_equal(groups, 1);
    close_cpu(&cpu);
}

/* ---- Fork -------------------------------------------------------------------------------------------------------- */

/* Whether body(cpu) is true in a child process. */
static bool true_in_child(bool (*body)(fixture *cpu), fixture *cpu) {
    pid_t child = fork();
    if (child == 0) {
        alarm(TIMEOUT_S);
        _exit(body(cpu) ? 0 : 1);
    }
    int status;
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool uses_device(fixture *cpu) {
    bool good = covers_grid(cpu, 10, 10, 10, 50) && covers_grid(cpu, 5, 1, 1, 0);
    close_cpu(cpu);
    return good;
}

static void test_child_goes_on_with_the_device(void **state) {
    (void)state;
    if (!child_starts_threads()) skip();
    fixture cpu = open_cpu((kiln_device_options){.threads = 3});
    assert_true(true_in_child(uses_device, &cpu));
    assert_true(covers_grid(&cpu, 10, 10, 10, 50));
    assert_true(true_in_child(uses_device, &cpu));
    assert_true(covers_grid(&cpu, 10, 10, 10, 50));
    close_cpu(&cpu);
}

/* ---- AMX --------------------------------------------------------------------------------------------------------- */

#if defined(__x86_64__)

enum { ARCH_GET_XCOMP_SUPP = 0x1021, ARCH_GET_XCOMP_PERM = 0x1022, XTILEDATA = 1 << 18 };

/* The tile bit of the features that an arch_prctl call gives; 0 where the kernel has no such call. */
static uint64_t tile_bit(int call) {
    uint64_t features = 0;
    return syscall(SYS_arch_prctl, call, &features) == 0 ? features & XTILEDATA : 0;
}

static bool asks_for_amx(fixture *cpu) {
    (void)cpu;
    uint64_t supported = tile_bit(ARCH_GET_XCOMP_SUPP);
    fixture own = open_cpu((kiln_device_options){.allow_amx = 1});
    bool good = (kiln__cpu_amx != 0) == (supported != 0) && tile_bit(ARCH_GET_XCOMP_PERM) == supported;
    close_cpu(&own);
    own = open_cpu((kiln_device_options){0});
    good = good && !kiln__cpu_amx;
    close_cpu(&own);
    return good;
}

static void test_amx_only_when_allowed(void **state) {
    (void)state;
    uint64_t before = tile_bit(ARCH_GET_XCOMP_PERM);
    fixture cpu = open_cpu((kiln_device_options){.threads = 2});
    assert_true(covers_grid(&cpu, 100, 1, 1, 50));
    assert_int_equal(kiln__cpu_amx, 0);
    assert_int_equal(tile_bit(ARCH_GET_XCOMP_PERM), before);
    close_cpu(&cpu);
    print_message("# AMX is %s\n", tile_bit(ARCH_GET_XCOMP_SUPP) ? "there" : "not there");
    assert_true(true_in_child(asks_for_amx, NULL)); /* in a child: permission cannot be given back */
    assert_int_equal(tile_bit(ARCH_GET_XCOMP_PERM), before);
}

#else

static void test_amx_only_when_allowed(void **state) {
    (void)state;
    fixture cpu = open_cpu((kiln_device_options){.allow_amx = 1});
    assert_int_equal(kiln__cpu_amx, 0);
    close_cpu(&cpu);
}

#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_info),
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_open_refuses),
        cmocka_unit_test(test_spans_cover_every_group_once),
        cmocka_unit_test(test_launch_refuses),
        cmocka_unit_test(test_float_state_is_normal_and_restored),
        cmocka_unit_test(test_no_queue_to_borrow),
        cmocka_unit_test(test_each_call_has_scratch_of_its_own),
        cmocka_unit_test(test_no_driver_to_be_lost_by),
        cmocka_unit_test(test_copy_and_fill),
        cmocka_unit_test(test_large_memory_is_of_huge_pages),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_queries),
        cmocka_unit_test(test_memory_and_events_of_a_synchronous_stream),
        cmocka_unit_test(test_events_are_in_order),
        cmocka_unit_test(test_attributes),
        cmocka_unit_test(test_child_goes_on_with_the_device),
        cmocka_unit_test(test_amx_only_when_allowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
