/* Attention for sm_90a, f16 and bf16: the device source of mha and mha_paged by wgmma, for prompts. Few rows are done
 * as on sm_80 (attention_sm80.h), heads and rows that are not on 16 bytes by the portable kernels (attention_gpu.h).
 * All of them wait for the preceding kernel themselves (sm90a_programmatic.h).
 *
 * A block does 128 rows, over tiles of 128 keys (64 where a head has more than 128 elements). Of its three warpgroups
 * the first copies keys and values into two rings of two tiles each; the others have 64 rows each (Shah et al.,
 * FlashAttention-3, arXiv 2407.08608). A consumer begins the product of its queries with tile n, and behind it that of
 * its weights with the values of tile n - 1; while the second is under way it makes weights of the scores of tile n.
 * The sums of the first product are, element for element, the fragments that the second one takes from registers.
 * Everything is waited for in the iteration that began it: assemblers make all products wait for each other where a
 * group stays under way around the loop.
 *
 * With few keys a grid has a block for each multiprocessor, which takes tile after tile of rows: while results of one
 * are written, keys and values of the next come. With many keys a tile has a block of its own, and the device gives it
 * to the multiprocessor that is free first; a counter that gave out tiles would have to be zero beforehand. Heads come
 * in groups whose keys and values are a third of L2.
 *
 * Keys and values that are contiguous come by tensor maps, a box of 64 elements of each row at a time; the last tile,
 * where its end is a sequence's or a share's, and those of a cache's blocks by cp.async, which leaves zeros behind the
 * last key, since what stands there may be no number at all.
 *
 * Tiles are taken from the last to the first, and the rows with the most keys to see, the last, go first. Only tiles
 * that an end of some row's window cuts are masked, those at the diagonal and at windows' ends, in a loop of their own.
 * With a softcap all tiles go through it, and in the kernels for masks that are added, which have no other: beside it
 * there are no registers left for a mask, of which four lanes read 32 keys of a row by vectors. The first tile, beside
 * which nothing is multiplied, stands before both: as a branch in the loop it made ptxas 12.0 let all products wait for
 * each other.
 *
 * Weights are exponents of 2 by one multiplication and addition for each score, exact enough up to 2048; beyond that
 * the maximum is taken off first, so that a row's largest weight is 1.
 *
 * Rows of shared memory are 64 elements, 128 bytes, whose vectors are swizzled, so that neither copies nor products
 * meet a bank twice; longer heads have more such spans. Shared memory: 82, 162 and 194 KB by heads of 64, up to 128,
 * and up to 256 elements. Registers: 168 a thread at the launch; then 232 of a consumer and 40 of a producer, 224 and
 * 56 where blocks of a cache are looked up, or heads have more than 128 elements, 216 and 72 where blocks are looked up
 * for heads of 64. None spills.
 *
 * Floor: 4 * rows * keys * head_dim operations; wgmma does 989 TFLOP/s on an H100 at most, and the exponents of 2 take
 * half of the time of heads of 128. A prototype of this structure, copying by TMA, had 658 to 711 TFLOP/s there at 4096
 * and 16384 keys (head_dim 128), 1.02 to 1.09 of cuDNN; with causal 593 to 700, and 4 % more where the diagonal's tiles
 * had a loop of their own. Ordering the two consumers by named barriers was 0 to 16 % slower from 4096 keys on. With a
 * tile for each block it had 0.85 to 0.96 of cuDNN at 512 and 1024 keys. These kernels are not measured.
 *
 * Few rows: a prototype whose last block joined the shares of the keys took 0.4 to 1.2 us less than two launches. Here
 * join is a second launch, which may begin early: the count of the blocks that are done would have to be zero
 * beforehand, and a workspace holds anything. Keys are not prefetched before the wait, since lengths and tables of
 * blocks, which tell where they are, may be what the preceding kernel writes. With 1024 keys shares of 64 were best.
 * Includers define what attention_gpu.h asks for. Test: build/tests/ops/mha_test. Bench:
 * build/kiln bench mha */
#ifndef KILN_KERNELS_COMMON_ATTENTION_SM90A_H
#define KILN_KERNELS_COMMON_ATTENTION_SM90A_H

#include "kernels/arch/sm90a_programmatic.h"
#include "kernels/common/attention_mapped_args.h"
#include "kernels/common/attention_sm80.h"
#include "kernels/common/values.h"

