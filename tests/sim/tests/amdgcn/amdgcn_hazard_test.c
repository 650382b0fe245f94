/* Wait states around matrix instructions: one less than needed is a fault, as many as needed are none. */
#include "tests/sim/amdgcn/wave/amd_wave.h"
#include "tests/sim/tests/amdgcn/amdgcn_harness.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* From the tables of manually inserted wait states in AMD's instruction set guides for MI200 and MI300, in which XDL is
 * every MFMA but those of f64 ("DGEMM") and, on MI300, of f32 ("SGEMM"). */
typedef struct rule {
    const char *processor, *first, *second;
    uint32_t needed;
} rule;

/* Two, eight and sixteen passes on gfx90a; two, four, eight and sixteen on gfx942. All write v0 and up, C is v[40:..].
 */
#define A_2  "v_mfma_f32_4x4x4f16 v[0:3], v[32:33], v[34:35], v[40:43]"
#define A_8  "v_mfma_f32_16x16x16f16 v[0:3], v[32:33], v[34:35], v[40:43]"
#define A_16 "v_mfma_f32_32x32x8f16 v[0:15], v[32:33], v[34:35], v[40:55]"
#define A_S  "v_mfma_f32_16x16x4f32 v[0:3], v32, v34, v[40:43]"
#define A_D4 "v_mfma_f64_4x4x4f64 v[0:1], v[32:33], v[34:35], v[40:41]"
#define A_D  "v_mfma_f64_16x16x4f64 v[0:7], v[32:33], v[34:35], v[40:47]"
#define B_2  "v_mfma_f32_4x4x4_16b_f16 v[0:3], v[32:33], v[34:35], v[40:43]"
#define B_4  "v_mfma_f32_16x16x16_f16 v[0:3], v[32:33], v[34:35], v[40:43]"
#define B_8  "v_mfma_f32_32x32x8_f16 v[0:15], v[32:33], v[34:35], v[40:55]"
#define B_16 "v_mfma_f32_32x32x4_2b_f16 v[0:31], v[32:33], v[34:35], v[40:71]"
#define B_S8 "v_mfma_f32_16x16x4_f32 v[0:3], v32, v34, v[40:43]"
#define B_D4 "v_mfma_f64_4x4x4_4b_f64 v[0:1], v[32:33], v[34:35], v[40:41]"
#define B_D  "v_mfma_f64_16x16x4_f64 v[0:7], v[32:33], v[34:35], v[40:47]"

