/* rope on the CPU, and its definition: see rope_gpu.c for the meaning of its groups.
 *
 * Directions are found once for a token, for a tile of pairs at a time, and used for all of a group's heads.
 *
 * Floor: one read and one write of the tensor at memory bandwidth.
 * Test: build/tests/ops/rope_test */
#include "kernels/common/cpu.h"
#include "kernels/common/turn.h"
#include "kernels/rope/rope_args.h"

enum { PAIRS = KILN_TILE / 2 }; /* of a tile */

typedef struct directions {
    float cosines[PAIRS], sines[PAIRS];
} directions;

KILN_INLINE void find_directions(directions *d, const uint64_t *frequencies, uint64_t position, size_t count) {
    for (size_t i = 0; i < count; i++) {
        kiln_direction direction = kiln_direction_of(position * frequencies[i]);
        d->cosines[i] = direction.cosine;
        d->sines[i] = direction.sine;
    }
}

/* Writes count elements, computed into the tile that kiln_tile_target gave. */
KILN_INLINE void turn_halves(const directions *d, void *y, const void *x, uint32_t step, size_t count,
                             kiln_cpu_part part) {
    float a_tile[PAIRS], b_tile[PAIRS], a_out[PAIRS], b_out[PAIRS];
    const float *a = kiln_tile_load(a_tile, x, count, part);
    const float *b = kiln_tile_load(b_tile, kiln_at(x, step, part), count, part);
    for (size_t i = 0; i < count; i++) {
        float first = a[i], second = b[i];
        a_out[i] = KILN_FMA(first, d->cosines[i], -(second * d->sines[i]));
        b_out[i] = KILN_FMA(first, d->sines[i], second * d->cosines[i]);
    }
    if (part == KILN_CPU_f32) {
        memcpy(y, a_out, count * sizeof *a_out);
        memcpy(kiln_at_mut(y, step, part), b_out, count * sizeof *b_out);
    } else {
        kiln_tile_write(y, a_out, count, part, false);
        kiln_tile_write(kiln_at_mut(y, step, part), b_out, count, part, false);
    }
}

KILN_INLINE void turn_neighbours(const directions *d, void *y, const void *x, size_t count, kiln_cpu_part part) {
    float tile[KILN_TILE], out[KILN_TILE];
    const float *values = kiln_tile_load(tile, x, 2 * count, part);
    for (size_t i = 0; i < count; i++) {
        float first = values[2 * i], second = values[2 * i + 1];
        out[2 * i] = KILN_FMA(first, d->cosines[i], -(second * d->sines[i]));
        out[2 * i + 1] = KILN_FMA(first, d->sines[i], second * d->cosines[i]);
    }
    if (part == KILN_CPU_f32)
        memcpy(y, out, 2 * count * sizeof *out);
    else
        kiln_tile_write(y, out, 2 * count, part, false);
}

/* One token's heads from first on. */
KILN_INLINE void turn_heads(const kiln_rope_args *args, uint64_t token, uint32_t first, uint32_t end,
                            kiln_cpu_part part) {
    uint64_t position = (uint64_t)args->positions[token];
    directions d;
    for (uint32_t pair = 0; pair < args->pairs; pair += PAIRS) {
        size_t count = kiln_min(args->pairs - pair, PAIRS);
        find_directions(&d, args->frequencies + pair, position, count);
        for (uint32_t head = first; head < end; head++) {
            uint64_t in = token * (uint64_t)args->x_stride + head * (uint64_t)args->x_head_stride;
            uint64_t out = token * (uint64_t)args->y_stride + head * (uint64_t)args->y_head_stride;
            uint64_t begin = args->step == 1 ? 2 * (uint64_t)pair : pair;
            const void *x = kiln_at(args->x, in + begin, part);
            void *y = kiln_at_mut(args->y, out + begin, part);
            if (args->step == 1)
                turn_neighbours(&d, y, x, count, part);
            else
                turn_halves(&d, y, x, args->step, count, part);
        }
    }
}

KILN_INLINE void rope(const void *arguments, const kiln_cpu_span *span, kiln_cpu_part part) {
    const kiln_rope_args args = *(const kiln_rope_args *)arguments; /* what no store can change */
    uint32_t heads = KILN_GROUP >> args.lanes_log2;
    for (uint64_t group = span->begin; group < span->end; group++) {
        uint64_t token = group / span->grid[0], first = group % span->grid[0] * heads;
        if (token >= (uint64_t)args.tokens) break;
        turn_heads(&args, token, (uint32_t)first, (uint32_t)kiln_min(first + heads, args.heads), part);
    }
}
KILN_CPU_KERNEL(rope)
