/* Loads from memory into LDS: what lands where, and what comes too early. */
#include "tests/sim/amdgcn/wave/amd_wave.h"
#include "tests/sim/tests/amdgcn/amdgcn_harness.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LDS_BYTES = 4096, WORDS = 256, BASE = 256 };

static _Alignas(64) uint32_t memory[WORDS];
static uint64_t random_state = 1;
static amdgcn_registers before, registers;

static bool find(void *context, uint64_t address, sim_region *out_region) {
    (void)context;
    *out_region = (sim_region){.base = (uintptr_t)memory, .size = sizeof memory};
    return address - out_region->base < sizeof memory;
}

static const amdgcn_setting setting = {.group_bytes = LDS_BYTES, .find = find, .seed = 1};

/* v[2:3]: the address of each lane's own word, backwards; v4: its offset; v5: of LDS; s[8:11]: a buffer of half of the
 * memory; M0: BASE. */
static void fill(const amd_program *program, bool wave64) {
    const uint64_t base = (uintptr_t)memory;
    amdgcn_registers_fill(&before, program, &random_state);
    for (uint32_t i = 0; i < WORDS; i++)
        memory[i] = i * 0x9e3779b9u;
    for (uint32_t l = 0; l < AMD_LANES; l++) {
        const uint64_t address = base + (WORDS - 16 - l) * 4;
        before.v[2][l] = (uint32_t)address;
        before.v[3][l] = (uint32_t)(address >> 32);
        before.v[4][l] = l * 8;
        before.v[5][l] = BASE + l * 4;
    }
    before.s[4] = (uint32_t)base;
    before.s[5] = (uint32_t)(base >> 32);
    before.s[8] = (uint32_t)base;
    before.s[9] = (uint32_t)(base >> 32);
    before.s[10] = sizeof memory / 2;
    before.s[11] = program->target->major == 9 ? 0x00027000 : program->target->major == 10 ? 0x31014000 : 0x31004000;
    before.s[AMD_M0] = BASE;
    before.s[AMD_EXEC] = 0xfffffff7;
    before.s[AMD_EXEC + 1] = wave64 ? 0x7fffffff : 0;
}

typedef enum reaches { BACKWARDS, FORWARDS } reaches;

/* Each is followed by a load of the same lanes from LDS into v8. */
static const struct {
    const char *processor;
    bool wave64;
    const char *load, *read;
    reaches reaches;
    uint32_t offset, bytes;
    bool is_signed, buffer;
} rows[] = {
    {"gfx942", true, "global_load_lds_dword v[2:3], off offset:16", "ds_read_b32 v8, v5 offset:16", BACKWARDS, 16, 4,
     false, false},
    {"gfx942", true, "global_load_lds_ubyte v4, s[4:5] offset:8", "ds_read_b32 v8, v5 offset:8", FORWARDS, 8, 1, false,
     false},
    {"gfx942", true, "global_load_lds_sbyte v4, s[4:5]", "ds_read_b32 v8, v5", FORWARDS, 0, 1, true, false},
    {"gfx942", true, "global_load_lds_ushort v4, s[4:5]", "ds_read_b32 v8, v5", FORWARDS, 0, 2, false, false},
    {"gfx942", true, "global_load_lds_sshort v[2:3], off", "ds_read_b32 v8, v5", BACKWARDS, 0, 2, true, false},
    {"gfx90a", true, "global_load_dword v[2:3], off offset:16 lds", "ds_read_b32 v8, v5 offset:16", BACKWARDS, 16, 4,
     false, false},
    {"gfx942", true, "buffer_load_dword v4, s[8:11], 0 offen offset:24 lds", "ds_read_b32 v8, v5 offset:24", FORWARDS,
     24, 4, false, true},
    {"gfx906", true, "buffer_load_sshort v4, s[8:11], 0 offen lds", "ds_read_b32 v8, v5", FORWARDS, 0, 2, true, true},
    {"gfx1030", false, "buffer_load_dword v4, s[8:11], 0 offen lds", "ds_read_b32 v8, v5", FORWARDS, 0, 4, false, true},
    {"gfx1100", true, "buffer_load_lds_b32 v4, s[8:11], 0 offen", "ds_load_b32 v8, v5", FORWARDS, 0, 4, false, true},
    {"gfx1100", false, "buffer_load_lds_i8 v4, s[8:11], 0 offen", "ds_load_b32 v8, v5", FORWARDS, 0, 1, true, true},
};

