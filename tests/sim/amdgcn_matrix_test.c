/* Matrix instructions of AMD: where the elements are, by two derivations; what comes of them, against sums in C. */
#include "tests/sim/amdgcn/amd_matrix.h"
#include "tests/sim/amdgcn_assembler.h"
#include "tests/sim/amdgcn_harness.h"
#include "tests/sim/amdgcn_numbers.h"
#include "tests/sim/exact.h"
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { INPUTS = 512, OUTPUTS = 2048, D_AT = 0, A_AT = 64, B_AT = 96, C_AT = 128 };

static uint64_t random_state;

static uint64_t draw(void) {
    return amd_random(&random_state);
}

/* ---- The second derivation ---- */

typedef struct place {
    uint32_t lane, element;
} place;

typedef struct second_mfma {
    uint8_t rows, k, blocks, bits, group_size, groups, threads, input_blocks, block_k;
} second_mfma;

static const second_mfma second_mfmas[] = {
#define AMD_SECOND_MFMA(...) {__VA_ARGS__},
#define AMD_SECOND_WMMA(...)
#include "tests/sim/amdgcn_matrix_layouts.def"
#undef AMD_SECOND_MFMA
#undef AMD_SECOND_WMMA
};

typedef struct second_wmma {
    uint8_t variant, k, bits, lanes, group_k, step, rows[4];
} second_wmma;

