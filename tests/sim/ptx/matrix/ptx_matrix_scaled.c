/* mma.sync.aligned.shape.row.col.kind.block_scale{.scale_vec_size}.f32.a.b.f32.s
 *     d, a, b, c, scales of a, {byte, thread}, scales of b, {byte, thread}
 *
 * Each row of A and each column of B has a scale for every k / .scale_vec_size elements, a byte of a register. A row's
 * stand with the lane whose number in its group of four is 2 * thread, or one more for rows from 8 on; a column's with
 * lane `thread` of its group. The first of them is in byte `byte`. So says the PTX ISA ("Block Scaling for mma.sync");
 * the tests have it from CUTLASS. */
#include "tests/sim/ptx/matrix/ptx_matrix.h"
#include "tests/sim/ptx/warp/ptx_lanes.h"
#include <string.h>

typedef struct form {
    uint32_t shape[3];
    int modifier, kind, vector;
    uint32_t count; /* of scales of a row */
    ptx_type a, b, scale;
    uint32_t version;
} form;

#define X1 1
#define X2 2
#define X4 4
static const form forms[] = {
#define PTX_MMA(m, n, k, layouts, d, a, b, c, takes, target, version)
#define PTX_WMMA(m, n, k, layouts, d, type, c, takes, registers_a, registers_b, target, version)
#define PTX_MMA_SCALED(m, n, k, kind, vector, a, b, scale, version)                                                \
    {{m, n, k}, PTX_M_M##m##N##n##K##k, PTX_M_##kind, PTX_M_SCALE_##vector, vector, PTX_##a, PTX_##b, PTX_##scale, \
     version},
#include "tests/sim/ptx/matrix/ptx_matrix_forms.def"
#undef PTX_MMA
#undef PTX_WMMA
#undef PTX_MMA_SCALED
};

/* ---- Running ---- */

static ptx_matrix_number scaled(double number, double scale) {
    ptx_matrix_number x = {.value = number * scale};
    uint64_t bits;
    memcpy(&bits, &x.value, sizeof bits);
    x.exponent = x.value == 0 ? PTX_MATRIX_NO_EXPONENT : (int)(bits >> 52 & 0x7ff) - 1023;
    return x;
}

static double scale_of(ptx_type type, uint32_t byte) {
    return type == PTX_ue8m0 ? sim_ue8m0_decode((uint8_t)byte) : sim_decode(SIM_e4m3, byte);
}

/* Multiplies `lines` rows of A, or columns of B, with their scales. */
static bool scale_lines(ptx_warp *warp, const ptx_op *op, const ptx_fragment *fragment, const ptx_scales *scales,
                        const uint64_t *bits, ptx_matrix_number *numbers) {
    const ptx_matrix *x = op->matrix;
    const sim_format format = fragment->type == PTX_e2m1 ? SIM_e2m1 : ptx_matrix_format(fragment->type);
    const uint32_t lines = fragment->layout.lines, each = x->k / scales->count;
    for (uint32_t line = 0; line < lines; line++) {
        const uint32_t lane = line % 8 * 4 + (lines == 16 ? 2 * scales->thread + line / 8 : scales->thread);
        const uint32_t word = PTX_ARRAY(uint32_t, scales->place)[lane] >> scales->byte * 8;
        for (uint32_t i = 0; i < x->k; i++) {
            const uint32_t byte = word >> i / each * 8 & 0xff;
            if (scales->type == PTX_ue4m3 && byte > 0x7f) {
                ptx_fault(warp, op, SIM_FAULT_ILLEGAL, lane, byte, "the scale has a bit that ue4m3 has not");
                return false;
            }
            numbers[line * x->k + i] =
                scaled(sim_decode(format, (uint32_t)bits[line * x->k + i]), scale_of(scales->type, byte));
        }
    }
    return true;
}

static void run_scaled(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    const ptx_matrix *x = op->matrix;
    uint64_t bits[PTX_MATRIX_ELEMENTS / 4];
    ptx_matrix_number a[PTX_MATRIX_ELEMENTS / 4], b[PTX_MATRIX_ELEMENTS / 8], c[PTX_MATRIX_ELEMENTS / 32];
    (void)mask;
    warp->block->counters.matrix_instructions++;
    ptx_fragment_get(warp, &x->a, bits);
    if (!scale_lines(warp, op, &x->a, &x->scales[0], bits, a)) return;
    ptx_fragment_get(warp, &x->b, bits);
    if (!scale_lines(warp, op, &x->b, &x->scales[1], bits, b)) return;
    ptx_fragment_get(warp, &x->c, bits);
    ptx_matrix_numbers_of(SIM_f32, bits, c, x->m * x->n);
    for (uint32_t i = 0; i < x->m * x->n; i++)
        bits[i] = ptx_matrix_sum_at_once(warp->block->launch->sum_mode, x->unit, SIM_f32, c[i], a + i / x->n * x->k,
                                         b + i % x->n * x->k, x->k);
    ptx_fragment_set(warp, &x->d, bits);
}

/* ---- Decoding ---- */

