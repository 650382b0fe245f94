/* What AMD's memory instructions are told off for: results that are used before they were waited for, bounds,
 * alignment, memory that was never written; and what is refused by name. */
#include "tests/sim/amdgcn/wave/amd_wave.h"
#include "tests/sim/tests/amdgcn/amdgcn_harness.h"
#include "tests/sim/tests/ptx/ptx_harness.h"
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { MEMORY = 4096, LDS = 2048, SCRATCH = 64 };

static _Alignas(64) uint8_t memory[MEMORY];
static uint8_t written[MEMORY / 8];
static amdgcn_registers registers;
static uint64_t random_state;

static bool find(void *context, uint64_t address, sim_region *out_region) {
    (void)context;
    *out_region = (sim_region){(uintptr_t)memory, sizeof memory, written, false};
    return address - out_region->base < sizeof memory;
}

static const amdgcn_setting setting = {
    .group_bytes = LDS, .private_bytes = SCRATCH, .find = find, .seed = 1}; /* one wave */

typedef struct fault_case {
    const char *processor, *text;
    sim_fault_kind kind;
    const char *says;
} fault_case;

/* v[2:3] of each lane is an address of the memory, v4 an offset in LDS, v5 one of scratch; all of memory is written but
 * for the last 64 bytes, s[4:5] begins it, and v[6:7] are those last bytes; s[8:11] is a buffer of 16 bytes. */
