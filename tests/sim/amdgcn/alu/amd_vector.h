/* A vector ALU instruction at work: its operands gathered into arrays with an element for each lane, the loop over the
 * lanes, and the result written back under EXEC. DPP, SDWA, op_sel, negation, absolute value, omod and clamp are dealt
 * with on the way in and on the way out, so that an instruction's row says what it computes and nothing else. */
#ifndef KILN_TESTS_SIM_AMD_VECTOR_H
#define KILN_TESTS_SIM_AMD_VECTOR_H

#include "tests/sim/amdgcn/alu/amd_float.h"
#include "tests/sim/amdgcn/wave/amd_wave.h"

/* AMD_ALU_TYPE(name, type in an expression, type in the array, log2 of its bits, floating-point format, bits of a 1.0).
 * Floating point stands as its bits. m16 and m32 take the sign modifiers of floating point, but are copied. p16 is two
 * halves of 16 bits, h16 the same of f16, p32 two f32; mix is an f32 or a half of a register widened to one. */
#define AMD_ALU_TYPES(AMD_ALU_TYPE)                          \
    AMD_ALU_TYPE(none, int, uint32_t, 0, -1, 32)             \
    AMD_ALU_TYPE(u16, uint16_t, uint32_t, 4, -1, 16)         \
    AMD_ALU_TYPE(i16, int16_t, uint32_t, 4, -1, 16)          \
    AMD_ALU_TYPE(f16, uint16_t, uint32_t, 4, AMD_HALF, 16)   \
    AMD_ALU_TYPE(m16, uint16_t, uint32_t, 4, AMD_HALF, 16)   \
    AMD_ALU_TYPE(u32, uint32_t, uint32_t, 5, -1, 32)         \
    AMD_ALU_TYPE(i32, int32_t, uint32_t, 5, -1, 32)          \
    AMD_ALU_TYPE(f32, uint32_t, uint32_t, 5, AMD_SINGLE, 32) \
    AMD_ALU_TYPE(m32, uint32_t, uint32_t, 5, AMD_SINGLE, 32) \
    AMD_ALU_TYPE(u64, uint64_t, uint64_t, 6, -1, 64)         \
    AMD_ALU_TYPE(i64, int64_t, uint64_t, 6, -1, 64)          \
    AMD_ALU_TYPE(f64, uint64_t, uint64_t, 6, AMD_DOUBLE, 64) \
    AMD_ALU_TYPE(p16, uint32_t, uint32_t, 5, -1, 32)         \
    AMD_ALU_TYPE(h16, uint32_t, uint32_t, 5, AMD_HALF, 16)   \
    AMD_ALU_TYPE(p32, uint64_t, uint64_t, 6, AMD_SINGLE, 32) \
    AMD_ALU_TYPE(mix, uint32_t, uint32_t, 5, AMD_SINGLE, 32)

typedef enum amd_alu_type {
#define AMD_ALU_TYPE_ENUM(name, element, array, bits, format, one) AMD_ALU_##name,
    AMD_ALU_TYPES(AMD_ALU_TYPE_ENUM)
#undef AMD_ALU_TYPE_ENUM
} amd_alu_type;

/* What an instruction reads and writes besides. */
enum {
    AMD_ALU_MASK_IN = 1,  /* a lane mask follows the sources: VCC if it is not written */
    AMD_ALU_MASK_OUT = 2, /* a lane mask follows the result */
    AMD_ALU_ADDS = 4,     /* the result's old value is the third source */
    AMD_ALU_HIGH = 8,     /* a 16-bit result goes to the upper half */
    AMD_ALU_CLEARS = 16   /* of three sources, yet gfx9 clears the other half of a 16-bit result */
};

/* Of a row of the tables. */
typedef struct amd_alu_shape {
    uint8_t result, source[3]; /* amd_alu_type */
    uint8_t flags;
} amd_alu_shape;

typedef struct amd_alu {
    amd_wave *wave;
    const amd_op *op;
    const amd_alu_shape *shape;
    uint64_t exec;  /* lanes that write: EXEC without those that DPP turns off */
    uint32_t lanes; /* 32 or 64 */
    uint32_t mode;  /* MODE; on gfx12 with IEEE and DX10_CLAMP set, which it has for good */
    bool clamp;
    bool plain; /* f32 as in C, nothing to be done to the result */
    const amd_operand *result, *mask_result;
    const void *source[3]; /* arrays of lanes */
    void *out;             /* the same, for the result: a register or results */
    uint64_t mask_in, mask_out;
    uint64_t sources[3][AMD_LANES], results[AMD_LANES];
} amd_alu;

/* Of each instruction, by its mnemonic; of a comparison, with the mask that some have not. */
#define AMD_ALU_OPCODE(mnemonic) extern const amd_alu_shape amd_shape_##mnemonic;
#define AMD_ALU_SCALAR_OPCODE(mnemonic)
#include "tests/sim/amdgcn/alu/amd_vector.def"
#undef AMD_ALU_OPCODE
#undef AMD_ALU_SCALAR_OPCODE
#define AMD_DOT(mnemonic, sources, a, b, d, modifiers) extern const amd_alu_shape amd_shape_##mnemonic;
#define AMD_DOT_ADDS                                   AMD_DOT
#include "tests/sim/amdgcn/matrix/amd_dot.def"
#undef AMD_DOT
#undef AMD_DOT_ADDS