static const second_wmma second_wmmas[] = {
#define AMD_SECOND_MFMA(...)
#define AMD_SECOND_WMMA(variant, k, bits, lanes, group_k, step, r0, r1, r2, r3) \
    {AMD_VARIANT_##variant, k, bits, lanes, group_k, step, {r0, r1, r2, r3}},
#include "tests/sim/amdgcn_matrix_layouts.def"
#undef AMD_SECOND_MFMA
#undef AMD_SECOND_WMMA
};

/* An instruction as one target has it. */
typedef struct shape {
    const amd_matrix *matrix;
    amd_variant variant;
    const char *processor;
    bool wave64;
    uint32_t a_bits, b_bits, d_bits;
    const second_mfma *mfma; /* one of both */
    const second_wmma *wmma;
} shape;

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
static place second_input(const shape *s, uint32_t block, uint32_t i, uint32_t k) {
    if (s->wmma) {
        uint32_t group = s->wmma->group_k ? k / s->wmma->group_k : 0;
        return (place){group * 16 + i, s->wmma->group_k ? k % s->wmma->group_k : k};
    }
    const second_mfma *x = s->mfma;
    return (place){(k / x->block_k * x->blocks + block) * x->rows + i, k % x->block_k};
}

static place second_output(const shape *s, uint32_t block, uint32_t row, uint32_t column) {
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
static void each_shape(void (*visit)(const shape *s)) {
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

/* ---- Layouts ---- */

static place first_place(const amd_places *places, uint32_t block, uint32_t row, uint32_t other) {
    return (place){(uint32_t)places->lane[0][row] | places->lane[1][other] | places->lane[2][block],
                   (uint32_t)places->element[0][row] | places->element[1][other] | places->element[2][block]};
}

/* Which k each derivation has at one place: on gfx12 they may differ by an order, the same in all rows. */
static void layout_of_inputs(const shape *s) {
    enum { UNKNOWN = 0xff };
    const amd_matrix *m = s->matrix;
    amd_places places;
    amd_places_of((amd_layout)m->in[s->variant], &places);
    uint8_t order[AMD_COORDINATE_MAX], owner[AMD_LANES][AMD_COORDINATE_MAX][3];
    memset(order, UNKNOWN, sizeof order);
    memset(owner, UNKNOWN, sizeof owner);
    for (uint32_t block = 0; block < m->blocks; block++) {
        for (uint32_t i = 0; i < m->rows; i++) {
            for (uint32_t k = 0; k < m->k; k++) {
                place p = first_place(&places, block, i, k);
                assert_true(p.lane < AMD_LANES && p.element < places.elements);
                uint8_t *own = owner[p.lane][p.element];
                if (own[0] != UNKNOWN) fail_msg("%s: two elements in one place", m->mnemonic);
                own[0] = (uint8_t)block, own[1] = (uint8_t)i, own[2] = (uint8_t)k;
            }
        }
    }
    bool any_order = s->variant == AMD_VARIANT_12 || s->variant == AMD_VARIANT_12_W64;
    for (uint32_t block = 0; block < m->blocks; block++) {
        for (uint32_t i = 0; i < m->rows; i++) {
            for (uint32_t k = 0; k < m->k; k++) {
                place p = second_input(s, block, i, k);
                const uint8_t *own = owner[p.lane][p.element];
                if (order[k] == UNKNOWN) order[k] = any_order ? own[2] : (uint8_t)k;
                if (own[0] != block || own[1] != i || own[2] != order[k])
                    fail_msg("%s on %s: lane %u, element %u: block %u, row %u, k %u; the second derivation has %u, %u, "
                             "%u",
                             m->mnemonic, s->processor, p.lane, p.element, own[0], own[1], own[2], block, i, k);
            }
        }
    }
}

static void layout_of_outputs(const shape *s) {
    const amd_matrix *m = s->matrix;
    amd_places places;
    amd_places_of((amd_layout)m->out[s->variant], &places);
    for (uint32_t block = 0; block < m->blocks; block++) {
        for (uint32_t i = 0; i < m->rows; i++) {
            for (uint32_t j = 0; j < m->rows; j++) {
                place p = first_place(&places, block, i, j), q = second_output(s, block, i, j);
                if (p.lane != q.lane || p.element != q.element)
                    fail_msg("%s on %s: D[%u][%u] of block %u: lane %u, element %u; the second derivation has %u, %u",
                             m->mnemonic, s->processor, i, j, block, p.lane, p.element, q.lane, q.element);
            }
        }
    }
}

static void test_layouts(void **state) {
    (void)state;
    each_shape(layout_of_inputs);
    each_shape(layout_of_outputs);
}

/* ---- Problems: matrices as bits of their types ---- */

typedef struct problem {
    shape s;
    uint64_t a[INPUTS], b[INPUTS]; /* by block, row or column, k */
    uint64_t c[OUTPUTS], d[OUTPUTS];
    const char *modifiers;
    bool accumulators; /* all operands in AGPRs */
    bool constant;     /* C is 1.0 or 1 */
    bool high;         /* gfx11: op_sel of the upper halves */
    sim_sum_mode sums;
} problem;

static amdgcn_registers before, registers;

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

#define EACH_INPUT(m)                                              \
    for (uint32_t block = 0, at = 0; block < (m)->blocks; block++) \
        for (uint32_t i = 0; i < (m)->rows; i++)                   \
            for (uint32_t k = 0; k < (m)->k; k++, at++)
#define EACH_OUTPUT(m)                                             \
    for (uint32_t block = 0, at = 0; block < (m)->blocks; block++) \
        for (uint32_t i = 0; i < (m)->rows; i++)                   \
            for (uint32_t j = 0; j < (m)->rows; j++, at++)

static void problem_place(const problem *p) {
    const shape *s = &p->s;
    uint32_t base = p->accumulators ? AMD_ACCUMULATORS : 0;
    EACH_INPUT(s->matrix) {
        place q = second_input(s, block, i, k);
        uint32_t step = s->wmma ? s->wmma->group_k ? 64 : 16 : 64;
        for (uint32_t lane = q.lane; lane < (s->wave64 ? 64u : 32u); lane += step) {
            bits_put(&before.v[base + A_AT], lane, q.element, s->a_bits, p->a[at]);
            bits_put(&before.v[base + B_AT], lane, q.element, s->b_bits, p->b[at]);
        }
    }
    EACH_OUTPUT(s->matrix) {
        place q = second_output(s, block, i, j);
        bits_put(&before.v[base + C_AT], q.lane, output_element(p, q.element), s->d_bits, p->c[at]);
    }
}

/* Puts random numbers into all registers, too. */
static amd_program *problem_load(const problem *p) {
    char text[256];
    problem_text(p, text, sizeof text);
    amd_program *program = amdgcn_load(p->s.processor, p->s.wave64, text);
    amdgcn_registers_fill(&before, program, &random_state);
    return program;
}

/* Runs the instruction; D goes to p->d. */
static void problem_run(problem *p, const amd_program *program) {
    const amdgcn_setting setting = {.sums = p->sums};
    uint32_t base = p->accumulators ? AMD_ACCUMULATORS : 0;
    uint32_t out = amd_matrix_output_registers(p->s.matrix, p->s.variant);
    problem_place(p);
    registers = before;
    amdgcn_run(program, &setting, &registers);
    EACH_OUTPUT(p->s.matrix) {
        place q = second_output(&p->s, block, i, j);
        p->d[at] = bits_get(&registers.v[base + D_AT], q.lane, output_element(p, q.element), p->s.d_bits);
    }
    memcpy(before.v[base + D_AT], registers.v[base + D_AT], out * sizeof *before.v);
    if (memcmp(&before, &registers, sizeof before) != 0)
        fail_msg("%s: another register changed", p->s.matrix->mnemonic);
}

static void differs(const problem *p, uint32_t at, uint64_t expected) {
    char text[256];
    uint32_t rows = p->s.matrix->rows;
    problem_text(p, text, sizeof text);
    fail_msg("%s on %s, way %d: D[%u][%u] of block %u is 0x%llx, expected 0x%llx", text, p->s.processor, (int)p->sums,
             at / rows % rows, at % rows, at / rows / rows, (unsigned long long)p->d[at], (unsigned long long)expected);
}

/* ---- One-hot matrices ---- */

/* A has a single 1 in each block and B unique numbers: D has a row of B. Of numbers of 8 bits there are too few: the
 * second time round they count another way. */
static void one_hot(const shape *s) {
    static problem p;
    const amd_matrix *m = s->matrix;
    uint64_t one = amdgcn_encode((amd_matrix_type)m->a, 1);
    memset(&p, 0, sizeof p);
    p.s = *s;
    amd_program *program = problem_load(&p);
    int limit = m->b == AMD_MATRIX_iu4                                   ? 15
                : m->b == AMD_MATRIX_e5m2 || m->b == AMD_MATRIX_e5m2fnuz ? 7
                : s->b_bits == 8                                         ? 15
                : s->b_bits == 16                                        ? 127
                                                                         : 2000;
    bool is_signed = m->b != AMD_MATRIX_iu4 && m->b != AMD_MATRIX_iu8 && m->b != AMD_MATRIX_i8;
    uint64_t digit = (uint64_t)(is_signed ? 2 * limit + 1 : limit + 1);
    for (uint32_t hot = 0; hot < (uint32_t)m->rows * m->k; hot++) {
        for (uint64_t scale = 1; scale < INPUTS; scale *= digit) {
            int numbers[INPUTS];
            EACH_INPUT(m) {
                p.a[at] = (i * m->k + k == hot) ? one : 0;
                numbers[at] = (int)(at / scale % digit) - (is_signed ? limit : 0);
                p.b[at] = amdgcn_encode((amd_matrix_type)m->b, numbers[at]);
            }
            problem_run(&p, program);
            EACH_OUTPUT(m) {
                int number = i == hot / m->k ? numbers[(block * m->rows + j) * m->k + hot % m->k] : 0;
                uint64_t expected = amdgcn_encode((amd_matrix_type)m->d, number);
                if (p.d[at] != expected) differs(&p, at, expected);
            }
        }
    }
    amd_program_free(program);
}

static void test_one_hot(void **state) {
    (void)state;
    each_shape(one_hot);
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

static void problem_draw(problem *p) {
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

static uint64_t inexact[SIM_SUM_MODES]; /* results that are not what the exact way gives */

static void check_real(const problem *p) {
    const amd_matrix *m = p->s.matrix;
    amd_matrix_type type = (amd_matrix_type)m->d;
    EACH_OUTPUT(m) {
        double size, got = amdgcn_decode(type, p->d[at]);
        uint64_t expected = expected_real(p, block, i, j, &size);
        if (p->d[at] == expected || (is_zero(&p->s, expected) && is_zero(&p->s, p->d[at]))) continue;
        inexact[p->sums]++;
        double last = type == AMD_MATRIX_f64   ? 0x1p-48
                      : type == AMD_MATRIX_f32 ? 0x1p-22
                      : type == AMD_MATRIX_f16 ? 0x1p-9
                                               : 0x1p-6;
        if (m->a == AMD_MATRIX_xf32 && p->sums == SIM_SUM_TRUNCATING) last = 0x1p-9; /* the inputs are cut off, too */
        double bound = (m->k + 2) * last * size + (type == AMD_MATRIX_f16 ? 0x1p-23 : 0x1p-125);
        bool near_by = fabs(got - amdgcn_decode(type, expected)) <= bound;
        bool at_the_end = type == AMD_MATRIX_f16 && size > 60000; /* overflows one way or another */
        if (p->sums == SIM_SUM_EXACT || !(near_by || at_the_end)) differs(p, at, expected);
    }
}

static void check_integer(const problem *p, bool a_signed, bool b_signed, bool clamp) {
    const amd_matrix *m = p->s.matrix;
    EACH_OUTPUT(m) {
        int64_t sum = p->constant ? 1 : (int32_t)p->c[at];
        for (uint32_t k = 0; k < m->k; k++)
            sum += amdgcn_integer((amd_matrix_type)m->a, a_signed, p->a[(block * m->rows + i) * m->k + k]) *
                   amdgcn_integer((amd_matrix_type)m->b, b_signed, p->b[(block * m->rows + j) * m->k + k]);
        if (clamp && sum > INT32_MAX) sum = INT32_MAX;
        if (clamp && sum < INT32_MIN) sum = INT32_MIN;
        if (p->d[at] != (uint32_t)sum) differs(p, at, (uint32_t)sum);
    }
}

static void random_matrices(const shape *s) {
    enum { TRIES = 6 };
    static problem p;
    memset(&p, 0, sizeof p);
    p.s = *s;
    amd_program *program = problem_load(&p);
    for (int i = 0; i < TRIES; i++) {
        problem_draw(&p);
        p.sums = (sim_sum_mode)(i % SIM_SUM_MODES);
        problem_run(&p, program);
        if (amdgcn_is_integer((amd_matrix_type)s->matrix->d))
            check_integer(&p, false, false, false);
        else
            check_real(&p);
    }
    amd_program_free(program);
}

static void test_random_matrices(void **state) {
    (void)state;
    each_shape(random_matrices);
    assert_int_equal(inexact[SIM_SUM_EXACT], 0);
    assert_true(inexact[SIM_SUM_SEQUENTIAL] > 1000 && inexact[SIM_SUM_TRUNCATING] > inexact[SIM_SUM_SEQUENTIAL]);
}

/* ---- Modifiers ---- */

/* The shape of a mnemonic on a target. */
static shape shape_of(const char *mnemonic, const char *processor, bool wave64) {
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

/* Runs a problem with modifiers, which change what it is about as change says, and compares with the changed problem
 * without them. */
static void with_modifiers(const shape *s, const char *modifiers, void (*change)(problem *p, uint32_t n), uint32_t n) {
    static problem p, q;
    memset(&p, 0, sizeof p);
    p.s = *s;
    p.modifiers = modifiers;
    amd_program *program = problem_load(&p);
    problem_draw(&p);
    problem_run(&p, program);
    amd_program_free(program);
    q = p;
    q.modifiers = NULL;
    change(&q, n);
    program = problem_load(&q);
    problem_run(&q, program);
    amd_program_free(program);
    EACH_OUTPUT(s->matrix) {
        if (p.d[at] != q.d[at]) differs(&p, at, q.d[at]);
    }
}

/* Block n & 15 of A stands for all of each 2^(n >> 4). */
static void change_cbsz(problem *p, uint32_t n) {
    uint32_t cbsz = n >> 4, abid = n & 15, size = (uint32_t)p->s.matrix->rows * p->s.matrix->k;
    static uint64_t a[INPUTS];
    memcpy(a, p->a, sizeof a);
    EACH_INPUT(p->s.matrix) p->a[at] = a[((block >> cbsz << cbsz) + abid) * size + at % size];
}

/* The lanes of B, as the instruction set's documents number the patterns. */
static void change_blgp(problem *p, uint32_t n) {
    static uint64_t lanes[AMD_LANES][AMD_COORDINATE_MAX];
    EACH_INPUT(p->s.matrix) {
        place q = second_input(&p->s, block, i, k);
        lanes[q.lane][q.element] = p->b[at];
    }
    EACH_INPUT(p->s.matrix) {
        place q = second_input(&p->s, block, i, k);
        static const int first[] = {0, 0, 32, 0, 0, 16, 32, 48}, count[] = {64, 32, 32, 64, 16, 16, 16, 16};
        uint32_t from = n == 3 ? (q.lane + 16) % 64 : (uint32_t)first[n] + q.lane % (uint32_t)count[n];
        p->b[at] = lanes[from][q.element];
    }
}

static void test_broadcasts(void **state) {
    (void)state;
    static const struct {
        const char *mnemonic, *processor;
    } cases[] = {{"v_mfma_f32_4x4x4f16", "gfx90a"},        {"v_mfma_f32_16x16x4_4b_f16", "gfx942"},
                 {"v_mfma_i32_32x32x4_2b_i8", "gfx942"},   {"v_mfma_f32_32x32x2f32", "gfx90a"},
                 {"v_mfma_f32_16x16x16bf16_1k", "gfx90a"}, {"v_mfma_f32_4x4x1_16b_f32", "gfx942"}};
    char modifiers[64];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        shape s = shape_of(cases[i].mnemonic, cases[i].processor, true);
        for (uint32_t blgp = 1; blgp < 8; blgp++) {
            snprintf(modifiers, sizeof modifiers, "blgp:%u", blgp);
            with_modifiers(&s, modifiers, change_blgp, blgp);
        }
        for (uint32_t cbsz = 1; 1u << cbsz <= s.matrix->blocks; cbsz++) {
            for (uint32_t abid = 0; abid < 1u << cbsz; abid += 1 + cbsz / 3) {
                snprintf(modifiers, sizeof modifiers, "cbsz:%u%s", cbsz, "");
                if (abid) snprintf(modifiers, sizeof modifiers, "cbsz:%u abid:%u", cbsz, abid);
                with_modifiers(&s, modifiers, change_cbsz, cbsz << 4 | abid);
            }
        }
    }
}

/* Bits 0 to 2 of n: A, B and C get another sign; for 16 bits that is neg_lo of even elements, and bits 4 and 5 of odd
 * ones. Bit 6: C loses its sign, before. */
static void change_signs(problem *p, uint32_t n) {
    const shape *s = &p->s;
    EACH_INPUT(s->matrix) {
        bool odd = s->a_bits == 16 && (second_input(s, block, i, k).element & 1);
        uint32_t mask = odd ? n >> 4 : n;
        p->a[at] ^= (uint64_t)(mask & 1) << (s->a_bits - 1);
        p->b[at] ^= (uint64_t)(mask >> 1 & 1) << (s->b_bits - 1);
    }
    EACH_OUTPUT(s->matrix) {
        uint64_t sign = 1ull << (s->d_bits - 1);
        if (n >> 6 & 1) p->c[at] &= ~sign;
        if (n >> 2 & 1) p->c[at] ^= sign;
    }
}

static void test_negations(void **state) {
    (void)state;
    shape s = shape_of("v_mfma_f64_16x16x4_f64", "gfx942", true);
    with_modifiers(&s, "neg:[1,0,0]", change_signs, 1);
    with_modifiers(&s, "neg:[0,1,1]", change_signs, 6);
    static const char *const floats[] = {"v_wmma_f32_16x16x16_f16", "v_wmma_f32_16x16x16_bf16",
                                         "v_wmma_f16_16x16x16_f16", "v_wmma_bf16_16x16x16_bf16"};
    for (size_t i = 0; i < 4; i++) {
        for (int target = 0; target < 4; target++) {
            s = shape_of(floats[i], target & 1 ? "gfx1201" : "gfx1100", target & 2);
            with_modifiers(&s, "neg_lo:[1,0,0]", change_signs, 1);
            with_modifiers(&s, "neg_lo:[0,1,1] neg_hi:[1,0,0]", change_signs, 6 | 1 << 4);
            with_modifiers(&s, "neg_lo:[0,0,1] neg_hi:[0,1,1]", change_signs, 4 | 2 << 4 | 1 << 6);
        }
    }
    s = shape_of("v_wmma_f32_16x16x16_fp8_bf8", "gfx1201", false);
    with_modifiers(&s, "neg_lo:[0,0,1]", change_signs, 4);
    with_modifiers(&s, "neg_hi:[0,0,1]", change_signs, 1 << 6);
}

/* Integers of both signs, with and without saturation; C near the ends, so that there is something to saturate. */
static void test_integers(void **state) {
    (void)state;
    static const char *const mnemonics[] = {"v_wmma_i32_16x16x16_iu8", "v_wmma_i32_16x16x16_iu4",
                                            "v_wmma_i32_16x16x32_iu4"};
    static problem p;
    char modifiers[64];
    for (int n = 0; n < 3 * 4 * 8; n++) {
        bool a = n & 1, b = n & 2, clamp = n & 4, wave64 = n & 8, gfx12 = n & 16;
        const char *mnemonic = mnemonics[n / 32];
        if (n / 32 == 2 && !gfx12) continue;
        memset(&p, 0, sizeof p);
        p.s = shape_of(mnemonic, gfx12 ? "gfx1201" : "gfx1100", wave64);
        int length = snprintf(modifiers, sizeof modifiers, "neg_lo:[%d,%d,0]", a, b);
        if (!a && !b) length = 0;
        snprintf(modifiers + length, sizeof modifiers - (size_t)length, "%s", clamp ? " clamp" : "");
        if (a || b || clamp) p.modifiers = modifiers;
        amd_program *program = problem_load(&p);
        problem_draw(&p);
        EACH_OUTPUT(p.s.matrix) if (at % 3) p.c[at] = at % 2 ? 0x7ffffff0 : 0x80000010;
        problem_run(&p, program);
        check_integer(&p, a, b, clamp);
        amd_program_free(program);
    }
}

/* gfx11: the half of C and D that op_sel names; the other stays if D is C. */
static void test_halves(void **state) {
    (void)state;
    static problem p;
    for (int n = 0; n < 4; n++) {
        memset(&p, 0, sizeof p);
        p.s = shape_of(n & 1 ? "v_wmma_bf16_16x16x16_bf16" : "v_wmma_f16_16x16x16_f16", "gfx1100", n & 2);
        p.high = true;
        p.modifiers = "op_sel:[0,0,1]";
        amd_program *program = problem_load(&p);
        problem_draw(&p);
        problem_run(&p, program);
        check_real(&p);
        amd_program_free(program);
    }
    amd_program *program =
        amdgcn_load("gfx1100", false, "v_wmma_f16_16x16x16_f16 v[0:7], v[8:15], v[16:23], v[0:7] op_sel:[0,0,1]");
    amdgcn_registers_fill(&before, program, &random_state);
    for (uint32_t r = 8; r < 24; r++)
        memcpy(&before.v[r][16], &before.v[r][0], 16 * sizeof(uint32_t));
    registers = before;
    amdgcn_run(program, NULL, &registers);
    for (uint32_t r = 0; r < 8; r++)
        for (uint32_t l = 0; l < 32; l++)
            assert_int_equal(registers.v[r][l] & 0xffff, before.v[r][l] & 0xffff);
    amd_program_free(program);
}

/* Accumulation registers, and C as a constant. */
static void test_operands(void **state) {
    (void)state;
    static const struct {
        const char *mnemonic, *processor;
    } cases[] = {{"v_mfma_f32_32x32x8f16", "gfx90a"},       {"v_mfma_f64_16x16x4f64", "gfx90a"},
                 {"v_mfma_i32_16x16x32_i8", "gfx942"},      {"v_mfma_f32_32x32x1_2b_f32", "gfx942"},
                 {"v_mfma_f32_16x16x32_fp8_bf8", "gfx942"}, {"v_wmma_f32_16x16x16_f16", "gfx1100"},
                 {"v_wmma_f16_16x16x16_f16", "gfx1201"},    {"v_wmma_i32_16x16x16_iu8", "gfx1201"}};
    static problem p;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool mfma = strstr(cases[i].mnemonic, "mfma") != NULL;
        for (int n = 0; n < 4; n++) {
            memset(&p, 0, sizeof p);
            p.s = shape_of(cases[i].mnemonic, cases[i].processor, mfma);
            p.accumulators = n & 1;
            p.constant = n & 2;
            if (p.accumulators && !mfma) continue;
            amd_program *program = problem_load(&p);
            problem_draw(&p);
            problem_run(&p, program);
            if (amdgcn_is_integer((amd_matrix_type)p.s.matrix->d))
                check_integer(&p, false, false, false);
            else
                check_real(&p);
            amd_program_free(program);
        }
    }
}

/* ---- Special values ---- */

static uint32_t corner_mode = AMDGCN_MODE; /* MODE */

/* The first row of A and column of B are given, the rest is 1. Returns D[0][0]. */
static uint64_t corner(const shape *s, sim_sum_mode sums, double c, uint64_t a0, uint64_t b0, uint64_t a1,
                       uint64_t b1) {
    static problem p;
    const amd_matrix *m = s->matrix;
    memset(&p, 0, sizeof p);
    p.s = *s;
    p.sums = sums;
    amd_program *program = problem_load(&p);
    p.a[0] = a0, p.a[1] = a1, p.b[0] = b0, p.b[1] = b1;
    float narrow = (float)c;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    if (m->d == AMD_MATRIX_f32) p.c[0] = bits;
    before.mode = corner_mode;
    problem_run(&p, program);
    amd_program_free(program);
    return p.d[0];
}

static void test_special_values(void **state) {
    (void)state;
    const uint64_t infinity = 0x7c00, nan = 0x7c01, one = 0x3c00, minus = 0xbc00;
    for (int n = 0; n < SIM_SUM_MODES * 3; n++) {
        sim_sum_mode sums = (sim_sum_mode)(n % SIM_SUM_MODES);
        shape s = n / 3 == 0   ? shape_of("v_mfma_f32_16x16x16_f16", "gfx942", true)
                  : n / 3 == 1 ? shape_of("v_wmma_f32_16x16x16_f16", "gfx1100", false)
                               : shape_of("v_wmma_f32_16x16x16_f16", "gfx1201", true);
        assert_int_equal(corner(&s, sums, 0, infinity, one, 0, 0), 0x7f800000);
        assert_int_equal(corner(&s, sums, 0, infinity, minus, one, one), 0xff800000);
        assert_int_equal(corner(&s, sums, 0, infinity, one, infinity, minus), 0x7fc00000);
        assert_int_equal(corner(&s, sums, 0, infinity, 0, one, one), 0x7fc00000);
        assert_int_equal(corner(&s, sums, 0, nan, one, one, one), 0x7fc00000);
        assert_int_equal(corner(&s, sums, NAN, one, one, one, one), 0x7fc00000);
        assert_int_equal(corner(&s, sums, -INFINITY, infinity, one, 0, 0), 0x7fc00000);
        assert_int_equal(corner(&s, sums, FLT_MAX, 0x7bff, 0x7bff, 0x7bff, 0x7bff), 0x7f7fffff);
        /* Subnormal f16: 2^-24 * 1. */
        assert_int_equal(corner(&s, sums, 0, 1, one, 0, 0), 0x33800000);
        assert_int_equal(corner(&s, sums, -1, one, one, 0, 0), 0);
    }
    /* gfx90a makes zeros of subnormal numbers of f16 and bf16, but not of f32. */
    shape s = shape_of("v_mfma_f32_16x16x16f16", "gfx90a", true);
    assert_int_equal(corner(&s, SIM_SUM_EXACT, 0, 0x3ff, one, one, one), 0x3f800000);
    assert_int_equal(corner(&s, SIM_SUM_EXACT, 0x1p-130, 0x3ff, one, 0, 0), 0);
    s = shape_of("v_mfma_f32_16x16x16bf16_1k", "gfx90a", true);
    assert_int_equal(corner(&s, SIM_SUM_EXACT, 0, 0x1, 0x7f00, 0, 0), 0);
    assert_int_equal(corner(&s, SIM_SUM_EXACT, 0, 0x80, 0x3f00, 0, 0), 0); /* 2^-127 */
    s = shape_of("v_mfma_f32_16x16x16_bf16", "gfx942", true);
    assert_int_equal(corner(&s, SIM_SUM_EXACT, 0, 0x80, 0x3f00, 0, 0), 0x00400000);
    s = shape_of("v_mfma_f32_16x16x4f32", "gfx90a", true);
    assert_int_equal(corner(&s, SIM_SUM_EXACT, 0x1p-140, 0x00800000, 0x3f000000, 0, 0), 0x00400200);
    /* WMMA goes by MODE: bits 4 and 5 keep those of f32, in and out, 6 and 7 those of f16. */
    s = shape_of("v_wmma_f32_16x16x16_f16", "gfx1100", false);
    corner_mode = AMDGCN_MODE & ~0x40u;
    assert_int_equal(corner(&s, SIM_SUM_EXACT, 0, 0x83ff, one, one, one), 0x3f800000);
    corner_mode = AMDGCN_MODE & ~0x10u;
    assert_int_equal(corner(&s, SIM_SUM_EXACT, 0x1p-130, 0, one, 0, 0), 0);
    corner_mode = AMDGCN_MODE & ~0x20u;
    assert_int_equal(corner(&s, SIM_SUM_EXACT, -0x1p-130, 0, one, 0, 0), 0x80000000);
    s = shape_of("v_wmma_f16_16x16x16_f16", "gfx1201", false);
    assert_int_equal(corner(&s, SIM_SUM_EXACT, 0, 0x0800, 0x3400, 0, 0), 0x0200);
    corner_mode = AMDGCN_MODE & ~0x80u;
    assert_int_equal(corner(&s, SIM_SUM_EXACT, 0, 0x0800, 0x3400, 0, 0), 0);
    corner_mode = AMDGCN_MODE;
    /* fp8: NaN of FNUZ is where -0 would be, of OCP all ones; e5m2 has infinities only in OCP's form. */
    s = shape_of("v_mfma_f32_16x16x32_fp8_bf8", "gfx942", true);
    assert_int_equal(corner(&s, SIM_SUM_EXACT, 0, 0x80, 0x40, 0, 0), 0x7fc00000);
    assert_int_equal(corner(&s, SIM_SUM_EXACT, 0, 0x40, 0x80, 0, 0), 0x7fc00000);
    assert_int_equal(corner(&s, SIM_SUM_EXACT, 0, 0x7f, 0x40, 0, 0), 0x43700000); /* 240 */
    assert_int_equal(corner(&s, SIM_SUM_EXACT, 0, 0x40, 0x7f, 0, 0), 0x47600000); /* 57344 */
    s = shape_of("v_wmma_f32_16x16x16_fp8_bf8", "gfx1201", false);
    assert_int_equal(corner(&s, SIM_SUM_EXACT, 0, 0x7f, 0x3c, 0, 0), 0x7fc00000);
    assert_int_equal(corner(&s, SIM_SUM_EXACT, 0, 0x7e, 0x3c, 0, 0), 0x43e00000); /* 448 */
    assert_int_equal(corner(&s, SIM_SUM_EXACT, 0, 0x38, 0x7c, 0, 0), 0x7f800000);
    assert_int_equal(corner(&s, SIM_SUM_EXACT, 0, 0x38, 0x7b, 0, 0), 0x47600000);
}

/* ---- What is refused, and what is a fault ---- */

static void test_refusals(void **state) {
    (void)state;
    static const struct {
        const char *processor;
        bool wave64;
        const char *text, *says;
    } bad[] = {
        {"gfx942", true, "v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], v[0:3] cbsz:1", "cbsz and abid"},
        {"gfx942", true, "v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], v[0:3] blgp:1", "blgp"},
        {"gfx942", true, "v_mfma_f32_16x16x4_4b_f16 v[0:15], v[20:21], v[22:23], v[0:15] cbsz:3", "more blocks"},
        {"gfx942", true, "v_mfma_f32_16x16x4_4b_f16 v[0:15], v[20:21], v[22:23], v[0:15] cbsz:1 abid:2", "abid"},
        {"gfx90a", true, "v_mfma_f64_4x4x4f64 v[0:1], v[2:3], v[4:5], v[0:1] blgp:1", "blgp"},
        {"gfx942", true, "v_mfma_f32_32x32x8_f16 v[0:15], v[4:5], v[16:17], 0", "overlaps A or B"},
        {"gfx942", true, "v_smfmac_f32_16x16x32_f16 v[0:3], v[4:5], v[6:9], v10", "v_smfmac_f32_16x16x32_f16"},
        {"gfx1100", false, "v_wmma_f32_16x16x16_f16 v[0:7], v[0:7], v[16:23], v[24:31]", "overlaps A or B"},
        {"gfx1100", false, "v_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[16:23], v[1:8]", "a part of C"},
        {"gfx1100", false, "v_wmma_bf16_16x16x16_bf16 v[0:7], v[8:15], v[16:23], 1.0", "a bf16 constant"},
        {"gfx1201", false, "v_swmmac_f32_16x16x32_f16 v[0:7], v[8:11], v[12:19], v20", "v_swmmac_f32_16x16x32_f16"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *why = amdgcn_refusal(bad[i].processor, bad[i].wave64, bad[i].text);
        if (!strstr(why, bad[i].says)) fail_msg("%s: refused with \"%s\"", bad[i].text, why);
    }
    /* What a target does not have its assembler does not take. */
    static const struct {
        const char *processor, *text;
    } absent[] = {{"gfx90a", "v_mfma_f32_16x16x8_xf32 v[0:3], v[4:5], v[6:7], v[0:3]"},
                  {"gfx90a", "v_mfma_f32_16x16x32_fp8_fp8 v[0:3], v[4:5], v[6:7], v[0:3]"},
                  {"gfx906", "v_mfma_f32_4x4x1f32 a[0:3], v4, v5, a[0:3]"},
                  {"gfx942", "v_mfma_f32_16x16x8bf16 v[0:3], v4, v5, v[0:3]"},
                  {"gfx942", "v_mfma_f32_16x16x16_f16 v[1:4], v[6:7], v[8:9], v[0:3]"},
                  {"gfx1030", "v_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[16:23], v[24:31]"},
                  {"gfx1100", "v_wmma_f32_16x16x16_fp8_fp8 v[0:7], v[8:9], v[10:11], v[12:19]"}};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
        char why[512];
        size_t size;
        if (amdgcn_assemble(absent[i].processor, true, absent[i].text, &size, why, sizeof why))
            fail_msg("%s: %s: assembled", absent[i].processor, absent[i].text);
    }
}

/* An odd first register, which the assembler does not write: in the field of the operand, of D or A. */
static void test_odd_registers(void **state) {
    (void)state;
    const amd_kernel kernel = {.name = "test"};
    for (int byte = 0; byte <= 4; byte += 4) {
        char why[512] = "";
        size_t size;
        uint8_t *code = amdgcn_assemble("gfx942", true, "v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], 0\ns_endpgm",
                                        &size, why, sizeof why);
        assert_non_null(code);
        code[byte] |= 1;
        assert_null(amd_program_of_code(code, size, "gfx942", &kernel, why, sizeof why));
        if (!strstr(why, "even")) fail_msg("refused with \"%s\"", why);
        free(code);
    }
}

static void test_counter(void **state) {
    (void)state;
    static const char *const text = "v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], v[0:3]\n"
                                    "v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], v[0:3]";
    amd_program *program = amdgcn_load("gfx942", true, text);
    const amd_launch launch = {.program = program,
                               .kernel = &program->kernels[0],
                               .grid = {512, 1, 1},
                               .group = {128, 1, 1},
                               .budget = 1000,
                               .threads = 1};
    sim_counters counters = {0};
    sim_report report;
    assert_true(amd_launch_run(&launch, &counters, &report));
    assert_int_equal(counters.matrix_instructions, 2 * 512 / 64);
    amd_program_free(program);
}

static void faults(const char *processor, const char *text, uint64_t exec, bool replicas, const char *says) {
    sim_report report;
    amd_program *program = amdgcn_load(processor, processor[3] == '9', text);
    amdgcn_registers_fill(&registers, program, &random_state);
    registers.s[AMD_EXEC] = (uint32_t)exec;
    registers.s[AMD_EXEC + 1] = (uint32_t)(exec >> 32);
    for (uint32_t r = 8; replicas && r < 24; r++)
        memcpy(&registers.v[r][16], &registers.v[r][0], 16 * sizeof(uint32_t));
    registers.v[23][31] ^= 1;
    assert_false(amdgcn_try(program, NULL, &registers, &report));
    assert_int_equal(report.kind, SIM_FAULT_ILLEGAL);
    if (!strstr(report.text, says)) fail_msg("\"%s\" does not say \"%s\"", report.text, says);
    amd_program_free(program);
}

static void test_faults(void **state) {
    (void)state;
    static const char *const wmma = "v_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[16:23], v[0:7]";
    faults("gfx942", "v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], v[0:3]", ~1ull, false, "lanes are off");
    faults("gfx1100", wmma, 0xffff, true, "lanes are off");
    faults("gfx1100", wmma, 0xffffffff, true, "B differs from lane 15");
    faults("gfx1100", wmma, 0xffffffff, false, "A differs from lane 0");
}

int main(void) {
    const char *text = getenv("KILN_TEST_SEED");
    random_state = text ? strtoull(text, NULL, 0) : 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layouts),    cmocka_unit_test(test_one_hot),   cmocka_unit_test(test_random_matrices),
        cmocka_unit_test(test_broadcasts), cmocka_unit_test(test_negations), cmocka_unit_test(test_integers),
        cmocka_unit_test(test_halves),     cmocka_unit_test(test_operands),  cmocka_unit_test(test_special_values),
        cmocka_unit_test(test_refusals),   cmocka_unit_test(test_faults),    cmocka_unit_test(test_odd_registers),
        cmocka_unit_test(test_counter),
    };
    if (!amdgcn_harness_ready()) return 0;
    print_message("# seed %llu (KILN_TEST_SEED sets it)\n", (unsigned long long)random_state);
    return cmocka_run_group_tests_name("amdgcn_matrix", tests, NULL, NULL);
}