enum : uint32_t {
    WARPGROUP = 128, /* threads */
    GROUP_ROWS = 64,
    CONSUMERS = 2,
    CONSUMER_WARPS = CONSUMERS * WARPGROUP / LANES,
    TILE_ROWS = CONSUMERS * GROUP_ROWS,
    TILE_THREADS = (1 + CONSUMERS) * WARPGROUP,
    TILE_STAGES = 2,
    SPAN = 128, /* bytes of a row that a swizzle is over */
    SPAN_VECTORS = SPAN / KILN_VECTOR_BYTES,
    SPAN_ELEMENTS = SPAN_VECTORS * KILN_VECTOR,
    ATOM = 8 * SPAN,           /* bytes: eight rows, after which a swizzle repeats */
    SECTION_ELEMENTS = 4 << 20 /* of keys, and as many of values: 16 MB, a third of L2 */
};

/* Which rows a warp is at, as kiln_tile() and kiln_block() are of kernels that do one tile. */
struct tile_place {
    uint32_t tile, block;
};

/* Shared memory, in bytes. */
template <uint32_t DIM, uint32_t KEYS> struct layout {
    enum : uint32_t {
        SPANS = (DIM + SPAN_ELEMENTS - 1) / SPAN_ELEMENTS,
        TILE_BYTES = SPANS * KEYS * SPAN,
        RING_BYTES = TILE_STAGES * TILE_BYTES,
        QUERY_BYTES =
            SPANS * GROUP_ROWS * SPAN + ATOM, /* of a consumer, whose results take their place, 16 bytes more a row */
        QUERIES = 2 * RING_BYTES,             /* behind keys and values */
        BARRIERS = QUERIES + CONSUMERS * QUERY_BYTES,
        PLACES = BARRIERS + 2 * 2 * TILE_STAGES * 8, /* of each warp */
        BYTES = PLACES + TILE_THREADS / LANES * sizeof(tile_place),
        /* of a thread; a producer needs more where it looks blocks up, or has many spans */
        PRODUCER_REGISTERS = PAGED && DIM <= 64   ? 72
                             : PAGED || DIM > 128 ? 56
                                                  : 40,
        CONSUMER_REGISTERS = PAGED && DIM <= 64   ? 216
                             : PAGED || DIM > 128 ? 224
                                                  : 232,
        EXTENDED = PAGED && DIM <= 128 /* takes codes and trees: for more a thread has no registers */
    };
};

struct __align__(1024) atom {
    char bytes[ATOM];
};

/* A ring of tiles in shared memory, of keys or of values: the n-th tile is in place n % TILE_STAGES. */
struct ring {
    uint32_t tiles, bytes, full, empty;
};

template <uint32_t DIM, uint32_t KEYS> KILN_INLINE ring ring_of(uint32_t shared, bool values) {
    typedef layout<DIM, KEYS> at;
    uint32_t barriers = shared + at::BARRIERS + (values ? 2 * TILE_STAGES * 8 : 0);
    return {shared + (values ? at::RING_BYTES : 0), at::TILE_BYTES, barriers, barriers + TILE_STAGES * 8};
}

KILN_INLINE uint32_t ring_tile(const ring &r, uint32_t n) {
    return r.tiles + n % TILE_STAGES * r.bytes;
}
KILN_INLINE uint32_t ring_full(const ring &r, uint32_t n) {
    return r.full + n % TILE_STAGES * 8;
}
KILN_INLINE void ring_wait_full(const ring &r, uint32_t n) {
    kiln_sm90a_mbarrier_wait(ring_full(r, n), n / TILE_STAGES % 2);
}
KILN_INLINE void ring_wait_empty(const ring &r, uint32_t n) {
    if (n >= TILE_STAGES) kiln_sm90a_mbarrier_wait(r.empty + n % TILE_STAGES * 8, n / TILE_STAGES % 2 ^ 1);
}
KILN_INLINE void ring_release(const ring &r, uint32_t n) {
    if (kiln_thread() % LANES == 0) kiln_sm90a_mbarrier_arrive(r.empty + n % TILE_STAGES * 8);
}

/* The tiles of a block: count of them from key on, of which the last is short where end is. */
struct key_tiles {
    uint32_t key, end, count;
};

/* The first key of the n-th tile: the last of them come first. */
template <uint32_t KEYS> KILN_INLINE uint32_t tile_key(const key_tiles &tiles, uint32_t n) {
    return tiles.key + (tiles.count - 1 - n) * KEYS;
}

