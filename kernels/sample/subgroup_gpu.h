/* Many short rows of sample on a device: a subgroup chooses a column of each, so that what does not depend on a row's
 * length is done by one subgroup instead of a block, and nothing waits for other subgroups. What is rare, or has more
 * candidates than FEW, is left to the block: top-p alone, and infinite elements.
 *
 * Without filters a thread sums what chunks of adjacent elements weigh, and leaves the sums in shared memory, where the
 * one is looked for that the random number is in. With filters the elements that these can keep are found as in
 * candidates_gpu.h; the greatest elements of groups stay in registers. */
#ifndef KILN_KERNELS_SAMPLE_SUBGROUP_GPU_H
#define KILN_KERNELS_SAMPLE_SUBGROUP_GPU_H

#include "kernels/sample/candidates_gpu.h"

enum {
    CHUNK = KILN_SUBGROUP,                   /* adjacent elements that a thread sums, as many as threads */
    CHUNK_VECTORS = CHUNK / KILN_VECTOR,     /* of them */
    CHUNKS = KILN_SAMPLE_SHORT_COLS / CHUNK, /* of a row */
    OWN_CHUNKS = CHUNKS / KILN_SUBGROUP,     /* of a thread */
    FEW = 96,                                /* candidates */
    FEW_GROUPS = 8,                          /* of a thread's vectors */
    COUNTS = 256,                            /* of groups, by how far their keys are below the greatest */
    OWN_COUNTS = COUNTS / KILN_SUBGROUP
};

/* Shared memory of a subgroup. */
typedef struct few {
    union {
        uint64_t chunks[CHUNKS]; /* what they weigh */
        uint32_t counts[COUNTS];
        struct {
            uint64_t ranks[FEW + AHEAD];
            uint64_t weights[FEW + AHEAD];
            uint64_t sums[FEW];
        };
    };
    uint64_t kept[2], sum[2]; /* as in exchange */
    uint32_t found;
    uint32_t listed, count; /* of the list and of the candidates */
    uint16_t list[FEW];     /* groups that may have candidates */
} few;

/* The column of the single element that the thread has; cols: it has none. */
KILN_INLINE uint32_t few_single(const team_row *r) {
    uint32_t end = vector_col(r, r->place.vectors), col = end + lane() - r->place.head;
    return lane() < r->place.head ? lane() : lesser(col, r->place.cols);
}

/* ---- Without filters ---- */

/* The column of the element, of up to a subgroup's threads from first on, such that those up to it weigh more than
 * `rest`. */
KILN_INLINE uint32_t find_element(const team_row *r, uint32_t first, uint32_t count, uint64_t rest) {
    units one = {0, 0};
    uint64_t all;
    if (lane() < count) units_add(&one, &r->row, value_at(r, first + lane()));
    uint64_t own = units_sum(one), before = subgroup_before(own, &all);
    return first + subgroup_greatest(before <= rest && rest < before + own ? lane() : 0);
}

KILN_INLINE uint64_t chunk_weight(const team_row *r, uint32_t chunk) {
    uint32_t first = chunk * CHUNK_VECTORS, last = lesser(first + CHUNK_VECTORS, r->place.vectors);
    units sum = {0, 0};
    kiln_vector next = {{0}};
    if (first < last) next = vector_at(r, first);
    KILN_LOOP
    for (uint32_t vector = first; vector < last;) {
        float values[KILN_VECTOR];
        kiln_vector_values(values, next);
        next = vector_at(r, lesser(++vector, last - 1));
        KILN_UNROLL
        for (uint32_t i = 0; i < KILN_VECTOR; i++)
            units_add(&sum, &r->row, values[i]);
    }
    return units_sum(sum);
}

