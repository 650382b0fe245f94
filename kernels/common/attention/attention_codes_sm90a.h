/* Attention on codes of 8 bits for sm_90a, f16 and bf16: the device source of mha_int8_x_fp8_fwd and mha_fp8_fwd by
 * wgmma, beside those for few rows (attention_codes_decode.h), and the portable ones (attention_codes_gpu.h) for heads
 * that are not on 16 bytes.
 *
 * A block does 192 rows, over tiles of 128 keys. Of its four warpgroups the first copies, the others have 64 rows
 * each. A tile of keys, one of values, and the scales of its keys come into rings of three; wgmma takes codes of 8 bits
 * only with the depth of the product along the rows, so the first warpgroup transposes a tile of values, 128 channels
 * of 128 keys, into a ring of three: ldmatrix transposes pairs of bytes, which are of two channels, a permutation of
 * bytes parts the channels, and stmatrix stores them. Of each 16 keys the one at place 4 t + e is 8 (e / 2) + 2 t + e %
 * 2, of each 16 channels those of even number come first: so the products of queries and keys are, once they are codes,
 * word for word the fragments of the second product, and a lane has four neighbouring channels of its results. What
 * stands behind the last key is made zero before, since it may be no number at all.
 *
 * Of the values' rows in shared memory eight more are 448, the greatest code: their products are the sums of the
 * weights' codes. wgmma keeps of E4M3 13 bits below the greatest of what it adds, its sums too, with an error toward
 * zero: products of a tile begin with zeros and are taken over by f32 arithmetic, result * keep + product in one
 * instruction, where `keep` is the power of two by which the rows' origins rose. Values that are all equal have that
 * code, so that their results and the sums lose the same.
 *
 * A consumer does one thing after the other: products of its weights with a tile of values, which the results take
 * over; products of its queries with the next tile of keys; weights of these. So the products of either kind have the
 * same registers, and three consumers fit, of which one or two make weights at a time while the matrix units have the
 * products of another. They have turns with the first two, so that they stay out of step. Products with values are made
 * in two parts of 64 channels. What a thread needs but once a tile, or at the end, is in shared memory.
 *
 * Where the keys of a tile have two scales for a lane, as blocks of 64 keys and Sage's threads have, the greatest
 * product is found as it is (integers: three at a time), and the scales become part of the factor of each half. Where
 * that was faster the exponents of a word of weights wait for the sixth word before it: ptxas makes all exponents
 * first, unless numbers depend on others by a zero that it does not know. Tiles with more scales, with masks, and all
 * of calls that want sums of weights before they are rounded go the plain way.
 *
 * Tiles are taken from the last to the first, and the rows with the most keys to see, the last, go first, of several
 * heads together. Only tiles that an end of some row's window cuts are masked, in a loop of their own; the first tile
 * stands before all loops, and those that none of a consumer's rows sees it gives back at once. The producer begins to
 * copy before it does anything else.
 *
 * Rows of shared memory are 128 bytes, whose vectors are swizzled; heads that are shorter are filled up with zeros that
 * are not read from memory. Shared memory: 161, 173 and 186 KB by heads of up to 64, 96 and 128. Registers: 128 a
 * thread at the launch; then 160 of a consumer and 32 of a producer, which are all of the block's. None spills.
 *
 * Floor: 4 * rows * keys * head_dim operations; wgmma does 1979 TFLOP/s of E4M3 and int8 at most, and the exponents of
 * 2 take as long as products of heads of 128. Measured (H100, driver 580.159.04, 2026-11-26, CUDA graphs; 16 heads,
 * batches of 4 with 4096 keys and of 1 with 16384, k's scales of 64 keys), in us, beside the structure before, in which
 * two consumers of 240 registers had turns with the matrix units:
 *
 *                             4096   causal   16384   causal     before
 *     int8, heads of 64        530      298    1884      955     575    327    2060    1031
 *     int8, heads of 96        570      327    2034     1041     623    358    2225    1134
 *     int8, heads of 128       632      366    2258     1174     680    392    2408    1243
 *     E4M3, heads of 64        515      291    1852      947     551    312    1971    1003
 *     E4M3, heads of 96        564      319    2011     1047     610    347    2175    1124
 *     E4M3, heads of 128       638      363    2288     1176     659    380    2355    1206
 *
 * ncu of heads of 128: 2.1 instructions a clock, the unit of exponents busy for half of the time, none of the others
 * more. A consumer's weights alone take 882 clocks a tile, 1077 beside another's products, two consumers' 1402 both;
 * products 620 for 528. Prototypes with heads of 128: without turns, and a ring of two transposed tiles, the same, but
 * 4 to 8 % more with shorter heads; keep in registers, 3 % less with E4M3, but with a spill; an eighth of the exponents
 * by polynomials, 3 % more, a quarter, 8 % more; two consumers whose queries are multiplied half a tile ahead, 11 %
 * more. With E4M3 or heads of 64 waiting for the sixth word before gave 3 to 8 %, and cost int8 with heads of 128 3 %.
 *
 * Without sums of every 128 keys by themselves values with means err by 5 to 19 %. A test for masks in the main loop
 * cost 21 %. A row of ones in place of additions gave 4 to 21 %.
 *
 * Includers define what attention_codes_gpu.h asks for, and unit: the sums of products of q and k, multiply, and
 * IN_FLIGHT, how many words of weights are begun before the first is done. Test: build/tests/ops/mha_codes_test. */
