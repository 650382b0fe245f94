/* tree_verify_sampled: the nodes of a draft tree that sampling accepts, and the token after the last of them; walk.h
 * has the procedure, and residual.h the reason why the tokens are distributed as the model's own.
 *
 * A block processes a sequence. Its threads go down the tree together: of a child they read two probabilities, and its
 * rows only if it is rejected, to sum what remains of the distribution; that is done for one rejected sibling after the
 * other, and once at the end for the token that is drawn, if no sibling was rejected last. Each subgroup sums a share
 * of the row (shares_gpu.h), so that the token is looked for in one share alone: that is divided among the subgroups
 * again until it is short, and then among the threads of one subgroup. Sums are of integers and do not depend on the
 * order of the threads.
 *
 * Floor: one read of the last accepted node's rows, and one more for each rejected sibling but the last, by a single
 * block; a step down the tree takes as long as a few reads from memory. Not measured. Instructions take longer than 0.6
 * of the memory's time on sm_80, sm_90, sm_100, gfx9 and, in bf16, gfx10.1 (0.6 to 1.2; predicted): what remains of a
 * token is a difference of two numbers, as an integer, and 14 to 20 instructions; the block waits for memory anyway.
 * Test: build/tests/ops/tree_verify_sampled_test. Bench: build/kiln bench tree_verify_sampled */
#include "kernels/common/late_args.h"
#include "kernels/tree_verify_sampled/shares_gpu.h"

#define NOTHING 0xffffffffu

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

/* How tokens are divided: among the subgroups, or among the threads of one if they are a short part of the row. */
KILN_INLINE division divide_tokens(const kiln_walk *w, kiln_walk_tokens tokens) {
    bool few = !tokens.whole && tokens.end - tokens.begin <= FEW;
    return divide(w, tokens.begin, tokens.end, few ? KILN_SUBGROUP_LOG2 : SUBGROUPS_LOG2);
}

/* Of a short part the other subgroups wait for the token. */
KILN_INLINE uint64_t kiln_walk_sum(const kiln_walk *w, const kiln_residual *r, kiln_walk_tokens tokens) {
    exchange *shared = shared_of(w);
    division d = divide_tokens(w, tokens);
    bool few = d.shares == KILN_SUBGROUP;
    if (few && subgroup() != 0) return 1;
    uint64_t own = share_sum(w, r, &d, few ? lane() : subgroup(), few ? 0 : lane(), few ? 1 : KILN_SUBGROUP);
    if (few) {
        shared->threads[lane()] = own;
        return 1;
    }
    own = kiln_combine_64(shared->subgroups, own, KILN_REDUCE_SUM);
    return tokens.whole ? own : 1;
}

/* The sum of the values of the subgroup's threads before this one. */
KILN_INLINE uint64_t subgroup_before(uint64_t value, uint64_t *all) {
    uint64_t before = 0;
    KILN_LOOP
    for (uint32_t mask = 1; mask < KILN_SUBGROUP; mask *= 2) {
        uint64_t other = kiln_shuffle_xor_64(value, mask);
        before += lane() & mask ? other : 0;
        value += other;
    }
    *all = value;
    return before;
}

KILN_INLINE void subgroup_sync(void) {
#if defined(__CUDACC__)
    __syncwarp();
#else
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
    __builtin_amdgcn_wave_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
#endif
}

/* Which of the subgroup's threads has the share in which *rest units are exceeded, and what of them is left there; or
 * NOTHING, and what is left beyond the last. */
KILN_INLINE uint32_t find_thread(exchange *shared, uint64_t own, uint64_t *rest) {
    uint64_t all, before = subgroup_before(own, &all);
    if (*rest >= all) {
        *rest -= all;
        return NOTHING;
    }
    subgroup_sync(); /* the last values have been read by all */
    if (before <= *rest && *rest < before + own) {
        shared->found = lane();
        shared->rest = *rest - before;
    }
    subgroup_sync();
    *rest = shared->rest;
    return shared->found;
}

/* The token in [begin, end): found by one subgroup. */
KILN_INLINE uint32_t find_token(const kiln_walk *w, const kiln_residual *r, uint32_t begin, uint32_t end,
                                uint64_t rest) {
    KILN_LOOP
    for (uint32_t token = begin;; token += KILN_SUBGROUP) {
        uint64_t own = token + lane() < end ? remaining(w, r, token + lane()) : 0;
        uint32_t found = find_thread(shared_of(w), own, &rest);
        if (found != NOTHING) return token + found;
    }
}

KILN_INLINE bool kiln_walk_find(const kiln_walk *w, const kiln_residual *r, kiln_walk_tokens *tokens, uint64_t *rest) {
    exchange *shared = shared_of(w);
    division d = divide_tokens(w, *tokens);
    if (d.shares == KILN_SUBGROUPS) {
        uint32_t share = 0;
        KILN_LOOP
        while (share < KILN_SUBGROUPS - 1 && *rest >= shared->subgroups[share])
            *rest -= shared->subgroups[share++];
        *tokens = (kiln_walk_tokens){share_begin(&d, share), share_begin(&d, share + 1), false};
        return false;
    }
    if (subgroup() == 0) {
        uint32_t share = find_thread(shared, shared->threads[lane()], rest);
        uint32_t token = find_token(w, r, share_begin(&d, share), share_begin(&d, share + 1), *rest);
        subgroup_sync();
        if (lane() == 0) shared->found = token;
    }
    kiln_barrier();
    tokens->begin = shared->found;
    return true;
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