/* What amd_alu has as mode. */
uint32_t amd_alu_mode(const amd_wave *wave);

/* Gathers the operands of op. */
void amd_alu_begin(amd_alu *x, amd_wave *wave, const amd_op *op, const amd_alu_shape *shape);
/* Applies the output modifiers and writes the results. */
void amd_alu_end(amd_alu *x);

/* Where lane l of a wave takes its DPP operand from, or -1 if that is outside of its row: amd_dpp.c. */
int amd_dpp_source(const amd_op *op, uint32_t l, uint32_t lanes);
/* Fills a source by DPP and takes the lanes that are not to write out of exec. */
void amd_dpp_gather(amd_alu *x, uint32_t *to, const uint32_t *from);

/* f32 arithmetic as C has it for the lanes of exec, each of one element or two. Returns the lanes for which a NaN came
 * out, of which C does not say which it is: nothing of theirs is written. d may be one of the operands. */
enum { AMD_PLAIN_MAX = 2 * AMD_LANES };
#define AMD_PLAIN(name)                                                                                       \
    uint64_t name(uint32_t lanes, uint32_t per_lane, uint64_t exec, float *d, const float *a, const float *b, \
                  const float *c)
AMD_PLAIN(amd_plain_add);
AMD_PLAIN(amd_plain_sub);
AMD_PLAIN(amd_plain_subrev);
AMD_PLAIN(amd_plain_mul);
AMD_PLAIN(amd_plain_fma);

/* ---- What the rows are made into ---- */

/* The lanes of a loop do not depend on each other, though a result may be a source. */
#ifdef __clang__
#define AMD_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define AMD_INDEPENDENT _Pragma("GCC ivdep")
#endif

/* Runs a statement for each lane l of exec, in blocks of 32; a full block is a loop without a test. */
#define AMD_EACH_LANE(statement)                                   \
    for (uint32_t base = 0; base < x->lanes; base += 32) {         \
        uint32_t part = (uint32_t)(exec >> base);                  \
        if (part == ~0u) {                                         \
            AMD_INDEPENDENT for (uint32_t i = 0; i < 32; i++) {    \
                uint32_t l = base + i;                             \
                statement;                                         \
            }                                                      \
        } else {                                                   \
            for (; part; part &= part - 1) {                       \
                uint32_t l = base + (uint32_t)__builtin_ctz(part); \
                statement;                                         \
            }                                                      \
        }                                                          \
    }

#define AMD_ALU_ELEMENT(name, element, array, bits, format, one) \
    typedef element amd_element_##name;                          \
    typedef array amd_array_##name;
AMD_ALU_TYPES(AMD_ALU_ELEMENT)
#undef AMD_ALU_ELEMENT

/* The operands of a lane, as a row's expression has them; F is the format of the types' own name. */
#define AMD_ALU_LOAD(variable, type, number) \
    amd_element_##type variable = (amd_element_##type)((const amd_array_##type *)s##number)[l]
#define AMD_ALU_FRAME(name, flags, d, a_type, b_type, c_type, statement)                         \
    const amd_alu_shape amd_shape_##name = {                                                     \
        AMD_ALU_##d, {AMD_ALU_##a_type, AMD_ALU_##b_type, AMD_ALU_##c_type}, flags};             \
    void amd_run_##name(amd_wave *wave, const amd_op *op) {                                      \
        amd_alu alu, *const x = &alu;                                                            \
        amd_alu_begin(x, wave, op, &amd_shape_##name);                                           \
        const void *const s0 = x->source[0], *const s1 = x->source[1], *const s2 = x->source[2]; \
        amd_array_##d *const out = x->out;                                                       \
        const uint64_t exec = x->exec, mask_in = x->mask_in;                                     \
        const uint32_t mode = x->mode;                                                           \
        uint64_t mask_out = 0;                                                                   \
        AMD_EACH_LANE(statement)                                                                 \
        (void)s0, (void)s1, (void)s2, (void)out, (void)mask_in, (void)mode;                      \
        x->mask_out = mask_out;                                                                  \
        amd_alu_end(x);                                                                          \
    }
#define AMD_ALU_BODY(name, flags, d, a_type, b_type, c_type, statement)                                           \
    AMD_ALU_FRAME(name, flags, d, a_type, b_type, c_type, AMD_ALU_LOAD(a, a_type, 0); AMD_ALU_LOAD(b, b_type, 1); \
                  AMD_ALU_LOAD(c, c_type, 2); const uint32_t in = mask_in >> l & 1; (void)a; (void)b; (void)c;    \
                  (void)in; statement)

#define AMD_ALU_STORE(d, expression) out[l] = (amd_array_##d)(amd_element_##d)(expression)
#define AMD_ALU_MARK(expression)     mask_out |= (uint64_t)((expression) != 0) << l

#endif