#ifndef KILN_KERNELS_COMMON_ATTENTION_ATTENTION_CODES_SM90A_H
#define KILN_KERNELS_COMMON_ATTENTION_ATTENTION_CODES_SM90A_H

#include "kernels/arch/sm90a_wgmma.h"
#include "kernels/common/attention/attention_codes_sm90a_weights.h"
#include "kernels/common/tuned.h"

/* Begins to copy a consumer's queries. */
template <uint32_t DIM>
KILN_INLINE void copy_group_queries(const kiln_attention_args &args, const kiln_sequence &s, uint32_t kv_head,
                                    uint32_t row, uint32_t end, uint32_t shared) {
    enum : uint32_t { VECTORS = DIM / CODES };
    KILN_LOOP
    for (uint32_t i = kiln_thread() % WARPGROUP; i < GROUP_ROWS * VECTORS; i += WARPGROUP) {
        uint32_t place = i / VECTORS, d = i % VECTORS * CODES, number = row + place;
        row_place at = row_place_of(args, s, kv_head, number < end ? number : end - 1);
        const uint8_t *q = (const uint8_t *)args.q + at.token * (uint64_t)args.q_stride + at.head * args.head_dim + d;
        bool present = d < args.head_dim;
        kiln_sm80_cp_async(shared + swizzled(place, d / CODES), present ? q : args.q, present ? CODES : 0);
    }
    kiln_sm80_cp_async_commit();
}

/* By how much a row's scores are greater than those of keys less their mean: from what of the query each of the four
 * lanes of a row has. */
KILN_INLINE float score_of_means(const kiln_attention_codes_args &args, uint64_t channels, const uint8_t *queries,
                                 uint32_t place, float factor) {
    float sum = 0.0f;
    KILN_LOOP
    for (uint32_t d = kiln_thread() % 4; d < args.plain.head_dim; d += 4)
        sum = KILN_FMA(code_number(queries[swizzled(place, d / CODES) + d % CODES]), args.k_means[channels + d], sum);
    return quad_sum(sum) * factor * KILN_WEIGHT_LN_2;
}

/* Writes four channels of a row, whose scales and means are of DIM channels each. */
template <uint32_t DIM>
KILN_INLINE void write_scaled(const kiln_attention_args &args, const row_target &to, const row_sums &sums, uint32_t d,
                              const float *result, const float *channels) {
    float values[4];
    KILN_UNROLL
    for (uint32_t i = 0; i < 4; i++)
        values[i] = sums.sum != 0.0f ? result[i] * sums.factor * channels[d + i] + channels[DIM + d + i] : 0.0f;
    if (args.partials)
        *(float4 *)(to.partials + d) = make_float4(values[0] * sums.rounded, values[1] * sums.rounded,
                                                   values[2] * sums.rounded, values[3] * sums.rounded);
    else
        *(uint2 *)(to.out + d) = make_uint2(kiln_pair_of(values), kiln_pair_of(values + 2));
}

