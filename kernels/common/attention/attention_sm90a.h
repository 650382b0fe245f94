/* Attention for sm_90a, f16 and bf16: the device source of mha and mha_paged by wgmma, for prompts. Few rows are done
 * by attention_sm90a_decode.h, heads and rows that are not on 16 bytes by the portable kernels (attention_gpu.h).
 * All of them wait for the preceding kernel themselves (sm90a_programmatic.h).
 *
 * A block takes tile after tile of rows, each over tiles of 128 keys (64 where a head has more than 128 elements). Its
 * first warpgroup copies queries, keys and values into rings of two tiles each (attention_sm90a_copy.h); the others,
 * consumers, have 64 rows each (Shah et al., FlashAttention-3, arXiv 2407.08608). The sums of the product of queries
 * with keys are, element for element, the fragments that the product of the weights with values takes from registers.
 * How the two are arranged:
 * - Heads of up to 96 elements whose keys are contiguous: three consumers, each of which makes scores, weights and
 *   results one after the other; while it waits, the others have work.
 * - Else two, since three have no registers for more. A consumer begins the product of its queries with tile n, and
 *   behind it that of its weights with the values of tile n - 1; then it makes weights of the scores of tile n. They
 *   begin products in turn (a named barrier each), so that one makes weights while the other multiplies. The first
 *   scores of a tile of rows are begun in the same way, beside the last values of the tile before; its results are
 *   written after that.
 * Everything is waited for in the iteration that began it: assemblers make all products wait for each other where a
 * group stays under way around the loop.
 *
 * With a block for each multiprocessor, neighbouring blocks take the tiles of a head side by side where all see as many
 * keys. Else a tile of rows with many keys is followed by one with few, of the same head, so that causal blocks have
 * equal work and neighbouring ones the same keys. Where lengths are known on the device
 * alone and there are many keys, each tile has a block of its own, heads in groups whose keys and values are a third
 * of L2; a counter that gave out tiles would have to be zero beforehand.
 *
 * Tiles of keys are taken from the last to the first. Only those that an end of some row's window cuts are masked,
 * those at the diagonal and at windows' ends, in a loop of their own. With a softcap all tiles go through it, and in
 * the kernels for masks that are added, which have no other: beside it there are no registers left for a mask, of which
 * four lanes read 32 keys of a row by vectors.
 *
 * Results are scaled anew only where a maximum rose 256-fold, as weights see it: till then no lane has to know what
 * others have. That took 6 to 8 % off.
 *
 * Shared memory: 97 to 225 KB. Registers, consumers and producer: 152 and 56 with three consumers, else 224 and 56, 216
 * and 72 where blocks of a cache are looked up. None spills. ptxas 12.8 schedules the loops of mha 2 to 10 % faster
 * than 12.0.
 *
 * Floor: 4 * rows * keys * head_dim operations; wgmma does 989 TFLOP/s on an H100 at most, and the exponents of 2 take
 * half of the time of heads of 128.
 * Measured on an H100 (driver 580.159.04, 2026-11-26; bf16, 16 heads, CUDA graphs), us, and in brackets cuDNN in the
 * same process:
 *
 *   head_dim   4 x 4096 full   causal      16 x 1024    causal      32 x 512     causal      1 x 16384 causal
 *   128        762 (811)       416 (474)   214 (225)    145 (156)   123 (128)    111 (103)   1508 (1718)
 *   64         516 (571)       304 (332)
 *   96         655 (792)       381 (478)
 *   256        1376 (1509)     766 (851)
 *
 * Copiers of their own for queries, contiguous results written by whole rows, and tiles of full attention in order took
 * 2 to 5 % off at 4096 keys, 12 % at 1024 and 16 to 19 % at 512, as prototypes.
 *
 * Slower there, as prototypes: products with values begun one by one between exponents 4 to 8 % from 1024 keys on, one
 * loop for tiles of keys that are masked and for those that are not 4 to 9 %, results written beside the next scores 1
 * to 3 %. On an H200: a tile for each block 5 % at 4096 keys, 30 % at 512; two consumers for heads of 64 10 %, without
 * turns 15 %; three for heads of 128 10 to 30 % up to 1024 keys, where rows are too few, 2 to 4 % faster from 4096 on;
 * blocks that take tiles in order, causal, 35 to 55 %.
 *
 * Few rows (attention_sm90a_decode.h): keys are not prefetched before the wait, since lengths and tables of blocks,
 * which tell where they are, may be what the preceding kernel writes. Includers define what attention_gpu.h asks for.
 * Test: build/tests/ops/mha_test. Bench: build/kiln bench mha */
