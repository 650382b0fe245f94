#include "tests/sim/amdgcn/alu/amd_float.h"
#include <fenv.h>
#include <math.h>
#include <string.h>

typedef struct layout {
    int width, mantissa;
} layout;

static const layout layouts[] = {[AMD_HALF] = {16, 10}, [AMD_SINGLE] = {32, 23}, [AMD_DOUBLE] = {64, 52}};

uint64_t amd_sign(amd_format format) {
    return 1ull << (layouts[format].width - 1);
}

uint64_t amd_infinity(amd_format format) {
    return amd_sign(format) - (1ull << layouts[format].mantissa);
}

uint64_t amd_quiet(amd_format format) {
    return 1ull << (layouts[format].mantissa - 1);
}

static uint64_t magnitude(amd_format format, uint64_t a) {
    return a & (amd_sign(format) - 1);
}

static uint64_t default_nan(amd_format format) {
    return amd_sign(format) | amd_infinity(format) | amd_quiet(format);
}

bool amd_is_nan(amd_format format, uint64_t a) {
    return magnitude(format, a) > amd_infinity(format);
}

bool amd_is_signalling(amd_format format, uint64_t a) {
    return amd_is_nan(format, a) && !(a & amd_quiet(format));
}

bool amd_is_denormal(amd_format format, uint64_t a) {
    uint64_t m = magnitude(format, a);
    return m && m < 1ull << layouts[format].mantissa;
}

sim_rounding amd_mode_rounding(amd_format format, uint32_t mode) {
    static const sim_rounding roundings[] = {SIM_ROUND_NEAREST_EVEN, SIM_ROUND_UP, SIM_ROUND_DOWN, SIM_ROUND_ZERO};
    return roundings[mode >> (format == AMD_SINGLE ? AMD_MODE_ROUND_32 : AMD_MODE_ROUND_64) & 3];
}

static uint32_t denormals(amd_format format, uint32_t mode) {
    return mode >> (format == AMD_SINGLE ? AMD_MODE_DENORMAL_32 : AMD_MODE_DENORMAL_64) & 3;
}

uint64_t amd_input(amd_format format, uint32_t mode, uint64_t a) {
    return amd_is_denormal(format, a) && !(denormals(format, mode) & 1) ? a & amd_sign(format) : a;
}

uint64_t amd_output(amd_format format, uint32_t mode, uint64_t a) {
    return amd_is_denormal(format, a) && !(denormals(format, mode) & 2) ? a & amd_sign(format) : a;
}

double amd_value(amd_format format, uint64_t a) {
    if (format == AMD_HALF) return sim_decode(SIM_f16, (uint32_t)a);
    if (format == AMD_SINGLE) {
        float value;
        uint32_t bits = (uint32_t)a;
        memcpy(&value, &bits, sizeof value);
        return value;
    }
    double value;
    memcpy(&value, &a, sizeof value);
    return value;
}

