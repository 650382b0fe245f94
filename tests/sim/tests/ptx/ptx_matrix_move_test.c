/* ldmatrix, stmatrix and movmatrix, and how strict all matrix instructions are. */
#include "tests/sim/tests/ptx/ptx_harness.h"
#include "tests/sim/tests/ptx/ptx_matrix_harness.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LANES = 32, WORDS = 4 };

static const uint32_t square[3] = {8, 8, 8};
static uint64_t seed;

static void fill(uint32_t *words, size_t count) {
    for (size_t i = 0; i < count; i++)
        words[i] = (uint32_t)sim_random(&seed);
}

static uint32_t half(const uint32_t *words, uint32_t index) {
    return words[index / 2] >> index % 2 * 16 & 0xffff;
}

static void run(matrix_case *test, const uint32_t *in, uint32_t *out, sim_counters *counters) {
    sim_report report;
    test->blocks = 1;
    test->threads = LANES;
    test->seed = sim_random(&seed);
    *counters = (sim_counters){0};
    matrix_compare(test, in);
    if (!matrix_run(test, in, out, counters, &report)) fail_msg("%s: %s", test->code, report.text);
}

/* Each lane's row of 16 bytes: at its number times so many bytes. */
#define ROWS(bytes) "mov.u32 %r0, tile;\nmad.lo.u32 %r1, %lane, " #bytes ", %r0;\n"
#define FILL        "st.shared.v4.b32 [%r1], {%w0, %w1, %w2, %w3};\nbar.warp.sync -1;\n"
#define GENERIC     "cvt.u64.u32 %x0, %r1;\ncvta.shared.u64 %x0, %x0;\n"

/* ---- What they move ---- */

static const char *const vectors[] = {"{%v0}", "{%v0, %v1}", "{%v0, %v1, %v2, %v3}"};
static const char *const sources[] = {"{%w0}", "{%w0, %w1}", "{%w0, %w1, %w2, %w3}"};

static void check_load(const char *code, int log_count, bool transposed) {
    uint32_t in[LANES * WORDS], out[LANES * WORDS], count = 1u << log_count;
    sim_counters counters;
    matrix_case test = {.code = code, .in = WORDS, .out = count};
    fill(in, LANES * WORDS);
    run(&test, in, out, &counters);
    for (uint32_t l = 0; l < LANES; l++) {
        for (uint32_t e = 0; e < 2 * count; e++) {
            matrix_place p = matrix_place_of(square, transposed ? MATRIX_XT : MATRIX_X, 16, false, l, e % 2);
            uint32_t wanted = half(&in[(e / 2 * 8 + p.row) * WORDS], p.column), got = half(&out[l * count], e);
            if (got != wanted) fail_msg("%s: half %u of lane %u is 0x%x, must be 0x%x", code, e, l, got, wanted);
        }
    }
    assert_int_equal(counters.shared_requests, 2);
}

static void ldmatrix_loads_rows_of_8x8_matrices(void **state) {
    (void)state;
    static const char *const addresses[] = {"%s.shared.b16 %s, [%%r1];", "%s.shared::cta.b16 %s, [%%r1];",
                                            "%s.b16 %s, [%%x0];"};
    char code[512], instruction[128];
    for (int log_count = 0; log_count < 3; log_count++) {
        for (int transposed = 0; transposed < 2; transposed++) {
            for (size_t a = 0; a < sizeof addresses / sizeof *addresses; a++) {
                char name[64];
                snprintf(name, sizeof name, "ldmatrix.sync.aligned.m8n8.x%d%s", 1 << log_count,
                         transposed ? ".trans" : "");
                snprintf(instruction, sizeof instruction, addresses[a], name, vectors[log_count]);
                snprintf(code, sizeof code, "%s%s", ROWS(16) FILL GENERIC, instruction);
                check_load(code, log_count, transposed);
            }
        }
    }
}

