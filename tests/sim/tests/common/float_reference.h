/* Binary floating-point formats and what instructions on them must give, by exact integer arithmetic: the reference for
 * tests of instructions. */
#ifndef KILN_TESTS_SIM_FLOAT_REFERENCE_H
#define KILN_TESTS_SIM_FLOAT_REFERENCE_H

#include "tests/sim/tests/common/exact.h"
#include <stddef.h>

typedef struct float_format {
    const char *name;
    uint32_t bits;
    int exponent, mantissa;
    uint64_t nan; /* what NVIDIA's instructions produce */
} float_format;

extern const float_format float_f16, float_bf16, float_f32, float_f64;

uint64_t float_infinity(const float_format *f);
uint64_t float_sign(const float_format *f);
double float_value(const float_format *f, uint64_t bits);
/* A subnormal number becomes a zero of its sign. */
uint64_t float_flushed(const float_format *f, uint64_t bits);

enum { FLOAT_EDGES_MAX = 64 };
/* Numbers at and around every boundary of the format, with both signs. Returns how many. */
size_t float_edges(const float_format *f, uint64_t out[FLOAT_EDGES_MAX]);
/* Half of them of one size, so that sums cancel and products round near each other. */
uint64_t float_random(const float_format *f, uint64_t *state);

/* a * b + c, each of its format, rounded once to the format of c; without adds the product alone. */
uint64_t float_multiply_add(const float_format *factors, uint64_t a, uint64_t b, const float_format *f, uint64_t c,
                            exact_rounding rounding, bool adds);

enum { FLOAT_FTZ = 1, FLOAT_SAT = 2, FLOAT_RELU = 4, FLOAT_SATFINITE = 8 };
/* What the modifiers make of a result. */
uint64_t float_finish(const float_format *f, uint64_t bits, uint32_t flags);

/* The smaller or larger number, -0 before +0; of a NaN and a number the number, unless nan. */
uint64_t float_chosen(const float_format *f, uint64_t a, uint64_t b, bool largest, bool nan, bool xorsign);

#endif
