/* Handlers: functions that are called, one after another on a thread of their own, when a signal's value is as they
 * wait for. */
#include "tests/sim/rocm/sim_rocm.h"
#include <pthread.h>

typedef struct sim_handler {
    kiln__hsa_signal signal;
    uint32_t condition;
    kiln__hsa_signal_value compare;
    sim_signal_handler call;
    void *argument;
} sim_handler;

enum { HANDLER_ROOM = 65536, NANOSECONDS_IDLE = 50000000 };
static sim_handler handlers[HANDLER_ROOM]; /* in no order */
static uint32_t handler_count;

/* Of a signal that has gone, too. */
static bool is_due(const sim_handler *handler) {
    const sim_signal *signal = sim_rocm_signal(handler->signal);
    return !signal || sim_rocm_signal_holds(signal->value, handler->condition, handler->compare);
}

/* Calls a handler that was taken off the list, and puts it back if it is to be called again. */
static void call(sim_handler handler) {
    const sim_signal *signal = sim_rocm_signal(handler.signal);
    if (!signal) {
        sim_violation("a signal was destroyed while a handler waits for it");
        return;
    }
    const kiln__hsa_signal_value value = signal->value;
    sim_rocm_unlock();
    const bool again = handler.call(value, handler.argument);
    sim_rocm_lock();
    if (again && handler_count < HANDLER_ROOM) handlers[handler_count++] = handler;
}

/* Calls the first that is due. False if none is. */
static bool call_one(void) {
    for (uint32_t i = 0; i < handler_count; i++) {
        if (!is_due(&handlers[i])) continue;
        const sim_handler handler = handlers[i];
        handlers[i] = handlers[--handler_count];
        call(handler);
        return true;
    }
    return false;
}

static void *caller(void *unused) {
    (void)unused;
    sim_rocm_lock();
    for (;;)
        if (!call_one()) sim_rocm_wait_change(NANOSECONDS_IDLE);
    return NULL;
}

kiln__hsa_status hsa_amd_signal_async_handler(kiln__hsa_signal signal, uint32_t condition, kiln__hsa_signal_value value,
                                              sim_signal_handler handler, void *argument) {
    static bool started;
    pthread_t thread;
    SIM_HSA_ENTER();
    if (!sim_rocm_signal(signal)) return SIM_HSA_ERROR_INVALID_SIGNAL;
    SIM_HSA_RULE(handler && condition <= 3, SIM_HSA_ERROR_INVALID_ARGUMENT,
                 "hsa_amd_signal_async_handler: no handler, or condition %u", condition);
    if (handler_count == HANDLER_ROOM) return SIM_HSA_ERROR_OUT_OF_RESOURCES;
    if (!started && pthread_create(&thread, NULL, caller, NULL) != 0) return SIM_HSA_ERROR_OUT_OF_RESOURCES;
    if (!started) pthread_detach(thread);
    started = true;
    handlers[handler_count++] = (sim_handler){signal, condition, value, handler, argument};
    sim_rocm_changed();
    return KILN__HSA_STATUS_SUCCESS;
}