static const rule rules[] = {
    /* What the vector ALU reads and writes. */
    {"gfx90a", A_2, "v_add_f32 v99, v98, v3", 5},
    {"gfx90a", A_8, "v_add_f32 v99, v0, v98", 11},
    {"gfx90a", A_16, "v_add_f32 v99, v98, v15", 19},
    {"gfx90a", A_S, "v_add_f32 v99, v98, v1", 11},
    {"gfx90a", A_2, "v_mov_b32 v3, v98", 5},
    {"gfx90a", A_8, "v_mov_b32 v3, v98", 11},
    {"gfx90a", A_16, "v_mov_b32 v3, v98", 19},
    {"gfx90a", A_D4, "v_add_f64 v[98:99], v[96:97], v[0:1]", 6},
    {"gfx90a", A_D, "v_add_f64 v[98:99], v[96:97], v[6:7]", 11},
    {"gfx90a", A_D, "v_mov_b32 v7, v98", 11},
    {"gfx90a", A_16, "v_add_f32 v99, v98, v16", 0},
    {"gfx942", B_2, "v_add_f32 v99, v98, v3", 5},
    {"gfx942", B_4, "v_add_f32 v99, v98, v3", 7},
    {"gfx942", B_8, "v_add_f32 v99, v98, v3", 11},
    {"gfx942", B_16, "v_add_f32 v99, v98, v31", 19},
    {"gfx942", B_S8, "v_add_f32 v99, v98, v3", 10},
    {"gfx942", B_S8, "v_mov_b32 v3, v98", 10},
    {"gfx942", B_4, "v_accvgpr_write_b32 a0, v3", 7},
    /* Stores, which take their data through LDS's and memory's path. */
    {"gfx90a", A_8, "ds_write_b32 v80, v1", 11},
    {"gfx90a", A_D4, "ds_write_b32 v80, v1", 9},
    {"gfx90a", A_D, "ds_write_b32 v80, v1", 18},
    {"gfx942", B_4, "ds_write_b32 v80, v1", 7},
    {"gfx942", B_D, "ds_write_b32 v80, v1", 18},
    /* Another MFMA: A and B; C when it is the same; C when it is a part. */
    {"gfx90a", A_2, "v_mfma_f32_4x4x4f16 v[4:7], v[2:3], v[34:35], v[8:11]", 5},
    {"gfx90a", A_8, "v_mfma_f32_4x4x4f16 v[4:7], v[34:35], v[2:3], v[8:11]", 11},
    {"gfx90a", A_16, "v_mfma_f32_4x4x4f16 v[16:19], v[34:35], v[2:3], v[20:23]", 19},
    {"gfx90a", A_D, "v_mfma_f64_4x4x4f64 v[16:17], v[34:35], v[2:3], v[20:21]", 11},
    {"gfx90a", A_D4, "v_mfma_f64_4x4x4f64 v[16:17], v[34:35], v[0:1], v[20:21]", 6},
    {"gfx90a", A_8, "v_mfma_f32_16x16x16f16 v[4:7], v[34:35], v[32:33], v[0:3]", 0},
    {"gfx90a", A_8, "v_mfma_f32_16x16x16f16 v[4:7], v[34:35], v[32:33], v[2:5]", 8},
    {"gfx90a", A_2, "v_mfma_f32_16x16x16f16 v[4:7], v[34:35], v[32:33], v[2:5]", 2},
    {"gfx90a", A_16, "v_mfma_f32_16x16x16f16 v[16:19], v[34:35], v[32:33], v[2:5]", 16},
    {"gfx90a", A_8, "v_mfma_f64_4x4x4f64 v[4:5], v[34:35], v[32:33], v[2:3]", 9},
    {"gfx90a", A_D4, "v_mfma_f64_4x4x4f64 v[4:5], v[34:35], v[32:33], v[0:1]", 4},
    {"gfx90a", A_D, "v_mfma_f64_16x16x4f64 v[8:15], v[34:35], v[32:33], v[0:7]", 0},
    {"gfx90a", A_D, "v_mfma_f64_16x16x4f64 v[16:23], v[34:35], v[32:33], v[2:9]", 9},
    {"gfx90a", A_D, "v_mfma_f32_16x16x16f16 v[8:11], v[34:35], v[32:33], v[2:5]", 0},
    {"gfx942", B_2, "v_mfma_f32_4x4x4_16b_f16 v[4:7], v[34:35], v[32:33], v[0:3]", 2},
    {"gfx942", B_4, "v_mfma_f32_16x16x16_f16 v[4:7], v[34:35], v[32:33], v[0:3]", 0},
    {"gfx942", B_4, "v_mfma_f32_16x16x16_f16 v[4:7], v[34:35], v[32:33], v[2:5]", 5},
    {"gfx942", B_16, "v_mfma_f32_16x16x16_f16 v[72:75], v[34:35], v[32:33], v[2:5]", 17},
    {"gfx942", B_S8, "v_mfma_f32_16x16x4_f32 v[4:7], v34, v32, v[2:5]", 8},
    {"gfx942", B_S8, "v_mfma_f32_16x16x16_f16 v[4:7], v[34:35], v[32:33], v[2:5]", 0},
    {"gfx942", B_4, "v_mfma_f32_16x16x4_f32 v[4:7], v34, v32, v[2:5]", 5},
    {"gfx942", B_4, "v_mfma_f32_16x16x16_f16 v[4:7], v[2:3], v[32:33], v[40:43]", 7},
    {"gfx942", B_S8, "v_mfma_f32_16x16x16_f16 v[4:7], v[2:3], v[32:33], v[40:43]", 10},
    {"gfx942", B_D4, "v_mfma_f64_4x4x4_4b_f64 v[4:5], v[34:35], v[32:33], v[0:1]", 4},
    {"gfx90a", A_8, "v_mfma_f32_16x16x16f16 v[0:3], v[34:35], v[32:33], v[40:43]", 0},
    /* C, overwritten while it is still read. */
    {"gfx90a", A_2, "v_mov_b32 v41, v98", 1},
    {"gfx90a", A_8, "v_mov_b32 v41, v98", 7},
    {"gfx90a", A_16, "v_mov_b32 v41, v98", 15},
    {"gfx90a", A_D, "v_mov_b32 v41, v98", 0},
    {"gfx942", B_4, "v_mov_b32 v41, v98", 3},
    {"gfx942", B_S8, "v_mov_b32 v41, v98", 0},
    {"gfx90a", A_8, "v_mov_b32 v33, v98", 0},
    /* What the vector ALU has just written. */
    {"gfx90a", "v_mov_b32 v33, v98", A_8, 2},
    {"gfx942", "v_mov_b32 v41, v98", B_4, 2},
    {"gfx942", "v_mov_b32 v1, v98", B_4, 0},
    /* Dot products. */
    {"gfx90a", "v_dot4_i32_i8 v0, v1, v2, v3", "v_add_u32 v4, v0, v5", 3},
    {"gfx942", "v_dot4_i32_i8 v0, v1, v2, v3", "v_mov_b32 v0, v5", 3},
    {"gfx942", "v_dot4_i32_i8 v0, v1, v2, v3", "v_dot4_i32_i8 v4, v0, v2, v3", 3},
    {"gfx942", "v_dot4_i32_i8 v0, v1, v2, v3", "v_dot4_i32_i8 v0, v1, v2, v0", 0},
    {"gfx942", "v_dot4_i32_i8 v0, v1, v2, v3", "v_dot2_f32_f16 v0, v1, v2, v7", 3},
    {"gfx906", "v_dot4_i32_i8 v0, v1, v2, v3", "v_add_u32 v4, v0, v5", 0},
};

