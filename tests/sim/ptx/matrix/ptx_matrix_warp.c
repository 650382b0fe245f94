/* wmma.load.{a,b,c}.sync.aligned.layout.shape{.space}.type r, [p] {, stride}; wmma.store.d ... [p], r {, stride}; and
 * wmma.mma, which multiplies.
 *
 * The lanes' addresses must be one and the same. It must be aligned to the size of a lane's fragment; so must each
 * line, but no more than to 16 bytes, which is what CUDA C++ asks of a leading dimension. */
#include "tests/sim/ptx/matrix/ptx_matrix.h"
#include "tests/sim/ptx/warp/ptx_lanes.h"
#include <string.h>

enum { LINE_ALIGNMENT = 16 };

/* The matrix in memory. */
typedef struct memory {
    uint64_t address;
    uint64_t stride; /* in elements */
} memory;

static bool same_everywhere(ptx_warp *warp, const ptx_op *op, const uint64_t *values, const char *what) {
    for (uint32_t l = 1; l < PTX_WARP; l++) {
        if (values[l] == values[0]) continue;
        ptx_fault(warp, op, SIM_FAULT_ILLEGAL, l, values[l], "%s of this lane and of lane 0 differ", what);
        return false;
    }
    return true;
}

static bool find_memory(ptx_warp *warp, const ptx_op *op, memory *out) {
    const ptx_matrix *x = op->matrix;
    uint64_t addresses[PTX_WARP], strides[PTX_WARP];
    uint32_t bits = ptx_type_bits(x->a.type), size = x->a.count * (bits == 64 ? 8 : 4);
    ptx_addresses(warp, op->s[0], op->bits[0], op->offset, addresses);
    for (uint32_t l = 0; l < PTX_WARP; l++)
        strides[l] = x->stride_place == PTX_NOWHERE ? x->stride_length : PTX_ARRAY(uint32_t, x->stride_place)[l];
    if (!same_everywhere(warp, op, addresses, "the addresses") || !same_everywhere(warp, op, strides, "the strides"))
        return false;
    *out = (memory){addresses[0], strides[0]};
    uint64_t step = out->stride * bits / 8, line = size < LINE_ALIGNMENT ? size : LINE_ALIGNMENT;
    if (out->address % size == 0 && out->stride * bits % 8 == 0 && step % line == 0) return true;
    ptx_fault(warp, op, SIM_FAULT_MISALIGNED, 0, out->address,
              "a matrix must lie at a multiple of %u bytes, its lines (here %llu bytes apart) at one of %llu", size,
              (unsigned long long)step, (unsigned long long)line);
    return false;
}

/* Where the index-th element stands. */
static uint64_t address_of(const ptx_matrix *x, const memory *m, uint32_t index) {
    uint64_t line = index / x->a.layout.length, at = index % x->a.layout.length;
    uint64_t element = x->along_lines ? line * m->stride + at : at * m->stride + line;
    return m->address + element * ptx_type_bits(x->a.type) / 8;
}

/* Moves the part-th of the parts of a register of each lane. */
static bool move_part(ptx_warp *warp, const ptx_op *op, const memory *m, uint32_t r, uint32_t part, uint32_t parts) {
    const ptx_matrix *x = op->matrix;
    uint32_t bits = ptx_type_bits(x->a.type), whole = bits == 64 ? 8 : 4, size = whole / parts;
    uint32_t key = ptx_fragment_key(warp, &x->a), first = r * (whole * 8 / bits) + part * (size * 8 / bits);
    bool store = op->mode;
    uint64_t addresses[PTX_WARP];
    for (uint32_t l = 0; l < PTX_WARP; l++)
        addresses[l] = address_of(x, m, x->a.layout.index[(l ^ key) * x->a.layout.elements + first]);
    ptx_count_request(warp, op->space, addresses, 0xffffffffu, size, store);
    for (uint32_t l = 0; l < PTX_WARP; l++) {
        uint8_t *bytes = ptx_memory_bytes(warp, op, l, op->space, addresses[l], size, !store, store);
        uint8_t *lane = warp->frame + x->a.places[r] + l * whole + part * size;
        if (!bytes) return false;
        memcpy(store ? bytes : lane, store ? lane : bytes, size);
    }
    return true;
}

