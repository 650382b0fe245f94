/* sample_cluster: a row in the shared memory of a cluster's blocks, which is asked for at once when the kernel begins,
 * so that the row is read once from memory and all passes over it read shared memory. */
#ifndef KILN_KERNELS_SAMPLE_RESIDENT_SM90A_H
#define KILN_KERNELS_SAMPLE_RESIDENT_SM90A_H

#if defined(KILN_PART_bf16)
#include "kernels/sample/counted_sm90a.h"
#else
#include "kernels/sample/share_sm90a.h"
#endif

/* Readies what the others send to, and tells them that the block has begun. */
KILN_INLINE void begin_meeting(meeting *met) {
    if (kiln_thread() == 0) {
        kiln_sm90a_mbarrier_init(kiln_sm90a_shared(&met->shared[0]), 1);
        kiln_sm90a_mbarrier_init(kiln_sm90a_shared(&met->shared[1]), 1);
        kiln_sm90a_mbarrier_init(kiln_sm90a_shared(&met->told), 1);
        kiln_sm90a_mbarrier_init(kiln_sm90a_shared(&met->gathered), 1);
        kiln_sm90a_fence_mbarrier_init();
    }
    __syncwarp();
    kiln_sm90a_cluster_arrive();
}

/* The cluster's row, whose shares have been asked for. */
KILN_INLINE team_row resident_row(const kiln_sample_args *args, exchange *shared, meeting *met, uint32_t *turn,
                                  piece *own) {
    const kiln_element *x = (const kiln_element *)args->x + kiln_block() * (uint64_t)args->x_stride;
    const row_place place = place_of(x, args->cols, KILN_SAMPLE_CLUSTER);
    team_row r = {
        {x, args->cols, 0.0f, 0.0f}, place, shared, met, KILN_SAMPLE_CLUSTER, KILN_TEAM_RANK(), 0, 0, 0, turn, own};
    request_share(&r);
    begin_meeting(met);
    r.single = single_col(&r);
    divide_groups(&r);
    if (kiln_thread() == 0) {
        shared->place = place;
        shared->listed = shared->count = 0;
        shared->turn = 1;
    }
    shared->counts[kiln_thread()] = 0;
    return r;
}

/* Chooses a column of the cluster's row and stores it. */
KILN_INLINE void sample_resident(const kiln_sample_args *args, exchange *shared, meeting *met) {
    uint32_t turn = 0;
    piece part = {0, args};
    team_row r = resident_row(args, shared, met, &turn, &part);
    const kiln_row_options options = kiln_options_of(args, kiln_block());
    if (!(options.temperature >= 1e-6f) || options.top_k == 1) {
        await_share(&r);
        store_greatest(&r, &args->y[kiln_block()]);
        return;
    }
#if defined(KILN_PART_bf16)
    if (is_countable(&r) && sample_counted(&r, &options)) return;
#endif
    await_share(&r);
    const uint32_t own = take_groups(&r);
    if (turn == 0) kiln_sm90a_cluster_wait(); /* a block's shared memory may be written once it has begun */
    team_give(&r, subgroup_greatest(own), is_counted_row() ? 0 : send_greatest(&r, own));
    if (kiln_thread() == 0) shared->bits = kiln_sample_bits(args, kiln_block()); /* while others give */
    const uint32_t greatest = greatest_share(&r, team_take(&r));
    if (!greatest) {
        if (kiln_thread() == 0 && KILN_TEAM_RANK() == 0) args->y[kiln_block()] = -1;
        return;
    }
    const kiln_filters filters = kiln_filters_of(&r.row, options, greatest);
    keep_row(&r, &filters);
    kiln_barrier(); /* the bits and the filters are seen */
    resident_again(&r);
    const uint32_t col = kiln_choose(&r.row, &shared->filters, &shared->bits);
    if (kiln_thread() == 0 && KILN_TEAM_RANK() == 0 && col != KILN_NOWHERE) args->y[kiln_block()] = (int32_t)col;
}

#endif
