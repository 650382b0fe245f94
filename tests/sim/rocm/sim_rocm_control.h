/* What the recording libhsa-runtime64.so.1 exports for tests beside kiln_sim_*: kiln_sim_rocm_<name>, reached through
 * dlsym. Its own variables, beside those of sim.h:
 *
 *   KILN_SIM_SEED     of the delays and of the order of queues and copies (the default is 1)
 *   KILN_SIM_DELAY    the longest delay of a packet or copy in microseconds (the default is 0)
 *   KILN_SIM_HOSTS    CPU agents, of which the GPUs are near to one after the other (the default is 1)
 *   KILN_SIM_NEAREST  0: a runtime that does not tell which is the nearest (the default is 1)
 *   KILN_SIM_STANDARD 1: HSA's own rules for packets and kernargs instead of kiln's stricter ones, and locked memory
 * has the host's addresses, for programs that nobody here wrote (the default is 0) KILN_SIM_GENERIC  0: a runtime that
 * knows no generic targets (the default is 1) */
#ifndef KILN_TESTS_SIM_ROCM_CONTROL_H
#define KILN_TESTS_SIM_ROCM_CONTROL_H

#include <stdint.h>

/* start       the application has started the runtime itself, so that kiln's start is the second
 * hold        1: packets are taken from the queues and not completed; 0: they are completed again
 * page_fault  the device (an index) faults: its queues stop; the process's first is told to the event handlers, and if
 *             none takes it the process aborts
 * rearm       the next page fault is told, as the first of another process is
 * queue_error all queues of a device stop, and their error callbacks get the status
 * copy_error  the next copies to run fail: their completion signals become -1
 * copies      copies that wait or run
 * header      of the packet that was taken so many packets before the last one; 0 beyond the 64 that are kept
 * untimed     1: the processors leave no times in signals; what is told of such a signal is the clock's translation of
 * 0 completed   packets completed since the start */
#define SIM_ROCM_CONTROL_MAP(X)                             \
    X(void, start, (void))                                  \
    X(void, hold, (int on))                                 \
    X(void, page_fault, (int32_t device))                   \
    X(void, queue_error, (int32_t device, uint32_t status)) \
    X(void, copy_error, (int on))                           \
    X(void, rearm, (void))                                  \
    X(uint64_t, copies, (void))                             \
    X(uint32_t, header, (uint32_t back))                    \
    X(void, untimed, (int on))                              \
    X(uint64_t, completed, (void))

typedef struct sim_rocm_control {
#define SIM_ROCM_CONTROL_FIELD(result, name, parameters) result(*name) parameters;
    SIM_ROCM_CONTROL_MAP(SIM_ROCM_CONTROL_FIELD)
#undef SIM_ROCM_CONTROL_FIELD
} sim_rocm_control;

#endif