/* A vector's place in rows of spans, each of which is swizzled: its number is turned by its row's within an atom. */
template <uint32_t ROWS> KILN_INLINE uint32_t swizzled(uint32_t row, uint32_t vector) {
    return vector / SPAN_VECTORS * ROWS * SPAN + row * SPAN + (vector % SPAN_VECTORS ^ row % 8) * KILN_VECTOR_BYTES;
}

/* ---- The producer ---- */

/* Half of the producer's threads copy keys, half values, and all of them arrive for a tile. */
enum : uint32_t { COPIERS = WARPGROUP / 2 };

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
                kiln_sm80_cp_async(place + span * KEYS * SPAN, copied ? source + span * SPAN : args.k,
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

/* Copies all tiles into the places from `begin` on; maps are of keys and of values, NULL where these are paged. */
template <uint32_t DIM, uint32_t KEYS>
KILN_INLINE void produce(const kiln_attention_args &args, const kiln_tensor_map *maps, const kiln_sequence &s,
                         const kiln_attention_work &work, const key_tiles &tiles, uint32_t begin, uint32_t shared) {
    uint32_t thread = kiln_thread() % COPIERS;
    bool values = kiln_thread() >= COPIERS;
    ring to = ring_of<DIM, KEYS>(shared, values);
    const uint32_t bytes = layout<DIM, KEYS>::EXTENDED && args.codes ? 1 : sizeof(kiln_element);
    tile_copier c = {(const char *)(values ? args.v : args.k),
                     (uint64_t)(values ? args.v_stride : args.k_stride) * bytes, thread / SPAN_VECTORS,
                     thread % SPAN_VECTORS};
    c.from += (uint64_t)(work.kv_head * args.head_dim + c.vector * KILN_VECTOR) * bytes;
    KILN_LOOP
    for (uint32_t n = 0; n < tiles.count; n++) {
        uint32_t key = tile_key<KEYS>(tiles, n), place = begin + n;
        if (!PAGED && (n || key + KEYS <= tiles.end))
            copy_box<DIM, KEYS>(maps + values, work.kv_head, s.kv_first + key, to, place);
        else if (layout<DIM, KEYS>::EXTENDED && args.codes)
            convert_rows<DIM, KEYS>(args, s, c, tiles, key, to, place);
        else
            copy_rows<DIM, KEYS>(args, s, c, tiles, key, to, place);
    }
}

/* ---- A consumer ---- */

/* A consumer's queries, one row's vector after the other. */
template <uint32_t DIM, uint32_t KEYS>
KILN_INLINE void copy_group_queries(const kiln_attention_args &args, const kiln_sequence &s, uint32_t kv_head,
                                    uint32_t row, uint32_t end, uint32_t shared) {
    enum : uint32_t { VECTORS = heads<DIM>::VECTORS };
    KILN_LOOP
    for (uint32_t i = kiln_thread() % WARPGROUP; i < GROUP_ROWS * VECTORS; i += WARPGROUP) {
        uint32_t place = i / VECTORS, vector = i % VECTORS, number = row + place;
        row_place at = row_place_of(args, s, kv_head, number < end ? number : end - 1);
        const kiln_element *q = (const kiln_element *)args.q + at.token * (uint64_t)args.q_stride;
        bool present = vector * KILN_VECTOR < args.head_dim;
        kiln_sm80_cp_async(shared + swizzled<GROUP_ROWS>(place, vector),
                           present ? q + at.head * args.head_dim + vector * KILN_VECTOR : args.q,
                           present ? KILN_VECTOR_BYTES : 0);
    }
    kiln_sm80_cp_async_commit();
    kiln_sm80_cp_async_wait<0>();
    kiln_sm90a_fence_proxy_async();
}

template <uint32_t DIM, uint32_t KEYS> struct tile_state {
    rows_of_warp<DIM> rows;
    float scores[KEYS / 8][4];
    uint32_t weights[KEYS / 16][4];
};

/* sums[64 x N] of a warpgroup: a product of 16 elements, added or not. */
template <uint32_t N, int MN_MAJOR, typename A> KILN_INLINE void multiply(float (*sums)[4], A a, uint64_t b, bool add) {
#ifdef KILN_PART_bf16
#define KILN_SM90A_PRODUCT(n) kiln_sm90a_wgmma_bf16_n##n<MN_MAJOR>(sums[0], a, b, add)
#else
#define KILN_SM90A_PRODUCT(n) kiln_sm90a_wgmma_f16_n##n<MN_MAJOR>(sums[0], a, b, add)
#endif
    if (N == 64) KILN_SM90A_PRODUCT(64);
    if (N == 96) KILN_SM90A_PRODUCT(96);
    if (N == 128) KILN_SM90A_PRODUCT(128);
    if (N == 256) KILN_SM90A_PRODUCT(256);
#undef KILN_SM90A_PRODUCT
}

/* What all lanes of a warp have, so that the compiler knows it. */
KILN_INLINE uint32_t uniform(uint32_t value) {
    return __shfl_sync(0xffffffffu, value, 0);
}

template <bool VALUE> struct is_general {
    enum : bool { value = VALUE };
};

/* Begins scores = queries keys^T. */
template <uint32_t DIM, uint32_t KEYS>
KILN_INLINE void begin_scores(float (*scores)[4], uint32_t queries, uint32_t keys) {
    uint64_t a = kiln_sm90a_swizzled_128(queries, 16, ATOM), b = kiln_sm90a_swizzled_128(keys, 16, ATOM);
    KILN_UNROLL
    for (uint32_t step = 0; step < DIM / 16; step++) {
        uint32_t span = step / 4, within = step % 4 * 32;
        multiply<KEYS, 0>(scores, a + (span * GROUP_ROWS * SPAN + within) / 16, b + (span * KEYS * SPAN + within) / 16,
                          step > 0);
    }
    kiln_sm90a_wgmma_commit();
}

/* Begins results += weights values. */
template <uint32_t DIM, uint32_t KEYS>
KILN_INLINE void begin_results(float (*results)[4], const uint32_t (*weights)[4], uint32_t values) {
    uint64_t b = kiln_sm90a_swizzled_128(values, KEYS * SPAN, ATOM);
    KILN_UNROLL
    for (uint32_t step = 0; step < KEYS / 16; step++)
        multiply<DIM, 1>(results, weights[step], b + step * 2 * ATOM / 16, true);
    kiln_sm90a_wgmma_commit();
}

/* What a consumer needs rarely of its head and of its rows is computed anew: the loop has no registers to keep it in.
 * places: those of the warps, in shared memory. */
KILN_INLINE tile_place place_anew(const volatile tile_place *places) {
    const volatile tile_place *own = places + kiln_sm90a_anew(kiln_thread()) / LANES;
    return {own->tile, own->block};
}
KILN_INLINE kiln_attention_work work_anew(const kiln_attention_args &args, const volatile tile_place *places) {
    return kiln_attention_work_of(&args, 0, place_anew(places).block);
}
template <bool CODES>
KILN_INLINE score_scale scale_anew(const kiln_attention_args &args, const volatile tile_place *places) {
    return score_scale_of<CODES>(args, CODES && args.k_scale ? work_anew(args, places).kv_head : 0);
}

/* The first of a lane's rows in its sequence. */
KILN_INLINE uint32_t row_anew(const kiln_attention_args &args, uint32_t tile) {
    uint32_t row = (args.row_tiles - 1 - tile) * TILE_ROWS - GROUP_ROWS;
    row += kiln_thread() / WARPGROUP * GROUP_ROWS + kiln_thread() % WARPGROUP / LANES * WARP_ROWS;
    return row + kiln_thread() % LANES / 4;
}

/* Four lanes have a word of each of four vectors; afterwards each has a vector's, or the other way round. */
KILN_INLINE void exchange_quad(uint32_t *words) {
    KILN_UNROLL
    for (uint32_t mask = 1; mask < 4; mask *= 2) {
        bool upper = kiln_thread() & mask;
        KILN_UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            if (i & mask) continue;
            uint32_t got = __shfl_xor_sync(0xffffffffu, upper ? words[i] : words[i | mask], (int)mask);
            words[i] = upper ? got : words[i];
            words[i | mask] = upper ? words[i | mask] : got;
        }
    }
}

