/* Accesses to shared memory, with every check: bounds, what was never written or is in flight, races. */
#include "tests/sim/ptx/memory/ptx_shared.h"
#include "tests/sim/ptx/matrix/ptx_wgmma_run.h"
#include "tests/sim/ptx/memory/ptx_bulk.h"
#include "tests/sim/ptx/warp/ptx_undefined.h"
#include <string.h>

/* Whether all of them come before what the thread does now. */
static bool come_before(const ptx_warp *warp, const ptx_touches *touches, uint16_t thread) {
    if (!touches->count) return true;
    if (touches->async) return ptx_flag_orders(warp, touches); /* its thread has to wait for it, too */
    if (touches->count == 1 && touches->thread == thread) return true;
    bool same_warp = touches->count < 3 && touches->thread / PTX_WARP == warp->place;
    if (same_warp && (touches->moment < warp->synced || touches->together)) return true;
    return warp->known && ptx_flag_orders(warp, touches);
}

/* Returns whether there were none that still count for the warp. Where flags order, only the last are kept. */
static inline bool touches_add(const ptx_warp *warp, const ptx_op *op, ptx_touches *touches, uint16_t thread) {
    bool same_warp = touches->count < 3 && touches->thread / PTX_WARP == warp->place;
    bool first = !touches->count || (same_warp && touches->moment < warp->synced) || (!same_warp && warp->known);
    if (first)
        touches->count = 1;
    else if (!same_warp)
        touches->count = 3;
    else if (touches->thread != thread)
        touches->count = 2;
    touches->thread = thread;
    touches->moment = warp->moment;
    touches->line = op->line;
    touches->async = false;
    return first;
}

/* The reads of a warp that are not the last, where flags order. Warps of the same number in their blocks of a cluster
 * share a place, which has the last of them. */
static ptx_touches *reads_of(const ptx_block *block, const ptx_shadow *shadow, uint32_t warp) {
    return &block->reads[(size_t)(shadow - block->shadow) * block->warp_count + warp % block->warp_count];
}

/* Makes the warp's reads the last. */
static void turn_reads(const ptx_block *block, const ptx_warp *warp, ptx_shadow *shadow) {
    uint32_t last = shadow->reads.thread / PTX_WARP;
    if (!shadow->reads.count || last == warp->place) return;
    *reads_of(block, shadow, last) = shadow->reads;
    shadow->readers |= 1u << last % block->warp_count;
    bool read = shadow->readers >> warp->number & 1;
    shadow->reads = read ? *reads_of(block, shadow, warp->number) : (ptx_touches){0};
    shadow->readers &= ~(1u << warp->number);
}

static bool is_strong(const ptx_op *op) {
    return op->flags & PTX_F_STRONG;
}

static bool may_meet(const ptx_warp *warp, const ptx_op *op, const ptx_touches *touches, uint16_t thread) {
    return (is_strong(op) && touches->strong) || come_before(warp, touches, thread);
}

/* The same before a write of what was read, or an asynchronous one of what was written. */
static bool may_pass(const ptx_warp *warp, const ptx_op *op, const ptx_touches *touches, uint16_t thread) {
    return may_meet(warp, op, touches, thread) || (touches->count < 3 && ptx_flag_orders_read(warp, touches));
}

/* What the access must not meet: the writes of others and, unless it only reads, their reads; but for those that are
 * all strong, if it is. NULL: none. */
static const ptx_touches *conflict(const ptx_block *block, const ptx_warp *warp, const ptx_op *op,
                                   const ptx_shadow *shadow, uint16_t thread, bool write, bool async) {
    if (shadow->epoch != block->epoch) return NULL;
    if (!may_meet(warp, op, &shadow->writes, thread) && !(async && may_pass(warp, op, &shadow->writes, thread)))
        return &shadow->writes;
    if (!write) return NULL;
    if (!may_pass(warp, op, &shadow->reads, thread)) return &shadow->reads;
    for (uint32_t rest = shadow->readers; rest; rest &= rest - 1) {
        const ptx_touches *reads = reads_of(block, shadow, (uint32_t)__builtin_ctz(rest));
        if (!may_pass(warp, op, reads, thread)) return reads;
    }
    return NULL;
}

