/* Scratch that was never written: reported where something depends on it, in single instructions and in what clang
 * makes of tests/sim/tests/programs/undefined.cu; and not where it is only moved. */
#include "tests/sim/amdgcn/wave/amd_launch.h"
#include "tests/sim/tests/amdgcn/amdgcn_harness.h"
#include "tests/sim/tests/amdgcn/amdgcn_object.h"
#include "tests/sim/tests/ptx/ptx_harness.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- Single instructions ---- */

enum { LDS = 1024, SCRATCH = 64, WORDS = 4096 };

static _Alignas(64) uint32_t in[WORDS], out[WORDS];
static amdgcn_registers registers;
static uint64_t random_state;

static bool find(void *context, uint64_t address, sim_region *out_region) {
    (void)context;
    *out_region = (sim_region){.base = (uintptr_t)in, .size = sizeof in};
    if (address - out_region->base < sizeof in) return true;
    *out_region = (sim_region){.base = (uintptr_t)out, .size = sizeof out};
    return address - out_region->base < sizeof out;
}

/* What a text does with v8, of which nothing is defined, and v9, of which the lowest byte is; s20 is v8 of the first
 * lane. v1 is the lane, v[2:3] its own place in out, v4 its own in LDS, v5 is 0, v[6:7] the address of scratch; s[4:5]
 * is where out begins. */
typedef struct row {
    const char *text;
    const char *says; /* NULL: nothing is wrong */
} row;

