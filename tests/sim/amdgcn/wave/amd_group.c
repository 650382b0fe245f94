/* A work-group: its waves as the hardware starts them, and the order in which they run. */
#include "tests/sim/amdgcn/wave/amd_group.h"
#include "tests/sim/amdgcn/decode/amd_registers.h"
#include "tests/sim/amdgcn/wave/amd_hazard.h"
#include "tests/sim/amdgcn/wave/amd_undefined.h"
#include <stdlib.h>
#include <string.h>

/* Bits of the kernel descriptor (LLVM, "User Guide for AMDGPU Backend", Kernel Descriptor). */
enum {
    PROPERTY_PRIVATE_BUFFER = 1 << 0, /* then, in this order, the user registers that follow */
    PROPERTY_DISPATCH_POINTER = 1 << 1,
    PROPERTY_QUEUE_POINTER = 1 << 2,
    PROPERTY_KERNARG_POINTER = 1 << 3,
    PROPERTY_DISPATCH_ID = 1 << 4,
    PROPERTY_FLAT_SCRATCH = 1 << 5,
    PROPERTY_PRIVATE_SIZE = 1 << 6,
    RSRC1_FLOAT_MODE = 12, /* 8 bits: rounding, denormals */
    RSRC1_DX10_CLAMP = 21,
    RSRC1_IEEE = 23,
    RSRC2_PRIVATE_SEGMENT = 0,
    RSRC2_USER_REGISTERS = 1, /* 5 bits */
    RSRC2_GROUP_ID = 7,       /* x, y, z */
    RSRC2_GROUP_INFO = 10,
    RSRC2_WORK_ITEM_ID = 11, /* 2 bits: 0 x, 1 xy, 2 xyz */
    TTMP_GROUP_YZ = AMD_TTMP + 7,
    TTMP_GROUP_X = AMD_TTMP + 9
};

/* ---- Waves ---- */

static void push64(amd_wave *wave, uint32_t *at, uint64_t value) {
    wave->s[(*at)++] = (uint32_t)value;
    wave->s[(*at)++] = (uint32_t)(value >> 32);
}

/* The scratch of one wave, and the offset of this wave's from the group's. */
static uint32_t scratch_size(const amd_wave *wave) {
    return (wave->group->launch->private_bytes + 3) / 4 * 4 * wave->lanes;
}

/* The descriptor of a buffer that is the group's scratch: swizzled, by lanes, in elements of four bytes. */
static void push_scratch_buffer(amd_wave *wave, uint32_t *at) {
    enum { SWIZZLE = 1u << 31, ADD_LANE = 1 << 23, STRIDE_64 = 3 << 21, STRIDE_32 = 2 << 21 };
    uint64_t base = (uint64_t)(uintptr_t)wave->group->scratch;
    push64(wave, at, base | (uint64_t)(uint32_t)SWIZZLE << 32);
    wave->s[(*at)++] = ~0u;
    wave->s[(*at)++] = ADD_LANE | (wave->lanes == 64 ? STRIDE_64 : STRIDE_32);
}

