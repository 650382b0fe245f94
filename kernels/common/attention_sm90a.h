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
 * With a block for each multiprocessor, a tile of rows with many keys is followed by one with few, of the same head,
 * so that causal blocks have equal work and neighbouring ones the same keys. Where lengths are known on the device
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
 * Shared memory: 96 to 225 KB. Registers, consumers and producer: 152 and 56 with three consumers, else 224 and 56, 216
 * and 72 where blocks of a cache are looked up. None spills. ptxas 12.8 schedules the loops of mha 2 to 10 % faster
 * than 12.0.
 *
 * Floor: 4 * rows * keys * head_dim operations; wgmma does 989 TFLOP/s on an H100 at most, and the exponents of 2 take
 * half of the time of heads of 128.
 * Measured on an H200 (driver 580.159.04, 2026-11-26; bf16, 16 heads, CUDA graphs), TFLOP/s, and in brackets cuDNN's
 * time over kiln's in the same process:
 *
 *   head_dim   4 x 4096 full   causal       1 x 16384    causal       16 x 1024    causal       32 x 512     causal
 *   128        696 (1.03)      631 (1.09)   738 (1.07)   716 (1.13)   576 (0.94)   424 (0.97)   457 (0.86)   282 (0.82)
 *   64         496 (1.05)      420 (1.02)
 *   96         628 (1.21)      530 (1.23)
 *   256        783 (1.08)      713 (1.11)
 *
 * Slower there, as prototypes: a tile for each block 5 % at 4096 keys, 30 % at 512; two consumers for heads of 64 10 %,
 * without turns 15 %; three for heads of 128 10 to 30 % up to 1024 keys, where rows are too few, 2 to 4 % faster from
 * 4096 on; blocks that take tiles in order, causal, 35 to 55 %.
 *
 * Few rows (attention_sm90a_decode.h): keys are not prefetched before the wait, since lengths and tables of blocks,
 * which tell where they are, may be what the preceding kernel writes. Includers define what attention_gpu.h asks for.
 * Test: build/tests/ops/mha_test. Bench: build/kiln bench mha */
#ifndef KILN_KERNELS_COMMON_ATTENTION_SM90A_H
#define KILN_KERNELS_COMMON_ATTENTION_SM90A_H

#include "kernels/common/attention_sm90a_copy.h"
#include "kernels/common/attention_sm90a_weights.h"