static const row gfx942[] = {
    /* What others see. */
    {"global_store_dword v[2:3], v8, off", "v8 depends on scratch that 0x"},
    {"global_store_dword v5, v8, s[4:5]", "global_store_dword v5"},
    {"flat_store_dword v[2:3], v8", "flat_store"},
    {"ds_write_b32 v4, v8", "ds_write"},
    {"ds_write2_b32 v4, v5, v8 offset1:1", "ds_write2"},
    {"global_store_short v[2:3], v8, off", "lane 0, address 0x10"},
    {"global_store_short_d16_hi v[2:3], v9, off", "v9 depends"},
    {"global_atomic_add v[2:3], v8, off", "global_atomic_add"},
    {"ds_write_b32 v4, v5\nds_add_u32 v4, v8", "ds_add_u32"},
    {"global_store_byte v[2:3], v8, off", NULL},
    {"global_store_dword v[2:3], v9, off", NULL},
    {"v_mov_b32 v10, v5\nv_mov_b32 v11, v8\nglobal_store_dwordx2 v[2:3], v[10:11], off", NULL},
    {"v_mov_b32 v10, v8\nv_mov_b32 v11, v8\nglobal_store_dwordx2 v[2:3], v[10:11], off", "global_store_dwordx2"},
    {"s_mov_b64 exec, 0\nglobal_store_dword v[2:3], v8, off", NULL},
    /* Addresses. */
    {"global_load_dword v10, v8, s[4:5]", "global_load"},
    {"flat_load_dword v10, v[8:9]", "flat_load"},
    {"ds_read_b32 v10, v8", "ds_read"},
    {"scratch_load_dword v10, v8, off", "scratch_load_dword v10"},
    {"scratch_store_dword v8, v5, off", "scratch_store"},
    {"s_load_dword s21, s[4:5], s20", "s20 depends"},
    {"s_add_u32 s21, s20, 1", "s_add_u32"},
    {"s_setpc_b64 s[20:21]", "s_setpc"},
    /* Other lanes. */
    {"ds_bpermute_b32 v10, v4, v8", "ds_bpermute"},
    {"ds_swizzle_b32 v10, v8 offset:swizzle(SWAP,1)", "ds_swizzle"},
    {"v_mov_b32_dpp v10, v8 row_shr:1 row_mask:0xf bank_mask:0xf\nglobal_store_dword v[2:3], v10, off", "v10 depends"},
    {"v_cmp_eq_u32 s[22:23], 5, v8\ns_bcnt1_i32_b64 s24, s[22:23]", "s_bcnt1"},
    {"v_mfma_f32_4x4x1_16b_f32 a[0:3], v8, v5, a[0:3]", "v_mfma"},
    /* Which lanes are on, and where the wave goes. */
    {"v_cmp_eq_u32 vcc, 5, v8\ns_and_saveexec_b64 s[22:23], vcc", "lane 0"},
    {"v_cmp_eq_u32 vcc, 5, v8\ns_mov_b64 exec, vcc", "EXEC depends"},
    {"v_cmp_eq_u32 s[22:23], 5, v8\nv_cmp_ne_u32 vcc, 9, v1\ns_and_saveexec_b64 s[22:23], vcc\n"
     "s_mov_b64 exec, s[22:23]",
     NULL},
    {"v_cmpx_eq_u32 vcc, 5, v8", "v_cmpx"},
    {"v_cmp_eq_u32 vcc, 5, v8\ns_cbranch_vccnz over\nover:", "VCC depends"},
    {"v_cmp_eq_u32 vcc, 5, v8\ns_and_b64 s[22:23], vcc, exec\ns_cbranch_scc1 over\nover:", "SCC depends"},
    {"s_cmp_eq_u32 s20, 5", "s_cmp"},
    {"v_cmp_eq_u32 s[22:23], 9, v1\nv_cmp_eq_u32 vcc, 5, v8\ns_and_b64 s[22:23], s[22:23], vcc\n"
     "s_and_saveexec_b64 s[24:25], s[22:23]",
     "lane 9"},
    {"v_cmp_gt_u32 s[22:23], 0, v1\nv_cmp_eq_u32 vcc, 5, v8\ns_and_b64 s[22:23], s[22:23], vcc\n"
     "s_and_saveexec_b64 s[24:25], s[22:23]\ns_cbranch_scc1 over\nover:",
     NULL},
    {"v_cmp_le_u32 s[22:23], 0, v1\nv_cmp_eq_u32 vcc, 5, v8\ns_or_b64 vcc, s[22:23], vcc\ns_cbranch_vccz over\nover:",
     NULL},
    {"v_cmp_eq_u32 s[22:23], 5, v1\nv_cmp_eq_u32 vcc, 5, v8\ns_or_b64 vcc, s[22:23], vcc\ns_cbranch_vccz over\nover:",
     NULL},
    {"v_cmp_eq_u32 vcc, 5, v8\ns_mov_b64 vcc, 0\ns_cbranch_vccz over\nover:", NULL},
    {"v_cmp_eq_u32 vcc, 5, v8\ns_andn2_b64 vcc, vcc, vcc\ns_cbranch_vccz over\nover:", "VCC"},
    {"v_cmp_eq_u32 vcc, 5, v8\ns_andn2_b64 vcc, vcc, exec\ns_cbranch_vccz over\nover:", NULL},
    /* What is made of it. */
    {"v_add_u32 v10, 1, v8\nv_mul_f32 v10, v10, v10\nglobal_store_dword v[2:3], v10, off", "v10 depends"},
    {"v_add_u32 v10, 1, v9\nglobal_store_dword v[2:3], v10, off", "v10 depends"},
    {"v_add_u32 v10, 1, v8\nv_mov_b32 v10, 3\nglobal_store_dword v[2:3], v10, off", NULL},
    {"v_add_co_u32 v10, vcc, v8, v5\nv_addc_co_u32 v10, vcc, v5, v5, vcc\nglobal_store_dword v[2:3], v10, off",
     "v10 depends"},
    {"v_cmp_eq_u32 vcc, 5, v8\nv_cndmask_b32 v10, v1, v5, vcc\nglobal_store_dword v[2:3], v10, off", "v10 depends"},
    {"v_cmp_gt_u32 vcc, 99, v1\nv_cndmask_b32 v10, v8, v1, vcc\nglobal_store_dword v[2:3], v10, off", NULL},
    {"v_cmp_ne_u32 vcc, 7, v1\nv_cndmask_b32 v10, v8, v1, vcc\nglobal_store_dword v[2:3], v10, off", "lane 7"},
    {"v_cmp_ne_u32 vcc, 7, v1\nv_cndmask_b32 v10, 1, v8, vcc\ns_mov_b64 exec, 128\nglobal_store_dword v[2:3], v10, off",
     NULL},
    {"v_and_b32 v10, 0xff, v9\nv_cmp_eq_u32 vcc, 5, v10\ns_and_saveexec_b64 s[22:23], vcc", NULL},
    {"v_and_b32 v10, 0x1ff, v9\nv_cmp_eq_u32 vcc, 5, v10\ns_and_saveexec_b64 s[22:23], vcc", "lane 0"},
    {"v_or_b32 v10, 0xffffff00, v9\nv_cmp_eq_u32 vcc, 5, v10\ns_and_saveexec_b64 s[22:23], vcc", NULL},
    {"v_or_b32 v10, 0xffffff, v9\nv_cmp_eq_u32 vcc, 5, v10\ns_and_saveexec_b64 s[22:23], vcc", "lane 0"},
    {"v_and_b32 v8, v8, v5\nglobal_load_dword v10, v8, s[4:5]", NULL},
    {"v_and_b32 v8, v8, v8\nglobal_load_dword v10, v8, s[4:5]", "v8 depends"},
    {"v_and_or_b32 v10, v9, 15, v5\nv_lshlrev_b32 v10, 2, v10\nglobal_load_dword v11, v10, s[4:5]", NULL},
    {"v_not_b32 v10, v8\nglobal_store_dword v[2:3], v10, off", "v10 depends"},
    {"v_xor_b32 v10, v8, v8\nglobal_store_dword v[2:3], v10, off", "v10 depends"},
    {"v_lshlrev_b32 v10, 24, v9\nglobal_load_dword v11, v[2:3], off\nds_write_b32 v4, v10\n"
     "v_lshrrev_b32 v10, 28, v10\nv_lshlrev_b32 v10, 2, v10\nglobal_load_dword v11, v10, s[4:5]",
     NULL},
    {"v_lshrrev_b32 v9, v1, v9\nglobal_store_short v[2:3], v9, off", "lane 8"},
    {"v_lshlrev_b32 v9, 24, v9\nv_ashrrev_i32 v9, 24, v9\nv_and_b32 v9, 4, v9\nglobal_load_dword v11, v9, s[4:5]",
     NULL},
    {"v_bfe_u32 v10, v9, 2, 4\nv_lshlrev_b32 v10, 2, v10\nglobal_load_dword v11, v10, s[4:5]", NULL},
    {"s_mov_b32 s21, 0xc0c0c04\nv_perm_b32 v10, v9, v8, s21\nv_and_b32 v10, 4, v10\nglobal_load_dword v11, v10, s[4:5]",
     NULL},
    {"s_mov_b32 s21, 0xd040404\nv_perm_b32 v10, v9, v8, s21\nv_lshrrev_b32 v10, 24, v10\nv_cmp_eq_u32 vcc, 5, v10\n"
     "s_and_saveexec_b64 s[22:23], vcc",
     NULL},
    {"v_cvt_f32_ubyte0 v10, v9\nglobal_store_dword v[2:3], v10, off", NULL},
    {"v_cvt_f32_ubyte1 v10, v9\nglobal_store_dword v[2:3], v10, off", "v10 depends"},
    {"v_and_b32_sdwa v10, v9, v9 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_0 src1_sel:BYTE_0\n"
     "v_cmp_eq_u32 vcc, 5, v10\ns_and_saveexec_b64 s[22:23], vcc",
     NULL},
    {"v_add_u16_sdwa v10, v9, v9 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_0 src1_sel:BYTE_0\n"
     "global_store_dword v[2:3], v10, off",
     NULL},
    {"v_mov_b32 v10, v8\nv_mov_b32_sdwa v10, v5 dst_sel:WORD_0 dst_unused:UNUSED_PRESERVE src0_sel:WORD_0\n"
     "v_add_f16 v11, v10, v10\nglobal_store_dword v[2:3], v11, off",
     NULL},
    {"v_pk_add_f16 v10, v9, v5\nv_cmp_eq_u16 vcc, 5, v10", NULL},
    {"v_mov_b32 v10, v8\nv_mov_b32_sdwa v10, v5 dst_sel:WORD_0 dst_unused:UNUSED_PRESERVE src0_sel:WORD_0\n"
     "v_pk_add_f16 v10, v10, v10\nglobal_store_short v[2:3], v10, off",
     NULL},
    {"v_mov_b32 v10, v8\nv_mov_b32_sdwa v10, v5 dst_sel:WORD_0 dst_unused:UNUSED_PRESERVE src0_sel:WORD_0\n"
     "v_pk_add_f16 v10, v10, v10\nglobal_store_short_d16_hi v[2:3], v10, off",
     "v10 depends"},
    {"v_mov_b32 v10, v5\nv_mov_b32 v11, v8\nv_pk_add_f32 v[10:11], v[10:11], v[10:11]\n"
     "global_store_dword v[2:3], v10, off",
     NULL},
    {"v_dot2_f32_f16 v10, v8, v5, v5\ns_nop 4\nglobal_store_dword v[2:3], v10, off", "v10 depends"},
    {"v_swap_b32 v8, v5\nglobal_store_dword v[2:3], v8, off\nglobal_store_dword v[2:3], v5, off", "v5 depends"},
    /* Through scratch, accumulators, lanes and scalars. */
    {"scratch_store_dword off, v8, off offset:32\nscratch_load_dword v10, off, off offset:32\ns_waitcnt vmcnt(0)\n"
     "global_store_dword v[2:3], v10, off",
     "address 0x20"},
    {"scratch_store_dword off, v1, off offset:32\nscratch_load_dword v8, off, off offset:32\ns_waitcnt vmcnt(0)\n"
     "global_store_dword v[2:3], v8, off",
     NULL},
    {"flat_store_dword v[6:7], v8 offset:32\nflat_load_dword v10, v[6:7] offset:32\ns_waitcnt vmcnt(0) lgkmcnt(0)\n"
     "global_store_dword v[2:3], v10, off",
     "address 0x20"},
    {"flat_store_short v[6:7], v1 offset:32\nflat_load_ushort v10, v[6:7] offset:32\ns_waitcnt vmcnt(0) lgkmcnt(0)\n"
     "global_store_dword v[2:3], v10, off",
     NULL},
    {"scratch_store_byte off, v1, off offset:32\nscratch_load_sbyte v10, off, off offset:32\ns_waitcnt vmcnt(0)\n"
     "v_lshlrev_b32 v10, 2, v10\nglobal_load_dword v8, v10, s[4:5]",
     NULL},
    {"v_mov_b32 v10, v5\nscratch_load_short_d16_hi v10, off, off offset:32\ns_waitcnt vmcnt(0)\n"
     "global_store_short v[2:3], v10, off",
     NULL},
    {"v_mov_b32 v10, v5\nscratch_load_short_d16_hi v10, off, off offset:32\ns_waitcnt vmcnt(0)\n"
     "global_store_short_d16_hi v[2:3], v10, off",
     "address 0x20"},
    {"global_load_short_d16 v8, v[2:3], off\ns_waitcnt vmcnt(0)\nglobal_store_short v[2:3], v8, off", NULL},
    {"global_load_short_d16 v8, v[2:3], off\ns_waitcnt vmcnt(0)\nglobal_store_short_d16_hi v[2:3], v8, off",
     "v8 depends"},
    {"global_load_dword v8, v[2:3], off\ns_waitcnt vmcnt(0)\nglobal_store_dword v[2:3], v8, off", NULL},
    {"v_accvgpr_write_b32 a1, v8\nv_accvgpr_read_b32 v10, a1\nglobal_store_dword v[2:3], v10, off", "v10 depends"},
    {"v_accvgpr_write_b32 a1, v8\nglobal_store_dword v[2:3], a1, off", "a1 depends"},
    {"s_nop 4\nv_writelane_b32 v10, s20, 3\nv_readlane_b32 s22, v10, 3\ns_mov_b32 m0, s22", NULL},
    {"v_writelane_b32 v10, s20, 3\nv_readlane_b32 s22, v10, 3\ns_cmp_eq_u32 s22, 0", "s22 depends"},
    {"v_writelane_b32 v10, s20, 3\nv_readlane_b32 s22, v10, 4\ns_cmp_eq_u32 s22, 0", NULL},
    {"s_and_b32 s22, s20, 0\ns_cmp_eq_u32 s22, 0", NULL},
    {"s_lshl_b32 s22, s20, 16\ns_and_b32 s22, s22, 0xffff\ns_cmp_eq_u32 s22, 0", NULL},
    {"s_lshl_b32 s22, s20, 16\ns_lshr_b32 s22, s22, 31\ns_cmp_eq_u32 s22, 0", "s22 depends"},
    {"s_or_b32 s22, s20, 1\ns_cbranch_scc1 over\nover:", NULL},
    {"s_or_b32 s22, s20, 0\ns_cbranch_scc1 over\nover:", "SCC depends"},
    {"s_or_b32 s22, s20, 0\ns_cmp_eq_u32 s4, 0\ns_cbranch_scc1 over\nover:", NULL},
    {"s_or_b32 s22, s20, 0\ns_mul_i32 s23, s4, s4\ns_cbranch_scc1 over\nover:", "SCC depends"},
    /* Registers that M0 names. */
    {"v_mov_b32 v7, v8\ns_set_gpr_idx_on s19, gpr_idx(SRC0)\nv_mov_b32 v6, v5\ns_set_gpr_idx_off\n"
     "global_store_dword v[2:3], v6, off",
     "v6 depends"},
    {"v_mov_b32 v7, v8\ns_set_gpr_idx_on s19, gpr_idx(DST)\nv_mov_b32 v5, v1\ns_set_gpr_idx_off\n"
     "global_store_dword v[2:3], v7, off",
     NULL},
};

