/* Comparisons of the vector ALU. */
#include "tests/sim/amdgcn/alu/amd_vector.h"
#include <string.h>

/* What C says, where denormals are kept. */
static inline int amd_compare_f32(uint32_t mode, uint32_t a, uint32_t b) {
    if (!(mode >> AMD_MODE_DENORMAL_32 & 1)) return amd_compare(AMD_SINGLE, mode, a, b);
    float x, y;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    return x < y ? AMD_LESS : x > y ? AMD_GREATER : x == y ? AMD_EQUAL : AMD_UNORDERED;
}

static const amd_operand exec_operand = {.kind = AMD_OPERAND_SCALAR, .index = AMD_EXEC, .count = 2};

/* The mask comes first; of gfx10 and later a comparison into EXEC has none. Lanes that are off give 0. */
#define COMPARE(name, a_type, b_type, holds, to_exec)                                                                \
    const amd_alu_shape amd_shape_##name = {AMD_ALU_none, {AMD_ALU_##a_type, AMD_ALU_##b_type}, AMD_ALU_MASK_OUT};   \
    void amd_run_##name(amd_wave *wave, const amd_op *op) {                                                          \
        static const amd_alu_shape maskless = {AMD_ALU_none, {AMD_ALU_##a_type, AMD_ALU_##b_type}, 0};               \
        amd_alu alu, *const x = &alu;                                                                                \
        amd_alu_begin(x, wave, op, op->operand_count > 2 ? &amd_shape_##name : &maskless);                           \
        const void *const s0 = x->source[0], *const s1 = x->source[1];                                               \
        const uint64_t exec = x->exec;                                                                               \
        const uint32_t mode = x->mode;                                                                               \
        uint64_t mask_out = 0;                                                                                       \
        (void)mode;                                                                                                  \
        AMD_EACH_LANE(AMD_ALU_LOAD(a, a_type, 0); AMD_ALU_LOAD(b, b_type, 1); (void)a; (void)b; AMD_ALU_MARK(holds)) \
        x->mask_out = mask_out;                                                                                      \
        amd_alu_end(x);                                                                                              \
        if (to_exec) amd_write_mask(wave, &exec_operand, mask_out);                                                  \
    }
#define AMD_COMPARE(name, a_type, b_type, holds)      COMPARE(name, a_type, b_type, holds, false)
#define AMD_COMPARE_EXEC(name, a_type, b_type, holds) COMPARE(name, a_type, b_type, holds, true)
#include "tests/sim/amdgcn/alu/amd_vector_compare.def"