static void scalars_start(amd_wave *wave) {
    const amd_group *group = wave->group;
    const amd_launch *launch = group->launch;
    const amd_kernel *kernel = launch->kernel;
    bool ready_scratch = launch->program->target->ready_scratch;
    uint32_t at = 0;
    if (kernel->properties & PROPERTY_PRIVATE_BUFFER) push_scratch_buffer(wave, &at);
    if (kernel->properties & PROPERTY_DISPATCH_POINTER) push64(wave, &at, launch->dispatch_packet);
    if (kernel->properties & PROPERTY_QUEUE_POINTER) push64(wave, &at, launch->queue);
    if (kernel->properties & PROPERTY_KERNARG_POINTER) push64(wave, &at, launch->kernarg);
    if (kernel->properties & PROPERTY_DISPATCH_ID) push64(wave, &at, launch->dispatch_id);
    if (kernel->properties & PROPERTY_FLAT_SCRATCH) push64(wave, &at, (uint64_t)(uintptr_t)group->scratch);
    if (kernel->properties & PROPERTY_PRIVATE_SIZE) wave->s[at++] = launch->private_bytes;
    for (uint32_t i = 0; i < kernel->preload_count; i++) {
        uint64_t from = (kernel->preload_first + i) * 4;
        const void *word = (const void *)(uintptr_t)(launch->kernarg + from);
        if (from + 4 <= kernel->kernarg_bytes) memcpy(&wave->s[at + i], word, 4);
    }
    if (ready_scratch) {
        uint32_t flat = AMD_FLAT_SCRATCH;
        push64(wave, &flat, (uint64_t)(uintptr_t)wave->scratch);
    }
    if (launch->program->target->major >= 12) {
        wave->s[TTMP_GROUP_X] = group->id[0];
        wave->s[TTMP_GROUP_YZ] = group->id[1] | group->id[2] << 16;
        return;
    }
    at = kernel->rsrc2 >> RSRC2_USER_REGISTERS & 31;
    for (uint32_t i = 0; i < 3; i++) {
        if (kernel->rsrc2 >> (RSRC2_GROUP_ID + i) & 1) wave->s[at++] = group->id[i];
    }
    if (kernel->rsrc2 >> RSRC2_GROUP_INFO & 1) wave->s[at++] = 0;
    if (!ready_scratch && (kernel->rsrc2 >> RSRC2_PRIVATE_SEGMENT & 1)) wave->s[at] = wave->number * scratch_size(wave);
}

static void vectors_start(amd_wave *wave) {
    const amd_group *group = wave->group;
    const amd_launch *launch = group->launch;
    uint32_t dimensions = (launch->kernel->rsrc2 >> RSRC2_WORK_ITEM_ID & 3) + 1;
    for (uint32_t l = 0; l < wave->lanes; l++) {
        uint32_t item = wave->number * wave->lanes + l;
        uint32_t id[3] = {item % group->size[0], item / group->size[0] % group->size[1],
                          item / group->size[0] / group->size[1]};
        if (launch->program->target->packed_ids) {
            wave->v[0][l] = id[0] | (dimensions > 1 ? id[1] << 10 : 0) | (dimensions > 2 ? id[2] << 20 : 0);
        } else {
            for (uint32_t i = 0; i < dimensions; i++)
                wave->v[i][l] = id[i];
        }
    }
}

static uint32_t mode_start(const amd_kernel *kernel) {
    return (kernel->rsrc1 >> RSRC1_FLOAT_MODE & 0xff) | (kernel->rsrc1 >> RSRC1_DX10_CLAMP & 1) << 8 |
           (kernel->rsrc1 >> RSRC1_IEEE & 1) << 9;
}

/* The vector registers that a kernel has begin with no meaning. */
static void vectors_poison(amd_wave *wave, const amd_kernel *kernel) {
    const amd_registers has = amd_registers_of(wave->program->target, kernel);
    memset(wave->v, 0xb5, has.vectors * sizeof *wave->v);
    memset(wave->v[AMD_ACCUMULATORS], 0xb5, has.accumulators * sizeof *wave->v);
}

static void wave_start(amd_group *group, uint32_t number) {
    const amd_launch *launch = group->launch;
    amd_wave *wave = &group->waves[number];
    uint32_t(*vectors)[AMD_LANES] = wave->v;
    size_t scratch_used = wave->scratch_used;
    struct amd_undefined *undefined = wave->undefined;
    bool had_undefined = wave->has_undefined;
    memset(wave, 0xb5, sizeof *wave); /* so do scalar ones */
    wave->group = group;
    wave->program = amd_program_for(launch->program, launch->kernel);
    wave->v = vectors;
    vectors_poison(wave, launch->kernel);
    wave->number = number;
    wave->lanes = launch->kernel->wave32 ? 32 : 64;
    wave->all = wave->lanes == 64 ? ~0ull : 0xffffffffu;
    wave->pc = wave->next = launch->kernel->entry;
    wave->scc = wave->relative = false;
    wave->state = AMD_READY;
    wave->signalled = wave->passed = false;
    wave->flight_count = wave->issued_count = 0;
    wave->wait_states = 0;
    wave->results_in_flight = false;
    memset(wave->vectors_in_flight, 0, sizeof wave->vectors_in_flight);
    memset(wave->scalars_in_flight, 0, sizeof wave->scalars_in_flight);
    wave->mode = mode_start(launch->kernel);
    uint32_t first = number * wave->lanes, left = group->work_items - first;
    uint64_t exec = left >= wave->lanes ? wave->all : (1ull << left) - 1;
    wave->s[AMD_EXEC] = (uint32_t)exec;
    wave->s[AMD_EXEC + 1] = (uint32_t)(exec >> 32);
    wave->scratch = group->scratch ? group->scratch + (size_t)number * scratch_size(wave) : NULL;
    wave->scratch_used = 0;
    if (wave->scratch) memset(wave->scratch, 0xb5, scratch_used); /* and so does scratch */
    wave->undefined = undefined;
    wave->has_undefined = false;
    if (undefined) amd_undefined_begin(undefined, scratch_used, had_undefined);
    scalars_start(wave);
    vectors_start(wave);
}

