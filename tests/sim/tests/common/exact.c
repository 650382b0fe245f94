#include "tests/sim/tests/common/exact.h"
#include <string.h>

/* magnitude * 2^exponent = |value|, with exponent at least -1074. */
static uint64_t split(double value, int *out_exponent) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    int exponent = (int)(bits >> 52 & 0x7ff);
    *out_exponent = (exponent ? exponent : 1) - 1075;
    return (bits & ((1ull << 52) - 1)) | (exponent ? 1ull << 52 : 0);
}

static bool negative(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits >> 63;
}

static void negate(exact *sum) {
    uint64_t carry = 1;
    for (int i = 0; i < EXACT_WORDS; i++) {
        sum->words[i] = ~sum->words[i] + carry;
        carry = carry && sum->words[i] == 0;
    }
}

void exact_add_product(exact *sum, double a, double b) {
    int exponent_a, exponent_b;
    unsigned __int128 product = (unsigned __int128)split(a, &exponent_a) * split(b, &exponent_b);
    if (!product) return;
    bool minus = negative(a) != negative(b);
    int position = EXACT_POINT + exponent_a + exponent_b, word = position / 64, shift = position % 64;
    uint64_t parts[3] = {(uint64_t)product << shift, 0, 0};
    parts[1] = shift ? (uint64_t)(product >> (64 - shift)) : (uint64_t)(product >> 64);
    parts[2] = shift ? (uint64_t)(product >> 64 >> (64 - shift)) : 0;
    if (minus) negate(sum);
    uint64_t carry = 0;
    for (int i = word; i < EXACT_WORDS; i++) {
        unsigned __int128 total = (unsigned __int128)sum->words[i] + (i - word < 3 ? parts[i - word] : 0) + carry;
        sum->words[i] = (uint64_t)total;
        carry = (uint64_t)(total >> 64);
    }
    if (minus) negate(sum);
}

int exact_sign(const exact *sum) {
    if (sum->words[EXACT_WORDS - 1] >> 63) return -1;
    for (int i = 0; i < EXACT_WORDS; i++)
        if (sum->words[i]) return 1;
    return 0;
}

static bool bit(const exact *sum, int position) {
    return position >= 0 && sum->words[position / 64] >> position % 64 & 1;
}

static bool any_below(const exact *sum, int position) {
    for (int i = 0; i < position / 64; i++)
        if (sum->words[i]) return true;
    return position > 0 && position % 64 && sum->words[position / 64] << (64 - position % 64);
}

uint64_t exact_round(const exact *sum, int exponent_bits, int mantissa_bits, exact_rounding rounding) {
    exact magnitude = *sum;
    int sign = exact_sign(sum), bias = (1 << (exponent_bits - 1)) - 1, top = EXACT_WORDS * 64 - 1;
    if (sign == 0) return 0;
    if (sign < 0) negate(&magnitude);
    while (!magnitude.words[top / 64])
        top -= 64;
    top -= __builtin_clzll(magnitude.words[top / 64]);
    int lowest = EXACT_POINT + 1 - bias - mantissa_bits, last = top - mantissa_bits;
    if (last < lowest) last = lowest;
    uint64_t digits = 0;
    for (int i = top; i >= last; i--)
        digits = digits << 1 | bit(&magnitude, i);
    bool half = bit(&magnitude, last - 1), rest = any_below(&magnitude, last - 1);
    bool up = (rounding == EXACT_RN && half && (rest || digits & 1)) || (rounding == EXACT_RNA && half) ||
              (rounding == EXACT_RM && sign < 0 && (half || rest)) ||
              (rounding == EXACT_RP && sign > 0 && (half || rest));
    /* The leading digit of a normal number adds one to the exponent, and so does a carry. */
    uint64_t bits = ((uint64_t)(last - lowest) << mantissa_bits) + digits + up;
    uint64_t infinity = ((1ull << exponent_bits) - 1) << mantissa_bits;
    bool away = rounding == EXACT_RN || rounding == EXACT_RNA || (rounding == EXACT_RM && sign < 0) ||
                (rounding == EXACT_RP && sign > 0);
    if (bits >= infinity) bits = away ? infinity : infinity - 1;
    return bits | (uint64_t)(sign < 0) << (exponent_bits + mantissa_bits);
}
