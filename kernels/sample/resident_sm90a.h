/* sample_cluster: a row in the shared memory of a cluster's blocks, which is asked for at once when the kernel begins,
 * so that the row is read once from memory and all passes over it read shared memory. */
#ifndef KILN_KERNELS_SAMPLE_RESIDENT_SM90A_H
#define KILN_KERNELS_SAMPLE_RESIDENT_SM90A_H

#if defined(KILN_PART_bf16)
#include "kernels/sample/counted_sm90a.h"
#else
#include "kernels/sample/share_sm90a.h"
#endif

/* The cluster's row. */
KILN_INLINE team_row resident_row(const kiln_sample_args *args, exchange *shared, meeting *met, uint32_t *turn,
                                  piece *own) {
    const kiln_element *x = (const kiln_element *)args->x + kiln_block() * (uint64_t)args->x_stride;
    const row_place place = place_of(x, args->cols, KILN_SAMPLE_CLUSTER);
    team_row r = {
        {x, args->cols, 0.0f, 0.0f}, place, shared, met, KILN_SAMPLE_CLUSTER, KILN_TEAM_RANK(), 0, 0, 0, turn, own};
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

/* Whether candidates may be looked for: not where they are counted. */
KILN_INLINE bool is_ranked(const kiln_row_options *options) {
#if defined(KILN_PART_bf16)
    return options->top_k > 0 || options->min_p > 0.0f;
#else
    (void)options;
    return true;
#endif
}

#if defined(KILN_PART_bf16)
/* The same row, from shared memory, so that registers need not hold what is known of it while it is counted. */
KILN_INLINE void resident_again(team_row *r) {
    const exchange *shared = r->shared;
    r->place = shared->place;
    r->row = {shared->place.x, shared->place.cols, shared->max, shared->inverse_temperature};
    r->single = single_col(r);
    r->rounds_log2 = 0;
    divide_groups(r);
    *r->turn = shared->turn;
}
#endif

/* Chooses a column of the cluster's row and stores it. */
KILN_INLINE void sample_resident(const kiln_sample_args *args, exchange *shared, meeting *met) {
    uint32_t turn = 0;
    piece part = {0, args};
    team_row r = resident_row(args, shared, met, &turn, &part);
    request_share(&r);
    const kiln_row_options options = kiln_options_of(args, kiln_block());
    await_share(&r);
    const uint32_t own = take_groups(&r);
    kiln_sm90a_cluster_wait(); /* a block's shared memory may be written once it has begun */
    if (!(options.temperature >= 1e-6f) || options.top_k == 1) {
        const int32_t col = greatest_col(&r, own);
        if (kiln_thread() == 0 && KILN_TEAM_RANK() == 0) args->y[kiln_block()] = col;
        return;
    }
    const uint32_t sent = is_ranked(&options) ? send_greatest(&r, own) : 0;
    team_give(&r, subgroup_greatest(own), sent);
    if (kiln_thread() == 0) shared->bits = kiln_sample_bits(args, kiln_block()); /* while others give */
    const uint32_t greatest = greatest_share(&r, team_take(&r));
    if (!greatest) {
        if (kiln_thread() == 0 && KILN_TEAM_RANK() == 0) args->y[kiln_block()] = -1;
        return;
    }
    const kiln_filters filters = kiln_filters_of(&r.row, options, greatest);
    if (kiln_thread() == 0) {
        shared->filters = filters;
        shared->max = r.row.max;
        shared->inverse_temperature = r.row.inverse_temperature;
    }
    kiln_barrier(); /* the bits and the filters are seen */
#if defined(KILN_PART_bf16)
    if (!shared->filters.top_k && !shared->filters.least && is_countable(&r) &&
        sample_counted(&r, shared->filters.top_p, &shared->bits))
        return;
    resident_again(&r);
#endif
    const uint32_t col = kiln_choose(&r.row, &shared->filters, &shared->bits);
    if (kiln_thread() == 0 && KILN_TEAM_RANK() == 0 && col != KILN_NOWHERE) args->y[kiln_block()] = (int32_t)col;
}

#endif
