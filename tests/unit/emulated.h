/* What the machinery around a test cannot do. */
#ifndef KILN_TESTS_UNIT_EMULATED_H
#define KILN_TESTS_UNIT_EMULATED_H

#include <stdbool.h>
#include <stdlib.h>

/* Does the test run under qemu? scripts/check_emulated.sh says so. /proc/cpuinfo is then the machine's beneath. */
static inline bool is_emulated(void) {
    return getenv("KILN_TEST_EMULATED") != NULL;
}

/* Can a child of a process that has threads start threads? Not under qemu-user 7.2, which breaks off by an assertion of
 * its own, nor under ThreadSanitizer, which does not follow it. */
static inline bool child_starts_threads(void) {
#ifdef __SANITIZE_THREAD__
    return false;
#else
    return !is_emulated();
#endif
}

#endif