/* The elements before the first vector and those after the last come first and last in the sum. */
KILN_INLINE uint32_t draw_of_all(const team_row *r, few *shared, uint64_t bits) {
    uint32_t head = r->place.head, end = vector_col(r, r->place.vectors), tail = r->place.cols - end;
    uint64_t singles = 0, tails = 0, body = 0, ignored;
    if (head + tail > 0) {
        units one = {0, 0};
        uint32_t col = few_single(r);
        if (col < r->place.cols) units_add(&one, &r->row, value_at(r, col));
        singles = subgroup_sum(units_sum(one));
        tails = subgroup_sum(col < end ? 0 : units_sum(one));
    }
    KILN_LOOP
    for (uint32_t chunk = lane(); chunk < CHUNKS; chunk += KILN_SUBGROUP) {
        uint64_t weight = chunk_weight(r, chunk);
        shared->chunks[chunk] = weight;
        body += weight;
    }
    body = subgroup_sum(body);
    subgroup_sync();
    uint64_t rest = kiln_scaled(bits, body + singles), heads = singles - tails;
    if (rest < heads) return find_element(r, 0, head, rest);
    rest -= heads;
    if (rest >= body) return find_element(r, end, tail, rest - body);
    const uint64_t *own = &shared->chunks[lane() * OWN_CHUNKS];
    uint64_t sum = 0;
    KILN_LOOP
    for (uint32_t i = 0; i < OWN_CHUNKS; i++)
        sum += own[i];
    uint64_t before = subgroup_before(sum, &ignored);
    if (before <= rest && rest < before + sum) {
        uint32_t i = 0;
        KILN_LOOP
        while (before + own[i] <= rest)
            before += own[i++];
        shared->found = lane() * OWN_CHUNKS + i;
        shared->sum[0] = before;
    }
    subgroup_sync();
    uint32_t first = vector_col(r, shared->found * CHUNK_VECTORS);
    return find_element(r, first, lesser(CHUNK, end - first), rest - shared->sum[0]);
}

/* ---- With filters ---- */

/* The vector of a thread's group that is the next but `round` there. */
KILN_INLINE uint32_t few_vector(const team_row *r, uint32_t group, uint32_t thread, uint32_t round) {
    return ((group << r->rounds_log2) + round) * KILN_SUBGROUP + thread;
}

/* Finds the greatest element of each of the thread's groups, -inf where one has none, and returns the greatest key of
 * the row. */
KILN_INLINE uint32_t take_few_groups(const team_row *r, float max[FEW_GROUPS]) {
    float greatest = -KILN_INFINITY;
    uint32_t vectors = r->place.vectors, single = few_single(r);
    KILN_UNROLL
    for (uint32_t group = 0; group < FEW_GROUPS; group += LOADS) {
        group_max of[LOADS];
        KILN_UNROLL
        for (uint32_t k = 0; k < LOADS; k++)
            of[k] = group_none();
        KILN_LOOP
        for (uint32_t round = 0; round < 1u << r->rounds_log2 && few_vector(r, group, 0, round) < vectors; round++) {
            kiln_vector held[LOADS];
            KILN_UNROLL
            for (uint32_t k = 0; k < LOADS; k++)
                held[k] = vector_at(r, lesser(few_vector(r, group + k, lane(), round), vectors - 1));
            KILN_UNROLL
            for (uint32_t k = 0; k < LOADS; k++)
                of[k] = group_take(of[k], held[k]);
        }
        KILN_UNROLL
        for (uint32_t k = 0; k < LOADS; k++) {
            float value = group_value(of[k]);
            greatest = kiln_fast_max(value, greatest);
            max[group + k] = few_vector(r, group + k, lane(), 0) < vectors ? value : -KILN_INFINITY;
        }
    }
    if (single < r->place.cols) greatest = kiln_fast_max(value_at(r, single), greatest);
    return subgroup_greatest(kiln_sample_key(greatest));
}

/* A key that at least `wanted` groups' greatest elements reach, and few more; 0 if there are not so many groups among
 * those whose keys are counted. */
KILN_INLINE uint32_t few_bound(few *shared, const float max[FEW_GROUPS], uint32_t greatest, uint32_t wanted) {
    uint32_t *own = &shared->counts[lane() * OWN_COUNTS], sum = 0, found = 0;
    uint64_t all;
    KILN_LOOP
    for (uint32_t i = lane(); i < COUNTS; i += KILN_SUBGROUP)
        shared->counts[i] = 0;
    subgroup_sync();
    KILN_UNROLL
    for (uint32_t group = 0; group < FEW_GROUPS; group++) {
        uint32_t key = kiln_sample_key(max[group]), count = (greatest >> 16) - (key >> 16);
        if (key && count < COUNTS) kiln_shared_add(&shared->counts[count], 1);
    }
    subgroup_sync();
    KILN_LOOP
    for (uint32_t i = 0; i < OWN_COUNTS; i++)
        sum += own[i];
    uint32_t before = (uint32_t)subgroup_before(sum, &all);
    if (before < wanted && wanted <= before + sum) {
        KILN_LOOP
        for (found = lane() * OWN_COUNTS; before < wanted; found++)
            before += shared->counts[found];
    }
    found = subgroup_greatest(found);
    return found ? ((greatest >> 16) - (found - 1)) << 16 : 0;
}

