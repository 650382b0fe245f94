#include "tests/sim/ptx/matrix/ptx_wgmma.h"
#include "tests/sim/ptx/matrix/ptx_wgmma_run.h"
#include "tests/sim/ptx/warp/ptx_lanes.h"
#include <stdlib.h>
#include <string.h>

/* ---- What a block has in flight ---- */

/* An instruction that all warps of a warpgroup run, and the operands that must be the same. */
typedef struct step {
    const ptx_op *op;
    uint64_t a, b; /* descriptors */
    bool scaled;
} step;

/* The steps of a warpgroup that not all of its warps have come to. */
typedef struct warpgroup {
    step *steps;
    uint32_t count, room;
    uint32_t next[PTX_WARPGROUP]; /* of each warp */
} warpgroup;

/* Bytes of shared memory that products of a group read. */
typedef struct held {
    uint32_t group, granule;
} held;

typedef struct of_warp {
    ptx_wgmma_account account;
    held *held; /* of growing groups */
    uint32_t count, room;
} of_warp;

struct ptx_products {
    of_warp *warps;
    warpgroup *groups;
    uint16_t *readers; /* products in flight that read each granule of shared memory */
};

static void *new_array(size_t count, size_t size) {
    void *array = calloc(count, size);
    if (!array) abort();
    return array;
}

static uint32_t group_count(const ptx_block *block) {
    return (block->warp_count + PTX_WARPGROUP - 1) / PTX_WARPGROUP;
}

static struct ptx_products *products_of(ptx_block *block) {
    if (block->products) return block->products;
    struct ptx_products *all = new_array(1, sizeof *all);
    all->warps = new_array(block->warp_count, sizeof *all->warps);
    all->groups = new_array(group_count(block), sizeof *all->groups);
    all->readers = new_array(block->shared_room / PTX_WGMMA_GRANULE + 1, sizeof *all->readers);
    block->products = all;
    return all;
}

void ptx_wgmma_end(ptx_block *block) {
    struct ptx_products *all = block->products;
    if (!all) return;
    for (uint32_t w = 0; w < block->warp_count; w++)
        free(all->warps[w].held);
    for (uint32_t g = 0; g < group_count(block); g++)
        free(all->groups[g].steps);
    free(all->warps);
    free(all->groups);
    free(all->readers);
    free(all);
    block->products = NULL;
}

static of_warp *own(ptx_warp *warp) {
    return &products_of(warp->block)->warps[warp->number];
}

ptx_wgmma_account *ptx_wgmma_account_of(ptx_warp *warp) {
    return &own(warp)->account;
}

/* Room for one more element. */
static void *grow(void *array, uint32_t count, uint32_t *room, size_t size) {
    if (count < *room) return array;
    *room = *room ? *room * 2 : 64;
    void *grown = realloc(array, *room * size);
    if (!grown) abort();
    return grown;
}

void ptx_wgmma_hold(ptx_warp *warp, uint64_t address) {
    of_warp *mine = own(warp);
    mine->held = grow(mine->held, mine->count, &mine->room, sizeof *mine->held);
    uint32_t granule = (uint32_t)(address / PTX_WGMMA_GRANULE);
    mine->held[mine->count++] = (held){mine->account.committed, granule};
    warp->block->products->readers[granule]++;
}

bool ptx_wgmma_reads(const ptx_block *block, uint64_t address) {
    return block->products && block->products->readers[address / PTX_WGMMA_GRANULE];
}

/* ---- All warps of a warpgroup run the same ---- */

static bool same(const step *x, const step *y) {
    return x->op == y->op && x->a == y->a && x->b == y->b && x->scaled == y->scaled;
}

static void forget_common(warpgroup *group) {
    for (uint32_t w = 0; w < PTX_WARPGROUP; w++)
        if (group->next[w] != group->count) return;
    group->count = 0;
    memset(group->next, 0, sizeof group->next);
}

/* false after a fault: another warp of the warpgroup ran something else in this place. */
static bool agree(ptx_warp *warp, const step *mine) {
    const ptx_block *block = warp->block;
    uint32_t number = warp->number / PTX_WARPGROUP;
    if ((number + 1) * PTX_WARPGROUP > block->warp_count) {
        ptx_fault(warp, mine->op, SIM_FAULT_SYNC, 0, 0, "a warpgroup of %u warps", block->warp_count % PTX_WARPGROUP);
        return false;
    }
    warpgroup *group = &products_of(warp->block)->groups[number];
    uint32_t at = group->next[warp->number % PTX_WARPGROUP]++;
    if (at == group->count) {
        group->steps = grow(group->steps, group->count, &group->room, sizeof *group->steps);
        group->steps[group->count++] = *mine;
    } else if (!same(&group->steps[at], mine)) {
        ptx_fault(warp, mine->op, SIM_FAULT_SYNC, 0, 0, "another warp of the warpgroup came to line %u%s",
                  group->steps[at].op->line, group->steps[at].op == mine->op ? " with other operands" : "");
        return false;
    }
    forget_common(group);
    return true;
}

