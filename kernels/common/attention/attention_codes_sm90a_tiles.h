/* Attention on codes of 8 bits for sm_90a: shared memory, and the warpgroup that fills it. attention_codes_sm90a.h
 * tells the whole. */
#ifndef KILN_KERNELS_COMMON_ATTENTION_ATTENTION_CODES_SM90A_TILES_H
#define KILN_KERNELS_COMMON_ATTENTION_ATTENTION_CODES_SM90A_TILES_H

#include "kernels/arch/sm80.h"
#include "kernels/arch/sm90a_wgmma.h"
#include "kernels/common/attention/attention_codes_mapped_args.h"
#include "kernels/common/attention/attention_codes_rows.h"

enum : uint32_t {
    WARPGROUP = 128, /* threads */
    GROUP_ROWS = 64,
    GROUP_WARPS = WARPGROUP / LANES,
    TILE_KEYS = 128,
    SPAN = 128,        /* bytes of a row */
    ATOM = 8 * SPAN,   /* bytes: eight rows, after which a swizzle repeats */
    HEADS_TILES = 256, /* of rows, of heads that blocks take together */
    TILE_BYTES = TILE_KEYS * SPAN,
    QUERY_BYTES = GROUP_ROWS * SPAN,
    GREATEST = 0x7e7e7e7e,  /* E4M3 */
    SHARED_SCALE_KEYS = 64, /* of which a lane's have one scale, where scales are shared */
    CONSUMERS = 3
};

/* Barriers of the block, beside that of all its threads: of the producer, of a consumer, of its turn. */
enum : uint32_t { OF_PRODUCER = 1, OF_CONSUMER, OF_TURN = OF_CONSUMER + CONSUMERS };

/* What a thread of a consumer has in shared memory, since its registers are too few, of its two rows. */
struct __align__(16) own_numbers {
    float factor[2];  /* of scores, times log2 e */
    float sum[2];     /* of weights before they are rounded */
    float keep[2];    /* the factor of what the rows have had before the tile of the weights */
    float rounded[2]; /* the products of weights and GREATEST */
};

/* Shared memory, in bytes, and how a block's threads divide it. */
template <uint32_t DIM> struct layout {
    enum : uint32_t {
        TILE_ROWS = CONSUMERS * GROUP_ROWS,
        THREADS = (1 + CONSUMERS) * WARPGROUP,
        PRODUCER_REGISTERS = 32,
        CONSUMER_REGISTERS = 160,
        STAGES = 3,            /* of tiles as they come */
        TRANSPOSED_STAGES = 3, /* of tiles of values */
        ROWS = DIM + 8,        /* of a transposed tile: channels, and the greatest code */
        TRANSPOSED_BYTES = ROWS * SPAN,
        KEYS = 0,
        VALUES = KEYS + STAGES * TILE_BYTES,
        TRANSPOSED = VALUES + STAGES * TILE_BYTES,
        QUERIES = TRANSPOSED + TRANSPOSED_STAGES * TRANSPOSED_BYTES,
        SCALES = QUERIES + CONSUMERS * QUERY_BYTES,
        CHANNELS = SCALES + STAGES * TILE_KEYS * (uint32_t)sizeof(float), /* what values have: scales, means */
        OWN = CHANNELS + 2 * DIM * (uint32_t)sizeof(float),               /* what each thread of a consumer has there */
        BARRIERS = OWN + CONSUMERS * WARPGROUP * (uint32_t)sizeof(own_numbers),
        KEYS_FULL = BARRIERS,
        KEYS_EMPTY = KEYS_FULL + STAGES * 8,
        VALUES_FULL = KEYS_EMPTY + STAGES * 8,
        TRANSPOSED_FULL = VALUES_FULL + STAGES * 8,
        TRANSPOSED_EMPTY = TRANSPOSED_FULL + TRANSPOSED_STAGES * 8,
        BYTES = TRANSPOSED_EMPTY + TRANSPOSED_STAGES * 8
    };
};

struct __align__(1024) atom {
    char bytes[ATOM];
};

/* The tiles of a block: count of them from key on, of which the last is short where end is. */
struct key_tiles {
    uint32_t key, end, count;
};

/* The first key of the n-th tile: the last of them come first. */
KILN_INLINE uint32_t tile_key(const key_tiles &tiles, uint32_t n) {
    return tiles.key + (tiles.count - 1 - n) * TILE_KEYS;
}

