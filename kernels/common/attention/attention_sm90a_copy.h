/* Attention for sm_90a (attention_sm90a.h): the warpgroup that copies, and the order of a block's tiles of rows.
 *
 * Keys and values that are contiguous come by tensor maps, a box of 64 elements of each row at a time, a warp for each
 * of the two. The other warps copy queries by cp.async, a tile of rows ahead: keys that waited for queries came too
 * late for short sequences. A tile of values that a sequence ends in comes by cp.async, which leaves zeros behind the
 * last key, since what stands there may be no number at all; scores of such keys are replaced.
 *
 * Those of a cache's blocks come by cp.async, half of the threads for each; those of keys copy queries as well. */
#ifndef KILN_KERNELS_COMMON_ATTENTION_ATTENTION_SM90A_COPY_H
#define KILN_KERNELS_COMMON_ATTENTION_ATTENTION_SM90A_COPY_H

#include "kernels/common/attention/attention_sm90a_tiles.h"

/* ---- The producer ---- */

/* So many of the producer's threads copy keys, the next ones values; all of them arrive for a tile. And those that copy
 * queries. */
enum : uint32_t {
    COPIERS = PAGED ? WARPGROUP / 2 : LANES,
    QUERY_COPIERS = WARPGROUP / 2,
    FIRST_QUERY_COPIER = PAGED ? 0 : WARPGROUP - QUERY_COPIERS
};

/* A thread's part of a tile: a vector of each span, eight threads beside each other. */
struct tile_copier {
    const char *from;
    uint64_t stride; /* bytes */
    uint32_t row, vector;
};

/* Copies what there is of a tile, from `key` on, into the n-th place by cp.async, zeros behind the last key, whose
 * weights are zeros as well. Blocks of the cache are looked up for several of a thread's rows at once, the first of
 * them before the tile has a place. */
template <uint32_t DIM, uint32_t KEYS>
KILN_INLINE void copy_rows(const kiln_attention_args &args, const kiln_sequence &s, const tile_copier &c,
                           const key_tiles &tiles, uint32_t key, const ring &to, uint32_t n) {
    enum : uint32_t { SPANS = layout<DIM, KEYS>::SPANS, STEP = COPIERS / SPAN_VECTORS, AT_ONCE = PAGED ? 8 : 2 };
    key += c.row;
    uint32_t place = ring_tile(to, n) + swizzled<KEYS>(c.row, c.vector);
    KILN_LOOP
    for (uint32_t done = 0; done < KEYS; done += AT_ONCE * STEP) {
        uint32_t blocks[AT_ONCE];
        KILN_UNROLL
        for (uint32_t i = 0; i < AT_ONCE; i++)
            blocks[i] = key + i * STEP < tiles.end ? kiln_key_block(&args, &s, key + i * STEP) : 0;
        if (!done) ring_wait_empty(to, n);
        KILN_UNROLL
        for (uint32_t i = 0; i < AT_ONCE; i++, key += STEP, place += STEP * SPAN) {
            const char *source = c.from + kiln_block_row(&args, &s, blocks[i], key) * c.stride;
            KILN_UNROLL
            for (uint32_t span = 0; span < SPANS; span++) {
                uint32_t d = span * SPAN_ELEMENTS + c.vector * KILN_VECTOR;
                if (d >= DIM) continue;
                bool copied = key < tiles.end && d < args.head_dim;
                /* Steps of less than an atom change the row by which the vector is swizzled. */
                uint32_t turned = place ^ i * STEP % (ATOM / SPAN) * KILN_VECTOR_BYTES;
                kiln_sm80_cp_async(turned + span * KEYS * SPAN, copied ? source + span * SPAN : args.k,
                                   copied ? KILN_VECTOR_BYTES : 0);
            }
        }
    }
    kiln_sm80_cp_async_commit();
    kiln_sm80_cp_async_wait<0>();
    kiln_sm90a_fence_proxy_async();
    kiln_sm90a_mbarrier_arrive(ring_full(to, n));
}

