/* Atomics in LDS, and the accesses of two addresses at once, on every target, against C. */
#include "tests/sim/amdgcn/wave/amd_wave.h"
#include "tests/sim/tests/amdgcn/amdgcn_assembler.h"
#include "tests/sim/tests/amdgcn/amdgcn_harness.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LDS_BYTES = 1 << 16 };

static uint64_t random_state;
static amdgcn_registers before, registers;

typedef struct target {
    const char *processor;
    bool wave64;
} target;

static const target targets[] = {{"gfx906", true},   {"gfx90a", true},  {"gfx942", true},  {"gfx1010", false},
                                 {"gfx1030", false}, {"gfx1100", true}, {"gfx1201", false}};
enum { TARGETS = sizeof targets / sizeof *targets };

static bool is_new(const target *t) { /* gfx11 and gfx12 say load and store */
    return !strncmp(t->processor, "gfx11", 5) || !strncmp(t->processor, "gfx12", 5);
}

static const char *waits_for(const target *t) {
    return !strncmp(t->processor, "gfx12", 5) ? "s_wait_dscnt 0" : "s_waitcnt lgkmcnt(0)";
}

/* ---- Operations ---- */

/* What memory holds after an operation, of what it held and its data, d, and e where there are two. From the "LDS and
 * GDS instructions" of AMD's instruction set guides. */
#define OPERATIONS(X)                                                                        \
    X("add_u32", "add_u32", 4, 1, m + d)                                                     \
    X("sub_u32", "sub_u32", 4, 1, m - d)                                                     \
    X("rsub_u32", "rsub_u32", 4, 1, d - m)                                                   \
    X("inc_u32", "inc_u32", 4, 1, (uint32_t)m >= (uint32_t)d ? 0 : m + 1)                    \
    X("dec_u32", "dec_u32", 4, 1, (uint32_t)m == 0 || (uint32_t)m > (uint32_t)d ? d : m - 1) \
    X("min_i32", "min_i32", 4, 1, (int32_t)d < (int32_t)m ? d : m)                           \
    X("max_i32", "max_i32", 4, 1, (int32_t)d > (int32_t)m ? d : m)                           \
    X("min_u32", "min_u32", 4, 1, (uint32_t)d < (uint32_t)m ? d : m)                         \
    X("max_u32", "max_u32", 4, 1, (uint32_t)d > (uint32_t)m ? d : m)                         \
    X("and_b32", "and_b32", 4, 1, m &d)                                                      \
    X("or_b32", "or_b32", 4, 1, m | d)                                                       \
    X("xor_b32", "xor_b32", 4, 1, m ^ d)                                                     \
    X("mskor_b32", "mskor_b32", 4, 2, (m & ~d) | e)                                          \
    X("cmpst_b32", NULL, 4, 2, (uint32_t)m == (uint32_t)d ? e : m)                           \
    X(NULL, "cmpstore_b32", 4, 2, (uint32_t)m == (uint32_t)e ? d : m)                        \
    X("add_f32", "add_f32", 4, 1, of_float(to_float(m) + to_float(d)))                       \
    X("add_u64", "add_u64", 8, 1, m + d)                                                     \
    X("sub_u64", "sub_u64", 8, 1, m - d)                                                     \
    X("rsub_u64", "rsub_u64", 8, 1, d - m)                                                   \
    X("inc_u64", "inc_u64", 8, 1, m >= d ? 0 : m + 1)                                        \
    X("dec_u64", "dec_u64", 8, 1, m == 0 || m > d ? d : m - 1)                               \
    X("min_i64", "min_i64", 8, 1, (int64_t)d < (int64_t)m ? d : m)                           \
    X("max_i64", "max_i64", 8, 1, (int64_t)d > (int64_t)m ? d : m)                           \
    X("min_u64", "min_u64", 8, 1, d < m ? d : m)                                             \
    X("max_u64", "max_u64", 8, 1, d > m ? d : m)                                             \
    X("and_b64", "and_b64", 8, 1, m &d)                                                      \
    X("or_b64", "or_b64", 8, 1, m | d)                                                       \
    X("xor_b64", "xor_b64", 8, 1, m ^ d)                                                     \
    X("mskor_b64", "mskor_b64", 8, 2, (m & ~d) | e)                                          \
    X("cmpst_b64", NULL, 8, 2, m == d ? e : m)                                               \
    X(NULL, "cmpstore_b64", 8, 2, m == e ? d : m)

