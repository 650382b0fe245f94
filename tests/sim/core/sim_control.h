/* What a recording driver exports for tests beside the driver's own functions: kiln_sim_<name>, reached through dlsym
 * on the driver's handle (sim_client.h does it), since each driver has its own copy. */
#ifndef KILN_TESTS_SIM_CONTROL_H
#define KILN_TESTS_SIM_CONTROL_H

#include "tests/sim/core/sim_space.h"
#include <stddef.h>
#include <stdint.h>

/* Of a kernel's name, its NUL byte included: images with longer ones are refused. */
enum { SIM_NAME_SIZE = 1024 };

/* One launch as the driver got it, and what its execution counted. */
typedef struct sim_launch {
    char kernel[SIM_NAME_SIZE];
    uint32_t grid[3];    /* groups; HSA: work-items */
    uint32_t group[3];   /* threads */
    uint32_t cluster[3]; /* zeros: none */
    int32_t cooperative; /* its groups may wait for each other */
    int32_t overlap;     /* it may begin before the one in front of it has ended */
    int32_t priority;    /* of the launch's own; it changes nothing here */
    uint32_t shared_bytes;
    uint64_t stream;  /* the handle of the stream or queue */
    int32_t device;   /* index in the list of devices of this driver */
    int32_t captured; /* recorded into a capture */
    int32_t executed; /* 0: recorded only */
    uint32_t arguments_size;
    sim_counters counters;
    _Alignas(16) uint8_t arguments[4096]; /* the first bytes of them */
} sim_launch;

/* An error number that makes a function lie instead: it does nothing and reports success, and its results are what a
 * broken driver could give (NULL handles, a million devices). */
enum { SIM_LIE = -1 };

/* Every control function, in one list: (result, name, parameters). All may be called from any thread.
 *
 * configure  sets one of the variables KILN_SIM_* for this process, before the driver is initialised; NULL unsets it
 * fault      the nth call from now (1 is the next) of a function ("*": of any) fails with the error; NULL: no faults.
 *            An error of SIM_LIE makes it lie. One fault at a time
 * faulted    how often the fault was injected since it was set
 * calls      how often a function ("*": any) was called since the last reset
 * call       the name of the index-th call since the last reset; NULL beyond the last
 * violations how many breaches of the driver's rules were seen since the last reset
 * violation  the text of the last breach; ""
 * live       how many objects and allocations of a kind ("*": any) are live
 * launches   how many launches since the last reset
 * launch     the index-th of them; 0 beyond the last
 * counter    what the index-th of them counted, by the name of SIM_COUNTERS; 0 beyond the last, or if there is no such
 *            name. For programs that are built without this header
 * reset      forgets counts, calls, faults, violations and launches, not the live objects */
#define SIM_CONTROL_MAP(X)                                              \
    X(void, configure, (const char *variable, const char *value))       \
    X(void, fault, (const char *function, uint64_t nth, int32_t error)) \
    X(uint64_t, faulted, (void))                                        \
    X(uint64_t, calls, (const char *function))                          \
    X(const char *, call, (uint64_t index))                             \
    X(uint64_t, violations, (void))                                     \
    X(const char *, violation, (void))                                  \
    X(uint64_t, live, (const char *kind))                               \
    X(uint64_t, launches, (void))                                       \
    X(int, launch, (uint64_t index, sim_launch * out_launch))           \
    X(int, counter, (uint64_t index, const char *name, uint64_t *out))  \
    X(void, reset, (void))

typedef struct sim_control {
#define SIM_CONTROL_FIELD(result, name, parameters) result(*name) parameters;
    SIM_CONTROL_MAP(SIM_CONTROL_FIELD)
#undef SIM_CONTROL_FIELD
} sim_control;

#endif
