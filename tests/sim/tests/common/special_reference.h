/* Roots and transcendental functions of exact operands to 64 digits, by MPFR: the reference for approximate
 * instructions. */
#ifndef KILN_TESTS_SIM_SPECIAL_REFERENCE_H
#define KILN_TESTS_SIM_SPECIAL_REFERENCE_H

#include <stdbool.h>

typedef enum special_function {
    SPECIAL_QUOTIENT, /* x / y; the others are of x alone */
    SPECIAL_RECIPROCAL,
    SPECIAL_ROOT,
    SPECIAL_RECIPROCAL_ROOT,
    SPECIAL_SINE,
    SPECIAL_COSINE,
    SPECIAL_SINE_OF_TURNS, /* of 2 pi x */
    SPECIAL_COSINE_OF_TURNS,
    SPECIAL_LOGARITHM, /* base 2 */
    SPECIAL_POWER,     /* of 2 */
    SPECIAL_TANGENT    /* hyperbolic */
} special_function;

/* The nearest number; infinities, NaN and zeros with their signs as in IEEE 754. */
long double special_reference(special_function function, double x, double y);

/* To be asked first: false if libmpfr is absent, which it says on standard error once. */
bool special_reference_ready(void);

#endif
