/* The local memory of each lane: a stack of frames from its start up, what alloca takes from its end down, and a bit
 * for each byte that was written. */
#include "tests/sim/ptx/ptx_warp.h"
#include <stdlib.h>
#include <string.h>

enum { BITS = PTX_LOCAL_BYTES / 8 };

/* Behind the bytes of all lanes. */
static uint8_t *written_of(const ptx_warp *warp, uint32_t lane) {
    return warp->local + PTX_WARP * PTX_LOCAL_BYTES + lane * BITS;
}

static bool bit(const uint8_t *bits, uint32_t at) {
    return bits[at / 8] >> at % 8 & 1;
}

static void bit_set(uint8_t *bits, uint32_t at, bool value) {
    bits[at / 8] = (uint8_t)((bits[at / 8] & ~(1u << at % 8)) | (uint32_t)value << at % 8);
}

static bool ready(ptx_warp *warp) {
    if (!warp->local) warp->local = calloc(PTX_WARP, PTX_LOCAL_BYTES + BITS);
    return warp->local;
}

void ptx_local_end(ptx_warp *warp) {
    free(warp->local);
    warp->local = NULL;
}

uint8_t *ptx_local_bytes(ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t address, uint32_t size, bool write) {
    const ptx_frame *frame = warp->group->frame;
    uint32_t frames = frame->local_base + frame->code->local_bytes;
    if (!ready(warp)) return NULL;
    if (frames > warp->stack[lane]) {
        ptx_fault(warp, op, SIM_FAULT_STACK, lane, address, "%u bytes of %u", frames, warp->stack[lane]);
        return NULL;
    }
    address &= ~PTX_WINDOW_MASK;
    bool in_frames = address < frames && size <= frames - address;
    bool on_stack = address >= warp->stack[lane] && address < PTX_LOCAL_BYTES && size <= PTX_LOCAL_BYTES - address;
    if (!in_frames && !on_stack) {
        ptx_fault(warp, op, SIM_FAULT_OUT_OF_BOUNDS, lane, address, "%u bytes of local memory", size);
        return NULL;
    }
    for (uint32_t i = 0; write && i < size; i++)
        bit_set(written_of(warp, lane), (uint32_t)address + i, true);
    return warp->local + lane * PTX_LOCAL_BYTES + address;
}

bool ptx_local_undefined(const ptx_warp *warp, uint32_t lane, uint64_t address, uint32_t size, uint8_t *out_bits) {
    const uint8_t *written = written_of(warp, lane);
    bool any = false;
    for (uint32_t i = 0; i < size; i++) {
        bool defined = bit(written, (uint32_t)(address & ~PTX_WINDOW_MASK) + i);
        out_bits[i] = defined ? 0 : 0xff;
        any |= !defined;
    }
    return any;
}

void ptx_local_undefine(ptx_warp *warp, uint32_t lane, uint64_t address, uint32_t size, const uint8_t *bits) {
    for (uint32_t i = 0; i < size; i++)
        if (bits[i]) bit_set(written_of(warp, lane), (uint32_t)(address & ~PTX_WINDOW_MASK) + i, false);
}

static void forget(ptx_warp *warp, uint32_t lane, uint32_t from, uint32_t to) {
    uint8_t *bits = written_of(warp, lane);
    for (; from < to; from++)
        bit_set(bits, from, false);
}

bool ptx_local_enter(ptx_warp *warp, const ptx_op *op, uint32_t mask, uint32_t base, uint32_t size) {
    if (!ready(warp)) return false;
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest);
        if (base + size > warp->stack[lane]) {
            ptx_fault(warp, op, SIM_FAULT_STACK, lane, base, "a call needs %u bytes of %u", size,
                      warp->stack[lane] - base);
            return false;
        }
        forget(warp, lane, base, base + size);
    }
    return true;
}

bool ptx_local_take(ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t size, uint32_t align) {
    const ptx_frame *frame = warp->group->frame;
    uint32_t frames = frame->local_base + frame->code->local_bytes, stack = warp->stack[lane];
    if (!ready(warp)) return false;
    if (stack < frames || size > stack - frames || (stack - (uint32_t)size) / align * align < frames) {
        ptx_fault(warp, op, SIM_FAULT_STACK, lane, stack, "%llu bytes where %u are left", (unsigned long long)size,
                  stack < frames ? 0 : stack - frames);
        return false;
    }
    warp->stack[lane] = (stack - (uint32_t)size) / align * align;
    forget(warp, lane, warp->stack[lane], stack);
    return true;
}

void ptx_local_copy(ptx_warp *warp, uint32_t mask, uint32_t to, uint32_t from, uint32_t size) {
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest);
        uint8_t *bytes = warp->local + lane * PTX_LOCAL_BYTES, *bits = written_of(warp, lane);
        memmove(bytes + to, bytes + from, size);
        for (uint32_t i = 0; i < size; i++)
            bit_set(bits, to + i, bit(bits, from + i));
    }
}
