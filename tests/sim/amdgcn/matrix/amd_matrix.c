/* Matrix instructions at work: A and B gathered into rows and columns, each element of the result a sum of products,
 * and the result put where its layout says. */
#include "tests/sim/amdgcn/matrix/amd_matrix.h"
#include "tests/sim/amdgcn/alu/amd_float.h"
#include "tests/sim/core/sim_sum.h"
#include <math.h>
#include <string.h>

enum { INPUTS_MAX = 512, OUTPUTS_MAX = 2048, A = 1, B = 2, C = 3 }; /* and the operands' numbers */

/* Elements of A by (block, row, k) and of B by (block, column, k). */
typedef struct inputs {
    double real[INPUTS_MAX];
    sim_span spans[INPUTS_MAX]; /* of each row or column of real */
    int32_t whole[INPUTS_MAX];
} inputs;

typedef struct work {
    amd_wave *wave;
    const amd_op *op;
    const amd_matrix *matrix;
    amd_variant variant;
    uint32_t denormals; /* MODE's bits on them, or what the instruction has in their place */
    sim_sum_mode mode;
    inputs a, b;
} work;

/* ---- Registers ---- */

/* An element of an operand in a lane: bits wide, the number-th of those in its registers. */
static uint64_t element_read(const amd_wave *wave, const amd_operand *operand, uint32_t lane, uint32_t number,
                             uint32_t bits) {
    const uint32_t(*registers)[AMD_LANES] = (const uint32_t(*)[AMD_LANES]) & wave->v[operand->index];
    if (bits == 64) return registers[number * 2][lane] | (uint64_t)registers[number * 2 + 1][lane] << 32;
    uint32_t position = number * bits, word = registers[position / 32][lane];
    return bits == 32 ? word : word >> position % 32 & ((1u << bits) - 1);
}

static void element_write(amd_wave *wave, const amd_operand *operand, uint32_t lane, uint32_t number, uint32_t bits,
                          uint64_t value) {
    uint32_t(*registers)[AMD_LANES] = &wave->v[operand->index];
    if (bits == 64) {
        registers[number * 2][lane] = (uint32_t)value;
        registers[number * 2 + 1][lane] = (uint32_t)(value >> 32);
        return;
    }
    uint32_t position = number * bits, *word = &registers[position / 32][lane];
    uint32_t field = (bits == 32 ? ~0u : (1u << bits) - 1) << position % 32;
    *word = (*word & ~field) | ((uint32_t)value << position % 32 & field);
}

/* ---- Values ---- */

