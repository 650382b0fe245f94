/* rope: each pair (a, b) of a head's elements is turned by the token's position times the pair's frequency:
 * (a cos - b sin, a sin + b cos), in f32, with one rounding.
 *
 * A group does a block of one token's heads: 1 << lanes_log2 threads share a head, and each takes a vector's worth of
 * pairs at a time, which are two vectors of 16 bytes: of the head's two halves, or side by side. Without 16-byte
 * alignment threads go by pairs. Angles are fractions of a turn in 64-bit integers, exact at any position (turn.h).
 *
 * Floor: one read and one write of the tensor at memory bandwidth.
 * Test: build/tests/ops/rope_test */
#include "kernels/common/device.h"
#include "kernels/common/turn.h"
#include "kernels/rope/rope_args.h"

KILN_INLINE void turn(float *a, float *b, uint64_t angle) {
    kiln_direction d = kiln_direction_of(angle);
    float first = *a, second = *b;
    *a = KILN_FMA(first, d.cosine, -(second * d.sine));
    *b = KILN_FMA(first, d.sine, second * d.cosine);
}

/* The vector's worth of pairs from pair on: two vectors, in quads of four pairs. */
KILN_INLINE void turn_vectors(const kiln_rope_args *args, kiln_element *y, const kiln_element *x, uint32_t pair,
                              uint64_t position) {
    bool half = args->step != 1;
    uint32_t first = half ? pair : 2 * pair, second = first + (half ? args->step : KILN_VECTOR);
    kiln_vector va = kiln_vector_load(x + first), vb = kiln_vector_load(x + second);
    const uint64_t *frequencies = args->frequencies + pair;
    float a[4], b[4];
    KILN_LOOP
    for (uint32_t quad = 0; quad < KILN_QUADS; quad++) {
        kiln_quad_take(&va, a);
        kiln_quad_take(&vb, b);
        if (half) {
            KILN_UNROLL
            for (uint32_t i = 0; i < 4; i++)
                turn(&a[i], &b[i], position * frequencies[4 * quad + i]);
        } else {
            KILN_UNROLL
            for (uint32_t i = 0; i < 2; i++) {
                turn(&a[2 * i], &a[2 * i + 1], position * frequencies[2 * quad + i]);
                turn(&b[2 * i], &b[2 * i + 1], position * frequencies[KILN_VECTOR / 2 + 2 * quad + i]);
            }
        }
        kiln_quad_give(&va, a);
        kiln_quad_give(&vb, b);
    }
    kiln_vector_store(y + first, va);
    kiln_vector_store(y + second, vb);
}

KILN_ENTRY(rope, kiln_rope_args) {
    uint32_t lanes = 1u << args.lanes_log2, lane = kiln_thread() & (lanes - 1);
    uint32_t head = kiln_tile() * (KILN_GROUP >> args.lanes_log2) + (kiln_thread() >> args.lanes_log2);
    uint64_t token = kiln_block();
    if (head >= args.heads || token >= (uint64_t)args.tokens) return;
    uint64_t position = (uint64_t)args.positions[token];
    const kiln_element *x = (const kiln_element *)args.x + token * (uint64_t)args.x_stride;
    kiln_element *y = (kiln_element *)args.y + token * (uint64_t)args.y_stride;
    x += head * (uint64_t)args.x_head_stride;
    y += head * (uint64_t)args.y_head_stride;

    if (args.wide) {
        KILN_LOOP
        for (uint32_t pair = lane * KILN_VECTOR; pair < args.pairs; pair += lanes * KILN_VECTOR)
            turn_vectors(&args, y, x, pair, position);
        return;
    }
    uint32_t stride = args.step == 1 ? 2 : 1;
    KILN_LOOP
    for (uint32_t pair = lane; pair < args.pairs; pair += lanes) {
        uint64_t first = (uint64_t)pair * stride, second = first + args.step;
        float a = kiln_element_to_f32(x[first]), b = kiln_element_to_f32(x[second]);
        turn(&a, &b, position * args.frequencies[pair]);
        y[first] = kiln_element_from_f32(a);
        y[second] = kiln_element_from_f32(b);
    }
}
