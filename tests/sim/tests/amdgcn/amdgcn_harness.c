#include "tests/sim/tests/amdgcn/amdgcn_harness.h"
#include "tests/sim/amdgcn/decode/amd_llvm.h"
#include "tests/sim/amdgcn/wave/amd_group.h"
#include "tests/sim/tests/amdgcn/amdgcn_assembler.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BUDGET = 1 << 20 };

/* Vector registers that the descriptor gives, of which M0 may name one. */
enum { EIGHT_OR_MORE = 1 };

static amd_program *load(const char *processor, bool wave64, const char *text, char *why, size_t why_size) {
    char whole[8192];
    assert_true(snprintf(whole, sizeof whole, "%s\ns_endpgm\n", text) < (int)sizeof whole);
    size_t size;
    uint8_t *code = amdgcn_assemble(processor, wave64, whole, &size, why, why_size);
    if (!code) fail_msg("%s: %s: %s", processor, text, why);
    const amd_kernel kernel = {.name = "test", .wave32 = !wave64, .rsrc1 = EIGHT_OR_MORE, .rsrc3 = EIGHT_OR_MORE};
    amd_program *program = amd_program_of_code(code, size, processor, &kernel, why, why_size);
    free(code);
    return program;
}

amd_program *amdgcn_load(const char *processor, bool wave64, const char *text) {
    char why[512] = "";
    amd_program *program = load(processor, wave64, text, why, sizeof why);
    if (!program) fail_msg("%s: %s: %s", processor, text, why);
    return program;
}

amd_program *amdgcn_load_each(const char *processor, bool wave64, const char *const *lines, size_t count,
                              uint32_t *entries) {
    char why[512] = "";
    size_t size;
    bool *taken = calloc(count + 1, sizeof *taken);
    assert_non_null(taken);
    uint8_t *code = amdgcn_assemble_each(processor, wave64, lines, count, taken, &size, why, sizeof why);
    if (!code) fail_msg("%s: %s", processor, why);
    const amd_kernel kernel = {.name = "test", .wave32 = !wave64};
    amd_program *program = amd_program_of_code(code, size, processor, &kernel, why, sizeof why);
    free(code);
    if (!program) fail_msg("%s: %s", processor, why);
    uint32_t at = 0;
    for (size_t i = 0; i < count; i++) {
        entries[i] = taken[i] ? at : AMD_NO_OP;
        at += 1 + taken[i];
    }
    free(taken);
    return program;
}

const char *amdgcn_refusal(const char *processor, bool wave64, const char *text) {
    static char why[512];
    amd_program *program = load(processor, wave64, text, why, sizeof why);
    if (program) {
        amd_program_free(program);
        fail_msg("%s: %s: it is not refused", processor, text);
    }
    return why;
}

void amdgcn_registers_fill(amdgcn_registers *registers, const amd_program *program, uint64_t *random) {
    for (uint32_t r = 0; r < AMD_VECTORS; r++)
        for (uint32_t l = 0; l < AMD_LANES; l++)
            registers->v[r][l] = (uint32_t)sim_random(random);
    for (uint32_t r = 0; r < AMD_SCALARS; r++)
        registers->s[r] = (uint32_t)sim_random(random);
    registers->s[AMD_EXEC] = ~0u;
    registers->s[AMD_EXEC + 1] = program->kernels[0].wave32 ? 0 : ~0u;
    registers->scc = false;
    registers->mode = AMDGCN_MODE;
}

bool amdgcn_try(const amd_program *program, const amdgcn_setting *setting, amdgcn_registers *registers,
                sim_report *report) {
    static const amdgcn_setting plain;
    if (!setting) setting = &plain;
    uint32_t waves = setting->waves ? setting->waves : 1;
    uint32_t items = waves * (program->kernels[0].wave32 ? 32 : 64);
    amd_launch launch = {.program = program,
                         .kernel = &program->kernels[0],
                         .grid = {items, 1, 1},
                         .group = {items, 1, 1},
                         .group_bytes = setting->group_bytes,
                         .private_bytes = setting->private_bytes,
                         .find = setting->find,
                         .find_context = setting->find_context,
                         .seed = setting->seed,
                         .sums = setting->sums,
                         .unaligned = setting->unaligned,
                         .budget = BUDGET,
                         .threads = 1};
    const uint32_t first[3] = {0};
    amd_group group;
    *report = (sim_report){.kind = SIM_FAULT_NONE};
    assert_true(amd_group_new(&group, &launch, report));
    group.random = setting->seed;
    amd_group_begin(&group, first);
    for (uint32_t i = 0; i < waves; i++) {
        amd_wave *wave = &group.waves[i];
        memcpy(wave->v, registers[i].v, sizeof registers[i].v);
        memcpy(wave->s, registers[i].s, sizeof wave->s);
        uint64_t scratch = (uintptr_t)wave->scratch;
        if (scratch) memcpy(&wave->s[AMD_FLAT_SCRATCH], &scratch, sizeof scratch);
        wave->scc = registers[i].scc;
        wave->mode = registers[i].mode;
    }
    bool good = amd_group_run(&group);
    for (uint32_t i = 0; i < waves; i++) {
        const amd_wave *wave = &group.waves[i];
        memcpy(registers[i].v, wave->v, sizeof registers[i].v);
        memcpy(registers[i].s, wave->s, sizeof wave->s);
        registers[i].scc = wave->scc;
        registers[i].mode = wave->mode;
    }
    amd_group_free(&group);
    return good;
}

void amdgcn_run(const amd_program *program, const amdgcn_setting *setting, amdgcn_registers *registers) {
    sim_report report;
    if (!amdgcn_try(program, setting, registers, &report)) fail_msg("%s: %s", program->target->processor, report.text);
}

bool amdgcn_harness_ready(void) {
    const char *why;
    if (amdgcn_assembler_present(&why) && amd_llvm_present(&why)) return true;
    fprintf(stderr, "AMD instructions are NOT tested: %s\n", why);
    printf("1..0 # SKIP %s\n", why);
    return false;
}
