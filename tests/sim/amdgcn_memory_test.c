/* Memory instructions of AMD in every space: loads and stores of every size, atomics. Each lane has a slot of 16 bytes:
 * the code fills it, does what is tested, and reads the slot back. Faults: amdgcn_memory_faults_test.c. */
#include "tests/sim/amdgcn/amd_wave.h"
#include "tests/sim/amdgcn_assembler.h"
#include "tests/sim/amdgcn_harness.h"
#include "tests/sim/amdgcn_reference.h"
#include "tests/sim/amdgcn_variants.h"
#include "tests/sim/ptx_harness.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct machine {
    const char *processor;
    bool wave64;
    uint32_t major;
} machine;

static const machine machines[] = {{"gfx906", true, 9},    {"gfx90a", true, 9},   {"gfx942", true, 9},
                                   {"gfx1010", false, 10}, {"gfx1030", true, 10}, {"gfx1100", false, 11},
                                   {"gfx1102", true, 11},  {"gfx1200", true, 12}, {"gfx1201", false, 12}};
enum { MACHINES = sizeof machines / sizeof *machines, SLOT = 16, MEMORY = 4096, LDS = 2048, SCRATCH = 64, BASE = 32 };

static _Alignas(64) uint8_t memory[MEMORY];
static uint8_t written[MEMORY / 8];
static amdgcn_registers before, registers;
static uint64_t random_state;

static bool find(void *context, uint64_t address, sim_region *out_region) {
    (void)context;
    *out_region = (sim_region){(uintptr_t)memory, sizeof memory, written, false};
    return address - out_region->base < sizeof memory;
}

static const amdgcn_setting setting = {
    .group_bytes = LDS, .private_bytes = SCRATCH, .find = find, .seed = 1}; /* one wave */

/* ---- Spaces ---- */

typedef enum space {
    GLOBAL,      /* 64-bit addresses */
    GLOBAL_BASE, /* a scalar base and 32-bit offsets */
    FLAT_GLOBAL,
    FLAT_SHARED,
    FLAT_SCRATCH,
    SCRATCH_LANE, /* offsets of the lanes' own */
    SCRATCH_BASE, /* one for all */
    BUFFER,
    SHARED,
    SPACES
} space;

/* The class's prefix, and the operands before and behind the data of a store, or behind the result of a load. %u is the
 * first register of the address, %s the offset. */
static const struct {
    const char *prefix, *front, *back;
} syntaxes[SPACES] = {
    [GLOBAL] = {"global_", "v[%u:%u], ", ", off"},
    [GLOBAL_BASE] = {"global_", "v%u, ", ", s[4:5]"},
    [FLAT_GLOBAL] = {"flat_", "v[%u:%u], ", ""},
    [FLAT_SHARED] = {"flat_", "v[%u:%u], ", ""},
    [FLAT_SCRATCH] = {"flat_", "v[%u:%u], ", ""},
    [SCRATCH_LANE] = {"scratch_", "v%u, ", ", off"},
    [SCRATCH_BASE] = {"scratch_", "off, ", ", s4"},
    [BUFFER] = {"buffer_", "", ", v%u, s[4:7], s8 offen"},
    [SHARED] = {"ds_", "v%u, ", ""},
};

enum { SLOT_ADDRESS = 2, ELEMENT_ADDRESS = 4, DATA = 8, READ_BACK = 12, OPERAND = 16, RESULT_AT = 20 };

static bool is_flat(space where) {
    return where == FLAT_GLOBAL || where == FLAT_SHARED || where == FLAT_SCRATCH;
}

