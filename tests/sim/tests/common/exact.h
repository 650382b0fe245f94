/* Exact sums of products of f64, in integers wide enough for any of them, and their rounding to a binary format: the
 * reference for floating-point instructions. Nothing here uses floating-point arithmetic. */
#ifndef KILN_TESTS_SIM_EXACT_H
#define KILN_TESTS_SIM_EXACT_H

#include <stdbool.h>
#include <stdint.h>

enum { EXACT_WORDS = 72, EXACT_POINT = 2240 }; /* bit EXACT_POINT is worth 1 */

/* Two's complement. */
typedef struct exact {
    uint64_t words[EXACT_WORDS];
} exact;

typedef enum exact_rounding { EXACT_RN, EXACT_RZ, EXACT_RM, EXACT_RP, EXACT_RNA } exact_rounding;

/* sum += a * b, of finite numbers. */
void exact_add_product(exact *sum, double a, double b);
/* -1, 0, 1. */
int exact_sign(const exact *sum);
/* The bits of the sum in an IEEE format of the given exponent and mantissa bits. Zero is +0. */
uint64_t exact_round(const exact *sum, int exponent_bits, int mantissa_bits, exact_rounding rounding);

#endif