/* The same of codes, which become elements on their way. */
template <uint32_t DIM, uint32_t KEYS>
KILN_INLINE void convert_rows(const kiln_attention_args &args, const kiln_sequence &s, const tile_copier &c,
                              const key_tiles &tiles, uint32_t key, const ring &to, uint32_t n) {
    enum : uint32_t { SPANS = layout<DIM, KEYS>::SPANS, STEP = COPIERS / SPAN_VECTORS };
    key += c.row;
    uint32_t place = ring_tile(to, n) + swizzled<KEYS>(c.row, c.vector);
    ring_wait_empty(to, n);
    KILN_LOOP
    for (uint32_t done = 0; done < KEYS; done += STEP, key += STEP, place += STEP * SPAN) {
        uint32_t block = key < tiles.end ? kiln_key_block(&args, &s, key) : 0;
        const char *source = c.from + kiln_block_row(&args, &s, block, key) * c.stride;
        KILN_UNROLL
        for (uint32_t span = 0; span < SPANS; span++) {
            uint32_t d = span * SPAN_ELEMENTS + c.vector * KILN_VECTOR;
            bool present = key < tiles.end && d < args.head_dim;
            kiln_sm80_shared_store_v4(place + span * KEYS * SPAN,
                                      vector_of_codes(source + span * SPAN_ELEMENTS, present).words);
        }
    }
    kiln_sm90a_fence_proxy_async();
    kiln_sm90a_mbarrier_arrive(ring_full(to, n));
}

/* Copies a tile that has all its keys by a tensor map. */
template <uint32_t DIM, uint32_t KEYS>
KILN_INLINE void copy_box(const kiln_tensor_map *map, uint32_t kv_head, uint32_t row, const ring &to, uint32_t n) {
    uint32_t full = ring_full(to, n);
    ring_wait_empty(to, n);
    if (kiln_thread() % COPIERS) {
        kiln_sm90a_mbarrier_arrive(full);
        return;
    }
    kiln_sm90a_mbarrier_arrive_expect_tx(full, layout<DIM, KEYS>::TILE_BYTES);
    KILN_UNROLL
    for (uint32_t span = 0; span < layout<DIM, KEYS>::SPANS; span++)
        kiln_sm90a_copy_3d(ring_tile(to, n) + span * KEYS * SPAN, map, full, (int32_t)(span * SPAN_ELEMENTS),
                           (int32_t)kv_head, (int32_t)row);
}

/* Where a row of a tile stands in q and out. */
KILN_INLINE row_place place_of_row(const kiln_attention_args &args, const row_tile &tile, uint32_t row) {
    row = min(row, tile.end - 1);
    if (args.group == 1) return {tile.s.q_first + row, tile.work.kv_head};
    return row_place_of(args, tile.s, tile.work.kv_head, row);
}

/* Begins to copy the queries of a tile of rows: rows behind the last are copies of it. A warp has LANES rows at a time,
 * each lane knows where one of them is. */