static const fault_case faults[] = {
    {"gfx942", "global_load_dword v8, v[2:3], off\nv_mov_b32 v9, v8", SIM_FAULT_WAIT, "v_mov_b32"},
    {"gfx942", "global_load_dword v8, v[2:3], off\nv_mov_b32 v8, 0", SIM_FAULT_WAIT, "v_mov_b32"},
    {"gfx942",
     "global_load_dword v8, v[2:3], off\nglobal_load_dword v9, v[2:3], off\ns_waitcnt vmcnt(1)\n"
     "v_mov_b32 v10, v8",
     SIM_FAULT_NONE, ""},
    {"gfx942",
     "global_load_dword v8, v[2:3], off\nglobal_load_dword v9, v[2:3], off\ns_waitcnt vmcnt(1)\n"
     "v_mov_b32 v10, v9",
     SIM_FAULT_WAIT, "v_mov_b32"},
    {"gfx942", "s_load_dword s20, s[4:5], 0x0\ns_mov_b32 s21, s20", SIM_FAULT_WAIT, "s_load_dword"},
    {"gfx942", "s_load_dword s20, s[4:5], 0x0\ns_load_dword s22, s[4:5], 0x0\ns_waitcnt lgkmcnt(1)\ns_mov_b32 s21, s20",
     SIM_FAULT_WAIT, "s_load_dword"},
    {"gfx942", "ds_write_b32 v4, v8\nds_read_b32 v9, v4\nv_mov_b32 v10, v9", SIM_FAULT_WAIT, "ds_read_b32"},
    /* gfx9: flat accesses count twice and come in no order. */
    {"gfx942", "flat_load_dword v8, v[2:3]\ns_waitcnt vmcnt(0)\nv_mov_b32 v9, v8", SIM_FAULT_WAIT, "flat_load"},
    {"gfx942",
     "flat_load_dword v8, v[2:3]\nflat_load_dword v9, v[2:3]\ns_waitcnt vmcnt(1) lgkmcnt(1)\nv_mov_b32 v9, v8",
     SIM_FAULT_WAIT, "flat_load"},
    {"gfx1100", "flat_load_b32 v8, v[2:3]\nflat_load_b32 v9, v[2:3]\ns_waitcnt vmcnt(1) lgkmcnt(1)\nv_mov_b32 v10, v8",
     SIM_FAULT_NONE, ""},
    /* gfx12: a counter of its own for each kind. */
    {"gfx1201", "global_load_b32 v8, v[2:3], off\ns_wait_dscnt 0x0\nv_mov_b32 v9, v8", SIM_FAULT_WAIT, "global_load"},
    {"gfx1201", "global_load_b32 v8, v[2:3], off\ns_wait_loadcnt 0x0\nv_mov_b32 v9, v8", SIM_FAULT_NONE, ""},
    {"gfx1201", "s_load_b32 s20, s[4:5], 0x0\ns_wait_loadcnt 0x0\ns_mov_b32 s21, s20", SIM_FAULT_WAIT, "s_load_b32"},
    {"gfx1201", "s_load_b32 s20, s[4:5], 0x0\ns_wait_kmcnt 0x0\ns_mov_b32 s21, s20", SIM_FAULT_NONE, ""},
    {"gfx1201", "scratch_store_b32 v5, v8, off\nscratch_load_b32 v9, v5, off\ns_wait_storecnt 0x0\nv_mov_b32 v10, v9",
     SIM_FAULT_WAIT, "scratch_load"},
    {"gfx1100", "s_sendmsg_rtn_b64 s[20:21], sendmsg(MSG_RTN_GET_REALTIME)\ns_mov_b32 s22, s20", SIM_FAULT_WAIT,
     "s_sendmsg_rtn"},
    /* Bounds. */
    {"gfx942", "global_load_dword v8, v[6:7], off offset:64", SIM_FAULT_OUT_OF_BOUNDS, "global_load"},
    {"gfx942", "global_store_dword v[2:3], v8, off offset:-4", SIM_FAULT_OUT_OF_BOUNDS, "lane 0"},
    {"gfx942", "flat_store_dwordx4 v[2:3], v[8:11] offset:4092", SIM_FAULT_OUT_OF_BOUNDS, "flat_store"},
    {"gfx942", "ds_write_b32 v4, v8 offset:2048", SIM_FAULT_OUT_OF_BOUNDS, "LDS"},
    {"gfx942", "ds_add_u32 v4, v8 offset:2048", SIM_FAULT_OUT_OF_BOUNDS, "LDS"},
    {"gfx942", "scratch_store_dword v5, v8, off offset:64", SIM_FAULT_STACK, "scratch of 64"},
    {"gfx942", "scratch_load_dword v8, v5, off offset:-4", SIM_FAULT_STACK, "scratch of 64"},
    {"gfx942", "buffer_load_dwordx4 v[8:11], off, s[8:11], 0 offset:6", SIM_FAULT_OUT_OF_BOUNDS, "end of a buffer"},
    {"gfx942", "buffer_load_dword v8, off, s[8:11], 0 offset:14", SIM_FAULT_OUT_OF_BOUNDS, "end of a buffer"},
    {"gfx942", "buffer_atomic_add_x2 v[8:9], off, s[8:11], 0 offset:12", SIM_FAULT_OUT_OF_BOUNDS, "end of a buffer"},
    {"gfx942", "global_atomic_add v[6:7], v8, off offset:64", SIM_FAULT_OUT_OF_BOUNDS, "global_atomic"},
    {"gfx942", "s_load_dword s20, s[4:5], 0x1000", SIM_FAULT_OUT_OF_BOUNDS, "s_load"},
    /* There is neither a dispatch packet nor anything else at address 0. */
    {"gfx942", "s_mov_b64 s[6:7], 0\ns_load_dword s20, s[6:7], 0x4", SIM_FAULT_OUT_OF_BOUNDS, "s_load"},
    {"gfx942", "v_mov_b32 v2, 0\nv_mov_b32 v3, 0\nglobal_load_dword v8, v[2:3], off offset:60", SIM_FAULT_OUT_OF_BOUNDS,
     "global_load"},
    /* Alignment. */
    {"gfx942", "global_load_dword v8, v[2:3], off offset:2", SIM_FAULT_MISALIGNED, "4 bytes"},
    {"gfx942", "global_load_ushort v8, v[2:3], off offset:1", SIM_FAULT_MISALIGNED, "2 bytes"},
    {"gfx942", "ds_write_b32 v4, v8 offset:2", SIM_FAULT_MISALIGNED, "4 bytes"},
    {"gfx942", "scratch_store_dword v5, v8, off offset:1", SIM_FAULT_MISALIGNED, "4 bytes"},
    {"gfx942", "global_atomic_add_x2 v[2:3], v[8:9], off offset:4", SIM_FAULT_MISALIGNED, "atomic of 8"},
    {"gfx942", "s_load_dword s20, s[4:5], 0x2", SIM_FAULT_MISALIGNED, "s_load"},
    /* Memory that was never written. */
    {"gfx942", "global_load_dword v8, v[6:7], off", SIM_FAULT_UNINITIALISED, "global_load"},
    {"gfx942", "flat_load_ubyte v8, v[6:7]", SIM_FAULT_UNINITIALISED, "flat_load"},
    {"gfx942", "global_atomic_add v[6:7], v8, off", SIM_FAULT_UNINITIALISED, "global_atomic"},
    {"gfx942", "s_load_dword s20, s[4:5], 0xfc0", SIM_FAULT_UNINITIALISED, "s_load"},
    {"gfx942", "ds_read_b32 v8, v4", SIM_FAULT_UNINITIALISED, "LDS"},
    {"gfx942", "ds_write_b8 v4, v8\nds_read_u16 v9, v4", SIM_FAULT_UNINITIALISED, "LDS"},
    /* What the hardware has no meaning for. */
    {"gfx1201", "s_mov_b32 exec_lo, 1\nglobal_load_tr_b128 v[8:11], v[2:3], off", SIM_FAULT_ILLEGAL, "lanes off"},
    {"gfx1201", "s_mov_b32 exec_lo, -1\nglobal_load_tr_b128 v[8:11], v[2:3], off\nv_mov_b32 v12, v11", SIM_FAULT_WAIT,
     "global_load_tr"},
    {"gfx1201", "s_mov_b32 exec_lo, -1\nglobal_load_tr_b128 v[8:11], v[6:7], off offset:56", SIM_FAULT_OUT_OF_BOUNDS,
     "global_load_tr"},
    {"gfx942", "v_mov_b32 v3, 0x20000\nv_mov_b32 v2, 0\nflat_atomic_add v[2:3], v8", SIM_FAULT_ILLEGAL, "on scratch"},
    {"gfx90a", "s_mov_b64 flat_scratch, 0\nv_mov_b32 v3, 0x20000\nv_mov_b32 v2, 0\nflat_store_dword v[2:3], v8",
     SIM_FAULT_STACK, "FLAT_SCRATCH"},
};

