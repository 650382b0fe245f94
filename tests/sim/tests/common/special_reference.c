#include "tests/sim/tests/common/special_reference.h"
#include <dlfcn.h>
#include <stdio.h>

/* Of MPFR's interface of version 4, declared as its manual has it. */
typedef struct number {
    long precision;
    int sign;
    long exponent;
    unsigned long *limbs;
} number;

enum { TO_NEAREST = 0, PRECISION = 256 };

#define MPFR_FUNCTIONS(X)                                                         \
    X(init2, void, (number * x, long precision))                                  \
    X(set_d, int, (number * to, double from, int rounding))                       \
    X(get_ld, long double, (const number *x, int rounding))                       \
    X(const_pi, int, (number * to, int rounding))                                 \
    X(mul, int, (number * to, const number *a, const number *b, int rounding))    \
    X(mul_2si, int, (number * to, const number *a, long exponent, int rounding))  \
    X(div, int, (number * to, const number *a, const number *b, int rounding))    \
    X(ui_div, int, (number * to, unsigned long a, const number *b, int rounding)) \
    X(sqrt, int, (number * to, const number *a, int rounding))                    \
    X(sin, int, (number * to, const number *a, int rounding))                     \
    X(cos, int, (number * to, const number *a, int rounding))                     \
    X(log2, int, (number * to, const number *a, int rounding))                    \
    X(exp2, int, (number * to, const number *a, int rounding))                    \
    X(tanh, int, (number * to, const number *a, int rounding))

static struct {
#define MPFR_FIELD(name, result, parameters) result(*name) parameters;
    MPFR_FUNCTIONS(MPFR_FIELD)
#undef MPFR_FIELD
} mpfr;

static number a, b;

static bool find(void) {
    void *library = dlopen("libmpfr.so.6", RTLD_NOW | RTLD_LOCAL);
    if (!library) return false;
#define MPFR_FIND(name, result, parameters)               \
    *(void **)&mpfr.name = dlsym(library, "mpfr_" #name); \
    if (!mpfr.name) return false;
    MPFR_FUNCTIONS(MPFR_FIND)
#undef MPFR_FIND
    mpfr.init2(&a, PRECISION);
    mpfr.init2(&b, PRECISION);
    return true;
}

bool special_reference_ready(void) {
    static bool asked, found;
    if (!asked) found = find();
    if (!asked && !found)
        fprintf(stderr,
                "approximate instructions are NOT tested: no libmpfr.so.6 is here (Debian has it in libmpfr6)\n");
    asked = true;
    return found;
}

/* a becomes 2 pi a. */
static void turns(void) {
    mpfr.const_pi(&b, TO_NEAREST);
    mpfr.mul(&a, &a, &b, TO_NEAREST);
    mpfr.mul_2si(&a, &a, 1, TO_NEAREST);
}

long double special_reference(special_function function, double x, double y) {
    mpfr.set_d(&a, x, TO_NEAREST);
    mpfr.set_d(&b, y, TO_NEAREST);
    switch (function) {
    case SPECIAL_QUOTIENT:
        mpfr.div(&a, &a, &b, TO_NEAREST);
        break;
    case SPECIAL_RECIPROCAL:
        mpfr.ui_div(&a, 1, &a, TO_NEAREST);
        break;
    case SPECIAL_ROOT:
        mpfr.sqrt(&a, &a, TO_NEAREST);
        break;
    case SPECIAL_RECIPROCAL_ROOT:
        mpfr.sqrt(&a, &a, TO_NEAREST);
        mpfr.ui_div(&a, 1, &a, TO_NEAREST);
        break;
    case SPECIAL_SINE_OF_TURNS:
        turns(); /* fall through */
    case SPECIAL_SINE:
        mpfr.sin(&a, &a, TO_NEAREST);
        break;
    case SPECIAL_COSINE_OF_TURNS:
        turns(); /* fall through */
    case SPECIAL_COSINE:
        mpfr.cos(&a, &a, TO_NEAREST);
        break;
    case SPECIAL_LOGARITHM:
        mpfr.log2(&a, &a, TO_NEAREST);
        break;
    case SPECIAL_POWER:
        mpfr.exp2(&a, &a, TO_NEAREST);
        break;
    case SPECIAL_TANGENT:
        mpfr.tanh(&a, &a, TO_NEAREST);
        break;
    }
    return mpfr.get_ld(&a, TO_NEAREST);
}
