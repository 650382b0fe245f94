/* Sums of products, as matrix instructions make them. Vendors do not define them to the bit, so a simulated device
 * makes them in one of four ways, which KILN_SIM_MATRIX names; what is right must be right under all of them.
 *
 *   exact       rounded once, to nearest even, at the end
 *   sequential  a fused multiply-add for each product, in order, each rounded to nearest even
 *   truncating  all addends aligned to the largest and cut off, towards zero, to as many bits as the result has; so is
 *               the result. Matrix units are built like this; they keep some bits more
 *   hopper      as was recorded on an H100: ptx_matrix_sum.c, for devices from sm_90 on; all others add exactly */
#ifndef KILN_TESTS_SIM_SUM_H
#define KILN_TESTS_SIM_SUM_H

#include "tests/sim/core/sim_float.h"

typedef enum sim_sum_mode {
    SIM_SUM_EXACT,
    SIM_SUM_SEQUENTIAL,
    SIM_SUM_TRUNCATING,
    SIM_SUM_HOPPER,
    SIM_SUM_MODES
} sim_sum_mode;

/* The mode that KILN_SIM_MATRIX names; NULL (unset) leaves *out_mode as it is. False: the text names none. */
bool sim_sum_mode_named(const char *text, sim_sum_mode *out_mode);

/* addend + a[0] * b[0] + ... + a[count - 1] * b[count - 1], as the bits of f32, f16 or bf16. Each product must be exact
 * in f64, as those of f32 and all narrower formats are. A NaN is the format's canonical one; what is beyond the format
 * is infinite. */
uint32_t sim_sum(sim_sum_mode mode, sim_format format, double addend, const double *a, const double *b, int count);

/* What numbers have in common: they are multiples of 2^low and less than 2^high. Infinities and NaNs are beyond all. */
typedef struct sim_span {
    int low, high;
} sim_span;
sim_span sim_span_of(const double *values, int count);

/* sim_sum of SIM_SUM_EXACT with the spans of a and b, which are those of many sums: most are known by them to need no
 * rounding before the last. */
uint32_t sim_sum_spanned(sim_format format, double addend, const double *a, const double *b, int count, sim_span of_a,
                         sim_span of_b);

/* The same as sim_sum of f64. Products below 2^-969 may lose their last bits. */
double sim_sum_f64(sim_sum_mode mode, double addend, const double *a, const double *b, int count);

enum { SIM_SUM_COUNT_MAX = 256 };

#endif
