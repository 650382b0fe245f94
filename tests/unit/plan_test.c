/* Planning: what operators report instead of launching, and that nothing else may be done with a stream that plans. */
#include <kiln/ops.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/documented.h"

typedef struct steps {
    size_t count;
    size_t of_kind[KILN_PLAN_LAUNCHED + 1];
    kiln_plan_step last;
    char kernel[64], image[32];
    double shortest;
    uint32_t shared_bytes;
} steps;

static void keep(void *user, const kiln_plan_step *step) {
    steps *all = user;
    all->count++;
    all->of_kind[step->kind]++;
    all->last = *step;
    snprintf(all->kernel, sizeof all->kernel, "%s", step->kernel);
    snprintf(all->image, sizeof all->image, "%s", step->image->target);
    if (step->kind == KILN_PLAN_WEIGHED) {
        assert_true(step->time > 0);
        assert_true(step->splits >= 1);
        if (all->shortest == 0 || step->time < all->shortest) all->shortest = step->time;
    }
    if (step->kind == KILN_PLAN_TAKEN || step->kind == KILN_PLAN_LEFT) assert_true(step->why && *step->why);
}

static kiln_device_info device_of(const char *target, int32_t multiprocessors, int32_t shared_bytes) {
    kiln_device_info info = {.multiprocessors = multiprocessors, .max_shared_bytes = shared_bytes};
    assert_int_equal(kiln_target_parse(target, 0, &info.target), KILN_OK);
    return info;
}

/* Addresses at which nothing is. */
static void *nowhere(unsigned number) {
    return (void *)(uintptr_t)((uint64_t)number << 40);
}

static kiln_gemm_params gemm_of(int64_t m, int64_t n, int64_t k) {
    return (kiln_gemm_params){.d = nowhere(1), .a = nowhere(2), .b = nowhere(3), .batch = 1, .m = m, .n = n, .k = k};
}

/* A persistent kernel has a block for each multiprocessor, in clusters of two. */
static void plans_for_the_device_described(void **state) {
    (void)state;
    static const struct {
        const char *target;
        int32_t multiprocessors, shared_bytes;
        const char *kernel, *image;
        uint32_t blocks;
    } cases[] = {
        {"sm_90a", 132, 232448, "kiln_gemm_wgmma_large_bf16", "sm_90a", 132},
        {"sm_90a", 115, 232448, "kiln_gemm_wgmma_large_bf16", "sm_90a", 114},
        {"sm_80", 108, 166912, "kiln_gemm_mma_large_bf16", "sm_80", 32},
        {"sm_80", 108, 0, "kiln_gemm_tiles_bf16", "sm_80", 128},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        steps all = {0};
        kiln_stream stream;
        const kiln_device_info info = device_of(cases[i].target, cases[i].multiprocessors, cases[i].shared_bytes);
        const kiln_gemm_params params = gemm_of(8192, 8192, 8192);
        assert_int_equal(kiln_plan_open(&info, keep, &all, &stream), KILN_OK);
        assert_int_equal(kiln_gemm_bf16(&stream, &params), KILN_OK);
        assert_int_equal(all.of_kind[KILN_PLAN_LAUNCHED], 1);
        assert_int_equal(all.last.kind, KILN_PLAN_LAUNCHED);
        assert_string_equal(all.kernel, cases[i].kernel);
        assert_string_equal(all.image, cases[i].image);
        assert_int_equal(all.last.config.grid[0], cases[i].blocks);
        assert_true(all.last.config.dynamic_shared_bytes <= (uint32_t)cases[i].shared_bytes);
        kiln_stream_close(&stream);
    }
}

/* Where shared memory is missing each tuned kernel is left for it. */
static void says_why_a_kernel_is_left(void **state) {
    (void)state;
    steps all = {0};
    kiln_stream stream;
    const kiln_device_info info = device_of("sm_80", 108, 4096);
    const kiln_gemm_params params = gemm_of(64, 64, 64);
    assert_int_equal(kiln_plan_open(&info, keep, &all, &stream), KILN_OK);
    assert_int_equal(kiln_gemm_f16(&stream, &params), KILN_OK);
    assert_int_equal(all.of_kind[KILN_PLAN_LEFT], 2);
    assert_int_equal(all.of_kind[KILN_PLAN_TAKEN], 1);
    assert_int_equal(all.of_kind[KILN_PLAN_WEIGHED], 0);
    kiln_stream_close(&stream);
}

