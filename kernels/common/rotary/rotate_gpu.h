/* Rotating the pairs of a head: the device source that rope and rope3d share.
 *
 * Each pair (a, b) becomes (a cos - b sin, a sin + b cos), in f32, with one rounding. A thread takes the pairs of two
 * vectors of 16 bytes at a time: one from each half of the head, or, where the elements of a pair are adjacent, so far
 * apart that neighbouring threads read and write neighbouring vectors. Without 16-byte alignment a thread takes one
 * pair at a time. Angles are fractions of a turn in 64-bit integers, exact at any position (turn.h). */
#ifndef KILN_KERNELS_COMMON_ROTARY_ROTATE_GPU_H
#define KILN_KERNELS_COMMON_ROTARY_ROTATE_GPU_H

#include "kernels/common/device.h"

#if defined(__CUDACC__)
#include "kernels/arch/ptx.h"
#define KILN_FLIPPED kiln_ptx_flipped
#endif

#include "kernels/common/rotary/place.h"
#include "kernels/common/rotary/turn_source.h"
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

KILN_INLINE kiln_direction kiln_scaled(kiln_direction d, float scale) {
    d.cosine *= scale;
    d.sine *= scale;
    return d;
}

KILN_INLINE kiln_direction kiln_frequency_direction(const kiln_pairs *pairs, const kiln_place *place, uint32_t pair) {
    return kiln_scaled(kiln_direction_of(kiln_angle(place, pairs->frequencies, pair)), pairs->scale);
}

KILN_INLINE kiln_direction kiln_table_direction(const kiln_pairs *pairs, uint32_t pair) {
    kiln_direction d = {1.0f, 0.0f};
    if (pairs->inside && pairs->source == KILN_TURN_BY_TABLE) {
        d.cosine = kiln_element_to_f32(((const kiln_element *)pairs->cosines)[pair]);
        d.sine = kiln_element_to_f32(((const kiln_element *)pairs->sines)[pair]);
    } else if (pairs->inside && pairs->source == KILN_TURN_BY_TABLE_F32) {
        d.cosine = ((const float *)pairs->cosines)[pair];
        d.sine = ((const float *)pairs->sines)[pair];
    }
    return kiln_scaled(d, pairs->scale);
}

KILN_INLINE kiln_direction kiln_pair_direction(const kiln_pairs *pairs, const kiln_place *place, uint32_t pair) {
    if (pairs->source == KILN_TURN_BY_FREQUENCY) return kiln_frequency_direction(pairs, place, pair);
    return kiln_table_direction(pairs, pair);
}

/* The directions of two neighbouring pairs from left on, and of two from right on. */
KILN_INLINE void kiln_quad_directions(kiln_direction *d, const kiln_pairs *pairs, const kiln_place *place,
                                      uint32_t left, uint32_t right) {
    if (pairs->source == KILN_TURN_BY_FREQUENCY) {
        KILN_UNROLL
        for (uint32_t i = 0; i < 4; i++)
            d[i] = kiln_frequency_direction(pairs, place, (i < 2 ? left : right) + i % 2);
        return;
    }
    KILN_UNROLL
    for (uint32_t i = 0; i < 4; i++)
        d[i] = kiln_table_direction(pairs, (i < 2 ? left : right) + i % 2);
}

