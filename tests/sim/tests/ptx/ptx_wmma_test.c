/* wmma: each shape and type in each layout, with matrices in global and shared memory. The numbers are small integers,
 * whose sums are exact however they are made; ptx_matrix_sum_test.c looks at sums. */
#include "tests/sim/tests/ptx/ptx_harness.h"
#include "tests/sim/tests/ptx/ptx_mma_harness.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { WORDS = 64, PART = 2048, LANES = 32 }; /* each lane has 64 words; A, B, C and D have a quarter of all */

static uint64_t seed;

typedef enum letter { A, B, C, D } letter;

static const struct row {
    uint32_t shape[3];
    const char *type, *accumulators; /* D and C may have any of them */
    uint32_t registers[2];           /* of A and B */
    bool any_layout;
    const char *operation; /* in front of .sync */
} rows[] = {
    {{16, 16, 16}, "f16", "f16 f32", {8, 8}, true, ""},     {{8, 32, 16}, "f16", "f16 f32", {8, 8}, true, ""},
    {{32, 8, 16}, "f16", "f16 f32", {8, 8}, true, ""},      {{16, 16, 16}, "bf16", "f32", {4, 4}, true, ""},
    {{8, 32, 16}, "bf16", "f32", {2, 8}, true, ""},         {{32, 8, 16}, "bf16", "f32", {8, 2}, true, ""},
    {{16, 16, 8}, "tf32", "f32", {4, 4}, true, ""},         {{8, 8, 4}, "f64", "f64", {1, 1}, true, ""},
    {{16, 16, 16}, "s8", "s32", {2, 2}, true, ""},          {{8, 32, 16}, "s8", "s32", {1, 4}, true, ""},
    {{32, 8, 16}, "s8", "s32", {4, 1}, true, ""},           {{16, 16, 16}, "u8", "s32", {2, 2}, true, ""},
    {{8, 32, 16}, "u8", "s32", {1, 4}, true, ""},           {{32, 8, 16}, "u8", "s32", {4, 1}, true, ""},
    {{8, 8, 32}, "s4", "s32", {1, 1}, false, ""},           {{8, 8, 32}, "u4", "s32", {1, 1}, false, ""},
    {{8, 8, 128}, "b1", "s32", {1, 1}, false, ".xor.popc"}, {{8, 8, 128}, "b1", "s32", {1, 1}, false, ".and.popc"},
};

/* A matrix in memory. */
typedef struct matrix {
    const mma_type *type;
    uint32_t rows, columns, stride; /* from a line to the next, in elements */
    bool column_major;
    bool default_stride;
    uint32_t registers;
} matrix;

static matrix matrix_of(const struct row *row, letter name, const char *accumulator, bool column_major, bool padded) {
    matrix x = {.type = mma_type_named(name < C ? row->type : accumulator), .column_major = column_major};
    x.rows = row->shape[name == B ? 2 : 0];
    x.columns = row->shape[name == A ? 2 : 1];
    x.stride = (column_major ? x.rows : x.columns) + (padded ? 128 / x.type->bits : 0);
    x.default_stride = !padded;
    x.registers = name < C ? row->registers[name] : x.rows * x.columns * x.type->bits / 1024;
    if (x.type->bits == 64) x.registers = x.rows * x.columns / LANES;
    return x;
}

/* ---- Elements in memory ---- */

static uint64_t bit_of(const matrix *x, uint32_t row, uint32_t column) {
    return (uint64_t)(x->column_major ? column * x->stride + row : row * x->stride + column) * x->type->bits;
}

static uint64_t get_bits(const uint8_t *bytes, const matrix *x, uint32_t row, uint32_t column) {
    uint64_t at = bit_of(x, row, column), bits = 0;
    memcpy(&bits, bytes + at / 8, x->type->bits < 8 ? 1 : x->type->bits / 8);
    return x->type->bits < 8 ? bits >> at % 8 & ((1u << x->type->bits) - 1) : bits;
}

static double get(const uint8_t *bytes, const matrix *x, uint32_t row, uint32_t column) {
    return mma_number(x->type, get_bits(bytes, x, row, column));
}