static uint32_t expected(size_t row, uint32_t lane) {
    const uint32_t at = (rows[row].reaches == FORWARDS ? lane * 8 : (WORDS - 16 - lane) * 4) + rows[row].offset;
    const uint32_t bits = rows[row].bytes * 8, word = memory[at / 4];
    if (rows[row].buffer && at + rows[row].bytes > sizeof memory / 2) return 0;
    if (rows[row].is_signed) return (uint32_t)((int32_t)(word << (32 - bits)) >> (32 - bits));
    return bits == 32 ? word : word & ((1u << bits) - 1);
}

static void test_what_lands(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[256];
        snprintf(text, sizeof text, "%s\ns_waitcnt vmcnt(0)\n%s\ns_waitcnt lgkmcnt(0)", rows[i].load, rows[i].read);
        amd_program *program = amdgcn_load(rows[i].processor, rows[i].wave64, text);
        fill(program, rows[i].wave64);
        registers = before;
        amdgcn_run(program, &setting, &registers);
        for (uint32_t l = 0; l < (rows[i].wave64 ? 64 : 32); l++) {
            const bool on = before.s[AMD_EXEC + l / 32] >> l % 32 & 1;
            const uint32_t wanted = on ? expected(i, l) : before.v[8][l];
            if (registers.v[8][l] != wanted)
                fail_msg("%s: lane %u is 0x%x, must be 0x%x", text, l, registers.v[8][l], wanted);
        }
        amd_program_free(program);
    }
}

/* A wave loads into LDS, and it or another reads; SCC tells them apart. */
static void test_what_comes_too_early(void **state) {
    (void)state;
    enum { WAVES = 2, SEEDS = 4 };
    static amdgcn_registers waves[WAVES];
    static const struct {
        const char *loads, *reads;
        sim_fault_kind kind;
    } cases[] = {
        {"s_waitcnt vmcnt(0)\ns_barrier", "s_barrier\nds_read_b32 v8, v5\ns_waitcnt lgkmcnt(0)", SIM_FAULT_NONE},
        {"s_barrier\ns_waitcnt vmcnt(0)\ns_barrier", "s_barrier\ns_barrier\nds_read_b32 v8, v5", SIM_FAULT_NONE},
        {"ds_read_b32 v8, v5", "s_nop 0", SIM_FAULT_WAIT},
        {"s_barrier\ns_barrier", "s_barrier\nds_read_b32 v8, v5\ns_waitcnt lgkmcnt(0)\ns_barrier", SIM_FAULT_WAIT},
        {"s_barrier\ns_waitcnt vmcnt(0)", "s_barrier\nds_write_b32 v5, v4\ns_waitcnt lgkmcnt(0)", SIM_FAULT_RACE},
        {"s_waitcnt vmcnt(0)", "ds_read_b32 v8, v5\ns_waitcnt lgkmcnt(0)", SIM_FAULT_RACE},
    };
    for (size_t n = 0; n < sizeof cases / sizeof *cases * SEEDS; n++) {
        const size_t i = n / SEEDS;
        char text[512];
        snprintf(text, sizeof text, "s_cbranch_scc1 other\nglobal_load_lds_dword v[2:3], off\n%s\ns_endpgm\nother:\n%s",
                 cases[i].loads, cases[i].reads);
        amd_program *program = amdgcn_load("gfx942", true, text);
        const amdgcn_setting two = {.waves = WAVES, .group_bytes = LDS_BYTES, .find = find, .seed = n + 1};
        sim_report report = {.kind = SIM_FAULT_NONE};
        fill(program, true);
        for (int w = 0; w < WAVES; w++) {
            waves[w] = before;
            waves[w].scc = w;
        }
        amdgcn_try(program, &two, waves, &report);
        /* Read before it began to be loaded, it was never written. */
        const bool fits =
            report.kind == cases[i].kind || (cases[i].kind == SIM_FAULT_RACE &&
                                             (report.kind == SIM_FAULT_WAIT || report.kind == SIM_FAULT_UNINITIALISED));
        if (!fits) fail_msg("%s with %s: \"%s\"", cases[i].loads, cases[i].reads, report.text);
        amd_program_free(program);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_lands),
        cmocka_unit_test(test_what_comes_too_early),
    };
    if (!amdgcn_harness_ready()) return 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