uint64_t amd_round_as(amd_format format, sim_rounding rounding, double value) {
    if (format != AMD_DOUBLE) return sim_encode(format == AMD_HALF ? SIM_f16 : SIM_f32, value, rounding, false);
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

uint64_t amd_round(amd_format format, uint32_t mode, double value) {
    if (isnan(value)) return default_nan(format);
    return amd_round_as(format, amd_mode_rounding(format, mode), value);
}

uint64_t amd_nan_of(amd_format format, uint32_t mode, const uint64_t *operands, int count) {
    for (int i = 0; i < count; i++)
        if (amd_is_nan(format, operands[i])) return operands[i] | (mode & AMD_MODE_IEEE ? amd_quiet(format) : 0);
    return 0;
}

/* A NaN keeps its sign and the top of its payload. */
static uint64_t convert_nan(amd_format to, amd_format from, uint64_t a) {
    int shift = layouts[to].mantissa - layouts[from].mantissa;
    uint64_t payload = magnitude(from, a) - amd_infinity(from);
    payload = shift >= 0 ? payload << shift : payload >> -shift;
    return (a & amd_sign(from) ? amd_sign(to) : 0) | amd_infinity(to) | amd_quiet(to) | payload;
}

/* The C library's own rounding for f64, which has nothing wider to round from. */
static int enter_rounding(uint32_t mode) {
    static const int roundings[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    int before = fegetround();
    fesetround(roundings[mode >> AMD_MODE_ROUND_64 & 3]);
    return before;
}

/* The volatile operands keep the arithmetic between the two changes of rounding. */
static double add_64(uint32_t mode, double a, double b) {
    int before = enter_rounding(mode);
    volatile double x = a, y = b, sum = x + y;
    fesetround(before);
    return sum;
}

static double fma_64(uint32_t mode, double a, double b, double c) {
    int before = enter_rounding(mode);
    volatile double x = a, y = b, z = c, sum = fma(x, y, z);
    fesetround(before);
    return sum;
}

static double multiply_64(uint32_t mode, double a, double b) {
    int before = enter_rounding(mode);
    volatile double x = a, y = b, product = x * y;
    fesetround(before);
    return product;
}

/* x + y = 0 exactly: -0 if both are, or if rounding down and either is; sim_add_odd sums to nearest. */
static double add_narrow(amd_format format, uint32_t mode, double a, double b) {
    double sum = sim_add_odd(a, b);
    if (sum == 0 && signbit(a) != signbit(b)) return amd_mode_rounding(format, mode) == SIM_ROUND_DOWN ? -0.0 : 0.0;
    return sum;
}

uint64_t amd_add(amd_format format, uint32_t mode, uint64_t a, uint64_t b) {
    uint64_t s[] = {amd_input(format, mode, a), amd_input(format, mode, b)};
    uint64_t nan = amd_nan_of(format, mode, s, 2);
    if (nan) return nan;
    double x = amd_value(format, s[0]), y = amd_value(format, s[1]);
    double sum = format == AMD_DOUBLE ? add_64(mode, x, y) : add_narrow(format, mode, x, y);
    return amd_output(format, mode, amd_round(format, mode, sum));
}

uint64_t amd_multiply(amd_format format, uint32_t mode, uint64_t a, uint64_t b) {
    uint64_t s[] = {amd_input(format, mode, a), amd_input(format, mode, b)};
    uint64_t nan = amd_nan_of(format, mode, s, 2);
    if (nan) return nan;
    double x = amd_value(format, s[0]), y = amd_value(format, s[1]);
    double product = format == AMD_DOUBLE ? multiply_64(mode, x, y) : x * y; /* exact in f64 for the narrow formats */
    return amd_output(format, mode, amd_round(format, mode, product));
}

/* inf * 0, which comes before a NaN that would be added to it. */
static bool is_invalid_product(amd_format format, uint64_t a, uint64_t b) {
    uint64_t x = magnitude(format, a), y = magnitude(format, b), infinity = amd_infinity(format);
    return (x == infinity && !y) || (!x && y == infinity);
}

uint64_t amd_fma(amd_format format, uint32_t mode, uint64_t a, uint64_t b, uint64_t c) {
    uint64_t s[] = {amd_input(format, mode, a), amd_input(format, mode, b), amd_input(format, mode, c)};
    if (is_invalid_product(format, s[0], s[1])) return default_nan(format);
    uint64_t nan = amd_nan_of(format, mode, s, 3);
    if (nan) return nan;
    double x = amd_value(format, s[0]), y = amd_value(format, s[1]), z = amd_value(format, s[2]);
    double sum = format == AMD_DOUBLE ? fma_64(mode, x, y, z) : add_narrow(format, mode, x * y, z);
    return amd_output(format, mode, amd_round(format, mode, sum));
}

uint64_t amd_fma_scaled(amd_format format, uint32_t mode, uint64_t a, uint64_t b, uint64_t c, int exponent) {
    double x = amd_value(format, amd_input(format, mode, a)), y = amd_value(format, amd_input(format, mode, b));
    double z = amd_value(format, amd_input(format, mode, c));
    if (format == AMD_DOUBLE) {
        return amd_ldexp(format, mode, amd_round(format, mode, fma_64(mode, x, y, z)), exponent);
    }
    return amd_output(format, mode, amd_round(format, mode, ldexp(add_narrow(format, mode, x * y, z), exponent)));
}

uint64_t amd_mad(amd_format format, uint32_t mode, uint64_t a, uint64_t b, uint64_t c) {
    if (format == AMD_SINGLE) mode &= ~(3u << AMD_MODE_DENORMAL_32);
    return amd_add(format, mode, amd_multiply(format, mode, a, b), c);
}

/* Orders numbers with -0 below +0. */
static inline bool below(amd_format format, uint64_t a, uint64_t b) {
    double x = amd_value(format, a), y = amd_value(format, b);
    return x < y || (x == y && (a & amd_sign(format)) && !(b & amd_sign(format)));
}

/* The common part of the four: what comes of NaN operands, or the lower (upper) of two numbers. */
static uint64_t extreme(amd_format format, uint32_t mode, uint64_t a, uint64_t b, bool upper, bool any_nan) {
    a = amd_input(format, mode, a);
    b = amd_input(format, mode, b);
    if (any_nan || ((mode & AMD_MODE_IEEE) && !(mode & AMD_MODE_NUMBERS))) {
        if (amd_is_signalling(format, a)) return a | amd_quiet(format);
        if (amd_is_signalling(format, b)) return b | amd_quiet(format);
    }
    if (!any_nan && amd_is_nan(format, a) && amd_is_nan(format, b)) {
        if (mode & AMD_MODE_NUMBERS) return a | amd_quiet(format);
        return mode & AMD_MODE_FIRST_NAN ? a : b;
    }
    bool first = upper ? below(format, b, a) : below(format, a, b);
    if (amd_is_nan(format, b)) first = !any_nan;
    if (amd_is_nan(format, a)) first = any_nan;
    return amd_output(format, mode, first ? a : b);
}

uint64_t amd_min_any(amd_format format, uint32_t mode, uint64_t a, uint64_t b) {
    return extreme(format, mode, a, b, false, false);
}

uint64_t amd_max_any(amd_format format, uint32_t mode, uint64_t a, uint64_t b) {
    return extreme(format, mode, a, b, true, false);
}

uint64_t amd_minimum_any(amd_format format, uint32_t mode, uint64_t a, uint64_t b) {
    return extreme(format, mode, a, b, false, true);
}

uint64_t amd_maximum_any(amd_format format, uint32_t mode, uint64_t a, uint64_t b) {
    return extreme(format, mode, a, b, true, true);
}

uint64_t amd_med3_any(amd_format format, uint32_t mode, uint64_t a, uint64_t b, uint64_t c) {
    if (amd_is_nan(format, a) || amd_is_nan(format, b) || amd_is_nan(format, c))
        return amd_min(format, mode, amd_min(format, mode, a, b), c);
    uint64_t top = amd_max(format, mode, amd_max(format, mode, a, b), c);
    if (amd_compare(format, mode, top, a) == AMD_EQUAL) return amd_max(format, mode, b, c);
    if (amd_compare(format, mode, top, b) == AMD_EQUAL) return amd_max(format, mode, a, c);
    return amd_max(format, mode, a, b);
}

static bool has_zero(uint32_t mode, uint64_t a, uint64_t b) {
    return !magnitude(AMD_SINGLE, amd_input(AMD_SINGLE, mode, a)) ||
           !magnitude(AMD_SINGLE, amd_input(AMD_SINGLE, mode, b));
}

uint64_t amd_multiply_legacy(uint32_t mode, uint64_t a, uint64_t b) {
    return has_zero(mode, a, b) ? 0 : amd_multiply(AMD_SINGLE, mode, a, b);
}

uint64_t amd_fma_legacy(uint32_t mode, uint64_t a, uint64_t b, uint64_t c) {
    return has_zero(mode, a, b) ? c : amd_fma(AMD_SINGLE, mode, a, b, c);
}

uint64_t amd_mad_legacy(uint32_t mode, uint64_t a, uint64_t b, uint64_t c) {
    return has_zero(mode & ~(3u << AMD_MODE_DENORMAL_32), a, b) ? c : amd_mad(AMD_SINGLE, mode, a, b, c);
}

static inline __attribute__((always_inline)) int compare(amd_format format, uint32_t mode, uint64_t a, uint64_t b) {
    a = amd_input(format, mode, a);
    b = amd_input(format, mode, b);
    if (amd_is_nan(format, a) || amd_is_nan(format, b)) return AMD_UNORDERED;
    double x = amd_value(format, a), y = amd_value(format, b);
    return x < y ? AMD_LESS : x > y ? AMD_GREATER : AMD_EQUAL;
}

int amd_compare(amd_format format, uint32_t mode, uint64_t a, uint64_t b) {
    return format == AMD_SINGLE ? compare(AMD_SINGLE, mode, a, b) : compare(format, mode, a, b);
}

int amd_float_class(amd_format format, uint64_t a) {
    uint64_t m = magnitude(format, a);
    if (amd_is_nan(format, a)) return amd_is_signalling(format, a) ? 0 : 1;
    int kind = m == amd_infinity(format) ? 0 : m == 0 ? 3 : amd_is_denormal(format, a) ? 2 : 1;
    return a & amd_sign(format) ? 2 + kind : 9 - kind;
}

uint64_t amd_round_integer(amd_format format, uint32_t mode, amd_integer_rounding rounding, uint64_t a) {
    a = amd_input(format, mode, a);
    uint64_t nan = amd_nan_of(format, mode, &a, 1);
    if (nan) return nan;
    double value = amd_value(format, a), whole = 0;
    switch (rounding) {
    case AMD_TRUNC:
        whole = trunc(value);
        break;
    case AMD_CEIL:
        whole = ceil(value);
        break;
    case AMD_FLOOR:
        whole = floor(value);
        break;
    case AMD_RNDNE:
        whole = nearbyint(value);
        break;
    }
    return amd_round(format, mode, copysign(whole, value));
}

uint64_t amd_fract(amd_format format, uint32_t mode, uint64_t a) {
    a = amd_input(format, mode, a);
    uint64_t nan = amd_nan_of(format, mode, &a, 1);
    if (nan) return nan;
    double value = amd_value(format, a);
    if (isinf(value)) return default_nan(format);
    /* The f64 sum of a narrower format is exact, or next to 1. */
    uint64_t part = amd_round(format, mode, add_64(mode, value, -floor(value))), one = amd_round(format, mode, 1.0);
    return amd_output(format, mode, part == one ? one - 1 : part);
}

uint64_t amd_ldexp(amd_format format, uint32_t mode, uint64_t a, int exponent) {
    a = amd_input(format, mode, a);
    uint64_t nan = amd_nan_of(format, mode, &a, 1);
    if (nan) return nan;
    int limit = exponent > 5000 ? 5000 : exponent < -5000 ? -5000 : exponent;
    double value = amd_value(format, a);
    if (format == AMD_DOUBLE) {
        int before = enter_rounding(mode);
        volatile double x = value, scaled = ldexp(x, limit);
        fesetround(before);
        return amd_output(format, mode, amd_round(format, mode, scaled));
    }
    /* Within f64's range the scaling is exact; what lies outside of it rounds as its end does. */
    limit = limit > 700 ? 700 : limit < -700 ? -700 : limit;
    return amd_output(format, mode, amd_round(format, mode, ldexp(value, limit)));
}

uint64_t amd_frexp_mantissa(amd_format format, uint32_t mode, uint64_t a) {
    a = amd_input(format, mode, a);
    uint64_t nan = amd_nan_of(format, mode, &a, 1);
    if (nan) return nan;
    int exponent;
    double value = amd_value(format, a);
    return isinf(value) ? a : amd_round(format, mode, frexp(value, &exponent));
}

int32_t amd_frexp_exponent(amd_format format, uint32_t mode, uint64_t a) {
    double value = amd_value(format, amd_input(format, mode, a));
    int exponent = 0;
    if (isfinite(value)) frexp(value, &exponent);
    return exponent;
}

uint64_t amd_modify_output(amd_format format, uint32_t mode, uint64_t a, int omod, bool clamp) {
    static const double factors[] = {1, 0.5, 2, 1, 4};
    if (omod && !(mode & AMD_MODE_IEEE) && !(denormals(format, mode) & 2) && !amd_is_nan(format, a)) {
        a = amd_output(format, mode, amd_round(format, mode, amd_value(format, a) * factors[omod]));
        if (magnitude(format, a) == 0) a = 0;
    }
    if (!clamp) return a;
    if (amd_is_nan(format, a)) return mode & AMD_MODE_DX10_CLAMP ? 0 : a;
    if (a & amd_sign(format)) return 0;
    uint64_t one = amd_round(format, mode, 1.0);
    return a > one ? one : a;
}

int32_t amd_to_signed(double value, int bits) {
    double limit = ldexp(1.0, bits - 1);
    if (isnan(value)) return 0;
    return (int32_t)(value >= limit ? limit - 1 : value < -limit ? -limit : value);
}

uint32_t amd_to_unsigned(double value, int bits) {
    double limit = ldexp(1.0, bits);
    if (isnan(value) || value <= 0) return 0;
    return (uint32_t)(value >= limit ? limit - 1 : value);
}

uint64_t amd_convert(amd_format to, amd_format from, uint32_t mode, uint64_t a) {
    a = amd_input(from, mode, a);
    if (amd_is_nan(from, a)) return convert_nan(to, from, a);
    amd_format narrow = to < from ? to : from;
    /* v_cvt_f32_f64 is an f64 instruction and rounds as those do. */
    sim_rounding rounding = amd_mode_rounding(narrow == AMD_SINGLE ? AMD_DOUBLE : narrow, mode);
    return amd_output(to, mode, amd_round_as(to, rounding, amd_value(from, a)));
}
