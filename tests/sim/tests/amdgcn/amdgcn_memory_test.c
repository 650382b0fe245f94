/* Memory instructions of AMD in every space: loads and stores of every size, and what buffers and scalar loads have of
 * their own. Atomics: amdgcn_atomic_test.c. Faults: amdgcn_memory_faults_test.c. */
#include "tests/sim/tests/amdgcn/amdgcn_spaces.h"
#include "tests/sim/tests/ptx/ptx_harness.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

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
enum { ELEMENTS = sizeof elements / sizeof *elements };

static const char *element_name(char *room, const element *e, space where, const machine *m) {
    bool late = m->major >= 11;
    if (where == SHARED)
        sprintf(room, "%s_%s", e->store ? late ? "store" : "write" : late ? "load" : "read", e->shared);
    else
        strcpy(room, late ? e->new : e->old);
    return room;
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
            append_slot(text, where, m, true);
            append_access(text, where, element_name(name, e, where, m), e->store, e->store ? OPERAND : RESULT_AT,
                          e->bytes, offset);
            append_slot(text, where, m, false);
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
        append(text, "s_load_%s s17, s[6:7], -0x8\n", m->major >= 11 ? "b32" : "dword");
        append(text, "s_load_%s s18, s[6:7], s12 offset:-0x10\n", m->major >= 11 ? "b32" : "dword");
        if (m->major >= 12) append(text, "s_load_i16 s20, s[4:5], 0x6\ns_load_u8 s21, s[4:5], 0x3\n");
        append_wait(text, m);
        amd_program *program = amdgcn_load(m->processor, m->wave64, text);
        amdgcn_registers_fill(&before, program, &random_state);
        for (int i = 0; i < 256; i++)
            memory[i] = (uint8_t)sim_random(&random_state);
        memset(written, 0xff, sizeof written);
        memory[7] |= 0x80;
        memcpy(&before.s[4], &(uint64_t){(uintptr_t)memory}, 8);
        memcpy(&before.s[6], &(uint64_t){(uintptr_t)memory + 64}, 8);
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
            assert_memory_equal(&registers.s[17], memory + 64 - 8, 4);
            assert_memory_equal(&registers.s[18], memory + 64 + 12 - 16, 4);
            if (m->major >= 12) assert_int_equal(registers.s[20], 0xffff0000 | (uint32_t)memory[7] << 8 | memory[6]);
            if (m->major >= 12) assert_int_equal(registers.s[21], memory[3]);
        }
        amd_program_free(program);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loads_and_stores),     cmocka_unit_test(test_pairs_in_lds),
        cmocka_unit_test(test_the_ends_of_buffers),  cmocka_unit_test(test_dwords_beyond_the_end),
        cmocka_unit_test(test_loads_that_transpose), cmocka_unit_test(test_scalar_loads),
    };
    if (!amdgcn_harness_ready()) return 0;
    random_state = harness_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
