/* top_k: the k greatest elements of each row, the greatest first, with their columns; of equal elements the lower
 * column comes first, and NaN counts as greater than all.
 *
 * A block chooses from a chunk of a row, or each of its subgroups from a short row. The first pass finds the greatest
 * element of each thread's share: as many shares as elements are wanted have one that reaches a bound, so no element
 * below it is among the greatest; and those that reach it are hardly more than that, since few shares have two of them.
 * Only the shares that have one are read again, for these candidates (few_gpu.h). Where they are too many, as with many
 * equal elements, or k is large, the block finds the k-th greatest digit by digit instead (radix_gpu.h). The candidates
 * are put in order by rank: key and column as one number, no two of which are equal (total_order.h). So the result
 * depends neither on the order of threads nor on how a row is divided.
 *
 * Rows of more than a chunk take several launches: each leaves k candidates of each chunk in the workspace, until those
 * of a row are one chunk. With 128256 columns and k up to 1024 these are two launches. Where there are many rows,
 * chunks are longer, up to a whole row; subgroups choose from few candidates.
 *
 * Floor: one read of the tensor at memory bandwidth; docs/kernel-report.md has the instruction counts. In 16 bits on
 * sm_100 they take 0.61 to 0.68 of the memory's time (predicted): a comparison takes two elements, but a thread's 60
 * elements share the search for the bound and for the candidates. Not measured: an
 * H100 took 39.3 us for the 8 greatest of 1024 rows of 32768 bf16 in two launches with a block each for the candidates;
 * copies move as many bytes in 24 us.
 * Test: build/tests/ops/top_k_test. Bench: build/kiln bench top_k */
#include "kernels/common/global.h"
#include "kernels/top_k/few_gpu.h"
#include "kernels/top_k/radix_gpu.h"

/* ---- The result ---- */

/* Writes what is chosen with the rank that `place` others exceed. */
KILN_INLINE void put(const kiln_top_k_args *args, uint32_t row, uint32_t place, uint64_t rank) {
    uint32_t col = kiln_rank_place(rank);
    if (args->to) {
        kiln_top_k_candidate *to = KILN_GLOBAL(kiln_top_k_candidate, args->to);
        to[(uint64_t)row * args->to_count + (uint64_t)kiln_tile() * args->k + place] =
            (kiln_top_k_candidate){kiln_rank_key(rank), col};
        return;
    }
    uint64_t at = (uint64_t)row * args->k + place;
    int32_t *indices = KILN_GLOBAL(int32_t, args->indices);
    kiln_element *values = KILN_GLOBAL(kiln_element, args->values);
    const kiln_element *x = KILN_GLOBAL(const kiln_element, args->x);
    indices[at] = (int32_t)col;
    if (values) values[at] = x[row * (uint64_t)args->x_stride + col];
}

/* Writes those of the candidates that are chosen. Few of them are each compared with all others; a block sorts many. */
KILN_INLINE void put_greatest(const part *p, const team *t, uint32_t count) {
    bool many = count > KILN_BLOCK;
    if (many)
        kiln_rank_sort(own_ranks(t), count);
    else if (own_thread(t) < AHEAD)
        own_ranks(t)[count + own_thread(t)] = 0;
    team_sync(t);
    KILN_LOOP
    for (uint32_t own = own_thread(t); own < count; own += t->threads) {
        uint64_t rank = own_ranks(t)[own];
        uint32_t place = many ? own : 0;
        KILN_LOOP
        for (uint32_t i = 0; i < count && !many; i += AHEAD) {
            KILN_UNROLL
            for (uint32_t j = 0; j < AHEAD; j++)
                place += own_ranks(t)[i + j] > rank ? 1 : 0;
        }
        if (place < wanted_of(p)) put(p->args, t->row, place, rank);
    }
}

KILN_ENTRY(top_k, kiln_top_k_args) {
    KILN_SHARED exchange shared;
    uint32_t lanes_log2 = args.shape.lanes_log2;
    uint32_t first = (uint32_t)(kiln_block() << (KILN_BLOCK_LOG2 - lanes_log2)), rows = (uint32_t)args.shape.rows;
    if (first >= rows) return; /* the whole block */
    if (kiln_thread() == 0) shared.left = 0;
    kiln_barrier();
    team t = team_of(&shared, lanes_log2, first);
    KILN_LOOP
    for (;;) { /* once for the rows of the teams, and once for each row that a subgroup leaves to the block */
        if (t.row < rows) {
            part p = part_of(&args, &t);
            uint32_t count = take_few(&p, &t);
            if (count > own_room(&t) && t.threads == KILN_BLOCK) {
                count = wanted_of(&p);
                take_greatest(&p, &shared, count);
            }
            if (count <= own_room(&t))
                put_greatest(&p, &t, count);
            else if (own_thread(&t) == 0)
                kiln_shared_add(&shared.left, 1u << (t.row - first));
        }
        kiln_barrier();
        uint32_t left = shared.left;
        kiln_barrier(); /* it has been read by all */
        if (!left) return;
        if (kiln_thread() == 0) shared.left = left & (left - 1);
        t = team_of(&shared, KILN_BLOCK_LOG2, first + (31 - (uint32_t)__builtin_clz(left & (0 - left))));
    }
}
