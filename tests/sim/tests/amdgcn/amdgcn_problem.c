#include "tests/sim/tests/amdgcn/amdgcn_problem.h"
#include "tests/sim/amdgcn/wave/amd_wave.h"
#include "tests/sim/tests/amdgcn/amdgcn_numbers.h"
#include "tests/sim/tests/common/exact.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { D_AT = 0, A_AT = 64, B_AT = 96, C_AT = 128 };

uint64_t problem_random_state;
amdgcn_registers problem_before, problem_after;
uint64_t problem_inexact[SIM_SUM_MODES];

static uint64_t draw(void) {
    return sim_random(&problem_random_state);
}

/* ---- The second derivation ---- */

static const second_mfma second_mfmas[] = {
#define AMD_SECOND_MFMA(...) {__VA_ARGS__},
#define AMD_SECOND_WMMA(...)
#include "tests/sim/tests/amdgcn/amdgcn_matrix_layouts.def"
#undef AMD_SECOND_MFMA
#undef AMD_SECOND_WMMA
};

static const second_wmma second_wmmas[] = {
#define AMD_SECOND_MFMA(...)
#define AMD_SECOND_WMMA(variant, k, bits, lanes, group_k, step, r0, r1, r2, r3) \
    {AMD_VARIANT_##variant, k, bits, lanes, group_k, step, {r0, r1, r2, r3}},
#include "tests/sim/tests/amdgcn/amdgcn_matrix_layouts.def"
#undef AMD_SECOND_MFMA
#undef AMD_SECOND_WMMA
};

static bool second_find(shape *s) {
    const amd_matrix *m = s->matrix;
    s->mfma = NULL;
    s->wmma = NULL;
    for (size_t i = 0; i < sizeof second_mfmas / sizeof *second_mfmas; i++) {
        const second_mfma *row = &second_mfmas[i];
        if (s->variant == AMD_VARIANT_9 && row->rows == m->rows && row->k == m->k && row->blocks == m->blocks &&
            row->bits == s->d_bits)
            s->mfma = row;
    }
    for (size_t i = 0; i < sizeof second_wmmas / sizeof *second_wmmas; i++) {
        const second_wmma *row = &second_wmmas[i];
        if (s->variant == row->variant && row->k == m->k && row->bits == s->a_bits) s->wmma = row;
    }
    return s->mfma || s->wmma;
}

/* Of A's element in row i; B's in column i is there, too. Replicas: the first of the places. */
place problem_input(const shape *s, uint32_t block, uint32_t i, uint32_t k) {
    if (s->wmma) {
        uint32_t group = s->wmma->group_k ? k / s->wmma->group_k : 0;
        return (place){group * 16 + i, s->wmma->group_k ? k % s->wmma->group_k : k};
    }
    const second_mfma *x = s->mfma;
    return (place){(k / x->block_k * x->blocks + block) * x->rows + i, k % x->block_k};
}

place problem_output(const shape *s, uint32_t block, uint32_t row, uint32_t column) {
    if (s->wmma) {
        uint32_t groups = s->wave64 ? 4 : 2, elements = 16 / groups;
        for (uint32_t group = 0; group < groups; group++) {
            for (uint32_t element = 0; element < elements; element++) {
                if (s->wmma->rows[group] + element * s->wmma->step == row) return (place){group * 16 + column, element};
            }
        }
        fail_msg("row %u is nowhere", row);
    }
    const second_mfma *x = s->mfma;
    uint32_t part = row / x->group_size % x->input_blocks, group = row / x->group_size / x->input_blocks;
    uint32_t element = group * x->group_size + row % x->group_size, thread = column;
    if (x->threads > x->rows)
        thread += block * x->rows;
    else
        element += block * x->group_size * x->groups;
    return (place){part * x->threads + thread, element};
}

/* Calls a function for each instruction of each target that has it. */
void problem_each_shape(void (*visit)(const shape *s)) {
    static const struct {
        const char *processor;
        bool wave64;
    } targets[] = {{"gfx90a", true},  {"gfx942", true},   {"gfx1100", false},
                   {"gfx1100", true}, {"gfx1201", false}, {"gfx1201", true}};
    uint32_t seen[AMD_MATRIX_ROWS] = {0};
    for (size_t t = 0; t < sizeof targets / sizeof *targets; t++) {
        for (uint32_t i = 0; i < AMD_MATRIX_ROWS; i++) {
            const amd_matrix *m = &amd_matrices[i];
            shape s = {.matrix = m, .processor = targets[t].processor, .wave64 = targets[t].wave64};
            s.variant = amd_variant_of(amd_target_find(s.processor), !s.wave64);
            bool none = m->in[s.variant] == AMD_LAYOUT_none || m->in[s.variant] == AMD_LAYOUT_none_w64;
            bool newer = strchr(m->mnemonic + 11, '_') && !strstr(m->mnemonic, "_1k"); /* gfx942's names */
            if (none || (s.variant == AMD_VARIANT_9 && newer != !strcmp(s.processor, "gfx942"))) continue;
            s.a_bits = amd_matrix_types[m->a].bits;
            s.b_bits = amd_matrix_types[m->b].bits;
            s.d_bits = amd_matrix_types[m->d].bits;
            if (!second_find(&s)) fail_msg("%s has no second derivation", m->mnemonic);
            seen[i]++;
            visit(&s);
        }
    }
    for (uint32_t i = 0; i < AMD_MATRIX_ROWS; i++)
        if (!seen[i]) fail_msg("%s: no target has it", amd_matrices[i].mnemonic);
}
/* The shape of a mnemonic on a target. */
shape problem_shape_of(const char *mnemonic, const char *processor, bool wave64) {
    shape s = {.processor = processor, .wave64 = wave64};
    uint32_t i = 0;
    while (i < AMD_MATRIX_ROWS && strcmp(amd_matrices[i].mnemonic, mnemonic) != 0)
        i++;
    assert_true(i < AMD_MATRIX_ROWS);
    s.matrix = &amd_matrices[i];
    s.variant = amd_variant_of(amd_target_find(processor), !wave64);
    s.a_bits = amd_matrix_types[s.matrix->a].bits;
    s.b_bits = amd_matrix_types[s.matrix->b].bits;
    s.d_bits = amd_matrix_types[s.matrix->d].bits;
    assert_true(second_find(&s));
    return s;
}

/* ---- Problems: matrices as bits of their types ---- */

static void bits_put(uint32_t (*v)[AMD_LANES], uint32_t lane, uint32_t element, uint32_t bits, uint64_t value) {
    for (uint32_t i = 0; i < bits; i += 4) {
        uint32_t at = element * bits + i, *word = &v[at / 32][lane];
        *word = (*word & ~(15u << at % 32)) | (uint32_t)(value >> i & 15) << at % 32;
    }
}

static uint64_t bits_get(uint32_t (*v)[AMD_LANES], uint32_t lane, uint32_t element, uint32_t bits) {
    uint64_t value = 0;
    for (uint32_t i = 0; i < bits; i += 4) {
        uint32_t at = element * bits + i;
        value |= (uint64_t)(v[at / 32][lane] >> at % 32 & 15) << i;
    }
    return value;
}

static void operand_text(char *text, size_t size, char file, uint32_t at, uint32_t count) {
    if (count == 1)
        snprintf(text, size, "%c%u", file, at);
    else
        snprintf(text, size, "%c[%u:%u]", file, at, at + count - 1);
}

static void problem_text(const problem *p, char *text, size_t size) {
    const amd_matrix *m = p->s.matrix;
    char d[16], a[16], b[16], c[16], file = p->accumulators ? 'a' : 'v';
    uint32_t out = amd_matrix_output_registers(m, p->s.variant);
    operand_text(d, sizeof d, file, D_AT, out);
    operand_text(a, sizeof a, file, A_AT, amd_matrix_input_registers(m, p->s.variant, (amd_matrix_type)m->a));
    operand_text(b, sizeof b, file, B_AT, amd_matrix_input_registers(m, p->s.variant, (amd_matrix_type)m->b));
    operand_text(c, sizeof c, file, C_AT, out);
    if (p->constant) snprintf(c, sizeof c, "%s", m->d == AMD_MATRIX_i32 ? "1" : "1.0");
    snprintf(text, size, "%s %s, %s, %s, %s%s%s", m->mnemonic, d, a, b, c, p->modifiers ? " " : "",
             p->modifiers ? p->modifiers : "");
}

/* gfx11 keeps a 16-bit result in each register, in one half. */
static uint32_t output_element(const problem *p, uint32_t element) {
    bool gfx11 = !strcmp(p->s.processor, "gfx1100");
    return gfx11 && p->s.d_bits == 16 ? element * 2 + p->high : element;
}

static void problem_place(const problem *p) {
    const shape *s = &p->s;
    uint32_t base = p->accumulators ? AMD_ACCUMULATORS : 0;
    EACH_INPUT(s->matrix) {
        place q = problem_input(s, block, i, k);
        uint32_t step = s->wmma ? s->wmma->group_k ? 64 : 16 : 64;
        for (uint32_t lane = q.lane; lane < (s->wave64 ? 64u : 32u); lane += step) {
            bits_put(&problem_before.v[base + A_AT], lane, q.element, s->a_bits, p->a[at]);
            bits_put(&problem_before.v[base + B_AT], lane, q.element, s->b_bits, p->b[at]);
        }
    }
    EACH_OUTPUT(s->matrix) {
        place q = problem_output(s, block, i, j);
        bits_put(&problem_before.v[base + C_AT], q.lane, output_element(p, q.element), s->d_bits, p->c[at]);
    }
}

/* Puts random numbers into all registers, too. */
amd_program *problem_load(const problem *p) {
    char text[256];
    problem_text(p, text, sizeof text);
    amd_program *program = amdgcn_load(p->s.processor, p->s.wave64, text);
    amdgcn_registers_fill(&problem_before, program, &problem_random_state);
    return program;
}

/* Runs the instruction; D goes to p->d. */
void problem_run(problem *p, const amd_program *program) {
    const amdgcn_setting setting = {.sums = p->sums};
    uint32_t base = p->accumulators ? AMD_ACCUMULATORS : 0;
    uint32_t out = amd_matrix_output_registers(p->s.matrix, p->s.variant);
    problem_place(p);
    problem_after = problem_before;
    amdgcn_run(program, &setting, &problem_after);
    EACH_OUTPUT(p->s.matrix) {
        place q = problem_output(&p->s, block, i, j);
        p->d[at] = bits_get(&problem_after.v[base + D_AT], q.lane, output_element(p, q.element), p->s.d_bits);
    }
    memcpy(problem_before.v[base + D_AT], problem_after.v[base + D_AT], out * sizeof *problem_before.v);
    if (memcmp(&problem_before, &problem_after, sizeof problem_before) != 0)
        fail_msg("%s: another register changed", p->s.matrix->mnemonic);
}

void problem_differs(const problem *p, uint32_t at, uint64_t expected) {
    char text[256];
    uint32_t rows = p->s.matrix->rows;
    problem_text(p, text, sizeof text);
    fail_msg("%s on %s, way %d: D[%u][%u] of block %u is 0x%llx, expected 0x%llx", text, p->s.processor, (int)p->sums,
             at / rows % rows, at % rows, at / rows / rows, (unsigned long long)p->d[at], (unsigned long long)expected);
}
/* ---- Random matrices ---- */

static bool flushes(const shape *s) {
    return !strcmp(s->processor, "gfx90a") && (s->matrix->a == AMD_MATRIX_f16 || s->matrix->a == AMD_MATRIX_bf16);
}

/* An f32 rounded to 10 bits of mantissa, ties to even. */
static double to_xf32(double value) {
    float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    bits += 0xfff + (bits >> 13 & 1);
    bits &= ~0x1fffu;
    memcpy(&narrow, &bits, sizeof bits);
    return narrow;
}

static double input_value(const shape *s, amd_matrix_type type, uint64_t bits) {
    double value = amdgcn_decode(type, bits);
    if (type == AMD_MATRIX_xf32) value = to_xf32(value);
    double least = type == AMD_MATRIX_f16 ? 0x1p-14 : 0x1p-126;
    return flushes(s) && fabs(value) < least ? 0 : value;
}

static uint64_t random_input(amd_matrix_type type) {
    uint32_t width = amd_matrix_types[type].bits;
    for (;;) {
        uint64_t bits = draw() >> (64 - width);
        if (type == AMD_MATRIX_f64) bits = (bits & ~(0x7ffull << 52)) | (1023 - 20 + draw() % 40) << 52;
        if (type == AMD_MATRIX_f32 || type == AMD_MATRIX_xf32 || type == AMD_MATRIX_bf16) {
            uint32_t shift = width - 9;
            if (draw() % 16) bits = (bits & ~(0xffull << shift)) | (127 - 12 + draw() % 24) << shift;
        }
        if (amdgcn_is_integer(type) || isfinite(amdgcn_decode(type, bits))) return bits;
    }
}

void problem_draw(problem *p) {
    const amd_matrix *m = p->s.matrix;
    EACH_INPUT(m) {
        p->a[at] = random_input((amd_matrix_type)m->a);
        p->b[at] = random_input((amd_matrix_type)m->b);
    }
    EACH_OUTPUT(m) p->c[at] = random_input((amd_matrix_type)m->d);
}

/* What one element must be, rounded once; *out_size is what its addends' magnitudes add up to. */
static uint64_t expected_real(const problem *p, uint32_t block, uint32_t row, uint32_t column, double *out_size) {
    const amd_matrix *m = p->s.matrix;
    amd_matrix_type type = (amd_matrix_type)m->d;
    exact sum = {0};
    double addend = input_value(&p->s, type, p->c[(block * m->rows + row) * m->rows + column]);
    if (p->constant) addend = 1;
    exact_add_product(&sum, addend, 1);
    *out_size = fabs(addend);
    for (uint32_t k = 0; k < m->k; k++) {
        double a = input_value(&p->s, (amd_matrix_type)m->a, p->a[(block * m->rows + row) * m->k + k]);
        double b = input_value(&p->s, (amd_matrix_type)m->b, p->b[(block * m->rows + column) * m->k + k]);
        exact_add_product(&sum, a, b);
        *out_size += fabs(a * b);
    }
    uint64_t bits = amdgcn_round(type, &sum);
    return flushes(&p->s) && fabs(amdgcn_decode(type, bits)) < 0x1p-126 ? bits & 0x80000000u : bits;
}

static bool is_zero(const shape *s, uint64_t bits) {
    return !(bits & ((1ull << (s->d_bits - 1)) - 1));
}

void problem_check_real(const problem *p) {
    const amd_matrix *m = p->s.matrix;
    amd_matrix_type type = (amd_matrix_type)m->d;
    EACH_OUTPUT(m) {
        double size, got = amdgcn_decode(type, p->d[at]);
        uint64_t expected = expected_real(p, block, i, j, &size);
        if (p->d[at] == expected || (is_zero(&p->s, expected) && is_zero(&p->s, p->d[at]))) continue;
        problem_inexact[p->sums]++;
        double last = type == AMD_MATRIX_f64   ? 0x1p-48
                      : type == AMD_MATRIX_f32 ? 0x1p-22
                      : type == AMD_MATRIX_f16 ? 0x1p-9
                                               : 0x1p-6;
        if (m->a == AMD_MATRIX_xf32 && p->sums == SIM_SUM_TRUNCATING) last = 0x1p-9; /* the inputs are cut off, too */
        double bound = (m->k + 2) * last * size + (type == AMD_MATRIX_f16 ? 0x1p-23 : 0x1p-125);
        bool near_by = fabs(got - amdgcn_decode(type, expected)) <= bound;
        bool at_the_end = type == AMD_MATRIX_f16 && size > 60000; /* overflows one way or another */
        if (p->sums == SIM_SUM_EXACT || !(near_by || at_the_end)) problem_differs(p, at, expected);
    }
}

void problem_check_integer(const problem *p, bool a_signed, bool b_signed, bool clamp) {
    const amd_matrix *m = p->s.matrix;
    EACH_OUTPUT(m) {
        int64_t sum = p->constant ? 1 : (int32_t)p->c[at];
        for (uint32_t k = 0; k < m->k; k++)
            sum += amdgcn_integer((amd_matrix_type)m->a, a_signed, p->a[(block * m->rows + i) * m->k + k]) *
                   amdgcn_integer((amd_matrix_type)m->b, b_signed, p->b[(block * m->rows + j) * m->k + k]);
        if (clamp && sum > INT32_MAX) sum = INT32_MAX;
        if (clamp && sum < INT32_MIN) sum = INT32_MIN;
        if (p->d[at] != (uint32_t)sum) problem_differs(p, at, (uint32_t)sum);
    }
}
