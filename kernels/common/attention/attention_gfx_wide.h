/* Attention for heads of 129 to 256 elements by the matrix units of AMD chips whose waves have 32 lanes, beside the
 * tiles of attention_gfx.h, of whose parts it is made.
 *
 * A lane's sums of a result take 128 registers of 256. So a block has 64 rows, 16 a wave, over tiles of 32 keys;
 * queries lie in shared memory too, from where they are read anew for each tile; and one tile alone is on its way into
 * registers: that of v while keys are multiplied, that of k while values are. Two barriers a tile. Queries, k and v
 * take a compute unit's 64 KiB.
 *
 * Floor: 4 * rows * keys * head_dim operations of the matrix units. Not measured.
 * Test: build/tests/ops/mha_test. Bench: build/kiln bench mha */
#ifndef KILN_KERNELS_COMMON_ATTENTION_ATTENTION_GFX_WIDE_H
#define KILN_KERNELS_COMMON_ATTENTION_ATTENTION_GFX_WIDE_H

#include "kernels/common/attention/attention_gfx.h"

enum : uint32_t {
    WIDE_DIM = 256,
    WIDE_KEYS = 32,
    WIDE_WAVES = 4,
    WIDE_THREADS = WIDE_WAVES * unit::WAVE,
    WIDE_ROWS = WIDE_WAVES * ROWS_OF_WAVE,
    WIDE_PRODUCTS = WIDE_KEYS / unit::SIDE
};

/* Whatever depends on the thread is computed anew for each tile, for want of registers to keep it in. */
struct wide : tile<WIDE_DIM, WIDE_KEYS, WIDE_THREADS> {
    KILN_INLINE uint32_t thread(void) {
        uint32_t number = kiln_thread();
        __asm__ volatile("" : "+v"(number));
        return number;
    }
};

/* ---- Copies ---- */

/* The block of the cache that has a tile's key of this lane's number, which tells the others. */
KILN_INLINE uint32_t look_up_wide(const kiln_attention_args &args, const kiln_sequence &s,
                                  const kiln_attention_work &work, uint32_t key) {
    uint32_t own = key + wide::thread() % unit::WAVE;
    return PAGED && own < work.key_end ? kiln_key_block(&args, &s, own) : 0;
}

/* Loads a thread's vectors of a tile of k or v, as copier does: of COUNT keys from number `own` of the tile on, APART
 * from each other, ACROSS vectors from element `first` of a head on. */
template <uint32_t COUNT, uint32_t APART, uint32_t ACROSS>
KILN_INLINE void load_wide(const kiln_attention_args &args, const kiln_sequence &s, const kiln_attention_work &work,
                           const void *data, uint64_t stride, bool full, uint32_t key, uint32_t block, uint32_t own,
                           uint32_t first, kiln_vector *vectors) {
    bool codes = PAGED && args.codes;
    uint64_t element = work.kv_head * args.head_dim + first;
    uint64_t contiguous = kiln_block_row(&args, &s, 0, key + own) * stride + element;
    KILN_UNROLL
    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t number = own + i * APART;
        uint64_t place = contiguous + i * APART * stride;
        if (PAGED) {
            uint32_t told = (uint32_t)__builtin_amdgcn_ds_bpermute((int)(number * 4), (int)block);
            place = kiln_block_row(&args, &s, told, key + number) * stride + element;
        }
        KILN_UNROLL
        for (uint32_t j = 0; j < ACROSS; j++) {
            uint32_t next = 8 * j * KILN_VECTOR;
            kiln_vector loaded = {};
            if (full || (key + number < work.key_end && first + next < args.head_dim)) {
                if (codes) {
                    uint64_t bytes = *(const uint64_t *)((const char *)data + place + next);
                    loaded.words[0] = (uint32_t)bytes;
                    loaded.words[1] = (uint32_t)(bytes >> 32);
                } else {
                    loaded = kiln_vector_load((const kiln_element *)data + place + next);
                }
            }
            vectors[i * ACROSS + j] = loaded;
        }
    }
}

KILN_INLINE void load_wide_keys(const kiln_attention_args &args, const kiln_sequence &s,
                                const kiln_attention_work &work, bool full, uint32_t key, uint32_t block,
                                kiln_vector *vectors) {
    uint32_t own = unit::number_of(key_slot<wide>()), first = key_vector<wide>() * KILN_VECTOR;
    load_wide<wide::DOWN, wide::APART, wide::ACROSS>(args, s, work, args.k, (uint64_t)args.k_stride, full, key, block,
                                                     own, first, vectors);
}

KILN_INLINE void load_wide_values(const kiln_attention_args &args, const kiln_sequence &s,
                                  const kiln_attention_work &work, bool full, uint32_t key, uint32_t block,
                                  kiln_vector *vectors) {
    uint32_t own = value_group<wide>() * wide::LOADS, first = value_vector<wide>() * KILN_VECTOR;
    load_wide<wide::LOADS, 1, 1>(args, s, work, args.v, (uint64_t)args.v_stride, full, key, block, own, first, vectors);
}

