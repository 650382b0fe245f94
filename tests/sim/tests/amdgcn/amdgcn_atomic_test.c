/* Atomics of AMD in every space: what each makes of memory, and what it gives back. */
#include "tests/sim/tests/amdgcn/amdgcn_reference.h"
#include "tests/sim/tests/amdgcn/amdgcn_spaces.h"
#include "tests/sim/tests/ptx/ptx_harness.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

typedef struct atomic_row {
    const char *old, *new,
        *shared; /* after global_atomic_ and the like, after ds_ with a mark where _rtn goes; or NULL */
    uint32_t bytes;
    bool compares; /* two data operands: of LDS two registers, else one twice as wide */
    uint64_t (*reference)(uint64_t m, uint64_t d, uint64_t c);
} atomic_row;

static const ref_mode keep = {0x3f0, 9};

static uint64_t both_halves(uint64_t m, uint64_t d, uint64_t (*one)(uint64_t, uint64_t)) {
    return one(m & 0xffff, d & 0xffff) | one(m >> 16, d >> 16) << 16;
}
static uint64_t add_half(uint64_t a, uint64_t b) {
    return ref_add(F16, keep, a, b);
}
static uint64_t add_brain(uint64_t a, uint64_t b) {
    static const ref_format brain = {8, 7};
    return ref_add(&brain, keep, a, b);
}

#define ATOMIC(name, result)                                            \
    static uint64_t atomic_##name(uint64_t m, uint64_t d, uint64_t c) { \
        (void)m, (void)d, (void)c;                                      \
        return (uint64_t)(result);                                      \
    }
ATOMIC(add, m + d)
ATOMIC(sub, m - d)
ATOMIC(rsub, d - m)
ATOMIC(min_i32, (int32_t)m < (int32_t)d ? m : d)
ATOMIC(max_i32, (int32_t)m > (int32_t)d ? m : d)
ATOMIC(min_i64, (int64_t)m < (int64_t)d ? m : d)
ATOMIC(max_i64, (int64_t)m > (int64_t)d ? m : d)
ATOMIC(min_u, m < d ? m : d)
ATOMIC(max_u, m > d ? m : d)
ATOMIC(and, m &d)
ATOMIC(or, m | d)
ATOMIC(xor, m ^ d)
ATOMIC(inc, m >= d ? 0 : m + 1)
ATOMIC(dec, m == 0 || m > d ? d : m - 1)
ATOMIC(swap, d)
ATOMIC(compare_new, m == c ? d : m)
ATOMIC(compare_old, m == d ? c : m)
ATOMIC(mask_or, (m & ~d) | c)
ATOMIC(sub_clamp, m > d ? m - d : 0)
ATOMIC(cond_sub, m >= d ? m - d : m)
ATOMIC(add_f32, ref_add(F32, keep, m, d))
ATOMIC(add_f64, ref_add(F64, keep, m, d))
ATOMIC(min_f32, ref_min(F32, keep, m, d))
ATOMIC(max_f32, ref_max(F32, keep, m, d))
ATOMIC(min_f64, ref_min(F64, keep, m, d))
ATOMIC(max_f64, ref_max(F64, keep, m, d))
ATOMIC(pk_f16, both_halves(m, d, add_half))
ATOMIC(pk_bf16, both_halves(m, d, add_brain))

#define INTEGERS(old_width, bits, bytes)                                                \
    {"add" old_width, "add_u" bits, "add%s_u" bits, bytes, false, atomic_add},          \
        {"sub" old_width, "sub_u" bits, "sub%s_u" bits, bytes, false, atomic_sub},      \
        {NULL, NULL, "rsub%s_u" bits, bytes, false, atomic_rsub},                       \
        {"umin" old_width, "min_u" bits, "min%s_u" bits, bytes, false, atomic_min_u},   \
        {"umax" old_width, "max_u" bits, "max%s_u" bits, bytes, false, atomic_max_u},   \
        {"and" old_width, "and_b" bits, "and%s_b" bits, bytes, false, atomic_and},      \
        {"or" old_width, "or_b" bits, "or%s_b" bits, bytes, false, atomic_or},          \
        {"xor" old_width, "xor_b" bits, "xor%s_b" bits, bytes, false, atomic_xor},      \
        {"inc" old_width, "inc_u" bits, "inc%s_u" bits, bytes, false, atomic_inc},      \
        {"dec" old_width, "dec_u" bits, "dec%s_u" bits, bytes, false, atomic_dec},      \
        {"swap" old_width, "swap_b" bits, NULL, bytes, false, atomic_swap},             \
        {"cmpswap" old_width, "cmpswap_b" bits, NULL, bytes, true, atomic_compare_new}, \
        {NULL, NULL, "cmpst%s_b" bits, bytes, true, atomic_compare_old},                \
        {NULL, NULL, "cmpstore%s_b" bits, bytes, true, atomic_compare_new}, {           \
        NULL, NULL, "mskor%s_b" bits, bytes, true, atomic_mask_or                       \
    }