/* Adds the mask to the scores of a consumer's warp with the keys from `key` on; those behind a row's window are left as
 * they are. Four lanes read 32 keys of a row by vectors and exchange them, where the mask's rows are on 16 bytes, and
 * else by elements. */
template <uint32_t KEYS>
KILN_INLINE void add_mask_anew(const kiln_attention_args &args, const volatile tile_place *places,
                               const kiln_window *windows, float (*scores)[4], uint32_t key) {
    tile_place place = place_anew(places);
    kiln_attention_work work = kiln_attention_work_of(&args, 0, place.block);
    kiln_sequence s = kiln_sequence_of(&args, work.batch);
    float factor = args.softcap == 0.0f ? kiln_reciprocal(args.scale) : KILN_LOG2_E;
    uint32_t first = row_anew(args, place.tile), lane = kiln_sm90a_anew(kiln_thread() % 4);
    bool wide = ((uint32_t)(uintptr_t)args.mask | args.mask_cols * sizeof(kiln_element)) % KILN_VECTOR_BYTES == 0;
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++) {
        uint32_t number = min(first + 8 * r, s.seqlen_q * args.group - 1), end = windows[r].end;
        uint32_t head = work.kv_head * args.group + number % args.group;
        const kiln_element *row = (const kiln_element *)args.mask;
        row += kiln_mask_row(&args, work.batch, head, number / args.group) + key;
        KILN_UNROLL
        for (uint32_t part = 0; part < KEYS; part += 32) {
            uint32_t words[4] = {};
            if (wide) {
                uint32_t at = part + lane * KILN_VECTOR;
                if (key + at < end) {
                    kiln_vector vector = kiln_vector_load(row + at);
                    KILN_UNROLL
                    for (uint32_t i = 0; i < 4; i++)
                        words[i] = vector.words[i];
                }
                exchange_quad(words);
            } else {
                KILN_UNROLL
                for (uint32_t i = 0; i < 8; i++) {
                    uint32_t at = part + i / 2 * 8 + lane * 2 + i % 2;
                    if (key + at < end) words[i / 2] |= (uint32_t)row[at] << i % 2 * 16;
                }
            }
            KILN_UNROLL
            for (uint32_t i = 0; i < 4; i++) {
                float values[2];
                kiln_pair_values(values, words[i]);
                KILN_UNROLL
                for (uint32_t j = 0; j < 2; j++) {
                    float *score = &scores[part / 8 + i][2 * r + j];
                    *score = values[j] == -KILN_INFINITY ? -KILN_INFINITY : KILN_FMA(values[j], factor, *score);
                }
            }
        }
    }
}