static const row gfx1100[] = {
    {"global_store_b32 v[2:3], v8, off", "v8 depends on scratch that 0x"},
    {"v_dual_mov_b32 v10, v8 :: v_dual_mov_b32 v11, v1\nglobal_store_b32 v[2:3], v11, off\n"
     "global_store_b32 v[2:3], v10, off",
     "v10 depends"},
    {"v_dual_mov_b32 v8, v1 :: v_dual_mov_b32 v11, v8\nglobal_store_b32 v[2:3], v8, off\n"
     "global_store_b32 v[2:3], v11, off",
     "v11 depends"},
    {"v_cmp_eq_u32 vcc_lo, 5, v8\ns_and_saveexec_b32 s22, vcc_lo", "lane 0"},
    {"v_cmpx_eq_u32 5, v8", "v_cmpx"},
    {"v_cmp_eq_u32 vcc_lo, 5, v8\ns_and_not1_b32 vcc_lo, vcc_lo, exec_lo\ns_cbranch_vccz over\nover:", NULL},
    {"v_cmp_eq_u32 vcc_lo, 5, v8\ns_and_not1_b32 vcc_lo, exec_lo, vcc_lo\ns_cbranch_vccz over\nover:", "VCC depends"},
    {"v_cmp_eq_u32 vcc_lo, 5, v8\nv_dual_cndmask_b32 v10, v1, v5 :: v_dual_mov_b32 v11, v4\n"
     "global_store_b32 v[2:3], v10, off",
     "v10 depends"},
    {"s_mov_b32 m0, 3\nv_movrels_b32 v10, v5\nglobal_store_b32 v[2:3], v10, off", "v10 depends"},
    {"s_mov_b32 m0, 3\nv_movreld_b32 v5, v1\nglobal_store_b32 v[2:3], v8, off", NULL},
    {"v_permlane16_b32 v10, v8, s4, s5", "v_permlane16"},
};

