#include "tests/sim/amdgcn/decode/amd_modifiers.h"
#include "tests/sim/amdgcn/alu/amd_vector.h"
#include <string.h>

/* A row of the vector ALU's tables: the types of its operands, and its expression. */
typedef struct alu_row {
    amd_run run;
    uint8_t result, source[3]; /* amd_alu_type */
    const char *value;
    bool marks; /* a mask follows the result */
    bool adds;  /* the third source is the old result */
    bool parts; /* heeds op_sel and byte_sel in a way of its own */
} alu_row;

static const alu_row alu_rows[] = {
#define ROW(name, d, a, b, c, value, marks, adds, parts) \
    {amd_run_##name, AMD_ALU_##d, {AMD_ALU_##a, AMD_ALU_##b, AMD_ALU_##c}, #value, marks, adds, parts},
#define AMD_ALU(name, d, a, b, c, value)                 ROW(name, d, a, b, c, value, false, false, false)
#define AMD_ALU_IN(name, d, a, b, c, value)              ROW(name, d, a, b, c, value, false, false, false)
#define AMD_ALU_OUT(name, d, a, b, c, value, mark)       ROW(name, d, a, b, c, value, true, false, false)
#define AMD_ALU_INOUT(name, d, a, b, c, value, mark)     ROW(name, d, a, b, c, value, true, false, false)
#define AMD_ALU_UPPER(name, d, a, b, c, value)           ROW(name, d, a, b, c, value, false, false, false)
#define AMD_ALU_ZEROES(name, d, a, b, c, value)          ROW(name, d, a, b, c, value, false, false, false)
#define AMD_ALU_PARTS(name, d, a, b, c, value)           ROW(name, d, a, b, c, value, false, false, true)
#define AMD_ALU_ACC(name, d, a, b, value)                ROW(name, d, a, b, d, value, false, true, false)
#define AMD_ALU_ACC_PARTS(name, d, a, b, value)          ROW(name, d, a, b, d, value, false, true, true)
#define AMD_ALU_PLAIN(name, a, b, c, value, plain)       ROW(name, f32, a, b, c, value, false, false, false)
#define AMD_ALU_ACC_PLAIN(name, a, b, value, plain)      ROW(name, f32, a, b, f32, value, false, true, false)
#define AMD_PACKED_32(name, a, b, c, value, plain)       ROW(name, p32, a, b, c, value, false, false, false)
#define AMD_PACKED_16(name, type, third, element, value) ROW(name, type, type, type, third, value, false, false, false)
#define AMD_PACKED_16_ACC(name, type, element, value)    ROW(name, type, type, type, type, value, false, true, false)
#define AMD_APPROXIMATE(name, type, function, unit, bound) \
    ROW(name, type, type, none, none, function, false, false, false)
#define AMD_APPROXIMATE_SCALAR(name, type, function, unit, bound) \
    ROW(name, type, type, none, none, function, false, false, false)
#define AMD_COMPARE(name, a, b, holds)      ROW(name, none, a, b, none, holds, false, false, false)
#define AMD_COMPARE_EXEC(name, a, b, holds) ROW(name, none, a, b, none, holds, false, false, false)
#include "tests/sim/amdgcn/alu/amd_approximations.def"
#include "tests/sim/amdgcn/alu/amd_vector_compare.def"
#include "tests/sim/amdgcn/alu/amd_vector_convert.def"
#include "tests/sim/amdgcn/alu/amd_vector_float.def"
#include "tests/sim/amdgcn/alu/amd_vector_integer.def"
#include "tests/sim/amdgcn/alu/amd_vector_packed.def"
#include "tests/sim/amdgcn/alu/amd_vector_packed_16.def"
#include "tests/sim/amdgcn/alu/amd_vector_special.def"
};

typedef struct type_facts {
    uint8_t log_bits;
    int8_t format;
} type_facts;

static const type_facts facts[] = {
#define AMD_ALU_FACTS(name, element, array, bits, format, one) [AMD_ALU_##name] = {bits, format},
    AMD_ALU_TYPES(AMD_ALU_FACTS)
#undef AMD_ALU_FACTS
};

static bool is_real(uint8_t type) {
    return facts[type].format >= 0;
}

static bool is_packed(uint8_t type) {
    return type == AMD_ALU_p16 || type == AMD_ALU_h16 || type == AMD_ALU_p32;
}

static bool is_half(uint8_t type) {
    return facts[type].log_bits == 4;
}

/* A result that is computed, and not copied, in a floating-point format. */
static bool is_computed(uint8_t type) {
    return is_real(type) && type != AMD_ALU_m16 && type != AMD_ALU_m32;
}

static const char *operand_check(const amd_operand *operand, uint8_t type) {
    if (operand->negate && !is_real(type)) return "-";
    if (operand->absolute && !is_real(type)) return "| |";
    return operand->extend && is_real(type) ? "sext" : NULL;
}

/* A bit of op_sel for each source that is a half, and one for the result. */
static const char *halves_check(const amd_op *op, const alu_row *row) {
    bool pairs = is_packed(row->source[0]) || row->source[0] == AMD_ALU_mix;
    uint32_t allowed = 0, count = 0;
    if (row->parts) return NULL;
    for (; count < 3 && row->source[count] != AMD_ALU_none; count++)
        allowed |= (uint32_t)(pairs || is_half(row->source[count])) << count;
    allowed |= (uint32_t)(is_half(row->result) && !pairs) << count;
    if (row->adds && !pairs) allowed = 0; /* which half is added to is not documented */
    if (op->op_sel & ~allowed) return "op_sel";
    if (op->byte_select) return "byte_sel";
    if (op->has_op_sel_hi && !pairs) return "op_sel_hi";
    bool signs = pairs && is_real(row->source[0]);
    if (op->neg_lo && !signs) return "neg_lo";
    return op->neg_hi && !signs ? "neg_hi" : NULL;
}

static const char *vector_check(const amd_op *op, const alu_row *row) {
    const amd_operand *next = op->operand, *end = next + op->operand_count;
    bool saturates = !strncmp(row->value, "amd_clamp", strlen("amd_clamp"));
    uint32_t sources = 0;
    while (sources < 3u - row->adds && row->source[sources] != AMD_ALU_none)
        sources++;
    /* A comparison has a mask as its result, or none. */
    next += row->result == AMD_ALU_none ? op->operand_count - sources : 1u + row->marks;
    for (uint32_t i = 0; i < sources && next < end; i++, next++) {
        const char *odd = operand_check(next, row->source[i]);
        if (odd) return odd;
    }
    if (op->clamp && !is_computed(row->result) && !saturates) return "clamp";
    if (op->omod && (!is_computed(row->result) || is_packed(row->result))) return op->omod == 1 ? "div" : "mul";
    return halves_check(op, row);
}

/* What belongs to the vector ALU alone. */
static const char *alu_check(const amd_op *op) {
    for (uint32_t i = 0; i < op->operand_count; i++) {
        const amd_operand *operand = &op->operand[i];
        if (operand->negate || operand->absolute || operand->extend) return "a sign";
    }
    if (op->clamp) return "clamp";
    if (op->omod) return "mul";
    if (op->op_sel) return "op_sel";
    if (op->has_op_sel_hi) return "op_sel_hi";
    if (op->neg_lo) return "neg_lo";
    if (op->neg_hi) return "neg_hi";
    if (op->byte_select) return "byte_sel";
    return op->dpp ? "DPP" : NULL;
}

/* What belongs to memory alone. */
static const char *memory_check(const amd_op *op) {
    if (op->offset || op->offset1) return "offset";
    if (op->offen) return "offen";
    if (op->idxen) return "idxen";
    return op->glc ? "glc" : NULL;
}

const char *amd_modifiers_check(const amd_op *op) {
    const char *odd = NULL;
    if (op->class == AMD_CLASS_SCALAR || op->class == AMD_CLASS_MEMORY) odd = alu_check(op);
    if (!odd && (op->class == AMD_CLASS_SCALAR || op->class == AMD_CLASS_VECTOR)) odd = memory_check(op);
    if (odd || op->class != AMD_CLASS_VECTOR) return odd;
    for (size_t i = 0; i < sizeof alu_rows / sizeof *alu_rows; i++)
        if (alu_rows[i].run == op->run) return vector_check(op, &alu_rows[i]);
    return NULL;
}

const char *amd_modifiers_halves(amd_op *op, uint32_t word) {
    enum { VOP3 = 0x35, OP_SEL = 11, RESULT = 3 };
    const char *unheeded = NULL;
    const uint32_t bits = word >> 26 == VOP3 ? word >> OP_SEL & 0xf : 0;
    uint32_t uppers = 0;
    for (uint32_t i = 0; i < op->operand_count; i++)
        uppers |= (uint32_t)op->operand[i].upper << i;
    if (uppers) unheeded = "an upper half";
    if ((!bits && !uppers) || op->op_sel) return NULL;
    if (op->dual || op->class != AMD_CLASS_VECTOR) return unheeded;
    for (size_t i = 0; i < sizeof alu_rows / sizeof *alu_rows; i++) {
        const alu_row *row = &alu_rows[i];
        if (row->run != op->run) continue;
        if (row->marks || row->parts) return unheeded; /* the bits are of the mask's register, or select bytes */
        uint32_t sources = 0;
        while (sources < 3 && row->source[sources] != AMD_ALU_none)
            sources++;
        uint32_t of_sources = bits, of_result = bits >> RESULT;
        if (uppers) {
            of_sources = uppers >> (row->result == AMD_ALU_none ? op->operand_count - sources : 1);
            of_result = row->result == AMD_ALU_none ? 0 : uppers;
        }
        op->op_sel = (uint8_t)((of_sources & ((1u << sources) - 1)) | (of_result & 1) << sources);
        return halves_check(op, row);
    }
    return unheeded;
}