void ptx_wgmma_check(ptx_block *block) {
    for (uint32_t g = 0; block->products && g < group_count(block); g++) {
        const warpgroup *group = &block->products->groups[g];
        for (uint32_t w = 0; w < PTX_WARPGROUP; w++)
            if (group->next[w] < group->count)
                ptx_fault(&block->warps[g * PTX_WARPGROUP + w], group->steps[group->next[w]].op, SIM_FAULT_SYNC, 0, 0,
                          "this warp of the warpgroup ended without it");
    }
}

void ptx_wgmma_run_together(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    (void)mask;
    agree(warp, &(step){.op = op});
}

/* ---- Groups ---- */

void ptx_wgmma_run_fence(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    (void)mask;
    if (agree(warp, &(step){.op = op})) ptx_wgmma_account_of(warp)->fences++;
}

void ptx_wgmma_run_commit(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    (void)mask;
    if (agree(warp, &(step){.op = op})) ptx_wgmma_account_of(warp)->committed++;
}

/* All committed groups but the last op->count are done. */
void ptx_wgmma_run_wait(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    of_warp *mine = own(warp);
    uint32_t committed = mine->account.committed, over = 0;
    (void)mask;
    if (!agree(warp, &(step){.op = op})) return;
    if (committed > op->count && committed - op->count > mine->account.done) mine->account.done = committed - op->count;
    for (; over < mine->count && mine->held[over].group < mine->account.done; over++)
        warp->block->products->readers[mine->held[over].granule]--;
    mine->count -= over;
    if (over) memmove(mine->held, mine->held + over, mine->count * sizeof *mine->held);
}

/* ---- Products ---- */

/* A source of 64 bits that all lanes have alike. */
static bool same_everywhere(ptx_warp *warp, const ptx_op *op, uint32_t place, uint64_t *out) {
    const uint64_t *values = PTX_ARRAY(uint64_t, place);
    *out = values[0];
    for (uint32_t l = 1; l < PTX_WARP; l++) {
        if (values[l] == values[0]) continue;
        ptx_fault(warp, op, SIM_FAULT_SYNC, l, values[l], "the matrix descriptors of this lane and of lane 0 differ");
        return false;
    }
    return true;
}

static bool find_operands(ptx_warp *warp, const ptx_op *op, step *out) {
    uint32_t scaled = PTX_MASK(op->s[2]);
    *out = (step){.op = op};
    if (!op->product->a_count && !same_everywhere(warp, op, op->s[0], &out->a)) return false;
    if (!same_everywhere(warp, op, op->s[1], &out->b)) return false;
    if (scaled != 0 && scaled != 0xffffffffu) {
        ptx_fault(warp, op, SIM_FAULT_SYNC, 0, scaled, "scale-d is not the same in all lanes");
        return false;
    }
    out->scaled = (scaled != 0) != op->negated[2];
    return true;
}

/* The warp's 16 rows of A from its registers: each has four bytes of a row of 8. */
static void gather(const ptx_warp *warp, const ptx_wgmma *x, ptx_wgmma_line *lines) {
    for (uint32_t r = 0; r < PTX_WGMMA_A; r++) {
        const uint32_t *words = PTX_ARRAY(uint32_t, x->a[r].place);
        for (uint32_t l = 0; l < PTX_WARP; l++)
            memcpy(lines[r % 2 * 8 + l / 4] + r / 2 * 16 + l % 4 * 4, &words[l], sizeof *words);
    }
}

void ptx_wgmma_run_product(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    const ptx_wgmma *x = op->product;
    ptx_wgmma_line a[PTX_WGMMA_ROWS], b[PTX_WGMMA_N];
    step mine;
    (void)mask;
    if (!find_operands(warp, op, &mine) || !agree(warp, &mine) || !ptx_wgmma_take(warp, op)) return;
    warp->block->counters.matrix_instructions++;
    uint32_t first = warp->number % PTX_WARPGROUP * PTX_WGMMA_ROWS;
    if (x->a_count)
        gather(warp, x, a);
    else if (!ptx_wgmma_load(warp, op, mine.a, x->transposed[0], first, PTX_WGMMA_ROWS, a))
        return;
    if (ptx_wgmma_load(warp, op, mine.b, x->transposed[1], 0, x->n, b)) ptx_wgmma_multiply(warp, op, a, b, mine.scaled);
}