static void run_row(const char *processor, const row *one, const char *loads) {
    char text[2048];
    const bool wave64 = processor[3] == '9';
    snprintf(text, sizeof text, "%s\n%s", loads, one->text);
    amd_program *program = amdgcn_load(processor, wave64, text);
    const amdgcn_setting setting = {.group_bytes = LDS, .private_bytes = SCRATCH, .find = find, .seed = 1};
    sim_report report;
    amdgcn_registers_fill(&registers, program, &random_state);
    for (uint32_t l = 0; l < AMD_LANES; l++) {
        const uint64_t address = (uintptr_t)out + l * 16;
        registers.v[1][l] = l;
        registers.v[2][l] = (uint32_t)address;
        registers.v[3][l] = (uint32_t)(address >> 32);
        registers.v[4][l] = l * 16;
        registers.v[5][l] = registers.v[6][l] = 0;
        registers.v[7][l] = 0x20000; /* the aperture of scratch */
    }
    memcpy(&registers.s[4], &(uint64_t){(uintptr_t)out}, 8);
    registers.s[19] = 2;
    amdgcn_try(program, &setting, &registers, &report);
    const sim_fault_kind kind = one->says ? SIM_FAULT_UNINITIALISED : SIM_FAULT_NONE;
    if (report.kind != kind || (one->says && !strstr(report.text, one->says)))
        fail_msg("%s: %s: expected \"%s\", got \"%s\"", processor, one->text, one->says ? one->says : "nothing",
                 report.text);
    amd_program_free(program);
}