/* Writes a warp's rows, the first of which is `row`. */
template <uint32_t DIM>
KILN_INLINE void write_rows(const kiln_attention_codes_args &args, const kiln_sequence &s,
                            const kiln_attention_work &work, const tile_state<DIM> &t, const float *channels,
                            uint32_t row, uint32_t end, const uint8_t *queries) {
    const kiln_attention_args &plain = args.plain;
    const uint32_t place = kiln_thread() % WARPGROUP / LANES * WARP_ROWS + kiln_thread() % LANES / 4;
    row += kiln_thread() % LANES / 4;
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++) {
        float sum = (summed(plain) ? quad_sum(t.own->sum[r]) : t.rows.rounded[r]) * 0x1p-8f, of_means = 0.0f;
        if (args.k_means && plain.lse)
            of_means = score_of_means(args, (work.batch * plain.kv_heads + work.kv_head) * (uint64_t)plain.head_dim,
                                      queries, place + 8 * r, t.own->factor[r]);
        if (row + 8 * r >= end) continue;
        const row_place at = row_place_of(plain, s, work.kv_head, row + 8 * r);
        const row_sums sums = row_sums_of(sum, t.rows.rounded[r] * 0x1p-8f);
        const row_target to = row_target_of(plain, work.split, at);
        KILN_UNROLL
        for (uint32_t n = 0; n < DIM / 16; n++) {
            float values[4];
            own_channels(t.rows.result[n], r, values);
            if (16 * n < plain.head_dim)
                write_scaled<DIM>(plain, to, sums, 16 * n + kiln_thread() % 4 * 4, values, channels);
        }
        if (kiln_thread() % 4 == 0)
            write_sums(plain, work.split, at, sums, t.rows.origin[r] * KILN_WEIGHT_LN_2 + of_means);
    }
}

