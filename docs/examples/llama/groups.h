/* Quantising to integers of 4 bits on the host: each group of a row between its least and its greatest element. */
#ifndef LLAMA_GROUPS_H
#define LLAMA_GROUPS_H

#include "weights.h"

/* How many elements of a row of k share a scale and a zero: 128, as AWQ's and GPTQ's models have it, where that divides
 * k, else 32 or, where that does not, all. */
int64_t llama_group_of(int64_t k);

/* A matrix [n, k], k even, in the form that kiln_gemm_w4a16_* takes: weights [n, k / 2], and scales and zeros
 * [n, k / group], rounded to the precision. An element becomes the integer whose value, with its scale and zero as they
 * were rounded, is nearest. */
void llama_groups_quantise(const float *matrix, int64_t n, int64_t k, llama_precision precision, uint8_t *weights,
                           void *scales, void *zeros);

#endif
