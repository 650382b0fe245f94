/* A launch: its blocks, over the host's threads. One runs to its end unless it seems to wait for another; then it gives
 * way. No more have begun and not ended than the device has room for. The order is the seed's, within windows of so
 * many blocks: hardware begins them in about the order of their numbers, and scans that look back rely on it. The
 * blocks of a cooperative launch all begin, and take turns. The blocks of a cluster begin together and take turns, as a
 * team; a block without one is a team by itself. */
#include "tests/sim/ptx/matrix/ptx_wgmma_run.h"
#include "tests/sim/ptx/memory/ptx_bulk.h"
#include "tests/sim/ptx/memory/ptx_landing.h"
#include "tests/sim/ptx/memory/ptx_overlap.h"
#include "tests/sim/ptx/memory/ptx_shared.h"
#include "tests/sim/ptx/warp/ptx_cluster.h"
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

typedef struct run {
    const ptx_launch *launch;
    uint32_t each; /* blocks of a team */
    uint64_t teams;
    uint64_t next;  /* atomic: the next team to take */
    uint64_t begun; /* atomic: teams that have begun and not ended */
    uint64_t room;  /* for so many of them */
    bool stopped;   /* atomic: a block failed */
    uint64_t moves; /* turns in which a team did more than to ask, or ended */
    uint64_t waits; /* teams that have asked long enough since the last of them */
    pthread_mutex_t lock;
    sim_counters *counters;
    sim_report *report; /* the first block's that failed */
} run;

