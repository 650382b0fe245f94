/* The integer and bit instructions of the vector ALU: what the rows of amd_vector_integer.def use, and the functions
 * made of them. */
#include "tests/sim/amdgcn/alu/amd_saturate.h"
#include "tests/sim/amdgcn/alu/amd_vector.h"
#include <string.h>

static uint32_t amd_reverse(uint32_t a) {
    uint32_t reversed = 0;
    for (int i = 0; i < 32; i++)
        reversed |= (a >> i & 1) << (31 - i);
    return reversed;
}

/* The place, from the top, of the first bit that differs from the sign; all ones if none does. */
static uint32_t amd_leading_signs(int32_t a) {
    uint32_t differing = (uint32_t)(a < 0 ? ~a : a);
    return differing ? (uint32_t)__builtin_clz(differing) : ~0u;
}

static uint32_t amd_saturate_u8(int16_t a) {
    return a < 0 ? 0 : a > 255 ? 255 : (uint32_t)a;
}

static int32_t amd_field_signed(int32_t a, uint32_t offset, uint32_t width) {
    if (!width) return 0;
    uint32_t field = (uint32_t)(a >> offset) & ((1u << width) - 1), sign = 1u << (width - 1);
    return (int32_t)((field ^ sign) - sign);
}

static int64_t amd_product_24(int32_t a, int32_t b) {
    return (int64_t)((int32_t)((uint32_t)a << 8) >> 8) * ((int32_t)((uint32_t)b << 8) >> 8);
}

static bool amd_overflow_i64(int64_t a, uint64_t b) {
    int64_t sum;
    return __builtin_add_overflow(a, (int64_t)b, &sum);
}

/* v_perm: a selector byte is 0 to 7 for a byte of the eight, 8 to 11 for the sign of their bytes 1, 3, 5, 7, 12 for 0,
 * more for 0xff. */
static uint32_t amd_permute_bytes(uint64_t bytes, uint32_t selectors) {
    enum { SIGNS = 8, ZERO = 12 };
    uint32_t result = 0;
    for (int i = 0; i < 32; i += 8) {
        const uint32_t select = selectors >> i & 0xff;
        uint32_t byte = 0xff;
        if (select < SIGNS)
            byte = bytes >> 8 * select & 0xff;
        else if (select < ZERO)
            byte = bytes >> (16 * (select - SIGNS) + 15) & 1 ? 0xff : 0;
        else if (select == ZERO)
            byte = 0;
        result |= byte << i;
    }
    return result;
}

static uint32_t amd_distance(uint32_t a, uint32_t b) {
    return a > b ? a - b : b - a;
}

static uint32_t amd_sad_bytes(uint32_t a, uint32_t b) {
    uint32_t sum = 0;
    for (int i = 0; i < 32; i += 8)
        sum += amd_distance(a >> i & 0xff, b >> i & 0xff);
    return sum;
}

/* The same of the bytes of which b's is not 0. */
static uint32_t amd_masked_sad_bytes(uint32_t a, uint32_t b) {
    uint32_t sum = 0;
    for (int i = 0; i < 32; i += 8)
        sum += b >> i & 0xff ? amd_distance(a >> i & 0xff, b >> i & 0xff) : 0;
    return sum;
}

/* Four such sums of 16 bits: of the bytes of a from 0, 1, 2 and 3 on, each added to its part of c. */
static uint64_t amd_sad_four(uint32_t (*sad)(uint32_t, uint32_t), uint64_t a, uint32_t b, uint64_t c) {
    uint64_t result = 0;
    for (int i = 0; i < 4; i++)
        result |= (uint64_t)(uint16_t)(sad((uint32_t)(a >> 8 * i), b) + (uint32_t)(c >> 16 * i)) << 16 * i;
    return result;
}

/* The mean of each pair of bytes, rounded up where the lowest bit of c's byte is set. */
static uint32_t amd_lerp_bytes(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t result = 0;
    for (int i = 0; i < 32; i += 8)
        result |= ((a >> i & 0xff) + (b >> i & 0xff) + (c >> i & 1)) >> 1 << i;
    return result;
}

#define AMD_ALU(name, d, a, b, c, value)        AMD_ALU_BODY(name, 0, d, a, b, c, AMD_ALU_STORE(d, value))
#define AMD_ALU_ZEROES(name, d, a, b, c, value) AMD_ALU_BODY(name, AMD_ALU_CLEARS, d, a, b, c, AMD_ALU_STORE(d, value))
#define AMD_ALU_IN(name, d, a, b, c, value)     AMD_ALU_BODY(name, AMD_ALU_MASK_IN, d, a, b, c, AMD_ALU_STORE(d, value))
#define AMD_ALU_OUT(name, d, a, b, c, value, mark) \
    AMD_ALU_BODY(name, AMD_ALU_MASK_OUT, d, a, b, c, AMD_ALU_MARK(mark); AMD_ALU_STORE(d, value))
#define AMD_ALU_INOUT(name, d, a, b, c, value, mark) \
    AMD_ALU_BODY(name, AMD_ALU_MASK_IN | AMD_ALU_MASK_OUT, d, a, b, c, AMD_ALU_MARK(mark); AMD_ALU_STORE(d, value))
#include "tests/sim/amdgcn/alu/amd_vector_integer.def"
