#include "tests/sim/tests/ptx/ptx_mma_harness.h"
#include "tests/sim/tests/ptx/ptx_device.h"
#include "tests/sim/tests/ptx/ptx_verdict.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- Types and forms ---- */

static const mma_type types[] = {
    {"f16", 16, MMA_FLOAT, SIM_f16, 5, 10},
    {"bf16", 16, MMA_FLOAT, SIM_bf16, 8, 7},
    {"tf32", 32, MMA_FLOAT, SIM_tf32, 8, 10},
    {"f32", 32, MMA_FLOAT, SIM_f32, 8, 23},
    {"e4m3", 8, MMA_FLOAT, SIM_e4m3, 4, 3},
    {"e5m2", 8, MMA_FLOAT, SIM_e5m2, 5, 2},
    {"f64", 64, MMA_DOUBLE, 0, 11, 52},
    {"s8", 8, MMA_SIGNED, 0, 0, 0},
    {"u8", 8, MMA_UNSIGNED, 0, 0, 0},
    {"s4", 4, MMA_SIGNED, 0, 0, 0},
    {"u4", 4, MMA_UNSIGNED, 0, 0, 0},
    {"s32", 32, MMA_SIGNED, 0, 0, 0},
    {"b1", 1, MMA_BIT, 0, 0, 0},
};

static const mma_type *type_of(const char *name, size_t length) {
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strlen(types[i].name) == length && memcmp(types[i].name, name, length) == 0) return &types[i];
    fail_msg("no type %s", name);
    return NULL;
}

const mma_type *mma_type_named(const char *name) {
    return type_of(name, strlen(name));
}

/* ab: what A and B may be, each. */
static const struct row {
    uint32_t shape[3];
    const char *layouts, *d, *ab, *c, *tail;
    uint32_t target, version;
} rows[] = {
    {{8, 8, 4}, "row.row row.col col.row col.col", "f16", "f16", "f16", "", 75, 64},
    {{8, 8, 4}, "row.row row.col col.row col.col", "f32", "f16", "f16", "", 75, 64},
    {{8, 8, 4}, "row.row row.col col.row col.col", "f32", "f16", "f32", "", 75, 64},
    {{8, 8, 4}, "row.col", "f64", "f64", "f64", "", 80, 70},
    {{16, 8, 4}, "row.col", "f32", "tf32", "f32", "", 80, 70},
    {{16, 8, 4}, "row.col", "f64", "f64", "f64", "", 90, 78},
    {{16, 8, 8}, "row.col", "f16", "f16", "f16", "", 75, 65},
    {{16, 8, 8}, "row.col", "f32", "f16", "f32", "", 75, 65},
    {{16, 8, 8}, "row.col", "f32", "bf16", "f32", "", 80, 70},
    {{16, 8, 8}, "row.col", "f32", "tf32", "f32", "", 80, 70},
    {{16, 8, 8}, "row.col", "f64", "f64", "f64", "", 90, 78},
    {{16, 8, 16}, "row.col", "f16", "f16", "f16", "", 80, 70},
    {{16, 8, 16}, "row.col", "f32", "f16", "f32", "", 80, 70},
    {{16, 8, 16}, "row.col", "f32", "bf16", "f32", "", 80, 70},
    {{16, 8, 16}, "row.col", "f64", "f64", "f64", "", 90, 78},
    {{16, 8, 16}, "row.col", "s32", "s8 u8", "s32", "", 80, 70},
    {{16, 8, 16}, "row.col", "f16", "e4m3 e5m2", "f16", "", 89, 87},
    {{16, 8, 16}, "row.col", "f32", "e4m3 e5m2", "f32", "", 89, 87},
    {{16, 8, 32}, "row.col", "s32", "s8 u8", "s32", "", 80, 70},
    {{16, 8, 32}, "row.col", "s32", "s4 u4", "s32", "", 80, 70},
    {{16, 8, 32}, "row.col", "f16", "e4m3 e5m2", "f16", "", 89, 87},
    {{16, 8, 32}, "row.col", "f32", "e4m3 e5m2", "f32", "", 89, 84},
    {{16, 8, 64}, "row.col", "s32", "s4 u4", "s32", "", 80, 70},
    {{16, 8, 128}, "row.col", "s32", "b1", "s32", ".xor.popc", 80, 70},
    {{16, 8, 128}, "row.col", "s32", "b1", "s32", ".and.popc", 80, 71},
    {{16, 8, 256}, "row.col", "s32", "b1", "s32", ".xor.popc", 80, 70},
    {{16, 8, 256}, "row.col", "s32", "b1", "s32", ".and.popc", 80, 71},
    {{8, 8, 16}, "row.col", "s32", "s8 u8", "s32", "", 75, 65},
    {{8, 8, 32}, "row.col", "s32", "s4 u4", "s32", "", 75, 65},
    {{8, 8, 128}, "row.col", "s32", "b1", "s32", ".xor.popc", 75, 70},
    {{8, 8, 128}, "row.col", "s32", "b1", "s32", ".and.popc", 80, 71},
};

