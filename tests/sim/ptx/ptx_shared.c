/* Accesses to shared memory, with every check: bounds, what was never written or is in flight, races. */
#include "tests/sim/ptx/ptx_shared.h"
#include "tests/sim/ptx/ptx_undefined.h"

/* Whether others than the thread are among them that it does not come after. */
static bool touched_by_others(const ptx_warp *warp, const ptx_touches *touches, uint16_t thread) {
    if (!touches->count || (touches->count == 1 && touches->thread == thread)) return false;
    bool same_warp = touches->count < 3 && touches->thread / PTX_WARP == warp->number;
    return !same_warp || touches->sync == (uint16_t)warp->syncs;
}

/* Returns whether there were none that still count for the warp. */
static inline bool touches_add(const ptx_warp *warp, ptx_touches *touches, uint16_t thread) {
    bool same_warp = touches->count < 3 && touches->thread / PTX_WARP == warp->number;
    bool first = !touches->count || (same_warp && touches->sync != (uint16_t)warp->syncs);
    if (first)
        touches->count = 1;
    else if (!same_warp)
        touches->count = 3;
    else if (touches->thread != thread)
        touches->count = 2;
    touches->thread = thread;
    touches->sync = (uint16_t)warp->syncs;
    return first;
}

static bool is_strong(const ptx_op *op) {
    return op->flags & PTX_F_STRONG;
}

/* What the access must not meet: the writes of others and, unless it only reads, their reads; but for those that are
 * all strong, if it is. NULL: none. */
static const ptx_touches *conflict(const ptx_warp *warp, const ptx_op *op, const ptx_shadow *shadow, uint16_t thread,
                                   bool write) {
    if (shadow->epoch < warp->since) return NULL;
    bool writes_may = is_strong(op) && shadow->writes.strong, reads_may = is_strong(op) && shadow->reads.strong;
    if (!writes_may && touched_by_others(warp, &shadow->writes, thread)) return &shadow->writes;
    return write && !reads_may && touched_by_others(warp, &shadow->reads, thread) ? &shadow->reads : NULL;
}

static inline void touch(const ptx_warp *warp, ptx_shadow *shadow, uint16_t thread, bool write, bool strong) {
    if (shadow->epoch != warp->block->epoch)
        *shadow = (ptx_shadow){.epoch = warp->block->epoch, .written = shadow->written};
    ptx_touches *touches = write ? &shadow->writes : &shadow->reads;
    bool first = touches_add(warp, touches, thread);
    touches->strong = strong && (first || touches->strong);
    shadow->written |= write;
}

/* The shadow of the bytes from address on, of at most size, and how many they are: a word, or a byte of one that this
 * or an earlier access touches in part. */
static inline ptx_shadow *shadow_at(ptx_block *block, uint64_t address, uint64_t size, uint32_t *out_size) {
    ptx_shadow *word = &block->shadow[address / 4], *bytes = block->shadow + ptx_shadow_words(block) + address / 4 * 4;
    bool whole = address % 4 == 0 && size >= 4;
    *out_size = 4;
    if (!word->split && whole) return word;
    for (uint32_t i = 0; i < 4 && !word->split; i++)
        bytes[i] = *word;
    word->split = true;
    *out_size = 1;
    return &bytes[address % 4];
}

static bool in_bounds(ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t address, uint32_t size) {
    uint32_t has = warp->block->shared_bytes, room = warp->block->shared_room;
    if (address < has && size <= has - address) return true;
    if (room > has && address >= ptx_shared_total(warp->block) && address < room && size <= room - address) return true;
    ptx_fault(warp, op, SIM_FAULT_OUT_OF_BOUNDS, lane, address, "%u bytes of shared memory, which has %u", size, has);
    return false;
}

static uint16_t thread_of(const ptx_warp *warp, uint32_t lane) {
    return (uint16_t)(warp->number * PTX_WARP + lane);
}