/* With a workspace the product is divided, which the size's own function weighed too. */
static void plans_with_the_workspace_that_it_asks_for(void **state) {
    (void)state;
    steps all = {0};
    kiln_stream stream;
    size_t size;
    const kiln_device_info info = device_of("sm_80", 108, 166912);
    kiln_gemm_params params = gemm_of(64, 512, 4096);
    assert_int_equal(kiln_plan_open(&info, keep, &all, &stream), KILN_OK);
    assert_int_equal(kiln_gemm_bf16_workspace_size(&stream, &params, &size), KILN_OK);
    assert_int_equal(all.of_kind[KILN_PLAN_LAUNCHED], 0);
    assert_true(all.of_kind[KILN_PLAN_WEIGHED] > 0 && size > 0);
    params.workspace = nowhere(4);
    params.workspace_size = size - 1;
    assert_int_equal(kiln_gemm_bf16(&stream, &params), KILN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(all.of_kind[KILN_PLAN_LAUNCHED], 0);
    params.workspace_size = size;
    assert_int_equal(kiln_gemm_bf16(&stream, &params), KILN_OK);
    assert_int_equal(all.of_kind[KILN_PLAN_LAUNCHED], 2); /* the second joins the parts */
    assert_string_equal(all.kernel, "kiln_gemm_join_bf16");
    kiln_stream_close(&stream);
}

static void is_for_operators_alone(void **state) {
    (void)state;
    steps all = {0};
    kiln_stream stream;
    int32_t done;
    char byte = 0;
    const kiln_device_info info = device_of("sm_90", 132, 232448);
    assert_int_equal(kiln_plan_open(&info, keep, &all, &stream), KILN_OK);
    assert_int_equal(kiln_stream_sync(&stream), KILN_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(kiln_last_error(), "kiln_plan_open"));
    assert_int_equal(kiln_stream_query(&stream, &done), KILN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(kiln_copy(&stream, nowhere(1), &byte, 1, KILN_COPY_TO_DEVICE), KILN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(kiln_fill(&stream, nowhere(1), 0, 1), KILN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(all.count, 0);
    kiln_stream_close(&stream);
    assert_null(stream.device);
    kiln_stream_close(&stream);
}

static void says_what_is_wrong(void **state) {
    (void)state;
    kiln_stream stream;
    kiln_device_info info = device_of("sm_70", 80, 98304);
    steps all = {0};
    const kiln_gemm_params params = gemm_of(1, 1, 1);
    assert_int_equal(kiln_plan_open(&info, keep, &all, NULL), KILN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(kiln_plan_open(&info, NULL, NULL, &stream), KILN_ERROR_INVALID_ARGUMENT);
    assert_null(stream.device);
    assert_int_equal(kiln_plan_open_sized(NULL, sizeof info, keep, &all, &stream), KILN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(kiln_plan_open_sized(&info, 8, keep, &all, &stream), KILN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(kiln_plan_open(&info, keep, &all, &stream), KILN_OK);
    assert_int_equal(kiln_gemm_f32(&stream, &params), KILN_ERROR_NO_IMAGE);
    assert_int_equal(kiln_gemm_f32(&stream, &params), KILN_ERROR_NO_IMAGE);
    kiln_stream_close(&stream);
    info.multiprocessors = 0;
    assert_int_equal(kiln_plan_open(&info, keep, &all, &stream), KILN_ERROR_INVALID_ARGUMENT);
    info.multiprocessors = 1;
    info.max_shared_bytes = -1;
    assert_int_equal(kiln_plan_open(&info, keep, &all, &stream), KILN_ERROR_INVALID_ARGUMENT);
    info.max_shared_bytes = 0;
    info.target.backend = KILN_BACKEND_ANY;
    assert_int_equal(kiln_plan_open(&info, keep, &all, &stream), KILN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(all.count, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_for_the_device_described),
        cmocka_unit_test(says_why_a_kernel_is_left),
        cmocka_unit_test(plans_with_the_workspace_that_it_asks_for),
        cmocka_unit_test(is_for_operators_alone),
        cmocka_unit_test(says_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