static void test_instructions(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof gfx942 / sizeof *gfx942; i++)
        run_row("gfx942", &gfx942[i],
                "scratch_store_byte off, v1, off offset:4\nscratch_load_dword v8, off, off offset:16\n"
                "scratch_load_dword v9, off, off offset:4\ns_waitcnt vmcnt(0)\nv_readfirstlane_b32 s20, v8");
    for (size_t i = 0; i < sizeof gfx1100 / sizeof *gfx1100; i++)
        run_row("gfx1100", &gfx1100[i], "scratch_load_b32 v8, off, off offset:16\ns_waitcnt vmcnt(0)");
}

/* ---- Programs ---- */

enum { ITEMS = 64, SEEDS = 2 };

static amdgcn_object objects[] = {
    {"undefined.gfx90a-O0", "gfx90a", NULL},   {"undefined.gfx90a-O3", "gfx90a", NULL},
    {"undefined.gfx942-O0", "gfx942", NULL},   {"undefined.gfx942-O3", "gfx942", NULL},
    {"undefined.gfx1100-O0", "gfx1100", NULL}, {"undefined.gfx1100-O3", "gfx1100", NULL},
};
enum { OBJECTS = sizeof objects / sizeof *objects };

static int load_all(void **state) {
    (void)state;
    return amdgcn_objects_load(objects, OBJECTS);
}

