/* Attention for sm_90a (attention_sm90a.h): its tiles, and where they are in shared memory.
 *
 * Rows of shared memory are 64 elements, 128 bytes, whose vectors are swizzled, so that neither copies nor products
 * meet a bank twice; longer heads have more such spans. */
#ifndef KILN_KERNELS_COMMON_ATTENTION_ATTENTION_SM90A_TILES_H
#define KILN_KERNELS_COMMON_ATTENTION_ATTENTION_SM90A_TILES_H

#include "kernels/arch/sm90a_programmatic.h"
#include "kernels/common/attention/attention_mapped_args.h"
#include "kernels/common/attention/attention_sm80.h"
#include "kernels/common/values.h"

/* What all lanes of a warp have, so that the compiler knows it. */
KILN_INLINE uint32_t uniform(uint32_t value) {
    return __shfl_sync(0xffffffffu, value, 0);
}

enum : uint32_t {
    WARPGROUP = 128, /* threads */
    GROUP_ROWS = 64,
    TILE_STAGES = 2,
    CONSUMERS_MOST = 3,
    SPAN = 128, /* bytes of a row that a swizzle is over */
    SPAN_VECTORS = SPAN / KILN_VECTOR_BYTES,
    SPAN_ELEMENTS = SPAN_VECTORS * KILN_VECTOR,
    ATOM = 8 * SPAN,           /* bytes: eight rows, after which a swizzle repeats */
    TURN = 1,                  /* the barriers of consumers whose turn it is: this one and the next */
    SECTION_ELEMENTS = 4 << 20 /* of keys, and as many of values: 16 MB, a third of L2 */
};

/* The tiles of keys of a tile of rows: count of them from key on, of which the last is short where end is. */
struct key_tiles {
    uint32_t key, end, count;
};

/* A consumer's part of a tile of rows: the tiles of keys. Of these, counted from the first key on, all its rows see all
 * keys from low on, before high. */
struct __align__(16) consumer_tiles {
    uint32_t key, count; /* at least one: where rows see no key, one without a key. None: there are no more rows */
    uint32_t low, high;
};

/* A tile of rows. Its producer leaves it in shared memory for the consumers. */
struct row_tile {
    kiln_sequence s;
    kiln_attention_work work;
    uint32_t end; /* of the sequence's rows */
    consumer_tiles consumers[CONSUMERS_MOST];
};

