/* A driver that lacks a function that kiln cannot do without. */
#include "tests/unit/cuda_fixture.h"

static void test_a_missing_function_is_named(void **state) {
    (void)state;
    int32_t count = -1;
    assert_status(kiln_device_count(KILN_BACKEND_CUDA, &count), KILN_ERROR_DRIVER_TOO_OLD);
    assert_int_equal(count, 0);
    assert_told("libcuda.so.1 has no function cuThreadExchangeStreamCaptureMode, which kiln needs");
    kiln_device *device;
    assert_status(kiln_device_open(NULL, &device), KILN_ERROR_DRIVER_TOO_OLD);
    assert_told("cuThreadExchangeStreamCaptureMode");
    assert_int_equal(sim.calls("*"), 0);
}

int main(int argc, char **argv) {
    (void)argc;
    fixture_start_in(argv, "sm_75", "cuda-9");
    const struct CMUnitTest tests[] = {fixture_test(test_a_missing_function_is_named)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
