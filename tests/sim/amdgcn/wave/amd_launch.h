/* Runs a dispatch of a kernel over its whole grid. */
#ifndef KILN_TESTS_SIM_AMD_LAUNCH_H
#define KILN_TESTS_SIM_AMD_LAUNCH_H

#include "tests/sim/amdgcn/decode/amd_code.h"
#include "tests/sim/core/sim_space.h"
#include "tests/sim/core/sim_sum.h"

typedef struct amd_launch {
    const amd_program *program;
    const amd_kernel *kernel;
    uint32_t grid[3];       /* in work-items */
    uint32_t group[3];      /* work-items of a group */
    uint32_t group_bytes;   /* LDS: static and dynamic */
    uint32_t private_bytes; /* scratch of each work-item: what the kernel says, or more where its stack is dynamic */
    uint64_t kernarg;
    uint64_t dispatch_packet, queue; /* addresses of the packet and the queue, for kernels that ask; 0: there is none */
    uint64_t dispatch_id;
    bool unaligned;       /* loads and stores may stand anywhere, as ROCm sets the hardware up; else a fault */
    sim_region_find find; /* every address but those of the program's image */
    void *find_context;
    uint64_t seed;
    sim_sum_mode sums; /* of matrix instructions */
    uint64_t budget;   /* instructions of one group */
    uint32_t threads;  /* of the host */
} amd_launch;

/* Runs a launch to its end. Adds to counters. Returns false with a report if it ended early; what was written until
 * then stays written. */
bool amd_launch_run(const amd_launch *launch, sim_counters *counters, sim_report *report);

#endif
