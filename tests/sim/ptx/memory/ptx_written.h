/* Which bytes of a region were written: a bit for each, unless the region has none. Blocks on several threads may share
 * eight of them, so they are atomic. */
#ifndef KILN_TESTS_SIM_PTX_WRITTEN_H
#define KILN_TESTS_SIM_PTX_WRITTEN_H

#include "tests/sim/core/sim_space.h"

static inline void ptx_written_mark(const sim_region *region, uint64_t address, uint64_t size) {
    if (!region->written) return;
    for (uint64_t at = address - region->base, end = at + size; at < end;) {
        if (at % 8 == 0 && end - at >= 8) {
            __atomic_store_n(&region->written[at / 8], 0xff, __ATOMIC_RELAXED);
            at += 8;
            continue;
        }
        __atomic_fetch_or(&region->written[at / 8], (uint8_t)(1u << at % 8), __ATOMIC_RELAXED);
        at++;
    }
}

/* Whether all of them were written. */
static inline bool ptx_written(const sim_region *region, uint64_t address, uint64_t size) {
    if (!region->written) return true;
    for (uint64_t at = address - region->base, end = at + size; at < end;) {
        if (at % 8 == 0 && end - at >= 8) {
            if (__atomic_load_n(&region->written[at / 8], __ATOMIC_RELAXED) != 0xff) return false;
            at += 8;
            continue;
        }
        if (!(__atomic_load_n(&region->written[at / 8], __ATOMIC_RELAXED) >> at % 8 & 1)) return false;
        at++;
    }
    return true;
}

/* They count as never written. */
static inline void ptx_written_forget(const sim_region *region, uint64_t address, uint64_t size) {
    for (uint64_t at = address - region->base, end = at + size; region->written && at < end; at++)
        __atomic_fetch_and(&region->written[at / 8], (uint8_t) ~(1u << at % 8), __ATOMIC_RELAXED);
}

#endif