/* A small integer of the type. */
static uint64_t small(const mma_type *type) {
    double value = (double)(sim_random(&seed) % 17) - 8;
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (type->kind == MMA_DOUBLE) return bits;
    if (type->kind != MMA_FLOAT) return sim_random(&seed) & (type->bits == 32 ? 0xff : (1u << type->bits) - 1);
    return (uint64_t)sim_encode(type->format, value, SIM_ROUND_ZERO, false) << (type->format == SIM_tf32 ? 13 : 0);
}

static void fill(uint8_t *bytes, const matrix *x) {
    for (uint32_t i = 0; i < PART; i++)
        bytes[i] = (uint8_t)sim_random(&seed);
    for (uint32_t row = 0; row < x->rows; row++) {
        for (uint32_t column = 0; column < x->columns; column++) {
            uint64_t at = bit_of(x, row, column), bits = small(x->type);
            uint8_t *to = bytes + at / 8;
            if (x->type->bits < 8)
                *to = (uint8_t)((*to & ~(((1u << x->type->bits) - 1) << at % 8)) | bits << at % 8);
            else
                memcpy(to, &bits, x->type->bits / 8);
        }
    }
}

/* ---- Code ---- */

/* Registers of each matrix: %w from 8 times its letter, or %g. */
static const char *registers(const matrix *x, letter name) {
    static char texts[4][128];
    size_t length = 0;
    char *text = texts[name];
    for (uint32_t i = 0; i < x->registers; i++)
        length += (size_t)snprintf(text + length, sizeof texts[name] - length, "%s%%%c%u", i ? ", " : "{",
                                   x->type->bits == 64 ? 'g' : 'w', 8 * name + i);
    snprintf(text + length, sizeof texts[name] - length, "}");
    return text;
}

static const char *stride_of(const matrix *x, letter name) {
    static char texts[4][16];
    snprintf(texts[name], sizeof texts[name], ", %u", x->stride);
    return x->default_stride ? "" : texts[name];
}

static const char *order_of(const matrix *x) {
    return x->column_major ? "col" : "row";
}

/* D goes through shared memory, and from there as C to its place. */
static void write_code(const struct row *row, const matrix x[4], char *text, size_t size) {
    static const char *const spaces[] = {".global", "", ".global", ".shared"};
    char shape[32], types[64];
    const mma_type *type = x[A].type;
    size_t length = (size_t)snprintf(text, size, "ld.param.u64 %%x0, [pin];\nmov.u32 %%r1, tile;\n");
    snprintf(shape, sizeof shape, "m%un%uk%u", row->shape[0], row->shape[1], row->shape[2]);
    for (int i = A; i <= C; i++)
        length +=
            (size_t)snprintf(text + length, size - length, "wmma.load.%c.sync.aligned.%s.%s%s.%s %s, [%%x0+%d]%s;\n",
                             "abc"[i], order_of(&x[i]), shape, spaces[i], x[i].type->name, registers(&x[i], (letter)i),
                             i * PART, stride_of(&x[i], (letter)i));
    snprintf(types, sizeof types, "%s.%s", x[D].type->name, x[C].type->name);
    if (strcmp(type->name, "f16") != 0)
        snprintf(types, sizeof types, "%s.%s.%s.%s", x[D].type->name, type->name, type->name, x[C].type->name);
    length += (size_t)snprintf(text + length, size - length, "wmma.mma%s.sync.aligned.%s.%s.%s.%s %s, %s, %s, %s;\n",
                               row->operation, order_of(&x[A]), order_of(&x[B]), shape, types, registers(&x[D], D),
                               registers(&x[A], A), registers(&x[B], B), registers(&x[C], C));
    length += (size_t)snprintf(text + length, size - length,
                               "wmma.store.d.sync.aligned.row.%s.shared.%s [%%r1], %s, %u;\nbar.warp.sync -1;\n"
                               "wmma.load.c.sync.aligned.row.%s.shared.%s %s, [%%r1], %u;\n",
                               shape, x[D].type->name, registers(&x[D], D), x[D].columns + 8, shape, x[D].type->name,
                               registers(&x[D], D), x[D].columns + 8);
    length +=
        (size_t)snprintf(text + length, size - length, "wmma.store.d.sync.aligned.%s.%s.global.%s [%%x0+%d], %s%s;\n",
                         order_of(&x[D]), shape, x[D].type->name, D * PART, registers(&x[D], D), stride_of(&x[D], D));
    assert_true(length < size);
}

/* ---- Products ---- */