/* Writes a warp's rows: four lanes exchange what they have of a row, so that vectors go out. */
template <uint32_t DIM, bool EXTENDED>
KILN_INLINE void write_tile_rows(const kiln_attention_args &args, const row_tile *tile, const float *maxima,
                                 const float *sums, float (*result)[4]) {
    const uint32_t end = tile->end, kv_head = tile->work.kv_head, split = tile->work.split;
    const kiln_sequence s = tile->s;
    float v_scale = kiln_cache_scale(&args, args.v_scale, kv_head), unit = scale_of_tile<EXTENDED>(args, tile).unit;
    uint32_t row = lane_row_of(tile), part = kiln_thread() % 4;
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++) {
        bool has = row + 8 * r < end;
        row_place at = row_place_of(args, s, kv_head, has ? row + 8 * r : end - 1);
        float sum = quad_sum(sums[r]);
        if (has && part == 0) write_scales(args, at, split, maxima[r] * unit, sum);
        if (args.partials) {
            float *partial = args.partials + kiln_partial_row(&args, split, at.token, at.head) * args.head_dim;
            KILN_UNROLL
            for (uint32_t n = 0; n < DIM / 8; n++)
                if (has && 8 * n < args.head_dim)
                    *(float2 *)(partial + 8 * n + part * 2) =
                        make_float2(result[n][2 * r] * v_scale, result[n][2 * r + 1] * v_scale);
            continue;
        }
        float scale = sum == 0.0f ? 0.0f : v_scale * kiln_reciprocal(sum);
        kiln_element *out = (kiln_element *)args.out + at.token * (uint64_t)args.out_stride + at.head * args.head_dim;
        KILN_UNROLL
        for (uint32_t n = 0; n < DIM / 8; n += 4) {
            kiln_vector vector;
            KILN_UNROLL
            for (uint32_t i = 0; i < 4; i++)
                vector.words[i] = pack(result[n + i][2 * r] * scale, result[n + i][2 * r + 1] * scale);
            exchange_quad(vector.words);
            uint32_t d = (n + part) * 8;
            if (has && d < args.head_dim) kiln_vector_store(out + d, vector);
        }
    }
    __syncwarp(); /* else ptxas takes what follows for divergent, and lets all products wait for each other */
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
    KILN_UNROLL
    for (uint32_t i = 0; i < KEYS / 2; i++)
        t.scores[i / 4][i % 4] = 0.0f;
    KILN_LOOP
    for (uint32_t number = 0;; number++) {
        q::wait_full(shared, number);
        const row_tile *tile = q::tile(memory, number);
        uint32_t next = uniform(tile->tiles.count);
        if (!next) break;
        float factor = scale_of_tile<at::EXTENDED>(args, tile).factor;
        uint32_t first_key = uniform(tile->tiles.key);
        const uint32_t low = uniform(tile->plain[group].low), high = uniform(tile->plain[group].high);
        start_rows_of_tile(&t);
        if (high != next || low) windows_of(args, tile, t.rows.window); /* some tile is cut */
        KILN_UNROLL
        for (uint32_t i = 0; i < DIM / 2; i++)
            t.rows.result[i / 4][i % 4] = 0.0f;
        uint32_t queries = q::queries(shared, number) + own_queries;
        auto step = [&](auto general) {
            next--;
            ring_wait_full(k, n);
            kiln_sm90a_wgmma_hold<KEYS / 2>(t.scores[0]);
            kiln_sm90a_wgmma_fence();
            begin_scores<DIM, KEYS>(t.scores, queries, ring_tile(k, n));
            kiln_sm90a_wgmma_wait<0>();
            kiln_sm90a_wgmma_hold<KEYS / 2>(t.scores[0]);
            ring_release(k, n);
            if (!next) q::release(shared, number);
            bool rose =
                weigh<DIM, KEYS, decltype(general)::value, MASKED>(args, tile, factor, &t, first_key + next * KEYS);
            if (rose) {
                KILN_UNROLL
                for (uint32_t i = 0; i < DIM / 2; i++)
                    t.rows.result[i / 4][i % 4] *= t.keep[i / 2 % 2];
            }
            pack_weights<KEYS>(t.scores, t.weights);
            ring_wait_full(v, n);
            kiln_sm90a_wgmma_hold<DIM / 2>(t.rows.result[0]);
            kiln_sm90a_wgmma_fence();
            begin_results<DIM, KEYS>(t.rows.result, t.weights, ring_tile(v, n));
            kiln_sm90a_wgmma_wait<0>();
            kiln_sm90a_wgmma_hold<DIM / 2>(t.rows.result[0]);
            ring_release(v, n);
            n++;
        };
        KILN_LOOP
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
        write_tile_rows<DIM, at::EXTENDED>(args, tile, t.rows.max, t.rows.sum, t.rows.result);
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
    uint32_t next = uniform(tile->tiles.count);
    if (!next) return;
    if (group == 1) kiln_sm90a_barrier_arrive(TURN, 2 * WARPGROUP);
    tile_state<DIM, KEYS> t;
    float factor = scale_of_tile<at::EXTENDED>(args, tile).factor;
    uint32_t first_key = uniform(tile->tiles.key);
    next--;
    start_rows_of_tile(&t);
    windows_of(args, tile, t.rows.window);
    uint32_t low = uniform(tile->plain[group].low), high = uniform(tile->plain[group].high);
    KILN_UNROLL
    for (uint32_t i = 0; i < DIM / 2; i++)
        t.rows.result[i / 4][i % 4] = 0.0f;
    KILN_UNROLL
    for (uint32_t i = 0; i < KEYS / 2; i++)
        t.scores[i / 4][i % 4] = 0.0f;
    uint32_t queries = q::queries(shared, 0) + own_queries;

    ring_wait_full(k, 0);
    kiln_sm90a_wgmma_hold<KEYS / 2>(t.scores[0]);
    kiln_sm90a_wgmma_fence();
    begin_scores<DIM, KEYS>(t.scores, queries, ring_tile(k, 0));
    kiln_sm90a_wgmma_wait<0>();
    kiln_sm90a_wgmma_hold<KEYS / 2>(t.scores[0]);
    ring_release(k, 0);
    if (!next) q::release(shared, 0);
    weigh<DIM, KEYS, true, MASKED>(args, tile, factor, &t, first_key + next * KEYS);
    pack_weights<KEYS>(t.scores, t.weights);

    /* Begins the scores of the next tile of keys, and behind it the product of the weights with the values of this. */
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
    auto step = [&](auto general) {
        next--;
        n++;
        begin();
        wait_scores();
        bool rose = weigh<DIM, KEYS, decltype(general)::value, MASKED>(args, tile, factor, &t, first_key + next * KEYS);
        wait_results();
        if (rose) {
            KILN_UNROLL
            for (uint32_t i = 0; i < DIM / 2; i++)
                t.rows.result[i / 4][i % 4] *= t.keep[i / 2 % 2];
        }
        pack_weights<KEYS>(t.scores, t.weights);
    };
    KILN_LOOP
    for (;;) {
        KILN_LOOP
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
        number++;
        q::wait_full(shared, number);
        const row_tile *before = tile;
        tile = q::tile(memory, number);
        next = uniform(tile->tiles.count);
        if (!next) break;
        next--;
        n++;
        queries = q::queries(shared, number) + own_queries;
        begin();
        const float max[2] = {t.rows.max[0], t.rows.max[1]}, sum[2] = {t.rows.sum[0], t.rows.sum[1]};
        first_key = uniform(tile->tiles.key);
        if (at::EXTENDED) factor = scale_of_tile<at::EXTENDED>(args, tile).factor;
        low = uniform(tile->plain[group].low);
        high = uniform(tile->plain[group].high);
        const bool cut = next >= high || next < low;
        start_rows_of_tile(&t);
        if (high != next + 1 || low) windows_of(args, tile, t.rows.window); /* some tile is cut */
        wait_scores();
        weigh<DIM, KEYS, true, MASKED>(args, tile, factor, &t, first_key + next * KEYS, cut);
        wait_results();
        pack_weights<KEYS>(t.scores, t.weights);
        write_tile_rows<DIM, at::EXTENDED>(args, before, max, sum, t.rows.result);
        KILN_UNROLL
        for (uint32_t i = 0; i < DIM / 2; i++)
            t.rows.result[i / 4][i % 4] = 0.0f;
    }
    ring_wait_full(v, n);
    kiln_sm90a_wgmma_hold<DIM / 2>(t.rows.result[0]);
    kiln_sm90a_wgmma_fence();
    begin_results<DIM, KEYS>(t.rows.result, t.weights, ring_tile(v, n));
    kiln_sm90a_wgmma_wait<0>();
    kiln_sm90a_wgmma_hold<DIM / 2>(t.rows.result[0]);
    if (!group) kiln_sm90a_barrier_sync(TURN, 2 * WARPGROUP);
    write_tile_rows<DIM, at::EXTENDED>(args, q::tile(memory, number - 1), t.rows.max, t.rows.sum, t.rows.result);
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
                                     i / at::QUERY_STAGES ? (uint32_t)at::CONSUMER_WARPS : (uint32_t)COPIERS);
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
