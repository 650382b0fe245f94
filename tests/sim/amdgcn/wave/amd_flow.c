/* Branches, barriers and waits. */
#include "tests/sim/amdgcn/wave/amd_flow.h"
#include "tests/sim/amdgcn/wave/amd_wave.h"

static bool holds(const amd_wave *wave, amd_condition condition) {
    switch (condition) {
    case AMD_ALWAYS:
        return true;
    case AMD_SCC0:
        return !wave->scc;
    case AMD_SCC1:
        return wave->scc;
    case AMD_VCCZ:
        return !amd_vcc(wave);
    case AMD_VCCNZ:
        return amd_vcc(wave);
    case AMD_EXECZ:
        return !amd_exec(wave);
    case AMD_EXECNZ:
        return amd_exec(wave);
    }
    return false;
}

void amd_run_branch(amd_wave *wave, const amd_op *op) {
    uint64_t exec = amd_exec(wave);
    wave->group->counters.branches++;
    /* A wave diverges where only some of its lanes go on. */
    wave->group->counters.divergent_branches += op->mode >= AMD_EXECZ && exec && exec != wave->all;
    if (holds(wave, (amd_condition)op->mode)) wave->next = op->target;
}

/* ---- Computed branches ---- */

static uint64_t address_behind(const amd_wave *wave, const amd_op *op) {
    return (uint64_t)(uintptr_t)wave->program->image + op->address + op->size;
}

static void go_to(amd_wave *wave, const amd_op *op, uint64_t address) {
    const amd_program *program = wave->program;
    uint64_t at = address - (uint64_t)(uintptr_t)program->image;
    bool inside = at >= program->text_begin && at < program->text_end && at % 4 == 0;
    uint32_t to = inside ? program->op_at[(at - program->text_begin) / 4] : AMD_NO_OP;
    if (to == AMD_NO_OP) {
        amd_fault(wave, op, SIM_FAULT_ILLEGAL, AMD_LANES, address, "a branch to what is no instruction");
        return;
    }
    wave->next = to;
}

void amd_run_getpc(amd_wave *wave, const amd_op *op) {
    amd_write64(wave, &op->operand[0], address_behind(wave, op));
}

void amd_run_setpc(amd_wave *wave, const amd_op *op) {
    go_to(wave, op, amd_read64(wave, &op->operand[0]));
}

void amd_run_swappc(amd_wave *wave, const amd_op *op) {
    uint64_t to = amd_read64(wave, &op->operand[1]);
    amd_write64(wave, &op->operand[0], address_behind(wave, op));
    go_to(wave, op, to);
}

void amd_run_call(amd_wave *wave, const amd_op *op) {
    amd_write64(wave, &op->operand[0], address_behind(wave, op));
    wave->next = op->target;
}

/* ---- Ends and barriers ---- */

void amd_run_endpgm(amd_wave *wave, const amd_op *op) {
    (void)op;
    wave->state = AMD_ENDED;
}

void amd_run_trap(amd_wave *wave, const amd_op *op) {
    amd_fault(wave, op, SIM_FAULT_TRAP, AMD_LANES, op->address, "number %u", op->immediate & 0xff);
}

/* Behind a trap compilers halt the wave. */
void amd_run_sethalt(amd_wave *wave, const amd_op *op) {
    amd_fault(wave, op, SIM_FAULT_TRAP, AMD_LANES, op->address, "the wave halts");
}

/* A barrier orders what has been done, not what is on its way. */
static void check_arrival(amd_wave *wave, const amd_op *op) {
    for (uint32_t i = 0; i < wave->flight_count && wave->group->wave_count > 1; i++) {
        const amd_flight *flight = &wave->flights[i];
        if (flight->counter != AMD_COUNTER_DS || flight->kind != AMD_OPERAND_NONE) continue;
        amd_fault(wave, op, SIM_FAULT_RACE, AMD_LANES, flight->op->address,
                  "\"%s\" is not waited for before the barrier", flight->op->text);
        return;
    }
}

/* Notes that a wave has come to the barrier; the last one to come lets all go on. */
static void arrive(amd_wave *wave) {
    amd_group *group = wave->group;
    wave->signalled = true;
    for (uint32_t i = 0; i < group->wave_count; i++) {
        if (!group->waves[i].signalled) return;
    }
    amd_barrier_complete(group);
}

