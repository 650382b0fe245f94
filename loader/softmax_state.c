/* The state of an online softmax, in f64. */
#include "loader/elementary.h"
#include "loader/status.h"
#include <kiln/softmax_state.h>

static const double infinity = __builtin_inf();

/* What scores are relative to: the greatest or, if that is -inf, 0, so that no difference is -inf + inf. */
static double origin_of(double max) {
    return max == -infinity ? 0 : max;
}

/* e^(x - origin) for x <= origin. If origin is infinite, 1 for x equal to it and 0 for all others. */
static double weight_of(double x, double origin) {
    return x == origin ? 1 : kiln__exp(x - origin);
}

/* The greater of two; NaN if either is NaN. */
static double max_of(double a, double b) {
    return a > b || a != a ? a : b;
}

/* Adds a term and its compensation to a state's sum. The rounding error of the sum is computed exactly (Knuth, "The Art
 * of Computer Programming", vol. 2, 4.2.2, theorem B), so that the addition is commutative. */
static void add(kiln_softmax_state *state, double term, double rest) {
    double sum = state->sum + term, term_part = sum - state->sum, sum_part = sum - term_part;
    double error = (state->sum - sum_part) + (term - term_part);
    state->sum = sum;
    state->compensation = (state->compensation + rest) + error;
}

/* Rescales a state to a maximum not below its own. Returns the factor. */
static double move_to(kiln_softmax_state *state, double max) {
    double scale = weight_of(state->max, origin_of(max));
    state->max = max;
    state->sum *= scale;
    state->compensation *= scale;
    return scale;
}

static void set(double *out_scale, double scale) {
    if (out_scale) *out_scale = scale;
}

kiln_status kiln_softmax_state_init(kiln_softmax_state *state) {
    KILN__REQUIRE(state, "kiln_softmax_state_init: state is NULL");
    *state = (kiln_softmax_state){.max = -infinity};
    return KILN_OK;
}

kiln_status kiln_softmax_state_update(kiln_softmax_state *state, const double *scores, size_t count,
                                      double *out_scale) {
    KILN__REQUIRE(state, "kiln_softmax_state_update: state is NULL");
    KILN__REQUIRE(scores || !count, "kiln_softmax_state_update: scores is NULL");
    double max = state->max;
    for (size_t i = 0; i < count; i++)
        max = max_of(scores[i], max);
    set(out_scale, move_to(state, max));
    for (size_t i = 0; i < count; i++)
        add(state, weight_of(scores[i], origin_of(max)), 0);
    return KILN_OK;
}

kiln_status kiln_softmax_state_add(kiln_softmax_state *state, double max, double sum, double *out_scale) {
    KILN__REQUIRE(state, "kiln_softmax_state_add: state is NULL");
    KILN__REQUIRE(!(sum < 0), "kiln_softmax_state_add: sum is %g: must not be negative", sum);
    kiln_softmax_state block = {.max = max, .sum = max == -infinity ? 0 : sum};
    return kiln_softmax_state_merge(state, &block, out_scale);
}

kiln_status kiln_softmax_state_merge(kiln_softmax_state *state, const kiln_softmax_state *other, double *out_scale) {
    KILN__REQUIRE(state, "kiln_softmax_state_merge: state is NULL");
    KILN__REQUIRE(other, "kiln_softmax_state_merge: other is NULL");
    kiln_softmax_state moved = *other;
    double max = max_of(state->max, other->max);
    set(out_scale, move_to(state, max));
    move_to(&moved, max);
    add(state, moved.sum, moved.compensation);
    return KILN_OK;
}

kiln_status kiln_softmax_state_lse(const kiln_softmax_state *state, double *out_lse) {
    KILN__REQUIRE(state, "kiln_softmax_state_lse: state is NULL");
    KILN__REQUIRE(out_lse, "kiln_softmax_state_lse: out_lse is NULL");
    *out_lse = origin_of(state->max) + kiln__ln(state->sum + state->compensation);
    return KILN_OK;
}

kiln_status kiln_log_sum_exp(const double *values, size_t count, double *out_lse) {
    KILN__REQUIRE(values || !count, "kiln_log_sum_exp: values is NULL");
    KILN__REQUIRE(out_lse, "kiln_log_sum_exp: out_lse is NULL");
    kiln_softmax_state state = {.max = -infinity};
    KILN__TRY(kiln_softmax_state_update(&state, values, count, NULL));
    return kiln_softmax_state_lse(&state, out_lse);
}

/* max + ln(1 + e). With u, 1 + e rounded, ln(1 + e) is e ln(u) / (u - 1), in which the errors from that rounding
 * cancel. */
double kiln_log_add_exp(double a, double b) {
    double max = max_of(a, b), min = max == a ? b : a, origin = origin_of(max);
    double e = weight_of(min, origin), u = 1 + e;
    if (max == -infinity) return max;
    return u == 1 ? max + e : origin + kiln__ln(u) * (e / (u - 1));
}