static double product(const struct row *row, const matrix x[4], const uint8_t *bytes, uint32_t i, uint32_t j) {
    double sum = get(bytes + C * PART, &x[C], i, j);
    for (uint32_t l = 0; l < row->shape[2]; l++) {
        double a = get(bytes + A * PART, &x[A], i, l), b = get(bytes + B * PART, &x[B], l, j);
        sum += *row->operation && row->operation[1] == 'x' ? a != b : a * b;
    }
    return sum;
}

static void check(const struct row *row, const matrix x[4]) {
    static _Alignas(64) uint8_t bytes[4 * PART], none[4];
    char code[4096];
    matrix_case test = {.code = code, .in = WORDS, .blocks = 1, .threads = LANES, .seed = sim_random(&seed)};
    sim_counters counters = {0};
    sim_report report;
    write_code(row, x, code, sizeof code);
    for (int i = A; i <= D; i++)
        fill(bytes + i * PART, &x[i]);
    matrix_compare(&test, (const uint32_t *)(const void *)bytes);
    if (!matrix_run(&test, (const uint32_t *)(const void *)bytes, (uint32_t *)(void *)none, &counters, &report))
        fail_msg("%s: %s", code, report.text);
    assert_int_equal(counters.matrix_instructions, 1);
    for (uint32_t i = 0; i < row->shape[0]; i++) {
        for (uint32_t j = 0; j < row->shape[1]; j++) {
            double wanted = product(row, x, bytes, i, j), got = get(bytes + D * PART, &x[D], i, j);
            if (got != wanted) fail_msg("%s: element %u %u is %g, must be %g", code, i, j, got, wanted);
        }
    }
}

static void check_layouts(const struct row *row, const char *d, const char *c) {
    for (uint32_t orders = 0; orders < 16; orders++) {
        if (!row->any_layout && (orders & 3) != 2) continue; /* row-major A, column-major B */
        matrix x[4];
        for (int i = A; i <= D; i++)
            x[i] = matrix_of(row, (letter)i, i == D ? d : c, orders >> i & 1, sim_random(&seed) % 2);
        check(row, x);
    }
}

static void every_shape_and_type_in_every_layout(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].accumulators, "f16 f32") != 0) {
            check_layouts(&rows[i], rows[i].accumulators, rows[i].accumulators);
            continue;
        }
        check_layouts(&rows[i], "f16", "f16");
        check_layouts(&rows[i], "f16", "f32");
        check_layouts(&rows[i], "f32", "f16");
        check_layouts(&rows[i], "f32", "f32");
    }
}

/* ---- Strictness ---- */

#define FRAGMENT "{%w0, %w1, %w2, %w3, %w4, %w5, %w6, %w7}"
#define LOAD     "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 " FRAGMENT ", "

static const struct misuse {
    const char *code;
    sim_fault_kind kind;
    const char *word;
} misuses[] = {
    {LOAD "[%x0], 16;", SIM_FAULT_NONE, ""},
    {LOAD "[%x0], 24;", SIM_FAULT_NONE, ""},
    {LOAD "[%x0+16], 16;", SIM_FAULT_MISALIGNED, "a multiple of 32 bytes"},
    {LOAD "[%x0], 20;", SIM_FAULT_MISALIGNED, "40 bytes apart"},
    {LOAD "[%x0+8192], 16;", SIM_FAULT_OUT_OF_BOUNDS, "load"},
    {LOAD "[%x0+7680], 24;", SIM_FAULT_OUT_OF_BOUNDS, "load"},
    {LOAD "[%in], 16;", SIM_FAULT_ILLEGAL, "addresses"},
    {LOAD "[%x0], %lane;", SIM_FAULT_ILLEGAL, "strides"},
    {"setp.lt.u32 %p, %lane, 8;\n@%p " LOAD "[%x0], 16;\nbar.sync 0;", SIM_FAULT_SYNC, "wait for ever"},
    {"wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 " FRAGMENT ", [tile], 16;", SIM_FAULT_UNINITIALISED, "shared"},
    {"wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [tile], " FRAGMENT ", 16;\nld.shared.b32 %w0, [tile+512];",
     SIM_FAULT_RACE, "wrote"},
};

