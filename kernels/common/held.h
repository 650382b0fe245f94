/* What a thread has of a row in registers, as it was read: up to four vectors, all of which it asks for before it uses
 * one, so that the latency of the memory is waited for once and not for each vector. A block holds 16 KiB. */
#ifndef KILN_KERNELS_COMMON_HELD_H
#define KILN_KERNELS_COMMON_HELD_H

#include "kernels/common/span.h"
#include "kernels/common/values.h"

enum { KILN_HELD = 4 }; /* vectors of a thread */

/* The unrolled loop over the vectors that are held, of which those at or beyond `whole` are to be left out; and the
 * loop over the vectors beyond them. */
#define KILN_FOR_HELD(s, vector, k) \
    KILN_UNROLL                     \
    for (uint32_t k = 0, vector = (s).first; k < KILN_HELD; k++, vector += (s).lanes)
#define KILN_FOR_UNHELD(s, vector) \
    for (uint32_t vector = (s).first + KILN_HELD * (s).lanes; vector < (s).whole; vector += (s).lanes)

KILN_INLINE void kiln_hold(kiln_vector *held, kiln_span s, const kiln_element *x) {
    KILN_FOR_HELD(s, vector, k)
    if (vector < s.whole) held[k] = kiln_vector_load(x + vector * KILN_VECTOR);
}

#endif