template <uint32_t DIM, uint32_t KEYS>
KILN_INLINE void copy_queries_of(const kiln_attention_args &args, const row_tile &tile, uint32_t shared) {
    typedef layout<DIM, KEYS> at;
    enum : uint32_t { AT_ONCE = LANES / SPAN_VECTORS, UNROLLED = 4 / at::SPANS };
    const uint32_t lane = kiln_thread() % LANES, vector = lane % SPAN_VECTORS;
    KILN_LOOP
    for (uint32_t first = (kiln_thread() - FIRST_QUERY_COPIER) / LANES * LANES; first < at::ROWS;
         first += QUERY_COPIERS) {
        row_place place = place_of_row(args, tile, tile.work.row + first + lane);
        uint64_t from = (uint64_t)args.q +
                        (place.token * (uint64_t)args.q_stride + place.head * args.head_dim) * sizeof(kiln_element);
        uint32_t to = shared + first / GROUP_ROWS * at::QUERY_BYTES;
        KILN_LOOP
        for (uint32_t i = 0; i < LANES; i += AT_ONCE * UNROLLED) {
            KILN_UNROLL
            for (uint32_t j = 0; j < UNROLLED; j++) {
                uint32_t row = i + j * AT_ONCE + lane / SPAN_VECTORS;
                const char *source = (const char *)__shfl_sync(0xffffffffu, from, (int)row);
                source += vector * KILN_VECTOR_BYTES;
                uint32_t place_of_row = to + swizzled<GROUP_ROWS>(first % GROUP_ROWS + row, vector);
                KILN_UNROLL
                for (uint32_t span = 0; span < at::SPANS; span++) {
                    uint32_t d = span * SPAN_ELEMENTS + vector * KILN_VECTOR;
                    if (d >= DIM) continue;
                    bool present = d < args.head_dim;
                    kiln_sm80_cp_async(place_of_row + span * GROUP_ROWS * SPAN,
                                       present ? source + span * SPAN : (const char *)args.q,
                                       present ? KILN_VECTOR_BYTES : 0);
                }
            }
        }
    }
    kiln_sm80_cp_async_commit();
}

/* Copies all tiles of keys or values of a tile of rows into the places from `begin` on; maps are of keys and of values,
 * NULL where these are paged. after_first() is called when the first is under way. */
template <uint32_t DIM, uint32_t KEYS, class body_type>
KILN_INLINE void produce(const kiln_attention_args &args, const kiln_tensor_map *maps, const row_tile &tile,
                         const key_tiles &tiles, uint32_t begin, uint32_t shared, body_type after_first) {
    const kiln_sequence &s = tile.s;
    const uint32_t thread = kiln_thread() % COPIERS;
    const bool values = kiln_thread() >= COPIERS;
    ring to = ring_of<DIM, KEYS>(shared, values);
    const uint32_t bytes = layout<DIM, KEYS>::EXTENDED && args.codes ? 1 : sizeof(kiln_element);
    tile_copier c = {(const char *)(values ? args.v : args.k),
                     (uint64_t)(values ? args.v_stride : args.k_stride) * bytes, thread / SPAN_VECTORS,
                     thread % SPAN_VECTORS};
    c.from += (uint64_t)(tile.work.kv_head * args.head_dim + c.vector * KILN_VECTOR) * bytes;
    KILN_LOOP
    for (uint32_t n = 0; n < tiles.count; n++) {
        uint32_t key = tile_key<KEYS>(tiles, n), place = begin + n;
        if (!PAGED && (!values || n || key + KEYS <= s.seqlen_k))
            copy_box<DIM, KEYS>(maps + values, tile.work.kv_head, s.kv_first + key, to, place);
        else if (layout<DIM, KEYS>::EXTENDED && args.codes)
            convert_rows<DIM, KEYS>(args, s, c, tiles, key, to, place);
        else
            copy_rows<DIM, KEYS>(args, s, c, tiles, key, to, place);
        if (!n) after_first();
    }
}

template <uint32_t DIM, uint32_t KEYS, bool MASKED>
KILN_INLINE consumer_tiles tiles_of_consumer(const kiln_attention_args &args, const row_tile &tile,
                                             const key_tiles &tiles, uint32_t group) {
    uint32_t last = tile.end - 1, row = tile.work.row + group * GROUP_ROWS;
    kiln_window first_window = window_of_row(args, tile.s, min(row, last));
    kiln_window last_window = window_of_row(args, tile.s, min(row + GROUP_ROWS - 1, last));
    uint32_t seen_end = min(first_window.end, tiles.end);
    int32_t tree = masked_from(args, tile.s);
    if (layout<DIM, KEYS>::EXTENDED && has_mask(tree, seen_end)) seen_end = (uint32_t)max(tree, 0);
    uint32_t low = last_window.begin > tiles.key ? (last_window.begin - tiles.key + KEYS - 1) / KEYS : 0;
    uint32_t high = seen_end > tiles.key ? (seen_end - tiles.key) / KEYS : 0;
    return {tiles.key, tiles.count, low, MASKED || args.softcap != 0.0f ? 0 : high};
}

