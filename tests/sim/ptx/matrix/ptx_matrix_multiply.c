/* mma.sync.aligned.shape.layouts.types d, a, b, c, and wmma.mma. */
#include "tests/sim/core/sim_row.h"
#include "tests/sim/ptx/alu/ptx_float.h"
#include "tests/sim/ptx/matrix/ptx_matrix.h"
#include <math.h>
#include <string.h>

/* ---- Running ---- */

static void numbers_of(ptx_type type, const uint64_t *bits, ptx_matrix_number *numbers, uint32_t count) {
    ptx_matrix_numbers_of(ptx_matrix_format(type), bits, numbers, count);
}

/* The numbers of rows of A or columns of B, one after the other, and what those of each have in common. */
typedef struct spanned {
    double values[PTX_MATRIX_ELEMENTS / 8];
    sim_span spans[PTX_MATRIX_ELEMENTS / 8];
} spanned;

static void lines_of(const ptx_matrix_number *numbers, uint32_t count, uint32_t k, spanned *out) {
    for (uint32_t i = 0; i < count * k; i++)
        out->values[i] = numbers[i].value;
    for (uint32_t i = 0; i < count; i++)
        out->spans[i] = sim_span_of(out->values + i * k, (int)k);
}

static uint32_t sum_one(sim_format format, double c, const spanned *rows, uint32_t line, const spanned *columns,
                        uint32_t column, uint32_t k) {
    const uint32_t sum = sim_sum_spanned(format, c, rows->values + line * k, columns->values + column * k, (int)k,
                                         rows->spans[line], columns->spans[column]);
    return isnan(sim_decode(format, sum)) ? ptx_narrow_nan(format) : sum;
}

/* Sums of f32 of a line of A with the columns of its matrix, from first on. */
static void sum_row(const ptx_matrix *x, uint32_t line, uint32_t first, const spanned *rows, const spanned *columns,
                    const double *across, sim_span span, const ptx_matrix_number *c, uint64_t *bits) {
    const sim_row row = {x->n, x->k, rows->values + line * x->k, across, rows->spans[line], span};
    float addends[SIM_ROW_MAX];
    uint32_t sums[SIM_ROW_MAX];
    for (uint32_t i = 0; i < x->n; i++)
        addends[i] = (float)c[i].value;
    for (uint32_t doubts = sim_row_singles(&row, addends, sums); doubts; doubts &= doubts - 1) {
        const uint32_t i = (uint32_t)__builtin_ctz(doubts);
        sums[i] = sum_one(SIM_f32, c[i].value, rows, line, columns, first + i, x->k);
    }
    for (uint32_t i = 0; i < x->n; i++)
        bits[i] = sums[i];
}

/* bits has C and gets D. */
static void sum_exactly(const ptx_matrix *x, uint32_t count, const ptx_matrix_number *a, const ptx_matrix_number *b,
                        const ptx_matrix_number *c, uint64_t *bits) {
    const uint32_t matrices = x->a.layout.matrices, k = x->k;
    const sim_format format = ptx_matrix_format(x->d.type);
    const bool at_once = format == SIM_f32 && k <= SIM_ROW_MAX && x->n <= SIM_ROW_MAX;
    spanned rows, columns;
    lines_of(a, matrices * x->m, k, &rows);
    lines_of(b, matrices * x->n, k, &columns);
    for (uint32_t matrix = 0; at_once && matrix < matrices; matrix++) {
        const double *values = columns.values + matrix * x->n * k;
        const sim_span span = sim_span_of(values, (int)(x->n * k));
        double across[SIM_ROW_MAX * SIM_ROW_MAX];
        for (uint32_t i = 0; i < k; i++)
            for (uint32_t column = 0; column < x->n; column++)
                across[i * x->n + column] = values[column * k + i];
        for (uint32_t line = matrix * x->m; line < (matrix + 1) * x->m; line++)
            sum_row(x, line, matrix * x->n, &rows, &columns, across, span, c + line * x->n, bits + line * x->n);
    }
    for (uint32_t i = 0; !at_once && i < count; i++) {
        const uint32_t line = i / x->n, column = line / x->m * x->n + i % x->n;
        bits[i] = sum_one(format, c[i].value, &rows, line, &columns, column, k);
    }
}