/* A vector's place in swizzled rows: its number is turned by its row's within an atom. */
KILN_INLINE uint32_t swizzled(uint32_t row, uint32_t vector) {
    return row * SPAN + (vector ^ row % 8) * CODES;
}

/* Whether sums of weights before they are rounded are wanted. */
KILN_INLINE bool summed(const kiln_attention_args &args) {
    return args.lse || args.partials;
}

/* What all lanes of a warp have, so that the compiler knows it. */
KILN_INLINE uint32_t uniform(uint32_t value) {
    return __shfl_sync(0xffffffffu, value, 0);
}

/* The n-th use of a ring of barriers: waits until it is full, or empty again. */
template <uint32_t COUNT> KILN_INLINE void wait_full(uint32_t barriers, uint32_t n) {
    kiln_sm90a_mbarrier_wait(barriers + n % COUNT * 8, n / COUNT % 2);
}
template <uint32_t COUNT> KILN_INLINE void wait_empty(uint32_t barriers, uint32_t n) {
    if (n >= COUNT) kiln_sm90a_mbarrier_wait(barriers + n % COUNT * 8, n / COUNT % 2 ^ 1);
}
template <uint32_t COUNT> KILN_INLINE void release(uint32_t barriers, uint32_t n) {
    __syncwarp(); /* all lanes have read */
    if (kiln_sm90a_elect()) kiln_sm90a_mbarrier_arrive(barriers + n % COUNT * 8);
}

/* ---- The producer ---- */

/* The scale of this thread's key of the n-th tile. */
KILN_INLINE float load_scale(const kiln_attention_codes_args &args, const kiln_sequence &s, uint32_t kv_head,
                             const key_tiles &tiles, uint32_t n) {
    const float *scales = args.k_scales + kv_head * (uint64_t)args.k_scale_rows;
    uint32_t key = tile_key(tiles, n) + kiln_thread();
    return key < tiles.end ? scales[kiln_scale_at(args.k_index, s.kv_first + (uint64_t)key)] : 0.0f;
}

/* Copies the n-th tile of keys and of values: one thread. */
template <uint32_t DIM>
KILN_INLINE void copy_tile(const kiln_tensor_map *maps, uint32_t kv_head, uint32_t row, uint32_t n, uint32_t shared) {
    typedef layout<DIM> at;
    uint32_t stage = n % at::STAGES, full = shared + at::KEYS_FULL + stage * 8,
             values = shared + at::VALUES_FULL + stage * 8;
    kiln_sm90a_mbarrier_arrive_expect_tx(full, TILE_BYTES);
    kiln_sm90a_copy_3d(shared + at::KEYS + stage * TILE_BYTES, maps, full, 0, (int32_t)kv_head, (int32_t)row);
    kiln_sm90a_mbarrier_arrive_expect_tx(values, TILE_BYTES);
    kiln_sm90a_copy_3d(shared + at::VALUES + stage * TILE_BYTES, maps + 1, values, 0, (int32_t)kv_head, (int32_t)row);
}

/* Stores this thread's scale for the n-th tile. */
template <uint32_t DIM> KILN_INLINE void store_scale(float scale, uint32_t n, uint32_t shared, char *memory) {
    typedef layout<DIM> at;
    uint32_t stage = n % at::STAGES;
    *(float *)(memory + at::SCALES + (stage * TILE_KEYS + kiln_thread()) * (uint32_t)sizeof(float)) = scale;
    kiln_sm90a_mbarrier_arrive(shared + at::KEYS_FULL + stage * 8);
}

/* Makes what stands behind the last key of a tile of values zero. */
KILN_INLINE void clear_behind(char *values, uint32_t keys) {
    KILN_LOOP
    for (uint32_t i = keys * (SPAN / CODES) + kiln_thread(); i < TILE_BYTES / CODES; i += WARPGROUP)
        *(code_vector *)(values + i * CODES) = code_vector{{0, 0, 0, 0}};
    kiln_sm90a_barrier_sync(OF_PRODUCER, WARPGROUP);
}