static inline void touch(const ptx_block *block, const ptx_warp *warp, const ptx_op *op, ptx_shadow *shadow,
                         uint16_t thread, bool write) {
    if (shadow->epoch != block->epoch) {
        shadow->epoch = block->epoch;
        shadow->reads = shadow->writes = (ptx_touches){0};
        shadow->readers = 0;
        shadow->in_flight = false;
    }
    if (!write && warp->known) turn_reads(block, warp, shadow);
    ptx_touches *touches = write ? &shadow->writes : &shadow->reads;
    bool first = touches_add(warp, op, touches, thread);
    touches->strong = is_strong(op) && (first || touches->strong);
    touches->together = (op->flags & PTX_F_TOGETHER) && (first || touches->together);
    if (!write) return;
    shadow->written = true;
    shadow->generic = true;
    shadow->writer = thread;
    shadow->wrote = warp->moment;
    shadow->wrote_epoch = block->epoch;
}

/* The shadow of the word at an address. */
static inline ptx_shadow *word_at(const ptx_block *block, uint64_t address) {
    const size_t word = address / 4, chunk = word / PTX_SHADOW_CHUNK, words = ptx_shadow_words(block);
    if (block->shadow_starts[chunk] != block->starts) {
        const size_t first = chunk * PTX_SHADOW_CHUNK, left = words - first;
        memset(block->shadow + first, 0, (left < PTX_SHADOW_CHUNK ? left : PTX_SHADOW_CHUNK) * sizeof *block->shadow);
        block->shadow_starts[chunk] = block->starts;
    }
    return &block->shadow[word];
}

/* The shadow of the bytes from address on, of at most size, and how many they are: a word, or a byte of one that this
 * or an earlier access touches in part. */
static inline ptx_shadow *shadow_at(ptx_block *block, uint64_t address, uint64_t size, uint32_t *out_size) {
    ptx_shadow *word = word_at(block, address), *bytes = block->shadow + ptx_shadow_words(block) + address / 4 * 4;
    bool whole = address % 4 == 0 && size >= 4;
    *out_size = 4;
    if (!word->split && whole) return word;
    for (uint32_t i = 0; i < 4 && !word->split; i++) {
        bytes[i] = *word;
        if (word->readers)
            memcpy(reads_of(block, &bytes[i], 0), reads_of(block, word, 0), block->warp_count * sizeof *block->reads);
    }
    word->split = true;
    *out_size = 1;
    return &bytes[address % 4];
}

static bool in_bounds(const ptx_block *block, ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t address,
                      uint32_t size) {
    uint32_t has = block->shared_bytes, room = block->shared_room;
    if (address < has && size <= has - address) return true;
    if (room > has && address >= ptx_shared_total(block) && address < room && size <= room - address) return true;
    ptx_fault(warp, op, SIM_FAULT_OUT_OF_BOUNDS, lane, address, "%u bytes of shared memory, which has %u", size, has);
    return false;
}

static uint16_t thread_of(const ptx_warp *warp, uint32_t lane) {
    return (uint16_t)(warp->place * PTX_WARP + lane);
}

/* Whether a read meets nothing that could be wrong, which is most of what kernels do to shared memory. */
static inline bool is_quiet(const ptx_block *block, const ptx_shadow *shadow) {
    return shadow->written && !shadow->in_flight && (shadow->epoch != block->epoch || !shadow->writes.count);
}

/* Whether a thread may touch what is at address now. An atomic reads and writes. */
static bool check(const ptx_block *block, ptx_warp *warp, const ptx_op *op, const ptx_shadow *shadow, uint32_t lane,
                  uint64_t address, bool read, bool write, bool async) {
    uint16_t thread = thread_of(warp, lane);
    if (shadow->in_flight) {
        ptx_fault(warp, op, SIM_FAULT_IN_FLIGHT, lane, address, "thread %u %s what thread %u copies", thread,
                  write ? "writes" : "reads", shadow->writes.thread);
        return false;
    }
    if (write && ptx_wgmma_reads(block, address)) {
        ptx_fault(warp, op, SIM_FAULT_IN_FLIGHT, lane, address, "thread %u writes what a wgmma.mma_async reads",
                  thread);
        return false;
    }
    if (write && block->source_count && ptx_bulk_reads(block, address)) {
        ptx_fault(warp, op, SIM_FAULT_IN_FLIGHT, lane, address, "thread %u writes what a bulk copy reads", thread);
        return false;
    }
    bool known = shadow->written || address >= block->shared_bytes; /* the system's code knows of its own */
    if (read && !known && block == warp->block && ptx_undefined_loads(op)) {
        warp->unwritten |= 1u << lane;
    } else if (read && !known) {
        ptx_fault(warp, op, SIM_FAULT_UNINITIALISED, lane, address, "shared memory");
        return false;
    }
    const ptx_touches *others = conflict(block, warp, op, shadow, thread, write, async);
    if (others) {
        ptx_fault(warp, op, SIM_FAULT_RACE, lane, address, "thread %u %s what thread %u %s in line %u", thread,
                  write ? "writes" : "reads", others->thread, others == &shadow->writes ? "wrote" : "read",
                  others->line);
        return false;
    }
    return true;
}