static const char *next_word(const char *text, size_t *length) {
    text += *length;
    text += strspn(text, " ");
    *length = strcspn(text, " ");
    return text;
}

static mma_form form_of(const struct row *row, const char *layouts, const mma_type *a, const mma_type *b) {
    mma_form f = {.m = row->shape[0], .n = row->shape[1], .k = row->shape[2], .a = a, .b = b};
    memcpy(f.shape, row->shape, sizeof f.shape);
    f.target = row->target;
    f.version = row->version;
    f.exclusive = strcmp(row->tail, ".xor.popc") == 0;
    f.d = mma_type_named(row->d);
    f.c = mma_type_named(row->c);
    f.column_a = memcmp(layouts, "col", 3) == 0;
    f.column_b = memcmp(layouts + 4, "col", 3) == 0;
    f.matrices = row->shape[2] == 4 && a->bits == 16 ? 4 : 1;
    snprintf(f.name, sizeof f.name, "mma.sync.aligned.m%un%uk%u.%.7s%%s.%s.%s.%s.%s%s", row->shape[0], row->shape[1],
             row->shape[2], layouts, row->d, a->name, b->name, row->c, row->tail);
    return f;
}

void mma_each_form(void (*test)(const mma_form *form)) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t l = 0, x = 0;
        for (const char *layouts = next_word(rows[i].layouts, &l); l; layouts = next_word(layouts, &l)) {
            x = 0;
            for (const char *a = next_word(rows[i].ab, &x); x; a = next_word(a, &x)) {
                size_t y = 0;
                for (const char *b = next_word(rows[i].ab, &y); y; b = next_word(b, &y)) {
                    mma_form f = form_of(&rows[i], layouts, type_of(a, x), type_of(b, y));
                    test(&f);
                }
            }
        }
    }
}

/* ---- Matrices in registers ---- */

static uint32_t rows_of(const mma_form *f, matrix_letter letter) {
    return f->shape[letter == MATRIX_B ? 2 : 0];
}

static uint32_t columns_of(const mma_form *f, matrix_letter letter) {
    return f->shape[letter == MATRIX_A ? 2 : 1];
}

/* Where each element of each lane is, in the arrays of mma_operands. */
typedef struct packing {
    const mma_type *type;
    uint32_t elements; /* of a lane */
    uint16_t index[MMA_ELEMENTS];
} packing;

static void find_packing(const mma_form *f, matrix_letter letter, const mma_type *t, bool column, packing *out) {
    out->type = t;
    out->elements = matrix_elements(f->shape, letter, t->bits, column);
    for (uint32_t i = 0; i < 32 * out->elements; i++) {
        matrix_place p = matrix_place_of(f->shape, letter, t->bits, column, i / out->elements, i % out->elements);
        out->index[i] = (uint16_t)((p.matrix * rows_of(f, letter) + p.row) * columns_of(f, letter) + p.column);
    }
}

static uint32_t words_of(const mma_form *f, matrix_letter letter, const mma_type *t, bool column) {
    uint32_t elements = matrix_elements(f->shape, letter, t->bits, column);
    assert_int_not_equal(elements, 0);
    return elements * t->bits / 32;
}

/* Packs a lane's elements of a matrix into words. */
static uint32_t pack(const packing *p, const uint64_t *bits, uint32_t lane, uint32_t *words) {
    uint32_t width = p->type->bits, count = p->elements * width / 32;
    memset(words, 0, count * sizeof *words);
    for (uint32_t e = 0; e < p->elements; e++) {
        uint64_t value = bits[p->index[lane * p->elements + e]];
        words[e * width / 32] |= (uint32_t)value << e * width % 32;
        if (width == 64) words[e * 2 + 1] = (uint32_t)(value >> 32);
    }
    return count;
}

static void unpack(const packing *p, const uint32_t *words, uint32_t lane, uint64_t *bits) {
    uint32_t width = p->type->bits;
    for (uint32_t e = 0; e < p->elements; e++) {
        uint64_t *to = &bits[p->index[lane * p->elements + e]];
        if (width == 64)
            *to = words[e * 2] | (uint64_t)words[e * 2 + 1] << 32;
        else
            *to = words[e * width / 32] >> e * width % 32 & ((1ull << width) - 1);
    }
}

