/* A device of a real CUDA driver, on which the tests of single instructions run their kernels a second time, if
 * KILN_TEST_REAL_CUDA names that driver's library (libcuda.so.1) and KILN_TEST_REAL_DEVICE one of its devices (0 if
 * unset): docs/real-gpu.md. */
#ifndef KILN_TESTS_SIM_PTX_DEVICE_H
#define KILN_TESTS_SIM_PTX_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Opens the device at the first call. false without KILN_TEST_REAL_CUDA; if there is no such device, the program ends.
 */
bool device_present(void);

/* What texts are to be written for: "sm_90", and the highest version that the driver reads, "9.0". */
const char *device_target(void);
const char *device_version(void);

/* The target for which a test's kernel, which has one or NULL, is written on this device: the device's own, or sm_90a
 * and the like where that is the device's. The interpreter refuses instructions that it has not. */
const char *device_target_for(const char *wanted);

typedef struct device_array {
    void *bytes; /* NULL: the kernel gets a null pointer */
    size_t size;
} device_array;

enum { DEVICE_ARRAYS = 8 };

/* Runs the entry "kernel" of a text on copies of the arrays, whose addresses are its parameters, and copies them back.
 * false with the driver's reason; after a fault the device runs nothing more. */
bool device_run(const char *text, uint32_t blocks, uint32_t threads, const device_array *arrays, uint32_t count,
                char *why, size_t why_size);

#endif