/* mask_tree of a consumer's warp. */
template <uint32_t KEYS>
KILN_INLINE void mask_tree_anew(const kiln_attention_args &args, const volatile tile_place *places, float (*scores)[4],
                                uint32_t key) {
    tile_place place = place_anew(places);
    kiln_sequence s = kiln_sequence_of(&args, kiln_attention_work_of(&args, 0, place.block).batch);
    int32_t tree = kiln_tree_begin(&args, &s);
    if ((int32_t)(key + KEYS) <= tree) return;
    uint32_t row = row_anew(args, place.tile), tokens[2];
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++)
        tokens[r] = s.q_first + min(row + 8 * r, s.seqlen_q * args.group - 1) / args.group;
    mask_tree<KEYS>(args, tree, scores, tokens, key);
}

/* Scores become weights. */
template <uint32_t DIM, uint32_t KEYS, bool GENERAL, bool MASKED>
KILN_INLINE bool weigh(const kiln_attention_args &args, const volatile tile_place *places, float factor,
                       rows_of_warp<DIM> *rows, float (*scores)[4], uint32_t key, float *keep) {
    if (GENERAL) {
        if (args.softcap != 0.0f) {
            float twice = scale_anew<layout<DIM, KEYS>::EXTENDED>(args, places).twice;
            KILN_UNROLL
            for (uint32_t i = 0; i < KEYS / 2; i++)
                scores[i / 4][i % 4] = capped(scores[i / 4][i % 4], twice, args.softcap * KILN_LOG2_E);
        }
        if (MASKED) add_mask_anew<KEYS>(args, places, rows->window, scores, key);
        KILN_UNROLL
        for (uint32_t i = 0; i < KEYS / 2; i++) {
            kiln_window window = rows->window[i / 2 % 2];
            uint32_t at = key + i / 4 * 8 + kiln_thread() % 4 * 2 + i % 2;
            if (at - window.begin >= window.end - window.begin) scores[i / 4][i % 4] = -KILN_INFINITY;
        }
        if (layout<DIM, KEYS>::EXTENDED && args.tree_mask) mask_tree_anew<KEYS>(args, places, scores, key);
    }
    float origin[2], offset[2];
    bool rose = false;
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++) {
        float max = rows->max[r];
        KILN_UNROLL
        for (uint32_t n = 0; n < KEYS / 8; n++)
            max = fmaxf(max, fmaxf(scores[n][2 * r], scores[n][2 * r + 1]));
        max = fmaxf(max, kiln_shuffle_xor(max, 1));
        max = fmaxf(max, kiln_shuffle_xor(max, 2));
        origin[r] = max == -KILN_INFINITY ? 0.0f : max;
        offset[r] = origin[r] * factor;
        keep[r] = kiln_fast_exp2((rows->max[r] - origin[r]) * factor);
        rose |= max > rows->max[r];
        rows->max[r] = max;
    }
    if (__any_sync(0xffffffffu, fabsf(offset[0]) >= 2048.0f || fabsf(offset[1]) >= 2048.0f)) {
        KILN_UNROLL
        for (uint32_t i = 0; i < KEYS / 2; i++)
            scores[i / 4][i % 4] -= origin[i / 2 % 2];
        offset[0] = offset[1] = 0.0f;
    }
    rose = __any_sync(0xffffffffu, rose);
    if (rose) {
        rows->sum[0] *= keep[0];
        rows->sum[1] *= keep[1];
    }
    KILN_UNROLL
    for (uint32_t i = 0; i < KEYS / 2; i++) {
        float weight = kiln_fast_exp2(KILN_FMA(scores[i / 4][i % 4], factor, -offset[i / 2 % 2]));
        rows->sum[i / 2 % 2] += weight;
        scores[i / 4][i % 4] = weight;
    }
    return rose;
}

