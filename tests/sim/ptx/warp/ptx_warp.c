#include "tests/sim/ptx/warp/ptx_warp.h"
#include "tests/sim/ptx/matrix/ptx_wgmma_run.h"
#include "tests/sim/ptx/warp/ptx_undefined.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ptx_fault(ptx_warp *warp, const ptx_op *op, sim_fault_kind kind, uint32_t lane, uint64_t address,
               const char *format, ...) {
    const ptx_block *block = warp->block;
    sim_report *report = block->report;
    if (report->kind != SIM_FAULT_NONE) return;
    char detail[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(detail, sizeof detail, format, arguments);
    va_end(arguments);
    report->kind = kind;
    snprintf(report->text, sizeof report->text,
             "%s: %s: kernel %s, PTX line %u, block (%u,%u,%u), thread %u, address 0x%llx", sim_fault_text(kind),
             detail, block->launch->code->function->name, op->line, block->id[0], block->id[1], block->id[2],
             warp->number * PTX_WARP + lane, (unsigned long long)address);
}

/* ---- Frames ---- */

static void fill(uint8_t *place, uint32_t bits, uint64_t value) {
    for (int l = 0; l < PTX_WARP; l++) {
        if (bits == 64) memcpy(place + l * 8, &value, 8);
        if (bits == 32) memcpy(place + l * 4, &value, 4);
        if (bits == 16) memcpy(place + l * 2, &value, 2);
        if (bits == 8) memcpy(place + l, &value, 1);
    }
}

static uint64_t variable_address(const ptx_block *block, const ptx_frame *frame, const ptx_variable *variable) {
    switch (variable->space) {
    case PTX_SPACE_GLOBAL:
    case PTX_SPACE_CONST:
        return block->launch->globals + variable->offset;
    case PTX_SPACE_SHARED:
        return variable->is_extern ? block->dynamic_offset : variable->offset;
    case PTX_SPACE_LOCAL:
        return frame->local_base + variable->offset;
    case PTX_SPACE_PARAM:
        /* An entry's own parameters lie in the launch's buffer, all others in the lane's memory. */
        for (const ptx_variable *own = block->launch->code->function->parameters; own; own = own->next)
            if (own == variable) return PTX_WINDOW_PARAM | variable->offset;
        return frame->local_base + variable->offset;
    default:
        return 0;
    }
}

/* Released frames, kept for the next ones of their size: a frame can have megabytes, whose pages the system would have
 * to clear each time. */
typedef struct spare_frame {
    struct spare_frame *next;
    size_t size;
} spare_frame;
static _Thread_local spare_frame *spare_frames;

static size_t frame_size(const ptx_code *code) {
    return (sizeof(ptx_frame) + code->frame_bytes + 63) / 64 * 64;
}

static void *frame_allocate(size_t size) {
    for (spare_frame **at = &spare_frames; *at; at = &(*at)->next) {
        spare_frame *found = *at;
        if (found->size != size) continue;
        *at = found->next;
        return found;
    }
    void *memory = aligned_alloc(64, size);
    if (!memory) abort();
    return memory;
}

static void frame_keep(ptx_frame *frame) {
    const size_t size = frame_size(frame->code);
    spare_frame *spare = (spare_frame *)(void *)frame;
    *spare = (spare_frame){.next = spare_frames, .size = size};
    spare_frames = spare;
}

void ptx_frames_free(void) {
    while (spare_frames) {
        spare_frame *next = spare_frames->next;
        free(spare_frames);
        spare_frames = next;
    }
}

ptx_frame *ptx_frame_new(const ptx_warp *warp, const ptx_code *code, ptx_frame *parent, uint32_t return_op) {
    const size_t size = frame_size(code);
    ptx_frame *frame = frame_allocate(size);
    memset(frame, 0xb5, size); /* registers begin with no meaning */
    *frame = (ptx_frame){.code = code, .parent = parent, .return_op = return_op};
    if (parent) {
        parent->references++;
        frame->local_base = parent->local_base + parent->code->local_bytes;
    }
    for (uint32_t i = 0; i < code->constant_count; i++)
        fill(frame->bytes + code->constants[i].place, code->constants[i].bits, code->constants[i].value);
    for (uint32_t i = 0; i < code->address_count; i++)
        fill(frame->bytes + code->addresses[i].place, code->addresses[i].bits,
             variable_address(warp->block, frame, code->addresses[i].variable) + (uint64_t)code->addresses[i].offset);
    for (uint32_t i = 0; i < code->special_count; i++)
        ptx_special_fill(warp, &code->specials[i], frame->bytes + code->specials[i].place);
    return frame;
}

void ptx_frame_release(ptx_frame *frame) {
    while (frame && --frame->references == 0) {
        ptx_frame *parent = frame->parent;
        ptx_undefined_free(frame);
        free(frame->uses);
        frame_keep(frame);
        frame = parent;
    }
}

/* ---- Groups ---- */

static ptx_group *group_add(ptx_warp *warp, uint32_t mask, uint32_t op, ptx_frame *frame) {
    ptx_group *group = &warp->groups[warp->group_count++];
    *group = (ptx_group){mask, op, frame, PTX_READY};
    frame->references++;
    return group;
}

static void group_remove(ptx_warp *warp, ptx_group *group) {
    ptx_frame_release(group->frame);
    *group = warp->groups[--warp->group_count];
}

/* Takes lanes out of the running group and puts them at an op of a frame; the group keeps the rest. There is always
 * room, since a group has at least one lane. */
static void group_send(ptx_warp *warp, ptx_group *group, uint32_t lanes, uint32_t op, ptx_frame *frame) {
    if (!lanes) return;
    if (lanes == group->mask) {
        frame->references++;
        ptx_frame_release(group->frame);
        group->frame = frame;
        group->op = op;
        return;
    }
    group->mask &= ~lanes;
    group_add(warp, lanes, op, frame);
}

/* Joins groups that stand at the same place, mostly: one time in eight the seed keeps them apart. */
static void groups_join(ptx_warp *warp) {
    for (uint32_t i = 0; i + 1 < warp->group_count; i++) {
        for (uint32_t j = i + 1; j < warp->group_count;) {
            ptx_group *a = &warp->groups[i], *b = &warp->groups[j];
            if (a->state == PTX_READY && b->state == PTX_READY && a->op == b->op && a->frame == b->frame &&
                sim_random(&warp->block->random) % 8) {
                a->mask |= b->mask;
                group_remove(warp, b);
            } else {
                j++;
            }
        }
    }
}

void ptx_warp_start(ptx_warp *warp) {
    ptx_frame *frame = ptx_frame_new(warp, warp->block->launch->code, NULL, 0);
    warp->group_count = 0;
    warp->exited = 0;
    for (uint32_t l = 0; l < PTX_WARP; l++)
        warp->stack[l] = frame->stack[l] = PTX_LOCAL_BYTES;
    group_add(warp, warp->lanes, 0, frame);
}

void ptx_warp_end(ptx_warp *warp) {
    while (warp->group_count)
        group_remove(warp, &warp->groups[0]);
    ptx_local_end(warp);
}

/* ---- Flow: what moves a group other than to the next op ---- */

static void flow_branch(ptx_warp *warp, ptx_group *group, const ptx_op *op, uint32_t mask) {
    warp->block->counters.branches++;
    if (mask != group->mask && mask) warp->block->counters.divergent_branches++;
    uint32_t rest = group->mask & ~mask, next = group->op + 1;
    if (!mask) {
        group->op = next;
        return;
    }
    group_send(warp, group, rest, next, group->frame);
    group->op = op->target;
}

static void flow_indexed(ptx_warp *warp, ptx_group *group, const ptx_op *op, uint32_t mask) {
    warp->block->counters.branches++;
    ptx_frame *frame = group->frame;
    uint32_t next = group->op + 1, whole = group->mask;
    op->run(warp, op, mask);
    while (mask) {
        uint32_t target = warp->targets[__builtin_ctz(mask)], same = 0;
        for (uint32_t rest = mask; rest; rest &= rest - 1) {
            uint32_t l = (uint32_t)__builtin_ctz(rest);
            if (warp->targets[l] == target) same |= 1u << l;
        }
        mask &= ~same;
        if (same != whole) warp->block->counters.divergent_branches++;
        bool last = group->mask == same;
        group_send(warp, group, same, target, frame);
        if (last) return;
    }
    group->op = next;
}

/* The frame of a call from here that another group of the warp has made already, or a new one. */
static ptx_frame *frame_for_call(ptx_warp *warp, const ptx_group *group, const ptx_code *code) {
    for (uint32_t i = 0; i < warp->group_count; i++)
        for (ptx_frame *frame = warp->groups[i].frame; frame; frame = frame->parent)
            if (frame->parent == group->frame && frame->code == code && frame->return_op == group->op) return frame;
    return ptx_frame_new(warp, code, group->frame, group->op);
}

/* op->list: the places in local bytes of the results, then of the parameters, as variables' offsets in the caller. */
static void call_function(ptx_warp *warp, ptx_group *group, const ptx_op *op, uint32_t mask, const ptx_code *code) {
    const ptx_frame *caller = group->frame;
    uint32_t base = caller->local_base + caller->code->local_bytes;
    if (!ptx_local_enter(warp, op, mask, base, code->local_bytes)) return;
    ptx_frame *callee = frame_for_call(warp, group, code);
    for (uint32_t rest = mask; rest; rest &= rest - 1)
        callee->stack[__builtin_ctz(rest)] = warp->stack[__builtin_ctz(rest)];
    const uint32_t *argument = op->list + op->mode; /* mode: how many results there are */
    for (const ptx_variable *p = code->function->parameters; p; p = p->next)
        ptx_local_copy(warp, mask, base + (uint32_t)p->offset, caller->local_base + *argument++, (uint32_t)p->size);
    group_send(warp, group, mask, 0, callee);
}

static bool same_sizes(const ptx_variable *a, const ptx_variable *b) {
    while (a && b && a->size == b->size) {
        a = a->next;
        b = b->next;
    }
    return !a && !b;
}

/* The function at an address, if it is one that takes and gives what the call says. */
static const ptx_code *function_at(ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t address) {
    const ptx_code *code = ptx_code_at(warp->block->launch->program, address);
    if (code && !code->function->is_entry && same_sizes(code->function->results, op->signature->results) &&
        same_sizes(code->function->parameters, op->signature->parameters))
        return code;
    ptx_fault(warp, op, SIM_FAULT_ILLEGAL, lane, address, "a call of %s, which is no such function",
              code ? code->function->name : "an address");
    return NULL;
}

/* Each lane calls the function whose address it has. */
static void call_addresses(ptx_warp *warp, ptx_group *group, const ptx_op *op, uint32_t mask) {
    uint64_t addresses[PTX_WARP];
    memcpy(addresses, group->frame->bytes + op->s[0], sizeof addresses);
    while (mask) {
        uint32_t lane = (uint32_t)__builtin_ctz(mask), same = 0;
        for (uint32_t rest = mask; rest; rest &= rest - 1) {
            uint32_t l = (uint32_t)__builtin_ctz(rest);
            if (addresses[l] == addresses[lane]) same |= 1u << l;
        }
        const ptx_code *code = function_at(warp, op, lane, addresses[lane]);
        if (!code) return;
        mask &= ~same;
        if (mask) warp->block->counters.divergent_branches++;
        call_function(warp, group, op, same, code);
    }
}

static void flow_call(ptx_warp *warp, ptx_group *group, const ptx_op *op, uint32_t mask) {
    if (!mask) {
        group->op++;
        return;
    }
    group_send(warp, group, group->mask & ~mask, group->op + 1, group->frame);
    if (op->target == PTX_NOWHERE)
        call_addresses(warp, group, op, mask);
    else
        call_function(warp, group, op, mask, &warp->block->launch->program->codes[op->target]);
}

static void flow_return(ptx_warp *warp, ptx_group *group, uint32_t mask) {
    ptx_frame *callee = group->frame, *caller = callee->parent;
    const ptx_op *call = &caller->code->ops[callee->return_op];
    uint32_t next = group->op + 1, rest = group->mask & ~mask;
    const uint32_t *result = call->list;
    for (const ptx_variable *r = callee->code->function->results; r && result < call->list + call->mode; r = r->next)
        ptx_local_copy(warp, mask, caller->local_base + *result++, callee->local_base + (uint32_t)r->offset,
                       (uint32_t)r->size);
    for (uint32_t lanes = mask; lanes; lanes &= lanes - 1)
        warp->stack[__builtin_ctz(lanes)] = callee->stack[__builtin_ctz(lanes)];
    uint32_t return_op = callee->return_op + 1;
    if (rest) group_send(warp, group, rest, next, callee);
    group_send(warp, group, mask, return_op, caller);
}

/* The lanes of group that execute; those whose guard is false go on by themselves. */
static void leave_behind(ptx_warp *warp, ptx_group *group, uint32_t mask) {
    group_send(warp, group, group->mask & ~mask, group->op + 1, group->frame);
}

/* The member mask of each lane at a .sync instruction. */
static const uint32_t *members_of(const ptx_group *group, const ptx_op *op) {
    return (const uint32_t *)(const void *)(group->frame->bytes + op->s[0]);
}

/* The lanes that a .sync instruction waits for: those that its members name and that have not exited, or all lanes.
 * 0 after a fault. */
static uint32_t wanted_lanes(ptx_warp *warp, const ptx_group *group, const ptx_op *op) {
    uint32_t first = (uint32_t)__builtin_ctz(group->mask), missing = ~warp->lanes | warp->exited;
    if (op->flow == PTX_FLOW_ALIGNED) {
        if (!missing) return warp->lanes;
        ptx_fault(warp, op, SIM_FAULT_SYNC, first, 0, "all lanes must take part, but 0x%x are not there", missing);
        return 0;
    }
    uint32_t members = members_of(group, op)[first], outside = group->mask & ~members;
    if (!outside) return members & ~missing;
    ptx_fault(warp, op, SIM_FAULT_SYNC, (uint32_t)__builtin_ctz(outside), members,
              "the member mask 0x%x lacks the lane", members);
    return 0;
}

/* Whether two groups at one instruction name the same members. */
static bool same_members(const ptx_group *a, const ptx_group *b, const ptx_op *op) {
    if (op->flow == PTX_FLOW_ALIGNED) return true;
    return members_of(a, op)[__builtin_ctz(a->mask)] == members_of(b, op)[__builtin_ctz(b->mask)];
}

/* Runs a .sync instruction when all lanes that it wants wait at it; false if they do not. */
static bool flow_warp(ptx_warp *warp, ptx_group *group, const ptx_op *op) {
    uint32_t wanted = wanted_lanes(warp, group, op), here = 0;
    for (uint32_t i = 0; i < warp->group_count; i++) {
        const ptx_group *other = &warp->groups[i];
        bool waits = other->state == PTX_AT_WARP && other->op == group->op && other->frame == group->frame;
        if (waits && same_members(other, group, op)) here |= other->mask;
    }
    if (!wanted || here != wanted) return false;
    for (uint32_t i = 0; i < warp->group_count;) {
        ptx_group *other = &warp->groups[i];
        if (other != group && other->state == PTX_AT_WARP && other->frame == group->frame &&
            (other->mask & wanted) == other->mask && other->op == group->op) {
            bool moved = group == &warp->groups[warp->group_count - 1];
            group->mask |= other->mask;
            group_remove(warp, other);
            if (moved) group = other;
        } else {
            i++;
        }
    }
    group->state = PTX_READY;
    if (op->flow == PTX_FLOW_WARP) warp->synced = ++warp->moment;
    if (warp->waited & group->mask) warp->waited |= group->mask;
    warp->frame = group->frame->bytes;
    warp->group = group;
    op->run(warp, op, group->mask);
    group->op++;
    return true;
}

/* Lanes that name different members do not wait for each other: one group for each mask. */
static void split_by_members(ptx_warp *warp, ptx_group *group, const ptx_op *op) {
    const uint32_t *members = members_of(group, op);
    for (;;) {
        uint32_t others = 0, first = members[__builtin_ctz(group->mask)];
        for (uint32_t rest = group->mask; rest; rest &= rest - 1) {
            uint32_t l = (uint32_t)__builtin_ctz(rest);
            if (members[l] != first) others |= 1u << l;
        }
        if (!others) return;
        group->mask &= ~others;
        ptx_group *next = group_add(warp, others, group->op, group->frame);
        next->state = PTX_AT_WARP;
        group = next;
    }
}

/* A group comes to a .sync instruction, which then runs for all whose lanes are there. */
static void flow_sync(ptx_warp *warp, ptx_group *group, const ptx_op *op) {
    const ptx_frame *frame = group->frame;
    uint32_t at = group->op;
    group->state = PTX_AT_WARP;
    if (op->flow == PTX_FLOW_WARP) split_by_members(warp, group, op);
    for (uint32_t i = 0; i < warp->group_count;) {
        ptx_group *waiting = &warp->groups[i];
        bool here = waiting->state == PTX_AT_WARP && waiting->op == at && waiting->frame == frame;
        i = here && flow_warp(warp, waiting, op) ? 0 : i + 1;
    }
}

static uint32_t guard_mask(const ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    if (op->guard == PTX_NOWHERE) return mask;
    uint32_t guard = *(const uint32_t *)(const void *)(warp->frame + op->guard);
    return mask & (op->guard_negated ? ~guard : guard);
}

/* One instruction that is not simply followed by the next. false if the group is gone or waits. */
static bool step_flow(ptx_warp *warp, ptx_group *group, const ptx_op *op, uint32_t mask) {
    switch (op->flow) {
    case PTX_FLOW_NEXT:
        break;
    case PTX_FLOW_BRANCH:
        flow_branch(warp, group, op, mask);
        return true;
    case PTX_FLOW_INDEXED:
        flow_indexed(warp, group, op, mask);
        return true;
    case PTX_FLOW_CALL:
        flow_call(warp, group, op, mask);
        return true;
    case PTX_FLOW_RETURN:
        if (mask)
            flow_return(warp, group, mask);
        else
            group->op++;
        return true;
    case PTX_FLOW_EXIT:
        warp->exited |= mask;
        if (mask == group->mask) {
            group_remove(warp, group);
            return false;
        }
        group->mask &= ~mask;
        group->op++;
        return true;
    case PTX_FLOW_WARP:
    case PTX_FLOW_ALIGNED:
    case PTX_FLOW_BARRIER:
    case PTX_FLOW_CLUSTER:
        if (!mask) {
            group->op++;
            return true;
        }
        leave_behind(warp, group, mask);
        if (op->flow == PTX_FLOW_BARRIER)
            group->state = PTX_AT_BARRIER;
        else if (op->flow == PTX_FLOW_CLUSTER)
            group->state = PTX_AT_CLUSTER;
        else
            flow_sync(warp, group, op);
        return false;
    }
    return true;
}

static uint32_t ready_groups(const ptx_warp *warp) {
    uint32_t ready = 0;
    for (uint32_t i = 0; i < warp->group_count; i++)
        ready += warp->groups[i].state == PTX_READY;
    return ready;
}

bool ptx_warp_run(ptx_warp *warp, uint32_t quantum) {
    ptx_block *block = warp->block;
    if (block->launch->heap) block->region = (sim_region){0}; /* other blocks free, too */
    if (warp->group_count > 1) groups_join(warp);
    uint32_t ready = ready_groups(warp);
    if (!ready) {
        /* Lanes that waited for one that has exited since may go on. */
        for (uint32_t i = 0; i < warp->group_count && !ready; i++) {
            ptx_group *waiting = &warp->groups[i];
            if (waiting->state != PTX_AT_WARP) continue;
            flow_warp(warp, waiting, &waiting->frame->code->ops[waiting->op]);
            ready = ready_groups(warp);
        }
        return ready != 0;
    }
    uint32_t choice = ready > 1 ? (uint32_t)(sim_random(&block->random) % ready) : 0;
    ptx_group *group = warp->groups;
    while (group->state != PTX_READY || choice--)
        group++;
    uint64_t before = block->instructions;
    uint32_t polls = block->polls;
    ptx_frame *frame = NULL;
    warp->group = group;
    while (quantum--) {
        if (frame != group->frame) {
            frame = group->frame;
            warp->frame = frame->bytes;
        }
        const ptx_op *op = &frame->code->ops[group->op];
        uint32_t mask = guard_mask(warp, op, group->mask);
        if (frame->undefined && !ptx_undefined_step(warp, op, mask)) break;
        if (op->touched && mask && !ptx_wgmma_touch(warp, op)) break;
        block->instructions++;
        block->counters.instructions++;
        block->counters.lane_instructions += mask == ~0u ? PTX_WARP : (uint32_t)__builtin_popcount(mask);
        if (op->flow == PTX_FLOW_NEXT) {
            if (mask) op->run(warp, op, mask);
            group->op++;
            if (op->polls && warp->asks) quantum = 0;
        } else if (!step_flow(warp, group, op, mask)) {
            break;
        }
        if (block->report->kind != SIM_FAULT_NONE) break;
    }
    if (block->polls == polls) warp->unasked += block->instructions - before;
    return true;
}