/* Goes on if all have come, and else waits. */
static void await(amd_wave *wave) {
    if (!wave->passed) wave->state = AMD_AT_BARRIER;
    wave->passed = false;
}

void amd_run_barrier(amd_wave *wave, const amd_op *op) {
    check_arrival(wave, op);
    arrive(wave);
    await(wave);
}

/* gfx12: barrier -1 is that of the group; there are no others without clusters and named barriers. */
static bool is_group_barrier(amd_wave *wave, const amd_op *op) {
    bool immediate = op->operand[0].kind == AMD_OPERAND_CONSTANT;
    if (immediate && (uint16_t)op->operand[0].value == 0xffff) return true;
    amd_fault(wave, op, SIM_FAULT_ILLEGAL, AMD_LANES, op->operand[0].value, "only barrier -1 is simulated");
    return false;
}

/* mode 1: SCC tells whether this wave is the first. */
void amd_run_barrier_signal(amd_wave *wave, const amd_op *op) {
    if (!is_group_barrier(wave, op)) return;
    check_arrival(wave, op);
    if (wave->signalled || wave->passed) {
        amd_fault(wave, op, SIM_FAULT_BARRIER, AMD_LANES, op->address, "signalled twice without a wait");
        return;
    }
    bool first = true;
    for (uint32_t i = 0; i < wave->group->wave_count; i++)
        first &= !wave->group->waves[i].signalled;
    if (op->mode) wave->scc = first;
    arrive(wave);
}

void amd_run_barrier_wait(amd_wave *wave, const amd_op *op) {
    if (!is_group_barrier(wave, op)) return;
    if (!wave->signalled && !wave->passed) {
        amd_fault(wave, op, SIM_FAULT_BARRIER, AMD_LANES, op->address, "a wait without a signal");
        return;
    }
    await(wave);
}

/* ---- Waits ---- */

/* vmcnt and lgkmcnt by the target's encoding; the largest number means no wait. */
void amd_run_waitcnt(amd_wave *wave, const amd_op *op) {
    uint32_t major = wave->program->target->major, bits = op->immediate;
    uint32_t vector = (bits & 15) | (bits >> 14 & 3) << 4, scalar = bits >> 8 & (major >= 10 ? 63 : 15);
    if (major >= 11) {
        vector = bits >> 10 & 63;
        scalar = bits >> 4 & 63;
    }
    if (vector < 63) {
        uint32_t stores = major == 9 ? 1u << AMD_COUNTER_VM_STORE : 0;
        amd_wait(wave, 1u << AMD_COUNTER_VM_LOAD | stores, vector);
    }
    if (scalar < (major >= 10 ? 63 : 15)) amd_wait(wave, 1u << AMD_COUNTER_DS | 1u << AMD_COUNTER_SM, scalar);
}

void amd_run_wait(amd_wave *wave, const amd_op *op) {
    amd_wait(wave, op->mode, op->immediate & 63);
}

void amd_run_wait_two(amd_wave *wave, const amd_op *op) {
    amd_wait(wave, op->mode, op->immediate >> 8 & 63);
    amd_wait(wave, 1u << AMD_COUNTER_DS, op->immediate & 63);
}

void amd_run_nothing(amd_wave *wave, const amd_op *op) {
    (void)wave;
    (void)op;
}

/* What it is for: amd_hazard.c. */
void amd_run_s_nop(amd_wave *wave, const amd_op *op) {
    (void)wave;
    (void)op;
}

/* MSG_DEALLOC_VGPRS: the wave may use no vector register any more, which only s_endpgm does not. */
void amd_run_sendmsg(amd_wave *wave, const amd_op *op) {
    enum { MESSAGE_DEALLOC_VGPRS = 3 };
    const amd_op *next = &wave->program->ops[wave->next];
    if (op->immediate == MESSAGE_DEALLOC_VGPRS && next->run == amd_run_endpgm) return;
    amd_fault(wave, op, SIM_FAULT_ILLEGAL, AMD_LANES, op->address, "a message that is not simulated");
}
