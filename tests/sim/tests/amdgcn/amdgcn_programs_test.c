/* AMD machine code as compilers write it: the programs of tests/sim/tests/programs, in HIP, launched as its runtime
 * does. */
#include "tests/sim/amdgcn/wave/amd_launch.h"
#include "tests/sim/tests/amdgcn/amdgcn_harness.h"
#include "tests/sim/tests/amdgcn/amdgcn_object.h"
#include "tests/sim/tests/common/programs_host.h"
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static amdgcn_object objects[] = {
    {"programs.gfx90a-O0", "gfx90a", NULL},   {"programs.gfx90a-O3", "gfx90a", NULL},
    {"programs.gfx942-O0", "gfx942", NULL},   {"programs.gfx942-O3", "gfx942", NULL},
    {"programs.gfx1030-O0", "gfx1030", NULL}, {"programs.gfx1030-O3", "gfx1030", NULL},
    {"programs.gfx1100-O0", "gfx1100", NULL}, {"programs.gfx1100-O3", "gfx1100", NULL},
    {"programs.gfx1201-O0", "gfx1201", NULL}, {"programs.gfx1201-O3", "gfx1201", NULL},
};
enum { VARIANTS = sizeof objects / sizeof *objects };

static const char *name(size_t variant) {
    return objects[variant].name;
}

static bool find(void *pointer, uint64_t address, sim_region *out_region) {
    return programs_find(pointer, address, out_region);
}

/* What HIP puts behind a kernel's own arguments (LLVM, "User Guide for AMDGPU Backend", code object V5 metadata). */
typedef struct implicit {
    uint32_t blocks[3];
    uint16_t group[3], remainder[3];
    uint64_t reserved[2], offset[3];
    uint16_t dimensions;
    uint8_t rest[190];
} implicit;
static_assert(sizeof(implicit) == 256, "hidden arguments of code object V5");

typedef struct kernargs {
    _Alignas(64) uint8_t bytes[64 + sizeof(implicit)];
} kernargs;

static kernargs kernargs_make(const programs_launch *l) {
    const implicit hidden = {.blocks = {l->grid[0], l->grid[1], 1},
                             .group = {(uint16_t)l->group[0], (uint16_t)l->group[1], 1},
                             .dimensions = l->grid[1] > 1 ? 2 : 1};
    kernargs made = {{0}};
    memcpy(made.bytes, l->parameters, l->parameter_bytes);
    memcpy(made.bytes + l->parameter_bytes, &hidden, sizeof hidden);
    return made;
}

static void launch(size_t variant, const programs_launch *l) {
    /* HIP gives a kernel whose stack is dynamic more than what it says; recursion goes some levels deep. */
    enum { STACK = 2048 };
    const amd_kernel *kernel = amd_program_find(objects[variant].program, l->kernel);
    assert_non_null(kernel);
    const kernargs arguments = kernargs_make(l);
    const amd_launch launched = {.program = objects[variant].program,
                                 .kernel = kernel,
                                 .grid = {l->grid[0] * l->group[0], l->grid[1] * l->group[1], 1},
                                 .group = {l->group[0], l->group[1], 1},
                                 .group_bytes = kernel->group_bytes,
                                 .private_bytes = kernel->private_bytes + (kernel->dynamic_stack ? STACK : 0),
                                 .kernarg = (uintptr_t)arguments.bytes,
                                 .unaligned = true, /* compilers count on it */
                                 .find = find,
                                 .find_context = (void *)(uintptr_t)l->buffers,
                                 .seed = l->seed,
                                 .budget = 1 << 22,
                                 .threads = 2};
    sim_counters counters = {0};
    sim_report report;
    if (!amd_launch_run(&launched, &counters, &report)) fail_msg("%s: %s", name(variant), report.text);
}

static int load_all(void **state) {
    (void)state;
    return amdgcn_objects_load(objects, VARIANTS);
}

static int free_all(void **state) {
    (void)state;
    return amdgcn_objects_free(objects, VARIANTS);
}

int main(void) {
    if (!amdgcn_harness_ready()) return 0;
    return programs_test("amdgcn_programs", &(const programs_machine){VARIANTS, name, launch, load_all, free_all});
}
