#include "tests/sim/tests/ptx/ptx_rows.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TUPLES = 2048, UNTOUCHED = 0x5a };

static const uint64_t edges[] = {
    0,          1,          2,          3,
    7,          8,          15,         16,
    17,         31,         32,         33,
    63,         64,         65,         128,
    255,        256,        0x7fff,     0x8000,
    0x8001,     0xffff,     0x10000,    0x807fffff,
    0x80800000, 0x7fffffff, 0x80000000, 0x80000001,
    0xfffffffe, 0xffffffff, 1ull << 32, 0x7fffffffffffffff,
    1ull << 63, ~1ull,      ~0ull,      0x0123456789abcdef,
};
enum { EDGES = sizeof edges / sizeof *edges };

static uint64_t cut(uint64_t value, uint32_t bits) {
    return bits >= 64 ? value : value & ((1ull << bits) - 1);
}

static ptx_wide number(uint64_t raw, uint32_t bits, bool is_signed) {
    ptx_wide value = raw;
    return is_signed && raw >> (bits - 1) & 1 ? value - ((ptx_wide)1 << bits) : value;
}

/* Pairs of edges first, as far as they go; then any mixture of edges, small and large numbers. */
static uint64_t operand(size_t tuple, uint32_t source, uint64_t *random) {
    if (tuple < (size_t)EDGES * EDGES && source < 2) return edges[source ? tuple / EDGES : tuple % EDGES];
    uint64_t choice = sim_random(random) % 4, value = sim_random(random);
    return choice == 0 ? edges[value % EDGES] : choice == 1 ? value % 70 : choice == 2 ? value : value >> value % 64;
}

static uint32_t width(int wanted, uint32_t bits) {
    return wanted == SAME ? bits : wanted == DOUBLE ? 2 * bits : (uint32_t)wanted;
}

static void store(void *array, size_t i, uint32_t bits, uint64_t value) {
    memcpy((uint8_t *)array + i * bits / 8, &value, bits / 8);
}

static uint64_t fetch(const void *array, size_t i, uint32_t bits) {
    uint64_t value = 0;
    memcpy(&value, (const uint8_t *)array + i * bits / 8, bits / 8);
    return value;
}

static void write_code(char *code, size_t size, const char *pattern, const char *type, size_t type_length) {
    size_t length = strlen(code);
    for (; *pattern && length + type_length + 1 < size; pattern++) {
        if (*pattern == '$') {
            memcpy(code + length, type, type_length);
            length += type_length;
        } else {
            code[length++] = *pattern;
        }
    }
    code[length] = 0;
}

static void compare(const ptx_row *row, const harness_case *test, row_values *x, const void *const *sources,
                    const void *d, bool partly) {
    for (size_t i = 0; i < TUPLES; i++) {
        bool skipped = partly && i % 4 == 0;
        for (uint32_t s = 0; s < row->source_count; s++) {
            x->raw[s] = fetch(sources[s], i, test->source_bits[s]);
            x->value[s] = number(x->raw[s], test->source_bits[s], x->is_signed);
        }
        uint64_t wanted = skipped ? UNTOUCHED : cut(row->expect(x), test->result_bits);
        uint64_t got = fetch(d, i, test->result_bits);
        if (got != wanted)
            fail_msg("%s with 0x%llx 0x%llx 0x%llx 0x%llx: 0x%llx, must be 0x%llx", test->code,
                     (unsigned long long)x->raw[0], (unsigned long long)x->raw[1], (unsigned long long)x->raw[2],
                     (unsigned long long)x->raw[3], (unsigned long long)got, (unsigned long long)wanted);
    }
}

/* partly: every fourth lane goes another way, and keeps its result. */
static void check(const ptx_row *row, const char *type, size_t type_length, bool partly, uint64_t *random) {
    static uint64_t memory[HARNESS_SOURCES + 1][TUPLES];
    char code[1024] = "", plain[1024] = "";
    uint32_t bits = (uint32_t)strtoul(type + 1, NULL, 10);
    row_values x = {.bits = bits, .is_signed = *type == 's', .parameter = row->parameter};
    const void *sources[HARNESS_SOURCES] = {memory[1], memory[2], memory[3], memory[4]};
    harness_case test = {
        .code = code, .result_bits = width(row->result, bits), .named = plain, .open = row->parameter & OPEN};
    test.seed = sim_random(random);
    for (uint32_t s = 0; s < row->source_count; s++)
        test.source_bits[s] = width(row->sources[s], bits);
    if (partly)
        snprintf(code, sizeof code,
                 "mov.b%u %%d, %d;\nand.b32 %%t7, %%j, 3;\nsetp.eq.u32 %%p, %%t7, 0;\n@%%p bra SKIP;\n",
                 test.result_bits, UNTOUCHED);
    write_code(plain, sizeof plain, row->code, type, type_length);
    write_code(code, sizeof code, row->code, type, type_length);
    if (partly) write_code(code, sizeof code, "\nSKIP:", "", 0);
    for (size_t i = 0; i < TUPLES; i++) {
        for (uint32_t s = 0; s < row->source_count; s++) {
            uint64_t value = cut(operand(i, s, random), test.source_bits[s]);
            store(memory[s + 1], i, test.source_bits[s], s == 1 && (row->parameter & NONZERO) && !value ? 1 : value);
        }
    }
    harness_run(&test, TUPLES, memory[0], sources);
    compare(row, &test, &x, sources, memory[0], partly);
}

void ptx_rows_check(const ptx_row *rows, size_t count, uint64_t *random) {
    for (size_t i = 0; i < count; i++) {
        for (const char *type = rows[i].types; *type;) {
            size_t length = strcspn(type, " ");
            check(&rows[i], type, length, false, random);
            check(&rows[i], type, length, true, random);
            type += length + (type[length] == ' ');
        }
    }
}
