/* The programs of tests/sim/tests/programs, launched on an interpreter, with the results that the host computes. */
#ifndef KILN_TESTS_SIM_PROGRAMS_HOST_H
#define KILN_TESTS_SIM_PROGRAMS_HOST_H

#include "tests/sim/core/sim_space.h"
#include <stddef.h>

enum { PROGRAMS_BUFFERS = 3 };

/* A kernel's buffers, the result last; the first that is NULL ends them. */
typedef struct programs_buffers {
    void *memory[PROGRAMS_BUFFERS];
    size_t size[PROGRAMS_BUFFERS];
} programs_buffers;

typedef struct programs_launch {
    const char *kernel;
    uint32_t grid[2], group[2];                /* groups, threads of a group */
    uint64_t parameters[PROGRAMS_BUFFERS + 1]; /* the pointers to buffers, then two words if the kernel takes any */
    size_t parameter_bytes;
    const programs_buffers *buffers;
    uint64_t seed;
} programs_launch;

/* What runs them: each variant is all programs as one compiler wrote them. */
typedef struct programs_machine {
    size_t variants;
    const char *(*name)(size_t variant);
    /* Runs a launch to its end; fails the running test if it faults. */
    void (*launch)(size_t variant, const programs_launch *launched);
    int (*setup)(void **state), (*teardown)(void **state);
} programs_machine;

/* Runs every program in every variant as cmocka tests; returns what main returns. */
int programs_test(const char *name, const programs_machine *tested);

/* The buffer that holds an address; false if none does. */
bool programs_find(const programs_buffers *all, uint64_t address, sim_region *out_region);

/* The bytes of a file of at most 1 MiB, to be freed. Fails the running test if there is none. */
char *programs_read(const char *path, size_t *out_size);

#endif
