#include "tests/sim/amdgcn/wave/amd_launch.h"
#include "tests/sim/amdgcn/decode/amd_registers.h"
#include "tests/sim/amdgcn/wave/amd_group.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS_MAX = 64, GROUP_MAX = 1024 };

/* What the threads of the host share: groups are drawn in an order of the seed's. */
typedef struct draw {
    const amd_launch *launch;
    uint64_t count;         /* groups */
    uint64_t factor, first; /* the n-th group is n * factor + first, modulo count: a permutation */
    _Atomic uint64_t next;
    _Atomic bool failed;
    pthread_mutex_t mutex;
    sim_counters *counters;
    sim_report *report;
} draw;

static uint64_t divisor(uint64_t a, uint64_t b) {
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static void counters_add(sim_counters *to, const sim_counters *from) {
    /* All its members are counts. */
    for (size_t i = 0; i < sizeof *to / sizeof(uint64_t); i++)
        ((uint64_t *)to)[i] += ((const uint64_t *)from)[i];
}

static void *work(void *argument) {
    draw *all = argument;
    const amd_launch *launch = all->launch;
    sim_report report = {.kind = SIM_FAULT_NONE};
    amd_group group;
    bool good = amd_group_new(&group, launch, &report);
    if (!good) {
        report.kind = SIM_FAULT_STACK;
        snprintf(report.text, sizeof report.text, "out of memory for a group");
    }
    uint64_t across = (launch->grid[0] + launch->group[0] - 1) / launch->group[0];
    uint64_t down = (launch->grid[1] + launch->group[1] - 1) / launch->group[1];
    for (uint64_t n; good && !all->failed && (n = all->next++) < all->count;) {
        uint64_t place = (n * all->factor + all->first) % all->count;
        const uint32_t id[3] = {(uint32_t)(place % across), (uint32_t)(place / across % down),
                                (uint32_t)(place / across / down)};
        group.random = launch->seed ^ (place + 1) * 0xd1342543de82ef95u;
        amd_group_begin(&group, id);
        good = amd_group_run(&group);
    }
    pthread_mutex_lock(&all->mutex);
    counters_add(all->counters, &group.counters);
    if (!good && all->report->kind == SIM_FAULT_NONE) *all->report = report;
    if (!good) all->failed = true;
    pthread_mutex_unlock(&all->mutex);
    amd_group_free(&group);
    return NULL;
}

/* The most private bytes of a work-item: COMPUTE_TMPRING_SIZE has so many bits for those of a wave. */
static uint32_t private_max(const amd_target *target, const amd_kernel *kernel) {
    const uint32_t wave = target->major >= 12 ? 0x3ffff * 256 : target->major == 11 ? 0x7fff * 256 : 0x1fff * 1024;
    return wave / (kernel->wave32 ? 32 : 64);
}

static bool shape_check(const amd_launch *launch, sim_report *report) {
    uint64_t items = 1;
    for (int i = 0; i < 3; i++) {
        items *= launch->group[i];
        if (launch->group[i] && launch->group[i] <= GROUP_MAX && launch->grid[i] && items <= GROUP_MAX) continue;
        *report = (sim_report){.kind = SIM_FAULT_ILLEGAL};
        snprintf(report->text, sizeof report->text, "launch of %s: group size %u, grid size %u of dimension %d",
                 launch->kernel->name, launch->group[i], launch->grid[i], i);
        return false;
    }
    const amd_kernel *kernel = launch->kernel;
    const amd_target *target = launch->program->target;
    for (int i = 0; i < 3; i++) {
        if (!kernel->metadata.whole_groups || launch->grid[i] % launch->group[i] == 0) continue;
        *report = (sim_report){.kind = SIM_FAULT_ILLEGAL};
        snprintf(report->text, sizeof report->text,
                 "launch of %s: grid size %u is no multiple of the group size %u, as .uniform_work_group_size demands",
                 kernel->name, launch->grid[i], launch->group[i]);
        return false;
    }
    if (kernel->metadata.group_max && items > kernel->metadata.group_max) {
        *report = (sim_report){.kind = SIM_FAULT_ILLEGAL};
        snprintf(report->text, sizeof report->text,
                 "launch of %s: a group of %u work-items, .max_flat_workgroup_size is %u", kernel->name,
                 (uint32_t)items, kernel->metadata.group_max);
        return false;
    }
    if (!amd_registers_fit(target, kernel, (uint32_t)items)) {
        const amd_registers has = amd_registers_of(target, kernel);
        *report = (sim_report){.kind = SIM_FAULT_ILLEGAL};
        snprintf(report->text, sizeof report->text,
                 "launch of %s: a group of %u work-items with %u vector registers each has no room in a compute unit",
                 kernel->name, (uint32_t)items, has.vectors + has.accumulators);
        return false;
    }
    if (launch->private_bytes > private_max(target, kernel)) {
        *report = (sim_report){.kind = SIM_FAULT_ILLEGAL};
        snprintf(report->text, sizeof report->text, "launch of %s: %u private bytes, there can be %u", kernel->name,
                 launch->private_bytes, private_max(target, kernel));
        return false;
    }
    if (launch->group_bytes >= kernel->group_bytes && launch->private_bytes >= kernel->private_bytes) return true;
    *report = (sim_report){.kind = SIM_FAULT_ILLEGAL};
    snprintf(report->text, sizeof report->text, "launch of %s: %u bytes of LDS of %u, %u private bytes of %u",
             kernel->name, launch->group_bytes, kernel->group_bytes, launch->private_bytes, kernel->private_bytes);
    return false;
}

bool amd_launch_run(const amd_launch *launch, sim_counters *counters, sim_report *report) {
    *report = (sim_report){.kind = SIM_FAULT_NONE};
    if (!shape_check(launch, report)) return false;
    draw all = {.launch = launch, .count = 1, .counters = counters, .report = report};
    for (int i = 0; i < 3; i++)
        all.count *= (launch->grid[i] + launch->group[i] - 1) / launch->group[i];
    uint64_t random = launch->seed;
    all.first = sim_random(&random) % all.count;
    all.factor = sim_random(&random) % (all.count < 1u << 20 ? all.count : 1u << 20) | 1;
    while (divisor(all.factor, all.count) != 1)
        all.factor += 2;
    pthread_mutex_init(&all.mutex, NULL);
    uint64_t wanted = launch->threads < all.count ? launch->threads : all.count;
    pthread_t threads[THREADS_MAX];
    uint32_t started = 0;
    while (started + 1 < wanted && started < THREADS_MAX && !pthread_create(&threads[started], NULL, work, &all))
        started++;
    work(&all);
    while (started)
        pthread_join(threads[--started], NULL);
    pthread_mutex_destroy(&all.mutex);
    return report->kind == SIM_FAULT_NONE;
}