/* Whether a read meets nothing that could be wrong, which is most of what kernels do to shared memory. */
static inline bool is_quiet(const ptx_warp *warp, const ptx_shadow *shadow) {
    return shadow->written && !shadow->in_flight && (shadow->epoch < warp->since || !shadow->writes.count);
}

/* Whether a thread may touch what is at address now. An atomic reads and writes. */
static bool check(ptx_warp *warp, const ptx_op *op, const ptx_shadow *shadow, uint32_t lane, uint64_t address,
                  bool read, bool write) {
    uint16_t thread = thread_of(warp, lane);
    if (shadow->in_flight) {
        ptx_fault(warp, op, SIM_FAULT_IN_FLIGHT, lane, address, "thread %u %s what thread %u copies", thread,
                  write ? "writes" : "reads", shadow->writes.thread);
        return false;
    }
    if (read && !shadow->written && ptx_undefined_loads(op)) {
        warp->unwritten |= 1u << lane;
    } else if (read && !shadow->written) {
        ptx_fault(warp, op, SIM_FAULT_UNINITIALISED, lane, address, "shared memory");
        return false;
    }
    const ptx_touches *others = conflict(warp, op, shadow, thread, write);
    if (others) {
        ptx_fault(warp, op, SIM_FAULT_RACE, lane, address, "thread %u %s what thread %u %s", thread,
                  write ? "writes" : "reads", others->thread, others == &shadow->reads ? "read" : "wrote");
        return false;
    }
    return true;
}

uint8_t *ptx_shared_bytes(ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t address, uint32_t size, bool read,
                          bool write) {
    if (!in_bounds(warp, op, lane, address, size)) return NULL;
    if (op->flags & PTX_F_ACQUIRE) ptx_flag_acquire(warp, address);
    /* Of its own the system's code knows what was written and who may touch it: lanes write the same there together. */
    uint32_t checked = address < warp->block->shared_bytes ? size : 0;
    for (uint32_t i = 0, step; i < checked; i += step) {
        ptx_shadow *shadow = shadow_at(warp->block, address + i, size - i, &step);
        bool quiet = !write && is_quiet(warp, shadow);
        if (!quiet && !check(warp, op, shadow, lane, address + i, read, write)) return NULL;
        touch(warp, shadow, thread_of(warp, lane), write, is_strong(op));
    }
    if (op->flags & PTX_F_RELEASE)
        ptx_flag_release(warp, address);
    else if (write && !read && warp->block->flag_count)
        ptx_flag_forget(warp, address, size);
    return warp->block->shared + address;
}

void ptx_shared_undefined(const ptx_block *block, uint64_t address, uint32_t size, uint8_t *out_bits) {
    for (uint32_t i = 0; i < size; i++) {
        const ptx_shadow *word = &block->shadow[(address + i) / 4];
        const ptx_shadow *shadow = word->split ? &block->shadow[ptx_shadow_words(block) + address + i] : word;
        out_bits[i] = shadow->written ? 0 : 0xff;
    }
}

bool ptx_shared_send(ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t address, uint32_t size) {
    if (!in_bounds(warp, op, lane, address, size)) return false;
    for (uint32_t i = 0, step; i < size; i += step) {
        ptx_shadow *shadow = shadow_at(warp->block, address + i, size - i, &step);
        if (!check(warp, op, shadow, lane, address + i, false, true)) return false;
        shadow->writes.thread = thread_of(warp, lane);
        shadow->in_flight = true;
    }
    return true;
}

uint8_t *ptx_shared_land(ptx_warp *warp, uint32_t lane, uint64_t address, uint32_t size) {
    for (uint32_t i = 0, step; i < size; i += step) {
        ptx_shadow *shadow = shadow_at(warp->block, address + i, size - i, &step);
        touch(warp, shadow, thread_of(warp, lane), true, false);
        shadow->in_flight = false;
    }
    return warp->block->shared + address;
}