static void each_misuse_is_reported(void **state) {
    (void)state;
    static _Alignas(64) uint32_t in[4 * PART / 4], none[1];
    for (size_t i = 0; i < sizeof misuses / sizeof *misuses; i++) {
        char code[512];
        sim_counters counters = {0};
        sim_report report;
        matrix_case test = {.code = code, .in = WORDS, .blocks = 1, .threads = LANES, .seed = sim_random(&seed)};
        snprintf(code, sizeof code, "ld.param.u64 %%x0, [pin];\n%s", misuses[i].code);
        matrix_run(&test, in, none, &counters, &report);
        if (report.kind != misuses[i].kind || (report.kind && !strstr(report.text, misuses[i].word)))
            fail_msg("%s: %s (%s)", code, sim_fault_text(report.kind), report.kind ? report.text : "");
    }
}

/* The ISA does not say which lane holds what: the seed does. */
static void no_program_can_know_the_layout(void **state) {
    (void)state;
    static _Alignas(64) uint32_t in[4 * PART / 4];
    uint32_t first[LANES], out[LANES], others = 0;
    for (uint32_t i = 0; i < sizeof in / sizeof *in; i++)
        in[i] = i;
    for (uint64_t s = 1; s <= 8; s++) {
        sim_counters counters = {0};
        sim_report report;
        matrix_case test = {.code = "ld.param.u64 %x0, [pin];\n" LOAD "[%x0], 16;\nmov.b32 %v0, %w0;",
                            .in = WORDS,
                            .out = 1,
                            .blocks = 1,
                            .threads = LANES,
                            .seed = s};
        assert_true(matrix_run(&test, in, out, &counters, &report));
        if (s == 1) memcpy(first, out, sizeof first);
        others += memcmp(first, out, sizeof first) != 0;
    }
    assert_in_range(others, 4, 7);
}

static void what_is_no_form_is_refused_by_name(void **state) {
    (void)state;
    static const struct {
        const char *code, *word;
    } refused[] = {
        {"wmma.load.a.sync.aligned.row.m16n8k16.f16 " FRAGMENT ", [%x0];", "shape"},
        {"wmma.load.a.sync.aligned.row.m16n16k32.f16 " FRAGMENT ", [%x0];", ".m16n16k32"},
        {"wmma.load.a.sync.aligned.col.m8n8k32.s4 {%w0}, [%x0];", "no such matrix"},
        {"wmma.load.b.sync.aligned.row.m8n8k128.b1 {%w0}, [%x0];", "no such matrix"},
        {"wmma.load.a.sync.aligned.row.m16n16k16.f32 " FRAGMENT ", [%x0];", "no such matrix"},
        {"wmma.load.a.sync.aligned.m16n16k16.f16 " FRAGMENT ", [%x0];", "layouts"},
        {"wmma.load.a.sync.aligned.row.m16n16k16.local.f16 " FRAGMENT ", [%x0];", "global and shared"},
        {"wmma.load.d.sync.aligned.row.m16n16k16.f32 " FRAGMENT ", [%x0];", "which matrix"},
        {"wmma.load.a.aligned.row.m16n16k16.f16 " FRAGMENT ", [%x0];", ".sync.aligned"},
        {"wmma.load.a.sync.aligned.row.m16n16k16.bf16 " FRAGMENT ", [%x0];", "8 registers where it has 4"},
        {"wmma.mma.sync.aligned.row.col.m16n16k16.f32.f16.f16.f32 " FRAGMENT ", " FRAGMENT ", " FRAGMENT ", " FRAGMENT
         ";",
         "only the types of d and c"},
        {"wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.u8.s32 " FRAGMENT ", {%w0, %w1}, {%w0, %w1}, " FRAGMENT ";",
         "no such form"},
        {"wmma.fence.sync.aligned.row.m16n16k16.f16 " FRAGMENT ", [%x0];", ".fence"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        const char *why = matrix_refusal("sm_90", "9.0", refused[i].code);
        if (!strstr(why, refused[i].word) || !strstr(why, "line ")) fail_msg("%s: \"%s\"", refused[i].code, why);
    }
}

int main(void) {
    seed = harness_seed();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_shape_and_type_in_every_layout),
        cmocka_unit_test(each_misuse_is_reported),
        cmocka_unit_test(no_program_can_know_the_layout),
        cmocka_unit_test(what_is_no_form_is_refused_by_name),
    };
    return cmocka_run_group_tests_name("ptx_wmma", tests, NULL, NULL);
}