static void run_floats(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    const ptx_matrix *x = op->matrix;
    const sim_sum_mode mode = warp->block->launch->sum_mode;
    const bool exactly = mode == SIM_SUM_EXACT || (mode == SIM_SUM_HOPPER && x->unit->capability < 90);
    uint32_t matrices = x->a.layout.matrices, lines = matrices * x->m;
    uint64_t bits[PTX_MATRIX_ELEMENTS];
    ptx_matrix_number a[PTX_MATRIX_ELEMENTS / 8], b[PTX_MATRIX_ELEMENTS / 8], c[PTX_MATRIX_ELEMENTS / 8];
    (void)mask;
    warp->block->counters.matrix_instructions++;
    ptx_fragment_get(warp, &x->a, bits);
    numbers_of(x->a.type, bits, a, lines * x->k);
    ptx_fragment_get(warp, &x->b, bits);
    numbers_of(x->b.type, bits, b, matrices * x->n * x->k);
    ptx_fragment_get(warp, &x->c, bits);
    numbers_of(x->c.type, bits, c, lines * x->n);
    if (exactly) sum_exactly(x, lines * x->n, a, b, c, bits);
    for (uint32_t i = 0; !exactly && i < lines * x->n; i++) {
        uint32_t line = i / x->n, column = line / x->m * x->n + i % x->n;
        bits[i] =
            ptx_matrix_sum(mode, x->unit, ptx_matrix_format(x->d.type), c[i], a + line * x->k, b + column * x->k, x->k);
    }
    ptx_fragment_set(warp, &x->d, bits);
}

/* A chain of fused multiply-adds along k, which is what the ISA says of f64. */
static void chain(double *d, const double *a, const double *b, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        *d = fma(a[i], b[i], *d);
}

static void run_doubles(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    const ptx_matrix *x = op->matrix;
    uint64_t bits[3][PTX_MATRIX_ELEMENTS / 16];
    double a[PTX_MATRIX_ELEMENTS / 16], b[PTX_MATRIX_ELEMENTS / 16], d[PTX_MATRIX_ELEMENTS / 16];
    (void)mask;
    warp->block->counters.matrix_instructions++;
    ptx_fragment_get(warp, &x->a, bits[0]);
    ptx_fragment_get(warp, &x->b, bits[1]);
    ptx_fragment_get(warp, &x->c, bits[2]);
    memcpy(a, bits[0], sizeof a);
    memcpy(b, bits[1], sizeof b);
    memcpy(d, bits[2], sizeof d);
    ptx_host_rounding(x->rounding);
    for (uint32_t i = 0; i < x->m * x->n; i++)
        chain(&d[i], a + i / x->n * x->k, b + i % x->n * x->k, x->k);
    ptx_host_rounding(SIM_ROUND_NEAREST_EVEN);
    for (uint32_t i = 0; i < x->m * x->n; i++)
        if (isnan(d[i])) d[i] = ptx_double_nan();
    memcpy(bits[0], d, sizeof d);
    ptx_fragment_set(warp, &x->d, bits[0]);
}

/* The number that an integer's bits mean. */
static int64_t integer_of(ptx_type type, uint64_t bits) {
    uint32_t shift = 64 - ptx_type_bits(type);
    return ptx_type_class_of(type) == PTX_CLASS_SIGNED ? (int64_t)(bits << shift) >> shift : (int64_t)bits;
}

static void integers_of(ptx_type type, const uint64_t *bits, int32_t *integers, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        integers[i] = (int32_t)integer_of(type, bits[i]);
}

static int64_t sum_of(ptx_matrix_takes operation, const int32_t *a, const int32_t *b, uint32_t count) {
    int64_t sum = 0;
    if (operation == PTX_MATRIX_XOR) {
        for (uint32_t i = 0; i < count; i++)
            sum += a[i] ^ b[i];
    } else { /* of single bits, and is the product */
        for (uint32_t i = 0; i < count; i++)
            sum += a[i] * b[i];
    }
    return sum;
}

static void run_integers(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    const ptx_matrix *x = op->matrix;
    uint64_t bits[PTX_MATRIX_ELEMENTS];
    int32_t a[PTX_MATRIX_ELEMENTS], b[PTX_MATRIX_ELEMENTS];
    (void)mask;
    warp->block->counters.matrix_instructions++;
    ptx_fragment_get(warp, &x->a, bits);
    integers_of(x->a.type, bits, a, x->m * x->k);
    ptx_fragment_get(warp, &x->b, bits);
    integers_of(x->b.type, bits, b, x->n * x->k);
    ptx_fragment_get(warp, &x->c, bits);
    for (uint32_t i = 0; i < x->m * x->n; i++) {
        int64_t sum =
            integer_of(PTX_s32, bits[i]) + sum_of(x->operation, a + i / x->n * x->k, b + i % x->n * x->k, x->k);
        bits[i] = op->flags & PTX_F_SATFINITE ? (uint32_t)ptx_saturate(sum) : (uint32_t)sum;
    }
    ptx_fragment_set(warp, &x->d, bits);
}

/* ---- Decoding ---- */

/* What stands behind the opcode. */
typedef struct written {
    int shape;
    bool columns[2]; /* A and B are column-major */
    ptx_type d, a, b, c;
    ptx_matrix_takes operation; /* XOR, AND or NOTHING */
} written;

/* The types of D, A, B and C; wmma.mma of f16 names those of D and C alone. */
static void read_types(ptx_decoder *decoder, bool wmma, written *w) {
    bool brief = wmma && decoder->type_count == 2;
    ptx_expect_types(decoder, brief ? 2 : 4);
    w->d = ptx_type_at(decoder, 0);
    w->a = brief ? PTX_f16 : ptx_type_at(decoder, 1);
    w->b = brief ? PTX_f16 : ptx_type_at(decoder, 2);
    w->c = ptx_type_at(decoder, brief ? 1 : 3);
    if (wmma && !brief && w->a == PTX_f16) ptx_refuse(decoder, "of f16 it names only the types of d and c");
}

