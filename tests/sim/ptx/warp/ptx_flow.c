/* Branches, calls, returns, barriers and fences. The executor moves groups; here their statements get their meaning. */
#include "tests/sim/ptx/decode/ptx_decode.h"
#include "tests/sim/ptx/memory/ptx_shared.h"
#include "tests/sim/ptx/warp/ptx_lanes.h"
#include <string.h>

static uint32_t label_of(ptx_decoder *decoder, const ptx_operand *operand) {
    if (operand->kind != PTX_OPERAND_LABEL) ptx_refuse(decoder, "its target must be a label");
    return operand->number;
}

/* An index beyond the list is undefined; here it is an error. */
static void run_indexed(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    const uint32_t *index = PTX_ARRAY(uint32_t, op->s[0]);
    PTX_LANES({
        warp->targets[l] = index[l] < op->count ? op->list[index[l]] : warp->group->op + 1;
        if (index[l] >= op->count)
            ptx_fault(warp, op, SIM_FAULT_ILLEGAL, (uint32_t)l, index[l], "branch index %u of %u", index[l], op->count);
    });
}

void ptx_decode_branch(ptx_decoder *decoder) {
    ptx_op *op = decoder->op;
    const ptx_operand *operands = decoder->statement->operands;
    ptx_take(decoder, PTX_M_UNI);
    if (strcmp(decoder->statement->opcode, "bra") == 0) {
        ptx_expect_operands(decoder, 1, 1);
        op->flow = PTX_FLOW_BRANCH;
        op->target = label_of(decoder, &operands[0]);
        return;
    }
    if (!ptx_take(decoder, PTX_M_IDX)) ptx_refuse(decoder, "only brx.idx is known");
    ptx_expect_operands(decoder, 2, 2);
    if (operands[1].kind != PTX_OPERAND_TARGETS) ptx_refuse(decoder, "its targets must be a list");
    op->flow = PTX_FLOW_INDEXED;
    op->run = run_indexed;
    op->s[0] = ptx_source(decoder, &operands[0], PTX_u32);
    op->count = operands[1].element_count;
    uint32_t *list = ptx_arena_take(decoder->program->module->arena, op->count * sizeof *list);
    for (uint32_t i = 0; i < op->count; i++)
        list[i] = label_of(decoder, &operands[1].elements[i]);
    op->list = list;
}

/* ---- Calls ---- */

/* The offsets of a call's results or arguments, which are .param variables of the caller. */
static uint32_t add_variables(ptx_decoder *decoder, const ptx_operand *operand, const ptx_variable *wanted,
                              uint32_t *list) {
    uint32_t count = 0;
    for (; wanted; wanted = wanted->next, count++) {
        if (!operand || count >= operand->element_count) ptx_refuse(decoder, "%s is not given", wanted->name);
        const ptx_operand *given = &operand->elements[count];
        if (given->kind != PTX_OPERAND_VARIABLE || given->variable->space != PTX_SPACE_PARAM)
            ptx_refuse(decoder, "%s must be given by a .param variable", wanted->name);
        if (given->variable->size != wanted->size) ptx_refuse(decoder, "%s has another size", wanted->name);
        list[count] = (uint32_t)given->variable->offset;
    }
    if (operand && count != operand->element_count) ptx_refuse(decoder, "more is given than the function takes");
    return count;
}

/* Decodes the function to call, or the register with its address; returns what it takes and gives. */
static const ptx_function *decode_callee(ptx_decoder *decoder, const ptx_operand *callee,
                                         const ptx_operand *signature) {
    ptx_op *op = decoder->op;
    if (callee->kind == PTX_OPERAND_FUNCTION && !signature) {
        if (callee->function->is_defined) op->target = ptx_code_of(decoder, callee->function)->number;
        return callee->function;
    }
    if (callee->kind != PTX_OPERAND_REGISTER) ptx_refuse(decoder, "it calls neither a function nor a register");
    if (signature && signature->kind == PTX_OPERAND_TARGETS) signature = &signature->elements[0];
    if (!signature || !signature->function) ptx_refuse(decoder, "a call through a register needs a prototype");
    op->target = PTX_NOWHERE;
    op->s[0] = ptx_source(decoder, callee, PTX_u64);
    op->signature = signature->function;
    return signature->function;
}