static void stmatrix_stores_rows_of_8x8_matrices(void **state) {
    (void)state;
    char code[512];
    for (int log_count = 0; log_count < 3; log_count++) {
        for (int transposed = 0; transposed < 2; transposed++) {
            uint32_t in[LANES * WORDS], out[LANES * WORDS], count = 1u << log_count;
            sim_counters counters;
            matrix_case test = {.code = code, .in = WORDS, .out = WORDS};
            fill(in, LANES * WORDS);
            snprintf(code, sizeof code, "%sstmatrix.sync.aligned.m8n8.x%u%s.shared.b16 [%%r1], %s;\n%s",
                     ROWS(48) "st.shared.v4.b32 [%r1], {0, 0, 0, 0};\nbar.warp.sync -1;\n", count,
                     transposed ? ".trans" : "", sources[log_count],
                     "bar.warp.sync -1;\nld.shared.v4.b32 {%v0, %v1, %v2, %v3}, [%r1];");
            run(&test, in, out, &counters);
            for (uint32_t l = 0; l < LANES; l++) {
                for (uint32_t e = 0; e < 2 * count; e++) {
                    matrix_place p = matrix_place_of(square, transposed ? MATRIX_XT : MATRIX_X, 16, false, l, e % 2);
                    assert_int_equal(half(&out[(e / 2 * 8 + p.row) * WORDS], p.column), half(&in[l * WORDS], e));
                }
            }
            for (uint32_t i = count * 8 * WORDS; i < LANES * WORDS; i++)
                assert_int_equal(out[i], 0);
        }
    }
}

static void movmatrix_transposes(void **state) {
    (void)state;
    uint32_t in[LANES], out[LANES];
    sim_counters counters;
    matrix_case test = {.code = "movmatrix.sync.aligned.m8n8.trans.b16 %v0, %w0;", .in = 1, .out = 1};
    fill(in, LANES);
    run(&test, in, out, &counters);
    for (uint32_t row = 0; row < 8; row++)
        for (uint32_t column = 0; column < 8; column++)
            assert_int_equal(half(&out[row * 4], column), half(&in[column * 4], row));
}

/* ---- Counters ---- */

static uint64_t conflicts(const char *code) {
    uint32_t in[LANES * WORDS], out[LANES * WORDS];
    sim_counters counters;
    matrix_case test = {.code = code, .in = WORDS, .out = 4};
    fill(in, LANES * WORDS);
    run(&test, in, out, &counters);
    return counters.shared_conflicts;
}

#define LOAD4   "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%v0, %v1, %v2, %v3}, [%r1];"
#define NO_LOAD "mov.b32 %v0, 0;\nmov.b32 %v1, 0;\nmov.b32 %v2, 0;\nmov.b32 %v3, 0;"
#define MULTIPLY                                                                                 \
    "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%v0, %v1, %v2, %v3}, {%w0, %w1}, {%w2}, " \
    "{%w0, %w1, %w2, %w3};"

/* Eight rows of 16 bytes are read at a time, if they lie in different banks. */
static void bank_conflicts_of_ldmatrix_are_counted(void **state) {
    (void)state;
    assert_int_equal(conflicts(ROWS(16) FILL LOAD4) - conflicts(ROWS(16) FILL NO_LOAD), 0);
    assert_int_equal(conflicts(ROWS(80) FILL LOAD4) - conflicts(ROWS(80) FILL NO_LOAD), 0);
    assert_int_equal(conflicts(ROWS(32) FILL LOAD4) - conflicts(ROWS(32) FILL NO_LOAD), 4 * 1);
    assert_int_equal(conflicts(ROWS(64) FILL LOAD4) - conflicts(ROWS(64) FILL NO_LOAD), 4 * 3);
    assert_int_equal(conflicts(ROWS(128) FILL LOAD4) - conflicts(ROWS(128) FILL NO_LOAD), 4 * 7);
}

/* ---- Strictness ---- */

#define COPY "cp.async.ca.shared.global [%r1], [%in], 16;\n"