/* The place of the number-th tile of rows. Heads whose keys and values L2 has room for come together, of them the last
 * rows first: with causal they see most. */
struct tile_place {
    uint32_t tile, block;
};

KILN_INLINE tile_place place_of_tile(const kiln_attention_args &args, uint32_t number) {
    uint32_t blocks = args.batch * args.kv_heads * args.splits;
    uint32_t together = min(max(SECTION_ELEMENTS / args.head_dim / max(args.split, 1u), 1u), blocks);
    uint32_t first = number / (together * args.row_tiles) * together, rest = number - first * args.row_tiles;
    together = min(together, blocks - first);
    return {rest / together, first + rest % together};
}

/* The number-th tile of rows where each of a head's largest tiles is followed by one of its smallest, head after head.
 */
KILN_INLINE tile_place place_of_pairs(const kiln_attention_args &args, uint32_t number) {
    uint32_t head = number / args.row_tiles, tile = number - head * args.row_tiles;
    return {tile % 2 ? args.row_tiles - 1 - tile / 2 : tile / 2, head};
}

/* The number-th of the last `count` tiles of that order where, about, the largest come first. */
KILN_INLINE tile_place place_of_rest(const kiln_attention_args &args, uint32_t number, uint32_t count) {
    uint32_t blocks = args.batch * args.kv_heads * args.splits;
    uint32_t heads = count / args.row_tiles, part = count - heads * args.row_tiles, large = (args.row_tiles + 1) / 2;
    if (number >= large * heads) {
        number -= large * heads;
        if (number < part) {
            uint32_t at = 2 * number < part ? 2 * number : 2 * (part - 1 - number) + 1;
            return place_of_pairs(args, args.row_tiles * (blocks - heads) - part + at);
        }
        number = number - part + large * heads;
    }
    return {number / heads, blocks - heads + number % heads};
}

/* The work of a block that takes tile after tile: kiln_attention_work_of and kiln_attention_trim, without the divisions
 * that most calls can do without. */
template <uint32_t ROWS> KILN_INLINE row_tile tile_at(const kiln_attention_args &args, const tile_place &place) {
    row_tile tile;
    tile.work = {};
    uint32_t rest = place.block;
    if (args.splits != 1) {
        rest = place.block / args.splits;
        tile.work.split = place.block - rest * args.splits;
    }
    tile.work.batch = rest / args.kv_heads;
    tile.work.kv_head = rest - tile.work.batch * args.kv_heads;
    tile.work.row = (args.row_tiles - 1 - place.tile) * ROWS;
    tile.s = kiln_sequence_of(&args, tile.work.batch);
    tile.end = uniform(tile.s.seqlen_q * args.group);
    return tile;
}

/* The keys of a tile that has rows: its split's, without those at both ends that no row sees. */
template <uint32_t ROWS, uint32_t KEYS> KILN_INLINE key_tiles trim(const kiln_attention_args &args, row_tile *tile) {
    const kiln_window first = window_of_row(args, tile->s, tile->work.row);
    const kiln_window last = window_of_row(args, tile->s, min(tile->work.row + ROWS, tile->end) - 1);
    uint32_t begin = first.end ? first.begin : 0; /* a first query that sees nothing may precede ones that see keys */
    begin = begin / KILN_ATTENTION_KEYS * KILN_ATTENTION_KEYS; /* so that tiles end where a share ends */
    tile->work.key = max(tile->work.split * args.split, begin);
    tile->work.key_end = min(tile->work.split * args.split + args.split, last.end);
    key_tiles tiles = {tile->work.key, tile->work.key_end, 1};
    if (tiles.end > tiles.key) tiles.count = uniform((tiles.end - tiles.key + KEYS - 1) / KEYS);
    return tiles;
}