static int free_all(void **state) {
    (void)state;
    return amdgcn_objects_free(objects, OBJECTS);
}

static sim_report launch(size_t n, const char *name, uint64_t seed) {
    const struct {
        uint64_t in, out;
        uint8_t hidden[256];
    } arguments = {(uintptr_t)in, (uintptr_t)out, {0}};
    enum { STACK = 2048 }; /* for recursion */
    const amd_kernel *kernel = amd_program_find(objects[n].program, name);
    if (!kernel) fail_msg("%s: no kernel %s", objects[n].name, name);
    const amd_launch launched = {.program = objects[n].program,
                                 .kernel = kernel,
                                 .grid = {ITEMS, 1, 1},
                                 .group = {ITEMS, 1, 1},
                                 .group_bytes = kernel->group_bytes,
                                 .private_bytes = kernel->private_bytes + (kernel->dynamic_stack ? STACK : 0),
                                 .kernarg = (uintptr_t)&arguments,
                                 .unaligned = true,
                                 .find = find,
                                 .seed = seed,
                                 .budget = 1 << 22,
                                 .threads = 1};
    sim_counters counters = {0};
    sim_report report;
    for (uint32_t i = 0; i < WORDS; i++)
        in[i] = i * 7 % 61;
    memset(out, 0, sizeof out);
    amd_launch_run(&launched, &counters, &report);
    return report;
}