/* Reads whole words if they meet nothing that could be wrong; false: each must be looked at. An access is aligned to
 * its size, so that all of its words are in one chunk. */
static inline bool read_quietly(const ptx_block *block, const ptx_warp *warp, const ptx_op *op, uint64_t address,
                                uint32_t size, uint16_t thread) {
    enum { CHUNK_BYTES = PTX_SHADOW_CHUNK * 4 };
    if ((address | size) % 4 || address % CHUNK_BYTES + size > CHUNK_BYTES) return false;
    ptx_shadow *words = word_at(block, address);
    for (uint32_t w = 0; w < size / 4; w++)
        if (words[w].split || !is_quiet(block, &words[w])) return false;
    for (uint32_t w = 0; w < size / 4; w++)
        touch(block, warp, op, &words[w], thread, false);
    return true;
}

uint8_t *ptx_shared_bytes_of(ptx_block *block, ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t address,
                             uint32_t size, bool read, bool write) {
    if (!in_bounds(block, warp, op, lane, address, size)) return NULL;
    if (op->flags & PTX_F_ACQUIRE) ptx_flag_acquire(block, warp, address);
    const uint16_t thread = thread_of(warp, lane);
    const bool done = !write && read_quietly(block, warp, op, address, size, thread);
    for (uint32_t i = 0, step; i < size && !done; i += step) {
        ptx_shadow *shadow = shadow_at(block, address + i, size - i, &step);
        bool quiet = !write && is_quiet(block, shadow);
        if (!quiet && !check(block, warp, op, shadow, lane, address + i, read, write, false)) return NULL;
        touch(block, warp, op, shadow, thread, write);
    }
    warp->block->moved |= write && !read;
    if (write && !read && block->flag_count) ptx_flag_forget(block, warp, address, size);
    if (op->flags & PTX_F_RELEASE) ptx_flag_release(block, warp, lane, address);
    return block->shared + address;
}

bool ptx_shared_lanes(ptx_warp *warp, const ptx_op *op, const uint64_t *addresses, uint32_t mask, uint32_t size,
                      uint8_t **out_bytes) {
    const ptx_block *block = warp->block;
    const uint32_t has = block->shared_bytes;
    const bool ordered = op->flags & (PTX_F_ACQUIRE | PTX_F_RELEASE);
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        const uint32_t l = (uint32_t)__builtin_ctz(rest);
        const uint64_t address = addresses[l];
        const bool inside = !(address & (size - 1)) && address < has && size <= has - address;
        if (inside && !ordered && read_quietly(block, warp, op, address, size, thread_of(warp, l)))
            out_bytes[l] = block->shared + address;
        else
            out_bytes[l] = ptx_memory_bytes(warp, op, l, PTX_SPACE_SHARED, address, size, true, false);
        if (!out_bytes[l]) return false;
    }
    return true;
}

uint8_t *ptx_shared_bytes(ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t address, uint32_t size, bool read,
                          bool write) {
    return ptx_shared_bytes_of(warp->block, warp, op, lane, address, size, read, write);
}

static bool is_fenced(const ptx_warp *warp, uint32_t lane, const ptx_shadow *shadow) {
    const ptx_block *block = warp->block;
    const uint32_t place = shadow->writer / PTX_WARP, first = block->rank * block->warp_count;
    if (!shadow->generic || place < first || place >= first + block->warp_count) return true;
    if (block->warps[place - first].proxied[shadow->writer % PTX_WARP].moment > shadow->wrote) return true;
    if (!warp->proxied[lane].moment) return false;
    return warp->proxied[lane].epoch > shadow->wrote_epoch ||
           (warp->known && ptx_flag_orders(warp, &(ptx_touches){.thread = shadow->writer, .moment = shadow->wrote}));
}

