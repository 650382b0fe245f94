/* Calls of functions that the driver provides: what assert(), printf(), malloc() and free() make in CUDA's device code.
 */
#include "tests/sim/ptx/decode/ptx_decode.h"
#include "tests/sim/ptx/memory/ptx_heap.h"
#include "tests/sim/ptx/warp/ptx_lanes.h"
#include "tests/sim/ptx/warp/ptx_print.h"
#include <stdio.h>
#include <string.h>

static uint64_t argument(ptx_warp *warp, const ptx_op *op, uint32_t lane, uint32_t number, uint32_t size) {
    uint64_t value = 0;
    uint32_t at = warp->group->frame->local_base + op->list[op->mode + number];
    const uint8_t *bytes = ptx_local_bytes(warp, op, lane, at, size, false);
    if (bytes) memcpy(&value, bytes, size);
    return value;
}

static void give_result(ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t value, uint32_t size) {
    if (!op->mode) return; /* nobody wants it */
    uint8_t *bytes = ptx_local_bytes(warp, op, lane, warp->group->frame->local_base + op->list[0], size, true);
    if (bytes) memcpy(bytes, &value, size);
}

/* ---- __assertfail: pointers to texts but for the line and the size of a character ---- */

enum { MESSAGE, FILE_NAME, LINE };

static void run_assert(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    char message[80], file[60];
    uint32_t lane = (uint32_t)__builtin_ctz(mask);
    ptx_text_read(warp, argument(warp, op, lane, MESSAGE, 8), message, sizeof message);
    ptx_text_read(warp, argument(warp, op, lane, FILE_NAME, 8), file, sizeof file);
    ptx_fault(warp, op, SIM_FAULT_ASSERT, lane, 0, "%s, line %u: %s", file, (uint32_t)argument(warp, op, lane, LINE, 4),
              message);
}

/* ---- vprintf: format, arguments ---- */

static void run_print(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    PTX_LANES({
        uint32_t lane = (uint32_t)l;
        int32_t count = ptx_print(warp, op, lane, argument(warp, op, lane, 0, 8), argument(warp, op, lane, 1, 8));
        if (warp->block->report->kind != SIM_FAULT_NONE) return;
        give_result(warp, op, lane, (uint32_t)count, 4);
    });
}

/* ---- malloc, free ---- */

static void run_allocate(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    PTX_LANES({
        uint32_t lane = (uint32_t)l;
        give_result(warp, op, lane, ptx_heap_take(warp->block->launch->heap, argument(warp, op, lane, 0, 8)), 8);
    });
}

static void run_free(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    warp->block->region = (sim_region){0};
    PTX_LANES({
        uint64_t address = argument(warp, op, (uint32_t)l, 0, 8);
        if (address && !ptx_heap_give(warp->block->launch->heap, address)) {
            ptx_fault(warp, op, SIM_FAULT_OUT_OF_BOUNDS, (uint32_t)l, address, "free of what malloc did not give");
            return;
        }
    });
}

/* ---- Decoding ---- */

/* Whether variables have these sizes, a digit each. */
static bool has_sizes(const ptx_variable *variables, const char *sizes) {
    for (; variables && *sizes; sizes++, variables = variables->next)
        if (variables->size != (uint64_t)(*sizes - '0')) return false;
    return !variables && !*sizes;
}

void ptx_decode_system_call(ptx_decoder *decoder, const ptx_function *function) {
    static const struct {
        const char *name, *results, *parameters;
        ptx_run run;
    } calls[] = {{"__assertfail", "", "88488", run_assert},
                 {"vprintf", "4", "88", run_print},
                 {"malloc", "8", "8", run_allocate},
                 {"free", "", "8", run_free}};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (strcmp(function->name, calls[i].name) != 0) continue;
        if (!has_sizes(function->results, calls[i].results) || !has_sizes(function->parameters, calls[i].parameters))
            ptx_refuse(decoder, "%s takes or gives something else", function->name);
        decoder->program->uses_heap |= calls[i].run == run_allocate || calls[i].run == run_free;
        decoder->op->flow = PTX_FLOW_NEXT;
        decoder->op->run = calls[i].run;
        return;
    }
    ptx_refuse(decoder, "%s has no body, and this system call is not simulated", function->name);
}
