#include "tests/sim/tests/amdgcn/amdgcn_rows.h"
#include <math.h>
#include <string.h>

static row_wide least_of(row_wide a, row_wide b) {
    return a < b ? a : b;
}

static row_wide most_of(row_wide a, row_wide b) {
    return a > b ? a : b;
}

static row_wide middle_of(row_wide a, row_wide b, row_wide c) {
    return a + b + c - least_of(least_of(a, b), c) - most_of(most_of(a, b), c);
}

static row_wide distance(row_wide a, row_wide b) {
    return most_of(a, b) - least_of(a, b);
}

static unsigned byte_of(uint64_t a, int number) {
    return a >> 8 * number & 0xff;
}

/* Bits [from, from + count) of a word. */
static uint64_t field(uint64_t a, unsigned from, unsigned count) {
    uint64_t result = 0;
    for (unsigned i = 0; i < count && from + i < 64; i++)
        result |= (a >> (from + i) & 1) << i;
    return result;
}

static row_wide signed_field(uint64_t a, unsigned from, unsigned count) {
    row_wide value = (row_wide)field(a, from, count);
    return count && (value >> (count - 1) & 1) ? value - ((row_wide)1 << count) : value;
}

static row_wide signed_24(uint64_t a) {
    return signed_field(a, 0, 24);
}

static unsigned ones(uint64_t a) {
    unsigned count = 0;
    for (; a; a >>= 1)
        count += a & 1;
    return count;
}

static uint64_t mirrored(uint64_t a) {
    uint64_t result = 0;
    for (int i = 0; i < 32; i++)
        if (a >> i & 1) result |= 0x80000000u >> i;
    return result;
}

/* Places from the top down to the first 1, or up from the bottom; -1 if there is none. */
static row_wide from_top(uint64_t a) {
    for (int i = 0; i < 32; i++)
        if (a >> (31 - i) & 1) return i;
    return -1;
}

static row_wide from_bottom(uint64_t a) {
    for (int i = 0; i < 32; i++)
        if (a >> i & 1) return i;
    return -1;
}

/* Places from the top to the first bit that is not the sign's. */
static row_wide from_sign(uint64_t a) {
    for (int i = 1; i < 32; i++)
        if ((a >> (31 - i) & 1) != (a >> 31 & 1)) return i;
    return -1;
}

static uint64_t chosen_bytes(uint64_t upper, uint64_t lower, uint64_t choice) {
    uint64_t all = upper << 32 | lower, result = 0;
    for (int i = 3; i >= 0; i--) {
        unsigned select = byte_of(choice, i), byte = 0xff;
        if (select <= 7)
            byte = byte_of(all, (int)select);
        else if (select <= 11)
            byte = byte_of(all, (int)(2 * (select - 8) + 1)) & 0x80 ? 0xff : 0;
        else if (select == 12)
            byte = 0;
        result = result << 8 | byte;
    }
    return result;
}

static row_wide sum_of_distances(uint64_t a, uint64_t b, int width) {
    row_wide sum = 0;
    for (int i = 0; i < 32; i += width)
        sum += distance((row_wide)field(a, (unsigned)i, (unsigned)width),
                        (row_wide)field(b, (unsigned)i, (unsigned)width));
    return sum;
}

static row_wide sum_of_masked_distances(uint64_t a, uint64_t b) {
    row_wide sum = 0;
    for (int i = 0; i < 4; i++)
        if (byte_of(b, i)) sum += distance(byte_of(a, i), byte_of(b, i));
    return sum;
}

static row_wide sum_of_eights(uint64_t a, uint64_t b) {
    return sum_of_distances(a, b, 8);
}

/* Of four bytes of a each, from every of its first four on. */
static uint64_t four_sums(row_wide (*sum)(uint64_t, uint64_t), uint64_t a, uint64_t b, uint64_t c) {
    uint64_t result = 0;
    for (unsigned i = 4; i-- > 0;)
        result = result << 16 | (((uint64_t)sum(field(a, 8 * i, 32), b) + field(c, 16 * i, 16)) & 0xffff);
    return result;
}

static uint64_t with_byte(uint64_t word, uint64_t at, uint64_t byte) {
    uint64_t result = 0;
    for (int i = 3; i >= 0; i--)
        result = result << 8 | ((uint64_t)i == at ? byte : byte_of(word, i));
    return result;
}

static uint64_t means(uint64_t a, uint64_t b, uint64_t c) {
    uint64_t result = 0;
    for (int i = 3; i >= 0; i--)
        result = result << 8 | (byte_of(a, i) + byte_of(b, i) + (byte_of(c, i) & 1)) / 2;
    return result;
}

static uint64_t saturated_byte(uint64_t half) {
    row_wide value = signed_field(half, 0, 16);
    return (uint64_t)most_of(0, least_of(255, value));
}

/* ---- Rows ---- */

/* The names that an expression has for the operands: A, B, C are numbers, a, b, c bits. */
#define ROW_NAMES                                                     \
    const row_wide A = x->value[0], B = x->value[1], C = x->value[2]; \
    const uint64_t a = x->bits[0], b = x->bits[1], c = x->bits[2];    \
    const ref_mode M = x->mode;                                       \
    const row_wide IN = x->in;                                        \
    const uint32_t LANE = x->lane;                                    \
    (void)A, (void)B, (void)C, (void)a, (void)b, (void)c, (void)M, (void)IN, (void)LANE
#define ROW(mnemonic, types, flags, expression)                           \
    static void expect_##mnemonic(const row_operands *x, row_result *d) { \
        ROW_NAMES;                                                        \
        d->value = (row_wide)(expression);                                \
    }
#define ROW_MARKED(mnemonic, types, flags, expression, condition)         \
    static void expect_##mnemonic(const row_operands *x, row_result *d) { \
        ROW_NAMES;                                                        \
        d->value = (row_wide)(expression);                                \
        d->mark = condition;                                              \
    }
#include "tests/sim/tests/amdgcn/amdgcn_rows.def"
#undef ROW
#undef ROW_MARKED

#define ROW(mnemonic, types, flags, expression)                   {#mnemonic, types, flags, expect_##mnemonic},
#define ROW_MARKED(mnemonic, types, flags, expression, condition) {#mnemonic, types, flags, expect_##mnemonic},
const amdgcn_row amdgcn_rows[] = {
#include "tests/sim/tests/amdgcn/amdgcn_rows.def"
};
const size_t amdgcn_row_count = sizeof amdgcn_rows / sizeof *amdgcn_rows;
