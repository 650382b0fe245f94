/* A driver of CUDA 10.1, which has none of the optional functions. */
#include "tests/unit/cuda_fixture.h"

static const kiln_launch_config one_group = {.grid = {1}, .block = {32}};

static void test_an_old_driver_is_enough(void **state) {
    (void)state;
    kiln_device *device = fixture_open(0);
    kiln_device_info info;
    assert_ok(kiln_device_get_info(device, &info));
    assert_int_equal(info.target.driver_version, 10010);
    kiln_stream stream;
    assert_ok(kiln_stream_open(device, 0, &stream));
    scale_arguments arguments = {.n = 3};
    assert_ok(kiln_launch(&stream, fixture_kernel(device, "scale"), &one_group, &arguments, sizeof arguments));
    sim_launch seen;
    assert_true(sim.launch(0, &seen));
    assert_memory_equal(seen.arguments, &arguments, sizeof arguments);
    kiln_stream_close(&stream);
    kiln_device_close(device);
}

/* Without cuFuncLoad it is asking for attributes that makes a kernel resident: the recording driver breaks a capture in
 * which a kernel would have to be loaded first. */
static void test_loaded_means_resident(void **state) {
    (void)state;
    enum { CAPTURE_GLOBAL = 0 };
    kiln_device *device = fixture_open(0);
    const kiln_kernel *kernel = fixture_kernel(device, "scale");
    kiln_stream stream;
    kiln__cu_context context;
    struct CUgraph_st *graph;
    assert_ok(kiln_stream_open(device, 0, &stream));
    assert_int_equal(cuda.cuDevicePrimaryCtxRetain(&context, 0), 0);
    assert_int_equal(cuda.cuCtxSetCurrent(context), 0);
    assert_int_equal(cuda.cuStreamBeginCapture(stream.native, CAPTURE_GLOBAL), 0);
    scale_arguments arguments = {0};
    assert_ok(kiln_launch(&stream, kernel, &one_group, &arguments, sizeof arguments));
    assert_int_equal(cuda.cuStreamEndCapture(stream.native, &graph), 0);
    assert_int_equal(cuda.cuGraphDestroy(graph), 0);
    assert_int_equal(cuda.cuCtxSetCurrent(NULL), 0);
    assert_int_equal(cuda.cuDevicePrimaryCtxRelease(0), 0);
    kiln_stream_close(&stream);
    kiln_device_close(device);
}

static void test_clusters_need_a_newer_driver(void **state) {
    (void)state;
    kiln_device *device = fixture_open(1);
    kiln_stream stream;
    assert_ok(kiln_stream_open(device, 0, &stream));
    scale_arguments arguments = {0};
    kiln_launch_config config = {.grid = {2}, .block = {32}, .cluster = {2}};
    assert_status(kiln_launch(&stream, fixture_kernel(device, "scale"), &config, &arguments, sizeof arguments),
                  KILN_ERROR_UNSUPPORTED);
    assert_told("clusters need a driver of CUDA 11.8, this is libcuda.so.1, CUDA 10.1");
    kiln_stream_close(&stream);
    kiln_device_close(device);
}

/* It encodes no tensor maps: a kernel that takes some is as one that the image does not have. */
static void test_kernels_with_tensor_maps_are_absent(void **state) {
    (void)state;
    kiln_device *device = fixture_open(1);
    kiln_kernel_info kernels[] = {fixture_kernels[0], fixture_kernels[1]};
    kernels[1].boxes[0][0] = 64;
    kiln_image image = fixture_image("sm_75", KILN_IMAGE_PTX, fixture_ptx, sizeof fixture_ptx - 1);
    image.kernels = kernels;
    fixture_bundle made;
    const kiln_module *module;
    const kiln_kernel *kernel;
    fixture_bundle_init(&made, &image, 1);
    assert_ok(kiln_module_get(device, &made.bundle, "f32", &module));
    assert_ok(kiln_module_find_kernel(module, "scale", &kernel));
    assert_status(kiln_module_find_kernel(module, "pair", &kernel), KILN_ERROR_NOT_FOUND);
    kiln_device_close(device);
}

int main(int argc, char **argv) {
    (void)argc;
    setenv("KILN_SIM_DRIVER_VERSION", "10010", 1);
    fixture_start_in(argv, "sm_75,sm_90", "cuda-10");
    const struct CMUnitTest tests[] = {
        fixture_test(test_an_old_driver_is_enough),
        fixture_test(test_loaded_means_resident),
        fixture_test(test_clusters_need_a_newer_driver),
        fixture_test(test_kernels_with_tensor_maps_are_absent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
