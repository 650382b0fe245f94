#include "loader/rocm/rocm_signal.h"
#include <stdlib.h>

/* How many signals are examined before a new one is created: few, so that many held events do not slow this down. */
enum { PROBES = 8 };

void kiln__rocm_signals_open(kiln__rocm_signals *pool) {
    pthread_mutex_init(&pool->lock, NULL);
    pool->last = NULL;
}

/* Leaves holds on the signals alone that belong to a copy under way. True if there is one. */
static bool hold_copies(kiln__rocm_signal *first) {
    bool any = false;
    for (kiln__rocm_signal *signal = first; signal; signal = signal->next)
        signal->holds = 0;
    for (kiln__rocm_signal *signal = first; signal; signal = signal->next) {
        if (!signal->copies || kiln__rocm.signal_load(signal->handle) <= 0) continue;
        signal->holds = signal->target->holds = 1;
        any = true;
    }
    return any;
}

bool kiln__rocm_signals_close(kiln__rocm_signals *pool) {
    kiln__rocm_signal *first = pool->last ? pool->last->next : NULL;
    if (first) pool->last->next = NULL;
    const bool any = hold_copies(first);
    while (first) {
        kiln__rocm_signal *next = first->next;
        if (!first->holds) kiln__rocm.signal_destroy(first->handle);
        free(first);
        first = next;
    }
    pool->last = NULL;
    pthread_mutex_destroy(&pool->lock);
    return any;
}

kiln_status kiln__rocm_signal_create(kiln__hsa_signal_value initial, kiln__hsa_signal *out_handle) {
    out_handle->handle = 0;
    KILN__ROCM_TRY(NULL, signal_create, initial, 0, NULL, out_handle);
    return out_handle->handle ? KILN_OK : kiln__rocm_fail_empty(kiln__rocm_names.signal_create);
}

/* Lets go of what a finished signal waited for; true if the signal is free. */
static bool settle(kiln__rocm_signal *signal) {
    if (kiln__rocm.signal_load(signal->handle) > 0) return false;
    if (signal->target) signal->target->holds--;
    signal->target = NULL;
    return signal->holds == 0;
}

static kiln_status add(kiln__rocm_signals *pool, kiln__rocm_signal **out_signal) {
    kiln__rocm_signal *signal = calloc(1, sizeof *signal);
    if (!signal) return kiln__fail(KILN_ERROR_OUT_OF_MEMORY, "rocm: no memory for a signal");
    kiln_status status = kiln__rocm_signal_create(1, &signal->handle);
    if (status != KILN_OK) {
        free(signal);
        return status;
    }
    signal->next = pool->last ? pool->last->next : signal;
    if (pool->last) pool->last->next = signal;
    pool->last = signal;
    *out_signal = signal;
    return KILN_OK;
}

static kiln_status take_locked(kiln__rocm_signals *pool, kiln__rocm_signal **out_signal) {
    for (int probe = 0; probe < PROBES && pool->last; probe++) {
        pool->last = pool->last->next; /* the oldest becomes the newest */
        if (settle(pool->last)) {
            kiln__rocm.signal_store_relaxed(pool->last->handle, 1);
            *out_signal = pool->last;
            return KILN_OK;
        }
    }
    return add(pool, out_signal);
}

kiln_status kiln__rocm_signal_take(kiln__rocm_signals *pool, kiln__rocm_signal *target,
                                   kiln__rocm_signal **out_signal) {
    *out_signal = NULL;
    pthread_mutex_lock(&pool->lock);
    kiln_status status = take_locked(pool, out_signal);
    if (status == KILN_OK) {
        (*out_signal)->holds = 1;
        (*out_signal)->copies = false;
        (*out_signal)->target = target;
        if (target) target->holds++;
    }
    pthread_mutex_unlock(&pool->lock);
    return status;
}

void kiln__rocm_signal_drop(kiln__rocm_signals *pool, kiln__rocm_signal *signal) {
    if (!signal) return;
    pthread_mutex_lock(&pool->lock);
    signal->holds--;
    pthread_mutex_unlock(&pool->lock);
}

void kiln__rocm_signal_cancel(kiln__rocm_signals *pool, kiln__rocm_signal *signal) {
    if (!signal) return;
    kiln__rocm.signal_store_relaxed(signal->handle, 0);
    kiln__rocm_signal_drop(pool, signal);
}

bool kiln__rocm_signals_failed(kiln__rocm_signals *pool) {
    bool failed = false;
    pthread_mutex_lock(&pool->lock);
    kiln__rocm_signal *signal = pool->last;
    if (signal) do {
            failed = kiln__rocm.signal_load(signal->handle) < 0;
            signal = signal->next;
        } while (!failed && signal != pool->last);
    pthread_mutex_unlock(&pool->lock);
    return failed;
}
