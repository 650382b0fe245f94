/* Sums of gemm_fp8's and gemm_int8's kernels by wgmma, sm_90a (w8a8_sm90a.h), that are taken over group by group in
 * f32, because scales are of groups or because a matrix unit's sums are not to be longer.
 *
 * A warpgroup makes the products of a stage with 64 columns in one of two temporaries, and adds those that it made
 * before to the sums while they are made. After AT_ONCE stages it waits for the last products, and the other warpgroup
 * has the matrix units alone.
 *
 * Registers are scarce: 128 sums and 64 products of a thread leave 40. So the place in the ring and the warpgroup are
 * numbers that the compiler sees to be a warp's, which cost none, nor an instruction to move them to where products
 * take their addresses from.
 *
 * Where columns have their scales in blocks of 128, each of the four threads of a row loads those of one of QUAD
 * stages, that many stages ahead, and the others get them by shuffles. Where columns have scales of their own, three
 * warps of the first warpgroup bring those of a stage's rows of a and b into shared memory, one stage ahead of the one
 * that they write, and arrive at its `full`.
 *
 * The includer defines `unit` (w8a8_sm90a.h). */
#ifndef KILN_KERNELS_COMMON_MATMUL_W8A8_SM90A_GROUPS_H
#define KILN_KERNELS_COMMON_MATMUL_W8A8_SM90A_GROUPS_H

#include "kernels/arch/sm90a_wgmma.h"
#include "kernels/common/matmul/w8a8_sm90a_end.h"

enum : uint32_t {
    SCALE_THREADS = WARPGROUP - 32, /* that bring scales */
    SLICE = 64,                     /* columns whose products are made at a time */
    QUAD = 4                        /* stages whose scales the four threads of a row have */
};

/* Whose scales the products of a group get, while they are added to the sums. */
enum factors { NONE, BLOCKS, COLUMNS };

KILN_INLINE factors factors_of(const kiln_w8a8_args &args) {
    if (!args.grouped) return NONE;
    return args.b_scales.rows_log2 < KILN_W8A8_GROUP_LOG2 ? COLUMNS : BLOCKS;
}

/* ---- Scales in shared memory: three warps ---- */

/* This thread's scales of a stage; rows beyond the last have the last's. */
template <class S>
KILN_INLINE void load_stage_scales(float *values, const kiln_w8a8_args &args, const work &w, uint32_t step) {
    const uint32_t thread = kiln_thread() - 32, group = w.begin / KILN_W8A8_GROUP + step;
    KILN_UNROLL
    for (uint32_t i = 0; i < S::SCALES_EACH; i++) {
        const uint32_t row = thread + i * SCALE_THREADS;
        const uint32_t a_row = w.row + row, b_row = w.col + row - TILE_ROWS;
        const uint32_t a_last = (uint32_t)args.m - 1, b_last = (uint32_t)args.n - 1;
        if (row < TILE_ROWS)
            values[i] = kiln_w8a8_scale(&args.a_scales, a_row < a_last ? a_row : a_last, group);
        else
            values[i] = kiln_w8a8_scale(&args.b_scales, b_row < b_last ? b_row : b_last, group);
    }
}

template <class S>
KILN_INLINE void bring_scales(const kiln_w8a8_args &args, float *scales, uint32_t shared, uint32_t rank) {
    const uint32_t count = work_count<S>(args), thread = kiln_thread() - 32;
    place at = {0, 0};
    KILN_LOOP
    for (uint32_t number = blockIdx.x / S::CLUSTER; number < count; number += gridDim.x / S::CLUSTER) {
        work w = work_of<S>(args, number, rank);
        float values[S::SCALES_EACH], next[S::SCALES_EACH];
        load_stage_scales<S>(values, args, w, 0);
        KILN_LOOP
        for (uint32_t step = 0; step < w.steps; step++) {
            load_stage_scales<S>(next, args, w, step + 1 < w.steps ? step + 1 : step);
            kiln_sm90a_mbarrier_wait(shared + S::EMPTY + at.stage * BARRIER_BYTES, at.parity ^ 1);
            KILN_UNROLL
            for (uint32_t i = 0; i < S::SCALES_EACH; i++) {
                const uint32_t row = thread + i * SCALE_THREADS;
                if (row < S::SCALES) scales[at.stage * S::SCALES + row] = values[i];
                values[i] = next[i];
            }
            __syncwarp();
            if (thread % 32 == 0) kiln_sm90a_mbarrier_arrive(shared + S::FULL + at.stage * BARRIER_BYTES);
            advance<S>(&at);
        }
    }
}

