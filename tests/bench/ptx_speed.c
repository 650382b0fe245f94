/* How fast the PTX interpreter is, which decides how much `make check` can execute: lane-instructions a second of one
 * core on a loop of load, fma, store, add, compare and branch. Goal: 500 million. */
#include "tests/bench/interpreter.h"
#include "tests/sim/ptx/warp/ptx_warp.h"
#include <string.h>

/* The loop with a multiply-add of the given name. */
#define LOOP(fma)                                                                            \
    ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry loop(.param .u64 p) {\n" \
    ".reg .pred %p<2>;\n.reg .b32 %r<4>;\n.reg .f32 %f<4>;\n.reg .b64 %rd<4>;\n"             \
    "ld.param.u64 %rd1, [p];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 4;\n"            \
    "add.s64 %rd3, %rd1, %rd2;\nmov.u32 %r2, 0;\nmov.f32 %f2, 0f3F000000;\n"                 \
    "AGAIN:\nld.global.f32 %f1, [%rd3];\n" fma " %f3, %f1, %f2, %f2;\n"                      \
    "st.global.f32 [%rd3], %f3;\nadd.s32 %r2, %r2, 1;\nsetp.lt.u32 %p1, %r2, 20000;\n"       \
    "@%p1 bra AGAIN;\nret;\n}\n"

static const struct {
    const char *name, *text;
} loops[] = {{"fma.rn.f32", LOOP("fma.rn.f32")}, {"fma.rn.ftz.f32", LOOP("fma.rn.ftz.f32")}};

static bool run(const void *launch, sim_counters *counters, sim_report *report) {
    return ptx_launch_run(launch, counters, report);
}

static int measure(const char *name, const char *text) {
    char why[256];
    ptx_program *program = ptx_program_load(text, strlen(text), 80, why, sizeof why);
    if (!program) {
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    uint64_t pointer = (uintptr_t)memory;
    ptx_launch launch = {.program = program,
                         .code = ptx_program_find(program, "loop"),
                         .grid = {4, 1, 1},
                         .block = {256, 1, 1},
                         .parameters = (const uint8_t *)&pointer,
                         .find = memory_find,
                         .seed = 1,
                         .budget = UINT64_MAX,
                         .threads = 1};
    const double best = interpreter_speed(run, &launch);
    if (best > 0)
        printf("ptx-interpreter, %s: %.0f million lane-instructions a second on one core (goal 500)\n", name, best);
    ptx_program_free(program);
    return best == 0;
}

int main(void) {
    memset(written, 0xff, sizeof written);
    int failed = 0;
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++)
        failed |= measure(loops[i].name, loops[i].text);
    return failed;
}