/* Shared memory, in bytes. */
template <uint32_t DIM, uint32_t KEYS> struct layout {
    enum : uint32_t {
        SPANS = (DIM + SPAN_ELEMENTS - 1) / SPAN_ELEMENTS,
        CONSUMERS = !PAGED && DIM <= 96 ? 3 : 2,
        CONSUMER_WARPS = CONSUMERS * WARPGROUP / LANES,
        ROWS = CONSUMERS * GROUP_ROWS,
        THREADS = (1 + CONSUMERS) * WARPGROUP,
        TILE_BYTES = SPANS * KEYS * SPAN,
        RING_BYTES = TILE_STAGES * TILE_BYTES,
        QUERY_BYTES = SPANS * GROUP_ROWS * SPAN, /* of a consumer */
        QUERY_STAGES = DIM <= 128 ? 2 : 1,
        QUERIES = 2 * RING_BYTES, /* behind keys and values */
        BARRIERS = QUERIES + QUERY_STAGES * CONSUMERS * QUERY_BYTES,
        QUERY_BARRIERS = BARRIERS + 2 * 2 * TILE_STAGES * 8,
        ROW_TILES = QUERY_BARRIERS + 2 * QUERY_STAGES * 8,
        /* A tile's results are written while the next one has the first weights: two more than stages. */
        ROW_TILE_STAGES = QUERY_STAGES + 2,
        ROW_TILES_END = ROW_TILES + ROW_TILE_STAGES * sizeof(row_tile),
        /* Results on their way to memory, a place for each warp, where there is room. */
        RESULTS_SHARED = !PAGED && (DIM == 64 || DIM == 128),
        RESULTS = (ROW_TILES_END + SPAN - 1) / SPAN * SPAN,
        RESULT_BYTES = SPANS * WARP_ROWS * SPAN,
        BYTES = RESULTS_SHARED ? RESULTS + CONSUMER_WARPS * RESULT_BYTES : ROW_TILES_END,
        /* of a thread; a producer needs more where it looks blocks up, or has many spans */
        PRODUCER_REGISTERS = PAGED && DIM <= 128 ? 72 : 56,
        CONSUMER_REGISTERS = CONSUMERS == 3        ? 152
                             : PAGED && DIM <= 128 ? 216
                                                   : 224,
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

/* The queries of the number-th tile of rows, and what is known of it. */
template <uint32_t DIM, uint32_t KEYS> struct query_ring {
    typedef layout<DIM, KEYS> at;
    static __device__ __forceinline__ uint32_t full(uint32_t shared, uint32_t number) {
        return shared + at::QUERY_BARRIERS + number % at::QUERY_STAGES * 8;
    }
    static __device__ __forceinline__ uint32_t empty(uint32_t shared, uint32_t number) {
        return full(shared, number) + at::QUERY_STAGES * 8;
    }
    static __device__ __forceinline__ uint32_t queries(uint32_t shared, uint32_t number) {
        return shared + at::QUERIES + number % at::QUERY_STAGES * at::CONSUMERS * at::QUERY_BYTES;
    }
    static __device__ __forceinline__ row_tile *tile(char *memory, uint32_t number) {
        return (row_tile *)(memory + at::ROW_TILES) + number % at::ROW_TILE_STAGES;
    }
    static __device__ __forceinline__ void wait_full(uint32_t shared, uint32_t number) {
        kiln_sm90a_mbarrier_wait(full(shared, number), number / at::QUERY_STAGES % 2);
    }
    static __device__ __forceinline__ void wait_empty(uint32_t shared, uint32_t number) {
        if (number >= at::QUERY_STAGES)
            kiln_sm90a_mbarrier_wait(empty(shared, number), number / at::QUERY_STAGES % 2 ^ 1);
    }
    static __device__ __forceinline__ void release(uint32_t shared, uint32_t number) {
        if (kiln_thread() % LANES == 0) kiln_sm90a_mbarrier_arrive(empty(shared, number));
    }
};

/* What a row of the sequence sees: kiln_window_of its query, by 32 bits and without a division where heads share no
 * keys. */
KILN_INLINE kiln_window window_of_row(const kiln_attention_args &args, const kiln_sequence &s, uint32_t row) {
    const int32_t length = (int32_t)s.seqlen_k, left = (int32_t)args.left, right = (int32_t)args.right;
    const int32_t own = (int32_t)(args.group == 1 ? row : row / args.group) + length - (int32_t)s.seqlen_q;
    const int32_t begin = left == KILN_ATTENTION_ANY || own < left ? 0 : own - left + 1;
    const int32_t end = right == KILN_ATTENTION_ANY || own > length - right ? length : own + right;
    return {begin < end ? (uint32_t)begin : 0, begin < end ? (uint32_t)end : 0};
}

/* The first key of the n-th tile: the last of them come first. */
template <uint32_t KEYS> KILN_INLINE uint32_t tile_key(const key_tiles &tiles, uint32_t n) {
    return tiles.key + (tiles.count - 1 - n) * KEYS;
}

/* A vector's place in rows of spans, each of which is swizzled: its number is turned by its row's within an atom. */
template <uint32_t ROWS> KILN_INLINE uint32_t swizzled(uint32_t row, uint32_t vector) {
    return vector / SPAN_VECTORS * ROWS * SPAN + row * SPAN + (vector % SPAN_VECTORS ^ row % 8) * KILN_VECTOR_BYTES;
}

#endif
