/* The shortcut of host sides for ordinary calls: it takes what it says, and launches it as the exact path would. */
#include "kernels/common/host.h"
#include <setjmp.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { VECTORS_MAX = KILN__TILE_VECTORS, ROWS_STEP = 37 };

static bool is_ordinary(int64_t rows, int64_t cols, int64_t stride, uintptr_t addresses, unsigned size_log2) {
    return kiln__is_ordinary(rows, cols, stride, addresses, size_log2, VECTORS_MAX);
}

static void expect_same_launch(int64_t rows, int64_t cols, unsigned size_log2) {
    kiln_shape ordinary, exact = {0};
    kiln_launch_config ordinary_config, exact_config;
    kiln__ordinary_elementwise(rows, cols, size_log2, &ordinary, &ordinary_config);
    assert_int_equal(kiln__elementwise("test", rows, cols, size_log2, 1, &exact, &exact_config), KILN_OK);
    assert_memory_equal(&ordinary, &exact, sizeof exact);
    assert_memory_equal(&ordinary_config, &exact_config, sizeof exact_config);
}

static void every_ordinary_length_is_launched_as_the_exact_path_does(void **state) {
    (void)state;
    for (unsigned size_log2 = 1; size_log2 <= 2; size_log2++) {
        const int64_t vector = KILN_VECTOR_BYTES >> size_log2;
        const int64_t above = KILN_THREAD_VECTORS * vector, most = VECTORS_MAX * vector;
        for (int64_t cols = 0; cols <= most + vector; cols++) {
            const int64_t stride = (cols + vector - 1) / vector * vector;
            const bool expected = cols > above && cols <= most;
            assert_int_equal(is_ordinary(1, cols, stride, 0, size_log2), expected);
            if (!expected) continue;
            for (int64_t rows = 1; rows <= 2 * KILN_BLOCK; rows += ROWS_STEP)
                expect_same_launch(rows, cols, size_log2);
            expect_same_launch(KILN_GRID_BLOCKS, cols, size_log2);
        }
    }
}

static void other_calls_are_not_ordinary(void **state) {
    (void)state;
    const int64_t cols = 1024;
    assert_true(is_ordinary(KILN_GRID_BLOCKS, cols, cols, 0x1230, 1));
    static const int64_t rows[] = {0, -1, INT64_MIN, KILN_GRID_BLOCKS + 1, INT64_MAX};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_false(is_ordinary(rows[i], cols, cols, 0x1230, 1));
    static const int64_t strides[] = {-8, 1016, 1032 + 1, INT64_MAX - 7, INT64_MIN};
    for (size_t i = 0; i < sizeof strides / sizeof *strides; i++)
        assert_false(is_ordinary(4, cols, strides[i], 0x1230, 1));
    static const int64_t negative[] = {-1, -1024, INT64_MIN, INT64_MAX};
    for (size_t i = 0; i < sizeof negative / sizeof *negative; i++)
        assert_false(is_ordinary(4, negative[i], cols, 0x1230, 1));
    for (uintptr_t low = 1; low < KILN_VECTOR_BYTES; low++)
        assert_false(is_ordinary(4, cols, cols, 0x1230 | low, 1));
}

static void an_option_with_something_reserved_is_no_option(void **state) {
    (void)state;
    const int32_t valid[2] = {1, 0}, reserved[2] = {1, 1}, negative[2] = {-1, 0};
    assert_int_equal(kiln__option(valid), 1);
    assert_true(kiln__option(reserved) > UINT32_MAX);
    assert_true(kiln__option(negative) > INT32_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_ordinary_length_is_launched_as_the_exact_path_does),
        cmocka_unit_test(other_calls_are_not_ordinary),
        cmocka_unit_test(an_option_with_something_reserved_is_no_option),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