KILN_INLINE void kiln_turn(float *a, float *b, kiln_direction d) {
    float first = *a, second = *b;
    *a = KILN_FMA(first, d.cosine, second * -d.sine);
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

/* How many heads of a token a thread has at most: one, unless the includer says otherwise. Their directions are
 * computed once. */
#if !defined(KILN_TURN_HEADS)
#define KILN_TURN_HEADS 1
#endif

/* A thread's heads: the first, and how many elements the next is further on. */
typedef struct kiln_heads {
    kiln_element *y;
    const kiln_element *x;
    uint64_t y_step, x_step;
    uint32_t count;
} kiln_heads;

/* The unrolled loop over them. */
#define KILN_FOR_HEADS(heads, h)                   \
    KILN_UNROLL                                    \
    for (uint32_t h = 0; h < KILN_TURN_HEADS; h++) \
        if (h < (heads)->count)

/* Rotates two quads of pairs, whose elements are adjacent or not. */
KILN_INLINE void kiln_turn_quads(float *a, float *b, const kiln_direction *d, bool adjacent) {
    KILN_UNROLL
    for (uint32_t i = 0; i < 4 && !adjacent; i++)
        kiln_turn(&a[i], &b[i], d[i]);
    KILN_UNROLL
    for (uint32_t i = 0; i < 2 && adjacent; i++) {
        kiln_turn(&a[2 * i], &a[2 * i + 1], d[i]);
        kiln_turn(&b[2 * i], &b[2 * i + 1], d[2 + i]);
    }
}

/* Rotates the pairs of two vectors of each head, from element number first and second on. */
KILN_INLINE void kiln_turn_vectors(const kiln_pairs *pairs, const kiln_place *place, const kiln_heads *heads,
                                   uint32_t first, uint32_t second) {
    const bool adjacent = pairs->step == 1;
    kiln_vector va[KILN_TURN_HEADS], vb[KILN_TURN_HEADS];
    KILN_FOR_HEADS(heads, h) {
        va[h] = kiln_vector_load(heads->x + h * heads->x_step + first);
        vb[h] = kiln_vector_load(heads->x + h * heads->x_step + second);
    }
    /* The first of two pairs each, whose directions a quad needs. */
    uint32_t left = adjacent ? first / 2 : first, right = adjacent ? second / 2 : first + 2;
    const uint32_t step = adjacent ? 2 : 4;
    KILN_TURN_QUADS
    for (uint32_t quad = 0; quad < KILN_QUADS; quad++, left += step, right += step) {
        kiln_direction d[4];
        kiln_quad_directions(d, pairs, place, left, right);
        KILN_FOR_HEADS(heads, h) {
            float a[4], b[4];
            kiln_turn_take(&va[h], a);
            kiln_turn_take(&vb[h], b);
            if (adjacent)
                kiln_turn_quads(a, b, d, true);
            else
                kiln_turn_quads(a, b, d, false);
            kiln_turn_give(&va[h], a);
            kiln_turn_give(&vb[h], b);
        }
    }
    KILN_FOR_HEADS(heads, h) {
        kiln_vector_store(heads->y + h * heads->y_step + first, va[h]);
        kiln_vector_store(heads->y + h * heads->y_step + second, vb[h]);
    }
}

/* A thread's share of its heads: the thread is number lane of lanes. */
KILN_INLINE void kiln_turn_heads(const kiln_pairs *pairs, const kiln_place *place, const kiln_heads *heads,
                                 uint32_t lane, uint32_t lanes) {
    if (pairs->wide & KILN_ROTATE_WIDE_HEADS) {
        KILN_LOOP
        for (uint32_t begin = 0; begin + lane * KILN_VECTOR < pairs->count; begin += lanes * KILN_VECTOR) {
            uint32_t first = begin + lane * KILN_VECTOR, second = first + pairs->step;
            if (pairs->step == 1) {
                uint32_t rest = pairs->count - begin, round = lanes * KILN_VECTOR;
                first += begin;
                second = first + (rest < round ? rest : round);
            }
            kiln_turn_vectors(pairs, place, heads, first, second);
        }
        return;
    }
    uint32_t stride = pairs->step == 1 ? 2 : 1;
    KILN_LOOP
    for (uint32_t pair = lane; pair < pairs->count; pair += lanes) {
        uint64_t first = (uint64_t)pair * stride, second = first + pairs->step;
        const kiln_direction d = kiln_pair_direction(pairs, place, pair);
        const kiln_element *x = heads->x;
        kiln_element *y = heads->y;
        KILN_LOOP
        for (uint32_t h = 0; h < heads->count; h++, x += heads->x_step, y += heads->y_step) {
            float a = kiln_element_to_f32(x[first]), b = kiln_element_to_f32(x[second]);
            kiln_turn(&a, &b, d);
            y[first] = kiln_element_from_f32(a);
            y[second] = kiln_element_from_f32(b);
        }
    }
}

#endif
