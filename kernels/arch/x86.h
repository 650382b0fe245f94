/* What CPU kernels use of the vector instructions of x86-64-v3 and x86-64-v4, and of those that they ask a machine for.
 *
 * immintrin.h has those of all processors, in 70,000 lines: GCC takes 0.23 s to read them for x86-64-v4 and 0.33 s for
 * x86-64-v3, and its parts that are named here 0.1 and 0.03 s. They ask to be read by it alone, and how they need each
 * other is their release's affair: this is that of GCC 12. */
#ifndef KILN_KERNELS_ARCH_X86_H
#define KILN_KERNELS_ARCH_X86_H

#if defined(__clang__) || __GNUC__ != 12
#include <immintrin.h>
#else
#define _IMMINTRIN_H_INCLUDED
#include <smmintrin.h>

#include <avxintrin.h>

#include <avx2intrin.h>

#include <f16cintrin.h>
#include <fmaintrin.h>
#if defined(__AVX512BW__)
#include <avx512fintrin.h>

typedef unsigned __mmask32; /* is avx512vlintrin.h's, of whose 14,000 lines it is all that is needed */

#include <avx512bwintrin.h>
#include <avx512dqintrin.h>
#include <avx512vnniintrin.h>
#include <avx512vpopcntdqintrin.h>
#else
#include <avxvnniintrin.h>
#endif
#endif

#endif