static void test_bugs(void **state) {
    (void)state;
    static const char *const bugs[] = {
        "stores", "calculates", "converts", "addresses", "loads_from",    "branches", "loops",       "chooses",
        "shares", "exchanges",  "counts",   "votes",     "stores_a_half", "calls",    "in_one_lane", "copies_before"};
    for (size_t n = 0; n < OBJECTS; n++)
        for (size_t i = 0; i < sizeof bugs / sizeof *bugs; i++)
            for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                const sim_report report = launch(n, bugs[i], seed);
                if (report.kind != SIM_FAULT_UNINITIALISED || !strstr(report.text, "depends on scratch") ||
                    !strstr(report.text, bugs[i]))
                    fail_msg("%s, %s: got \"%s\"", objects[n].name, bugs[i], report.text);
            }
}

static uint32_t depth(uint32_t x) {
    return x < 2 ? x : depth(x - 1) + depth(x - 2) % 7;
}

static uint32_t expected_padding(uint32_t t) {
    const uint32_t x = in[t] + (in[t] & 3);
    return (x & 255) + x * 3 + (uint32_t)(((uint64_t)x << 33) >> 32) + (x >> 3 & 255);
}

static uint32_t expected_vectors(uint32_t t) {
    return 2 * (3 * in[t] + 3) + 3 * t + 3;
}

static uint32_t expected_halves(uint32_t t) {
    return 2 * (in[t] & 255);
}

static uint32_t expected_fields(uint32_t t) {
    return (t & 31) + (in[t] & 2047) * 32;
}

static uint32_t expected_ahead(uint32_t t) {
    const uint32_t number = in[t] / 2;
    if (in[t] % 2) return 100 + 4;
    return (number < 20 ? 1000 : 0) + number + (number > 10 ? 3 : 4);
}

static uint32_t expected_bytes(uint32_t t) {
    return t;
}

static uint32_t expected_spills(uint32_t t) {
    const uint32_t a = in[t], b = in[t + 1];
    uint32_t sum = 0;
    for (uint32_t i = 0; i < a % 5; i++) {
        if ((a + i) % 2) sum += depth(i + t % 3) * b;
        if (a % 3) sum += b * 7 ^ i;
    }
    return sum + a;
}

static void test_copies(void **state) {
    (void)state;
    static const struct {
        const char *name;
        uint32_t (*expected)(uint32_t thread);
    } kernels[] = {
        {"copies_padding", expected_padding}, {"adds_parts_of_vectors", expected_vectors},
        {"adds_halves", expected_halves},     {"sets_fields", expected_fields},
        {"looks_ahead", expected_ahead},      {"packs_bytes", expected_bytes},
        {"spills", expected_spills},
    };
    for (size_t n = 0; n < OBJECTS; n++)
        for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
            for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                const sim_report report = launch(n, kernels[i].name, seed);
                if (report.kind != SIM_FAULT_NONE)
                    fail_msg("%s, %s: \"%s\"", objects[n].name, kernels[i].name, report.text);
                for (uint32_t t = 0; t < ITEMS; t++)
                    if (out[t] != kernels[i].expected(t))
                        fail_msg("%s, %s: thread %u got %u, expected %u", objects[n].name, kernels[i].name, t, out[t],
                                 kernels[i].expected(t));
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_instructions),
        cmocka_unit_test(test_bugs),
        cmocka_unit_test(test_copies),
    };
    if (!amdgcn_harness_ready()) return 0;
    random_state = harness_seed();
    return cmocka_run_group_tests(tests, load_all, free_all);
}
