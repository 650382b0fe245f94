/* A thread's share of a row: every lanes-th vector of the block's tile from first on. */
#ifndef KILN_KERNELS_COMMON_SPAN_H
#define KILN_KERNELS_COMMON_SPAN_H

#include "kernels/common/device.h"

typedef struct kiln_span {
    uint64_t row;
    uint64_t start; /* of the tile: element of the row */
    uint32_t count; /* elements; 0 for a row beyond the last */
    uint32_t whole; /* vectors that are read and written with one access */
    uint32_t first; /* vector, or element where elements are processed one by one */
    uint32_t lanes; /* the step */
} kiln_span;

KILN_INLINE kiln_span kiln_span_of(const kiln_shape *shape) {
    kiln_span s;
    s.lanes = 1u << shape->lanes_log2;
    s.first = kiln_thread() & (s.lanes - 1);
    s.row = (kiln_block() << (KILN_BLOCK_LOG2 - shape->lanes_log2)) + (kiln_thread() >> shape->lanes_log2);
    s.start = (uint64_t)kiln_tile() * shape->tile;
    uint64_t left = s.row < (uint64_t)shape->rows ? (uint64_t)shape->cols - s.start : 0;
    s.count = left < shape->tile ? (uint32_t)left : shape->tile;
    s.whole = shape->wide ? s.count / KILN_VECTOR : 0;
    return s;
}

/* The first element of the span's tile in a tensor whose rows are `stride` elements apart. */
KILN_INLINE kiln_element *kiln_span_in(kiln_span s, void *tensor, int64_t stride) {
    return (kiln_element *)tensor + s.row * (uint64_t)stride + s.start;
}
KILN_INLINE const kiln_element *kiln_span_of_input(kiln_span s, const void *tensor, int64_t stride) {
    return (const kiln_element *)tensor + s.row * (uint64_t)stride + s.start;
}

/* The loop over the span's vectors that take one access, and over the elements that remain. */
#define KILN_FOR_WHOLE(s, vector) for (uint32_t vector = (s).first; vector < (s).whole; vector += (s).lanes)
#define KILN_FOR_REST(s, element) \
    for (uint32_t element = (s).whole * KILN_VECTOR + (s).first; element < (s).count; element += (s).lanes)

#endif