/* ---- Running ---- */

/* scratch: the kernel has any, and its waves an account of what is undefined. */
static inline __attribute__((always_inline)) void run(amd_wave *wave, uint32_t quantum, bool scratch) {
    amd_group *group = wave->group;
    const amd_program *program = wave->program;
    uint64_t vector_lanes = 0, done = 0;
    for (; done < quantum && wave->state == AMD_READY; done++) {
        const amd_op *op = &program->ops[wave->next];
        wave->pc = wave->next++;
        if (!op->run) {
            amd_fault(wave, op, SIM_FAULT_ILLEGAL, AMD_LANES, op->address, "ran into the end of the code");
            break;
        }
        if (wave->results_in_flight) amd_check_flights(wave, op);
        if (program->hazards) amd_hazard_check(wave, op);
        if (scratch && wave->has_undefined && !amd_undefined_step(wave, op)) break;
        group->turns[op->unit] += op->turns;
        if (op->class != AMD_CLASS_SCALAR) {
            uint64_t exec = amd_exec(wave);
            vector_lanes += exec == wave->all ? wave->lanes : (uint64_t)__builtin_popcountll(exec);
        }
        if (wave->relative && op->class != AMD_CLASS_SCALAR && op->class != AMD_CLASS_MEMORY)
            amd_run_relative(wave, op);
        else if (op->dual)
            amd_run_dual(wave, op);
        else
            op->run(wave, op);
        if (program->hazards) amd_hazard_note(wave, op);
        if (group->report->kind != SIM_FAULT_NONE) break;
        if (wave->next >= program->op_count && wave->state == AMD_READY) {
            amd_fault(wave, op, SIM_FAULT_ILLEGAL, AMD_LANES, op->address, "ran over the end of the code");
            break;
        }
    }
    group->instructions += done;
    group->counters.instructions += done;
    group->counters.lane_instructions += vector_lanes;
    if (group->instructions > group->launch->budget && group->report->kind == SIM_FAULT_NONE) {
        const amd_op *op = &program->ops[wave->pc];
        amd_fault(wave, op, SIM_FAULT_ENDLESS, AMD_LANES, op->address, "%llu instructions of one group",
                  (unsigned long long)group->instructions);
    }
}

void amd_wave_run(amd_wave *wave, uint32_t quantum) {
    if (wave->undefined)
        run(wave, quantum, true);
    else
        run(wave, quantum, false);
}

void amd_barrier_complete(amd_group *group) {
    amd_shared_settle(group);
    for (uint32_t i = 0; i < group->wave_count; i++) {
        amd_wave *wave = &group->waves[i];
        wave->signalled = false;
        wave->passed = wave->state != AMD_AT_BARRIER;
        if (wave->state == AMD_AT_BARRIER) wave->state = AMD_READY;
    }
    group->epoch++;
    group->counters.barriers++;
}

/* No wave can run: either all have ended, or some wait for those that have. */
static void end_check(amd_group *group) {
    uint32_t waiting = 0;
    amd_wave *one = NULL;
    for (uint32_t i = 0; i < group->wave_count; i++) {
        if (group->waves[i].state != AMD_AT_BARRIER) continue;
        one = &group->waves[i];
        waiting++;
    }
    if (!one) return;
    const amd_op *op = &one->program->ops[one->pc];
    amd_fault(one, op, SIM_FAULT_BARRIER, AMD_LANES, op->address, "%u of %u waves are there, the others have ended",
              waiting, group->wave_count);
}