template <uint32_t DIM>
KILN_INLINE void consume(const kiln_attention_codes_args &args, const kiln_sequence &s, const kiln_attention_work &work,
                         const key_tiles &tiles, uint32_t end, uint32_t shared, char *memory) {
    typedef layout<DIM> at;
    const kiln_attention_args &plain = args.plain;
    uint32_t group = uniform(kiln_thread() / WARPGROUP) - 1;
    uint32_t group_row = work.row + group * GROUP_ROWS;
    auto row_of_warp = [&]() { /* computed again where it is wanted */
                               const uint32_t thread = kiln_sm90a_anew(kiln_thread()) - WARPGROUP;
                               return work.row + thread / LANES * WARP_ROWS;
    };
    uint32_t queries = shared + at::QUERIES + group * QUERY_BYTES;
    copy_group_queries<DIM>(plain, s, work.kv_head, group_row, end, queries);
    tile_state<DIM> t;
    start_rows(args, s, work, row_of_warp(), end, &t.rows);
    t.own = (own_numbers *)(memory + at::OWN) + kiln_thread() - WARPGROUP;
    *t.own = own_numbers{{t.rows.factor[0], t.rows.factor[1]}, {0.0f, 0.0f}, {0.0f, 0.0f}, {0.0f, 0.0f}};
    const uint32_t shared_alone =
        uniform(args.k_index.high && (s.kv_first + tiles.key) % SHARED_SCALE_KEYS == 0 && !summed(plain));

    /* Of these tiles all rows see all keys: from low on, before high. */
    uint32_t first = group_row < end ? group_row : end - 1, last = min(group_row + GROUP_ROWS, end) - 1;
    kiln_window first_window = kiln_window_of(&plain, &s, first / plain.group);
    kiln_window last_window = kiln_window_of(&plain, &s, last / plain.group);
    uint32_t seen_end = min(first_window.end, tiles.end);
    uint32_t low = last_window.begin > tiles.key ? (last_window.begin - tiles.key + TILE_KEYS - 1) / TILE_KEYS : 0;
    uint32_t high = seen_end > tiles.key ? (seen_end - tiles.key) / TILE_KEYS : 0;
    high = uniform(high);
    low = uniform(low);

    kiln_sm80_cp_async_wait<0>();
    kiln_sm90a_fence_proxy_async();
    kiln_sm90a_barrier_sync(OF_CONSUMER + group, WARPGROUP);
    /* Of the block's tiles those that none of the consumer's rows sees are given back, from the first on. */
    uint32_t skipped = tiles.count;
    if (group_row < end && tiles.count) {
        uint32_t seen = min(last_window.end, tiles.end);
        if (seen > tiles.key) skipped -= (seen - tiles.key + TILE_KEYS - 1) / TILE_KEYS;
    }
    skipped = uniform(skipped);
    if (tiles.count && group == CONSUMERS - 1) pass_turn(); /* the first is the first's */
    KILN_LOOP
    for (uint32_t n = 0; n < skipped; n++) {
        take_turn();
        pass_turn();
        wait_full<at::STAGES>(shared + at::KEYS_FULL, n);
        release<at::STAGES>(shared + at::KEYS_EMPTY, n);
        wait_full<at::TRANSPOSED_STAGES>(shared + at::TRANSPOSED_FULL, n);
        release<at::TRANSPOSED_STAGES>(shared + at::TRANSPOSED_EMPTY, n);
    }
    if (skipped < tiles.count) {
        auto find_windows = [&](kiln_window *windows) {
            const uint32_t row = row_of_warp();
            KILN_UNROLL
            for (uint32_t r = 0; r < 2; r++) {
                uint32_t number = row + kiln_thread() % LANES / 4 + 8 * r, own = number < end ? number : end - 1;
                windows[r] = kiln_window_of(&plain, &s, own / plain.group);
                windows[r].end = min(windows[r].end, max(work.key_end, windows[r].begin));
            }
        };
        auto scales = [&](uint32_t n) { return (const float *)(memory + at::SCALES) + n % at::STAGES * TILE_KEYS; };
        auto take_values = [&](uint32_t n) {
            wait_full<at::TRANSPOSED_STAGES>(shared + at::TRANSPOSED_FULL, n);
            take_turn();
            add_values(&t, shared + at::TRANSPOSED + n % at::TRANSPOSED_STAGES * at::TRANSPOSED_BYTES);
            release<at::TRANSPOSED_STAGES>(shared + at::TRANSPOSED_EMPTY, n);
        };
        auto multiply = [&](uint32_t n, unit::sums(*products)[4]) {
            wait_full<at::STAGES>(shared + at::KEYS_FULL, n);
            if (n == skipped) take_turn();
            kiln_sm90a_wgmma_fence();
            begin_products<DIM>(products, queries, shared + at::KEYS + n % at::STAGES * TILE_BYTES);
            pass_turn();
            kiln_sm90a_wgmma_wait<0>();
            kiln_sm90a_wgmma_hold<TILE_KEYS / 2>(products[0]);
        };
        uint32_t next = tiles.count - 1 - skipped; /* the number of a tile from the first key on */
        auto step = [&](auto masked) {
            unit::sums products[TILE_KEYS / 8][4];
            uint32_t n = tiles.count - 1 - next;
            kiln_window windows[2] = {};
            multiply(n, products);
            if (decltype(masked)::value) find_windows(windows);
            weigh<decltype(masked)::value>(&t, products, scales(n), tiles.key + next * TILE_KEYS, windows);
            release<at::STAGES>(shared + at::KEYS_EMPTY, n);
        };
        step(is_masked<true>{});
        for (uint32_t stop = high;; stop = 0) {
            KILN_LOOP
            while (next > stop) {
                take_values(tiles.count - 1 - next--);
                step(is_masked<true>{});
            }
            if (!next) break;
            KILN_LOOP
            while (next > low && !shared_alone) {
                take_values(tiles.count - 1 - next--);
                step(is_masked<false>{});
            }
            KILN_LOOP
            while (next > low) {
                unit::sums products[TILE_KEYS / 8][4];
                uint32_t n = tiles.count - next--;
                take_values(n - 1);
                multiply(n, products);
                weigh_shared(&t, products, scales(n), plain.batch >> 31);
                release<at::STAGES>(shared + at::KEYS_EMPTY, n);
            }
        }
        take_values(tiles.count - 1);
        if (group < CONSUMERS - 1) pass_turn();
        t.rows.rounded[0] = t.own->rounded[0] * (1.0f / 448.0f);
        t.rows.rounded[1] = t.own->rounded[1] * (1.0f / 448.0f);
    } else if (tiles.count) {
        take_turn();
        if (group < CONSUMERS - 1) pass_turn();
    }
    const uint32_t row = row_of_warp();
    if (row < end)
        write_rows(args, s, work, t, (const float *)(memory + at::CHANNELS), row, end,
                   (const uint8_t *)memory + at::QUERIES + group * QUERY_BYTES);
}

