/* Rotating the pairs of a head: the device source that rope and rope3d share.
 *
 * Each pair (a, b) becomes (a cos - b sin, a sin + b cos), in f32, with one rounding. A thread takes the pairs of two
 * vectors of 16 bytes at a time: one from each half of the head, or, where the elements of a pair are adjacent, so far
 * apart that neighbouring threads read and write neighbouring vectors. Without 16-byte alignment a thread takes one
 * pair at a time. Angles are fractions of a turn in 64-bit integers, exact at any position (turn.h). */
#ifndef KILN_KERNELS_COMMON_ROTATE_GPU_H
#define KILN_KERNELS_COMMON_ROTATE_GPU_H

#include "kernels/common/device.h"
#include "kernels/common/place.h"
#include "kernels/common/turn_source.h"
#include "kernels/common/values.h"

/* The pairs of a head, their layout, and where their directions come from. */
typedef struct kiln_pairs {
    const uint64_t *frequencies;
    const void *cosines, *sines; /* the position's row of the table */
    float scale;                 /* of directions */
    uint32_t source;             /* kiln_turn_source, of the call */
    bool inside;                 /* the position is in the table, if there is one: others are not turned */
    uint32_t count;
    uint32_t step; /* elements from the first to the second of a pair: 1, or count */
    uint32_t wide; /* kiln_rotate_wide: what is 16-byte aligned */
} kiln_pairs;

KILN_INLINE kiln_direction kiln_pair_direction(const kiln_pairs *pairs, const kiln_place *place, uint32_t pair) {
    kiln_direction d = {1.0f, 0.0f};
    if (pairs->source == KILN_TURN_BY_FREQUENCY) {
        d = kiln_direction_of(kiln_angle(place, pairs->frequencies, pair));
    } else if (pairs->inside && pairs->source == KILN_TURN_BY_TABLE) {
        d.cosine = kiln_element_to_f32(((const kiln_element *)pairs->cosines)[pair]);
        d.sine = kiln_element_to_f32(((const kiln_element *)pairs->sines)[pair]);
    } else if (pairs->inside && pairs->source == KILN_TURN_BY_TABLE_F32) {
        d.cosine = ((const float *)pairs->cosines)[pair];
        d.sine = ((const float *)pairs->sines)[pair];
    }
    d.cosine *= pairs->scale;
    d.sine *= pairs->scale;
    return d;
}

KILN_INLINE void kiln_turn(float *a, float *b, kiln_direction d) {
    float first = *a, second = *b;
    *a = KILN_FMA(first, d.cosine, -(second * d.sine));
    *b = KILN_FMA(first, d.sine, second * d.cosine);
}

/* As kiln_quad_take and kiln_quad_give, but converted two by two where the target can. */
KILN_INLINE void kiln_turn_take(kiln_vector *vector, float *values) {
#if defined(KILN_PART_f32)
    kiln_quad_take(vector, values);
#else
    kiln_pair_values(values, vector->words[0]);
    kiln_pair_values(values + 2, vector->words[1]);
    vector->words[0] = vector->words[2];
    vector->words[1] = vector->words[3];
#endif
}
KILN_INLINE void kiln_turn_give(kiln_vector *vector, const float *values) {
#if defined(KILN_PART_f32)
    kiln_quad_give(vector, values);
#else
    vector->words[0] = vector->words[2];
    vector->words[1] = vector->words[3];
    vector->words[2] = kiln_pair_of(values);
    vector->words[3] = kiln_pair_of(values + 2);
#endif
}

/* Before the loop over a vector's quads: a loop, for the size of the image, unless the includer says otherwise. */
#if !defined(KILN_TURN_QUADS)
#define KILN_TURN_QUADS KILN_LOOP
#endif

/* Rotates the pairs of two vectors, from pair number first on. */
KILN_INLINE void kiln_turn_vectors(const kiln_pairs *pairs, const kiln_place *place, kiln_element *y,
                                   const kiln_element *x, uint32_t first, uint32_t second) {
    kiln_vector va = kiln_vector_load(x + first), vb = kiln_vector_load(x + second);
    uint32_t left = first, right = first + 2; /* the first of two pairs each, whose directions a quad needs */
    if (pairs->step == 1) {
        left = first / 2;
        right = second / 2;
    }
    float a[4], b[4];
    kiln_direction d[4];
    KILN_TURN_QUADS
    for (uint32_t quad = 0; quad < KILN_QUADS; quad++) {
        kiln_turn_take(&va, a);
        kiln_turn_take(&vb, b);
        KILN_UNROLL
        for (uint32_t i = 0; i < 2; i++) {
            d[i] = kiln_pair_direction(pairs, place, left + i);
            d[2 + i] = kiln_pair_direction(pairs, place, right + i);
        }
        if (pairs->step != 1) {
            KILN_UNROLL
            for (uint32_t i = 0; i < 4; i++)
                kiln_turn(&a[i], &b[i], d[i]);
            left += 4;
            right += 4;
        } else {
            KILN_UNROLL
            for (uint32_t i = 0; i < 2; i++) {
                kiln_turn(&a[2 * i], &a[2 * i + 1], d[i]);
                kiln_turn(&b[2 * i], &b[2 * i + 1], d[2 + i]);
            }
            left += 2;
            right += 2;
        }
        kiln_turn_give(&va, a);
        kiln_turn_give(&vb, b);
    }
    kiln_vector_store(y + first, va);
    kiln_vector_store(y + second, vb);
}

/* A thread's share of a head: the thread is number lane of lanes. */
KILN_INLINE void kiln_turn_head(const kiln_pairs *pairs, const kiln_place *place, kiln_element *y,
                                const kiln_element *x, uint32_t lane, uint32_t lanes) {
    if (pairs->wide & KILN_ROTATE_WIDE_HEADS) {
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
        kiln_turn(&a, &b, kiln_pair_direction(pairs, place, pair));
        y[first] = kiln_element_from_f32(a);
        y[second] = kiln_element_from_f32(b);
    }
}

#endif
