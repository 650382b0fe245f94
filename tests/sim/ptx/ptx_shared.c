/* Accesses to shared memory, with every check: bounds, what was never written or is in flight, races. */
#include "tests/sim/ptx/ptx_shared.h"

static bool shared_races(const ptx_warp *warp, const ptx_shadow *shadow, uint32_t thread, bool write) {
    if (shadow->epoch != warp->block->epoch) return false;
    uint16_t me = (uint16_t)(thread + 1);
    uint16_t sync = (uint16_t)warp->syncs;
    if (shadow->writer && shadow->writer != me) {
        bool same_warp = (uint32_t)(shadow->writer - 1) / PTX_WARP == warp->number;
        if (!same_warp || shadow->writer_sync == sync) return true;
    }
    if (!write || !shadow->readers || (shadow->readers == 1 && shadow->reader == me)) return false;
    if (shadow->readers == 3) return true;
    bool same_warp = (uint32_t)(shadow->reader - 1) / PTX_WARP == warp->number;
    return !same_warp || shadow->reader_sync == sync;
}

static void shared_touch(const ptx_warp *warp, ptx_shadow *shadow, uint32_t thread, bool write) {
    uint16_t me = (uint16_t)(thread + 1);
    if (shadow->epoch != warp->block->epoch)
        *shadow = (ptx_shadow){.epoch = warp->block->epoch, .written = shadow->written};
    if (write) {
        shadow->writer = me;
        shadow->writer_sync = (uint16_t)warp->syncs;
        shadow->written = true;
        return;
    }
    bool same_warp = shadow->readers && (uint32_t)(shadow->reader - 1) / PTX_WARP == warp->number;
    shadow->readers = !shadow->readers                     ? 1
                      : shadow->readers == 3 || !same_warp ? 3
                      : shadow->reader == me               ? shadow->readers
                                                           : 2;
    shadow->reader = me;
    shadow->reader_sync = (uint16_t)warp->syncs;
}

static bool in_bounds(ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t address, uint32_t size) {
    uint32_t has = warp->block->shared_bytes;
    if (address < has && size <= has - address) return true;
    ptx_fault(warp, op, SIM_FAULT_OUT_OF_BOUNDS, lane, address, "%u bytes of shared memory, which has %u", size, has);
    return false;
}

/* Whether a thread may touch a byte now. An atomic (it reads and writes) does not race with other atomics. */
static bool check_byte(ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t address, bool read, bool write) {
    const ptx_shadow *shadow = &warp->block->shadow[address];
    uint32_t thread = warp->number * PTX_WARP + lane;
    if (shadow->in_flight) {
        ptx_fault(warp, op, SIM_FAULT_IN_FLIGHT, lane, address, "thread %u %s what thread %u copies", thread,
                  write ? "writes" : "reads", (uint32_t)shadow->writer - 1);
        return false;
    }
    if (read && !shadow->written) {
        ptx_fault(warp, op, SIM_FAULT_UNINITIALISED, lane, address, "shared memory");
        return false;
    }
    if (!(read && write) && shared_races(warp, shadow, thread, write)) {
        ptx_fault(warp, op, SIM_FAULT_RACE, lane, address, "thread %u %s what thread %u %s", thread,
                  write ? "writes" : "reads", (uint32_t)(shadow->writer ? shadow->writer : shadow->reader) - 1,
                  shadow->writer ? "wrote" : "read");
        return false;
    }
    return true;
}

uint8_t *ptx_shared_bytes(ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t address, uint32_t size, bool read,
                          bool write) {
    if (!in_bounds(warp, op, lane, address, size)) return NULL;
    for (uint32_t i = 0; i < size; i++) {
        ptx_shadow *shadow = &warp->block->shadow[address + i];
        if (!check_byte(warp, op, lane, address + i, read, write)) return NULL;
        if (!(read && write)) shared_touch(warp, shadow, warp->number * PTX_WARP + lane, write);
        shadow->written |= write;
    }
    return warp->block->shared + address;
}

bool ptx_shared_send(ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t address, uint32_t size) {
    if (!in_bounds(warp, op, lane, address, size)) return false;
    for (uint32_t i = 0; i < size; i++) {
        ptx_shadow *shadow = &warp->block->shadow[address + i];
        if (!check_byte(warp, op, lane, address + i, false, true)) return false;
        shadow->writer = (uint16_t)(warp->number * PTX_WARP + lane + 1);
        shadow->in_flight = true;
    }
    return true;
}

uint8_t *ptx_shared_land(ptx_warp *warp, uint32_t lane, uint64_t address, uint32_t size) {
    for (uint32_t i = 0; i < size; i++) {
        ptx_shadow *shadow = &warp->block->shadow[address + i];
        shared_touch(warp, shadow, warp->number * PTX_WARP + lane, true);
        shadow->in_flight = false;
    }
    return warp->block->shared + address;
}
