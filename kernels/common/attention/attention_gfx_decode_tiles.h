/* What a wave of attention_gfx_decode.h has of a tile: its lanes' vectors of queries, keys and values, and where in
 * memory these are. Includers define what attention_gfx_decode.h asks for. */
#ifndef KILN_KERNELS_COMMON_ATTENTION_ATTENTION_GFX_DECODE_TILES_H
#define KILN_KERNELS_COMMON_ATTENTION_ATTENTION_GFX_DECODE_TILES_H

#include "kernels/arch/gfx.h"
#include "kernels/common/attention/attention_decode.h"
#include "kernels/common/attention/attention_gfx.h"

enum : uint32_t {
    DECODE_WAVES = 4,
    DECODE_THREADS = DECODE_WAVES * unit::WAVE,
    DECODE_ROWS = KILN_ATTENTION_DECODE_ROWS,
    LANE_GROUPS = unit::WAVE / DECODE_ROWS, /* of lanes that have different rows */
    DECODE_KEYS = LANE_GROUPS * RUN,        /* of a wave's tile: a run for each group */
    DECODE_PRODUCTS = RUN / few::ELEMENTS,
    DECODE_DIM = DECODE_ROWS * KILN_VECTOR,  /* the most elements of a head that a wave has */
    DECODE_PART = DECODE_ROWS * DECODE_ROWS, /* vectors of the queries' so many elements */
    DECODE_SUMS = DECODE_THREADS * RUN / 4   /* quads of a lane's scores, of a block */
};

KILN_INLINE uint32_t lane_of_wave(void) {
    return kiln_thread() % unit::WAVE;
}
KILN_INLINE uint32_t row_of_lane(void) {
    return kiln_thread() % DECODE_ROWS;
}
KILN_INLINE uint32_t group_of_lane(void) {
    return lane_of_wave() / DECODE_ROWS;
}

/* Where heads have more elements than a wave has, PARTS waves have the same keys, and DECODE_DIM elements each, from
 * this one on. */
template <uint32_t PARTS> KILN_INLINE uint32_t part_of_wave(void) {
    return wave_number() % PARTS * DECODE_DIM;
}

/* What lanes of the same row have, together. */
template <class join_type> KILN_INLINE float across_groups(float value, join_type join) {
    KILN_UNROLL
    for (uint32_t mask = DECODE_ROWS; mask < unit::WAVE; mask *= 2)
        value = join(value, kiln_shuffle_xor(value, mask));
    return value;
}

/* ---- Queries ---- */

/* Where a vector of a row is in its part of shared memory: those of 8 rows meet no bank twice. */
KILN_INLINE uint32_t place_of_query(uint32_t row, uint32_t vector) {
    return row * DECODE_ROWS + (vector ^ row % 8);
}

/* A row's number among a token's, and the token. */
struct row_place {
    uint32_t token, head, query;
};

KILN_INLINE row_place row_place_of(const kiln_attention_args &args, const decode_work &d, uint32_t row) {
    uint32_t number = d.work.row + row, query = number / args.group;
    return {d.s.q_first + query, d.work.kv_head * args.group + (number - query * args.group), query};
}

/* Puts the queries into shared memory, one part behind the other, zeros for rows that do not exist and behind a head's
 * last element. */
template <uint32_t PARTS>
KILN_INLINE void put_queries(const kiln_attention_args &args, const decode_work &d, kiln_vector *queries) {
    KILN_LOOP
    for (uint32_t i = 0; i < PARTS * DECODE_PART; i += DECODE_THREADS) {
        uint32_t part = i / DECODE_PART, row = (i + kiln_thread()) / DECODE_ROWS % DECODE_ROWS;
        uint32_t vector = kiln_thread() % DECODE_ROWS, first = part * DECODE_DIM + vector * KILN_VECTOR;
        kiln_vector loaded = {};
        if (row < d.rows && first < args.head_dim) {
            row_place at = row_place_of(args, d, row);
            const kiln_element *q = (const kiln_element *)args.q + at.token * (uint64_t)args.q_stride;
            loaded = kiln_vector_load(q + at.head * args.head_dim + first);
        }
        queries[part * DECODE_PART + place_of_query(row, vector)] = loaded;
    }
}

/* The queries of a part as a lane has them. */
KILN_INLINE unit::fragment query_fragment(const kiln_vector *queries, uint32_t row, uint32_t step) {
    kiln_vector vectors[unit::VECTORS];
    KILN_UNROLL
    for (uint32_t i = 0; i < unit::VECTORS; i++) {
        uint32_t vector = step * LANE_GROUPS + (unit::VECTORS == 1 ? group_of_lane() : i);
        vectors[i] = queries[place_of_query(row, vector)];
    }
    return unit::fragment_of(vectors);
}

/* ---- Keys and values ---- */