static const struct row {
    const char *name;
    const char *target;
    const char *code;
    uint32_t threads;
    sim_fault_kind kind;
    const char *word;
} rows[] = {
    {"rows that were written", "sm_80", ROWS(16) FILL LOAD4, 32, SIM_FAULT_NONE, ""},
    {"a row at 8 bytes", "sm_80", ROWS(16) FILL "add.u32 %r1, %r1, 8;\n" LOAD4, 32, SIM_FAULT_MISALIGNED, "16 bytes"},
    {"a row beyond the end", "sm_80", ROWS(16) FILL "add.u32 %r1, %r1, 4096;\n" LOAD4, 32, SIM_FAULT_OUT_OF_BOUNDS,
     "has 4096"},
    {"a row that was never written", "sm_80", ROWS(16) FILL "add.u32 %r1, %r1, 512;\n" LOAD4, 32,
     SIM_FAULT_UNINITIALISED, "shared"},
    {"a row in global memory", "sm_80",
     "ldmatrix.sync.aligned.m8n8.x1.b16 {%v0}, [%out];\nmov.b32 %v1, 0;\nmov.b32 %v2, 0;\nmov.b32 %v3, 0;", 32,
     SIM_FAULT_OUT_OF_BOUNDS, "not in shared memory"},
    {"a row that another lane has just written", "sm_80",
     ROWS(16) "st.shared.v4.b32 [%r1], {%w0, %w1, %w2, %w3};\nxor.b32 %r1, %r1, 16;\n" LOAD4, 32, SIM_FAULT_RACE,
     "wrote"},
    {"a row that another warp has written", "sm_80",
     ROWS(16) FILL "bar.sync 0;\n" FILL "xor.b32 %r1, %r1, 512;\n" LOAD4, 64, SIM_FAULT_RACE, "wrote"},
    {"the same with a barrier", "sm_80", ROWS(16) FILL "bar.sync 0;\nxor.b32 %r1, %r1, 512;\n" LOAD4, 64,
     SIM_FAULT_NONE, ""},
    {"a matrix instruction is no barrier of a warp", "sm_80",
     ROWS(16) "st.shared.v4.b32 [%r1], {%w0, %w1, %w2, %w3};\n" MULTIPLY "\nxor.b32 %r1, %r1, 16;\n" LOAD4, 32,
     SIM_FAULT_RACE, "wrote"},
    {"stored matrices read by other lanes", "sm_90",
     ROWS(16) "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r1], {%w0, %w1, %w2, %w3};\nxor.b32 %r1, %r1, 16;\n" LOAD4,
     32, SIM_FAULT_RACE, "wrote"},
    {"the same with bar.warp.sync", "sm_90",
     ROWS(16) "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r1], {%w0, %w1, %w2, %w3};\nbar.warp.sync -1;\n"
              "xor.b32 %r1, %r1, 16;\n" LOAD4,
     32, SIM_FAULT_NONE, ""},
    {"rows that are still copied", "sm_80", ROWS(16) COPY LOAD4, 32, SIM_FAULT_IN_FLIGHT, "copies"},
    {"rows of lanes that no row comes from", "sm_80",
     ROWS(16) FILL "setp.ge.u32 %p, %lane, 8;\n@%p mov.u32 %r1, 7;\n"
                   "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%v0}, [%r1];\nmov.b32 %v1, 0;\nmov.b32 %v2, 0;\n"
                   "mov.b32 %v3, 0;",
     32, SIM_FAULT_NONE, ""},
    {"the same where their addresses must be good", "sm_75",
     ROWS(16) FILL "setp.ge.u32 %p, %lane, 8;\n@%p mov.u32 %r1, 7;\n"
                   "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%v0}, [%r1];\nmov.b32 %v1, 0;\nmov.b32 %v2, 0;\n"
                   "mov.b32 %v3, 0;",
     32, SIM_FAULT_MISALIGNED, "thread 8"},
    {"half of a warp", "sm_80", "setp.lt.u32 %p, %lane, 16;\n@%p " MULTIPLY "\nbar.sync 0;", 32, SIM_FAULT_SYNC,
     "wait for ever"},
    {"half of a warp, the rest of which returns", "sm_80", "setp.lt.u32 %p, %lane, 16;\n@%p exit;\n" MULTIPLY, 32,
     SIM_FAULT_SYNC, "0xffff are not there"},
    {"a block of half a warp", "sm_80", MULTIPLY, 16, SIM_FAULT_SYNC, "0xffff0000 are not there"},
    {"two of the same kind at two places", "sm_80",
     "setp.lt.u32 %p, %lane, 16;\n@%p bra LEFT;\n" MULTIPLY "\nbra.uni END;\nLEFT:\n" MULTIPLY "\nEND:", 32,
     SIM_FAULT_SYNC, "wait for ever"},
    {"a guard that holds for all lanes", "sm_80", "setp.lt.u32 %p, %lane, 32;\n@%p " MULTIPLY, 32, SIM_FAULT_NONE, ""},
    {"a guard that holds for none", "sm_80", "setp.lt.u32 %p, %lane, 32;\n@!%p " MULTIPLY NO_LOAD, 32, SIM_FAULT_NONE,
     ""},
    {"lanes that meet at it", "sm_80",
     "setp.lt.u32 %p, %lane, 16;\n@%p bra LEFT;\nadd.u32 %r1, %lane, 1;\nLEFT:\n" MULTIPLY, 32, SIM_FAULT_NONE, ""},
};

