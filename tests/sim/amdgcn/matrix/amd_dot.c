#include "tests/sim/amdgcn/matrix/amd_dot.h"
#include "tests/sim/amdgcn/alu/amd_vector.h"
#include "tests/sim/core/sim_sum.h"
#include <math.h>
#include <stdio.h>

enum { PARTS_MAX = 8 };

#define AMD_DOT_ROW(mnemonic, a, b, d, modifiers, adds) \
    {#mnemonic, AMD_MATRIX_##a, AMD_MATRIX_##b, AMD_MATRIX_##d, modifiers, adds},
#define AMD_DOT(mnemonic, sources, a, b, d, modifiers)      AMD_DOT_ROW(mnemonic, a, b, d, modifiers, false)
#define AMD_DOT_ADDS(mnemonic, sources, a, b, d, modifiers) AMD_DOT_ROW(mnemonic, a, b, d, modifiers, true)
const amd_dot amd_dots[AMD_DOT_ROWS] = {
#include "tests/sim/amdgcn/matrix/amd_dot.def"
};
#undef AMD_DOT
#undef AMD_DOT_ADDS

bool amd_dot_check(const amd_op *op, char *why, size_t why_size) {
    const amd_dot *dot = &amd_dots[op->mode];
    uint32_t allowed = dot->modifiers;
    const char *what = NULL;
    uint8_t halves = (allowed & AMD_DOT_HALVES ? 3 : 0) | (allowed & AMD_DOT_HALF_RESULT ? 12 : 0);
    uint8_t neg_hi = (allowed & AMD_DOT_NEG ? 3 : 0) | (allowed & AMD_DOT_NEG_C ? 4 : 0);
    uint8_t neg_lo = neg_hi | (allowed & AMD_DOT_SIGNED ? 3 : 0);
    if (op->op_sel & ~halves) what = "op_sel";
    if (op->has_op_sel_hi && (!(allowed & AMD_DOT_HALVES) || !(op->op_sel_hi & 4))) what = "op_sel_hi";
    if ((op->neg_lo & ~neg_lo) || (op->neg_hi & ~neg_hi)) what = "a negation";
    if ((op->clamp && !(allowed & AMD_DOT_CLAMP)) || op->omod) what = "a change of the result";
    for (uint32_t i = 0; i < op->operand_count; i++) {
        const amd_operand *operand = &op->operand[i];
        if (operand->negate || operand->absolute) what = "a sign";
        if (operand->real && (i < 3 || dot->d == AMD_MATRIX_bf16)) what = "a constant of halves";
    }
    if (what) snprintf(why, why_size, "%s: %s is not simulated here", op->text, what);
    return !what;
}

/* ---- Sums ---- */

static uint32_t part_of(uint32_t word, uint32_t i, uint32_t bits) {
    return word >> i * bits & (bits == 32 ? ~0u : (1u << bits) - 1);
}

static int64_t whole_of(amd_matrix_type type, uint32_t bits, bool is_signed) {
    uint32_t width = amd_matrix_types[type].bits;
    is_signed |= amd_matrix_types[type].kind == AMD_MATRIX_SIGNED;
    return is_signed ? (int32_t)(bits << (32 - width)) >> (32 - width) : (int64_t)bits;
}

static uint32_t sum_whole(const amd_alu *x, const amd_dot *dot, uint32_t a, uint32_t b, uint32_t c) {
    amd_matrix_type type = (amd_matrix_type)dot->a;
    uint32_t bits = amd_matrix_types[type].bits;
    bool a_signed = x->op->neg_lo & 1, b_signed = x->op->neg_lo & 2, is_signed = dot->d == AMD_MATRIX_i32;
    int64_t sum = is_signed ? (int32_t)c : (int64_t)c;
    for (uint32_t i = 0; i < 32 / bits; i++)
        sum += whole_of(type, part_of(a, i, bits), a_signed) * whole_of(type, part_of(b, i, bits), b_signed);
    const int64_t least = is_signed ? INT32_MIN : 0, most = is_signed ? INT32_MAX : UINT32_MAX;
    if (x->op->clamp) sum = sum < least ? least : sum > most ? most : sum;
    return (uint32_t)sum;
}

/* v_dot2 with f16 makes zeros of subnormal f32 whatever MODE says, and on gfx90a of subnormal f16; the others go by
 * MODE. */
static uint32_t mode_of(const amd_alu *x, const amd_dot *dot) {
    uint32_t mode = x->mode;
    if (dot->a != AMD_MATRIX_f16) return mode;
    if (dot->d == AMD_MATRIX_f32) mode &= ~(3u << AMD_MODE_DENORMAL_32);
    if (x->wave->program->target->version == 0x90a) mode &= ~(3u << AMD_MODE_DENORMAL_64);
    return mode;
}

static double flush(uint32_t mode, amd_matrix_type type, double value) {
    bool half = type == AMD_MATRIX_f16;
    bool kept = mode >> (half ? AMD_MODE_DENORMAL_64 : AMD_MODE_DENORMAL_32) & 1;
    return !kept && fabs(value) < (half ? 0x1p-14 : 0x1p-126) ? copysign(0, value) : value;
}

static uint32_t sum_real(const amd_alu *x, const amd_dot *dot, uint32_t a, uint32_t b, uint32_t c) {
    const amd_matrix_type_facts *as = &amd_matrix_types[dot->a], *bs = &amd_matrix_types[dot->b];
    amd_matrix_type type = (amd_matrix_type)dot->d;
    sim_format format = (sim_format)amd_matrix_types[type].format;
    uint32_t mode = mode_of(x, dot), count = 32 / as->bits;
    double av[PARTS_MAX], bv[PARTS_MAX];
    for (uint32_t i = 0; i < count; i++) {
        double left = sim_decode((sim_format)as->format, part_of(a, i, as->bits));
        double right = sim_decode((sim_format)bs->format, part_of(b, i, as->bits));
        av[i] = as->bits == 16 ? flush(mode, (amd_matrix_type)dot->a, left) : left;
        bv[i] = as->bits == 16 ? flush(mode, (amd_matrix_type)dot->b, right) : right;
    }
    double addend = flush(mode, type, sim_decode(format, c));
    if (x->op->neg_hi & 4) addend = fabs(addend);
    if (x->op->neg_lo & 4) addend = -addend;
    uint32_t bits = sim_sum(x->wave->group->launch->sums, format, addend, av, bv, (int)count);
    uint32_t shift = type == AMD_MATRIX_f16 ? AMD_MODE_DENORMAL_64 : AMD_MODE_DENORMAL_32;
    bool kept = mode >> (shift + 1) & 1;
    uint32_t sign = 1u << (amd_matrix_types[type].bits - 1);
    const double least = type == AMD_MATRIX_f16 ? 0x1p-14 : 0x1p-126;
    return !kept && fabs(sim_decode(format, bits)) < least ? bits & sign : bits;
}

static uint32_t dot_of(const amd_alu *x, uint32_t row, uint32_t a, uint32_t b, uint32_t c) {
    const amd_dot *dot = &amd_dots[row];
    bool whole = dot->d == AMD_MATRIX_i32 || dot->d == AMD_MATRIX_u32;
    return whole ? sum_whole(x, dot, a, b, c) : sum_real(x, dot, a, b, c);
}

/* What the vector ALU calls the types of C and D; a bf16 it takes as 16 bits. */
#define ALU_f32  f32
#define ALU_f16  f16
#define ALU_bf16 u16
#define ALU_i32  i32
#define ALU_u32  u32
#define BODY(mnemonic, flags, sources, d)                 \
    AMD_ALU_BODY(mnemonic, flags, d, sources, sources, d, \
                 AMD_ALU_STORE(d, dot_of(x, AMD_DOT_ROW_##mnemonic, a, b, (uint32_t)c)))
#define AMD_DOT(mnemonic, sources, a, b, d, modifiers)      BODY_OF(mnemonic, 0, sources, ALU_##d)
#define AMD_DOT_ADDS(mnemonic, sources, a, b, d, modifiers) BODY_OF(mnemonic, AMD_ALU_ADDS, sources, ALU_##d)
#define BODY_OF(mnemonic, flags, sources, d)                BODY(mnemonic, flags, sources, d)
#include "tests/sim/amdgcn/matrix/amd_dot.def"