static uint64_t gcd(uint64_t a, uint64_t b) {
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The number of the team that is taken as the i-th: within each window of as many as there is room for, the order is
 * first + i * stride, with a stride coprime to the window. */
static uint64_t team_number(const run *shared, uint64_t i) {
    uint64_t window = i / shared->room, random = shared->launch->seed ^ window,
             left = shared->teams - window * shared->room;
    uint64_t size = left < shared->room ? left : shared->room;
    uint64_t first = sim_random(&random) % size, stride = sim_random(&random) % size;
    while (stride == 0 || gcd(stride, size) != 1)
        stride++;
    return window * shared->room + (first + i % shared->room * stride) % size;
}

static void add_counters(sim_counters *sum, const sim_counters *one) {
    uint64_t *to = (uint64_t *)(void *)sum;
    const uint64_t *from = (const uint64_t *)(const void *)one;
    for (size_t i = 0; i < sizeof *sum / sizeof *to; i++)
        to[i] += from[i];
}

static void block_prepare(ptx_block *block, const ptx_launch *launch, ptx_cluster *cluster) {
    uint32_t threads = launch->block[0] * launch->block[1] * launch->block[2];
    uint32_t align = launch->program->shared_align, fixed = (launch->code->shared_bytes + align - 1) / align * align;
    *block = (ptx_block){.launch = launch, .thread_count = threads, .cluster = cluster};
    block->warp_count = (threads + PTX_WARP - 1) / PTX_WARP;
    block->known_count = block->warp_count * (cluster ? cluster->count : 1);
    block->dynamic_offset = fixed;
    block->shared_bytes = fixed + launch->dynamic_shared_bytes;
    block->warps = calloc(block->warp_count, sizeof *block->warps);
    block->shared_room = block->shared_bytes;
    if (launch->program->uses_reserved) block->shared_room = ptx_shared_total(block) + launch->reserved_shared_bytes;
    block->shared = malloc(block->shared_room + 1);
    block->shadow = malloc((ptx_shadow_count(block) + 1) * sizeof *block->shadow);
    block->shadow_starts = calloc(ptx_shadow_chunks(block), sizeof *block->shadow_starts);
    if (!block->warps || !block->shared || !block->shadow || !block->shadow_starts) abort();
    if (launch->program->uses_flags || cluster) ptx_flag_prepare(block);
}

static void block_free(ptx_block *block) {
    ptx_flag_end(block);
    for (uint32_t w = 0; block->warps && w < block->warp_count; w++) {
        ptx_local_end(&block->warps[w]);
        free(block->warps[w].copies);
    }
    ptx_landing_free(block);
    ptx_bulk_free(block);
    free(block->warps);
    free(block->shared);
    free(block->shadow);
    free(block->shadow_starts);
}

/* The blocks of a team, prepared to be started any number of times. */
static ptx_block *team_new(const run *shared) {
    const uint32_t count = shared->each;
    ptx_cluster *cluster = NULL;
    ptx_block *blocks = malloc(count * sizeof *blocks);
    if (count > 1) cluster = calloc(1, sizeof *cluster);
    if (!blocks || (count > 1 && !cluster)) abort();
    if (cluster) *cluster = (ptx_cluster){.blocks = blocks, .count = count};
    for (uint32_t i = 0; i < count; i++)
        block_prepare(&blocks[i], shared->launch, cluster);
    if (!cluster) return blocks;
    cluster->given = ptx_flag_known(blocks);
    cluster->known = ptx_flag_known(blocks);
    cluster->reading = ptx_flag_known(blocks);
    cluster->read = ptx_flag_known(blocks);
    return blocks;
}

static void team_free(const run *shared, ptx_block *blocks) {
    ptx_cluster *cluster = blocks ? blocks->cluster : NULL;
    for (uint32_t i = 0; blocks && i < shared->each; i++)
        block_free(&blocks[i]);
    if (cluster) {
        free(cluster->given);
        free(cluster->known);
        free(cluster->reading);
        free(cluster->read);
    }
    free(cluster);
    free(blocks);
}

/* Where in the grid the block of a rank in the cluster of a number is. */
static void place_block(ptx_block *block, uint64_t number, uint32_t rank) {
    const ptx_launch *launch = block->launch;
    for (int i = 0; i < 3; i++) {
        const uint32_t size = launch->cluster[i] ? launch->cluster[i] : 1, count = launch->grid[i] / size;
        block->id[i] = (uint32_t)(number % count) * size + rank % size;
        number /= count;
        rank /= size;
    }
}

static void block_start(ptx_block *block, uint64_t number, uint32_t rank, sim_report *report) {
    const ptx_launch *launch = block->launch;
    const uint32_t count = block->cluster ? block->cluster->count : 1;
    place_block(block, number, rank);
    block->rank = rank;
    block->ended = false;
    block->epoch = 1;
    ptx_flag_start(block);
    block->random = launch->seed ^ (number * count + rank + 1) * 0x9e3779b97f4a7c15u;
    block->instructions = 0;
    block->report = report;
    *report = (sim_report){.kind = SIM_FAULT_NONE};
    block->copies_in_flight = 0;
    ptx_landing_clear(block);
    ptx_bulk_clear(block);
    block->triggered = false;
    block->moves = 0;
    block->asked = 0;
    block->polls = 0;
    block->moved = false;
    ptx_registers_start(block);
    memset(block->arrived, 0, sizeof block->arrived);
    memset(block->shared, 0xb5, block->shared_room);
    block->starts++;
    for (uint32_t w = 0; w < block->warp_count; w++) {
        ptx_warp *warp = &block->warps[w];
        uint32_t left = block->thread_count - w * PTX_WARP;
        warp->block = block;
        warp->number = w;
        warp->place = rank * block->warp_count + w;
        warp->arrived = warp->passed = 0;
        warp->lanes = left >= PTX_WARP ? 0xffffffffu : (1u << left) - 1;
        warp->moment = 0;
        warp->synced = 0;
        warp->waited = 0;
        warp->unasked = 0;
        warp->unwritten = 0;
        warp->copy_count = 0;
        memset(warp->committed, 0, sizeof warp->committed);
        memset(warp->bulk_committed, 0, sizeof warp->bulk_committed);
        memset(warp->proxied, 0, sizeof warp->proxied);
        ptx_warp_start(warp);
    }
}

/* Nothing can run and no barrier can go: says what is waited for. */
static void report_stuck(ptx_block *block) {
    if (ptx_registers_report(block)) return;
    for (uint32_t w = 0; w < block->warp_count; w++) {
        ptx_warp *warp = &block->warps[w];
        for (uint32_t g = 0; g < warp->group_count; g++) {
            const ptx_group *group = &warp->groups[g];
            const ptx_op *op = &group->frame->code->ops[group->op];
            bool barrier = group->state == PTX_AT_BARRIER || group->state == PTX_AT_CLUSTER;
            ptx_fault(warp, op, barrier ? SIM_FAULT_BARRIER : SIM_FAULT_SYNC, (uint32_t)__builtin_ctz(group->mask), 0,
                      "lanes 0x%x wait for ever", group->mask);
            return;
        }
    }
}

/* An endless loop: names an instruction of it. */
static void report_endless(ptx_block *block, uint64_t count, const char *of) {
    ptx_warp *warp = &block->warps[0];
    if (ptx_registers_report(block)) return;
    for (uint32_t w = 0; w < block->warp_count; w++)
        if (block->warps[w].group_count) warp = &block->warps[w];
    const ptx_group *group = &warp->groups[0];
    ptx_fault(warp, &group->frame->code->ops[group->op], SIM_FAULT_ENDLESS, (uint32_t)__builtin_ctz(group->mask), 0,
              "%llu %s", (unsigned long long)count, of);
}

typedef enum step { STEP_ENDED, STEP_WAITS, STEP_MOVED } step;

/* Each warp has a turn. STEP_ENDED: with a fault or without; STEP_WAITS: nothing of it can run. */
static step block_step(ptx_block *block) {
    enum { QUANTUM = 256 };
    uint64_t budget = block->launch->budget;
    const uint32_t polls = block->polls;
    bool any = false, left = false;
    uint32_t first = (uint32_t)(sim_random(&block->random) % block->warp_count);
    for (uint32_t i = 0; i < block->warp_count; i++) {
        ptx_warp *warp = &block->warps[(first + i) % block->warp_count];
        any |= ptx_warp_run(warp, 1 + (uint32_t)(sim_random(&block->random) % QUANTUM));
        left |= warp->group_count != 0;
        if (block->report->kind != SIM_FAULT_NONE) return STEP_ENDED;
    }
    if (!left) {
        ptx_wgmma_check(block);
        ptx_bulk_check(block);
        block->ended = true;
        return STEP_ENDED;
    }
    if (block->instructions > budget) {
        report_endless(block, budget, "instructions of warps in one block");
        return STEP_ENDED;
    }
    const bool clusters = block->launch->program->uses_clusters && ptx_cluster_release(block);
    const bool registers = block->launch->program->uses_registers && ptx_registers_release(block);
    /* Warps that ask may wait for what others do behind a barrier of theirs. */
    const bool asked = block->polls != polls;
    const bool barriers = ((!any && !clusters && !registers) || asked) && ptx_barriers_release(block);
    if (!any && !clusters && !registers && !barriers) return STEP_WAITS;
    return block->report->kind == SIM_FAULT_NONE ? STEP_MOVED : STEP_ENDED;
}

/* Each block of a team has a turn. false when all have ended, or one with a fault. */
static bool team_step(ptx_block *blocks, uint32_t count) {
    bool any = false;
    ptx_block *waits = NULL;
    for (uint32_t i = 0; i < count; i++) {
        ptx_block *block = &blocks[i];
        if (block->ended) continue;
        const step did = block_step(block);
        if (block->report->kind != SIM_FAULT_NONE) return false;
        any |= did == STEP_MOVED || (did == STEP_ENDED && count > 1);
        if (did == STEP_WAITS) waits = block;
    }
    if (waits && !any) report_stuck(waits);
    return any && blocks->report->kind == SIM_FAULT_NONE;
}

static void block_end(ptx_block *block) {
    bool waited = false;
    for (uint32_t w = 0; w < block->warp_count; w++) {
        waited |= block->warps[w].waited != 0;
        ptx_warp_end(&block->warps[w]);
    }
    ptx_wgmma_end(block);
    if (waited && !block->triggered && block->launch->writes) ptx_writes_waited(block->launch->writes);
}

static void team_start(const run *shared, ptx_block *blocks, uint64_t number, sim_report *report) {
    if (blocks->cluster) ptx_cluster_start(blocks->cluster);
    for (uint32_t i = 0; i < shared->each; i++)
        block_start(&blocks[i], number, i, report);
}

/* Adds what the blocks of a team counted. */
static void team_end(run *shared, ptx_block *blocks) {
    for (uint32_t i = 0; i < shared->each; i++) {
        block_end(&blocks[i]);
        add_counters(shared->counters, &blocks[i].counters);
        blocks[i].counters = (sim_counters){0};
    }
}

/* The teams that a thread of the host has, by their first blocks. */
typedef struct share {
    run *shared;
    ptx_block *first, *last; /* that have begun and wait for their turn */
    ptx_block *spare;
    sim_report report;
} share;

/* Begins another team, while there is one and room for it; NULL if not. */
static ptx_block *begin_next(share *own) {
    run *shared = own->shared;
    uint64_t taken = shared->teams;
    if (__atomic_fetch_add(&shared->begun, 1, __ATOMIC_RELAXED) < shared->room)
        taken = __atomic_fetch_add(&shared->next, 1, __ATOMIC_RELAXED);
    if (taken >= shared->teams) {
        __atomic_fetch_sub(&shared->begun, 1, __ATOMIC_RELAXED);
        return NULL;
    }
    ptx_block *blocks = own->spare ? own->spare : team_new(shared);
    own->spare = NULL;
    team_start(shared, blocks, team_number(shared, taken), &own->report);
    return blocks;
}

static void push(share *own, ptx_block *block) {
    block->behind = NULL;
    if (own->first)
        own->last->behind = block;
    else
        own->first = block;
    own->last = block;
}

static ptx_block *pop(share *own) {
    ptx_block *block = own->first;
    if (block) own->first = block->behind;
    return block;
}

/* Ends a team, and keeps one for the next. */
static void retire(share *own, ptx_block *blocks) {
    pthread_mutex_lock(&own->shared->lock);
    team_end(own->shared, blocks);
    own->shared->moves++;
    own->shared->waits = 0;
    pthread_mutex_unlock(&own->shared->lock);
    __atomic_fetch_sub(&own->shared->begun, 1, __ATOMIC_RELAXED);
    if (own->spare)
        team_free(own->shared, blocks);
    else
        own->spare = blocks;
}

/* How often the blocks of a team asked in this turn. */
static uint64_t team_polls(const ptx_block *blocks, uint32_t count) {
    uint64_t polls = 0;
    for (uint32_t i = 0; i < count; i++)
        polls += blocks[i].polls;
    return polls;
}

/* Runs a team until it has ended, or has asked so often for what another may write that it seems to wait. */
static bool take_turn(ptx_block *blocks, uint32_t count) {
    enum { PATIENCE = 256 };
    for (uint32_t i = 0; i < count; i++)
        blocks[i].polls = 0;
    bool runs = true;
    while (runs && team_polls(blocks, count) < PATIENCE)
        runs = team_step(blocks, count);
    return runs;
}

/* Reports teams that wait for each other in vain: all that have begun have asked so often since one of them last did
 * something else, and no other can begin. */
static void judge_wait(run *shared, ptx_block *block) {
    uint64_t enough = shared->launch->budget / 1024;
    if (shared->launch->host_writes) return;
    const uint64_t polls = team_polls(block, shared->each);
    bool moved = false;
    for (uint32_t i = 0; i < shared->each; i++)
        moved |= ptx_wait_moved(&block[i]);
    pthread_mutex_lock(&shared->lock);
    if (moved) {
        shared->moves++;
        shared->waits = 0;
    } else if (block->moves != shared->moves) {
        block->moves = shared->moves;
        block->asked = 0;
    } else {
        shared->waits += block->asked < enough && block->asked + polls >= enough;
        block->asked += polls;
    }
    uint64_t begun = __atomic_load_n(&shared->begun, __ATOMIC_RELAXED);
    bool all = begun == shared->room || __atomic_load_n(&shared->next, __ATOMIC_RELAXED) >= shared->teams;
    bool vain = all && shared->waits == begun;
    pthread_mutex_unlock(&shared->lock);
    while (vain && block->ended)
        block++;
    if (vain) report_endless(block, enough, "times each block has asked in vain for what another is to write");
}

static void *worker(void *context) {
    share own = {.shared = context, .report = {.kind = SIM_FAULT_NONE}};
    run *shared = context;
    while (!__atomic_load_n(&shared->stopped, __ATOMIC_RELAXED)) {
        ptx_block *block = begin_next(&own);
        if (!block) block = pop(&own);
        if (!block) break;
        if (take_turn(block, shared->each)) {
            judge_wait(shared, block);
            push(&own, block);
            sched_yield(); /* what it waits for may be another thread's */
        } else {
            retire(&own, block);
        }
        if (own.report.kind != SIM_FAULT_NONE) __atomic_store_n(&shared->stopped, true, __ATOMIC_RELAXED);
    }
    for (ptx_block *block; (block = pop(&own));)
        retire(&own, block);
    pthread_mutex_lock(&shared->lock);
    if (own.report.kind != SIM_FAULT_NONE && shared->report->kind == SIM_FAULT_NONE) *shared->report = own.report;
    pthread_mutex_unlock(&shared->lock);
    team_free(shared, own.spare);
    ptx_frames_free();
    return NULL;
}

/* All blocks take turns, so that they can wait for each other. */
static void run_together(run *shared) {
    enum { TURN = 256 };
    ptx_block **teams = calloc(shared->teams, sizeof *teams);
    bool *runs = calloc(shared->teams, sizeof *runs);
    if (!teams || !runs) abort();
    for (uint64_t i = 0; i < shared->teams; i++) {
        teams[i] = team_new(shared);
        team_start(shared, teams[i], team_number(shared, i), shared->report);
        runs[i] = true;
    }
    shared->next = shared->begun = shared->teams;
    for (uint64_t round = 1; shared->begun && shared->report->kind == SIM_FAULT_NONE; round++) {
        for (uint64_t i = 0; i < shared->teams && shared->report->kind == SIM_FAULT_NONE; i++) {
            if (!runs[i]) continue;
            runs[i] = team_step(teams[i], shared->each);
            if (!runs[i]) {
                shared->begun--;
                shared->moves++;
                shared->waits = 0;
            } else if (round % TURN == 0) {
                judge_wait(shared, teams[i]);
                for (uint32_t b = 0; b < shared->each; b++)
                    teams[i][b].polls = 0;
            }
        }
    }
    for (uint64_t i = 0; i < shared->teams; i++) {
        team_end(shared, teams[i]);
        team_free(shared, teams[i]);
    }
    free(teams);
    free(runs);
    ptx_frames_free();
}

/* The launch with the cluster that its kernel asks for. */
static ptx_launch with_cluster(const ptx_launch *launch) {
    ptx_launch whole = *launch;
    if (!whole.cluster[0]) memcpy(whole.cluster, launch->code->function->cluster, sizeof whole.cluster);
    return whole;
}

bool ptx_launch_run(const ptx_launch *asked, sim_counters *counters, sim_report *report) {
    enum { THREADS_MAX = 64 };
    const ptx_launch whole = with_cluster(asked), *const launch = &whole;
    const uint32_t *cluster = whole.cluster, each = cluster[0] ? cluster[0] * cluster[1] * cluster[2] : 1;
    *report = (sim_report){.kind = SIM_FAULT_NONE};
    run shared = {.launch = launch,
                  .each = each,
                  .teams = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2] / each,
                  .lock = PTHREAD_MUTEX_INITIALIZER,
                  .counters = counters,
                  .report = report};
    const uint64_t room = launch->room && launch->room < each ? 1 : launch->room / each;
    shared.room = room && room < shared.teams ? room : shared.teams;
    if (launch->workspace) {
        run_together(&shared);
        return report->kind == SIM_FAULT_NONE;
    }
    pthread_t threads[THREADS_MAX];
    uint32_t wanted = launch->threads < 1 ? 1 : launch->threads > THREADS_MAX ? THREADS_MAX : launch->threads;
    if (wanted > shared.teams) wanted = (uint32_t)shared.teams;
    uint32_t started = 0;
    while (started + 1 < wanted && pthread_create(&threads[started], NULL, worker, &shared) == 0)
        started++;
    worker(&shared);
    for (uint32_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&shared.lock);
    return report->kind == SIM_FAULT_NONE;
}
