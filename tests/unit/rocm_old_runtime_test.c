/* A runtime of ROCm 5, which has none of the optional functions that came later. */
#include "loader/rocm/rocm_backend.h"
#include "tests/unit/rocm_sim.h"

/* It cannot say whose a queue is: the device's own is borrowed as ever. */
static void an_old_runtime_is_enough(void **state) {
    (void)state;
    kiln_device *device = rocm_open(0);
    const kiln__rocm_device *rocm = device->native;
    const scale_arguments arguments = {.count = 3};
    const kiln_launch_config config = {.grid = {4}, .block = {64}};
    kiln_stream own = rocm_stream(device, 0), borrowed;
    assert_null(kiln__rocm.queue_get_info);
    assert_int_equal(((kiln__hsa_queue *)own.native)->features, KILN__HSA_QUEUE_FEATURE_KERNEL_DISPATCH);
    assert_ok(kiln_stream_borrow(device, own.native, &borrowed));
    assert_ok(kiln_launch(&borrowed, rocm_kernel(device, "scale"), &config, &arguments, sizeof arguments));
    assert_ok(kiln_stream_sync(&borrowed));
    assert_int_equal(sim.launches(), 1);
    assert_int_equal(rocm->queues[0].streams, 1);
    kiln_stream_close(&borrowed);
    kiln_stream_close(&own);
    kiln_device_close(device);
    rocm_assert_clean();
}

int main(int argc, char **argv) {
    (void)argc;
    rocm_sim_start_in(argv, "gfx90a", "rocm-5");
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup(an_old_runtime_is_enough, rocm_reset)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
