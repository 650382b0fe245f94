/* The table of matrix instructions, and what must hold of one that is loaded. */
#include "tests/sim/amdgcn/matrix/amd_matrix.h"
#include <stdio.h>
#include <string.h>

const amd_matrix_type_facts amd_matrix_types[] = {
#define AMD_MATRIX_TYPE_FACTS(name, bits, kind, format) [AMD_MATRIX_##name] = {bits, AMD_MATRIX_##kind, SIM_##format},
    AMD_MATRIX_TYPES(AMD_MATRIX_TYPE_FACTS)
#undef AMD_MATRIX_TYPE_FACTS
};

#define AMD_LAYOUT(name, lanes, elements)
#define AMD_MFMA(mnemonic, rows, k, blocks, a, b, d, in, out, modifiers, passes) \
    {#mnemonic,                                                                  \
     rows,                                                                       \
     k,                                                                          \
     blocks,                                                                     \
     AMD_MATRIX_##a,                                                             \
     AMD_MATRIX_##b,                                                             \
     AMD_MATRIX_##d,                                                             \
     AMD_MATRIX_MODIFIERS_##modifiers,                                           \
     passes,                                                                     \
     {[AMD_VARIANT_9] = AMD_LAYOUT_##in},                                        \
     {[AMD_VARIANT_9] = AMD_LAYOUT_##out}},
#define AMD_WMMA(mnemonic, k, a, b, d, in_11, in_12, modifiers)                                                     \
    {#mnemonic,                                                                                                     \
     16,                                                                                                            \
     k,                                                                                                             \
     1,                                                                                                             \
     AMD_MATRIX_##a,                                                                                                \
     AMD_MATRIX_##b,                                                                                                \
     AMD_MATRIX_##d,                                                                                                \
     AMD_MATRIX_MODIFIERS_##modifiers,                                                                              \
     0,                                                                                                             \
     {AMD_LAYOUT_none, AMD_LAYOUT_##in_11, AMD_LAYOUT_##in_11##_w64, AMD_LAYOUT_##in_12, AMD_LAYOUT_##in_12##_w64}, \
     {AMD_LAYOUT_none, AMD_LAYOUT_out_11, AMD_LAYOUT_out_11_w64, AMD_LAYOUT_out_12, AMD_LAYOUT_out_12_w64}},
const amd_matrix amd_matrices[AMD_MATRIX_ROWS] = {
#include "tests/sim/amdgcn/matrix/amd_matrix.def"
};
#undef AMD_LAYOUT
#undef AMD_MFMA
#undef AMD_WMMA

typedef struct layout_text {
    const char *lanes, *elements;
} layout_text;

static const layout_text layouts[] = {
#define AMD_LAYOUT(name, lanes, elements) [AMD_LAYOUT_##name] = {lanes, elements},
#define AMD_MFMA(mnemonic, rows, k, blocks, a, b, d, in, out, modifiers, passes)
#define AMD_WMMA(mnemonic, k, a, b, d, in_11, in_12, modifiers)
#include "tests/sim/amdgcn/matrix/amd_matrix.def"
#undef AMD_LAYOUT
#undef AMD_MFMA
#undef AMD_WMMA
};

amd_variant amd_variant_of(const amd_target *target, bool wave32) {
    if (target->major == 11) return wave32 ? AMD_VARIANT_11 : AMD_VARIANT_11_W64;
    if (target->major == 12) return wave32 ? AMD_VARIANT_12 : AMD_VARIANT_12_W64;
    return AMD_VARIANT_9;
}

/* ---- Layouts ---- */

/* Adds what each coordinate contributes to a number whose bits the text names. Returns how many bits there are. */
static uint32_t contributions(const char *text, uint8_t to[AMD_COORDINATES][AMD_COORDINATE_MAX], uint8_t *same) {
    uint32_t bit = 0;
    memset(to, 0, AMD_COORDINATES * AMD_COORDINATE_MAX);
    for (const char *at = text; *at; bit++) {
        char letter = *at++;
        if (letter == '=' || letter == '-') {
            if (letter == '=') *same |= (uint8_t)(1u << bit);
            continue;
        }
        uint32_t digit = (uint32_t)(*at++ - '0');
        int coordinate = letter == 'i'   ? AMD_COORDINATE_ROW
                         : letter == 'b' ? AMD_COORDINATE_BLOCK
                                         : AMD_COORDINATE_OTHER;
        for (uint32_t value = 0; value < AMD_COORDINATE_MAX; value++)
            to[coordinate][value] |= (uint8_t)((value >> digit & 1) << bit);
    }
    return bit;
}

void amd_places_of(amd_layout layout, amd_places *out_places) {
    out_places->same = 0;
    contributions(layouts[layout].lanes, out_places->lane, &out_places->same);
    out_places->elements = (uint8_t)(1u << contributions(layouts[layout].elements, out_places->element, NULL));
}

static uint32_t registers_of(amd_layout layout, uint32_t bits) {
    amd_places places;
    amd_places_of(layout, &places);
    return (places.elements * bits + 31) / 32;
}

uint32_t amd_matrix_input_registers(const amd_matrix *matrix, amd_variant variant, amd_matrix_type type) {
    return registers_of((amd_layout)matrix->in[variant], amd_matrix_types[type].bits);
}

uint32_t amd_matrix_output_registers(const amd_matrix *matrix, amd_variant variant) {
    uint32_t bits = amd_matrix_halves(matrix, variant) ? 32 : amd_matrix_types[matrix->d].bits;
    return registers_of((amd_layout)matrix->out[variant], bits);
}

/* ---- Loading ---- */

typedef struct checked {
    const amd_matrix *matrix;
    const amd_op *op;
    bool mfma;
    char *why;
    size_t why_size;
} checked;

static bool refuse(const checked *c, const char *what) {
    snprintf(c->why, c->why_size, "%s: %s", c->op->text, what);
    return false;
}

static bool modifiers_check(const checked *c) {
    const amd_op *op = c->op;
    amd_matrix_modifiers allowed = (amd_matrix_modifiers)c->matrix->modifiers;
    bool cbsz = allowed == AMD_MATRIX_MODIFIERS_CBSZ_BLGP;
    bool blgp = cbsz || allowed == AMD_MATRIX_MODIFIERS_BLGP;
    if (!cbsz && (op->cbsz || op->abid)) return refuse(c, "cbsz and abid have no meaning here");
    if (1u << op->cbsz > c->matrix->blocks) return refuse(c, "cbsz spans more blocks than there are");
    if (op->abid >> op->cbsz) return refuse(c, "abid is not one of the blocks that cbsz spans");
    if (!blgp && op->blgp) return refuse(c, "blgp has no meaning here");
    uint8_t neg_lo = 0, neg_hi = 0;
    if (allowed == AMD_MATRIX_MODIFIERS_NEG) neg_lo = neg_hi = 7;
    if (allowed == AMD_MATRIX_MODIFIERS_NEG && c->mfma) neg_hi = 0;
    if (allowed == AMD_MATRIX_MODIFIERS_NEG_C) neg_lo = neg_hi = 4;
    if (allowed == AMD_MATRIX_MODIFIERS_SIGNED) neg_lo = 3;
    if ((op->neg_lo & ~neg_lo) || (op->neg_hi & ~neg_hi)) return refuse(c, "a negation that has no meaning here");
    if (op->clamp && allowed != AMD_MATRIX_MODIFIERS_SIGNED) return refuse(c, "clamp is not simulated here");
    bool halves = !c->mfma && amd_matrix_types[c->matrix->d].bits == 16;
    if (op->op_sel & ~(halves ? 4u : 0)) return refuse(c, "op_sel has no meaning here");
    return true;
}

static bool is_even(const amd_operand *operand) {
    return operand->kind != AMD_OPERAND_VECTOR || operand->count < 2 || operand->index % 2 == 0;
}

static bool overlap(const amd_operand *a, const amd_operand *b) {
    return b->kind == AMD_OPERAND_VECTOR && a->index < b->index + b->count && b->index < a->index + a->count;
}

/* The result is written while the inputs are still read, unless it is small. With a constant for C, LLVM has let it
 * overlap A and B on gfx9 for years (until https://github.com/llvm/llvm-project/pull/166600), and so must this. */
static bool overlaps_check(const checked *c) {
    const amd_operand *d = &c->op->operand[0], *addend = &c->op->operand[3];
    if (c->mfma && (d->count <= 4 || addend->kind == AMD_OPERAND_CONSTANT)) return true;
    if (overlap(d, &c->op->operand[1]) || overlap(d, &c->op->operand[2]))
        return refuse(c, "the result overlaps A or B");
    if (overlap(d, addend) && d->index != addend->index) return refuse(c, "the result overlaps a part of C");
    return true;
}

bool amd_matrix_check(const amd_target *target, bool wave32, const amd_op *op, char *why, size_t why_size) {
    const amd_matrix *matrix = &amd_matrices[op->mode];
    amd_variant variant = amd_variant_of(target, wave32);
    const checked c = {matrix, op, variant == AMD_VARIANT_9, why, why_size};
    if (matrix->in[variant] == AMD_LAYOUT_none || matrix->in[variant] == AMD_LAYOUT_none_w64)
        return refuse(&c, "the target does not have it");
    const uint32_t counts[] = {amd_matrix_output_registers(matrix, variant),
                               amd_matrix_input_registers(matrix, variant, (amd_matrix_type)matrix->a),
                               amd_matrix_input_registers(matrix, variant, (amd_matrix_type)matrix->b),
                               amd_matrix_output_registers(matrix, variant)};
    if (op->operand_count != 4) return refuse(&c, "not four operands");
    for (uint32_t i = 0; i < 4; i++) {
        const amd_operand *operand = &op->operand[i];
        bool constant = i == 3 && operand->kind == AMD_OPERAND_CONSTANT;
        if (!constant && (operand->kind != AMD_OPERAND_VECTOR || operand->count != counts[i]))
            return refuse(&c, "an operand of uncommon size");
        if (c.mfma && !is_even(operand)) return refuse(&c, "registers that do not begin at an even one");
    }
    if (op->operand[3].real && matrix->d == AMD_MATRIX_bf16) return refuse(&c, "a bf16 constant is not simulated");
    return modifiers_check(&c) && overlaps_check(&c);
}
