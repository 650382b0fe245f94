/* tree_verify_sampled: the nodes of a draft tree that sampling accepts, and the token after the last of them; walk.h
 * has the procedure, and residual.h the reason why the tokens are distributed as the model's own.
 *
 * A block processes a sequence. Its threads go down the tree together: of a child they read two probabilities, and its
 * rows only if it is rejected, to sum what remains of the distribution; that is done for one rejected sibling after the
 * other, and once at the end for the token that is drawn. Each thread has four tokens of a row in flight, of the
 * model's and of the draft's. To find the token, each thread sums a 256th of the range that is left, and the share in
 * which the token lies is the next range. Sums are of integers and do not depend on the order of the threads.
 *
 * Floor: two reads of the last accepted node's rows, the second from a cache, and one more for each rejected sibling,
 * by a single block; a step down the tree takes as long as a few reads from memory. Not measured.
 * Test: build/tests/ops/tree_verify_sampled_test. Bench: build/kiln bench tree_verify_sampled */
#include "kernels/common/atomic.h"
#include "kernels/common/combine.h"
#include "kernels/common/global.h"
#include "kernels/common/late_args.h"
#include "kernels/tree_verify_sampled/walk.h"

#define NOTHING 0xffffffffu

enum { TOKENS = 4 /* per thread at a time */ };

typedef struct exchange {
    uint64_t threads[KILN_BLOCK];
    uint64_t subgroups[KILN_SUBGROUPS];
    uint32_t taken[KILN_TREE_VERIFY_NODES];
    uint32_t first;
} exchange;

/* A walk, and the shared memory of its block. */
typedef struct block_walk {
    kiln_walk walk;
    exchange *shared;
} block_walk;

KILN_INLINE exchange *shared_of(const kiln_walk *w) {
    return ((const block_walk *)(const void *)w)->shared;
}

KILN_INLINE uint64_t units_at(const void *rows, int64_t stride, const kiln_walk *w, uint32_t token) {
    uint64_t row = (uint64_t)w->sequence * w->args->nodes + w->node;
    return kiln_units(kiln_element_to_f32(KILN_GLOBAL(const kiln_element, rows)[row * (uint64_t)stride + token]));
}

KILN_INLINE uint64_t kiln_walk_target(const kiln_walk *w, uint32_t token) {
    return units_at(w->args->target, w->args->target_stride, w, token);
}

KILN_INLINE uint64_t kiln_walk_draft(const kiln_walk *w, uint32_t token) {
    return units_at(w->args->draft, w->args->draft_stride, w, token);
}

KILN_INLINE uint64_t remaining(const kiln_walk *w, const kiln_residual *r, uint32_t token) {
    uint64_t q = r->drawn && r->count ? kiln_walk_draft(w, token) : 0;
    return kiln_residual_units(r, token, kiln_walk_target(w, token), q);
}

KILN_INLINE uint32_t kiln_walk_child(const kiln_walk *w, uint32_t after) {
    exchange *shared = shared_of(w);
    uint32_t mine = NOTHING;
    KILN_LOOP
    for (uint32_t i = after + 1 + kiln_thread(); i < w->args->nodes && mine == NOTHING; i += KILN_BLOCK)
        mine = kiln_walk_is_child(w, i) ? i : NOTHING;
    kiln_barrier(); /* all threads have read the previous value */
    if (kiln_thread() == 0) shared->first = NOTHING;
    kiln_barrier();
    if (mine != NOTHING) kiln_shared_min(&shared->first, mine);
    kiln_barrier();
    return shared->first == NOTHING ? 0 : shared->first;
}

KILN_INLINE uint64_t kiln_walk_sum(const kiln_walk *w, const kiln_residual *r) {
    uint64_t sum = 0;
    uint32_t count = w->args->vocabulary;
    KILN_LOOP
    for (uint32_t first = kiln_thread(); first < count; first += TOKENS * KILN_BLOCK) {
        KILN_UNROLL
        for (uint32_t i = 0; i < TOKENS; i++) {
            uint32_t token = first + i * KILN_BLOCK;
            if (token < count) sum += remaining(w, r, token);
        }
    }
    return kiln_combine_64(shared_of(w)->subgroups, sum, KILN_REDUCE_SUM);
}

/* Skips leading shares as long as they have no more than *rest together, but never the last share. What they have is
 * subtracted from *rest. Returns the number of the share that follows. */
KILN_INLINE uint32_t skip(const uint64_t *shares, uint32_t count, uint64_t *rest) {
    uint32_t found = 0;
    KILN_LOOP
    while (found < count - 1 && *rest >= shares[found])
        *rest -= shares[found++];
    return found;
}

KILN_INLINE uint32_t kiln_walk_find(const kiln_walk *w, const kiln_residual *r, uint64_t rest) {
    exchange *shared = shared_of(w);
    uint32_t begin = 0, end = w->args->vocabulary;
    KILN_LOOP
    while (end - begin > 1) {
        uint32_t share = (end - begin + KILN_BLOCK - 1) / KILN_BLOCK, first = begin + kiln_thread() * share;
        uint32_t last = first + share < end ? first + share : end;
        uint64_t sum = 0;
        KILN_LOOP
        for (uint32_t token = first; token < last; token++)
            sum += remaining(w, r, token);
        kiln_barrier(); /* the last values have been read by all */
        shared->threads[kiln_thread()] = sum;
        kiln_combine_64(shared->subgroups, sum, KILN_REDUCE_SUM);
        uint32_t found = skip(shared->subgroups, KILN_SUBGROUPS, &rest) * KILN_SUBGROUP;
        found += skip(shared->threads + found, KILN_SUBGROUP, &rest);
        begin += found * share;
        end = begin + share < end ? begin + share : end;
    }
    return begin;
}

KILN_INLINE void kiln_walk_take(const kiln_walk *w, kiln_residual *r, uint32_t taken) {
    (void)w;
    kiln_barrier(); /* all threads have read what was taken before */
    if (kiln_thread() == 0) r->taken[r->count] = taken;
    kiln_barrier();
    r->count++;
}

KILN_INLINE void kiln_walk_put(const kiln_walk *w, uint32_t level, uint32_t node) {
    if (kiln_thread() == 0)
        KILN_GLOBAL(int32_t, w->args->path)[(uint64_t)w->sequence * w->args->depth + level] = (int32_t)node;
}

KILN_ENTRY(tree_verify_sampled, kiln_tree_verify_sampled_args) {
    KILN_SHARED exchange shared;
    uint64_t sequence = kiln_block();
    if (sequence >= (uint64_t)args.batch) return; /* the whole block */
    block_walk block = {kiln_walk_of(&args, (uint32_t)sequence), &shared};
    block.walk.args = KILN_LATE_ARGS(kiln_tree_verify_sampled_args, args);
    int32_t next;
    uint32_t accepted = kiln_walk_down(&block.walk, shared.taken, &next);
    KILN_LOOP
    for (uint32_t i = accepted + kiln_thread(); i < args.depth; i += KILN_BLOCK)
        args.path[sequence * args.depth + i] = -1;
    if (kiln_thread() != 0) return;
    args.accepted[sequence] = (int32_t)accepted;
    args.next[sequence] = next;
}