template <uint32_t KEYS> KILN_INLINE void pack_weights(const float (*scores)[4], uint32_t (*weights)[4]) {
    KILN_UNROLL
    for (uint32_t n = 0; n < KEYS / 4; n++)
        weights[n / 4][n % 4] = pack(scores[n / 2][n % 2 * 2], scores[n / 2][n % 2 * 2 + 1]);
}

/* Where a warp's rows stand, computed anew for the end: the loop has no registers to keep it in. */
template <uint32_t DIM>
KILN_INLINE void place_rows(const kiln_attention_args &args, const kiln_sequence &s, uint32_t kv_head, uint32_t row,
                            uint32_t end, rows_of_warp<DIM> *rows) {
    row = kiln_sm90a_anew(row) + kiln_thread() % LANES / 4;
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++) {
        rows->has[r] = row + 8 * r < end;
        rows->at[r] = row_place_of(args, s, kv_head, rows->has[r] ? row + 8 * r : end - 1);
    }
}

template <uint32_t DIM, uint32_t KEYS, bool MASKED>
KILN_INLINE void consume(const kiln_attention_args &args, const kiln_sequence &s, const kiln_attention_work &work,
                         const key_tiles &tiles, uint32_t begin, uint32_t end, uint32_t shared, char *memory) {
    typedef layout<DIM, KEYS> at;
    const volatile tile_place *places = (const tile_place *)(memory + at::PLACES);
    const uint32_t last = begin + tiles.count - 1; /* the place of the last tile */
    uint32_t group = uniform(kiln_thread() / WARPGROUP) - 1, warp = kiln_thread() % WARPGROUP / LANES;
    uint32_t group_row = work.row + group * GROUP_ROWS, row = group_row + warp * WARP_ROWS;
    uint32_t queries = shared + at::QUERIES + group * at::QUERY_BYTES;
    copy_group_queries<DIM, KEYS>(args, s, work.kv_head, group_row, end, queries);
    ring k = ring_of<DIM, KEYS>(shared, false), v = ring_of<DIM, KEYS>(shared, true);
    float factor = score_scale_of<at::EXTENDED>(args, work.kv_head).factor;
    int32_t tree = masked_from(args, s);
    tile_state<DIM, KEYS> t;
    start_rows(args, s, work, row, end, &t.rows);

    /* Of these tiles all rows see all keys: from low on, before high. */
    uint32_t first_row = group_row < end ? group_row : end - 1, last_row = min(group_row + GROUP_ROWS, end) - 1;
    kiln_window first_window = kiln_window_of(&args, &s, first_row / args.group);
    kiln_window last_window = kiln_window_of(&args, &s, last_row / args.group);
    uint32_t seen_end = min(first_window.end, tiles.end);
    if (layout<DIM, KEYS>::EXTENDED && has_mask(tree, seen_end)) seen_end = (uint32_t)max(tree, 0);
    uint32_t low = last_window.begin > tiles.key ? (last_window.begin - tiles.key + KEYS - 1) / KEYS : 0;
    uint32_t high = seen_end > tiles.key ? (seen_end - tiles.key) / KEYS : 0;
    high = MASKED || args.softcap != 0.0f ? 0 : uniform(high);
    low = uniform(low);

    KILN_UNROLL
    for (uint32_t i = 0; i < KEYS / 2; i++)
        t.scores[i / 4][i % 4] = 0.0f;
    kiln_sm90a_barrier_sync(1 + group, WARPGROUP);
    if (tiles.count) {
        float keep[2];
        ring_wait_full(k, begin);
        kiln_sm90a_wgmma_hold<KEYS / 2>(t.scores[0]);
        kiln_sm90a_wgmma_fence();
        begin_scores<DIM, KEYS>(t.scores, queries, ring_tile(k, begin));
        kiln_sm90a_wgmma_wait<0>();
        kiln_sm90a_wgmma_hold<KEYS / 2>(t.scores[0]);
        ring_release(k, begin);
        uint32_t next = tiles.count - 1;
        weigh<DIM, KEYS, true, MASKED>(args, places, factor, &t.rows, t.scores, tiles.key + next * KEYS, keep);
        pack_weights<KEYS>(t.scores, t.weights);

        auto step = [&](auto general) {
            next--;
            uint32_t n = last - next;
            ring_wait_full(k, n);
            kiln_sm90a_wgmma_hold<KEYS / 2>(t.scores[0]);
            kiln_sm90a_wgmma_hold<DIM / 2>(t.rows.result[0]);
            kiln_sm90a_wgmma_fence();
            begin_scores<DIM, KEYS>(t.scores, queries, ring_tile(k, n));
            ring_wait_full(v, n - 1);
            begin_results<DIM, KEYS>(t.rows.result, t.weights, ring_tile(v, n - 1));
            kiln_sm90a_wgmma_wait<1>();
            kiln_sm90a_wgmma_hold<KEYS / 2>(t.scores[0]);
            ring_release(k, n);
            bool rose = weigh<DIM, KEYS, decltype(general)::value, MASKED>(args, places, factor, &t.rows, t.scores,
                                                                           tiles.key + next * KEYS, keep);
            kiln_sm90a_wgmma_wait<0>();
            kiln_sm90a_wgmma_hold<DIM / 2>(t.rows.result[0]);
            ring_release(v, n - 1);
            if (rose) {
                KILN_UNROLL
                for (uint32_t i = 0; i < DIM / 2; i++)
                    t.rows.result[i / 4][i % 4] *= keep[i / 2 % 2];
            }
            pack_weights<KEYS>(t.scores, t.weights);
        };
        for (uint32_t stop = high;; stop = 0) {
            KILN_LOOP
            while (next > stop)
                step(is_general<true>{});
            if (!next) break;
            if constexpr (!MASKED) {
                KILN_LOOP
                while (next > low)
                    step(is_general<false>{});
            }
        }
        ring_wait_full(v, last);
        kiln_sm90a_wgmma_hold<DIM / 2>(t.rows.result[0]);
        kiln_sm90a_wgmma_fence();
        begin_results<DIM, KEYS>(t.rows.result, t.weights, ring_tile(v, last));
        kiln_sm90a_wgmma_wait<0>();
        kiln_sm90a_wgmma_hold<DIM / 2>(t.rows.result[0]);
        ring_release(v, last);
    }
    kiln_sm90a_barrier_sync(1 + group, WARPGROUP); /* no warp reads queries any more */
    place_rows(args, s, work.kv_head, row, end, &t.rows);
    if (uniform(row) < end) /* as a branch that may diverge it made ptxas let all products wait for each other */
        write_rows(args, s, work, row, end, scale_anew<at::EXTENDED>(args, places).unit, t.rows,
                   memory + at::QUERIES + group * at::QUERY_BYTES + warp * WARP_ROWS * heads<DIM>::PITCH);
    kiln_sm90a_barrier_sync(1 + group, WARPGROUP); /* nor reads results where queries come next */
}

