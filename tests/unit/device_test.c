/* Devices, as far as the CPU shows them: identity, counting, options, the story of what was tried, fork. */
#include "tests/assert_ok.h"
#include "tests/unit/cpu_bundle.h"
#include <kiln/kiln.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/documented.h"

static kiln_device *open_cpu(void) {
    kiln_device *device;
    kiln_device_options options = {.backend = KILN_BACKEND_CPU};
    assert_ok(kiln_device_open(&options, &device));
    return device;
}

static void a_device_is_unique_and_counted(void **state) {
    (void)state;
    kiln_device *first = open_cpu(), *second = open_cpu();
    assert_ptr_equal(first, second);
    kiln_device_close(first);
    kiln_device_info info;
    assert_int_equal(kiln_device_get_info(second, &info), KILN_OK);
    assert_int_equal(info.backend, KILN_BACKEND_CPU);
    assert_true(info.multiprocessors >= 1);
    assert_true(info.name[0] != '\0');
    kiln_device_close(second);
    kiln_device_close(NULL);
}

static void the_default_falls_back_and_says_why(void **state) {
    (void)state;
    kiln_device *device;
    assert_int_equal(kiln_device_open(NULL, &device), KILN_OK);
    kiln_device_info info;
    assert_int_equal(kiln_device_get_info(device, &info), KILN_OK);
    const char *why = kiln_device_selection_log(device);
    assert_non_null(strstr(why, "chosen"));
    if (info.backend == KILN_BACKEND_CPU) {
        assert_non_null(strstr(why, "cuda: skipped, "));
        assert_non_null(strstr(why, "rocm: skipped, "));
    }
    kiln_device_close(device);
    assert_string_equal(kiln_device_selection_log(NULL), "");
}

static void a_required_gpu_is_not_replaced_by_the_cpu(void **state) {
    (void)state;
    int32_t cuda, rocm;
    assert_int_equal(kiln_device_count(KILN_BACKEND_CUDA, &cuda), KILN_OK);
    assert_int_equal(kiln_device_count(KILN_BACKEND_ROCM, &rocm), KILN_OK);
    if (cuda || rocm) skip();
    kiln_device *device = (kiln_device *)&cuda;
    kiln_device_options options = {.require_gpu = 1};
    assert_int_equal(kiln_device_open(&options, &device), KILN_ERROR_NO_DRIVER);
    assert_null(device);
    assert_non_null(strstr(kiln_last_error(), "cuda: skipped, "));
    assert_non_null(strstr(kiln_last_error(), "rocm: skipped, "));
    assert_non_null(strstr(kiln_last_error(), "a GPU is required"));
}

static void bad_options_are_named(void **state) {
    (void)state;
    static const struct {
        kiln_device_options options;
        kiln_status status;
        const char *word;
    } rows[] = {
        {{.backend = (kiln_backend_id)9}, KILN_ERROR_INVALID_ARGUMENT, "backend"},
        {{.ordinal = -1}, KILN_ERROR_INVALID_ARGUMENT, "ordinal"},
        {{.backend = KILN_BACKEND_CPU, .threads = -2}, KILN_ERROR_INVALID_ARGUMENT, "threads"},
        {{.backend = KILN_BACKEND_CPU, .threads = 100000}, KILN_ERROR_INVALID_ARGUMENT, "threads"},
        {{.backend = KILN_BACKEND_CPU, .ordinal = 1}, KILN_ERROR_NOT_FOUND, "ordinal"},
        {{.backend = KILN_BACKEND_CPU, .cpu_level = "x86-64-v9"}, KILN_ERROR_NOT_FOUND, "x86-64-v9"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kiln_device *device;
        assert_int_equal(kiln_device_open(&rows[i].options, &device), rows[i].status);
        assert_null(device);
        assert_non_null(strstr(kiln_last_error(), rows[i].word));
    }
    assert_int_equal(kiln_device_open(NULL, NULL), KILN_ERROR_INVALID_ARGUMENT);
    int32_t count;
    assert_int_equal(kiln_device_count(KILN_BACKEND_ANY, &count), KILN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(kiln_device_count(KILN_BACKEND_CPU, NULL), KILN_ERROR_INVALID_ARGUMENT);
}

/* A caller compiled against an older kiln passes a shorter struct; against a newer one, a longer. */
static void options_may_be_shorter_or_longer(void **state) {
    (void)state;
    kiln_device *device;
    kiln_device_options options = {.backend = KILN_BACKEND_CPU};
    assert_int_equal(kiln_device_open_sized(&options, 8, &device), KILN_OK);
    kiln_device_close(device);
    struct {
        kiln_device_options options;
        uint64_t later;
    } longer = {{.backend = KILN_BACKEND_CPU}, 0};
    assert_int_equal(kiln_device_open_sized(&longer.options, sizeof longer, &device), KILN_OK);
    kiln_device_close(device);
    longer.later = 1;
    assert_int_equal(kiln_device_open_sized(&longer.options, sizeof longer, &device), KILN_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(kiln_last_error(), "options has"));
}

static uint32_t launch_once(kiln_device *device, const kiln_kernel *kernel) {
    uint32_t word = 0;
    kiln_stream stream;
    cpu_arguments arguments = {&word, 42, 1};
    kiln_launch_config config = {.grid = {1}};
    if (kiln_stream_open(device, 0, &stream) != KILN_OK) return 1;
    if (kiln_launch(&stream, kernel, &config, &arguments, sizeof arguments) != KILN_OK) return 2;
    kiln_stream_close(&stream);
    return word;
}

static void a_cpu_device_works_on_in_a_forked_child(void **state) {
    (void)state;
    kiln_device *device = open_cpu();
    const kiln_module *module;
    const kiln_kernel *kernel;
    assert_int_equal(kiln_module_get(device, &cpu_bundle, "f32", &module), KILN_OK);
    assert_int_equal(kiln_module_find_kernel(module, "set", &kernel), KILN_OK);
    assert_int_equal(launch_once(device, kernel), 42);
    pid_t child = fork();
    if (child == 0) _exit(launch_once(device, kernel) == 42 && launch_once(open_cpu(), kernel) == 42 ? 0 : 1);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    kiln_device_close(device);
}

static void *open_and_close(void *failed) {
    for (int i = 0; i < 200; i++) {
        kiln_device *device;
        kiln_device_options options = {.backend = KILN_BACKEND_CPU};
        const kiln_module *module;
        if (kiln_device_open(&options, &device) != KILN_OK ||
            kiln_module_get(device, &cpu_bundle, "f32", &module) != KILN_OK)
            return failed;
        kiln_device_close(device);
    }
    return NULL;
}

static void threads_open_load_and_close_at_once(void **state) {
    (void)state;
    pthread_t threads[4];
    int failed;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, open_and_close, &failed), 0);
    for (int i = 0; i < 4; i++) {
        void *result;
        pthread_join(threads[i], &result);
        assert_null(result);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_device_is_unique_and_counted),
        cmocka_unit_test(the_default_falls_back_and_says_why),
        cmocka_unit_test(a_required_gpu_is_not_replaced_by_the_cpu),
        cmocka_unit_test(bad_options_are_named),
        cmocka_unit_test(options_may_be_shorter_or_longer),
        cmocka_unit_test(a_cpu_device_works_on_in_a_forked_child),
        cmocka_unit_test(threads_open_load_and_close_at_once),
    };
    return cmocka_run_group_tests_name("device", tests, NULL, NULL);
}