#ifndef KILN_KERNELS_COMMON_ATTENTION_ATTENTION_SM90A_H
#define KILN_KERNELS_COMMON_ATTENTION_ATTENTION_SM90A_H

#include "kernels/arch/sm90a_wgmma.h"
#include "kernels/common/attention/attention_sm90a_copy.h"
#include "kernels/common/attention/attention_sm90a_results.h"

/* A consumer's tiles of a tile of rows: one word for each field, of all lanes. */
KILN_INLINE consumer_tiles tiles_of(const row_tile *tile, uint32_t group) {
    const consumer_tiles own = tile->consumers[group];
    return {uniform(own.key), uniform(own.count), uniform(own.low), uniform(own.high)};
}

/* COUNT numbers of each thread, as wgmma has them. */
template <uint32_t COUNT> KILN_INLINE void clear(float (*numbers)[4]) {
    KILN_UNROLL
    for (uint32_t i = 0; i < COUNT; i++)
        numbers[i / 4][i % 4] = 0.0f;
}

/* The scores of tile n of the keys, while nothing else is multiplied. */
template <uint32_t DIM, uint32_t KEYS>
KILN_INLINE void multiply_keys(tile_state<DIM, KEYS> *t, uint32_t queries, const ring &k, uint32_t n) {
    ring_wait_full(k, n);
    kiln_sm90a_wgmma_hold<KEYS / 2>(t->scores[0]);
    kiln_sm90a_wgmma_fence();
    begin_scores<DIM, KEYS>(t->scores, queries, ring_tile(k, n));
    kiln_sm90a_wgmma_wait<0>();
    kiln_sm90a_wgmma_hold<KEYS / 2>(t->scores[0]);
    ring_release(k, n);
}

/* Adds the product of the weights with tile n of the values, likewise. */
template <uint32_t DIM, uint32_t KEYS>
KILN_INLINE void multiply_values(tile_state<DIM, KEYS> *t, const ring &v, uint32_t n) {
    ring_wait_full(v, n);
    kiln_sm90a_wgmma_hold<DIM / 2>(t->rows.result[0]);
    kiln_sm90a_wgmma_fence();
    begin_results<DIM, KEYS>(t->rows.result, t->weights, ring_tile(v, n));
    kiln_sm90a_wgmma_wait<0>();
    kiln_sm90a_wgmma_hold<DIM / 2>(t->rows.result[0]);
}

/* The tiles of rows by one of three consumers: a product, the weights, a product. */
template <uint32_t DIM, uint32_t KEYS, bool MASKED>
KILN_INLINE void consume_in_turn(const kiln_attention_args &args, uint32_t shared, char *memory) {
    typedef layout<DIM, KEYS> at;
    typedef query_ring<DIM, KEYS> q;
    const uint32_t group = uniform(kiln_thread() / WARPGROUP) - 1, own_queries = group * at::QUERY_BYTES;
    const ring k = ring_of<DIM, KEYS>(shared, false), v = ring_of<DIM, KEYS>(shared, true);
    uint32_t n = 0; /* of the tile of rows, and of the tile of keys, that scores are made of */
    tile_state<DIM, KEYS> t;
    clear<KEYS / 2>(t.scores);
    KILN_LOOP
    for (uint32_t number = 0;; number++) {
        q::wait_full(shared, number);
        const row_tile *tile = q::tile(memory, number);
        const consumer_tiles tiles = tiles_of(tile, group);
        uint32_t next = tiles.count;
        if (!next) break;
        float factor = scale_of_tile<at::EXTENDED>(args, tile).factor;
        start_rows_of_tile(&t);
        if (tiles.high != next || tiles.low) windows_of(args, tile, t.rows.window); /* some tile is cut */
        clear<DIM / 2>(t.rows.result);
        uint32_t queries = q::queries(shared, number) + own_queries;
        KILN_LOOP
        while (next) {
            next--;
            multiply_keys(&t, queries, k, n);
            if (!next) q::release(shared, number);
            if (next >= tiles.high || next < tiles.low)
                cut_scores<DIM, KEYS, MASKED>(args, tile, &t, tiles.key + next * KEYS);
            if (weigh<DIM, KEYS>(factor, &t)) keep_results(&t);
            pack_weights<KEYS>(t.scores, t.weights);
            multiply_values(&t, v, n);
            ring_release(v, n);
            n++;
        }
        write_rows<DIM, KEYS, MASKED>(args, rows_to_write(tile, t.rows), memory, t.rows.result);
    }
}

