#include "tests/sim/ptx/matrix/ptx_matrix.h"
#include "tests/sim/ptx/warp/ptx_lanes.h"

/* ---- Layouts ---- */

/* A bit of a lane's or an element's number. */
enum { NONE, L0, L1, L2, L3, L4, E0, E1, E2, E3, E4, E5, E6 };
enum { BIT_COUNT = 9 }; /* the last is NONE */

typedef enum order { ANY, ROW, COLUMN } order;

typedef struct formula {
    uint32_t shape[3];
    ptx_matrix_name matrix;
    uint32_t bits;
    order order;
    uint8_t row[BIT_COUNT], column[BIT_COUNT], matrices[BIT_COUNT];
} formula;

#define BITS(...) \
    { __VA_ARGS__ }
static const formula formulas[] = {
#define PTX_FRAGMENT(m, n, k, matrix, bits, order, row, column, matrices) \
    {{m, n, k}, PTX_MATRIX_##matrix, bits, order, row, column, matrices},
#include "tests/sim/ptx/matrix/ptx_fragments.def"
#undef PTX_FRAGMENT
};
#undef BITS

static uint32_t bit_count(const uint8_t *bits) {
    uint32_t count = 0;
    while (bits[count] != NONE)
        count++;
    return count;
}

static uint32_t number_of(const uint8_t *bits, uint32_t lane, uint32_t element) {
    uint32_t number = 0;
    for (uint32_t i = 0; bits[i] != NONE; i++)
        number |= (bits[i] < E0 ? lane >> (bits[i] - L0) & 1 : element >> (bits[i] - E0) & 1) << i;
    return number;
}

static ptx_layout layout_of(ptx_arena *arena, const formula *f) {
    bool transposed = f->matrix == PTX_MATRIX_B;
    const uint8_t *line = transposed ? f->column : f->row, *along = transposed ? f->row : f->column;
    ptx_layout layout = {.lines = 1u << bit_count(line),
                         .length = 1u << bit_count(along),
                         .matrices = 1u << bit_count(f->matrices),
                         .copies = 1};
    layout.elements = layout.lines * layout.length * layout.matrices / PTX_WARP;
    layout.index = ptx_arena_take(arena, PTX_WARP * layout.elements * sizeof *layout.index);
    for (uint32_t i = 0; i < PTX_WARP * layout.elements; i++) {
        uint32_t l = i / layout.elements, e = i % layout.elements;
        uint32_t first = number_of(f->matrices, l, e) * layout.lines + number_of(line, l, e);
        layout.index[i] = (uint16_t)(first * layout.length + number_of(along, l, e));
    }
    return layout;
}

bool ptx_layout_find(ptx_arena *arena, const uint32_t shape[3], ptx_matrix_name matrix, uint32_t bits, bool column,
                     ptx_layout *out_layout) {
    for (size_t i = 0; i < sizeof formulas / sizeof *formulas; i++) {
        const formula *f = &formulas[i];
        if (f->shape[0] != shape[0] || f->shape[1] != shape[1] || f->shape[2] != shape[2]) continue;
        if (f->matrix != matrix || f->bits != bits || f->order == (column ? ROW : COLUMN)) continue;
        *out_layout = layout_of(arena, f);
        return true;
    }
    return false;
}

/* ---- Fragments ---- */

static uint32_t register_bits(ptx_type type) {
    return ptx_type_bits(type) == 64 ? 64 : 32;
}

uint32_t ptx_fragment_registers(ptx_type type, uint32_t elements) {
    return elements * ptx_type_bits(type) / register_bits(type);
}

ptx_fragment ptx_fragment_hidden(ptx_decoder *decoder, const ptx_matrix_form *form, ptx_matrix_name matrix,
                                 ptx_type type) {
    bool accumulates = matrix == PTX_MATRIX_C;
    ptx_layout layout = {
        .lines = form->shape[matrix == PTX_MATRIX_B], .length = form->shape[accumulates ? 1 : 2], .matrices = 1};
    uint32_t own = layout.lines * layout.length / PTX_WARP;
    layout.elements = accumulates ? own : form->registers[matrix] * register_bits(type) / ptx_type_bits(type);
    layout.copies = layout.elements / own;
    layout.index = ptx_arena_take(decoder->program->module->arena, PTX_WARP * layout.elements * sizeof *layout.index);
    for (uint32_t i = 0; i < PTX_WARP * layout.elements; i++)
        layout.index[i] = (uint16_t)(i / layout.elements * own + i % layout.elements % own);
    return (ptx_fragment){
        .type = type, .layout = layout, .hidden = true, .count = ptx_fragment_registers(type, layout.elements)};
}

uint32_t ptx_fragment_key(const ptx_warp *warp, const ptx_fragment *fragment) {
    uint64_t random = warp->block->launch->seed;
    return fragment->hidden ? (uint32_t)(sim_random(&random) % PTX_WARP) : 0;
}

void ptx_fragment_get(const ptx_warp *warp, const ptx_fragment *fragment, uint64_t *bits) {
    uint32_t width = ptx_type_bits(fragment->type), each = register_bits(fragment->type) / width;
    uint32_t key = ptx_fragment_key(warp, fragment);
    for (uint32_t r = 0; r < fragment->count; r++) {
        for (uint32_t l = 0; l < PTX_WARP; l++) {
            const uint16_t *index = fragment->layout.index + (l ^ key) * fragment->layout.elements + r * each;
            if (width == 64) {
                bits[*index] = PTX_ARRAY(uint64_t, fragment->places[r])[l];
                continue;
            }
            uint64_t word = PTX_ARRAY(uint32_t, fragment->places[r])[l];
            for (uint32_t e = 0; e < each; e++)
                bits[index[e]] = word >> e * width & ((1ull << width) - 1);
        }
    }
}

void ptx_fragment_set(const ptx_warp *warp, const ptx_fragment *fragment, const uint64_t *bits) {
    uint32_t width = ptx_type_bits(fragment->type), each = register_bits(fragment->type) / width;
    uint32_t key = ptx_fragment_key(warp, fragment);
    for (uint32_t r = 0; r < fragment->count; r++) {
        for (uint32_t l = 0; l < PTX_WARP; l++) {
            const uint16_t *index = fragment->layout.index + (l ^ key) * fragment->layout.elements + r * each;
            if (width == 64) {
                PTX_ARRAY(uint64_t, fragment->places[r])[l] = bits[*index];
                continue;
            }
            uint32_t word = 0;
            for (uint32_t e = 0; e < each; e++)
                word |= (uint32_t)bits[index[e]] << e * width;
            PTX_ARRAY(uint32_t, fragment->places[r])[l] = word;
        }
    }
}

/* The type of the registers. */
static ptx_type register_type(ptx_type type) {
    return type == PTX_f64 || type == PTX_f32 || type == PTX_s32 ? type : PTX_b32;
}

void ptx_fragment_decode(ptx_decoder *decoder, const ptx_operand *operand, bool result, ptx_fragment *fragment) {
    ptx_type type = register_type(fragment->type);
    if (operand->kind != PTX_OPERAND_VECTOR) ptx_refuse(decoder, "its matrices must be vectors of registers");
    if (operand->element_count != fragment->count)
        ptx_refuse(decoder, "a matrix of %u registers where it has %u", operand->element_count, fragment->count);
    for (uint32_t r = 0; r < fragment->count; r++)
        fragment->places[r] = result ? ptx_result(decoder, &operand->elements[r], type)
                                     : ptx_source(decoder, &operand->elements[r], type);
}
