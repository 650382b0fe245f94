/* How fast the interpreter of AMD machine code is, which decides how much `make check` can execute: lane-instructions a
 * second of one core on a loop of load, wait, fma, store, and the scalar add, compare and branch that count for no
 * lane. Goal: 500 million. */
#include "tests/bench/interpreter.h"
#include "tests/sim/amdgcn/wave/amd_launch.h"
#include "tests/sim/tests/amdgcn/amdgcn_assembler.h"
#include <stdlib.h>
#include <string.h>

enum { KERNARG_POINTER = 1 << 3, TWO_USER_REGISTERS = 2 << 1, MODE = 0xf0 << 12 };

static const char waves_64[] = "s_load_dwordx2 s[2:3], s[0:1], 0x0\nv_and_b32 v0, 0x3ff, v0\nv_lshlrev_b32 v1, 2, v0\n"
                               "v_mov_b32 v4, 0.5\ns_mov_b32 s4, 0\ns_waitcnt lgkmcnt(0)\nagain:\n"
                               "global_load_dword v2, v1, s[2:3]\ns_waitcnt vmcnt(0)\nv_fma_f32 v3, v2, v4, v4\n"
                               "global_store_dword v1, v3, s[2:3]\ns_add_u32 s4, s4, 1\ns_cmp_lt_u32 s4, 0x4e20\n"
                               "s_cbranch_scc1 again\ns_endpgm\n";
static const char waves_32[] = "s_load_b64 s[2:3], s[0:1], 0x0\nv_and_b32 v0, 0x3ff, v0\nv_lshlrev_b32 v1, 2, v0\n"
                               "v_mov_b32 v4, 0.5\ns_mov_b32 s4, 0\ns_waitcnt lgkmcnt(0)\nagain:\n"
                               "global_load_b32 v2, v1, s[2:3]\ns_waitcnt vmcnt(0)\nv_fma_f32 v3, v2, v4, v4\n"
                               "global_store_b32 v1, v3, s[2:3]\ns_add_u32 s4, s4, 1\ns_cmp_lt_u32 s4, 0x4e20\n"
                               "s_cbranch_scc1 again\ns_endpgm\n";

static bool run(const void *launch, sim_counters *counters, sim_report *report) {
    return amd_launch_run(launch, counters, report);
}

/* The best of five runs, in million lane-instructions a second; 0 with a message if there is none. */
static double measure(const char *processor, bool wave64, const char *text) {
    char why[512];
    size_t size;
    const amd_kernel kernel = {.name = "loop",
                               .kernarg_bytes = sizeof(uint64_t),
                               .properties = KERNARG_POINTER,
                               .rsrc1 = MODE,
                               .rsrc2 = TWO_USER_REGISTERS,
                               .wave32 = !wave64};
    uint8_t *code = amdgcn_assemble(processor, wave64, text, &size, why, sizeof why);
    amd_program *program = code ? amd_program_of_code(code, size, processor, &kernel, why, sizeof why) : NULL;
    free(code);
    if (!program) {
        fprintf(stderr, "%s\n", why);
        return 0;
    }
    const uint64_t pointer = (uintptr_t)memory;
    const amd_launch launch = {.program = program,
                               .kernel = &program->kernels[0],
                               .grid = {1024, 1, 1},
                               .group = {256, 1, 1},
                               .kernarg = (uintptr_t)&pointer,
                               .find = memory_find,
                               .seed = 1,
                               .budget = UINT64_MAX,
                               .threads = 1};
    const double best = interpreter_speed(run, &launch);
    amd_program_free(program);
    return best;
}

int main(void) {
    const char *why;
    if (!amdgcn_assembler_present(&why)) {
        printf("amd-interpreter: not measured: %s\n", why);
        return 0;
    }
    memset(written, 0xff, sizeof written);
    double wide = measure("gfx942", true, waves_64), narrow = measure("gfx1100", false, waves_32);
    printf(
        "amd-interpreter: %.0f million lane-instructions a second on one core in waves of 64 and %.0f in waves of 32 "
        "(goal 500)\n",
        wide, narrow);
    return wide == 0 || narrow == 0;
}