/* The tiles of rows by one of two consumers, which begin their products in turn. The first scores of a tile are begun
 * beside the last product with values of the tile before, whose results are written once the first weights are made. */
template <uint32_t DIM, uint32_t KEYS, bool MASKED>
KILN_INLINE void consume_in_pairs(const kiln_attention_args &args, uint32_t shared, char *memory) {
    typedef layout<DIM, KEYS> at;
    typedef query_ring<DIM, KEYS> q;
    const uint32_t group = uniform(kiln_thread() / WARPGROUP) - 1, own_queries = group * at::QUERY_BYTES;
    const ring k = ring_of<DIM, KEYS>(shared, false), v = ring_of<DIM, KEYS>(shared, true);
    uint32_t number = 0, n = 0; /* of the tile of rows, and of the tile of keys, that scores are made of */
    q::wait_full(shared, 0);
    const row_tile *tile = q::tile(memory, 0);
    consumer_tiles tiles = tiles_of(tile, group);
    if (!tiles.count) return;
    if (group == 1) kiln_sm90a_barrier_arrive(TURN, 2 * WARPGROUP);
    tile_state<DIM, KEYS> t;
    float factor = scale_of_tile<at::EXTENDED>(args, tile).factor;
    uint32_t next = tiles.count - 1;
    start_rows_of_tile(&t);
    windows_of(args, tile, t.rows.window);
    clear<DIM / 2>(t.rows.result);
    clear<KEYS / 2>(t.scores);
    uint32_t queries = q::queries(shared, 0) + own_queries;

    multiply_keys(&t, queries, k, 0);
    if (!next) q::release(shared, 0);
    cut_scores<DIM, KEYS, MASKED>(args, tile, &t, tiles.key + next * KEYS);
    weigh<DIM, KEYS>(factor, &t);
    pack_weights<KEYS>(t.scores, t.weights);

    /* Begins the scores of the next tile of keys, and after it the product of the weights with the values of this one.
     */
    auto begin = [&] {
        ring_wait_full(k, n);
        kiln_sm90a_barrier_sync(TURN + group, 2 * WARPGROUP);
        kiln_sm90a_wgmma_hold<KEYS / 2>(t.scores[0]);
        kiln_sm90a_wgmma_hold<DIM / 2>(t.rows.result[0]);
        kiln_sm90a_wgmma_fence();
        begin_scores<DIM, KEYS>(t.scores, queries, ring_tile(k, n));
        ring_wait_full(v, n - 1);
        begin_results<DIM, KEYS>(t.rows.result, t.weights, ring_tile(v, n - 1));
        kiln_sm90a_barrier_arrive(TURN + (group ^ 1), 2 * WARPGROUP);
    };
    auto wait_scores = [&] {
        kiln_sm90a_wgmma_wait<1>();
        kiln_sm90a_wgmma_hold<KEYS / 2>(t.scores[0]);
        ring_release(k, n);
        if (!next) q::release(shared, number);
    };
    auto wait_results = [&] {
        kiln_sm90a_wgmma_wait<0>();
        kiln_sm90a_wgmma_hold<DIM / 2>(t.rows.result[0]);
        ring_release(v, n - 1);
    };
    auto step = [&](bool cut) {
        next--;
        n++;
        begin();
        wait_scores();
        if (cut) cut_scores<DIM, KEYS, MASKED>(args, tile, &t, tiles.key + next * KEYS);
        bool rose = weigh<DIM, KEYS>(factor, &t);
        wait_results();
        if (rose) keep_results(&t);
        pack_weights<KEYS>(t.scores, t.weights);
    };
    KILN_LOOP
    for (;;) {
        KILN_LOOP
        for (uint32_t stop = tiles.high;; stop = 0) {
            KILN_LOOP
            while (next > stop)
                step(true);
            if (!next) break;
            if constexpr (!MASKED) {
                KILN_LOOP
                while (next > tiles.low)
                    step(false);
            }
        }
        number++;
        q::wait_full(shared, number);
        tiles = tiles_of(q::tile(memory, number), group);
        next = tiles.count;
        if (!next) break;
        next--;
        n++;
        queries = q::queries(shared, number) + own_queries;
        begin();
        const written_rows done = rows_to_write(tile, t.rows);
        tile = q::tile(memory, number);
        if (at::EXTENDED) factor = scale_of_tile<at::EXTENDED>(args, tile).factor;
        start_rows_of_tile(&t);
        if (tiles.high != next + 1 || tiles.low) windows_of(args, tile, t.rows.window); /* some tile is cut */
        wait_scores();
        if (next >= tiles.high || next < tiles.low)
            cut_scores<DIM, KEYS, MASKED>(args, tile, &t, tiles.key + next * KEYS);
        weigh<DIM, KEYS>(factor, &t);
        wait_results();
        pack_weights<KEYS>(t.scores, t.weights);
        write_rows<DIM, KEYS, MASKED>(args, done, memory, t.rows.result);
        clear<DIM / 2>(t.rows.result);
    }
    multiply_values(&t, v, n);
    if (!group) kiln_sm90a_barrier_sync(TURN, 2 * WARPGROUP);
    write_rows<DIM, KEYS, MASKED>(args, rows_to_write(tile, t.rows), memory, t.rows.result);
}
template <uint32_t DIM, uint32_t KEYS, bool MASKED = false>
KILN_INLINE void attend_tiles(const kiln_attention_args &args, const kiln_tensor_map *maps) {
    typedef layout<DIM, KEYS> at;
    extern __shared__ atom atoms[];
    uint32_t shared = kiln_sm90a_shared(atoms);
    char *memory = (char *)atoms;
    if (kiln_thread() == 0) {
        KILN_UNROLL
        for (uint32_t i = 0; i < 4 * TILE_STAGES; i++)
            kiln_sm90a_mbarrier_init(shared + at::BARRIERS + i * 8,
                                     i / TILE_STAGES % 2 ? (uint32_t)at::CONSUMER_WARPS : (uint32_t)COPIERS);
        KILN_UNROLL
        for (uint32_t i = 0; i < 2 * at::QUERY_STAGES; i++)
            kiln_sm90a_mbarrier_init(shared + at::QUERY_BARRIERS + i * 8,
                                     i / at::QUERY_STAGES ? (uint32_t)at::CONSUMER_WARPS : (uint32_t)QUERY_COPIERS);
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
        produce_tiles<DIM, KEYS, MASKED>(args, maps, shared, memory);
    } else {
        kiln_sm90a_setmaxnreg_inc<at::CONSUMER_REGISTERS>();
        if constexpr (at::CONSUMERS == 3)
            consume_in_turn<DIM, KEYS, MASKED>(args, shared, memory);
        else
            consume_in_pairs<DIM, KEYS, MASKED>(args, shared, memory);
    }
}

#define ATTENTION_PASTE(kernel, part, args_type, threads)    \
    extern "C" __global__ void __launch_bounds__(threads, 1) \
        kiln_##kernel##_##part(const __grid_constant__ args_type args)
#define ATTENTION_OF_PART(kernel, part, args_type, threads) ATTENTION_PASTE(kernel, part, args_type, threads)

/* Head of an entry of attend_tiles. */
#define ATTENTION_ENTRY(kernel, args_type, threads) ATTENTION_OF_PART(kernel, KILN_PART, args_type, threads)

#endif
