#include "tests/sim/core/sim_float.h"

typedef enum specials { IEEE, FN, FNUZ, FINITE } specials;

typedef struct layout {
    int exponent, mantissa, bias;
    specials specials;
    uint32_t largest; /* the largest finite number's bits, without sign */
} layout;

#define LARGEST_IEEE(exponent, mantissa)   ((((1u << (exponent)) - 1) << (mantissa)) - 1)
#define LARGEST_FN(exponent, mantissa)     ((1u << ((exponent) + (mantissa))) - 2)
#define LARGEST_FNUZ(exponent, mantissa)   ((1u << ((exponent) + (mantissa))) - 1)
#define LARGEST_FINITE(exponent, mantissa) LARGEST_FNUZ(exponent, mantissa)

static const layout layouts[SIM_FORMAT_COUNT] = {
#define SIM_FORMAT_LAYOUT(name, exponent, mantissa, bias, specials) \
    [SIM_##name] = {exponent, mantissa, bias, specials, LARGEST_##specials(exponent, mantissa)},
    SIM_FORMATS(SIM_FORMAT_LAYOUT)
#undef SIM_FORMAT_LAYOUT
};

static uint64_t bits_of(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static double double_of(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t sign_bit(const layout *l) {
    return 1u << (l->exponent + l->mantissa);
}

static uint32_t canonical_nan(const layout *l) {
    switch (l->specials) {
    case IEEE:
        return (((1u << l->exponent) - 1) << l->mantissa) | 1u << (l->mantissa - 1);
    case FN:
        return sign_bit(l) - 1;
    case FNUZ:
        return sign_bit(l);
    case FINITE:
        return l->largest;
    }
    return 0;
}

double sim_decode_any(sim_format format, uint32_t bits) {
    const layout *l = &layouts[format];
    uint32_t magnitude = bits & (sign_bit(l) - 1);
    bool negative = bits & sign_bit(l);
    uint32_t top = (1u << l->exponent) - 1;
    uint32_t exponent = magnitude >> l->mantissa, mantissa = magnitude & ((1u << l->mantissa) - 1);
    if (l->specials == FNUZ && bits == sign_bit(l)) return NAN;
    if (l->specials == FN && magnitude == sign_bit(l) - 1) return negative ? -NAN : NAN;
    if (l->specials == IEEE && exponent == top) {
        if (!mantissa) return negative ? -INFINITY : INFINITY;
        return double_of((uint64_t)negative << 63 | 0x7ffull << 52 | (uint64_t)mantissa << (52 - l->mantissa));
    }
    double value = exponent ? (mantissa | 1u << l->mantissa) * sim_power_of_two((int)exponent - l->bias - l->mantissa)
                            : mantissa * sim_power_of_two(1 - l->bias - l->mantissa);
    return negative ? -value : value;
}

/* Rounds a non-negative number to an integer. */
static double round_magnitude(double value, sim_rounding rounding, bool negative) {
    double down = floor(value), rest = value - down;
    bool up = false;
    switch (rounding) {
    case SIM_ROUND_NEAREST_EVEN:
        up = rest > 0.5 || (rest == 0.5 && fmod(down, 2.0) != 0.0);
        break;
    case SIM_ROUND_NEAREST_AWAY:
        up = rest >= 0.5;
        break;
    case SIM_ROUND_ZERO:
        break;
    case SIM_ROUND_DOWN:
        up = negative && rest > 0;
        break;
    case SIM_ROUND_UP:
        up = !negative && rest > 0;
        break;
    }
    return down + up;
}

/* A positive number, whose exponent the format has, to nearest even: by the digits that go. */
static uint64_t round_normal(const layout *l, double magnitude) {
    const uint64_t bits = bits_of(magnitude);
    const int drop = 52 - l->mantissa;
    const uint64_t rounded = (bits + (1ull << (drop - 1)) - 1 + (bits >> drop & 1)) >> drop;
    return rounded - ((uint64_t)(1023 - l->bias) << l->mantissa);
}

/* What a value beyond the largest finite number becomes, without sign. */
static uint32_t overflow(const layout *l, sim_rounding rounding, bool negative, bool saturate, bool infinite) {
    bool away = rounding == SIM_ROUND_NEAREST_EVEN || rounding == SIM_ROUND_NEAREST_AWAY ||
                (rounding == SIM_ROUND_UP && !negative) || (rounding == SIM_ROUND_DOWN && negative);
    if (saturate || l->specials == FINITE || (!away && !infinite)) return l->largest;
    return l->specials == IEEE ? ((1u << l->exponent) - 1) << l->mantissa : canonical_nan(l);
}

static uint32_t encode_any(const layout *l, double value, sim_rounding rounding, bool saturate) {
    if (isnan(value)) return canonical_nan(l);
    bool negative = signbit(value);
    double magnitude = fabs(value);
    uint32_t bits;
    if (isinf(value)) {
        bits = overflow(l, rounding, negative, saturate, true);
    } else if (magnitude == 0) {
        bits = 0;
    } else {
        int exponent = (int)(bits_of(magnitude) >> 52) - 1023; /* of f64's own denormals too low, which no format has */
        int lowest = 1 - l->bias;
        int scale = (exponent > lowest ? exponent : lowest) - l->mantissa;
        double whole = round_magnitude(magnitude * sim_power_of_two(-scale), rounding, negative);
        /* whole has up to mantissa + 1 bits; a carry moves on into the exponent by itself. */
        uint64_t biased = (uint64_t)(scale + l->mantissa + l->bias - 1);
        uint64_t wide = (biased << l->mantissa) + (uint64_t)whole;
        bits = wide > l->largest ? overflow(l, rounding, negative, saturate, false) : (uint32_t)wide;
    }
    if (l->specials == FNUZ && (bits == 0 || bits == sign_bit(l))) return bits;
    return bits | (negative ? sign_bit(l) : 0);
}

uint32_t sim_encode(sim_format format, double value, sim_rounding rounding, bool saturate) {
    const layout *l = &layouts[format];
    const double magnitude = fabs(value);
    const int exponent = (int)(bits_of(magnitude) >> 52) - 1023;
    /* A normal number that does not overflow, to nearest: most are. */
    if (rounding == SIM_ROUND_NEAREST_EVEN && exponent >= 1 - l->bias && exponent < 1024) {
        const uint64_t wide = round_normal(l, magnitude);
        if (wide <= l->largest) return (uint32_t)wide | (signbit(value) ? sign_bit(l) : 0);
    }
    return encode_any(l, value, rounding, saturate);
}

/* Makes the last bit of a rounded result odd if it was inexact: error is what the exact result exceeds it by. */
static double to_odd(double result, double error) {
    if (error == 0 || isnan(error) || isinf(result)) return result;
    uint64_t bits = bits_of(result);
    if (bits & 1) return result;
    /* Towards the exact result: away from zero if the error has the result's sign. */
    return double_of((error > 0) == (result > 0) ? bits + 1 : bits - 1);
}

double sim_add_odd(double a, double b) {
    double sum = a + b, part = sum - a;
    return to_odd(sum, (a - (sum - part)) + (b - part));
}

double sim_divide_odd(double a, double b) {
    double quotient = a / b;
    if (!isfinite(quotient) || quotient == 0) return quotient;
    double rest = fma(-quotient, b, a);
    return to_odd(quotient, (rest > 0) == (b > 0) ? fabs(rest) : -fabs(rest));
}

double sim_sqrt_odd(double a) {
    double root = sqrt(a);
    if (!isfinite(root) || root == 0) return root;
    return to_odd(root, fma(-root, root, a));
}

double sim_ue8m0_decode(uint8_t bits) {
    return bits == 0xff ? NAN : sim_power_of_two(bits - 127);
}

uint8_t sim_ue8m0_encode(double value, sim_rounding rounding) {
    if (isnan(value)) return 0xff;
    double magnitude = fabs(value);
    if (isinf(magnitude)) return 0xfe;
    if (magnitude == 0) return 0;
    int exponent;
    double fraction = frexp(magnitude, &exponent);
    int power = exponent - 1 + (rounding == SIM_ROUND_UP && fraction > 0.5);
    return (uint8_t)(power < -127 ? 0 : power > 127 ? 0xfe : power + 127);
}
