/* Calls of functions that the driver provides: what assert() makes. */
#include "tests/sim/ptx/ptx_decode.h"
#include "tests/sim/ptx/ptx_warp.h"
#include <string.h>

/* Of __assertfail: pointers to texts but for the line and the size of a character. */
enum { MESSAGE, FILE_NAME, LINE, FUNCTION, CHARACTER, ASSERT_ARGUMENTS };

static uint64_t argument(const ptx_warp *warp, const ptx_op *op, uint32_t lane, uint32_t number) {
    uint64_t value = 0;
    const uint8_t *local = warp->local + lane * PTX_LOCAL_BYTES + warp->group->frame->local_base;
    memcpy(&value, local + op->list[number], number == LINE ? 4 : 8);
    return value;
}

/* The text in global memory at an address, as much of it as there is room for. */
static void text_read(const ptx_warp *warp, uint64_t address, char *text, size_t size) {
    const ptx_launch *launch = warp->block->launch;
    sim_region region;
    size_t length = 0;
    if (launch->find(launch->find_context, address, &region)) {
        const char *from = (const char *)(uintptr_t)address;
        uint64_t left = region.size - (address - region.base);
        while (length + 1 < size && length < left && from[length])
            length++;
        memcpy(text, from, length);
    }
    text[length] = 0;
}

static void run_assert(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    char message[80], file[60];
    uint32_t lane = (uint32_t)__builtin_ctz(mask);
    text_read(warp, argument(warp, op, lane, MESSAGE), message, sizeof message);
    text_read(warp, argument(warp, op, lane, FILE_NAME), file, sizeof file);
    ptx_fault(warp, op, SIM_FAULT_ASSERT, lane, 0, "%s, line %u: %s", file, (uint32_t)argument(warp, op, lane, LINE),
              message);
}

void ptx_decode_system_call(ptx_decoder *decoder, const ptx_function *function) {
    if (strcmp(function->name, "__assertfail") != 0 || decoder->op->count != ASSERT_ARGUMENTS)
        ptx_refuse(decoder, "%s has no body, and this system call is not simulated", function->name);
    decoder->op->flow = PTX_FLOW_NEXT;
    decoder->op->run = run_assert;
}