/* Transposes a tile of values. A warp has 32 keys, 16 channels at a time. */
template <uint32_t DIM> KILN_INLINE void transpose(uint32_t from, uint32_t to) {
    uint32_t warp = kiln_thread() / LANES, lane = kiln_thread() % LANES;
    from += (warp * LANES + lane) * SPAN;
    to += swizzled(lane % 16, 2 * warp + lane / 16);
    KILN_UNROLL
    for (uint32_t n = 0; n < DIM / 16; n++, to += 2 * ATOM) {
        uint32_t pairs[4], words[4];
        kiln_sm80_ldmatrix_x4_trans(pairs, from + (n ^ lane % 8) * CODES);
        KILN_UNROLL
        for (uint32_t i = 0; i < 4; i++)
            words[i] = __byte_perm(pairs[i / 2 * 2], pairs[i / 2 * 2 + 1], i % 2 ? 0x7531 : 0x6420);
        kiln_sm90a_stmatrix_x4(to, words);
    }
}

/* Stores what the channels of values have: scales and means, zeros where those are NULL. */
template <uint32_t DIM>
KILN_INLINE void store_channels(const kiln_attention_codes_args &args, const kiln_attention_work &work, float *to) {
    const kiln_attention_args &plain = args.plain;
    const uint64_t first = (work.batch * plain.kv_heads + work.kv_head) * (uint64_t)plain.head_dim;
    KILN_LOOP
    for (uint32_t d = kiln_thread(); d < DIM; d += WARPGROUP) {
        to[d] = d < plain.head_dim ? args.v_scales[first + d] : 0.0f;
        to[DIM + d] = args.v_means && d < plain.head_dim ? args.v_means[first + d] : 0.0f;
    }
}

template <uint32_t DIM>
KILN_INLINE void produce(const kiln_attention_codes_args &args, const kiln_tensor_map *maps, const kiln_sequence &s,
                         const kiln_attention_work &work, const key_tiles &tiles, uint32_t shared, char *memory) {
    typedef layout<DIM> at;
    const uint32_t thread = kiln_thread(), ahead = at::STAGES - 1, kv_head = work.kv_head;
    if (thread == 0) {
        KILN_LOOP
        for (uint32_t n = 0; n < tiles.count && n < ahead; n++)
            copy_tile<DIM>(maps, kv_head, s.kv_first + tile_key(tiles, n), n, shared);
    }
    KILN_LOOP
    for (uint32_t i = thread; i < at::TRANSPOSED_STAGES * 64; i += WARPGROUP)
        *(code_vector *)(memory + at::TRANSPOSED + i / 64 * at::TRANSPOSED_BYTES + DIM * SPAN + i % 64 * CODES) =
            code_vector{{GREATEST, GREATEST, GREATEST, GREATEST}};
    store_channels<DIM>(args, work, (float *)(memory + at::CHANNELS));
    KILN_LOOP
    for (uint32_t n = 0; n < tiles.count && n < ahead; n++)
        store_scale<DIM>(load_scale(args, s, kv_head, tiles, n), n, shared, memory);
    KILN_LOOP
    for (uint32_t n = 0; n < tiles.count; n++) {
        uint32_t next = n + ahead, values = at::VALUES + n % at::STAGES * TILE_BYTES;
        float scale = next < tiles.count ? load_scale(args, s, kv_head, tiles, next) : 0.0f;
        wait_full<at::STAGES>(shared + at::VALUES_FULL, n);
        wait_empty<at::TRANSPOSED_STAGES>(shared + at::TRANSPOSED_EMPTY, n);
        if (n == 0) clear_behind(memory + values, tiles.end - tile_key(tiles, 0));
        transpose<DIM>(shared + values, shared + at::TRANSPOSED + n % at::TRANSPOSED_STAGES * at::TRANSPOSED_BYTES);
        kiln_sm90a_fence_proxy_async();
        kiln_sm90a_mbarrier_arrive(shared + at::TRANSPOSED_FULL + n % at::TRANSPOSED_STAGES * 8);
        kiln_sm90a_barrier_sync(OF_PRODUCER, WARPGROUP); /* all have read the tile before the one that is overwritten */
        if (next >= tiles.count) continue;
        wait_empty<at::STAGES>(shared + at::KEYS_EMPTY, next);
        if (thread == 0) copy_tile<DIM>(maps, kv_head, s.kv_first + tile_key(tiles, next), next, shared);
        store_scale<DIM>(scale, next, shared, memory);
    }
}

#endif