/* ---- Scales in registers: four threads of a row ---- */

/* Of one of QUAD stages: the scales of a thread's two rows, and of each block of columns. */
template <class S> struct quad_scales { float rows[2], cols[S::BLOCKS]; };

/* This thread's of the stages from `step` on; what is beyond the last has the last's. */
template <class S>
KILN_INLINE void load_quad(quad_scales<S> *scales, const kiln_w8a8_args &args, const work &w, uint32_t step) {
    const uint32_t own = step + kiln_thread() % QUAD, last = w.steps - 1, row = own_row(w);
    const uint32_t group = w.begin / KILN_W8A8_GROUP + (own < last ? own : last);
    const uint32_t a_last = (uint32_t)args.m - 1, b_last = (uint32_t)args.n - 1;
    KILN_UNROLL
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t at = row + 8 * i;
        scales->rows[i] = kiln_w8a8_scale(&args.a_scales, at < a_last ? at : a_last, group);
    }
    KILN_UNROLL
    for (uint32_t i = 0; i < S::BLOCKS; i++) {
        const uint32_t at = w.col + i * KILN_W8A8_GROUP;
        scales->cols[i] = kiln_w8a8_scale(&args.b_scales, at < b_last ? at : b_last, group);
    }
}

/* ---- Sums: two warpgroups ---- */

/* The same number, of a warp's first thread: the compiler sees that it is that of all. */
KILN_INLINE uint32_t of_warp(uint32_t number) {
    return __shfl_sync(0xffffffffu, number, 0);
}

/* Begins the products of this warpgroup's rows with a slice; waits for the stage before its first. */
template <class S, class unit>
KILN_INLINE void begin_slice(typename unit::sums *products, uint32_t warpgroup, uint32_t shared, place at,
                             uint32_t slice) {
    const uint32_t from = shared + at.stage * S::STAGE_BYTES;
    const uint64_t a = kiln_sm90a_swizzled_128(from + warpgroup * CONSUMER_ROWS * ROW_BYTES, 0, 8 * ROW_BYTES);
    const uint64_t b = kiln_sm90a_swizzled_128(from + S::A_BYTES + slice * SLICE * ROW_BYTES, 0, 8 * ROW_BYTES);
    if (slice == 0) kiln_sm90a_mbarrier_wait(shared + S::FULL + at.stage * BARRIER_BYTES, at.parity);
    kiln_sm90a_wgmma_fence();
    KILN_UNROLL
    for (uint32_t k = 0; k < ROW_BYTES / PRODUCT_BYTES; k++) /* the addresses in units of 16 bytes */
        unit::template multiply<SLICE>(products, a + k * (PRODUCT_BYTES >> 4), b + k * (PRODUCT_BYTES >> 4), k > 0);
    kiln_sm90a_wgmma_commit();
}

/* Adds the products of a slice: those of the two rows have factors of their own, and if OWN so have the columns. */
template <class unit, bool OWN>
KILN_INLINE void take_products(typename unit::sums *sums, const typename unit::sums *products, float low, float high,
                               const float *b_scales) {
    KILN_UNROLL
    for (uint32_t j = 0; j < SLICE / 8; j++) {
        const float2 right = OWN ? *(const float2 *)&b_scales[8 * j] : make_float2(1.0f, 1.0f);
        w8a8_add(&sums[4 * j], unit::value(products[4 * j]), OWN ? low * right.x : low);
        w8a8_add(&sums[4 * j + 1], unit::value(products[4 * j + 1]), OWN ? low * right.y : low);
        w8a8_add(&sums[4 * j + 2], unit::value(products[4 * j + 2]), OWN ? high * right.x : high);
        w8a8_add(&sums[4 * j + 3], unit::value(products[4 * j + 3]), OWN ? high * right.y : high);
    }
}

/* Signals that a warp has multiplied a stage, as release does, without a register for the address that other threads
 * have no use for. */