/* Puts the queries of a wave's rows into shared memory, a row at a time; zeros after a head's last element. */
KILN_INLINE void put_wide_queries(const kiln_attention_args &args, const lane_row<WIDE_DIM> &r, kiln_vector *queries) {
    uint32_t vector = kiln_thread() % unit::WAVE;
    KILN_LOOP
    for (uint32_t i = 0; i < ROWS_OF_WAVE; i++) {
        uint32_t token = (uint32_t)__builtin_amdgcn_readlane((int)r.token, (int)i);
        uint32_t head = (uint32_t)__builtin_amdgcn_readlane((int)r.head, (int)i);
        const kiln_element *q = (const kiln_element *)args.q + token * (uint64_t)args.q_stride + head * args.head_dim;
        kiln_vector loaded = {};
        if (vector * KILN_VECTOR < args.head_dim) loaded = kiln_vector_load(q + vector * KILN_VECTOR);
        *place_of<wide::VECTORS>(queries, i, 0, vector, 0) = loaded;
    }
}

/* Products of a tile's keys with a wave's queries. A few fragments are on their way while those before are multiplied,
 * as in multiply(). */
KILN_INLINE void multiply_wide(kiln_vector *keys, kiln_vector *queries, unit::sums *scores) {
    enum : uint32_t {
        STEPS = WIDE_DIM / STEP,
        FEW = unit::VECTORS == 2 ? 1 : WIDE_PRODUCTS,
        TIMES = WIDE_PRODUCTS * STEPS / FEW
    };
    uint32_t lane = kiln_thread() % unit::WAVE;
    __asm__ volatile("" : "+v"(lane)); /* places are computed anew, for want of registers */
    unit::fragment next[FEW], query, next_query;
    KILN_UNROLL
    for (uint32_t time = 0; time <= TIMES; time++) {
        unit::fragment now[FEW];
        if (time && (time - 1) * FEW % WIDE_PRODUCTS == 0) query = next_query;
        if (time < TIMES && time * FEW % WIDE_PRODUCTS == 0)
            next_query = load_fragment<wide::VECTORS>(queries, lane, 0, time * FEW / WIDE_PRODUCTS);
        KILN_UNROLL
        for (uint32_t i = 0; i < FEW; i++) {
            uint32_t number = time * FEW + i;
            now[i] = next[i];
            if (time < TIMES)
                next[i] = load_fragment<wide::VECTORS>(keys, lane, number % WIDE_PRODUCTS * unit::SIDE,
                                                       number / WIDE_PRODUCTS);
        }
        KILN_UNROLL
        for (uint32_t i = 0; time && i < FEW; i++) {
            uint32_t n = ((time - 1) * FEW + i) % WIDE_PRODUCTS;
            scores[n] = unit::multiply(now[i], query, scores[n]);
        }
        __builtin_amdgcn_sched_barrier(0);
    }
}

KILN_INLINE void prefill_wide(const kiln_attention_args &args) {
    KILN_DYNAMIC_SHARED(kiln_vector, memory);
    kiln_vector *k = memory, *v = memory + wide::SIZE;
    kiln_vector *queries = v + wide::SIZE + wave_number() * ROWS_OF_WAVE * wide::VECTORS;
    kiln_attention_work work = kiln_attention_work_of(&args, 0, (uint32_t)kiln_block());
    work.row = (args.row_tiles - 1 - kiln_tile()) * WIDE_ROWS; /* the last rows first: with causal they see most */
    if (work.batch >= args.batch) return;                      /* the whole block */
    kiln_sequence s = kiln_sequence_of(&args, work.batch);
    uint32_t end = s.seqlen_q * args.group; /* of the rows */
    if (work.row >= end) return;            /* the whole block */
    kiln_attention_trim(&args, &s, work.row + WIDE_ROWS < end ? work.row + WIDE_ROWS : end, &work);

    kiln_vector held[wide::LOADS];
    uint32_t block = look_up_wide(args, s, work, work.key);
    load_wide_keys(args, s, work, false, work.key, block, held);
    uint32_t next_block = look_up_wide(args, s, work, work.key + WIDE_KEYS);

    uint32_t row = work.row + wave_number() * ROWS_OF_WAVE;
    lane_row<WIDE_DIM> r = start_row<WIDE_DIM>(args, s, work, row, end);
    put_wide_queries(args, r, queries);
    score_scale scale = score_scale_of(args, work.kv_head);
    bool codes = PAGED && args.codes;
    KILN_LOOP
    for (uint32_t key = work.key; key < work.key_end; key += WIDE_KEYS) {
        unit::sums scores[WIDE_PRODUCTS] = {};
        bool sees = row < end && unit::any(key < r.window.end && key + WIDE_KEYS > r.window.begin);
        bool whole = !unit::any(key < r.window.begin || key + WIDE_KEYS > r.window.end);
        bool full = args.head_dim == WIDE_DIM && key + 2 * WIDE_KEYS <= work.key_end; /* the next tile, so this one */
        if (codes) convert<wide::LOADS>(held);
        store_keys<wide>(held, k);
        kiln_barrier();
        load_wide_values(args, s, work, full, key, block, held);
        if (sees) multiply_wide(k, queries, scores);
        if (codes) convert<wide::LOADS>(held);
        store_values<wide>(held, v);
        kiln_barrier();
        block = next_block;
        load_wide_keys(args, s, work, full, key + WIDE_KEYS, block, held);
        next_block = look_up_wide(args, s, work, key + 2 * WIDE_KEYS);
        if (sees) {
            weigh<WIDE_DIM, WIDE_KEYS>(args, work, s, scale, whole, key, &r, scores);
            unit::fragment weights[WIDE_KEYS / STEP];
            pack<WIDE_KEYS>(scores, weights);
            multiply<wide::KEY_VECTORS, WIDE_DIM / unit::SIDE, WIDE_KEYS / STEP>(v, weights, r.result);
        }
    }
    if (row < end) write_row<WIDE_DIM>(KILN_LATE_ARGS(kiln_attention_args, args), work, r);
}

#endif
