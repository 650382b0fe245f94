/* Attention for few rows with many keys by the matrix units of AMD chips, f16 and bf16: the decode of mha and
 * mha_paged, beside the tiles of attention_gfx.h, which serve caches of E4M3 too.
 *
 * A block has up to 16 rows: the queries of the heads that share keys, so that these are read once. Its 4 waves take
 * tiles of 16 keys in turn, or 32 where a wave has 64 lanes, and each reads its own from memory into registers, where
 * products take them from: nothing of k or v passes through shared memory, and nothing waits for another wave until the
 * end. Products are turned as in attention_gfx.h, so that a lane has scores of one row and of 8 neighbouring keys. Of v
 * it reads the same 8 elements of a head of these keys, turned by permutations of bytes into fragments of 8 products,
 * each of which has every eighth element: a wave reads whole heads at once. The loads of the wave's next tile are on
 * their way meanwhile, and their blocks of the cache are looked up another tile ahead, by a lane for each key.
 *
 * Of heads of more than 128 elements two waves have the same keys, and each a part of 128 elements, whose registers are
 * those of shorter heads. They exchange what they have of the scores in shared memory, 8 numbers a lane, by one barrier
 * a tile, at which loads stay on their way; both then know the weights, and each adds its elements of the values.
 *
 * A row's maximum is agreed among its lanes only where one of them sees a greater one. At the end waves add up their
 * results in shared memory, four elements of each eight at a time, so that two blocks and more fit a compute unit. A
 * sequence's keys are shared among blocks by its own length; a second launch joins their results (Dao et al.,
 * Flash-Decoding, 2023).
 *
 * Floor: one read of k and v. Not measured: in the counters' model the instructions take half of the memory's time or
 * less. Heads of 256 elements by one wave left too few registers for waves of 32; with a cache of E4M3 the conversion
 * took longer than the memory, and as many bytes again of each image. Simulated, 4 rows and 16384 keys of 256 elements
 * in bf16, by decode and by the tiles, which had such rows before: thousands of instructions of a wave 626 and 1082 on
 * gfx90a, 590 and 1055 on gfx942, 1787 and 1640 on gfx1100, 1174 and 1522 on gfx1201, with 8 to 12 waves at work on a
 * compute unit instead of one; no conflicts by either.
 * Includers define what attention_gfx.h asks for, and `few`, the matrix unit for 16 rows:
 *   ELEMENTS           of a product of 16 x 16 that a lane's sums are
 *   key_of(n, slot)    the key of a wave's tile that is this row of the n-th product with k
 *   vector_of(i)       the row of a product whose sum is the lane's i-th
 * Test: build/tests/ops/mha_test. Bench: build/kiln bench mha_paged */
#ifndef KILN_KERNELS_COMMON_ATTENTION_ATTENTION_GFX_DECODE_H
#define KILN_KERNELS_COMMON_ATTENTION_ATTENTION_GFX_DECODE_H

#include "kernels/common/attention/attention_gfx_decode_results.h"

/* ---- A wave and a tile ---- */

/* Has products done by now: else the compiler moves them behind the loads of what comes after their keys, for which
 * there are no registers yet. */
template <uint32_t COUNT> KILN_INLINE void finish(few::sums *sums) {
    KILN_UNROLL
    for (uint32_t n = 0; n < COUNT; n++)
        __asm__ volatile("" : "+v"(sums[n]));
}

/* Adds the mask to the scores of keys that the row sees. */
KILN_INLINE void add_mask_to_run(const kiln_attention_args *args, const decode_work &d, const decode_row &r,
                                 uint32_t first, float *scores) {
    const kiln_element *row = (const kiln_element *)args->mask;
    row += kiln_mask_row(args, d.work.batch, r.head, r.query) + first;
    KILN_UNROLL
    for (uint32_t i = 0; i < RUN; i++) {
        if (first + i >= r.window.end) continue;
        float added = kiln_element_to_f32(row[i]);
        scores[i] = added == -KILN_INFINITY ? -KILN_INFINITY : KILN_FMA(added, KILN_LOG2_E, scores[i]);
    }
}

