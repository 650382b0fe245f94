/* What attention_sm80_decode.h has of keys and values in shared memory: each
 * warp a ring of tiles, filled by cp.async, on sm_75 by loads and stores. */
#ifndef KILN_KERNELS_COMMON_ATTENTION_ATTENTION_SM80_RING_H
#define KILN_KERNELS_COMMON_ATTENTION_ATTENTION_SM80_RING_H

#include "kernels/common/attention/attention_sm80.h"
#if __CUDA_ARCH__ >= 900
#include "kernels/arch/sm80.h"
#endif

/* A block's share of the work: each of its warps has tiles of its own. */
template <uint32_t DIM, uint32_t KEY_WARPS, bool CODES> struct decoding {
    typedef heads<DIM, CODES> held;
    enum : uint32_t {
        THREADS = KEY_WARPS * LANES,
        KEYS = CODES ? 32 : 16, /* of a warp's tile */
        TILE_BYTES = KEYS * held::PITCH,
        WARP_BYTES = 2 * TILE_BYTES, /* k, then v */
        STAGE_BYTES = KEY_WARPS * WARP_BYTES,
        STRIDE = KEY_WARPS * KEYS,
        ELEMENT_BYTES = KILN_VECTOR_BYTES / held::ELEMENTS,
        SUMS = DIM + (CODES ? 16 : 8) /* floats of a row of partial sums: no bank is met twice */
    };
    static_assert((uint32_t)STAGE_BYTES >= KEY_WARPS * WARP_ROWS * SUMS * sizeof(float), "which take a stage's place");
};

/* Starts to copy a vector, of which a row has more. */
template <uint32_t COUNT>
KILN_INLINE void copy_vector(copies<COUNT> *under_way, uint32_t i, uint32_t shared, const void *global,
                             uint32_t bytes) {
#if __CUDA_ARCH__ >= 900
    kiln_sm80_cp_async_128(shared, global, bytes);
#else
    under_way->start(i, shared, global, bytes);
#endif
}

/* The ring of a warp. Lanes copy whole keys, as many at once as a warp has
 * lanes for, so that memory is read by whole rows. Tiles that have all their
 * keys, 16 in each of the cache's blocks that they are in, are copied without
 * looking up every key; what is behind the last key are zeros. Blocks are
 * looked up 32 runs ahead. */
