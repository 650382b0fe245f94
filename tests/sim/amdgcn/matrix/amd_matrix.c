/* Matrix instructions at work: A and B gathered into rows and columns, each element of the result a sum of products,
 * and the result put where its layout says. */
#include "tests/sim/amdgcn/matrix/amd_matrix.h"
#include "tests/sim/amdgcn/alu/amd_float.h"
#include "tests/sim/core/sim_row.h"
#include <math.h>
#include <string.h>

enum { INPUTS_MAX = 512, OUTPUTS_MAX = 2048, A = 1, B = 2, C = 3 }; /* and the operands' numbers */

/* Elements of A by (block, row, k) and of B by (block, column, k). */
typedef struct inputs {
    double real[INPUTS_MAX];
    sim_span spans[INPUTS_MAX]; /* of each row or column of real */
    int32_t whole[INPUTS_MAX];
} inputs;

/* Where an element stands: the word of the operand's registers, and the bit in it; of 64 bits the lower half. */
typedef struct place {
    uint16_t word;
    uint8_t bit;
    bool odd; /* its number in the lane */
} place;

/* What of an instruction decides where its elements stand. */
typedef struct form {
    uint32_t matrix, variant, cbsz, abid, blgp, high; /* matrix: the row + 1; high: of D */
} form;

/* The places of A, B and D by (block, row, k), (block, column, k) and (block, row, column). */
typedef struct places {
    form form;
    uint32_t input_count, output_count, same, registers[2]; /* same: bits of lanes that hold the same of A and of B */
    place in[2][INPUTS_MAX], out[OUTPUTS_MAX];
} places;

typedef struct work {
    amd_wave *wave;
    const amd_op *op;
    const amd_matrix *matrix;
    amd_variant variant;
    uint32_t denormals; /* MODE's bits on them, or what the instruction has in their place */
    sim_sum_mode mode;
    const places *places;
    inputs a, b;
} work;

/* ---- Registers ---- */

static const uint32_t *words_of(const amd_wave *wave, const amd_operand *operand) {
    return wave->v[operand->index];
}

static uint64_t element_read(const uint32_t *words, place at, uint32_t bits) {
    if (bits == 64) return words[at.word] | (uint64_t)words[at.word + AMD_LANES] << 32;
    return bits == 32 ? words[at.word] : words[at.word] >> at.bit & ((1u << bits) - 1);
}