/* call (results), function, (arguments), prototype; each but the function may be left out. */
void ptx_decode_call(ptx_decoder *decoder) {
    ptx_op *op = decoder->op;
    const ptx_statement *statement = decoder->statement;
    ptx_take(decoder, PTX_M_UNI);
    const ptx_operand *at = statement->operands, *end = at + statement->operand_count;
    const ptx_operand *results = at < end && at->kind == PTX_OPERAND_LIST ? at++ : NULL;
    const ptx_operand *callee = at < end ? at++ : NULL;
    const ptx_operand *arguments = at < end && at->kind == PTX_OPERAND_LIST ? at++ : NULL;
    const ptx_operand *signature = at < end ? at++ : NULL;
    if (!callee || at < end) ptx_refuse(decoder, "it is (results), function, (arguments), prototype");
    const ptx_function *function = decode_callee(decoder, callee, signature);
    uint32_t room = (results ? results->element_count : 0) + (arguments ? arguments->element_count : 0);
    uint32_t *list = ptx_arena_take(decoder->program->module->arena, (room + 1) * sizeof *list);
    op->flow = PTX_FLOW_CALL;
    op->mode = add_variables(decoder, results, function->results, list);
    op->count = add_variables(decoder, arguments, function->parameters, list + op->mode);
    op->list = list;
    if (callee->kind == PTX_OPERAND_FUNCTION && !function->is_defined) ptx_decode_system_call(decoder, function);
}

static void run_trap(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    ptx_fault(warp, op, SIM_FAULT_TRAP, (uint32_t)__builtin_ctz(mask), 0, "the kernel trapped");
}

void ptx_decode_exit(ptx_decoder *decoder) {
    ptx_op *op = decoder->op;
    const char *opcode = decoder->statement->opcode;
    ptx_take(decoder, PTX_M_UNI);
    ptx_expect_types(decoder, 0);
    ptx_expect_operands(decoder, 0, 0);
    if (strcmp(opcode, "trap") == 0 || strcmp(opcode, "brkpt") == 0) {
        op->run = run_trap;
        return;
    }
    bool returns = strcmp(opcode, "ret") == 0 && !decoder->code->function->is_entry;
    op->flow = returns ? PTX_FLOW_RETURN : PTX_FLOW_EXIT;
}

/* ---- Barriers ---- */

/* bar.warp.sync members; bar{.sync,.arrive} number {, threads}; bar.red.op.type d, number {, threads}, predicate. */
void ptx_decode_barrier(ptx_decoder *decoder) {
    ptx_op *op = decoder->op;
    const ptx_statement *statement = decoder->statement;
    const ptx_operand *operands = statement->operands;
    if (ptx_take(decoder, PTX_M_CLUSTER)) {
        if (strcmp(statement->opcode, "barrier") != 0) ptx_refuse(decoder, "a barrier of clusters is barrier.cluster");
        ptx_decode_cluster_barrier(decoder);
        return;
    }
    if (ptx_take(decoder, PTX_M_CTA)) ptx_need(decoder, 0, 78);
    bool aligned = ptx_take(decoder, PTX_M_ALIGNED) || strcmp(statement->opcode, "bar") == 0;
    if (aligned) op->flags |= PTX_F_ALIGNED;
    if (ptx_take(decoder, PTX_M_WARP)) {
        ptx_take(decoder, PTX_M_SYNC);
        ptx_expect_operands(decoder, 1, 1);
        op->flow = PTX_FLOW_WARP;
        op->run = ptx_run_nothing;
        op->s[0] = ptx_source(decoder, &operands[0], PTX_b32);
        return;
    }
    static const int kinds[] = {PTX_M_SYNC, PTX_M_ARRIVE, PTX_M_RED};
    static const int reductions[] = {PTX_M_POPC, PTX_M_AND, PTX_M_OR};
    int kind = ptx_take_one(decoder, kinds, 3);
    if (kind < 0) ptx_refuse(decoder, "it neither syncs nor arrives");
    op->flow = PTX_FLOW_BARRIER;
    op->s[1] = op->s[2] = PTX_NOWHERE;
    uint32_t first = 0, count = statement->operand_count;
    if (kind == 2) {
        int reduction = ptx_take_one(decoder, reductions, 3);
        if (reduction < 0) ptx_refuse(decoder, "it has no reduction");
        ptx_expect_types(decoder, 1);
        ptx_expect_operands(decoder, 3, 4);
        if (ptx_type_at(decoder, 0) != (reduction == 0 ? PTX_u32 : PTX_pred)) ptx_refuse(decoder, "another type");
        op->mode = (uint32_t)reduction + 1;
        op->d[0] = ptx_result(decoder, &operands[0], ptx_type_at(decoder, 0));
        op->s[2] = ptx_predicate(decoder, &operands[count - 1], &op->negated[2]);
        first = 1;
        count--;
    } else {
        ptx_expect_operands(decoder, 1, 2);
        op->mode = kind == 1 ? 4 : 0;
        if (kind == 1 && count != 2) ptx_refuse(decoder, "it needs a number of threads");
    }
    if (operands[first].kind == PTX_OPERAND_INTEGER && (uint64_t)operands[first].value >= PTX_BARRIERS)
        ptx_refuse(decoder, "there are barriers 0 to %d", PTX_BARRIERS - 1);
    if (count > first + 1 && operands[first + 1].kind == PTX_OPERAND_INTEGER && operands[first + 1].value % PTX_WARP)
        ptx_refuse(decoder, "its threads must be whole warps");
    op->s[0] = ptx_source(decoder, &operands[first], PTX_u32);
    if (count > first + 1) op->s[1] = ptx_source(decoder, &operands[first + 1], PTX_u32);
}