template <uint32_t DIM, uint32_t KEY_WARPS, bool CODES> struct tile_ring {
    typedef decoding<DIM, KEY_WARPS, CODES> share;
    typedef heads<DIM, CODES> held;
    enum : uint32_t {
        ROW_LANES = held::VECTORS < LANES ? held::VECTORS : LANES, /* that copy a key */
        AT_ONCE = LANES / ROW_LANES,                               /* keys, by an instruction of a warp */
        RUN = 16,                                                  /* keys that lie in one block of the cache */
        RUNS = share::KEYS / RUN                                   /* of a tile */
    };

    const kiln_attention_args &args;
    const kiln_sequence &s;
    const char *k, *v;     /* the lane's vector of row 0 */
    uint32_t key, end;     /* of the tile that is copied next, and of all */
    uint32_t row;          /* of a tile, the lane's first */
    uint32_t bytes;        /* of a vector: 0 behind a head's last element */
    uint32_t ahead;        /* runs that are copied, of as many as a warp has lanes, whose
                              blocks of the cache it has, */
    uint32_t blocks, next; /* a run's a lane; and of as many after them */
    uint32_t first, to;    /* places in shared memory: of the first tile, and of the
                              next that is copied, */
    uint32_t from;         /* and of the next that is waited for */

    __device__ __forceinline__ tile_ring(const kiln_attention_args &args, const kiln_sequence &s,
                                         const kiln_attention_work &work, uint32_t shared)
        : args(args), s(s), key(work.key), end(work.key_end), row(kiln_thread() % LANES / ROW_LANES), first(shared),
          to(shared), from(shared), ahead(0) {
        uint32_t d = kiln_thread() % ROW_LANES * held::ELEMENTS;
        bool has = d < args.head_dim;
        uint64_t offset = (uint64_t)(work.kv_head * args.head_dim + (has ? d : 0)) * share::ELEMENT_BYTES;
        k = (const char *)args.k + offset;
        v = (const char *)args.v + offset;
        bytes = has ? KILN_VECTOR_BYTES : 0;
        blocks = look_up(key);
        next = look_up(key + LANES / RUNS * share::STRIDE);
    }

    /* The block of a lane's run, of those from the tile that begins with this key
     * on. */
    __device__ __forceinline__ uint32_t look_up(uint32_t tile) const {
        uint32_t lane = kiln_thread() % LANES, own = tile + lane / RUNS * share::STRIDE + lane % RUNS * RUN;
        return PAGED && own < end ? kiln_key_block(&args, &s, own) : 0;
    }

    __device__ __forceinline__ uint32_t block_of(uint32_t run) const {
        return PAGED ? __shfl_sync(0xffffffffu, blocks, (int)(ahead + run)) : 0;
    }

    __device__ __forceinline__ uint32_t after(uint32_t place) const {
        place += share::STAGE_BYTES;
        return place == first + args.stages * share::STAGE_BYTES ? first : place;
    }

    /* Starts to copy the next tile, if there is one. */
    __device__ __forceinline__ void copy() {
        if (key < end) {
            const uint64_t k_stride = (uint64_t)args.k_stride * share::ELEMENT_BYTES;
            const uint64_t v_stride = (uint64_t)args.v_stride * share::ELEMENT_BYTES;
            uint32_t k_to = vector_at<DIM, CODES>(to, row, kiln_thread() % ROW_LANES), left = end - key;
            copies<2 * share::KEYS / AT_ONCE> under_way;
            if (left >= share::KEYS && (!PAGED || 1u << args.block_log2 >= RUN)) {
                KILN_UNROLL
                for (uint32_t run = 0; run < share::KEYS / RUN; run++) {
                    uint64_t at = kiln_block_row(&args, &s, block_of(run), key + run * RUN) + row;
                    const char *k_from = k + at * k_stride, *v_from = v + at * v_stride;
                    KILN_UNROLL
                    for (uint32_t i = run * RUN; i < (run + 1) * RUN; i += AT_ONCE) {
                        const uint32_t place = 2 * (i / AT_ONCE), k_at = k_to + i * held::PITCH;
                        copy_vector(&under_way, place, k_at, k_from, bytes);
                        copy_vector(&under_way, place + 1, k_at + share::TILE_BYTES, v_from, bytes);
                        k_from += AT_ONCE * k_stride;
                        v_from += AT_ONCE * v_stride;
                    }
                }
                under_way.land();
            } else {
                KILN_LOOP
                for (uint32_t i = row; i < share::KEYS; i += AT_ONCE, k_to += AT_ONCE * held::PITCH) {
                    uint64_t at = kiln_key_row(&args, &s, key + (i < left ? i : left - 1));
                    copies<2> few;
                    copy_vector(&few, 0, k_to, k + at * k_stride, i < left ? bytes : 0);
                    copy_vector(&few, 1, k_to + share::TILE_BYTES, v + at * v_stride, i < left ? bytes : 0);
                    few.land();
                }
            }
            key += share::STRIDE;
            ahead += RUNS;
            if (PAGED && ahead == LANES) {
                ahead = 0;
                blocks = next;
                next = look_up(key + LANES / RUNS * share::STRIDE);
            }
        }
        copies_commit();
        to = after(to);
    }

    /* Waits for the oldest tile and returns its place: k, then v, of KEYS rows of
     * PITCH bytes each. */
    __device__ __forceinline__ uint32_t wait() {
        if (args.stages == 1)
            copies_wait<0>();
        else if (args.stages == 2)
            copies_wait<1>();
        else
            copies_wait<2>();
        __syncwarp();
        uint32_t tile = from;
        from = after(from);
        return tile;
    }
};

#endif
