/* The floating-point instructions of the vector ALU, single and packed. */
#include "tests/sim/amdgcn/alu/amd_vector.h"

#define AMD_ALU(name, d, a, b, c, value)        AMD_ALU_BODY(name, 0, d, a, b, c, AMD_ALU_STORE(d, value))
#define AMD_ALU_ACC(name, d, a, b, value)       AMD_ALU_BODY(name, AMD_ALU_ADDS, d, a, b, d, AMD_ALU_STORE(d, value))
#define AMD_ALU_UPPER(name, d, a, b, c, value)  AMD_ALU_BODY(name, AMD_ALU_HIGH, d, a, b, c, AMD_ALU_STORE(d, value))
#define AMD_ALU_ZEROES(name, d, a, b, c, value) AMD_ALU_BODY(name, AMD_ALU_CLEARS, d, a, b, c, AMD_ALU_STORE(d, value))

/* The function does what it can of all lanes first; the lanes of a NaN, which C leaves open, are left. */
#define BODY_PLAIN(name, flags, d, a_type, b_type, c_type, per_lane, statement, plain_function)  \
    const amd_alu_shape amd_shape_##name = {                                                     \
        AMD_ALU_##d, {AMD_ALU_##a_type, AMD_ALU_##b_type, AMD_ALU_##c_type}, flags};             \
    void amd_run_##name(amd_wave *wave, const amd_op *op) {                                      \
        amd_alu alu, *const x = &alu;                                                            \
        amd_alu_begin(x, wave, op, &amd_shape_##name);                                           \
        const void *const s0 = x->source[0], *const s1 = x->source[1], *const s2 = x->source[2]; \
        uint64_t exec = x->exec;                                                                 \
        if (x->plain) exec = plain_function(x->lanes, per_lane, exec, x->out, s0, s1, s2);       \
        if (exec) {                                                                              \
            amd_array_##d *const out = x->out;                                                   \
            const uint32_t mode = x->mode;                                                       \
            AMD_EACH_LANE(statement)                                                             \
        }                                                                                        \
        amd_alu_end(x);                                                                          \
    }
#define LOAD_THREE(a_type, b_type, c_type) \
    AMD_ALU_LOAD(a, a_type, 0);            \
    AMD_ALU_LOAD(b, b_type, 1);            \
    AMD_ALU_LOAD(c, c_type, 2);            \
    (void)a;                               \
    (void)b;                               \
    (void)c
#define AMD_ALU_PLAIN(name, a_type, b_type, c_type, value, plain_function)                  \
    BODY_PLAIN(name, 0, f32, a_type, b_type, c_type, 1, LOAD_THREE(a_type, b_type, c_type); \
               AMD_ALU_STORE(f32, value), plain_function)
#define AMD_ALU_ACC_PLAIN(name, a_type, b_type, value, plain_function)                           \
    BODY_PLAIN(name, AMD_ALU_ADDS, f32, a_type, b_type, f32, 1, LOAD_THREE(a_type, b_type, f32); \
               AMD_ALU_STORE(f32, value), plain_function)
#include "tests/sim/amdgcn/alu/amd_vector_float.def"

static uint32_t amd_pick(uint64_t pair, uint32_t high) {
    return (uint32_t)(high & 1 ? pair >> 32 : pair);
}

/* Both halves of a lane. */
#define HALVES(value)                                                     \
    uint64_t both = 0;                                                    \
    for (uint32_t half = 0; half < 64; half += 32) {                      \
        const uint32_t a = (uint32_t)(((const uint64_t *)s0)[l] >> half); \
        const uint32_t b = (uint32_t)(((const uint64_t *)s1)[l] >> half); \
        const uint32_t c = (uint32_t)(((const uint64_t *)s2)[l] >> half); \
        (void)c;                                                          \
        both |= (uint64_t)(value) << half;                                \
    }                                                                     \
    out[l] = both
#define AMD_PACKED_32(name, a_type, b_type, c_type, value, plain_function) \
    BODY_PLAIN(name, 0, p32, a_type, b_type, c_type, 2, HALVES(value), plain_function)
#define AMD_ALU_PARTS AMD_ALU
#include "tests/sim/amdgcn/alu/amd_vector_packed.def"