template <uint32_t DIM> KILN_INLINE void attend_tiles(const kiln_attention_codes_mapped_args &mapped) {
    typedef layout<DIM> at;
    extern __shared__ atom atoms[];
    uint32_t shared = kiln_sm90a_shared(atoms);
    const kiln_attention_codes_args &args = mapped.codes;
    const kiln_attention_args &plain = args.plain;
    uint32_t tile = kiln_tile(), block = (uint32_t)kiln_block(), blocks = plain.batch * plain.kv_heads * plain.splits;
    if (block >= blocks) return; /* the whole block */
    /* Of several heads the last rows first: with causal they see most, and short ones fill the end. */
    uint32_t heads = plain.row_tiles < HEADS_TILES ? HEADS_TILES / plain.row_tiles : 1, first = block / heads * heads;
    uint32_t place = (block - first) * plain.row_tiles + tile;
    heads = min(heads, blocks - first);
    kiln_attention_work work = kiln_attention_work_of(&plain, 0, first + place % heads);
    work.row = (plain.row_tiles - 1 - place / heads) * at::TILE_ROWS;
    kiln_sequence s = kiln_sequence_of(&plain, work.batch);
    uint32_t end = s.seqlen_q * plain.group; /* of the rows */
    if (work.row >= end) return;             /* the whole block */
    uint32_t share = work.key;
    kiln_attention_trim(&plain, &s, work.row + at::TILE_ROWS < end ? work.row + at::TILE_ROWS : end, &work);
    /* Tiles begin where keys begin to share scales, unless the share begins behind it. */
    key_tiles tiles = {max(share, work.key / SHARED_SCALE_KEYS * SHARED_SCALE_KEYS), work.key_end, 0};
    if (tiles.end > work.key) tiles.count = uniform((tiles.end - tiles.key + TILE_KEYS - 1) / TILE_KEYS);

    if (kiln_thread() == 0) {
        KILN_UNROLL
        for (uint32_t i = 0; i < at::STAGES; i++) {
            kiln_sm90a_mbarrier_init(shared + at::KEYS_FULL + i * 8, WARPGROUP + 1); /* and the copy's */
            kiln_sm90a_mbarrier_init(shared + at::KEYS_EMPTY + i * 8, CONSUMERS * GROUP_WARPS);
            kiln_sm90a_mbarrier_init(shared + at::VALUES_FULL + i * 8, 1);
        }
        KILN_UNROLL
        for (uint32_t i = 0; i < at::TRANSPOSED_STAGES; i++) {
            kiln_sm90a_mbarrier_init(shared + at::TRANSPOSED_FULL + i * 8, WARPGROUP);
            kiln_sm90a_mbarrier_init(shared + at::TRANSPOSED_EMPTY + i * 8, CONSUMERS * GROUP_WARPS);
        }
        kiln_sm90a_fence_mbarrier_init();
        kiln_sm90a_prefetch_tensormap(mapped.maps);
        kiln_sm90a_prefetch_tensormap(mapped.maps + 1);
    }
    kiln_barrier();
    if (uniform(kiln_thread() / WARPGROUP) == 0) {
        kiln_sm90a_setmaxnreg_dec<at::PRODUCER_REGISTERS>();
        produce<DIM>(args, mapped.maps, s, work, tiles, shared, (char *)atoms);
    } else {
        kiln_sm90a_setmaxnreg_inc<at::CONSUMER_REGISTERS>();
        consume<DIM>(args, s, work, tiles, end, shared, (char *)atoms);
    }
}

#define CODES_PASTE(kernel, dim, part)                                    \
    extern "C" __global__ void __launch_bounds__(layout<dim>::THREADS, 1) \
        kiln_##kernel##_##part(const __grid_constant__ kiln_attention_codes_mapped_args args)
#define CODES_OF_PART(kernel, dim, part) CODES_PASTE(kernel, dim, part)

/* Head of an entry of attend_tiles. */
#define CODES_ENTRY(kernel, dim) CODES_OF_PART(kernel, dim, KILN_PART)

#endif