static written read_written(ptx_decoder *decoder, bool wmma) {
    static const int operations[] = {PTX_M_XOR, PTX_M_AND};
    written w = {.shape = ptx_matrix_take_shape(decoder, wmma)};
    ptx_matrix_take_layouts(decoder, 2, w.columns);
    int operation = ptx_take_one(decoder, operations, 2);
    w.operation = operation < 0 ? PTX_MATRIX_NOTHING : operation == 0 ? PTX_MATRIX_XOR : PTX_MATRIX_AND;
    if (operation >= 0 && !ptx_take(decoder, PTX_M_POPC)) ptx_refuse(decoder, "it needs .popc");
    read_types(decoder, wmma, &w);
    return w;
}

static bool is_either(ptx_type type, ptx_type one, ptx_type other) {
    return type == one || type == other;
}

static bool fits(const ptx_matrix_form *form, const written *w, bool wmma) {
    bool bitwise = form->takes == PTX_MATRIX_XOR || form->takes == PTX_MATRIX_AND;
    if (form->wmma != wmma || form->modifier != w->shape) return false;
    if (w->operation != (bitwise ? form->takes : PTX_MATRIX_NOTHING)) return false;
    if (!form->any_layout && (w->columns[0] || !w->columns[1])) return false;
    if (!is_either(w->a, form->a, form->b) || !is_either(w->b, form->a, form->b)) return false;
    if (wmma) return is_either(w->d, form->d, form->c) && is_either(w->c, form->d, form->c);
    return w->d == form->d && w->c == form->c;
}

static const ptx_matrix_form *find_form(ptx_decoder *decoder, const written *w, bool wmma) {
    for (size_t i = 0; i < ptx_matrix_form_count; i++)
        if (fits(&ptx_matrix_forms[i], w, wmma)) return &ptx_matrix_forms[i];
    ptx_refuse(decoder, "there is no such form of shape, layouts and types");
}

static ptx_fragment fragment_of(ptx_decoder *decoder, const ptx_matrix_form *form, ptx_matrix_name name, ptx_type type,
                                bool column) {
    ptx_fragment fragment = {.type = type};
    ptx_arena *arena = decoder->program->module->arena;
    if (form->wmma)
        fragment = ptx_fragment_hidden(decoder, form, name, type);
    else if (!ptx_layout_find(arena, form->shape, name, ptx_type_bits(type), column, &fragment.layout))
        ptx_refuse(decoder, "the layout of its matrices is not known");
    fragment.count = ptx_fragment_registers(type, fragment.layout.elements);
    return fragment;
}

void ptx_decode_matrix_product(ptx_decoder *decoder, bool wmma) {
    const ptx_operand *operands = decoder->statement->operands;
    written w = read_written(decoder, wmma);
    const ptx_matrix_form *form = find_form(decoder, &w, wmma);
    ptx_matrix matrix = {.m = form->shape[0], .n = form->shape[1], .k = form->shape[2], .operation = w.operation};
    ptx_need(decoder, form->target, form->version);
    ptx_expect_operands(decoder, 4, 4);
    matrix.d = fragment_of(decoder, form, PTX_MATRIX_C, w.d, false);
    matrix.a = fragment_of(decoder, form, PTX_MATRIX_A, w.a, w.columns[0]);
    matrix.b = fragment_of(decoder, form, PTX_MATRIX_B, w.b, w.columns[1]);
    matrix.c = fragment_of(decoder, form, PTX_MATRIX_C, w.c, false);
    ptx_fragment_decode(decoder, &operands[0], true, &matrix.d);
    ptx_fragment_decode(decoder, &operands[1], false, &matrix.a);
    ptx_fragment_decode(decoder, &operands[2], false, &matrix.b);
    ptx_fragment_decode(decoder, &operands[3], false, &matrix.c);
    if (form->takes == PTX_MATRIX_SATFINITE) ptx_take_flag(decoder, PTX_M_SATFINITE, PTX_F_SATFINITE);
    if (form->takes == PTX_MATRIX_ROUNDING) matrix.rounding = ptx_take_rounding(decoder, SIM_ROUND_NEAREST_EVEN);
    matrix.unit = ptx_matrix_unit_find(decoder->program->capability, w.a);
    ptx_run run = w.d == PTX_f64 ? run_doubles : w.d == PTX_s32 ? run_integers : run_floats;
    ptx_matrix_start(decoder, &matrix, run);
}

void ptx_decode_matrix_multiply(ptx_decoder *decoder) {
    if (ptx_take(decoder, PTX_M_BLOCK_SCALE))
        ptx_decode_matrix_scaled(decoder);
    else
        ptx_decode_matrix_product(decoder, false);
}