static float to_float(uint64_t bits) {
    uint32_t narrow = (uint32_t)bits;
    float value;
    memcpy(&value, &narrow, sizeof value);
    return value;
}

static uint64_t of_float(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

#define NAMES(older, newer, bytes, operands, result) {older, newer, bytes, operands},
static const struct {
    const char *older, *newer;
    uint32_t bytes, operands;
} operations[] = {OPERATIONS(NAMES)};
enum { OPERATION_COUNT = sizeof operations / sizeof *operations };

static uint64_t after(size_t operation, uint64_t m, uint64_t d, uint64_t e) {
    size_t n = 0;
    (void)e;
#define RESULT(older, newer, bytes, operands, result) \
    if (n++ == operation) return (bytes) == 4 ? (uint32_t)(result) : (uint64_t)(result);
    OPERATIONS(RESULT)
    return 0;
}

static uint64_t value_of(const amdgcn_registers *r, uint32_t at, uint32_t lane, uint32_t bytes) {
    return r->v[at][lane] | (bytes == 8 ? (uint64_t)r->v[at + 1][lane] << 32 : 0);
}

/* Some numbers near to each other, so that comparisons hold; floating-point ones are moderate. */
static void data_fill(const char *name, uint32_t bytes) {
    for (uint32_t l = 0; l < AMD_LANES; l++) {
        bool is_float = strstr(name, "_f32") != NULL;
        for (uint32_t r = 2; r < 8; r++) {
            uint32_t word = before.v[r][l];
            if (l % 2) word = r % 2 ? word % 2 : word % 3;
            if (bytes == 4 && l % 4 == 3) word = before.v[2][l] + (word % 3) - 1;
            before.v[r][l] = is_float ? (before.v[r][l] & 0x83ffffff) | 0x40000000 : word;
        }
        before.v[1][l] = (l * 37 % 64) * 16;
    }
}

/* v1 is the address, v[2:3] what memory holds, v[4:5] and v[6:7] the data, v[8:9] the old value, v[10:11] the new one.
 */
static void atomic_text(char *text, size_t size, const target *t, size_t operation, bool returns) {
    const char *name = is_new(t) ? operations[operation].newer : operations[operation].older;
    bool wide = operations[operation].bytes == 8, two = operations[operation].operands == 2;
    char full[32];
    const char *type = strrchr(name, '_');
    snprintf(full, sizeof full, "%.*s%s%s", (int)(type - name), name, returns ? "_rtn" : "", type);
    snprintf(text, size, "ds_%s_b%d v1, %s\n%s\nds_%s %sv1, %s%s%s offset:8\n%s\nds_%s_b%d %s, v1 offset:8\n%s",
             is_new(t) ? "store" : "write", wide ? 64 : 32, wide ? "v[2:3] offset:8" : "v2 offset:8", waits_for(t),
             full,
             !returns ? ""
             : wide   ? "v[8:9], "
                      : "v8, ",
             wide ? "v[4:5]" : "v4",
             !two   ? ""
             : wide ? ", v[6:7]"
                    : ", v6",
             "", waits_for(t), is_new(t) ? "load" : "read", wide ? 64 : 32, wide ? "v[10:11]" : "v10", waits_for(t));
}

static void check_atomic(const target *t, size_t operation, bool returns, const char *text) {
    uint32_t bytes = operations[operation].bytes;
    for (uint32_t l = 0; l < (t->wave64 ? 64u : 32u); l++) {
        uint64_t m = value_of(&before, 2, l, bytes), d = value_of(&before, 4, l, bytes),
                 e = value_of(&before, 6, l, bytes);
        uint64_t expected = after(operation, m, d, e), got = value_of(&registers, 10, l, bytes);
        if (got != expected)
            fail_msg("%s on %s: 0x%llx with 0x%llx, 0x%llx is 0x%llx, expected 0x%llx", text, t->processor,
                     (unsigned long long)m, (unsigned long long)d, (unsigned long long)e, (unsigned long long)got,
                     (unsigned long long)expected);
        if (returns) assert_int_equal(value_of(&registers, 8, l, bytes), m);
    }
}

static void test_atomics(void **state) {
    (void)state;
    const amdgcn_setting setting = {.group_bytes = LDS_BYTES};
    for (size_t operation = 0; operation < OPERATION_COUNT; operation++) {
        uint32_t ran = 0;
        for (int i = 0; i < TARGETS * 2; i++) {
            const target *t = &targets[i / 2];
            char text[512], why[512];
            size_t size;
            if (!(is_new(t) ? operations[operation].newer : operations[operation].older)) continue;
            atomic_text(text, sizeof text, t, operation, i % 2);
            uint8_t *code = amdgcn_assemble(t->processor, t->wave64, text, &size, why, sizeof why);
            if (!code) continue;
            free(code);
            amd_program *program = amdgcn_load(t->processor, t->wave64, text);
            for (int n = 0; n < 4; n++) {
                amdgcn_registers_fill(&before, program, &random_state);
                data_fill(text, operations[operation].bytes);
                registers = before;
                amdgcn_run(program, &setting, &registers);
                check_atomic(t, operation, i % 2, text);
            }
            amd_program_free(program);
            ran++;
        }
        if (ran < 4) fail_msg("operation %zu ran %u times", operation, ran);
    }
}

/* All lanes add to one place: each gets another value, and the sum is there at the end. EXEC is taken note of. */
static void test_lanes_meet(void **state) {
    (void)state;
    const amdgcn_setting setting = {.group_bytes = 64};
    for (int i = 0; i < TARGETS; i++) {
        const target *t = &targets[i];
        char text[256];
        snprintf(text, sizeof text, "ds_%s_b32 v1, v2\n%s\nds_add_rtn_u32 v8, v1, v3\n%s\nds_%s_b32 v10, v1\n%s",
                 is_new(t) ? "store" : "write", waits_for(t), waits_for(t), is_new(t) ? "load" : "read", waits_for(t));
        amd_program *program = amdgcn_load(t->processor, t->wave64, text);
        amdgcn_registers_fill(&before, program, &random_state);
        before.s[AMD_EXEC] = 0x7ffefff1;
        uint32_t sum = 100, seen[256] = {0}, lanes = t->wave64 ? 64 : 32;
        for (uint32_t l = 0; l < AMD_LANES; l++) {
            before.v[1][l] = 12;
            before.v[2][l] = 100;
            before.v[3][l] = 1;
            if (l < lanes && (l >= 32 || 0x7ffefff1 >> l & 1)) sum++;
        }
        registers = before;
        amdgcn_run(program, &setting, &registers);
        for (uint32_t l = 0; l < lanes; l++) {
            if (l < 32 && !(0x7ffefff1 >> l & 1)) {
                assert_int_equal(registers.v[8][l], before.v[8][l]);
                continue;
            }
            assert_int_equal(registers.v[10][l], sum);
            assert_true(registers.v[8][l] >= 100 && registers.v[8][l] < sum);
            assert_int_equal(seen[registers.v[8][l]]++, 0);
        }
        amd_program_free(program);
    }
}

/* ---- Two addresses ---- */

/* Writes four registers to two places and reads them back the other way round; single reads find them there. */
static void test_two_addresses(void **state) {
    (void)state;
    const amdgcn_setting setting = {.group_bytes = LDS_BYTES};
    for (int i = 0; i < TARGETS * 4; i++) {
        const target *t = &targets[i / 4];
        bool wide = i & 1, far = i & 2;
        uint32_t bytes = wide ? 8 : 4, step = bytes * (far ? 64 : 1), first = 3, second = far ? 17 : 200;
        const char *write = is_new(t) ? "store_2addr" : "write2", *read = is_new(t) ? "load_2addr" : "read2";
        const char *stride = !far ? "" : is_new(t) ? "_stride64" : "st64";
        char text[512];
        snprintf(text, sizeof text,
                 "ds_%s%s_b%u v1, %s, %s offset0:%u offset1:%u\n%s\n"
                 "ds_%s%s_b%u %s, v1 offset0:%u offset1:%u\nds_%s_b%u %s, v1 offset:%u\n%s",
                 write, stride, bytes * 8, wide ? "v[2:3]" : "v2", wide ? "v[4:5]" : "v4", first, second, waits_for(t),
                 read, stride, bytes * 8, wide ? "v[8:11]" : "v[8:9]", second, first, is_new(t) ? "load" : "read",
                 bytes * 8, wide ? "v[12:13]" : "v12", second * step, waits_for(t));
        amd_program *program = amdgcn_load(t->processor, t->wave64, text);
        amdgcn_registers_fill(&before, program, &random_state);
        for (uint32_t l = 0; l < AMD_LANES; l++)
            before.v[1][l] = far ? l % 2 * 16384 + l / 2 * 8 : l * 640; /* no two places meet */
        registers = before;
        amdgcn_run(program, &setting, &registers);
        for (uint32_t l = 0; l < (t->wave64 ? 64u : 32u); l++) {
            uint64_t low = value_of(&before, 2, l, bytes), high = value_of(&before, 4, l, bytes);
            assert_int_equal(value_of(&registers, 8, l, bytes), high);
            assert_int_equal(value_of(&registers, 8 + bytes / 4, l, bytes), low);
            assert_int_equal(value_of(&registers, 12, l, bytes), high);
        }
        amd_program_free(program);
    }
}

/* The result may be the address. */
static void test_result_over_address(void **state) {
    (void)state;
    const amdgcn_setting setting = {.group_bytes = LDS_BYTES};
    for (int i = 0; i < 2; i++) {
        amd_program *program =
            amdgcn_load("gfx942", true,
                        i ? "ds_write2_b32 v2, v4, v5 offset1:9\ns_waitcnt lgkmcnt(0)\nds_read2_b32 v[2:3], v2 "
                            "offset1:9\ns_waitcnt lgkmcnt(0)"
                          : "ds_write2_b32 v3, v4, v5 offset1:9\ns_waitcnt lgkmcnt(0)\nds_read2_b32 v[2:3], v3 "
                            "offset1:9\ns_waitcnt lgkmcnt(0)");
        amdgcn_registers_fill(&before, program, &random_state);
        for (uint32_t l = 0; l < AMD_LANES; l++)
            before.v[2][l] = before.v[3][l] = l * 64;
        registers = before;
        amdgcn_run(program, &setting, &registers);
        assert_memory_equal(registers.v[2], before.v[4], sizeof before.v[4]);
        assert_memory_equal(registers.v[3], before.v[5], sizeof before.v[5]);
        amd_program_free(program);
    }
}

/* Atomics of several waves may meet; with a store of another wave they race, and with a load that no atomic of its own
 * wave follows before the barrier. */
static void test_races(void **state) {
    (void)state;
    enum { WAVES = 2 };
    static amdgcn_registers waves[WAVES];
    static const struct {
        const char *first, *second;
        bool good;
    } cases[] = {
        {"ds_add_u32 v1, v2", "ds_add_u32 v1, v2", true},
        {"ds_add_u32 v1, v2", "ds_write_b32 v1, v2", false},
        {"ds_add_u32 v1, v2", "ds_read_b32 v3, v1", false},
        {"ds_add_u32 v1, v2", "ds_cmpst_rtn_b32 v4, v1, v3, v2\ns_waitcnt lgkmcnt(0)\nds_read_b32 v3, v1", false},
        {"ds_add_u32 v1, v2", "ds_read_b32 v3, v1\ns_waitcnt lgkmcnt(0)\nds_cmpst_rtn_b32 v4, v1, v3, v2", true},
        {"ds_add_u32 v1, v2\ns_waitcnt lgkmcnt(0)\ns_barrier",
         "ds_read_b32 v3, v1\ns_waitcnt lgkmcnt(0)\ns_barrier\nds_add_u32 v1, v2", false},
        {"ds_add_u32 v1, v2\ns_waitcnt lgkmcnt(0)\ns_barrier",
         "ds_cmpst_rtn_b32 v4, v1, v3, v2\ns_waitcnt lgkmcnt(0)\ns_barrier\nds_read_b32 v3, v1", true}};
    enum { CASES = sizeof cases / sizeof *cases, SEEDS = 4 };
    for (size_t n = 0; n < CASES * SEEDS; n++) {
        const size_t i = n / SEEDS;
        char text[512];
        snprintf(text, sizeof text,
                 "s_cbranch_scc1 wait\nds_write_b32 v1, v2\ns_waitcnt lgkmcnt(0)\nwait:\ns_barrier\ns_cbranch_scc1 "
                 "other\n%s\ns_waitcnt lgkmcnt(0)\ns_endpgm\nother:\n%s\ns_waitcnt lgkmcnt(0)",
                 cases[i].first, cases[i].second);
        amd_program *program = amdgcn_load("gfx90a", true, text);
        const amdgcn_setting setting = {.waves = WAVES, .group_bytes = 256, .seed = n + 1};
        sim_report report;
        for (int w = 0; w < WAVES; w++) {
            amdgcn_registers_fill(&waves[w], program, &random_state);
            waves[w].scc = w;
            for (uint32_t l = 0; l < AMD_LANES; l++)
                waves[w].v[1][l] = l * 4;
        }
        bool good = amdgcn_try(program, &setting, waves, &report);
        if (good != cases[i].good || (!good && report.kind != SIM_FAULT_RACE))
            fail_msg("%s with %s: \"%s\"", cases[i].first, cases[i].second, good ? "" : report.text);
        amd_program_free(program);
    }
}

/* The lanes that are on are counted; M0 and the offset say where. */
static void test_counts_of_lanes(void **state) {
    (void)state;
    enum { AT = 128, OFFSET = 20, HELD = 1000 };
    const amdgcn_setting setting = {.group_bytes = LDS_BYTES};
    for (size_t i = 0; i < TARGETS; i++) {
        for (int consumes = 0; consumes < 2; consumes++) {
            char text[256];
            const char *wait = waits_for(&targets[i]);
            snprintf(text, sizeof text, "%s v1, v2 offset:%d\n%s\n%s v3 offset:%d\n%s\n%s v4, v1 offset:%d\n%s",
                     is_new(&targets[i]) ? "ds_store_b32" : "ds_write_b32", OFFSET, wait,
                     consumes ? "ds_consume" : "ds_append", OFFSET, wait,
                     is_new(&targets[i]) ? "ds_load_b32" : "ds_read_b32", OFFSET, wait);
            amd_program *program = amdgcn_load(targets[i].processor, targets[i].wave64, text);
            amdgcn_registers_fill(&before, program, &random_state);
            before.s[AMD_M0] = AT;
            before.s[AMD_EXEC] = 0x80000f01;
            before.s[AMD_EXEC + 1] = targets[i].wave64 ? 3 : 0;
            const uint32_t lanes = targets[i].wave64 ? 8 : 6;
            for (uint32_t l = 0; l < AMD_LANES; l++) {
                before.v[1][l] = AT;
                before.v[2][l] = HELD;
            }
            registers = before;
            amdgcn_run(program, &setting, &registers);
            for (uint32_t l = 0; l < AMD_LANES; l++) {
                const bool on = before.s[AMD_EXEC + l / 32] >> l % 32 & 1;
                assert_int_equal(registers.v[3][l], on ? HELD : before.v[3][l]);
                assert_int_equal(registers.v[4][l], !on ? before.v[4][l] : consumes ? HELD - lanes : HELD + lanes);
            }
            amd_program_free(program);
        }
    }
}

int main(void) {
    const char *text = getenv("KILN_TEST_SEED");
    random_state = text ? strtoull(text, NULL, 0) : 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_atomics),       cmocka_unit_test(test_lanes_meet),
        cmocka_unit_test(test_two_addresses), cmocka_unit_test(test_result_over_address),
        cmocka_unit_test(test_races),         cmocka_unit_test(test_counts_of_lanes),
    };
    if (!amdgcn_harness_ready()) return 0;
    print_message("# seed %llu (KILN_TEST_SEED sets it)\n", (unsigned long long)random_state);
    return cmocka_run_group_tests_name("amdgcn_lds", tests, NULL, NULL);
}