/* gfx9 issues one instruction to each unit in a turn of a SIMD, from different waves. */
static void turns_count(amd_group *group) {
    uint64_t most = 0;
    for (int unit = 0; unit < AMD_UNIT_NONE; unit++)
        most = group->turns[unit] > most ? group->turns[unit] : most;
    group->counters.unit_turns += group->launch->program->target->major == 9 ? most : 0;
}

bool amd_group_run(amd_group *group) {
    while (group->report->kind == SIM_FAULT_NONE) {
        uint32_t ready = 0;
        for (uint32_t i = 0; i < group->wave_count; i++)
            ready += group->waves[i].state == AMD_READY;
        if (!ready) {
            end_check(group);
            amd_shared_settle(group);
            break;
        }
        uint64_t draw = sim_random(&group->random);
        uint32_t chosen = (uint32_t)(draw % ready), i = 0;
        while (group->waves[i].state != AMD_READY || chosen--)
            i++;
        amd_wave_run(&group->waves[i], 1 + (uint32_t)(draw >> 32) % 256);
    }
    turns_count(group);
    return group->report->kind == SIM_FAULT_NONE;
}

bool amd_group_new(amd_group *group, const amd_launch *launch, sim_report *report) {
    uint32_t lanes = launch->kernel->wave32 ? 32 : 64;
    uint32_t items = launch->group[0] * launch->group[1] * launch->group[2];
    *group = (amd_group){.launch = launch, .report = report, .shared_bytes = launch->group_bytes};
    group->wave_count = (items + lanes - 1) / lanes;
    group->waves = calloc(group->wave_count, sizeof *group->waves);
    group->shared = calloc(1, launch->group_bytes + 1);
    group->shadow = calloc(launch->group_bytes / 4 + 1, sizeof *group->shadow);
    size_t scratch = (size_t)(launch->private_bytes + 3) / 4 * 4 * lanes * group->wave_count;
    if (scratch) group->scratch = malloc(scratch);
    if (group->scratch) memset(group->scratch, 0xb5, scratch);
    for (uint32_t i = 0; group->waves && i < group->wave_count; i++)
        group->waves[i].v = aligned_alloc(64, AMD_VECTORS * sizeof *group->waves[i].v);
    bool good = group->waves && group->shared && group->shadow && (group->scratch || !scratch);
    for (uint32_t i = 0; good && i < group->wave_count; i++) {
        if (scratch) group->waves[i].undefined = amd_undefined_new(scratch / group->wave_count);
        good = group->waves[i].v && (group->waves[i].undefined || !scratch);
    }
    return good;
}

void amd_group_begin(amd_group *group, const uint32_t id[3]) {
    const amd_launch *launch = group->launch;
    group->work_items = 1;
    for (int i = 0; i < 3; i++) {
        uint32_t left = launch->grid[i] - id[i] * launch->group[i];
        group->id[i] = id[i];
        group->size[i] = left < launch->group[i] ? left : launch->group[i];
        group->work_items *= group->size[i];
    }
    uint32_t lanes = launch->kernel->wave32 ? 32 : 64;
    group->wave_count = (group->work_items + lanes - 1) / lanes;
    group->epoch = 1;
    group->doubted = false;
    group->instructions = 0;
    memset(group->turns, 0, sizeof group->turns);
    memset(group->shared, 0xb5, group->shared_bytes);
    memset(group->shadow, 0, (group->shared_bytes / 4 + 1) * sizeof *group->shadow);
    for (uint32_t i = 0; i < group->wave_count; i++)
        wave_start(group, i);
}

void amd_group_free(amd_group *group) {
    uint32_t lanes = group->launch->kernel->wave32 ? 32 : 64;
    uint32_t items = group->launch->group[0] * group->launch->group[1] * group->launch->group[2];
    for (uint32_t i = 0; group->waves && i < (items + lanes - 1) / lanes; i++) {
        free(group->waves[i].v);
        amd_undefined_free(group->waves[i].undefined);
    }
    free(group->waves);
    free(group->shared);
    free(group->scratch);
    free(group->shadow);
}