/* The place of the number-th tile of rows. Heads whose keys and values L2 has room for come together, of them the last
 * rows first: with causal they see most. */
KILN_INLINE tile_place place_of_tile(const kiln_attention_args &args, uint32_t number) {
    uint32_t blocks = args.batch * args.kv_heads * args.splits;
    uint32_t together = min(max(SECTION_ELEMENTS / args.head_dim / max(args.split, 1u), 1u), blocks);
    uint32_t first = number / (together * args.row_tiles) * together, rest = number - first * args.row_tiles;
    together = min(together, blocks - first);
    return {rest / together, first + rest % together};
}

/* The tiles of a block, each in turn: body(s, work, end, tiles, begin) with the end of the sequence's rows, and the
 * first place of the tiles of keys in the rings. Every other round goes over the blocks backwards, so that each has
 * long and short ones. */
template <uint32_t KEYS, class body_type>
KILN_INLINE void each_tile(const kiln_attention_args &args, tile_place *places, body_type body) {
    uint32_t count = args.row_tiles * args.batch * args.kv_heads * args.splits, begin = 0;
    KILN_LOOP
    for (uint32_t round = 0; round < count; round += gridDim.x) {
        uint32_t number = round + (round / gridDim.x % 2 ? gridDim.x - 1 - blockIdx.x : blockIdx.x);
        if (number >= count) continue;
        tile_place place = place_of_tile(args, number);
        kiln_attention_work work = kiln_attention_work_of(&args, 0, place.block);
        work.row = (args.row_tiles - 1 - place.tile) * TILE_ROWS;
        kiln_sequence s = kiln_sequence_of(&args, work.batch);
        uint32_t end = uniform(s.seqlen_q * args.group); /* of the rows */
        if (work.row >= end) continue;
        kiln_attention_trim(&args, &s, work.row + TILE_ROWS < end ? work.row + TILE_ROWS : end, &work);
        key_tiles tiles = {work.key, work.key_end, 0};
        if (tiles.end > tiles.key) tiles.count = uniform((tiles.end - tiles.key + KEYS - 1) / KEYS);
        if (kiln_thread() % LANES == 0) places[kiln_thread() / LANES] = place;
        __syncwarp();
        body(s, work, end, tiles, begin);
        begin += tiles.count;
    }
}