/* ", {%w4, %w5}": as many registers from the first. */
static size_t write_vector(char *text, size_t size, bool comma, char letter, uint32_t first, uint32_t count) {
    size_t length = (size_t)snprintf(text, size, "%s{", comma ? ", " : " ");
    for (uint32_t i = 0; i < count; i++)
        length += (size_t)snprintf(text + length, size - length, "%s%%%c%u", i ? ", " : "", letter, first + i);
    return length + (size_t)snprintf(text + length, size - length, "}");
}

void mma_write_code(const mma_form *f, const char *extra, char *text, size_t size, matrix_case *test) {
    bool wide = f->d->bits == 64;
    uint32_t words[4] = {words_of(f, MATRIX_C, f->d, false), words_of(f, MATRIX_A, f->a, f->column_a),
                         words_of(f, MATRIX_B, f->b, f->column_b), words_of(f, MATRIX_C, f->c, false)};
    uint32_t first = 0;
    size_t length = 0;
    test->in = words[1] + words[2] + words[3];
    test->out = words[0];
    test->code = text;
    for (uint32_t i = 0; wide && i < test->in; i += 2)
        length += (size_t)snprintf(text + length, size - length, "mov.b64 %%g%u, {%%w%u, %%w%u};\n", i / 2, i, i + 1);
    length += (size_t)snprintf(text + length, size - length, f->name, extra);
    length += write_vector(text + length, size - length, false, wide ? 'g' : 'v', wide ? 20 : 0, words[0] >> wide);
    for (int i = 1; i < 4; i++) {
        length += write_vector(text + length, size - length, true, wide ? 'g' : 'w', first >> wide, words[i] >> wide);
        first += words[i];
    }
    length += (size_t)snprintf(text + length, size - length, ";\n");
    for (uint32_t i = 0; wide && i < test->out; i += 2)
        length +=
            (size_t)snprintf(text + length, size - length, "mov.b64 {%%v%u, %%v%u}, %%g%u;\n", i, i + 1, 20 + i / 2);
    assert_true(length < size);
}

double mma_number(const mma_type *type, uint64_t bits) {
    double value;
    switch (type->kind) {
    case MMA_DOUBLE:
        memcpy(&value, &bits, sizeof value);
        return value;
    case MMA_FLOAT: /* a tf32 is the upper part of a register */
        return sim_decode(type->format, (uint32_t)(type->format == SIM_tf32 ? bits >> 13 : bits));
    case MMA_SIGNED:
        return bits >> (type->bits - 1) ? (double)bits - ldexp(1, (int)type->bits) : (double)bits;
    default:
        return (double)bits;
    }
}

static void target_of(const mma_form *f, char *target, char *version) {
    snprintf(target, 16, "sm_%u", f->target);
    snprintf(version, 16, "%u.%u", f->version / 10, f->version % 10);
}

/* ---- Running ---- */

/* The packings of A, B, C and D. */
static void find_packings(const mma_form *f, packing out[4]) {
    find_packing(f, MATRIX_A, f->a, f->column_a, &out[0]);
    find_packing(f, MATRIX_B, f->b, f->column_b, &out[1]);
    find_packing(f, MATRIX_C, f->c, false, &out[2]);
    find_packing(f, MATRIX_C, f->d, false, &out[3]);
}

/* The words of all lanes, to be freed. */
static uint32_t *packed(const mma_form *f, const mma_operands *in, uint32_t count, uint32_t words_of_lane) {
    packing p[4];
    find_packings(f, p);
    uint32_t *words = calloc((size_t)count * 32, words_of_lane * sizeof *words);
    assert_non_null(words);
    for (uint32_t i = 0; i < count * 32; i++) {
        uint32_t *lane = words + (size_t)i * words_of_lane;
        lane += pack(&p[0], in[i / 32].a, i % 32, lane);
        lane += pack(&p[1], in[i / 32].b, i % 32, lane);
        pack(&p[2], in[i / 32].c, i % 32, lane);
    }
    return words;
}

static void unpacked(const mma_form *f, const uint32_t *results, uint32_t count, uint32_t words_of_lane,
                     uint64_t (*d)[MMA_RESULTS]) {
    packing p[4];
    find_packings(f, p);
    for (uint32_t i = 0; i < count * 32; i++)
        unpack(&p[3], results + (size_t)i * words_of_lane, i % 32, d[i / 32]);
}