/* As take_candidates. Returns how many there are, or more than FEW. */
KILN_INLINE uint32_t take_few(const team_row *r, few *shared, const float max[FEW_GROUPS], uint32_t bound) {
    uint32_t log2 = r->rounds_log2, least = bound ? bound : 1;
    if (lane() == 0) shared->listed = shared->count = 0;
    subgroup_sync();
    KILN_UNROLL
    for (uint32_t group = 0; group < FEW_GROUPS; group++) {
        if (kiln_sample_key(max[group]) < least) continue;
        uint32_t place = kiln_shared_add(&shared->listed, 1);
        if (place < FEW) shared->list[place] = (uint16_t)(group * KILN_SUBGROUP + lane());
    }
    subgroup_sync();
    if (shared->listed > FEW) return shared->listed;
    uint32_t vectors = shared->listed << log2;
    uint32_t singles = r->place.cols - r->place.vectors * KILN_VECTOR ? KILN_SUBGROUP : 0;
    KILN_LOOP
    for (uint32_t i = lane(); i < vectors + singles; i += KILN_SUBGROUP) {
        uint32_t col = few_single(r); /* at last */
        kiln_vector vector = single_vector(r, col);
        if (i < vectors) {
            uint32_t item = shared->list[i >> log2], round = i & ((1u << log2) - 1);
            uint32_t number = few_vector(r, item / KILN_SUBGROUP, item % KILN_SUBGROUP, round);
            if (number >= r->place.vectors) continue;
            vector = vector_at(r, number);
            col = vector_col(r, number);
        }
        take_vector(vector, col, least, &shared->count, shared->ranks, FEW);
    }
    subgroup_sync();
    return shared->count;
}

/* The column that the subgroup chooses of a row; KILN_NOWHERE: the block has to, or there is none. */
KILN_INLINE uint32_t sample_short(const kiln_sample_args *args, few *shared, uint64_t number) {
    const kiln_element *x = (const kiln_element *)args->x + number * (uint64_t)args->x_stride;
    kiln_row_options options = kiln_options_of(args, number);
    team_row r = {{x, args->cols, 0.0f, 0.0f}, place_of(x, args->cols, 1), NULL, NULL, 1, 0, 0, 0, 0, NULL, NULL};
    float max[FEW_GROUPS];
    KILN_LOOP
    while (r.place.vectors > (uint32_t)FEW_GROUPS * KILN_SUBGROUP << r.rounds_log2)
        r.rounds_log2++;
    uint32_t greatest = take_few_groups(&r, max), bound = 0;
    if (!greatest) return KILN_NOWHERE;
    kiln_filters filters = kiln_filters_of(&r.row, options, greatest);
    if (r.row.max == KILN_INFINITY || filters.top_k > FEW) return KILN_NOWHERE;
    uint64_t bits = kiln_sample_bits(args, number);
    if (!filters.top_k && !filters.least) return filters.top_p == 0.0f ? draw_of_all(&r, shared, bits) : KILN_NOWHERE;
    if (filters.top_k == 1) bound = greatest;
    if (filters.top_k > 1) bound = few_bound(shared, max, greatest, filters.top_k);
    bound = filters.least > bound ? filters.least : bound;
    if (bound == 0 && r.place.cols > FEW) return KILN_NOWHERE;
    uint32_t count = take_few(&r, shared, max, bound);
    if (count > FEW) return KILN_NOWHERE;
    const pool p = {shared->ranks, shared->weights, shared->sums, shared->kept,
                    shared->sum,   &shared->found,  lane(),       KILN_SUBGROUP};
    return draw(&r.row, &p, filters, bits, count, 0);
}

#endif