static void element_write(uint32_t *words, place at, uint32_t bits, uint64_t value) {
    if (bits == 64) {
        words[at.word] = (uint32_t)value;
        words[at.word + AMD_LANES] = (uint32_t)(value >> 32);
        return;
    }
    uint32_t field = (bits == 32 ? ~0u : (1u << bits) - 1) << at.bit;
    words[at.word] = (words[at.word] & ~field) | ((uint32_t)value << at.bit & field);
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
static bool replicas_check(const work *w, uint32_t number) {
    const amd_operand *operand = &w->op->operand[number];
    const uint32_t same = w->places->same;
    for (uint32_t lane = 0; same && lane < w->wave->lanes; lane++) {
        uint32_t first = lane & ~same;
        for (uint32_t i = 0; i < w->places->registers[number - A]; i++) {
            if (w->wave->v[operand->index + i][lane] == w->wave->v[operand->index + i][first]) continue;
            amd_fault(w->wave, w->op, SIM_FAULT_ILLEGAL, lane, w->op->address,
                      "%c differs from lane %u, which must hold the same", number == A ? 'A' : 'B', first);
            return false;
        }
    }
    return true;
}

static void whole_gather(const work *w, uint32_t number, const place *from, uint32_t count, inputs *to) {
    const amd_matrix_type_facts *facts = &amd_matrix_types[number == A ? w->matrix->a : w->matrix->b];
    const bool is_signed = facts->kind == AMD_MATRIX_SIGNED || (w->op->neg_lo >> (number - A) & 1);
    const uint32_t *words = words_of(w->wave, &w->op->operand[number]);
    for (uint32_t i = 0; i < count; i++)
        to->whole[i] = whole_of(element_read(words, from[i], facts->bits), facts->bits, is_signed);
}

static void real_gather(const work *w, uint32_t number, const place *from, uint32_t count, inputs *to) {
    const amd_matrix_type type = (amd_matrix_type)(number == A ? w->matrix->a : w->matrix->b);
    const uint32_t bits = amd_matrix_types[type].bits, selected = number - A;
    const uint32_t *words = words_of(w->wave, &w->op->operand[number]);
    bool negates[2] = {w->op->neg_lo >> selected & 1, w->op->neg_hi >> selected & 1}; /* even and odd elements */
    if (type == AMD_MATRIX_f64) negates[1] = negates[0];
    for (uint32_t i = 0; i < count; i++) {
        const double value = real_of(w, type, element_read(words, from[i], bits));
        to->real[i] = negates[from[i].odd] ? -value : value;
    }
    for (uint32_t i = 0; w->mode == SIM_SUM_EXACT && i < count; i += w->matrix->k)
        to->spans[i / w->matrix->k] = sim_span_of(&to->real[i], w->matrix->k);
}

static bool inputs_gather(const work *w, uint32_t number, inputs *to) {
    const amd_matrix *m = w->matrix;
    const amd_matrix_type type = (amd_matrix_type)(number == A ? m->a : m->b);
    const uint8_t kind = amd_matrix_types[type].kind;
    const place *from = w->places->in[number - A];
    if (!replicas_check(w, number)) return false;
    if (kind == AMD_MATRIX_SIGNED || kind == AMD_MATRIX_UNSIGNED)
        whole_gather(w, number, from, w->places->input_count, to);
    else
        real_gather(w, number, from, w->places->input_count, to);
    return true;
}

/* ---- Results ---- */

static uint32_t whole_result(const work *w, int64_t sum) {
    if (w->op->clamp) sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
    return (uint32_t)sum;
}

static uint64_t sum_whole(const work *w, uint64_t addend, uint32_t row, uint32_t column) {
    int64_t sum = (int32_t)addend;
    for (uint32_t k = 0; k < w->matrix->k; k++)
        sum += (int64_t)w->a.whole[row + k] * w->b.whole[column + k];
    return whole_result(w, sum);
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

/* What sum_single makes of row line of A and the columns from first on of B: results has the addends and gets the sums.
 */
static void row_of_singles(const work *w, uint32_t line, uint32_t first, const double *across, sim_span span,
                           uint64_t *results) {
    const amd_matrix *m = w->matrix;
    const bool keeps = w->denormals & 2 << AMD_MODE_DENORMAL_32, takes = w->denormals & 1 << AMD_MODE_DENORMAL_32;
    const sim_row row = {m->rows, m->k, &w->a.real[line * m->k], across, w->a.spans[line], span};
    uint32_t c[SIM_ROW_MAX], bits[SIM_ROW_MAX];
    float numbers[SIM_ROW_MAX];
    for (uint32_t i = 0; i < m->rows; i++)
        c[i] = (uint32_t)results[i] & (!takes && !(results[i] & 0x7f800000) ? 1u << 31 : ~0u);
    memcpy(numbers, c, m->rows * sizeof *c);
    uint32_t doubts = sim_row_singles(&row, numbers, bits);
    for (; doubts; doubts &= doubts - 1) {
        const uint32_t i = (uint32_t)__builtin_ctz(doubts);
        bits[i] = sum_single(w, c[i], line * m->k, (first + i) * m->k);
    }
    for (uint32_t i = 0; i < m->rows; i++)
        results[i] = bits[i] & (!keeps && !(bits[i] & 0x7f800000) ? 1u << 31 : ~0u);
}

/* Whether rows can be made at once. */
static bool has_rows(const work *w, amd_matrix_type type) {
    const bool modified = (w->op->neg_lo | w->op->neg_hi) >> (C - A) & 1;
    return w->matrix->rows % SIM_ROW_STEP == 0 && w->matrix->d == type && w->mode == SIM_SUM_EXACT && !modified;
}

/* Sums of all rows: the addends come in results. */
static void singles_make(const work *w, uint64_t *results) {
    const uint32_t rows = w->matrix->rows, count = w->matrix->k;
    for (uint32_t block = 0; block < w->matrix->blocks; block++) {
        const double *b = &w->b.real[block * rows * count];
        double across[INPUTS_MAX];
        for (uint32_t k = 0; k < count; k++)
            for (uint32_t column = 0; column < rows; column++)
                across[k * rows + column] = b[column * count + k];
        const sim_span span = sim_span_of(b, (int)(rows * count));
        for (uint32_t line = block * rows; line < (block + 1) * rows; line++)
            row_of_singles(w, line, block * rows, across, span, &results[line * rows]);
    }
}

static void integers_make(const work *w, uint64_t *results) {
    const uint32_t rows = w->matrix->rows, count = w->matrix->k;
    for (uint32_t block = 0; block < w->matrix->blocks; block++) {
        const int32_t *b = &w->b.whole[block * rows * count];
        int32_t across[INPUTS_MAX], sums[SIM_ROW_MAX];
        for (uint32_t k = 0; k < count; k++)
            for (uint32_t column = 0; column < rows; column++)
                across[k * rows + column] = b[column * count + k];
        for (uint32_t line = block * rows; line < (block + 1) * rows; line++) {
            sim_row_integers(rows, count, &w->a.whole[line * count], across, sums);
            for (uint32_t i = 0; i < rows; i++)
                results[line * rows + i] = whole_result(w, (int64_t)(int32_t)results[line * rows + i] + sums[i]);
        }
    }
}

static void results_make(const work *w, uint64_t *results) {
    const amd_matrix *m = w->matrix;
    const amd_operand *d = &w->op->operand[0], *addend = &w->op->operand[C];
    const uint32_t bits = amd_matrix_types[m->d].bits, rows = m->rows, count = w->places->output_count;
    const place *out = w->places->out;
    const bool constant = addend->kind == AMD_OPERAND_CONSTANT;
    const uint32_t *before = constant ? NULL : words_of(w->wave, addend);
    for (uint32_t n = 0; n < count; n++)
        results[n] = constant ? constant_of(addend, bits) : element_read(before, out[n], bits);
    if (has_rows(w, AMD_MATRIX_f32)) {
        singles_make(w, results);
    } else if (has_rows(w, AMD_MATRIX_i32)) {
        integers_make(w, results);
    } else {
        for (uint32_t n = 0; n < count; n++) {
            uint32_t line = n / rows, first = line / rows * rows; /* of A, and of its block's in B */
            results[n] = sum(w, results[n], line * m->k, (first + n % rows) * m->k);
        }
    }
    if (amd_matrix_halves(m, w->variant)) halves_poison(w);
    for (uint32_t n = 0; n < count; n++)
        element_write(w->wave->v[d->index], out[n], bits, results[n]);
}

/* WMMA goes by MODE. MFMA keeps all, but for those of f16 and bf16 on gfx90a, which keep none. */
static uint32_t denormals_of(const work *w) {
    bool narrow = w->matrix->a == AMD_MATRIX_f16 || w->matrix->a == AMD_MATRIX_bf16;
    if (w->variant != AMD_VARIANT_9) return w->wave->mode;
    return narrow && w->wave->program->target->version == 0x90a ? 0 : ~0u;
}

/* ---- Places ---- */

static place place_of(uint32_t lane, uint32_t element, uint32_t bits) {
    const uint32_t position = element * bits;
    return (place){(uint16_t)(position / 32 * AMD_LANES + lane), (uint8_t)(position % 32), element & 1};
}

static void inputs_find(const work *w, uint32_t number, const amd_places *layout, place *to) {
    const amd_matrix *m = w->matrix;
    const uint32_t spanned = (1u << w->op->cbsz) - 1, bits = amd_matrix_types[number == A ? m->a : m->b].bits;
    for (uint32_t block = 0; block < m->blocks; block++) {
        const uint32_t from = number == A ? (block & ~spanned) + w->op->abid : block;
        for (uint32_t i = 0; i < m->rows; i++) {
            for (uint32_t k = 0; k < m->k; k++) {
                uint32_t lane = (uint32_t)layout->lane[0][i] | layout->lane[1][k] | layout->lane[2][from];
                uint32_t element = (uint32_t)layout->element[0][i] | layout->element[1][k] | layout->element[2][from];
                *to++ = place_of(number == B ? blgp_lane(w->op->blgp, lane) : lane, element, bits);
            }
        }
    }
}

static void outputs_find(const work *w, place *to) {
    const amd_matrix *m = w->matrix;
    amd_places layout;
    const bool halves = amd_matrix_halves(m, w->variant);
    const uint32_t scale = halves ? 2 : 1, offset = halves && (w->op->op_sel & 4) ? 1 : 0;
    amd_places_of((amd_layout)m->out[w->variant], &layout);
    for (uint32_t block = 0; block < m->blocks; block++) {
        for (uint32_t row = 0; row < m->rows; row++) {
            for (uint32_t column = 0; column < m->rows; column++) {
                uint32_t element =
                    (uint32_t)layout.element[0][row] | layout.element[1][column] | layout.element[2][block];
                uint32_t lane = (uint32_t)layout.lane[0][row] | layout.lane[1][column] | layout.lane[2][block];
                *to++ = place_of(lane, element * scale + offset, amd_matrix_types[m->d].bits);
            }
        }
    }
}

/* Those of the last instruction, mostly. */
static void places_find(const work *w, places *to) {
    const amd_matrix *m = w->matrix;
    const amd_op *op = w->op;
    const form wanted = {op->mode + 1u, w->variant, op->cbsz, op->abid, op->blgp, op->op_sel & 4};
    amd_places layout;
    if (!memcmp(&to->form, &wanted, sizeof wanted)) return;
    amd_places_of((amd_layout)m->in[w->variant], &layout);
    to->form = wanted;
    to->same = layout.same;
    to->registers[0] = amd_matrix_input_registers(m, w->variant, (amd_matrix_type)m->a);
    to->registers[1] = amd_matrix_input_registers(m, w->variant, (amd_matrix_type)m->b);
    to->input_count = (uint32_t)m->blocks * m->rows * m->k;
    to->output_count = (uint32_t)m->blocks * m->rows * m->rows;
    inputs_find(w, A, &layout, to->in[0]);
    inputs_find(w, B, &layout, to->in[1]);
    outputs_find(w, to->out);
}

/* ---- Running ---- */

/* What an instruction works with: too much for a stack. */
typedef struct store {
    work work;
    places places;
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
    places_find(w, &own->places);
    w->places = &own->places;
    if (!inputs_gather(w, A, &w->a) || !inputs_gather(w, B, &w->b)) return;
    results_make(w, own->results);
    wave->group->counters.matrix_instructions++;
}
