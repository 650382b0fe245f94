/* Floating-point arithmetic as the ISA documents define it, on bits: the reference for tests of AMD instructions. Sums
 * and products are made of exact integers and rounded once.
 *
 * Sources: AMD's ISA documents ("Vega", "CDNA 3", "RDNA 2" to "RDNA 4"). They leave open which NaN an instruction hands
 * on; here it is the first NaN operand, quieted under IEEE, except that an invalid product comes before a NaN addend,
 * and what an invalid operation makes is negative, as public measurements of RDNA 3 and RDNA 4 have it. */
#ifndef KILN_TESTS_SIM_AMDGCN_REFERENCE_H
#define KILN_TESTS_SIM_AMDGCN_REFERENCE_H

#include "tests/sim/tests/common/exact.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct ref_format {
    int exponent, mantissa; /* bits */
} ref_format;

extern const ref_format F16[1], F32[1], F64[1];

/* Fields of MODE as they hold for a format. gfx12 has IEEE and DX10_CLAMP for good. */
typedef struct ref_mode {
    uint32_t bits;
    uint32_t major;
} ref_mode;

bool ref_ieee(ref_mode mode);
bool ref_nan_clamps(ref_mode mode);
bool ref_keeps_inputs(const ref_format *f, ref_mode mode);
bool ref_keeps_outputs(const ref_format *f, ref_mode mode);
exact_rounding ref_rounding(const ref_format *f, ref_mode mode);

uint64_t ref_sign(const ref_format *f);
uint64_t ref_infinity(const ref_format *f);
uint64_t ref_quiet(const ref_format *f);
uint64_t ref_default_nan(const ref_format *f);
bool ref_is_nan(const ref_format *f, uint64_t a);
bool ref_is_signalling(const ref_format *f, uint64_t a);
bool ref_is_denormal(const ref_format *f, uint64_t a);
bool ref_is_infinite(const ref_format *f, uint64_t a);
bool ref_is_zero(const ref_format *f, uint64_t a);

/* The number; the bits must not be a NaN's. */
double ref_value(const ref_format *f, uint64_t a);
/* The bits of a finite or infinite number, rounded; -0 keeps its sign. */
uint64_t ref_bits(const ref_format *f, double value, exact_rounding rounding);

/* Denormals flushed as mode says. */
uint64_t ref_in(const ref_format *f, ref_mode mode, uint64_t a);
uint64_t ref_out(const ref_format *f, ref_mode mode, uint64_t a);
uint64_t ref_quieted(const ref_format *f, ref_mode mode, uint64_t a);

uint64_t ref_fma(const ref_format *f, ref_mode mode, uint64_t a, uint64_t b, uint64_t c);
uint64_t ref_add(const ref_format *f, ref_mode mode, uint64_t a, uint64_t b);
uint64_t ref_mul(const ref_format *f, ref_mode mode, uint64_t a, uint64_t b);
/* With a rounding of the product, and of f32 without denormals: v_mad, v_mac. */
uint64_t ref_mad(const ref_format *f, ref_mode mode, uint64_t a, uint64_t b, uint64_t c);
uint64_t ref_negated(const ref_format *f, uint64_t a);

uint64_t ref_min(const ref_format *f, ref_mode mode, uint64_t a, uint64_t b);
uint64_t ref_max(const ref_format *f, ref_mode mode, uint64_t a, uint64_t b);
uint64_t ref_minimum(const ref_format *f, ref_mode mode, uint64_t a, uint64_t b);
uint64_t ref_maximum(const ref_format *f, ref_mode mode, uint64_t a, uint64_t b);
uint64_t ref_med3(const ref_format *f, ref_mode mode, uint64_t a, uint64_t b, uint64_t c);

/* One of < = > ?, the last for unordered. */
char ref_order(const ref_format *f, ref_mode mode, uint64_t a, uint64_t b);
/* The bit of v_cmp_class: signalling NaN, quiet NaN, -inf, -normal, -denormal, -0, 0, denormal, normal, inf. */
int ref_class(const ref_format *f, uint64_t a);

uint64_t ref_convert(const ref_format *to, const ref_format *from, ref_mode mode, uint64_t a);
/* Of an integer. */
uint64_t ref_from_integer(const ref_format *to, ref_mode mode, __int128 a);
/* Towards zero and saturated to [least, most]; NaN gives 0. */
__int128 ref_to_integer(const ref_format *from, ref_mode mode, uint64_t a, __int128 least, __int128 most);
/* To [least, 1], times most, to nearest even; NaN gives 0. */
__int128 ref_normalised(const ref_format *from, uint64_t a, double least, double most);
/* f32: the largest integer up to a + add, saturated to an i32. */
__int128 ref_floor_integer(ref_mode mode, uint64_t a, double add);
/* f32 to f16 towards zero, whatever the mode's rounding. */
uint64_t ref_cut_half(ref_mode mode, uint64_t a);

/* f32 to 0..255, rounded as the mode says; NaN gives 0. */
unsigned ref_to_byte(ref_mode mode, uint64_t a);
/* f64: the part of 2 / pi that v_trig_preop takes, from Machin's formula. */
uint64_t ref_trig_preop(ref_mode mode, uint64_t a, uint64_t segment);

/* Parts: a number rounded by a function of the C library; what is left above floor, below 1; a = mantissa * 2^exponent.
 */
uint64_t ref_whole(const ref_format *f, ref_mode mode, uint64_t a, double (*whole)(double));
uint64_t ref_fract(const ref_format *f, ref_mode mode, uint64_t a);
uint64_t ref_frexp_mantissa(const ref_format *f, ref_mode mode, uint64_t a);
int ref_frexp_exponent(const ref_format *f, ref_mode mode, uint64_t a);
uint64_t ref_ldexp(const ref_format *f, ref_mode mode, uint64_t a, __int128 exponent);

/* A division: the scaling of a, which is b, the denominator, or c, the numerator; whether c / b is far from 1; the
 * fused multiply-add that undoes the scaling; the sign and the special cases. */
uint64_t ref_div_scale(const ref_format *f, ref_mode mode, uint64_t a, uint64_t b, uint64_t c);
bool ref_div_far(const ref_format *f, uint64_t b, uint64_t c);
uint64_t ref_div_fmas(const ref_format *f, ref_mode mode, uint64_t a, uint64_t b, uint64_t c, bool scale);
uint64_t ref_div_fixup(const ref_format *f, ref_mode mode, uint64_t a, uint64_t b, uint64_t c);

bool ref_has_zero(const ref_format *f, ref_mode mode, uint64_t a, uint64_t b);
ref_mode ref_without_denormals(ref_mode mode);

/* omod (0, 1: half, 2: twice, 4: four times), then clamp. */
uint64_t ref_modified(const ref_format *f, ref_mode mode, uint64_t a, int omod, bool clamp);

#endif
