/* A row of a matrix instruction's results at once, where sums are exact and the results f32 or i32. */
#ifndef KILN_TESTS_SIM_AMD_MATRIX_ROW_H
#define KILN_TESTS_SIM_AMD_MATRIX_ROW_H

#include "tests/sim/core/sim_sum.h"

/* Rows have 4, 16 or 32 results; those of 4 are made one by one. */
enum { AMD_ROW_STEP = 16, AMD_ROW_MAX = 32 };

/* What a row is the product of: k numbers of A, and of B those of all columns for each of them, one k after the other.
 */
typedef struct amd_row {
    uint32_t columns, k;
    const double *a, *b;
    sim_span span_a, span_b; /* of all of them */
} amd_row;

/* Adds a row's products to as many numbers c and rounds once, as sim_sum of SIM_SUM_EXACT does. Returns a bit for
 * each column of which that is not certain: there results has nothing. */
uint32_t amd_row_singles(const amd_row *row, const float *c, uint32_t *results);

/* The sums of products of integers of at most 8 bits. */
void amd_row_integers(uint32_t columns, uint32_t k, const int32_t *a, const int32_t *b, int32_t *sums);

#endif