static const ptx_shadow *byte_at(const ptx_block *block, uint64_t address) {
    const ptx_shadow *word = word_at(block, address);
    return word->split ? &block->shadow[ptx_shadow_words(block) + address] : word;
}

uint8_t *ptx_shared_written(const ptx_warp *warp, const ptx_op *op, uint64_t address, uint32_t size) {
    const ptx_block *block = warp->block;
    if (address % size || address + size > block->shared_room) return NULL;
    for (uint32_t i = 0; i < size; i++) {
        const ptx_shadow *shadow = byte_at(block, address + i);
        const ptx_touches *writes = &shadow->writes;
        bool own = writes->count && writes->count < 3 && writes->thread / PTX_WARP == warp->place;
        bool now = shadow->epoch == block->epoch && writes->moment >= warp->synced;
        if (!own || !now || writes->line != op->line) return NULL;
    }
    return block->shared + address;
}

uint8_t *ptx_shared_contested(const ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t address, uint32_t size) {
    const ptx_block *block = warp->block;
    if (address % size || address + size > block->shared_bytes) return NULL;
    for (uint32_t i = 0; i < size; i++) {
        const ptx_shadow *shadow = byte_at(block, address + i);
        ptx_shadow unread = *shadow;
        unread.writes = (ptx_touches){0};
        const uint16_t thread = thread_of(warp, lane);
        if (shadow->in_flight || conflict(block, warp, op, shadow, thread, true, false) != &shadow->writes) return NULL;
        if (conflict(block, warp, op, &unread, thread, true, false)) return NULL;
    }
    return block->shared + address;
}

void ptx_shared_undefined(const ptx_block *block, uint64_t address, uint32_t size, uint8_t *out_bits) {
    for (uint32_t i = 0; i < size; i++)
        out_bits[i] = byte_at(block, address + i)->written ? 0 : 0xff;
}

bool ptx_shared_send(ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t address, uint32_t size) {
    if (!in_bounds(warp->block, warp, op, lane, address, size)) return false;
    for (uint32_t i = 0, step; i < size; i += step) {
        ptx_shadow *shadow = shadow_at(warp->block, address + i, size - i, &step);
        if (!check(warp->block, warp, op, shadow, lane, address + i, false, true, false)) return false;
        shadow->writes.thread = thread_of(warp, lane);
        shadow->in_flight = true;
    }
    return true;
}

uint8_t *ptx_shared_land(ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t address, uint32_t size) {
    for (uint32_t i = 0, step; i < size; i += step) {
        ptx_shadow *shadow = shadow_at(warp->block, address + i, size - i, &step);
        touch(warp->block, warp, op, shadow, thread_of(warp, lane), true);
        shadow->in_flight = false;
    }
    return warp->block->shared + address;
}

bool ptx_shared_send_to(ptx_block *block, ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t address,
                        uint32_t size) {
    if (!in_bounds(block, warp, op, lane, address, size)) return false;
    for (uint32_t i = 0, step; i < size; i += step) {
        ptx_shadow *shadow = shadow_at(block, address + i, size - i, &step);
        if (!check(block, warp, op, shadow, lane, address + i, false, true, true)) return false;
        touch(block, warp, op, shadow, thread_of(warp, lane), true);
        shadow->in_flight = true;
        shadow->generic = false;
        shadow->writes.async = true;
    }
    warp->block->moved = true;
    return true;
}

void ptx_shared_detach(ptx_block *block, uint64_t address, uint32_t size) {
    for (uint32_t i = 0, step; i < size; i += step)
        shadow_at(block, address + i, size - i, &step)->writes.async = true;
}

uint8_t *ptx_shared_arrive(ptx_block *block, uint64_t address, uint32_t size) {
    for (uint32_t i = 0, step; i < size; i += step)
        shadow_at(block, address + i, size - i, &step)->in_flight = false;
    return block->shared + address;
}

bool ptx_shared_fenced(ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t address, uint32_t size) {
    for (uint32_t i = 0, step; i < size; i += step) {
        const ptx_shadow *word = word_at(warp->block, address + i);
        const ptx_shadow *shadow = word->split ? byte_at(warp->block, address + i) : word;
        step = word->split ? 1 : 4 - (uint32_t)(address + i) % 4;
        if (is_fenced(warp, lane, shadow)) continue;
        ptx_fault(warp, op, SIM_FAULT_RACE, lane, address + i,
                  "the async proxy reads what thread %u stored without fence.proxy.async", shadow->writer);
        return false;
    }
    return true;
}
