/* Completion signals, pooled per device.
 *
 * A signal must not be reused while a packet or copy that waits for it may still read it, that is, until the waiter has
 * completed. So each signal records the signal that its own packet or copy waits for, and holds that one until it is
 * done itself. A signal is free when it is done and not held. */
#ifndef KILN_LOADER_ROCM_SIGNAL_H
#define KILN_LOADER_ROCM_SIGNAL_H

#include "loader/rocm/rocm_driver.h"
#include <pthread.h>
#include <stdbool.h>

typedef struct kiln__rocm_signal {
    kiln__hsa_signal handle;
    struct kiln__rocm_signal *target; /* what its packet or copy waits for; NULL: nothing */
    uint32_t holds;
    bool copies;                    /* a copy completes it, not a packet */
    struct kiln__rocm_signal *next; /* in the pool's ring of all signals */
} kiln__rocm_signal;

typedef struct kiln__rocm_signals {
    pthread_mutex_t lock;
    kiln__rocm_signal *last; /* of a circular list; NULL: empty */
} kiln__rocm_signals;

void kiln__rocm_signals_open(kiln__rocm_signals *pool);

/* Destroys every signal. None may be in use unless the device is lost; then the two signals of an unfinished copy are
 * leaked, since the engine may still access them. True if any were. */
bool kiln__rocm_signals_close(kiln__rocm_signals *pool);

/* Creates a signal outside the pool. Returns KILN_OK, KILN_ERROR_OUT_OF_MEMORY, KILN_ERROR_DRIVER. */
kiln_status kiln__rocm_signal_create(kiln__hsa_signal_value initial, kiln__hsa_signal *out_handle);

/* Takes a signal of value 1 for a packet or copy that will wait for target (NULL: nothing), with one hold for the
 * caller. Any thread. Returns as kiln__rocm_signal_create. */
kiln_status kiln__rocm_signal_take(kiln__rocm_signals *pool, kiln__rocm_signal *target, kiln__rocm_signal **out_signal);

/* Ends the caller's hold. NULL is accepted. */
void kiln__rocm_signal_drop(kiln__rocm_signals *pool, kiln__rocm_signal *signal);

/* The same for a signal not passed to any packet or copy, which nothing would ever complete. */
void kiln__rocm_signal_cancel(kiln__rocm_signals *pool, kiln__rocm_signal *signal);

/* True if a copy has failed: its signal is negative, and a barrier packet that waits for zero never completes. */
bool kiln__rocm_signals_failed(kiln__rocm_signals *pool);

#endif
