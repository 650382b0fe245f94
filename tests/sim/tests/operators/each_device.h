/* Tests of operators that run once on each simulated device of both vendors, which execute what is launched. */
#ifndef KILN_TESTS_SIM_EACH_DEVICE_H
#define KILN_TESTS_SIM_EACH_DEVICE_H

#include "tests/sim/core/sim_client.h"
#include <kiln/ops.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* The device under test, a stream of it, and the controls of its driver. */
static sim_control sim;
static kiln_device *device;
static kiln_device_info info;
static kiln_stream stream;

/* Setup and teardown of the group of tests that each_device is given. */
static inline int each_device_setup(void **state) {
    (void)state;
    if (kiln_stream_open(device, 0, &stream) == KILN_OK) return 0;
    print_error("%s\n", kiln_last_error());
    return -1;
}

static inline int each_device_teardown(void **state) {
    (void)state;
    kiln_stream_close(&stream);
    kiln_device_close(device);
    return 0;
}

static inline int each_device_of(kiln_backend_id backend, const char *library, int (*run_group)(void)) {
    int failed = 0;
    sim_client_open(library, &sim);
    for (int32_t ordinal = 0;; ordinal++) {
        const kiln_device_options options = {.backend = backend, .ordinal = ordinal};
        if (kiln_device_open(&options, &device) != KILN_OK) return failed;
        kiln_device_get_info(device, &info);
        failed += run_group();
    }
}

/* Runs a group of tests, named info.name, on each of the devices that KILN_SIM_DEVICES names, or these. Call it from
 * main; returns what main returns. */
static inline int each_device(char **argv, const char *devices, int (*run_group)(void)) {
    setenv("KILN_SIM_RECORD", "0", 1);
    setenv("KILN_SIM_DEVICES", devices, 0);
    sim_client_start(argv, NULL);
    return each_device_of(KILN_BACKEND_CUDA, "libcuda.so.1", run_group) +
           each_device_of(KILN_BACKEND_ROCM, "libhsa-runtime64.so.1", run_group);
}

#endif