/* The tiles of a block, each in turn. With a block for each tile, the device balances them. Else, where all tiles have
 * as many keys, blocks take them in order: neighbours have the same keys at the same time. Where not, a block takes
 * pairs of a large and a small one, which are equal, and the rest, of some rounds, from the largest to the smallest,
 * every other round backwards. */
template <uint32_t ROWS, uint32_t KEYS, class body_type>
KILN_INLINE void each_tile(const kiln_attention_args &args, body_type body) {
    const uint32_t count = args.row_tiles * args.batch * args.kv_heads * args.splits;
    const bool equal = !PAGED && args.left == KILN_ATTENTION_ANY && args.right == KILN_ATTENTION_ANY;
    const uint32_t rounds = !equal && count / gridDim.x > 3 ? count / gridDim.x / 2 * 2 - 2 : 0,
                   rest = count - rounds * gridDim.x;
    KILN_LOOP
    for (uint32_t round = 0;; round++) {
        tile_place place;
        if (round < rounds) {
            place = place_of_pairs(args, (round / 2 * gridDim.x + blockIdx.x) * 2 + round % 2);
        } else {
            uint32_t number = (round - rounds) * gridDim.x;
            number += !equal && (round - rounds) % 2 ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
            if (number >= rest) break;
            if (gridDim.x == count)
                place = place_of_tile(args, number);
            else if (equal)
                place = {number % args.row_tiles, number / args.row_tiles};
            else
                place = place_of_rest(args, number, rest);
        }
        row_tile tile = tile_at<ROWS>(args, place);
        if (tile.work.row >= tile.end) continue;
        const key_tiles tiles = trim<ROWS, KEYS>(args, &tile);
        body(tile, tiles);
    }
}

/* All copies of a block. */
template <uint32_t DIM, uint32_t KEYS, bool MASKED>
KILN_INLINE void produce_tiles(const kiln_attention_args &args, const kiln_tensor_map *maps, uint32_t shared,
                               char *memory) {
    typedef layout<DIM, KEYS> at;
    typedef query_ring<DIM, KEYS> q;
    uint32_t number = 0, begin = 0;
    const uint32_t query_copier = kiln_sm90a_anew(kiln_thread()) - FIRST_QUERY_COPIER;
    /* Found out again each time: predicates are as scarce as registers. */
    auto queries = [&] { return uniform(kiln_sm90a_anew(query_copier) / QUERY_COPIERS) == 0; };
    auto leave_tile = [&](const row_tile &tile, const key_tiles &tiles) {
        q::wait_empty(shared, number);
        row_tile *to = q::tile(memory, number);
        if (query_copier < at::CONSUMERS)
            to->consumers[query_copier] = tiles_of_consumer<DIM, KEYS, MASKED>(args, tile, tiles, query_copier);
        if (query_copier == 0) {
            to->s = tile.s;
            to->work = tile.work;
            to->end = tile.end;
        }
        copy_queries_of<DIM, KEYS>(args, tile, q::queries(shared, number));
    };
    auto end_queries = [&] {
        if (!queries()) return;
        kiln_sm80_cp_async_wait<0>();
        kiln_sm90a_fence_proxy_async();
        kiln_sm90a_mbarrier_arrive(q::full(shared, number));
    };
    each_tile<at::ROWS, KEYS>(args, [&](const row_tile &tile, const key_tiles &tiles) {
        if (queries()) leave_tile(tile, tiles);
        if (PAGED || !queries()) produce<DIM, KEYS>(args, maps, tile, tiles, begin, shared, end_queries);
        if (!PAGED) end_queries();
        number++;
        begin += tiles.count;
    });
    if (!queries()) return;
    q::wait_empty(shared, number);
    if (query_copier < at::CONSUMERS) q::tile(memory, number)->consumers[query_copier] = {};
    kiln_sm90a_mbarrier_arrive(q::full(shared, number));
}

#endif
