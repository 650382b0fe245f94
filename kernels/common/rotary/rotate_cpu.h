/* Rotating the pairs of heads on the CPU, for rope and rope3d: directions (cosine and sine) are computed once for a
 * token, a tile of pairs at a time, and used for all heads of a block. */
#ifndef KILN_KERNELS_COMMON_ROTARY_ROTATE_CPU_H
#define KILN_KERNELS_COMMON_ROTARY_ROTATE_CPU_H

#include "kernels/common/cpu.h"
#include "kernels/common/rotary/place.h"
#include "kernels/common/rotary/turn_source.h"

enum { KILN_TILE_PAIRS = KILN_TILE / 2 };

typedef struct kiln_directions {
    float cosines[KILN_TILE_PAIRS], sines[KILN_TILE_PAIRS];
} kiln_directions;

/* The heads of a token that a block rotates. */
typedef struct kiln_heads {
    void *y; /* of the token */
    const void *x;
    int64_t y_head_stride, x_head_stride;
    uint32_t first, end;
    uint32_t pairs;
    uint32_t step; /* elements from the first to the second of a pair: 1, or pairs */
    const uint64_t *frequencies;
    const void *cosines, *sines; /* the position's row of the table */
    float scale;                 /* of directions */
    uint32_t source;             /* kiln_turn_source */
    bool nontemporal;
} kiln_heads;

/* Whether that many heads are stored non-temporally. */
KILN_INLINE bool kiln_heads_are_nontemporal(uint64_t heads, uint32_t pairs, kiln_cpu_dtype dtype) {
    return heads * pairs * 2 * kiln_dtype_size(dtype) >= KILN_NONTEMPORAL_BYTES;
}

KILN_INLINE void kiln_store(void *y, const float *values, size_t count, kiln_cpu_dtype dtype, bool nontemporal) {
    if (dtype == KILN_CPU_f32 && !nontemporal)
        memcpy(y, values, count * sizeof *values);
    else
        kiln_tile_write(y, values, count, dtype, nontemporal);
}

/* tile holds what is read, and then what is written. */
KILN_INLINE void kiln_turn_halves(const kiln_directions *d, float *tile, void *y, const void *x, uint32_t step,
                                  size_t count, kiln_cpu_dtype dtype, bool nontemporal) {
    float *a_tile = tile, *b_tile = tile + KILN_TILE_PAIRS;
    const float *a = kiln_tile_read(a_tile, x, count, dtype);
    const float *b = kiln_tile_read(b_tile, kiln_at(x, step, dtype), count, dtype);
    KILN_INDEPENDENT
    for (size_t i = 0; i < count; i++) {
        float first = a[i], second = b[i];
        a_tile[i] = KILN_FMA(first, d->cosines[i], -(second * d->sines[i]));
        b_tile[i] = KILN_FMA(first, d->sines[i], second * d->cosines[i]);
    }
    kiln_store(y, a_tile, count, dtype, nontemporal);
    kiln_store(kiln_at_mut(y, step, dtype), b_tile, count, dtype, nontemporal);
}

KILN_INLINE void kiln_turn_neighbours(const kiln_directions *d, float *tile, void *y, const void *x, size_t count,
                                      kiln_cpu_dtype dtype, bool nontemporal) {
    const float *values = kiln_tile_read(tile, x, 2 * count, dtype);
    KILN_INDEPENDENT
    for (size_t i = 0; i < count; i++) {
        float first = values[2 * i], second = values[2 * i + 1];
        tile[2 * i] = KILN_FMA(first, d->cosines[i], -(second * d->sines[i]));
        tile[2 * i + 1] = KILN_FMA(first, d->sines[i], second * d->cosines[i]);
    }
    kiln_store(y, tile, 2 * count, dtype, nontemporal);
}

KILN_INLINE void kiln_take_row(float *to, const void *row, uint32_t first, size_t count, kiln_cpu_dtype dtype) {
    const float *values = kiln_tile_read(to, kiln_at(row, first, dtype), count, dtype);
    if (values != to) memcpy(to, values, count * sizeof *to);
}

/* Computes the directions of count pairs from the first on. */
KILN_INLINE void kiln_take_directions(kiln_directions *d, const kiln_heads *heads, const kiln_place *place,
                                      uint32_t first, size_t count, kiln_cpu_dtype dtype) {
    if (heads->source == KILN_TURN_BY_TABLE || heads->source == KILN_TURN_BY_TABLE_F32) {
        kiln_cpu_dtype of_table = heads->source == KILN_TURN_BY_TABLE ? dtype : KILN_CPU_f32;
        kiln_take_row(d->cosines, heads->cosines, first, count, of_table);
        kiln_take_row(d->sines, heads->sines, first, count, of_table);
    } else {
        for (size_t i = 0; i < count; i++) {
            kiln_direction direction = {1.0f, 0.0f};
            if (heads->source == KILN_TURN_BY_FREQUENCY)
                direction = kiln_direction_of(kiln_angle(place, heads->frequencies, first + (uint32_t)i));
            d->cosines[i] = direction.cosine;
            d->sines[i] = direction.sine;
        }
    }
    KILN_INDEPENDENT
    for (size_t i = 0; i < count; i++) {
        d->cosines[i] *= heads->scale;
        d->sines[i] *= heads->scale;
    }
}

KILN_INLINE void kiln_turn_heads(const kiln_heads *heads, const kiln_place *place, kiln_cpu_dtype dtype) {
    kiln_directions d;
    float tile[KILN_TILE];
    for (uint32_t pair = 0; pair < heads->pairs; pair += KILN_TILE_PAIRS) {
        size_t count = kiln_min(heads->pairs - pair, KILN_TILE_PAIRS);
        kiln_take_directions(&d, heads, place, pair, count, dtype);
        uint64_t begin = heads->step == 1 ? 2 * (uint64_t)pair : pair;
        for (uint32_t head = heads->first; head < heads->end; head++) {
            const void *x = kiln_at(heads->x, head * (uint64_t)heads->x_head_stride + begin, dtype);
            void *y = kiln_at_mut(heads->y, head * (uint64_t)heads->y_head_stride + begin, dtype);
            if (heads->step == 1)
                kiln_turn_neighbours(&d, tile, y, x, count, dtype, heads->nontemporal);
            else
                kiln_turn_halves(&d, tile, y, x, heads->step, count, dtype, heads->nontemporal);
        }
    }
}

#endif
