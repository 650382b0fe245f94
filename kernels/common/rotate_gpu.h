/* Turning the pairs of a head: the device source that rope and rope3d share.
 *
 * Each pair (a, b) becomes (a cos - b sin, a sin + b cos), in f32, with one rounding. A thread takes a vector's worth
 * of pairs at a time, which are two vectors of 16 bytes: of the head's two halves, or, where pairs lie side by side, as
 * far apart as lets neighbours read and write neighbouring vectors. Without 16-byte alignment threads go by pairs.
 * Angles are fractions of a turn in 64-bit integers, exact at any position (turn.h). */
#ifndef KILN_KERNELS_COMMON_ROTATE_GPU_H
#define KILN_KERNELS_COMMON_ROTATE_GPU_H

#include "kernels/common/device.h"
#include "kernels/common/place.h"

/* The pairs of a head, and how they lie. */
typedef struct kiln_pairs {
    const uint64_t *frequencies;
    uint32_t count;
    uint32_t step; /* from the first to the second of a pair: 1, or count */
    uint32_t wide; /* non-zero: heads and their halves are 16-byte aligned */
} kiln_pairs;

KILN_INLINE void kiln_turn(float *a, float *b, uint64_t angle) {
    kiln_direction d = kiln_direction_of(angle);
    float first = *a, second = *b;
    *a = KILN_FMA(first, d.cosine, -(second * d.sine));
    *b = KILN_FMA(first, d.sine, second * d.cosine);
}

/* The pairs of the vectors at first and second: of halves the same, from pair number first on. */
KILN_INLINE void kiln_turn_vectors(const kiln_pairs *pairs, const kiln_place *place, kiln_element *y,
                                   const kiln_element *x, uint32_t first, uint32_t second) {
    kiln_vector va = kiln_vector_load(x + first), vb = kiln_vector_load(x + second);
    float a[4], b[4];
    KILN_LOOP
    for (uint32_t quad = 0; quad < KILN_QUADS; quad++) {
        kiln_quad_take(&va, a);
        kiln_quad_take(&vb, b);
        if (pairs->step != 1) {
            KILN_UNROLL
            for (uint32_t i = 0; i < 4; i++)
                kiln_turn(&a[i], &b[i], kiln_angle(place, pairs->frequencies, first + 4 * quad + i));
        } else {
            KILN_UNROLL
            for (uint32_t i = 0; i < 2; i++) {
                uint32_t number = 2 * quad + i;
                kiln_turn(&a[2 * i], &a[2 * i + 1], kiln_angle(place, pairs->frequencies, first / 2 + number));
                kiln_turn(&b[2 * i], &b[2 * i + 1], kiln_angle(place, pairs->frequencies, second / 2 + number));
            }
        }
        kiln_quad_give(&va, a);
        kiln_quad_give(&vb, b);
    }
    kiln_vector_store(y + first, va);
    kiln_vector_store(y + second, vb);
}

/* A thread's share of a head: it is number lane of lanes. */
KILN_INLINE void kiln_turn_head(const kiln_pairs *pairs, const kiln_place *place, kiln_element *y,
                                const kiln_element *x, uint32_t lane, uint32_t lanes) {
    if (pairs->wide) {
        KILN_LOOP
        for (uint32_t begin = 0; begin + lane * KILN_VECTOR < pairs->count; begin += lanes * KILN_VECTOR) {
            uint32_t first = begin + lane * KILN_VECTOR, second = first + pairs->step;
            if (pairs->step == 1) {
                uint32_t rest = pairs->count - begin, round = lanes * KILN_VECTOR;
                first += begin;
                second = first + (rest < round ? rest : round);
            }
            kiln_turn_vectors(pairs, place, y, x, first, second);
        }
        return;
    }
    uint32_t stride = pairs->step == 1 ? 2 : 1;
    KILN_LOOP
    for (uint32_t pair = lane; pair < pairs->count; pair += lanes) {
        uint64_t first = (uint64_t)pair * stride, second = first + pairs->step;
        float a = kiln_element_to_f32(x[first]), b = kiln_element_to_f32(x[second]);
        kiln_turn(&a, &b, kiln_angle(place, pairs->frequencies, pair));
        y[first] = kiln_element_from_f32(a);
        y[second] = kiln_element_from_f32(b);
    }
}

#endif