/* Scores of the lane's keys, from `first` on, become weights relative to the row's maximum, and what is left of the old
 * result is scaled to that. */
KILN_INLINE kiln_vector weigh_run(const kiln_attention_args &args, const decode_work &d, const score_scale &scale,
                                  uint32_t first, bool whole, decode_row *r, float *scores) {
    float softcap = uniform(args.softcap * KILN_LOG2_E);
    if (args.softcap == 0.0f) {
        KILN_UNROLL
        for (uint32_t i = 0; i < RUN; i++)
            scores[i] *= scale.factor;
    } else {
        KILN_UNROLL
        for (uint32_t i = 0; i < RUN; i++)
            scores[i] = capped(scores[i], scale.twice, softcap);
    }
    if (!PAGED && args.mask) add_mask_to_run(KILN_LATE_ARGS(kiln_attention_args, args), d, *r, first, scores);
    if (!whole) {
        KILN_UNROLL
        for (uint32_t i = 0; i < RUN; i++)
            if (first + i - r->window.begin >= r->window.end - r->window.begin) scores[i] = -KILN_INFINITY;
    }
    if (PAGED && args.tree_mask) {
        uint32_t bits =
            kiln_tree_bits(KILN_LATE_ARGS(kiln_attention_args, args), kiln_tree_begin(&args, &d.s), r->token, first);
        KILN_UNROLL
        for (uint32_t i = 0; i < RUN; i++)
            if (!(bits >> i & 1)) scores[i] = -KILN_INFINITY;
    }

    float max = r->max;
    KILN_UNROLL
    for (uint32_t i = 0; i < RUN; i++)
        max = __builtin_fmaxf(max, scores[i]);
    if (unit::any(max > r->max)) {
        max = across_groups(max, [](float a, float b) { return __builtin_fmaxf(a, b); });
        float keep = kiln_fast_exp2(r->max - (max == -KILN_INFINITY ? 0.0f : max));
        r->sum *= keep;
        r->max = max;
        KILN_UNROLL
        for (uint32_t n = 0; n < KILN_VECTOR; n++)
            r->result[n] *= keep;
    }
    float origin = (r->max == -KILN_INFINITY ? 0.0f : r->max) - (float)unit::WEIGHT_LOG2;
    kiln_vector weights;
    KILN_UNROLL
    for (uint32_t i = 0; i < RUN; i++) {
        scores[i] = kiln_fast_exp2(scores[i] - origin);
        r->sum += scores[i];
    }
    KILN_UNROLL
    for (uint32_t w = 0; w < RUN / 2; w++)
        weights.words[w] = pack_short(scores[2 * w], scores[2 * w + 1]);
    return weights;
}

/* A row's products with a tile's keys. */
KILN_INLINE void multiply_keys(const kiln_vector *queries, const tile_keys &tile, few::sums *products) {
    uint32_t row = row_of_lane();
    __asm__ volatile("" : "+v"(row)); /* queries are read anew, for want of registers */
    KILN_UNROLL
    for (uint32_t i = 0; i < tile_keys::VECTORS; i++) {
        uint32_t n = i % DECODE_PRODUCTS, step = i / DECODE_PRODUCTS;
        if (n == 0 && step % 2 == 0) __builtin_amdgcn_sched_barrier(0);
        unit::fragment query = query_fragment(queries, row, step);
        products[n] = few::multiply(unit::weights_of(tile.vectors[i]), query, products[n]);
    }
    finish<DECODE_PRODUCTS>(products);
}

/* Adds a tile's values, turned, times weights. */
KILN_INLINE void add_values(const tile_values &tile, const unit::fragment &weights, decode_row *r) {
    const kiln_vector *values = tile.vectors;
    KILN_UNROLL
    for (uint32_t e = 0; e < KILN_VECTOR; e++) {
        if (e % 2 == 0) __builtin_amdgcn_sched_barrier(0);
        kiln_vector run;
        KILN_UNROLL
        for (uint32_t w = 0; w < RUN / 2; w++)
            run.words[w] = __builtin_amdgcn_perm(values[2 * w + 1].words[e / 2], values[2 * w].words[e / 2],
                                                 e % 2 ? 0x07060302u : 0x05040100u);
        r->result[e] = few::multiply(unit::weights_of(run), weights, r->result[e]);
    }
    finish<KILN_VECTOR>(r->result);
}