static void simulate(const matrix_case *test, const uint32_t *words, uint32_t *results) {
    sim_counters counters = {0};
    sim_report report;
    if (!matrix_run(test, words, results, &counters, &report)) fail_msg("%s: %s", test->code, report.text);
    assert_int_equal(counters.matrix_instructions, test->blocks);
}

/* ---- Comparing with a device ---- */

/* An element by the interpreter, in each way of adding, and by the device. */
static verdict judge(const mma_form *f, const char *code, const uint64_t simulated[SIM_SUM_MODES], uint64_t got) {
    bool matches[SIM_SUM_MODES], any = false, nan = isnan(mma_number(f->d, got));
    double value = mma_number(f->d, got), least = INFINITY, most = -INFINITY;
    for (int mode = 0; mode < SIM_SUM_MODES; mode++) {
        double number = mma_number(f->d, simulated[mode]);
        matches[mode] = simulated[mode] == got;
        any = any || matches[mode];
        nan = nan && isnan(number);
        least = fmin(least, number);
        most = fmax(most, number);
    }
    if (f->d->kind == MMA_FLOAT) verdict_count_sum(code, matches);
    if (any) return VERDICT_EQUAL;
    if (nan) return VERDICT_NAN;
    return f->d->kind == MMA_FLOAT && value >= least && value <= most ? VERDICT_WITHIN : VERDICT_DIFFERENT;
}

static void judge_all(const mma_form *f, const char *code, uint64_t (*d)[MMA_RESULTS], uint32_t count) {
    enum { PRINTED = 4 };
    uint64_t counts[VERDICTS] = {0};
    for (uint32_t t = 0; t < count; t++) {
        for (uint32_t i = 0; i < f->matrices * f->m * f->n; i++) {
            uint64_t simulated[SIM_SUM_MODES];
            for (uint32_t mode = 0; mode < SIM_SUM_MODES; mode++)
                simulated[mode] = d[mode * count + t][i];
            verdict which = judge(f, code, simulated, d[SIM_SUM_MODES * count + t][i]);
            if (counts[which]++ >= PRINTED || which != VERDICT_DIFFERENT) continue;
            printf("# different: %s: product %u, element %u: the device's %a; simulated exact %a, sequential %a, "
                   "truncating %a, hopper %a\n",
                   code, t, i, mma_number(f->d, d[SIM_SUM_MODES * count + t][i]), mma_number(f->d, simulated[0]),
                   mma_number(f->d, simulated[1]), mma_number(f->d, simulated[2]), mma_number(f->d, simulated[3]));
        }
    }
    for (int v = 0; v < VERDICTS; v++)
        verdict_count(code, (verdict)v, counts[v]);
}

/* The same products for the device's target, in each way of adding and on the device. */
static void compare(const mma_form *f, const char *extra, const matrix_case *test, const mma_operands *in) {
    char code[128];
    matrix_case here;
    if (!matrix_here(test, &here)) return;
    uint32_t count = test->blocks;
    uint32_t *words = packed(f, in, count, test->in), *results = calloc((size_t)count * 32, test->out * 4);
    uint64_t(*d)[MMA_RESULTS] = calloc((size_t)count * (SIM_SUM_MODES + 1), sizeof *d);
    assert_true(results && d);
    for (int mode = 0; mode < SIM_SUM_MODES; mode++) {
        here.mode = (sim_sum_mode)mode;
        simulate(&here, words, results);
        unpacked(f, results, count, test->out, d + (size_t)mode * count);
    }
    if (matrix_run_there(&here, words, results)) {
        unpacked(f, results, count, test->out, d + (size_t)SIM_SUM_MODES * count);
        snprintf(code, sizeof code, f->name, extra);
        judge_all(f, code, d, count);
    }
    free(words);
    free(results);
    free(d);
}

/* Runs count products, each in a warp of its own. */
void mma_run(const mma_form *f, const char *target, const char *extra, sim_sum_mode mode, const mma_operands *in,
             uint64_t (*d)[MMA_RESULTS], uint32_t count) {
    char code[4096], version[16], own[16];
    target_of(f, own, version);
    matrix_case test = {.target = target ? target : own, .version = target ? "9.0" : version, .mode = mode};
    mma_write_code(f, extra, code, sizeof code, &test);
    test.blocks = count;
    test.threads = 32;
    test.seed = count;
    uint32_t *words = packed(f, in, count, test.in), *results = calloc((size_t)count * 32, test.out * 4);
    assert_non_null(results);
    simulate(&test, words, results);
    unpacked(f, results, count, test.out, d);
    free(words);
    free(results);
    if (device_present() && (!target || strcmp(target, device_target()) == 0)) compare(f, extra, &test, in);
}
