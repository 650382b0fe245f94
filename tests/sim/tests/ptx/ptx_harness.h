/* Runs a few PTX instructions over arrays, on the interpreter alone: for tests of single instructions. */
#ifndef KILN_TESTS_SIM_PTX_HARNESS_H
#define KILN_TESTS_SIM_PTX_HARNESS_H

#include "tests/sim/core/sim_random.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HARNESS_SOURCES = 4 };

/* Element i of d becomes what the code computes from element i of the sources. */
typedef struct harness_case {
    const char *target;  /* "sm_90"; NULL: that. The device is of the same compute capability. */
    const char *version; /* "9.0"; NULL: that */
    const char *code; /* instructions over %d and %a %b %c %e; %p %q are predicates, %t0..%t7 and %x0..%x7 registers of
                         32 and 64 bits */
    uint32_t result_bits;                  /* 8, 16, 32 or 64 */
    uint32_t source_bits[HARNESS_SOURCES]; /* 0: no such source */
    uint64_t seed;
    const char *named; /* the code that gives it its name where devices are compared; NULL: all of the code */
    bool open;         /* what comes out is left open, or depends on the lanes' order: no device is compared */
    /* Whether element i may have this result too, as an approximation; NULL: it may not. */
    bool (*allows)(const void *context, size_t i, const void *result);
    const void *context;
} harness_case;

/* Runs count elements, and fails the running cmocka test if the code is refused or faults. Where there is a device to
 * compare with (ptx_device.h), the same runs there, and the verdicts on its results are counted; the test goes on. */
void harness_run(const harness_case *test, size_t count, void *d, const void *const sources[HARNESS_SOURCES]);

/* The reason why the code is refused, which is a failure of the test if it is not. Valid until the next call. */
const char *harness_refusal(const harness_case *test);

/* A seed for random operands: KILN_TEST_SEED, or the time; printed. */
uint64_t harness_seed(void);

#endif