static const atomic_row atomics[] = {
    INTEGERS("", "32", 4),
    INTEGERS("_x2", "64", 8),
    {"smin", "min_i32", "min%s_i32", 4, false, atomic_min_i32},
    {"smax", "max_i32", "max%s_i32", 4, false, atomic_max_i32},
    {"smin_x2", "min_i64", "min%s_i64", 8, false, atomic_min_i64},
    {"smax_x2", "max_i64", "max%s_i64", 8, false, atomic_max_i64},
    {"csub", "csub_u32", NULL, 4, false, atomic_sub_clamp},
    {NULL, "sub_clamp_u32", "sub_clamp%s_u32", 4, false, atomic_sub_clamp},
    {NULL, "cond_sub_u32", "cond_sub%s_u32", 4, false, atomic_cond_sub},
    {"add_f32", "add_f32", "add%s_f32", 4, false, atomic_add_f32},
    {"add_f64", "add_f64", "add%s_f64", 8, false, atomic_add_f64},
    {"fmin", "min_f32", "min%s_f32", 4, false, atomic_min_f32},
    {"fmax", "max_f32", "max%s_f32", 4, false, atomic_max_f32},
    {"min_f64", "min_f64", "min%s_f64", 8, false, atomic_min_f64},
    {"max_f64", "max_f64", "max%s_f64", 8, false, atomic_max_f64},
    {NULL, "min_num_f32", "min_num%s_f32", 4, false, atomic_min_f32},
    {NULL, "max_num_f32", "max_num%s_f32", 4, false, atomic_max_f32},
    {"pk_add_f16", "pk_add_f16", "pk_add%s_f16", 4, false, atomic_pk_f16},
    {"pk_add_bf16", "pk_add_bf16", "pk_add%s_bf16", 4, false, atomic_pk_bf16},
};
enum { ATOMICS = sizeof atomics / sizeof *atomics };

/* The instruction's text; false if the class has none of the name. */
static bool append_atomic(char *text, const atomic_row *row, space where, const machine *m, bool returns) {
    char name[64], data[32], result[32];
    vectors(data, OPERAND, row->bytes * (row->compares && where != SHARED ? 2 : 1));
    vectors(result, RESULT_AT, row->bytes);
    if (where == SHARED) {
        if (!row->shared) return false;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(name, sizeof name, row->shared, returns ? "_rtn" : "");
#pragma GCC diagnostic pop
        append(text, "ds_%s %s%sv%d, %s", name, returns ? result : "", returns ? ", " : "", SLOT_ADDRESS, data);
        if (row->compares) append(text, ", %s", vectors(data, OPERAND + 2, row->bytes));
        append(text, "\n");
        return true;
    }
    const char *plain = m->major >= 11 ? row->new : row->old;
    const char *mark = m->major >= 12 ? " th:TH_ATOMIC_RETURN" : m->processor[4] == '4' ? " sc0" : " glc";
    if (!plain || is_flat(where) == (where == FLAT_SCRATCH)) {
        if (!plain || (where != GLOBAL && where != GLOBAL_BASE && where != BUFFER)) return false;
    }
    if (where == BUFFER) {
        append(text, "buffer_atomic_%s %s, v%d, s[4:7], s8 offen%s\n", plain, data, SLOT_ADDRESS, returns ? mark : "");
        return true;
    }
    append(text, "%satomic_%s %s%s", syntaxes[where].prefix, plain, returns ? result : "", returns ? ", " : "");
    if (where == GLOBAL_BASE)
        append(text, "v%d, %s, s[4:5]", SLOT_ADDRESS, data);
    else
        append(text, "v[%d:%d], %s%s", SLOT_ADDRESS, SLOT_ADDRESS + 1, data, where == GLOBAL ? ", off" : "");
    append(text, "%s\n", returns ? mark : "");
    return true;
}

static uint64_t wide_at(const amdgcn_registers *from, uint32_t index, uint32_t lane, uint32_t bytes) {
    return from->v[index][lane] | (bytes == 8 ? (uint64_t)from->v[index + 1][lane] << 32 : 0);
}

static bool is_float(const atomic_row *row) {
    const char *name = row->new ? row->new : row->shared;
    return strstr(name, "f32") || strstr(name, "f64") || strstr(name, "f16");
}

/* Operands that meet: equal ones for comparisons, floating point without NaN, which an atomic leaves open, and without
 * denormals, which some targets flush. */
static void atomic_operands_draw(const atomic_row *row) {
    for (uint32_t l = 0; l < AMD_LANES; l++) {
        if (draw(&random_state, 2) && row->compares) {
            for (uint32_t i = 0; i < 4; i++)
                before.v[OPERAND + i][l] = before.v[DATA + i % (row->bytes / 4)][l];
            before.v[OPERAND + draw(&random_state, 2) * 2][l] ^= 1;
        }
        if (!is_float(row)) continue;
        for (uint32_t r = DATA; r <= OPERAND; r += OPERAND - DATA) {
            bool packed = strstr(row->new, "16") != NULL;
            uint32_t top = row->bytes - 4 ? 1 : 0, exponent = packed            ? 0x3f003f00
                                                              : row->bytes == 8 ? 0x3ff00000
                                                                                : 0x3f800000;
            uint32_t mantissa = packed ? 0x807f807f : row->bytes == 8 ? 0x800fffff : 0x807fffff;
            before.v[r + top][l] = (before.v[r + top][l] & mantissa) | exponent;
        }
    }
}