static void test_waits_and_faults(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        const fault_case *f = &faults[i];
        bool wave64 = f->processor[3] == '9';
        amd_program *program = amdgcn_load(f->processor, wave64, f->text);
        sim_report report;
        amdgcn_registers_fill(&registers, program, &random_state);
        memset(written, 0xff, sizeof written);
        memset(written + sizeof written - 8, 0, 8);
        for (uint32_t l = 0; l < AMD_LANES; l++) {
            uint64_t address = (uintptr_t)memory + l * 16, last = (uintptr_t)memory + MEMORY - 64;
            for (uint32_t k = 0; k < 2; k++) {
                registers.v[2 + k][l] = (uint32_t)(address >> 32 * k);
                registers.v[6 + k][l] = (uint32_t)(last >> 32 * k);
            }
            registers.v[4][l] = l * 16;
            registers.v[5][l] = 0;
        }
        memcpy(&registers.s[4], &(uint64_t){(uintptr_t)memory}, 8);
        memcpy(&registers.s[8], &(uint64_t){(uintptr_t)memory & 0xffffffffffff}, 8);
        registers.s[10] = 16;
        registers.s[11] = 0;
        amdgcn_try(program, &setting, &registers, &report);
        if (report.kind != f->kind || !strstr(report.text, f->says))
            fail_msg("%s: %s: expected \"%s\", got \"%s\"", f->processor, f->text, sim_fault_text(f->kind),
                     report.text);
        amd_program_free(program);
    }
}

static void test_refusals(void **state) {
    (void)state;
    static const struct {
        const char *processor, *text, *says;
    } bad[] = {
        {"gfx1201", "global_load_tr_b64 v[8:9], v[2:3], off", "global_load_tr_b64 is not simulated: no document"},
        {"gfx942", "scratch_load_lds_dword v2, off", "scratch_load_lds_dword is not simulated"},
        {"gfx906", "ds_add_u32 v0, v1 gds", "\"gds\""},
        {"gfx906", "ds_append v0 gds", "\"gds\""},
        {"gfx942", "ds_read_addtid_b32 v0", "ds_read_addtid_b32 is not simulated"},
        {"gfx1030", "buffer_load_format_x v0, off, s[4:7], 0", "buffer_load_format_x is not simulated"},
        {"gfx1030", "image_load v0, v1, s[0:7] dmask:0x1 dim:SQ_RSRC_IMG_1D", "image_load is not simulated"},
        {"gfx1100", "global_load_addtid_b32 v0, s[0:1]", "global_load_addtid_b32 is not simulated"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *reason = amdgcn_refusal(bad[i].processor, bad[i].processor[3] == '9', bad[i].text);
        if (!strstr(reason, bad[i].says)) fail_msg("%s: \"%s\"", bad[i].text, reason);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waits_and_faults),
        cmocka_unit_test(test_refusals),
    };
    if (!amdgcn_harness_ready()) return 0;
    random_state = harness_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