static const form *find_form(ptx_decoder *decoder) {
    static const int kinds[] = {PTX_M_MXF4, PTX_M_MXF4NVF4, PTX_M_MXF8F6F4};
    static const int vectors[] = {PTX_M_SCALE_X1, PTX_M_SCALE_X2, PTX_M_SCALE_X4};
    const int shape = ptx_matrix_take_shape(decoder, false);
    const int kind = ptx_take_one(decoder, kinds, 3), vector = ptx_take_one(decoder, vectors, 3);
    bool columns[2];
    ptx_matrix_take_layouts(decoder, 2, columns);
    ptx_expect_types(decoder, 5);
    if (kind < 0) ptx_refuse(decoder, "it has no kind, or one that it does not know");
    if (vector < 0 && kinds[kind] == PTX_M_MXF4NVF4) ptx_refuse(decoder, "it needs .scale_vec::2X or ::4X");
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const form *f = &forms[i];
        const ptx_type a = ptx_type_at(decoder, 1), b = ptx_type_at(decoder, 2);
        if (f->modifier != shape || f->kind != kinds[kind] || (vector >= 0 && f->vector != vectors[vector])) continue;
        if ((a != f->a && a != f->b) || (b != f->a && b != f->b) || ptx_type_at(decoder, 4) != f->scale) continue;
        if (ptx_type_at(decoder, 0) == PTX_f32 && ptx_type_at(decoder, 3) == PTX_f32 && !columns[0] && columns[1])
            return f;
    }
    ptx_refuse(decoder, "there is no such form of shape, kind, layouts and types");
}

/* sm_120a and its like: targets of that family. */
static void check_target(ptx_decoder *decoder, const form *f) {
    const char *target = decoder->program->module->target;
    const char last = target[strlen(target) - 1];
    ptx_need(decoder, 120, f->version);
    if (strncmp(target, "sm_12", 5) != 0 || (last != 'a' && last != 'f'))
        ptx_refuse(decoder, "needs a target like sm_120a or sm_120f");
}

static ptx_fragment fragment_of(ptx_decoder *decoder, const form *f, ptx_matrix_name name, ptx_type type,
                                const ptx_operand *operand, bool result) {
    ptx_fragment fragment = {.type = type};
    if (!ptx_layout_find(decoder->program->module->arena, f->shape, name, ptx_type_bits(type), name == PTX_MATRIX_B,
                         &fragment.layout))
        ptx_refuse(decoder, "the layout of its matrices is not known");
    fragment.count = ptx_fragment_registers(type, fragment.layout.elements);
    ptx_fragment_decode(decoder, operand, result, &fragment);
    return fragment;
}

/* A register and {byte, thread}; threads: how many there are to choose from. */
static ptx_scales scales_of(ptx_decoder *decoder, const form *f, const ptx_operand *operands, uint32_t threads) {
    const ptx_operand *selector = operands[1].elements;
    ptx_scales scales = {.type = f->scale, .count = f->count, .place = ptx_source(decoder, &operands[0], PTX_b32)};
    if (operands[1].kind != PTX_OPERAND_VECTOR || operands[1].element_count != 2 ||
        selector[0].kind != PTX_OPERAND_INTEGER || selector[1].kind != PTX_OPERAND_INTEGER)
        ptx_refuse(decoder, "the bytes and the threads of scales must be constants, {byte, thread}");
    if (selector[0].value < 0 || selector[0].value > 3 || selector[0].value % f->count != 0)
        ptx_refuse(decoder, "the first byte of scales is %lld", (long long)selector[0].value);
    if (selector[1].value < 0 || selector[1].value >= threads)
        ptx_refuse(decoder, "the thread of scales is %lld", (long long)selector[1].value);
    scales.byte = (uint32_t)selector[0].value;
    scales.thread = (uint32_t)selector[1].value;
    return scales;
}

void ptx_decode_matrix_scaled(ptx_decoder *decoder) {
    const ptx_operand *operands = decoder->statement->operands;
    const form *f = find_form(decoder);
    ptx_matrix matrix = {.m = f->shape[0], .n = f->shape[1], .k = f->shape[2]};
    check_target(decoder, f);
    ptx_expect_operands(decoder, 8, 8);
    matrix.d = fragment_of(decoder, f, PTX_MATRIX_C, PTX_f32, &operands[0], true);
    matrix.a = fragment_of(decoder, f, PTX_MATRIX_A, ptx_type_at(decoder, 1), &operands[1], false);
    matrix.b = fragment_of(decoder, f, PTX_MATRIX_B, ptx_type_at(decoder, 2), &operands[2], false);
    matrix.c = fragment_of(decoder, f, PTX_MATRIX_C, PTX_f32, &operands[3], false);
    matrix.scales[0] = scales_of(decoder, f, &operands[4], 2);
    matrix.scales[1] = scales_of(decoder, f, &operands[6], 4);
    matrix.unit = ptx_matrix_unit_find(decoder->program->capability, matrix.a.type);
    ptx_matrix_start(decoder, &matrix, run_scaled);
}