static double double_of(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint64_t bits_of(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* A subnormal becomes a zero of its sign, unless the mode's bit says that it is kept. Those of 8 bits always are. */
static double flush(uint32_t mode, uint32_t kept_16, uint32_t kept_32, amd_matrix_type type, double value) {
    bool half = type == AMD_MATRIX_f16, subject = half || type == AMD_MATRIX_bf16 || type == AMD_MATRIX_f32;
    if (!subject || (mode & (half ? kept_16 : kept_32))) return value;
    return fabs(value) < (half ? 0x1p-14 : 0x1p-126) ? copysign(0, value) : value;
}

static double flush_input(const work *w, amd_matrix_type type, double value) {
    return flush(w->denormals, 1 << AMD_MODE_DENORMAL_64, 1 << AMD_MODE_DENORMAL_32, type, value);
}

static double flush_result(const work *w, amd_matrix_type type, double value) {
    return flush(w->denormals, 2 << AMD_MODE_DENORMAL_64, 2 << AMD_MODE_DENORMAL_32, type, value);
}

/* How an f32 becomes an xf32 is not documented: it depends on the mode as the sum does. */
static double to_xf32(const work *w, double value) {
    sim_rounding rounding = w->mode == SIM_SUM_TRUNCATING ? SIM_ROUND_ZERO : SIM_ROUND_NEAREST_EVEN;
    return sim_decode(SIM_tf32, sim_encode(SIM_tf32, value, rounding, false));
}

static double real_of(const work *w, amd_matrix_type type, uint64_t bits) {
    if (type == AMD_MATRIX_f64) return double_of(bits);
    if (type == AMD_MATRIX_xf32) return to_xf32(w, sim_decode(SIM_f32, (uint32_t)bits));
    return flush_input(w, type, sim_decode((sim_format)amd_matrix_types[type].format, (uint32_t)bits));
}

static int32_t whole_of(uint64_t bits, uint32_t width, bool is_signed) {
    uint32_t shift = 32 - width;
    return is_signed ? (int32_t)((uint32_t)bits << shift) >> shift : (int32_t)bits;
}

/* ---- Inputs ---- */

/* The lane of B from which a lane takes its data. 1, 2: a half for both; 3: the next quarter; 4 to 7: a quarter for
 * all. */
static uint32_t blgp_lane(uint32_t blgp, uint32_t lane) {
    if (blgp == 0) return lane;
    if (blgp <= 2) return (blgp - 1) * 32 + lane % 32;
    if (blgp == 3) return (lane + 16) % 64;
    return (blgp - 4) * 16 + lane % 16;
}

/* Lanes that hold the same element must agree. */
static bool replicas_check(const work *w, uint32_t number, const amd_places *places, uint32_t registers) {
    const amd_operand *operand = &w->op->operand[number];
    for (uint32_t lane = 0; places->same && lane < w->wave->lanes; lane++) {
        uint32_t first = lane & ~(uint32_t)places->same;
        for (uint32_t i = 0; i < registers; i++) {
            if (w->wave->v[operand->index + i][lane] == w->wave->v[operand->index + i][first]) continue;
            amd_fault(w->wave, w->op, SIM_FAULT_ILLEGAL, lane, w->op->address,
                      "%c differs from lane %u, which must hold the same", number == A ? 'A' : 'B', first);
            return false;
        }
    }
    return true;
}

static bool inputs_gather(const work *w, uint32_t number, inputs *to) {
    const amd_matrix *m = w->matrix;
    const amd_op *op = w->op;
    amd_matrix_type type = (amd_matrix_type)(number == A ? m->a : m->b);
    const amd_matrix_type_facts *facts = &amd_matrix_types[type];
    amd_places places;
    amd_places_of((amd_layout)m->in[w->variant], &places);
    if (!replicas_check(w, number, &places, amd_matrix_input_registers(m, w->variant, type))) return false;
    uint32_t selected = number - A, spanned = (1u << op->cbsz) - 1, at = 0;
    bool is_signed = facts->kind == AMD_MATRIX_SIGNED || (op->neg_lo >> selected & 1);
    bool negates[2] = {op->neg_lo >> selected & 1, op->neg_hi >> selected & 1}; /* even and odd elements */
    if (type == AMD_MATRIX_f64) negates[1] = negates[0];
    for (uint32_t block = 0; block < m->blocks; block++) {
        uint32_t from = number == A ? (block & ~spanned) + op->abid : block;
        for (uint32_t i = 0; i < m->rows; i++) {
            for (uint32_t k = 0; k < m->k; k++, at++) {
                uint32_t lane = (uint32_t)places.lane[0][i] | places.lane[1][k] | places.lane[2][from];
                uint32_t element = (uint32_t)places.element[0][i] | places.element[1][k] | places.element[2][from];
                if (number == B) lane = blgp_lane(op->blgp, lane);
                uint64_t bits = element_read(w->wave, &op->operand[number], lane, element, facts->bits);
                if (facts->kind == AMD_MATRIX_SIGNED || facts->kind == AMD_MATRIX_UNSIGNED) {
                    to->whole[at] = whole_of(bits, facts->bits, is_signed);
                } else {
                    double value = real_of(w, type, bits);
                    to->real[at] = negates[element & 1] ? -value : value;
                }
            }
            if (w->mode == SIM_SUM_EXACT) to->spans[at / m->k - 1] = sim_span_of(&to->real[at - m->k], (int)m->k);
        }
    }
    return true;
}

/* ---- Results ---- */

static uint64_t sum_whole(const work *w, uint64_t addend, uint32_t row, uint32_t column) {
    int64_t sum = (int32_t)addend;
    for (uint32_t k = 0; k < w->matrix->k; k++)
        sum += (int64_t)w->a.whole[row + k] * w->b.whole[column + k];
    if (w->op->clamp) sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
    return (uint32_t)sum;
}

/* neg_hi of C is its absolute value, which comes first. */
static double addend_modify(const work *w, double addend) {
    if (w->op->neg_hi >> (C - A) & 1) addend = fabs(addend);
    return w->op->neg_lo >> (C - A) & 1 ? -addend : addend;
}

/* What sum() makes where D is f32 and sums are exact, as in most. */
static uint32_t sum_single(const work *w, uint32_t addend, uint32_t row, uint32_t column) {
    const uint32_t k = w->matrix->k;
    const bool keeps = w->denormals & 2 << AMD_MODE_DENORMAL_32;
    const double value = addend_modify(w, flush_input(w, AMD_MATRIX_f32, sim_decode(SIM_f32, addend)));
    const uint32_t bits = sim_sum_spanned(SIM_f32, value, &w->a.real[row], &w->b.real[column], (int)k,
                                          w->a.spans[row / k], w->b.spans[column / k]);
    const bool zero = bits << 1 == 0 || (!(bits & 0x7f800000) && !keeps);
    return zero ? bits & 1u << 31 : bits;
}

/* One element of the result: addend and result as bits of D's type; row and column are indices of the inputs. */
static uint64_t sum(const work *w, uint64_t addend, uint32_t row, uint32_t column) {
    amd_matrix_type type = (amd_matrix_type)w->matrix->d;
    if (type == AMD_MATRIX_i32) return sum_whole(w, addend, row, column);
    if (type == AMD_MATRIX_f32 && w->mode == SIM_SUM_EXACT) return sum_single(w, (uint32_t)addend, row, column);
    const double *a = &w->a.real[row], *b = &w->b.real[column];
    double value = addend_modify(w, real_of(w, type, addend));
    if (type == AMD_MATRIX_f64) return bits_of(sim_sum_f64(w->mode, value, a, b, w->matrix->k));
    sim_format format = (sim_format)amd_matrix_types[type].format;
    const int k = (int)w->matrix->k;
    uint32_t bits = w->mode == SIM_SUM_EXACT ? sim_sum_spanned(format, value, a, b, k, w->a.spans[row / w->matrix->k],
                                                               w->b.spans[column / w->matrix->k])
                                             : sim_sum(w->mode, format, value, a, b, k);
    bool zero = flush_result(w, type, sim_decode(format, bits)) == 0;
    return zero ? bits & 1u << (amd_matrix_types[type].bits - 1) : bits;
}

/* What the other halves of D hold is not documented unless D is C. */
static void halves_poison(const work *w) {
    const amd_operand *d = &w->op->operand[0], *addend = &w->op->operand[C];
    if (addend->kind == AMD_OPERAND_VECTOR && addend->index == d->index) return;
    for (uint32_t i = 0; i < d->count; i++)
        memset(w->wave->v[d->index + i], 0xb5, w->wave->lanes * sizeof(uint32_t));
}

static uint64_t constant_of(const amd_operand *operand, uint32_t bits) {
    return bits == 64 ? operand->value : bits == 32 ? operand->value_32 : operand->value_16;
}

/* Where the elements of D are, by (block, row, column). */
typedef struct targets {
    uint32_t count;
    uint8_t lane[OUTPUTS_MAX], element[OUTPUTS_MAX];
} targets;

static void targets_find(const work *w, targets *to) {
    const amd_matrix *m = w->matrix;
    bool halves = amd_matrix_halves(m, w->variant);
    uint32_t scale = halves ? 2 : 1, offset = halves && (w->op->op_sel & 4) ? 1 : 0, n = 0;
    amd_places places;
    amd_places_of((amd_layout)m->out[w->variant], &places);
    for (uint32_t block = 0; block < m->blocks; block++) {
        for (uint32_t row = 0; row < m->rows; row++) {
            for (uint32_t column = 0; column < m->rows; column++, n++) {
                uint32_t element =
                    (uint32_t)places.element[0][row] | places.element[1][column] | places.element[2][block];
                to->lane[n] = (uint8_t)(places.lane[0][row] | places.lane[1][column] | places.lane[2][block]);
                to->element[n] = (uint8_t)(element * scale + offset);
            }
        }
    }
    to->count = n;
}

static void results_make(const work *w, const targets *to, uint64_t *results) {
    const amd_matrix *m = w->matrix;
    const amd_operand *d = &w->op->operand[0], *addend = &w->op->operand[C];
    const uint32_t bits = amd_matrix_types[m->d].bits, rows = m->rows;
    for (uint32_t n = 0; n < to->count; n++) {
        uint32_t line = n / rows, first = line / rows * rows; /* of A, and of its block's in B */
        uint64_t before = addend->kind == AMD_OPERAND_CONSTANT
                              ? constant_of(addend, bits)
                              : element_read(w->wave, addend, to->lane[n], to->element[n], bits);
        results[n] = sum(w, before, line * m->k, (first + n % rows) * m->k);
    }
    if (amd_matrix_halves(m, w->variant)) halves_poison(w);
    for (uint32_t n = 0; n < to->count; n++)
        element_write(w->wave, d, to->lane[n], to->element[n], bits, results[n]);
}

/* WMMA goes by MODE. MFMA keeps all, but for those of f16 and bf16 on gfx90a, which keep none. */
static uint32_t denormals_of(const work *w) {
    bool narrow = w->matrix->a == AMD_MATRIX_f16 || w->matrix->a == AMD_MATRIX_bf16;
    if (w->variant != AMD_VARIANT_9) return w->wave->mode;
    return narrow && w->wave->program->target->version == 0x90a ? 0 : ~0u;
}

/* What an instruction works with: too much for a stack. */
typedef struct store {
    work work;
    targets to;
    uint64_t results[OUTPUTS_MAX];
} store;

/* A thread's own. Looked for once for each instruction: it is a call, which compilers repeat where they can. */
static __attribute__((noinline)) store *own_store(void) {
    static _Thread_local store own;
    return &own;
}

void amd_run_matrix(amd_wave *wave, const amd_op *op) {
    const amd_launch *launch = wave->group->launch;
    store *const own = own_store();
    work *const w = &own->work;
    w->wave = wave;
    w->op = op;
    w->matrix = &amd_matrices[op->mode];
    w->variant = amd_variant_of(wave->program->target, wave->lanes == 32);
    w->denormals = denormals_of(w);
    w->mode = launch->sums;
    if (amd_exec(wave) != wave->all) {
        amd_fault(wave, op, SIM_FAULT_ILLEGAL, AMD_LANES, op->address,
                  "lanes are off, and a matrix instruction takes the data of all and writes all");
        return;
    }
    if (!inputs_gather(w, A, &w->a) || !inputs_gather(w, B, &w->b)) return;
    targets_find(w, &own->to);
    results_make(w, &own->to, own->results);
    wave->group->counters.matrix_instructions++;
}
