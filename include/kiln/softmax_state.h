/* The state of an online softmax, in f64: sums of exp(x) over scores that arrive block by block.
 *
 * A state consists of the greatest score so far, m, and the sum l of exp(x - m) over all scores (Milakov and
 * Gimelshein, "Online normalizer calculation for softmax", arXiv 1805.02867). A block with a greater score rescales the
 * state to the new maximum; multiply any other sum that you accumulate alongside, such as the values of attention, by
 * the same factor, which each call returns. The rounding error of l is kept in c and rescaled with it, so that sums of
 * millions of small terms, or of small terms beside a large one, are as accurate as their terms (Ogita, Rump and Oishi,
 * "Accurate sum and dot product", 2005). Terms, and factors, have a relative error of 4e-16.
 *
 *   kiln_softmax_state_init    initialises an empty state
 *   kiln_softmax_state_update  adds scores
 *   kiln_softmax_state_add     adds a block by its maximum and its sum
 *   kiln_softmax_state_merge   adds the scores of another state
 *   kiln_softmax_state_lse     returns the logarithm of the sum
 *   kiln_log_sum_exp           computes it for an array
 *   kiln_log_add_exp           computes it for two numbers
 *
 * Scores of -inf are masked: they do not contribute. If a score is +inf, the sum is the number of infinite scores and
 * its logarithm +inf. A NaN makes the sum NaN.
 *
 * This is host code; kiln_softmax_update of <kiln/ops.h> does the same for many rows on a device. States are structs in
 * the caller's memory; different threads may use different states at the same time. Nothing is allocated.
 */
#ifndef KILN_SOFTMAX_STATE_H
#define KILN_SOFTMAX_STATE_H

#include <kiln/kiln.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kiln_softmax_state {
    double max;          /* m; -inf: no score yet */
    double sum;          /* l */
    double compensation; /* c: the sum is l + c */
} kiln_softmax_state;

/* Initialises an empty state: -inf, 0, 0. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT. */
KILN_API kiln_status kiln_softmax_state_init(kiln_softmax_state *state);

/* Adds scores [count]. *out_scale receives exp(m before - m now), or 0 if there was no score before; out_scale may be
 * NULL. scores may be NULL if count is 0. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT. */
KILN_API kiln_status kiln_softmax_state_update(kiln_softmax_state *state, const double *scores, size_t count,
                                               double *out_scale);

/* Adds a block of scores, given by its greatest score max and the sum of exp(x - max) over the block, which must not be
 * negative. A block whose max is -inf is masked: it has no effect, whatever its sum. out_scale is as in
 * kiln_softmax_state_update. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT. */
KILN_API kiln_status kiln_softmax_state_add(kiln_softmax_state *state, double max, double sum, double *out_scale);

/* Adds the scores of another state. Merging is commutative to the bit. out_scale is as in kiln_softmax_state_update.
 * Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT. */
KILN_API kiln_status kiln_softmax_state_merge(kiln_softmax_state *state, const kiln_softmax_state *other,
                                              double *out_scale);

/* Gets the logarithm of the sum: *out_lse receives m + ln(l + c), or -inf if the state is empty. Returns KILN_OK,
 * KILN_ERROR_INVALID_ARGUMENT. */
KILN_API kiln_status kiln_softmax_state_lse(const kiln_softmax_state *state, double *out_lse);

/* Computes the log-sum-exp of an array without overflow: *out_lse receives ln(sum of exp(values[i])), or -inf if count
 * is 0. values may be NULL if count is 0. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT. */
KILN_API kiln_status kiln_log_sum_exp(const double *values, size_t count, double *out_lse);

/* Returns ln(e^a + e^b), computed without overflow; the other number if one is -inf; NaN if one is NaN. Never fails. */
KILN_API double kiln_log_add_exp(double a, double b);

#ifdef __cplusplus
}
#endif

#endif