template <class S> KILN_INLINE void release_stage(uint32_t shared, uint32_t stage) {
    const uint32_t lane = kiln_thread() % 32;
    kiln_sm90a_mbarrier_arrive_at(kiln_sm90a_remote(shared + S::EMPTY + stage * BARRIER_BYTES, lane % S::CLUSTER),
                                  lane < S::CLUSTER);
}

/* Adds the products of STEPS stages, the first of which has its scales with the thread `first` of four, or all theirs
 * in shared memory. */
template <class S, class unit, factors WHOSE, uint32_t STEPS>
KILN_INLINE void add_stages(typename unit::sums *sums, uint32_t warpgroup, const quad_scales<S> &quad, uint32_t first,
                            const float *scales, uint32_t shared, place *at) {
    enum : uint32_t { SLICES = S::COLS / SLICE, ALL = SLICES * STEPS };
    typename unit::sums products[2][SLICE / 2];
    float low = 1.0f, high = 1.0f;
    place ahead = *at;
    begin_slice<S, unit>(products[0], warpgroup, shared, ahead, 0);
    KILN_UNROLL
    for (uint32_t i = 0; i < ALL; i++) {
        const uint32_t slice = i % SLICES;
        if (slice + 1 == SLICES) advance<S>(&ahead);
        if (i + 1 < ALL) begin_slice<S, unit>(products[(i + 1) % 2], warpgroup, shared, ahead, (i + 1) % SLICES);
        const float *own = scales + at->stage * S::SCALES;
        if (WHOSE == COLUMNS && slice == 0) {
            const uint32_t row = (kiln_thread() - WARPGROUP) / 32 * 16 + kiln_thread() % 32 / 4;
            low = own[row];
            high = own[row + 8];
        }
        if (WHOSE == BLOCKS && slice * SLICE % KILN_W8A8_GROUP == 0) {
            const int from = (int)(kiln_thread() % 32 / QUAD * QUAD + first + i / SLICES);
            const float right = quad.cols[slice * SLICE / KILN_W8A8_GROUP];
            low = __shfl_sync(0xffffffffu, quad.rows[0] * right, from);
            high = __shfl_sync(0xffffffffu, quad.rows[1] * right, from);
        }
        if (i + 1 < ALL)
            kiln_sm90a_wgmma_wait<1>();
        else
            kiln_sm90a_wgmma_wait<0>();
        kiln_sm90a_wgmma_hold<SLICE / 2>(products[i % 2]);
        take_products<unit, WHOSE == COLUMNS>(sums + slice * SLICE / 2, products[i % 2], low, high,
                                              own + TILE_ROWS + slice * SLICE + own_col());
        if (slice + 1 < SLICES) continue;
        if (WHOSE == COLUMNS) __syncwarp(); /* all lanes have read their scales */
        release_stage<S>(shared, at->stage);
        advance<S>(at);
    }
}

/* Adds the products of a tile's stages. `scales` are in shared memory, if columns have their own. */
template <class S, class unit, factors WHOSE>
KILN_INLINE void add_groups(typename unit::sums *sums, const kiln_w8a8_args &args, const float *scales, uint32_t shared,
                            place *at, const work &w) {
    enum : uint32_t { EACH = WHOSE == COLUMNS ? 1 : unit::AT_ONCE };
    const uint32_t warpgroup = of_warp(kiln_thread() / WARPGROUP - 1);
    quad_scales<S> quad = {}, next;
    uint32_t step = 0;
    if (WHOSE == BLOCKS) load_quad<S>(&quad, args, w, 0);
    KILN_LOOP
    for (; step + EACH <= w.steps; step += EACH) {
        const bool goes_on = WHOSE == BLOCKS && (step + EACH) % QUAD == 0;
        if (goes_on) load_quad<S>(&next, args, w, step + EACH);
        add_stages<S, unit, WHOSE, EACH>(sums, warpgroup, quad, step % QUAD, scales, shared, at);
        if (goes_on) quad = next;
    }
    KILN_LOOP
    for (; EACH > 1 && step < w.steps; step++)
        add_stages<S, unit, WHOSE, 1>(sums, warpgroup, quad, step % QUAD, scales, shared, at);
}

#endif