static void atomic_check(const atomic_row *row, bool returns, bool second_apart, uint32_t lane, const char *text) {
    uint64_t all = row->bytes == 8 ? ~0ull : 0xffffffff;
    uint64_t m = wide_at(&before, DATA, lane, row->bytes), d = wide_at(&before, OPERAND, lane, row->bytes);
    uint64_t c = wide_at(&before, OPERAND + (second_apart ? 2 : row->bytes / 4), lane, row->bytes);
    uint64_t expected = row->reference(m, d, c) & all;
    uint64_t got = wide_at(&registers, READ_BACK, lane, row->bytes);
    uint64_t result = wide_at(&registers, RESULT_AT, lane, row->bytes);
    uint64_t old = returns ? m : wide_at(&before, RESULT_AT, lane, row->bytes);
    if (got != expected || result != old)
        fail_msg("%s: lane %u: of 0x%llx, 0x%llx and 0x%llx memory has 0x%llx, expected 0x%llx; result 0x%llx", text,
                 lane, (unsigned long long)m, (unsigned long long)d, (unsigned long long)c, (unsigned long long)got,
                 (unsigned long long)expected, (unsigned long long)result);
}

static void atomic_run(const atomic_row *row, space where, const machine *m, bool returns, const char *text) {
    amd_program *program = amdgcn_load(m->processor, m->wave64, text);
    amdgcn_registers_fill(&before, program, &random_state);
    addresses_draw(where, m->wave64 ? 64 : 32, 0);
    atomic_operands_draw(row);
    exec_draw(program);
    memset(written, 0, sizeof written);
    registers = before;
    amdgcn_run(program, &setting, &registers);
    /* A buffer's result takes the place of its data. */
    if (where == BUFFER && returns) memcpy(registers.v[RESULT_AT], registers.v[OPERAND], 2 * sizeof *registers.v);
    for (uint32_t l = 0; l < (m->wave64 ? 64u : 32u); l++)
        if (lane_on(l)) atomic_check(row, returns, where == SHARED, l, text);
    amd_program_free(program);
}

static void test_atomics(void **state) {
    (void)state;
    static const space spaces[] = {GLOBAL, GLOBAL_BASE, FLAT_GLOBAL, FLAT_SHARED, BUFFER, SHARED};
    static const size_t distinct[] = {0, 1, 2, 4, 5, 8}; /* the others have the atomics of one of these */
    for (size_t i = 0; i < ATOMICS; i++) {
        unsigned found = 0;
        for (size_t k = 0; k < 2 * (sizeof spaces / sizeof *spaces); k++) {
            for (size_t j = 0; j < sizeof distinct / sizeof *distinct; j++) {
                const machine *m = &machines[distinct[j]];
                space where = spaces[k / 2];
                bool returns = k % 2;
                char text[512] = "";
                append_slot(text, where, m, true);
                if (!append_atomic(text, &atomics[i], where, m, returns)) continue;
                append_slot(text, where, m, false);
                append_wait(text, m);
                if (!assembles(m, text)) continue;
                found++;
                atomic_run(&atomics[i], where, m, returns, text);
            }
        }
        if (!found) fail_msg("no processor has %s", atomics[i].new ? atomics[i].new : atomics[i].shared);
    }
}

/* All lanes of several waves add to one word, and each sees a value of its own. */
static void test_atomics_that_meet(void **state) {
    (void)state;
    static amdgcn_registers waves[4];
    enum { WAVES = 4, ALL = WAVES * 64 };
    amd_program *program = amdgcn_load("gfx942", true, "global_atomic_add v4, v[2:3], v8, off sc0\ns_waitcnt vmcnt(0)");
    amdgcn_setting several = setting;
    bool seen[ALL] = {false};
    several.waves = WAVES;
    memset(memory, 0, 4);
    memset(written, 0xff, sizeof written);
    for (int w = 0; w < WAVES; w++) {
        amdgcn_registers_fill(&waves[w], program, &random_state);
        for (uint32_t l = 0; l < 64; l++) {
            waves[w].v[2][l] = (uint32_t)(uintptr_t)memory;
            waves[w].v[3][l] = (uint32_t)((uintptr_t)memory >> 32);
            waves[w].v[8][l] = 1;
        }
    }
    amdgcn_run(program, &several, waves);
    for (int i = 0; i < ALL; i++) {
        uint32_t old = waves[i / 64].v[4][i % 64];
        assert_true(old < ALL && !seen[old]);
        seen[old] = true;
    }
    assert_int_equal(memory[0] | memory[1] << 8, ALL);
    amd_program_free(program);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_atomics),
        cmocka_unit_test(test_atomics_that_meet),
    };
    if (!amdgcn_harness_ready()) return 0;
    random_state = harness_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
