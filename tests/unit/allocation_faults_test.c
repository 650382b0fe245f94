/* Out of memory at every allocation in turn: a status comes back, nothing leaks, and the next try works. The Makefile
 * links this program with --wrap, so that the library's calls of malloc and its kin come here. */
#include "tests/unit/cpu_bundle.h"
#include <kiln/blocks.h>
#include <kiln/tree.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/documented.h"

static int fail_at; /* the number of the allocation that fails; 0: none */
static int made;
static int live;

static int refused(void) {
    return ++made == fail_at;
}

static void *counted(void *memory) {
    if (memory) __atomic_fetch_add(&live, 1, __ATOMIC_RELAXED);
    return memory;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
char *__real_strdup(const char *text);
int __real_posix_memalign(void **out, size_t alignment, size_t size);
void __real_free(void *memory);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
char *__wrap_strdup(const char *text);
int __wrap_posix_memalign(void **out, size_t alignment, size_t size);
void __wrap_free(void *memory);

void *__wrap_malloc(size_t size) {
    return refused() ? NULL : counted(__real_malloc(size));
}
void *__wrap_calloc(size_t count, size_t size) {
    return refused() ? NULL : counted(__real_calloc(count, size));
}
char *__wrap_strdup(const char *text) {
    return refused() ? NULL : counted(__real_strdup(text));
}

int __wrap_posix_memalign(void **out, size_t alignment, size_t size) {
    if (refused()) return 12;
    int error = __real_posix_memalign(out, alignment, size);
    if (!error) counted(*out);
    return error;
}

void __wrap_free(void *memory) {
    if (memory) __atomic_fetch_sub(&live, 1, __ATOMIC_RELAXED);
    __real_free(memory);
}

static int ignore(void *user, const char *bytes, size_t size) {
    (void)user;
    (void)bytes;
    (void)size;
    return 0;
}

#define TRY(call)                               \
    do {                                        \
        if (status == KILN_OK) status = (call); \
    } while (0)

/* A process's whole life with kiln. Releases what it got, whatever failed. */
static kiln_status life(void) {
    kiln_device *device = NULL;
    kiln_stream stream = {0};
    kiln_event *event = NULL;
    void *memory = NULL, *pinned = NULL;
    const kiln_module *module = NULL;
    const kiln_kernel *kernel = NULL;
    uint32_t words[8] = {0};
    cpu_arguments arguments = {words, 3, 8};
    kiln_launch_config config = {.grid = {8}};
    kiln_device_options options = {.backend = KILN_BACKEND_CPU, .threads = 2};
    kiln_status status = kiln_device_open(&options, &device);
    TRY(kiln_trace_start(device, 16));
    TRY(kiln_stream_open(device, 0, &stream));
    TRY(kiln_event_create(device, 0, &event));
    TRY(kiln_memory_alloc(device, 100, &memory));
    TRY(kiln_host_alloc(device, 100, &pinned));
    TRY(kiln_module_get(device, &cpu_bundle, "f32", &module));
    if (status == KILN_OK) {
        kiln_status none = kiln_module_get(device, &cpu_bundle, "gpu only", &module);
        status = none == KILN_ERROR_NO_IMAGE ? KILN_OK : none;
        TRY(kiln_module_get(device, &cpu_bundle, "f32", &module));
    }
    TRY(kiln_module_find_kernel(module, "set", &kernel));
    TRY(kiln_launch(&stream, kernel, &config, &arguments, sizeof arguments));
    TRY(kiln_event_record(event, &stream));
    TRY(kiln_trace_stop(device, KILN_TRACE_TEXT, ignore, NULL));
    if (status == KILN_OK && words[7] != 3) status = KILN_ERROR_DRIVER;
    kiln_event_destroy(event);
    kiln_memory_free(device, memory);
    kiln_host_free(device, pinned);
    kiln_stream_close(&stream);
    kiln_device_close(device);

    kiln_blocks *blocks = NULL;
    TRY(kiln_blocks_create(
        &(kiln_blocks_options){.block_count = 2, .block_size = 2, .max_sequences = 2, .max_blocks = 2}, &blocks));
    kiln_blocks_destroy(blocks);

    const kiln_tree *tree = NULL;
    TRY(kiln_tree_create_from_choices((const int32_t[]){0, 0, 1}, (const int32_t[]){1, 2}, 2, 2, &tree));
    kiln_tree_destroy(tree);
    return status;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    fail_at = 0;
    assert_int_equal(life(), KILN_OK);
    int before = live; /* what lives as long as the process: the pool's, the list of tried libraries */
    made = 0;
    assert_int_equal(life(), KILN_OK);
    assert_int_equal(live, before);
    int total = made, survived = 0;
    assert_true(total >= 8);
    for (int n = 1; n <= total; n++) {
        made = 0;
        fail_at = n;
        kiln_status status = life();
        fail_at = 0;
        if (status == KILN_OK)
            survived++; /* a story or a trace mark was left out; the work was done */
        else
            assert_int_equal(status, KILN_ERROR_OUT_OF_MEMORY);
        assert_int_equal(live, before);
        assert_int_equal(life(), KILN_OK);
    }
    print_message("# %d allocations, each refused once; %d were done without\n", total, survived);
    assert_true(survived < total / 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_may_fail)};
    return cmocka_run_group_tests_name("allocation_faults", tests, NULL, NULL);
}
