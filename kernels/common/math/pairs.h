/* Two elements of 16 bits compared at once, where the device does that: KILN_PAIRS_COMPARED is 1 there.
 *
 * kiln_pair_max(a, b), kiln_pair_min(a, b)   in each half the greater or the lesser number; the other operand's if one
 *                                            is NaN
 * kiln_pair_greater(a, b)                    in each half the greater magnitude, with some sign, likewise
 * kiln_pair_greater_or_nan(a, b)             the same, and NaN if an operand is */
#ifndef KILN_KERNELS_COMMON_MATH_PAIRS_H
#define KILN_KERNELS_COMMON_MATH_PAIRS_H

#include "kernels/common/device.h"

#if !defined(KILN_PART_f32) && defined(__CUDACC__) && __CUDA_ARCH__ >= 860
#define KILN_PAIRS_COMPARED 1
#include "kernels/arch/sm86.h"
#if defined(KILN_PART_f16)
#define kiln_pair_max(a, b)            kiln_sm86_max_f16x2(a, b)
#define kiln_pair_min(a, b)            kiln_sm86_min_f16x2(a, b)
#define kiln_pair_greater(a, b)        kiln_sm86_greater_f16x2(a, b)
#define kiln_pair_greater_or_nan(a, b) kiln_sm86_greater_or_nan_f16x2(a, b)
#else
#define kiln_pair_max(a, b)            kiln_sm86_max_bf16x2(a, b)
#define kiln_pair_min(a, b)            kiln_sm86_min_bf16x2(a, b)
#define kiln_pair_greater(a, b)        kiln_sm86_greater_bf16x2(a, b)
#define kiln_pair_greater_or_nan(a, b) kiln_sm86_greater_or_nan_bf16x2(a, b)
#endif
#else
#define KILN_PAIRS_COMPARED 0
#endif

#endif
