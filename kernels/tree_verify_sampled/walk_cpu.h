/* The functions of walk.h for one thread: for the CPU, and for kiln_tree_verify_sampled of <kiln/tree.h>. */
#ifndef KILN_KERNELS_TREE_VERIFY_SAMPLED_WALK_CPU_H
#define KILN_KERNELS_TREE_VERIFY_SAMPLED_WALK_CPU_H

#include "kernels/common/cpu.h"

#define KILN_LOOP
#include "kernels/tree_verify_sampled/walk.h"

typedef struct cpu_walk {
    kiln_walk walk;
    kiln_cpu_dtype dtype;
} cpu_walk;

KILN_INLINE uint64_t units_at(const void *rows, int64_t stride, const kiln_walk *w, uint32_t token) {
    kiln_cpu_dtype dtype = ((const cpu_walk *)(const void *)w)->dtype;
    uint64_t row = (uint64_t)w->sequence * w->args->nodes + w->node;
    return kiln_units(kiln_element_load(kiln_at(rows, row * (uint64_t)stride + token, dtype), dtype));
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
    for (uint32_t i = after + 1; i < w->args->nodes; i++)
        if (kiln_walk_is_child(w, i)) return i;
    return 0;
}

KILN_INLINE uint64_t kiln_walk_sum(const kiln_walk *w, const kiln_residual *r, kiln_walk_tokens tokens) {
    uint64_t sum = 0;
    for (uint32_t token = tokens.begin; token < tokens.end; token++)
        sum += remaining(w, r, token);
    return sum;
}

KILN_INLINE bool kiln_walk_find(const kiln_walk *w, const kiln_residual *r, kiln_walk_tokens *tokens, uint64_t *rest) {
    for (uint64_t units; *rest >= (units = remaining(w, r, tokens->begin)); tokens->begin++)
        *rest -= units;
    return true;
}

KILN_INLINE void kiln_walk_take(const kiln_walk *w, kiln_residual *r, uint32_t taken) {
    (void)w;
    r->taken[r->count++] = taken;
}

KILN_INLINE void kiln_walk_put(const kiln_walk *w, uint32_t level, uint32_t node) {
    w->args->path[(uint64_t)w->sequence * w->args->depth + level] = (int32_t)node;
}

/* Verifies a sequence. taken has room for a word for each node. */
KILN_INLINE void verify_sequence(const kiln_tree_verify_sampled_args *args, uint32_t sequence, kiln_cpu_dtype dtype,
                                 uint32_t *taken) {
    cpu_walk w = {kiln_walk_of(args, sequence), dtype};
    uint32_t accepted = kiln_walk_down(&w.walk, taken, &args->next[sequence]);
    for (uint32_t i = accepted; i < args->depth; i++)
        args->path[(uint64_t)sequence * args->depth + i] = -1;
    args->accepted[sequence] = (int32_t)accepted;
}

#endif