/* Runs both with wait states between. */
static bool run(const char *processor, const char *first, uint32_t states, const char *second, sim_report *report) {
    static amdgcn_registers registers;
    const amdgcn_setting setting = {.group_bytes = 256};
    char text[512], between[64] = "";
    uint64_t random = 1;
    int length = 0;
    for (uint32_t left = states; left; left -= left < 8 ? left : 8)
        length += snprintf(between + length, sizeof between - (size_t)length, "s_nop %u\n", (left < 8 ? left : 8) - 1);
    snprintf(text, sizeof text, "%s\n%s%s", first, between, second);
    amd_program *program = amdgcn_load(processor, processor[3] == '9', text);
    amdgcn_registers_fill(&registers, program, &random);
    for (uint32_t l = 0; l < AMD_LANES; l++)
        registers.v[80][l] = l * 4;
    bool good = amdgcn_try(program, &setting, &registers, report);
    amd_program_free(program);
    return good;
}

static void test_wait_states(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const rule *r = &rules[i];
        sim_report report;
        if (!run(r->processor, r->first, r->needed, r->second, &report))
            fail_msg("%s: %s, %u wait states, %s: %s", r->processor, r->first, r->needed, r->second, report.text);
        if (!r->needed) continue;
        if (run(r->processor, r->first, r->needed - 1, r->second, &report))
            fail_msg("%s: %s, %u wait states, %s: no fault", r->processor, r->first, r->needed - 1, r->second);
        assert_int_equal(report.kind, SIM_FAULT_WAIT);
        assert_non_null(strstr(report.text, "1 wait states too early"));
    }
}

/* Other instructions count, too; a branch does not lose count, and is worth four if it is taken. */
static void test_what_counts(void **state) {
    (void)state;
    static const struct {
        const char *between;
        uint32_t needed;
    } cases[] = {{"v_mov_b32 v97, v98\ns_mov_b32 s0, 1", 5},
                 {"s_branch on\ns_nop 7\non:\nv_mov_b32 v97, v98\ns_mov_b32 s0, 1", 1},
                 {"s_cmp_eq_u32 0, 0\ns_cbranch_scc1 on\ns_nop 7\non:", 2},
                 {"s_cmp_eq_u32 0, 1\ns_cbranch_scc1 on\nv_mov_b32 v97, v98\non:", 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sim_report report;
        char first[256];
        snprintf(first, sizeof first, "%s\n%s", B_4, cases[i].between);
        const char *second = "v_add_f32 v99, v98, v3";
        if (!run("gfx942", first, cases[i].needed, second, &report)) fail_msg("%s: %s", first, report.text);
        assert_false(run("gfx942", first, cases[i].needed - 1, second, &report));
        assert_int_equal(report.kind, SIM_FAULT_WAIT);
    }
}

/* Between two WMMA of which the second multiplies the first's result there must be a vector instruction. */
static void test_wmma(void **state) {
    (void)state;
    /* A row of equal columns on gfx11, whose halves hold the same: of zeros. */
    static const char *const zeros = "v_mov_b32 v10, 0\nv_mov_b32 v11, 0\nv_mov_b32 v6, 0\nv_mov_b32 v7, 0\n"
                                     "v_mov_b32 v12, 0\nv_mov_b32 v13, 0\nv_mov_b32 v14, 0\nv_mov_b32 v15, 0\n"
                                     "v_mov_b32 v16, 0\nv_mov_b32 v17, 0\nv_mov_b32 v18, 0\nv_mov_b32 v19, 0\n";
    static const struct {
        const char *between, *second;
        bool good;
    } cases[] = {{"", "v[20:27], v[6:7], v[10:11], v[12:19]", false},
                 {"", "v[20:27], v[10:11], v[6:7], v[12:19]", false},
                 {"s_nop 7\n", "v[20:27], v[6:7], v[10:11], v[12:19]", false},
                 {"v_nop\n", "v[20:27], v[6:7], v[10:11], v[12:19]", true},
                 {"v_mov_b32 v30, 1\n", "v[20:27], v[6:7], v[10:11], v[12:19]", true},
                 {"", "v[20:27], v[10:11], v[10:11], v[0:7]", true}};
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        sim_report report;
        const char *processor = i % 2 ? "gfx1201" : "gfx1100", *name = i % 2 ? "x32_iu4" : "x16_iu4";
        char first[768], second[128];
        snprintf(first, sizeof first, "%sv_wmma_i32_16x16%s v[0:7], v[10:11], v[10:11], v[12:19]\n%ss_nop 0", zeros,
                 name, cases[i / 2].between);
        snprintf(second, sizeof second, "v_wmma_i32_16x16%s %s", name, cases[i / 2].second);
        bool good = run(processor, first, 0, second, &report);
        if (good != cases[i / 2].good) fail_msg("%s: %s%s: %s", processor, cases[i / 2].between, second, report.text);
        if (!good) assert_int_equal(report.kind, SIM_FAULT_WAIT);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wait_states),
        cmocka_unit_test(test_what_counts),
        cmocka_unit_test(test_wmma),
    };
    if (!amdgcn_harness_ready()) return 0;
    return cmocka_run_group_tests_name("amdgcn_hazard", tests, NULL, NULL);
}