/* ---- decode ---- */

/* Adds up what the waves of the parts have of their keys' scores. Turns alternate, so that none writes where another
 * still reads. */
template <uint32_t PARTS> KILN_INLINE void add_parts(quad *shared, uint32_t turn, float *scores) {
    static_assert(PARTS == 2, "two waves have the same keys");
    quad *all = shared + turn * DECODE_SUMS, *own = all + wave_number() * (RUN / 4) * unit::WAVE + lane_of_wave();
    const quad *other = all + (wave_number() ^ 1) * (RUN / 4) * unit::WAVE + lane_of_wave();
    KILN_UNROLL
    for (uint32_t i = 0; i < RUN; i += 4)
        own[i / 4 * unit::WAVE] = {{scores[i], scores[i + 1], scores[i + 2], scores[i + 3]}};
    kiln_gfx_shared_barrier();
    KILN_UNROLL
    for (uint32_t i = 0; i < RUN; i += 4) {
        quad added = other[i / 4 * unit::WAVE];
        KILN_UNROLL
        for (uint32_t j = 0; j < 4; j++)
            scores[i + j] += added.values[j];
    }
}

/* Of heads of up to PARTS * DECODE_DIM elements. With more parts than one, waves that have no keys in the last round of
 * the block's take part, with weights of zero. */
template <uint32_t PARTS> KILN_INLINE void decode(const kiln_attention_args &args) {
    enum : uint32_t { KEYS = DECODE_WAVES / PARTS * DECODE_KEYS }; /* of a round of all waves */
    KILN_DYNAMIC_SHARED(kiln_vector, memory);
    const decode_work d = decode_work_of(args);
    if (!d.rows) return; /* the whole block */
    uint32_t part = part_of_wave<PARTS>(), turn = 0, own = wave_number() / PARTS * DECODE_KEYS;
    uint32_t key = d.work.key + own, end = d.work.key_end + (PARTS > 1 ? own : 0);
    uint32_t block = look_up(args, d, key), next_block = look_up(args, d, key + KEYS);
    kiln_vector *queries = memory + part / DECODE_DIM * DECODE_PART;
    tile_keys keys;
    tile_values values;
    if (PARTS > 1 || args.head_dim < DECODE_DIM) keys = {};
    tile_keys::load(args, d, part, block, key, &keys);
    tile_values::load(args, d, part, block, key, &values);
    put_queries<PARTS>(args, d, memory);
    kiln_gfx_shared_barrier();
    decode_row r = start_decode_row(args, d);
    score_scale scale = score_scale_of(args, d.work.kv_head);
    KILN_LOOP
    for (; key < end; key += KEYS) {
        uint32_t next = key + KEYS;
        few::sums products[DECODE_PRODUCTS] = {};
        multiply_keys(queries, keys, products);
        block = next_block;
        next_block = look_up(args, d, next + KEYS);
        tile_keys::load(args, d, part, block, next, &keys);
        float scores[RUN];
        KILN_UNROLL
        for (uint32_t i = 0; i < RUN; i++)
            scores[i] = products[i / few::ELEMENTS][i % few::ELEMENTS];
        if constexpr (PARTS > 1) {
            add_parts<PARTS>((quad *)(memory + PARTS * DECODE_PART), turn, scores);
            turn ^= 1;
        }
        bool whole = !unit::any(key < r.window.begin || key + DECODE_KEYS > r.window.end);
        kiln_vector weights = weigh_run(args, d, scale, key + group_of_lane() * RUN, whole, &r, scores);
        tile_values::end(d, key, &values);
        add_values(values, unit::weights_of(weights), &r);
        tile_values::load(args, d, part, block, next, &values);
    }
    write_rows<PARTS>(KILN_LATE_ARGS(kiln_attention_args, args), d, &r, (decode_shared *)memory);
}

/* Head of an entry of decode. */
#define DECODE_ENTRY(kernel) ENTRY_OF_THREADS(kernel, DECODE_THREADS)

#endif