static void run_access(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    const ptx_matrix *x = op->matrix;
    uint32_t bits = ptx_type_bits(x->a.type), each = bits == 64 ? 1 : 32 / bits;
    uint32_t parts = x->along_lines ? 1 : each, own = x->a.count / x->a.layout.copies;
    memory m;
    (void)mask;
    if (!find_memory(warp, op, &m)) return;
    for (uint32_t r = 0; r < own; r++)
        for (uint32_t part = 0; part < parts; part++)
            if (!move_part(warp, op, &m, r, part, parts)) return;
    for (uint32_t r = own; r < x->a.count; r++)
        memcpy(warp->frame + x->a.places[r], warp->frame + x->a.places[r - own], PTX_WARP * sizeof(uint32_t));
}

/* ---- Decoding ---- */

static const ptx_matrix_form *find_form(ptx_decoder *decoder, ptx_matrix_name name, ptx_type type, bool column) {
    int shape = ptx_matrix_take_shape(decoder, true);
    for (size_t i = 0; i < ptx_matrix_form_count; i++) {
        const ptx_matrix_form *form = &ptx_matrix_forms[i];
        if (!form->wmma || form->modifier != shape) continue;
        if (name == PTX_MATRIX_C && (type == form->d || type == form->c)) return form;
        if (name != PTX_MATRIX_C && type == form->a && (form->any_layout || column == (name == PTX_MATRIX_B)))
            return form;
    }
    ptx_refuse(decoder, "there is no such matrix of shape, layout and type");
}

static void decode_access(ptx_decoder *decoder, bool store) {
    static const int names[] = {PTX_M_A, PTX_M_B, PTX_M_C};
    const ptx_operand *operands = decoder->statement->operands;
    bool column;
    int name = store ? (ptx_take(decoder, PTX_M_D) ? PTX_MATRIX_C : -1) : ptx_take_one(decoder, names, 3);
    if (name < 0) ptx_refuse(decoder, "it does not say which matrix");
    ptx_matrix_take_layouts(decoder, 1, &column);
    ptx_expect_types(decoder, 1);
    ptx_expect_operands(decoder, 2, 3);
    const ptx_matrix_form *form = find_form(decoder, (ptx_matrix_name)name, ptx_type_at(decoder, 0), column);
    ptx_need(decoder, form->target, form->version);
    ptx_matrix matrix = {.stride_place = PTX_NOWHERE, .along_lines = column == (name == PTX_MATRIX_B)};
    matrix.a = ptx_fragment_hidden(decoder, form, (ptx_matrix_name)name, ptx_type_at(decoder, 0));
    matrix.stride_length = matrix.along_lines ? matrix.a.layout.length : matrix.a.layout.lines;
    ptx_space space = ptx_take_space(decoder);
    if (space != PTX_SPACE_GENERIC && space != PTX_SPACE_GLOBAL && space != PTX_SPACE_SHARED)
        ptx_refuse(decoder, "it takes only global and shared memory");
    decoder->op->space = space;
    decoder->op->mode = store;
    ptx_fragment_decode(decoder, &operands[store ? 1 : 0], !store, &matrix.a);
    ptx_decode_pointer(decoder, &operands[store ? 0 : 1]);
    if (decoder->statement->operand_count == 3) matrix.stride_place = ptx_source(decoder, &operands[2], PTX_b32);
    ptx_matrix_start(decoder, &matrix, run_access);
}

void ptx_decode_matrix_warp(ptx_decoder *decoder) {
    static const int verbs[] = {PTX_M_LOAD, PTX_M_STORE, PTX_M_MMA};
    switch (ptx_take_one(decoder, verbs, 3)) {
    case 0:
        decode_access(decoder, false);
        break;
    case 1:
        decode_access(decoder, true);
        break;
    case 2:
        ptx_decode_matrix_product(decoder, true);
        break;
    default:
        ptx_refuse(decoder, "it is not .load, .store or .mma");
    }
}
