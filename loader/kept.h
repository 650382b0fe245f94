/* Try-locks for the slots of a cache that all threads share. A slot has any number of readers or one writer. No thread
 * waits: one that cannot get the slot computes the result instead. */
#ifndef KILN_LOADER_KEPT_H
#define KILN_LOADER_KEPT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { KILN__KEPT_WRITING = INT32_MIN };

/* The number of readers, plus KILN__KEPT_WRITING while the slot is written. */
typedef _Atomic int32_t kiln__kept;

/* If true, the slot may be read until kiln__kept_read_end. */
static inline bool kiln__kept_read_begin(kiln__kept *slot) {
    if (atomic_fetch_add_explicit(slot, 1, memory_order_acquire) >= 0) return true;
    atomic_fetch_sub_explicit(slot, 1, memory_order_relaxed);
    return false;
}

static inline void kiln__kept_read_end(kiln__kept *slot) {
    atomic_fetch_sub_explicit(slot, 1, memory_order_release);
}

/* If true, the slot may be written until kiln__kept_write_end. */
static inline bool kiln__kept_write_begin(kiln__kept *slot) {
    int32_t nobody = 0;
    return atomic_compare_exchange_strong_explicit(slot, &nobody, KILN__KEPT_WRITING, memory_order_acquire,
                                                   memory_order_relaxed);
}

static inline void kiln__kept_write_end(kiln__kept *slot) {
    atomic_fetch_sub_explicit(slot, KILN__KEPT_WRITING, memory_order_release);
}

#endif
