/* The local memory of each lane: a stack of frames from its start up, what alloca takes from its end down, and a bit
 * for each byte that was written. */
#include "tests/sim/ptx/warp/ptx_warp.h"
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

/* The same of all bytes of a range, whole bytes of the bits at a time. */
static void range_set(uint8_t *bits, uint32_t from, uint32_t to, bool value) {
    if (value && from % 8 + (to - from) <= 8) {
        bits[from / 8] |= (uint8_t)(((1u << (to - from)) - 1) << from % 8);
        return;
    }
    for (; from < to && from % 8; from++)
        bit_set(bits, from, value);
    memset(bits + from / 8, value ? 0xff : 0, (to - from) / 8);
    for (from += (to - from) / 8 * 8; from < to; from++)
        bit_set(bits, from, value);
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
    if (write) range_set(written_of(warp, lane), (uint32_t)address, (uint32_t)address + size, true);
    return warp->local + lane * PTX_LOCAL_BYTES + address;
}

bool ptx_local_undefined(const ptx_warp *warp, uint32_t lane, uint64_t address, uint32_t size, uint8_t *out_bits) {
    const uint8_t *written = written_of(warp, lane);
    uint32_t from = (uint32_t)(address & ~PTX_WINDOW_MASK), whole = size < 8 ? (1u << size) - 1 : 0xff, i = 0;
    /* Its alignment is its size, mostly, so that the bits of as many as 8 bytes stand in one. */
    while (from % size == 0 && i < size && ((uint32_t)written[(from + i) / 8] >> from % 8 & whole) == whole)
        i += 8;
    if (i >= size) return false;
    for (i = 0; i < size; i++)
        out_bits[i] = bit(written, from + i) ? 0 : 0xff;
    return true;
}

void ptx_local_undefine(ptx_warp *warp, uint32_t lane, uint64_t address, uint32_t size, const uint8_t *bits) {
    for (uint32_t i = 0; i < size; i++)
        if (bits[i]) bit_set(written_of(warp, lane), (uint32_t)(address & ~PTX_WINDOW_MASK) + i, false);
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
        range_set(written_of(warp, lane), base, base + size, false);
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
    range_set(written_of(warp, lane), warp->stack[lane], stack, false);
    return true;
}

void ptx_local_copy(ptx_warp *warp, uint32_t mask, uint32_t to, uint32_t from, uint32_t size) {
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest);
        uint8_t *bytes = warp->local + lane * PTX_LOCAL_BYTES, *bits = written_of(warp, lane);
        memmove(bytes + to, bytes + from, size);
        for (uint32_t i = 0, count; i < size; i += count) {
            uint32_t a = (from + i) % 8, b = (to + i) % 8; /* as many bits as stand in a byte on either side */
            count = 8 - (a > b ? a : b) < size - i ? 8 - (a > b ? a : b) : size - i;
            uint32_t ones = (1u << count) - 1, copied = (uint32_t)bits[(from + i) / 8] >> a & ones;
            bits[(to + i) / 8] = (uint8_t)((bits[(to + i) / 8] & ~(ones << b)) | copied << b);
        }
    }
}