static void run_fence_proxy(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    (void)op;
    warp->moment++;
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        warp->proxied[__builtin_ctz(rest)].moment = warp->moment;
        warp->proxied[__builtin_ctz(rest)].epoch = warp->block->epoch;
    }
}

static void run_fence(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    (void)op;
    ptx_flag_fence(warp, mask);
}

/* Memory is sequentially consistent here, so that a fence has nothing to do but for what comes behind it in a cluster:
 * relaxed arrivals at its barrier, and asynchronous operations. membar.{cta,gl,sys}; fence{.sc, .acq_rel,
 * .acquire, .release}.{cta,cluster,gpu,sys}; either .proxy.alias. */
void ptx_decode_fence(ptx_decoder *decoder) {
    static const int levels[] = {PTX_M_CTA, PTX_M_GL, PTX_M_SYS};
    static const int scopes[] = {PTX_M_CTA, PTX_M_CLUSTER, PTX_M_GPU, PTX_M_SYS};
    static const int orders[] = {PTX_M_SC, PTX_M_ACQ_REL, PTX_M_ACQUIRE, PTX_M_RELEASE};
    bool fence = strcmp(decoder->statement->opcode, "fence") == 0;
    ptx_expect_types(decoder, 0);
    ptx_expect_operands(decoder, 0, 0);
    decoder->op->run = ptx_run_nothing;
    if (ptx_take(decoder, PTX_M_PROXY)) {
        static const int spaces[] = {PTX_M_GLOBAL, PTX_M_SHARED_CTA, PTX_M_SHARED_CLUSTER};
        if (ptx_take(decoder, PTX_M_ASYNC)) {
            ptx_need(decoder, 90, 80);
            ptx_take_one(decoder, spaces, 3);
            decoder->op->run = run_fence_proxy;
            return;
        }
        if (!ptx_take(decoder, PTX_M_ALIAS)) ptx_refuse(decoder, "only .proxy.alias and .proxy.async are simulated");
        ptx_need(decoder, 70, 75);
        return;
    }
    decoder->op->run = run_fence;
    if (fence && ptx_take(decoder, PTX_M_MBARRIER_INIT)) {
        ptx_need(decoder, 90, 80);
        if (!ptx_take(decoder, PTX_M_RELEASE) || !ptx_take(decoder, PTX_M_CLUSTER))
            ptx_refuse(decoder, ".mbarrier_init goes with .release.cluster");
        return;
    }
    int scope = fence ? ptx_take_one(decoder, scopes, 4) : ptx_take_one(decoder, levels, 3);
    if (scope < 0) ptx_refuse(decoder, "it has no scope");
    const int order = fence ? ptx_take_one(decoder, orders, 4) : 0;
    if (scope == 0 || order == 2) decoder->op->run = ptx_run_nothing; /* it hands on nothing to other blocks */
    if (fence && scope == 1) ptx_need(decoder, 90, 78);
}