/* Under several seeds, since they decide which lanes come first, but never whether all do. */
static void each_misuse_is_reported(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (uint64_t s = 1; s <= 8; s++) {
            uint32_t in[64 * WORDS], out[64 * WORDS];
            sim_counters counters = {0};
            sim_report report;
            matrix_case test = {.target = rows[i].target, .code = rows[i].code, .in = WORDS, .out = WORDS};
            test.blocks = 1;
            test.threads = rows[i].threads;
            test.seed = s;
            fill(in, 64 * WORDS);
            matrix_run(&test, in, out, &counters, &report);
            if (report.kind != rows[i].kind || (report.kind && !strstr(report.text, rows[i].word)))
                fail_msg("%s, seed %llu: %s (%s)", rows[i].name, (unsigned long long)s, sim_fault_text(report.kind),
                         report.kind ? report.text : "");
        }
    }
}

static void what_is_not_simulated_is_refused_by_name(void **state) {
    (void)state;
    static const struct {
        const char *code, *word;
    } refused[] = {
        {"ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%v0, %v1}, [%r1];", ".m16n16"},
        {"ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b4x16_p64 {%v0}, [%r1];", ".m8n16"},
        {"ldmatrix.sync.aligned.m8n8.x1.shared.b8 {%v0}, [%r1];", ".b16"},
        {"ldmatrix.sync.aligned.m8n8.x1.global.b16 {%v0}, [%x1];", "only shared memory"},
        {"ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%v0}, [%r1];", "1 registers where it has 2"},
        {"ldmatrix.sync.aligned.m8n8.x1.shared.b16 %v0, [%r1];", "vectors"},
        {"ldmatrix.sync.aligned.m8n8.shared.b16 {%v0}, [%r1];", ".x1, .x2 or .x4"},
        {"ldmatrix.sync.m8n8.x1.shared.b16 {%v0}, [%r1];", ".sync.aligned"},
        {"stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [%r1], {%v0};", ".m16n8"},
        {"movmatrix.sync.aligned.m8n8.b16 %v0, %v1;", ".trans"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        const char *why = matrix_refusal("sm_90", "9.0", refused[i].code);
        if (!strstr(why, refused[i].word) || !strstr(why, "line ")) fail_msg("%s: \"%s\"", refused[i].code, why);
    }
}

int main(void) {
    seed = harness_seed();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ldmatrix_loads_rows_of_8x8_matrices),
        cmocka_unit_test(stmatrix_stores_rows_of_8x8_matrices),
        cmocka_unit_test(movmatrix_transposes),
        cmocka_unit_test(bank_conflicts_of_ldmatrix_are_counted),
        cmocka_unit_test(each_misuse_is_reported),
        cmocka_unit_test(what_is_not_simulated_is_refused_by_name),
    };
    return cmocka_run_group_tests_name("ptx_matrix_move", tests, NULL, NULL);
}
