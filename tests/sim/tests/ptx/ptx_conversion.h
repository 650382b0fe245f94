/* Conversions over arrays of operands, for tests of cvt. */
#ifndef KILN_TESTS_SIM_PTX_CONVERSION_H
#define KILN_TESTS_SIM_PTX_CONVERSION_H

#include "tests/sim/tests/common/float_reference.h"
#include "tests/sim/tests/ptx/ptx_harness.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { COUNT = 1 << 16 };

static uint64_t seed;
static size_t count = COUNT; /* of the present operands */

/* A value rounded to an IEEE format, NaN as the format has it. */
static inline uint64_t rounded(const float_format *f, double value, exact_rounding rounding) {
    uint64_t sign = signbit(value) ? float_sign(f) : 0;
    if (isnan(value)) return f->nan;
    if (isinf(value)) return float_infinity(f) | sign;
    if (value == 0) return sign;
    exact sum = {{0}};
    exact_add_product(&sum, value, 1);
    return exact_round(&sum, f->exponent, f->mantissa, rounding);
}

/* All patterns of 16 bits; of wider ones edges around every power of two, and random numbers of all sizes. */
static inline void fill(uint64_t *raw, uint32_t bits, int mantissa) {
    uint64_t state = seed;
    count = bits <= 16 ? COUNT : COUNT / 8;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t number = sim_random(&state);
        raw[i] = i;
        if (bits <= 16) continue;
        raw[i] = number >> (64 - bits);
        if (i % 4 == 1)
            raw[i] = (number >> (64 - bits) >> mantissa << mantissa) + number % 5 - 2; /* about a power of two */
        if (i % 4 == 2) raw[i] = number >> (64 - bits) >> number % bits;               /* a small integer */
        if (i % 4 == 3) { /* digits that end soon after where a narrower format ends */
            uint32_t zeros = (uint32_t)(number >> 8) % (uint32_t)(mantissa + 1);
            raw[i] = number >> (64 - bits) >> zeros << zeros;
        }
        if (bits < 64) raw[i] &= (1ull << bits) - 1;
    }
}

static inline void *pack(const uint64_t *raw, uint32_t bits) {
    uint8_t *bytes = malloc(count * bits / 8);
    assert_non_null(bytes);
    for (size_t i = 0; i < count; i++)
        memcpy(bytes + i * bits / 8, &raw[i], bits / 8);
    return bytes;
}

static inline void run(const char *target, const char *code, uint32_t result_bits, uint32_t source_bits,
                       const uint64_t *a, const uint64_t *b, uint64_t *results) {
    harness_case test = {.target = target, .code = code, .result_bits = result_bits, .source_bits = {source_bits}};
    if (b) test.source_bits[1] = source_bits;
    void *first = pack(a, source_bits), *second = b ? pack(b, source_bits) : NULL;
    const void *sources[HARNESS_SOURCES] = {first, second};
    uint8_t *bytes = malloc(count * result_bits / 8);
    assert_non_null(bytes);
    harness_run(&test, count, bytes, sources);
    memset(results, 0, count * sizeof *results);
    for (size_t i = 0; i < count; i++)
        memcpy(&results[i], bytes + i * result_bits / 8, result_bits / 8);
    free(first);
    free(second);
    free(bytes);
}

static inline void expect(const char *code, uint64_t a, uint64_t b, uint64_t is, uint64_t wanted) {
    if (is == wanted) return;
    fail_msg("%s of 0x%llx 0x%llx is 0x%llx, not 0x%llx", code, (unsigned long long)a, (unsigned long long)b,
             (unsigned long long)is, (unsigned long long)wanted);
}

static uint64_t raw[COUNT], results[COUNT];

#endif