template <uint32_t DIM, uint32_t KEYS, bool MASKED = false>
KILN_INLINE void attend_tiles(const kiln_attention_args &args, const kiln_tensor_map *maps) {
    typedef layout<DIM, KEYS> at;
    extern __shared__ atom atoms[];
    uint32_t shared = kiln_sm90a_shared(atoms);
    char *memory = (char *)atoms;
    tile_place *places = (tile_place *)(memory + at::PLACES);
    if (kiln_thread() == 0) {
        KILN_UNROLL
        for (uint32_t i = 0; i < 4 * TILE_STAGES; i++)
            kiln_sm90a_mbarrier_init(shared + at::BARRIERS + i * 8,
                                     i / TILE_STAGES % 2 ? (uint32_t)CONSUMER_WARPS : (uint32_t)COPIERS);
        kiln_sm90a_fence_mbarrier_init();
        if (!PAGED) {
            kiln_sm90a_prefetch_tensormap(maps);
            kiln_sm90a_prefetch_tensormap(maps + 1);
        }
    }
    kiln_sm90a_begin();
    kiln_barrier();
    if (uniform(kiln_thread() / WARPGROUP) == 0) {
        kiln_sm90a_setmaxnreg_dec<at::PRODUCER_REGISTERS>();
        each_tile<KEYS>(args, places,
                        [&](const auto &s, const auto &work, uint32_t, const auto &tiles, uint32_t begin) {
                            produce<DIM, KEYS>(args, maps, s, work, tiles, begin, shared);
                        });
    } else {
        kiln_sm90a_setmaxnreg_inc<at::CONSUMER_REGISTERS>();
        each_tile<KEYS>(args, places,
                        [&](const auto &s, const auto &work, uint32_t end, const auto &tiles, uint32_t begin) {
                            consume<DIM, KEYS, MASKED>(args, s, work, tiles, begin, end, shared, memory);
                        });
    }
}

#define ATTENTION_PASTE(kernel, part, args_type)                  \
    extern "C" __global__ void __launch_bounds__(TILE_THREADS, 1) \
        kiln_##kernel##_##part(const __grid_constant__ args_type args)
#define ATTENTION_OF_PART(kernel, part, args_type) ATTENTION_PASTE(kernel, part, args_type)

/* Head of an entry of attend_tiles. */
#define ATTENTION_ENTRY(kernel, args_type) ATTENTION_OF_PART(kernel, KILN_PART, args_type)

#endif