static void append(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void append(char *text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsprintf(text + strlen(text), format, arguments);
    va_end(arguments);
}

static const char *vectors(char *room, uint32_t first, uint32_t bytes) {
    if (bytes > 4)
        sprintf(room, "v[%u:%u]", first, first + bytes / 4 - 1);
    else
        sprintf(room, "v%u", first);
    return room;
}

/* An address of the slots, or with an offset of the elements. Flat ones have no offset on some targets. */
static void append_access(char *text, space where, const char *name, bool store, uint32_t data, uint32_t bytes,
                          uint32_t offset) {
    char front[64], back[64], registers_[32];
    uint32_t address = is_flat(where) && offset ? ELEMENT_ADDRESS : SLOT_ADDRESS;
    const char *front_format = syntaxes[where].front, *back_format = syntaxes[where].back;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(front, sizeof front, front_format, address, address + 1);
    snprintf(back, sizeof back, back_format, address);
#pragma GCC diagnostic pop
    vectors(registers_, data, bytes);
    if (where == BUFFER || store)
        append(text, "%s%s %s%s%s", syntaxes[where].prefix, name, where == BUFFER ? "" : front, registers_, back);
    else
        append(text, "%s%s %s, %.*s%s", syntaxes[where].prefix, name, registers_, (int)strlen(front) - 2, front, back);
    if (offset && !is_flat(where)) append(text, " offset:%u", offset);
    append(text, "\n");
}

static void append_wait(char *text, const machine *m) {
    if (m->major >= 12)
        append(text, "s_wait_loadcnt 0x0\ns_wait_dscnt 0x0\ns_wait_kmcnt 0x0\n");
    else
        append(text, "s_waitcnt vmcnt(0) lgkmcnt(0)\n");
}

/* ---- Loads and stores ---- */

/* Of an element: its names with a blank for "ds_read" and the like, bytes, what becomes of them. */
typedef struct element {
    const char *old, *new, *shared; /* shared: of LDS, "" if there is none */
    bool store;
    uint32_t bytes;
    bool sign, half, high;
} element;

static const element elements[] = {
    {"load_ubyte", "load_u8", "u8", false, 1, false, false, false},
    {"load_sbyte", "load_i8", "i8", false, 1, true, false, false},
    {"load_ushort", "load_u16", "u16", false, 2, false, false, false},
    {"load_sshort", "load_i16", "i16", false, 2, true, false, false},
    {"load_dword", "load_b32", "b32", false, 4, false, false, false},
    {"load_dwordx2", "load_b64", "b64", false, 8, false, false, false},
    {"load_dwordx3", "load_b96", "b96", false, 12, false, false, false},
    {"load_dwordx4", "load_b128", "b128", false, 16, false, false, false},
    {"load_ubyte_d16", "load_d16_u8", "u8_d16", false, 1, false, true, false},
    {"load_ubyte_d16_hi", "load_d16_hi_u8", "u8_d16_hi", false, 1, false, true, true},
    {"load_sbyte_d16", "load_d16_i8", "i8_d16", false, 1, true, true, false},
    {"load_sbyte_d16_hi", "load_d16_hi_i8", "i8_d16_hi", false, 1, true, true, true},
    {"load_short_d16", "load_d16_b16", "u16_d16", false, 2, false, true, false},
    {"load_short_d16_hi", "load_d16_hi_b16", "u16_d16_hi", false, 2, false, true, true},
    {"store_byte", "store_b8", "b8", true, 1, false, false, false},
    {"store_byte_d16_hi", "store_d16_hi_b8", "b8_d16_hi", true, 1, false, false, true},
    {"store_short", "store_b16", "b16", true, 2, false, false, false},
    {"store_short_d16_hi", "store_d16_hi_b16", "b16_d16_hi", true, 2, false, false, true},
    {"store_dword", "store_b32", "b32", true, 4, false, false, false},
    {"store_dwordx2", "store_b64", "b64", true, 8, false, false, false},
    {"store_dwordx3", "store_b96", "b96", true, 12, false, false, false},
    {"store_dwordx4", "store_b128", "b128", true, 16, false, false, false},
};
enum { ELEMENTS = sizeof elements / sizeof *elements, WHOLE_LOAD = 7, WHOLE_STORE = ELEMENTS - 1 };

static const char *element_name(char *room, const element *e, space where, const machine *m) {
    bool late = m->major >= 11;
    if (where == SHARED)
        sprintf(room, "%s_%s", e->store ? late ? "store" : "write" : late ? "load" : "read", e->shared);
    else
        strcpy(room, late ? e->new : e->old);
    return room;
}

/* Where each lane's slot is: a permutation, so that lanes mix; one for all in scratch with one offset. */
static void addresses_draw(space where, uint32_t lanes, uint32_t offset) {
    uint32_t factor = draw(&random_state, 32) * 2 + 1, first = draw(&random_state, lanes);
    for (uint32_t l = 0; l < AMD_LANES; l++) {
        uint64_t slot = BASE + (uint64_t)((l * factor + first) % lanes) * SLOT;
        if (where == FLAT_SCRATCH || where == SCRATCH_LANE) slot = (l + first) % 3 * SLOT;
        uint64_t address = slot, start = (uintptr_t)memory;
        if (where == GLOBAL || where == FLAT_GLOBAL) address += start;
        if (where == FLAT_SHARED) address |= (uint64_t)AMD_APERTURE_SHARED << 32;
        if (where == FLAT_SCRATCH) address |= (uint64_t)AMD_APERTURE_PRIVATE << 32;
        for (uint32_t i = 0; i < 2; i++) {
            before.v[SLOT_ADDRESS + i][l] = (uint32_t)(address >> 32 * i);
            before.v[ELEMENT_ADDRESS + i][l] = (uint32_t)((address + offset) >> 32 * i);
        }
    }
    if (where == SCRATCH_BASE) before.s[4] = SLOT;
    if (where == GLOBAL_BASE || where == BUFFER) memcpy(&before.s[4], &(uint64_t){(uintptr_t)memory}, 8);
    if (where != BUFFER) return;
    /* A raw buffer that begins 16 bytes before the memory, with a scalar offset of 16. */
    uint64_t base = (uintptr_t)memory - 16;
    before.s[4] = (uint32_t)base;
    before.s[5] = (uint32_t)(base >> 32) & 0xffff;
    before.s[6] = MEMORY + 16;
    before.s[7] = 3u << 28; /* gfx10 and later: raw bounds */
    before.s[8] = 16;
}

static void exec_draw(const amd_program *program) {
    bool some = draw(&random_state, 2);
    for (int i = 0; i < 2; i++) {
        uint32_t lanes = some ? (uint32_t)sim_random(&random_state) : ~0u;
        before.s[AMD_EXEC + i] = i && program->kernels[0].wave32 ? 0 : lanes;
    }
}

static bool lane_on(uint32_t l) {
    return before.s[AMD_EXEC + l / 32] >> l % 32 & 1;
}

/* A lane's slot as the filling store leaves it, and as it is read back. */
static void slot_copy(const amdgcn_registers *from, uint32_t first, uint32_t lane, uint8_t *slot) {
    for (uint32_t i = 0; i < 4; i++)
        memcpy(slot + i * 4, &from->v[first + i][lane], 4);
}

static void element_check(const element *e, uint32_t lane, uint32_t offset, const char *where) {
    uint8_t slot[SLOT], after[SLOT];
    uint32_t expected[4], got[4];
    slot_copy(&before, DATA, lane, slot);
    slot_copy(&registers, READ_BACK, lane, after);
    for (uint32_t i = 0; i < 4; i++) {
        expected[i] = before.v[RESULT_AT + i][lane];
        got[i] = registers.v[RESULT_AT + i][lane];
    }
    if (e->store) {
        uint8_t data[SLOT];
        slot_copy(&before, OPERAND, lane, data);
        memcpy(slot + offset, data + (e->high ? 2 : 0), e->bytes);
    } else if (e->bytes >= 4) {
        memcpy(expected, slot + offset, e->bytes);
    } else {
        uint32_t value = slot[offset] + (e->bytes == 2 ? slot[offset + 1] * 256u : 0);
        if (e->sign && value >> (e->bytes * 8 - 1)) value -= 1u << e->bytes * 8;
        uint8_t *to = (uint8_t *)expected;
        if (e->half) {
            memcpy(to + (e->high ? 2 : 0), &value, 2);
        } else {
            expected[0] = value;
        }
    }
    if (memcmp(slot, after, SLOT) || memcmp(expected, got, sizeof got))
        fail_msg("%s: lane %u: result 0x%08x, expected 0x%08x; the slot begins 0x%02x%02x%02x%02x", where, lane, got[0],
                 expected[0], after[3], after[2], after[1], after[0]);
}

/* The registers of a run of a text in a space. */
static void run(const amd_program *program, space where, uint32_t offset) {
    uint32_t lanes = program->kernels[0].wave32 ? 32 : 64;
    amdgcn_registers_fill(&before, program, &random_state);
    addresses_draw(where, lanes, offset);
    exec_draw(program);
    memset(written, 0, sizeof written);
    registers = before;
    amdgcn_run(program, &setting, &registers);
}

static bool assembles(const machine *m, const char *text) {
    char why[256];
    size_t size;
    uint8_t *code = amdgcn_assemble(m->processor, m->wave64, text, &size, why, sizeof why);
    free(code);
    return code != NULL;
}

static void test_loads_and_stores(void **state) {
    (void)state;
    for (size_t i = 0; i < ELEMENTS * SPACES; i++) {
        const element *e = &elements[i / SPACES];
        space where = (space)(i % SPACES);
        unsigned found = 0;
        for (size_t j = 0; j < MACHINES; j++) {
            const machine *m = &machines[j];
            uint32_t alignment = e->bytes < 4 ? e->bytes : 4;
            uint32_t offset = draw(&random_state, (SLOT - e->bytes) / alignment + 1) * alignment;
            char text[512] = "", name[32];
            append_access(text, where, element_name(name, &elements[WHOLE_STORE], where, m), true, DATA, SLOT, 0);
            append_access(text, where, element_name(name, e, where, m), e->store, e->store ? OPERAND : RESULT_AT,
                          e->bytes, offset);
            append_access(text, where, element_name(name, &elements[WHOLE_LOAD], where, m), false, READ_BACK, SLOT, 0);
            append_wait(text, m);
            if (!assembles(m, text)) continue;
            found++;
            amd_program *program = amdgcn_load(m->processor, m->wave64, text);
            for (int again = 0; again < 3; again++) {
                run(program, where, offset);
                for (uint32_t l = 0; l < (m->wave64 ? 64u : 32u); l++)
                    if (lane_on(l)) element_check(e, l, offset, text);
            }
            amd_program_free(program);
        }
        if (!found) fail_msg("no processor has %s in space %d", e->old, (int)where);
    }
}

/* ---- Atomics ---- */

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
                char text[512] = "", name[32];
                append_access(text, where, element_name(name, &elements[WHOLE_STORE], where, m), true, DATA, SLOT, 0);
                if (!append_atomic(text, &atomics[i], where, m, returns)) continue;
                append_access(text, where, element_name(name, &elements[WHOLE_LOAD], where, m), false, READ_BACK, SLOT,
                              0);
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

/* ---- Pairs, buffers, scalar loads ---- */

static void test_pairs_in_lds(void **state) {
    (void)state;
    for (size_t j = 0; j < MACHINES; j++) {
        const machine *m = &machines[j];
        bool late = m->major >= 11;
        char text[512] = "";
        append(text, "ds_%s v2, v[8:9], v[10:11] offset0:0 offset1:1\n", late ? "store_2addr_b64" : "write2_b64");
        append(text, "ds_%s v[12:13], v2 offset0:3 offset1:0\n", late ? "load_2addr_b32" : "read2_b32");
        append(text, "ds_%s v[20:23], v2, v[16:17], v[18:19] offset0:1 offset1:0\n",
               late ? "storexchg_2addr_rtn_b64" : "wrxchg2_rtn_b64");
        append(text, "ds_%s v[24:27], v2 offset0:0 offset1:1\n", late ? "load_2addr_b64" : "read2_b64");
        append_wait(text, m);
        amd_program *program = amdgcn_load(m->processor, m->wave64, text);
        run(program, SHARED, 0);
        for (uint32_t l = 0; l < (m->wave64 ? 64u : 32u); l++) {
            if (!lane_on(l)) continue;
            assert_int_equal(registers.v[12][l], before.v[11][l]);
            assert_int_equal(registers.v[13][l], before.v[8][l]);
            for (uint32_t i = 0; i < 4; i++) {
                assert_int_equal(registers.v[20 + i][l], before.v[8 + (i + 2) % 4][l]);
                assert_int_equal(registers.v[24 + i][l], before.v[16 + (i + 2) % 4][l]);
            }
        }
        amd_program_free(program);
    }
}

/* Lanes beyond the end load zeros and store nothing; an index steps by the stride. */
static void test_the_ends_of_buffers(void **state) {
    (void)state;
    for (size_t j = 0; j < MACHINES; j++) {
        const machine *m = &machines[j];
        enum { STRIDE = 24, RECORDS = 20 };
        char text[256] = "";
        append(text, "buffer_%s v8, v2, s[4:7], %s idxen offset:4\n", m->major >= 11 ? "store_b32" : "store_dword",
               m->major >= 12 ? "null" : "0");
        append(text, "buffer_%s v12, v[2:3], s[4:7], %s idxen offen\n", m->major >= 11 ? "load_b32" : "load_dword",
               m->major >= 12 ? "null" : "0");
        append_wait(text, m);
        amd_program *program = amdgcn_load(m->processor, m->wave64, text);
        amdgcn_registers_fill(&before, program, &random_state);
        memset(written, 0, sizeof written);
        memset(memory, 0x5a, sizeof memory);
        for (uint32_t l = 0; l < AMD_LANES; l++) {
            before.v[2][l] = l;
            before.v[3][l] = 4;
        }
        before.s[4] = (uint32_t)(uintptr_t)memory;
        before.s[5] = ((uint32_t)((uintptr_t)memory >> 32) & 0xffff) | STRIDE << 16;
        before.s[6] = RECORDS;
        before.s[7] = 0;
        registers = before;
        amdgcn_run(program, &setting, &registers);
        for (uint32_t l = 0; l < (m->wave64 ? 64u : 32u); l++) {
            uint32_t word;
            memcpy(&word, memory + l * STRIDE + 4, 4);
            assert_int_equal(registers.v[12][l], l < RECORDS ? before.v[8][l] : 0);
            assert_int_equal(word, l < RECORDS ? before.v[8][l] : 0x5a5a5a5a);
        }
        amd_program_free(program);
    }
}

/* Of four dwords those behind the end are zeros and are not stored, each by itself: at the end of a buffer of bytes,
 * and where rows are checked at the end of each row. */
static void test_dwords_beyond_the_end(void **state) {
    (void)state;
    enum { DWORDS = 90, ROW = 6, RULE_STRUCTURE = 0, RULE_RAW = 3 };
    for (size_t j = 0; j < MACHINES * 2; j++) {
        const machine *m = &machines[j / 2];
        const char *none = m->major >= 12 ? "null" : "0";
        bool rows = j % 2;
        char text[256] = "";
        if (rows && m->major == 9) continue;
        append(text, "buffer_%s v[8:11], v2, s[4:7], %s offen offset:4\n",
               m->major >= 11 ? "load_b128" : "load_dwordx4", none);
        append_wait(text, m);
        append(text, "buffer_%s v[12:15], v3, s[4:7], %s offen\n", m->major >= 11 ? "store_b128" : "store_dwordx4",
               none);
        append_wait(text, m);
        amd_program *program = amdgcn_load(m->processor, m->wave64, text);
        amdgcn_registers_fill(&before, program, &random_state);
        memset(written, 0xff, sizeof written);
        for (uint32_t i = 0; i < DWORDS + 8; i++)
            memcpy(memory + i * 4, &(uint32_t){i + 1}, 4);
        const uint32_t lanes = m->wave64 ? 64 : 32, end = rows ? ROW : DWORDS;
        for (uint32_t l = 0; l < AMD_LANES; l++) {
            before.v[2][l] = (rows ? l % ROW : DWORDS - 20 + l % 30) * 4;
            before.v[3][l] = (end + 1 - 4) * 4; /* the last dword is outside, and all lanes store the same others */
            for (uint32_t i = 0; i < 4; i++)
                before.v[12 + i][l] = 1000 + i;
        }
        before.s[4] = (uint32_t)(uintptr_t)memory;
        before.s[5] = ((uint32_t)((uintptr_t)memory >> 32) & 0xffff) | (rows ? ROW * 4u << 16 : 0);
        before.s[6] = rows ? 1 : DWORDS * 4;
        before.s[7] = (rows ? (uint32_t)RULE_STRUCTURE : (uint32_t)RULE_RAW) << 28;
        registers = before;
        amdgcn_run(program, &setting, &registers);
        for (uint32_t l = 0; l < lanes; l++) {
            uint32_t first = before.v[2][l] / 4 + 1;
            for (uint32_t i = 0; i < 4; i++)
                assert_int_equal(registers.v[8 + i][l], first + i < end ? first + i + 1 : 0);
        }
        for (uint32_t i = 0; i < DWORDS + 8; i++) {
            uint32_t word;
            memcpy(&word, memory + i * 4, 4);
            assert_int_equal(word, i + 3 >= end && i < end ? 1000 + i + 3 - end : i + 1);
        }
        amd_program_free(program);
    }
}

/* Eight halves at each lane's own address, which need not be in order. */
static void test_loads_that_transpose(void **state) {
    (void)state;
    enum { SIDE = 8 };
    amd_program *program = amdgcn_load("gfx1201", false,
                                       "global_load_tr_b128 v[8:11], v[2:3], off offset:32\n"
                                       "global_load_tr_b128 v[12:15], v4, s[4:5]\ns_wait_loadcnt 0x0");
    amdgcn_registers_fill(&before, program, &random_state);
    memset(written, 0xff, sizeof written);
    for (size_t i = 0; i < sizeof memory; i++)
        memory[i] = (uint8_t)sim_random(&random_state);
    before.s[AMD_EXEC] = ~0u;
    memcpy(&before.s[4], &(uint64_t){(uintptr_t)memory}, 8);
    for (uint32_t l = 0; l < 32; l++) {
        uint64_t address = (uintptr_t)memory + l * 13 % 32 * 48 - 32;
        before.v[2][l] = (uint32_t)address;
        before.v[3][l] = (uint32_t)(address >> 32);
        before.v[4][l] = l * 16;
    }
    registers = before;
    amdgcn_run(program, &setting, &registers);
    for (uint32_t l = 0; l < 32; l++) {
        for (uint32_t e = 0; e < SIDE; e++) {
            uint32_t from = l - l % SIDE + e, shift = e % 2 * 16;
            uint16_t halves[2];
            memcpy(&halves[0], memory + from * 13 % 32 * 48 + l % SIDE * 2, 2);
            memcpy(&halves[1], memory + from * 16 + l % SIDE * 2, 2);
            assert_int_equal(registers.v[8 + e / 2][l] >> shift & 0xffff, halves[0]);
            assert_int_equal(registers.v[12 + e / 2][l] >> shift & 0xffff, halves[1]);
        }
    }
    amd_program_free(program);
}

static void test_scalar_loads(void **state) {
    (void)state;
    static const uint32_t dwords[] = {1, 2, 4, 8, 16};
    for (size_t j = 0; j < MACHINES * 5; j++) {
        const machine *m = &machines[j / 5];
        uint32_t count = dwords[j % 5];
        char text[512] = "", name[32];
        if (m->major >= 11)
            sprintf(name, "b%u", count * 32);
        else
            sprintf(name, count > 1 ? "dwordx%u" : "dword", count);
        append(text, "s_load_%s s[32:%u], s[4:5], 0x20\n", name, 32 + count - 1);
        append(text, "s_buffer_load_%s s[64:%u], s[8:11], 0x10\n", name, 64 + count - 1);
        append(text, "s_load_%s s[16:%u], s[4:5], s12\n", m->major >= 11 ? "b32" : "dword", 16);
        if (m->major >= 12) append(text, "s_load_i16 s20, s[4:5], 0x6\ns_load_u8 s21, s[4:5], 0x3\n");
        append_wait(text, m);
        amd_program *program = amdgcn_load(m->processor, m->wave64, text);
        amdgcn_registers_fill(&before, program, &random_state);
        for (int i = 0; i < 256; i++)
            memory[i] = (uint8_t)sim_random(&random_state);
        memset(written, 0xff, sizeof written);
        memory[7] |= 0x80;
        memcpy(&before.s[4], &(uint64_t){(uintptr_t)memory}, 8);
        memcpy(&before.s[8], &(uint64_t){(uintptr_t)memory & 0xffffffffffff}, 8);
        before.s[10] = 32; /* only the first 16 of these bytes are in the buffer */
        before.s[11] = 0;
        before.s[12] = 12;
        registers = before;
        sim_report report;
        bool good = amdgcn_try(program, &setting, &registers, &report);
        if (count > 4) {
            assert_false(good); /* partly beyond the end */
            assert_int_equal(report.kind, SIM_FAULT_OUT_OF_BOUNDS);
        } else {
            if (!good) fail_msg("%s", report.text);
            assert_memory_equal(&registers.s[32], memory + 0x20, count * 4);
            assert_memory_equal(&registers.s[64], memory + 0x10, count * 4);
            assert_memory_equal(&registers.s[16], memory + 12, 4);
            if (m->major >= 12) assert_int_equal(registers.s[20], 0xffff0000 | (uint32_t)memory[7] << 8 | memory[6]);
            if (m->major >= 12) assert_int_equal(registers.s[21], memory[3]);
        }
        amd_program_free(program);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loads_and_stores),     cmocka_unit_test(test_atomics),
        cmocka_unit_test(test_atomics_that_meet),    cmocka_unit_test(test_pairs_in_lds),
        cmocka_unit_test(test_the_ends_of_buffers),  cmocka_unit_test(test_dwords_beyond_the_end),
        cmocka_unit_test(test_loads_that_transpose), cmocka_unit_test(test_scalar_loads),
    };
    if (!amdgcn_harness_ready()) return 0;
    random_state = harness_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
