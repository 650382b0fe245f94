/* A row of a matrix product at once: what sim_sum of SIM_SUM_EXACT makes of each column. */
#ifndef KILN_TESTS_SIM_ROW_H
#define KILN_TESTS_SIM_ROW_H

#include "tests/sim/core/sim_sum.h"

/* Rows have a multiple of 8 columns. */
enum { SIM_ROW_STEP = 8, SIM_ROW_MAX = 32 };

/* What a row is the product of: k numbers of A, at most 32, and of B those of all columns for each of them, one k after
 * the other. The products are exact in f64. */
typedef struct sim_row {
    uint32_t columns, k;
    const double *a, *b;
    sim_span span_a, span_b; /* of all of them */
} sim_row;

/* Adds a row's products to as many numbers c and rounds once, to f32. Returns a bit for each column of which that is
 * not certain: there results has nothing. */
uint32_t sim_row_singles(const sim_row *row, const float *c, uint32_t *results);

/* The sums of products of integers of at most 8 bits. */
void sim_row_integers(uint32_t columns, uint32_t k, const int32_t *a, const int32_t *b, int32_t *sums);

#endif