/* The lane's key of a wave's tile, which is the last one where there is none. */
KILN_INLINE uint32_t key_of_lane(const decode_work &d, uint32_t key) {
    uint32_t own = key + lane_of_wave() % DECODE_KEYS;
    return own < d.work.key_end ? own : d.work.key_end - 1;
}

/* What block_table has for it, not limited to the cache's blocks yet, for which it would have to wait. */
KILN_INLINE uint32_t look_up(const kiln_attention_args &args, const decode_work &d, uint32_t key) {
    if (!PAGED || key >= d.work.key_end || lane_of_wave() >= DECODE_KEYS) return 0;
    return (uint32_t)args.block_table[d.s.table + (key_of_lane(d, key) >> args.block_log2)];
}

/* Where vectors of a tile's heads are, in bytes: lanes tell each other. */
struct tile_places {
    uint64_t head; /* of the lane's key */

    KILN_INLINE tile_places of(const kiln_attention_args &args, const decode_work &d, int64_t stride, uint32_t block,
                               uint32_t key) {
        uint64_t row = kiln_block_row(&args, &d.s, block < args.blocks ? block : args.blocks - 1, key_of_lane(d, key));
        return {(row * (uint64_t)stride + d.work.kv_head * args.head_dim) * sizeof(kiln_element)};
    }

    KILN_INLINE uint64_t of_lane(const tile_places &places, uint32_t lane) {
        uint32_t low = (uint32_t)__builtin_amdgcn_ds_bpermute((int)(lane * 4), (int)(uint32_t)places.head);
        uint32_t high = (uint32_t)__builtin_amdgcn_ds_bpermute((int)(lane * 4), (int)(uint32_t)(places.head >> 32));
        return (uint64_t)high << 32 | low;
    }

    KILN_INLINE kiln_vector vector_at(const void *data, uint64_t place) {
        return *(const kiln_vector *)((const char *)data + place);
    }
};

/* A lane's vectors of a tile's keys. Those behind a head's last element stay the zeros that they were. */
struct tile_keys {
    enum : uint32_t { STEPS = DECODE_ROWS / LANE_GROUPS, VECTORS = DECODE_PRODUCTS * STEPS };
    kiln_vector vectors[VECTORS];

    KILN_INLINE void load(const kiln_attention_args &args, const decode_work &d, uint32_t part, uint32_t block,
                          uint32_t key, tile_keys *tile) {
        if (key >= d.work.key_end) return;
        uint32_t own = part + group_of_lane() * KILN_VECTOR; /* of the elements */
        tile_places places = tile_places::of(args, d, args.k_stride, block, key);
        uint64_t from[DECODE_PRODUCTS];
        KILN_UNROLL
        for (uint32_t n = 0; n < DECODE_PRODUCTS; n++)
            from[n] = tile_places::of_lane(places, few::key_of(n, row_of_lane())) + own * sizeof(kiln_element);
        KILN_UNROLL
        for (uint32_t step = 0; step < STEPS; step++) {
            uint32_t first = step * LANE_GROUPS * KILN_VECTOR;
            if (first + own >= args.head_dim) continue;
            KILN_UNROLL
            for (uint32_t n = 0; n < DECODE_PRODUCTS; n++)
                tile->vectors[step * DECODE_PRODUCTS + n] =
                    tile_places::vector_at(args.k, from[n] + first * sizeof(kiln_element));
        }
    }
};

/* A lane's vectors of a tile's values. Those behind a head's last element are anything, and so are their results. */
struct tile_values {
    kiln_vector vectors[RUN];

    KILN_INLINE void load(const kiln_attention_args &args, const decode_work &d, uint32_t part, uint32_t block,
                          uint32_t key, tile_values *tile) {
        if (key >= d.work.key_end) return;
        uint32_t own = part + row_of_lane() * KILN_VECTOR;
        tile_places places = tile_places::of(args, d, args.v_stride, block, key);
        uint64_t from[RUN];
        KILN_UNROLL
        for (uint32_t i = 0; i < RUN; i++)
            from[i] = tile_places::of_lane(places, group_of_lane() * RUN + i) + own * sizeof(kiln_element);
        if (own >= args.head_dim) return;
        KILN_UNROLL
        for (uint32_t i = 0; i < RUN; i++)
            tile->vectors[i] = tile_places::vector_at(args.v, from[i]);
    }

    /* Takes out those of keys behind the last, which may be no numbers. */
    KILN_INLINE void end(const decode_work &d, uint32_t key, tile_values *tile) {
        if (key + DECODE_KEYS <= d.work.key_end) return;
        KILN_UNROLL
        for (uint32_t i = 0; i < RUN; i++)
            if (key + group_of_lane() * RUN + i >= d.work.key_end) tile->vectors[i] = {};
    }
};

#endif
