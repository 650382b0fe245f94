/* Global memory as a kernel sees it: the live allocations of a device, with a bit for each byte that was ever written.
 */
#ifndef KILN_TESTS_SIM_SPACE_H
#define KILN_TESTS_SIM_SPACE_H

#include <stdbool.h>
#include <stdint.h>

/* [base, base + size) may be accessed. */
typedef struct sim_region {
    uint64_t base, size;
    uint8_t *written; /* a bit for each byte, set atomically; NULL: all of it was */
    bool constant;    /* a store is an error */
} sim_region;

/* This bit of an address says that it is a device's own address of memory that the host has at the rest of it. */
#define SIM_ALIAS ((uint64_t)1 << 62)

/* The host's memory at an address that may be accessed. */
static inline uint8_t *sim_host_bytes(uint64_t address) {
    return (uint8_t *)(uintptr_t)(address & ~SIM_ALIAS);
}

/* Finds the region that holds an address; false if none does. context is the simulator's. Called from several threads.
 */
typedef bool (*sim_region_find)(void *context, uint64_t address, sim_region *out_region);

/* What a launch did, added up over its threads. Counts, never time. */
#define SIM_COUNTERS(X)                                                      \
    X(instructions)      /* of warps or waves */                             \
    X(lane_instructions) /* of threads that took part */                     \
    X(unit_turns)        /* of each block's busiest unit; 0: one issues */   \
    X(global_read_bytes)                                                     \
    X(global_written_bytes)                                                  \
    X(global_requests) /* instructions of a warp that touch global memory */ \
    X(global_sectors)  /* the 32-byte sectors that each of them touches */   \
    X(shared_requests)                                                       \
    X(shared_conflicts) /* cycles beyond the first of a request */           \
    X(branches)                                                              \
    X(divergent_branches)                                                    \
    X(barriers)                                                              \
    X(matrix_instructions)

typedef struct sim_counters {
#define SIM_COUNTER_FIELD(name) uint64_t name;
    SIM_COUNTERS(SIM_COUNTER_FIELD)
#undef SIM_COUNTER_FIELD
} sim_counters;

/* Why a launch ended early. The drivers turn the kind into their vendor's error. */
#define SIM_FAULTS(X)                                                \
    X(NONE, "none")                                                  \
    X(OUT_OF_BOUNDS, "access outside of every live allocation")      \
    X(MISALIGNED, "misaligned access")                               \
    X(UNINITIALISED, "read of memory that was never written")        \
    X(STORE_TO_CONSTANT, "store to constant memory")                 \
    X(RACE, "race in shared memory")                                 \
    X(BARRIER, "barrier that not all threads reach")                 \
    X(SYNC, "a .sync instruction whose members do not all reach it") \
    X(REGISTERS, "wait for registers that nothing gives back")       \
    X(ENDLESS, "instruction budget used up")                         \
    X(TRAP, "trap")                                                  \
    X(ASSERT, "assertion that does not hold")                        \
    X(ILLEGAL, "illegal instruction")                                \
    X(STACK, "local memory used up")                                 \
    X(IN_FLIGHT, "memory of an asynchronous copy that is in flight") \
    X(EARLY, "memory of a grid in front that may not have ended")    \
    X(WAIT, "register in flight: no wait covers the access that fills it")

typedef enum sim_fault_kind {
#define SIM_FAULT_ENUM(name, text) SIM_FAULT_##name,
    SIM_FAULTS(SIM_FAULT_ENUM)
#undef SIM_FAULT_ENUM
} sim_fault_kind;

typedef struct sim_report {
    sim_fault_kind kind;
    uint64_t address; /* of the memory, if it was about an access */
    char text[2048]; /* the whole sentence: kernel, line or address of the instruction, block, thread, memory address */
} sim_report;

/* "access outside of every live allocation". Static storage. */
const char *sim_fault_text(sim_fault_kind kind);

#endif
