#include "tests/sim/tests/amdgcn/amdgcn_numbers.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static const struct {
    amd_matrix_type type;
    int exponent, mantissa, bias;
    bool ieee, fnuz;
} formats[] = {
    {AMD_MATRIX_f64, 11, 52, 1023, true, false}, {AMD_MATRIX_f32, 8, 23, 127, true, false},
    {AMD_MATRIX_xf32, 8, 23, 127, true, false},  {AMD_MATRIX_f16, 5, 10, 15, true, false},
    {AMD_MATRIX_bf16, 8, 7, 127, true, false},   {AMD_MATRIX_e5m2, 5, 2, 15, true, false},
    {AMD_MATRIX_e4m3, 4, 3, 7, false, false},    {AMD_MATRIX_e5m2fnuz, 5, 2, 16, false, true},
    {AMD_MATRIX_e4m3fnuz, 4, 3, 8, false, true},
};
enum { FORMATS = sizeof formats / sizeof *formats };

bool amdgcn_is_integer(amd_matrix_type type) {
    amd_matrix_kind kind = (amd_matrix_kind)amd_matrix_types[type].kind;
    return kind == AMD_MATRIX_SIGNED || kind == AMD_MATRIX_UNSIGNED;
}

double amdgcn_decode(amd_matrix_type type, uint64_t bits) {
    for (int i = 0; i < FORMATS; i++) {
        if (formats[i].type != type) continue;
        int e = formats[i].exponent, m = formats[i].mantissa;
        uint64_t field = bits >> m & ((1ull << e) - 1), mantissa = bits & ((1ull << m) - 1);
        bool negative = bits >> (e + m) & 1, top = field == (1ull << e) - 1;
        if (formats[i].fnuz && negative && !field && !mantissa) return NAN;
        if (formats[i].ieee && top) return mantissa ? NAN : negative ? -INFINITY : INFINITY;
        if (!formats[i].ieee && !formats[i].fnuz && top && mantissa == (1ull << m) - 1) return NAN;
        double whole = (double)(mantissa | (field ? 1ull << m : 0));
        double value = ldexp(whole, (int)(field ? field : 1) - formats[i].bias - m);
        return negative ? -value : value;
    }
    fail_msg("no floating-point type");
    return 0;
}

uint64_t amdgcn_encode(amd_matrix_type type, int value) {
    if (amdgcn_is_integer(type))
        return (uint32_t)value &
               (amd_matrix_types[type].bits == 32 ? 0xffffffffu : (1u << amd_matrix_types[type].bits) - 1);
    for (int i = 0; i < FORMATS; i++) {
        if (formats[i].type != type || !value) continue;
        int m = formats[i].mantissa, exponent = 0, size = abs(value);
        while (size >> (exponent + 1))
            exponent++;
        uint64_t fraction = m >= exponent ? (uint64_t)size << (m - exponent) : (uint64_t)size >> (exponent - m);
        uint64_t bits = ((uint64_t)(formats[i].bias + exponent) << m) + (fraction - (1ull << m));
        bits |= (uint64_t)(value < 0) << (formats[i].exponent + m);
        assert_true(amdgcn_decode(type, bits) == value);
        return bits;
    }
    return 0;
}

int64_t amdgcn_integer(amd_matrix_type type, bool is_signed, uint64_t bits) {
    uint32_t width = amd_matrix_types[type].bits;
    is_signed |= amd_matrix_types[type].kind == AMD_MATRIX_SIGNED;
    bool negative = is_signed && (bits >> (width - 1) & 1);
    return (int64_t)bits - (negative ? 1ll << width : 0);
}

uint64_t amdgcn_round(amd_matrix_type type, const exact *sum) {
    int i = 0;
    while (formats[i].type != type)
        i++;
    return exact_round(sum, formats[i].exponent, formats[i].mantissa, EXACT_RN);
}
