/* Signals: values that threads, packets and copies wait for. */
#include "tests/sim/rocm/sim_rocm.h"
#include <stdlib.h>

static const char *const kinds[] = {"signal", ".doorbell"};

sim_signal *sim_rocm_signal(kiln__hsa_signal signal) {
    void *object = (void *)(uintptr_t)signal.handle;
    for (int i = 0; i < 2; i++)
        if (sim_object_live(kinds[i], object)) return object;
    return NULL;
}

void sim_rocm_signal_add(kiln__hsa_signal signal, kiln__hsa_signal_value value) {
    sim_signal *found = sim_rocm_signal(signal);
    if (found) {
        found->value += value;
        sim_rocm_changed();
    } else {
        sim_violation("a signal was destroyed before it was completed");
    }
}

kiln__hsa_status hsa_signal_create(kiln__hsa_signal_value initial, uint32_t consumer_count,
                                   const kiln__hsa_agent *consumers, kiln__hsa_signal *out_signal) {
    SIM_HSA_ENTER();
    SIM_HSA_RULE(out_signal && !consumer_count == !consumers, SIM_HSA_ERROR_INVALID_ARGUMENT,
                 "hsa_signal_create: consumers do not agree with their count");
    sim_signal *signal = sim_object_new("signal", sizeof *signal);
    if (!signal) return SIM_HSA_ERROR_OUT_OF_RESOURCES;
    signal->value = initial;
    out_signal->handle = (uint64_t)(uintptr_t)signal;
    return KILN__HSA_STATUS_SUCCESS;
}

kiln__hsa_status hsa_amd_signal_create(kiln__hsa_signal_value initial, uint32_t consumer_count,
                                       const kiln__hsa_agent *consumers, uint64_t attributes,
                                       kiln__hsa_signal *out_signal) {
    enum { GPU_ONLY = 1 };
    SIM_HSA_RULE(!(attributes & ~(uint64_t)GPU_ONLY), SIM_HSA_ERROR_INVALID_ARGUMENT,
                 "hsa_amd_signal_create: attributes 0x%llx", (unsigned long long)attributes);
    return hsa_signal_create(initial, consumer_count, consumers, out_signal);
}

kiln__hsa_status hsa_signal_destroy(kiln__hsa_signal signal) {
    SIM_HSA_ENTER_RELEASE();
    SIM_HSA_RULE(sim_object_live("signal", (void *)(uintptr_t)signal.handle), SIM_HSA_ERROR_INVALID_SIGNAL,
                 "hsa_signal_destroy: %#llx is no live signal", (unsigned long long)signal.handle);
    sim_object_delete("signal", (void *)(uintptr_t)signal.handle);
    SIM_HSA_RELEASED();
}

kiln__hsa_signal_value hsa_signal_load_scacquire(kiln__hsa_signal signal) {
    SIM_HSA_LOCK();
    const sim_signal *found = sim_rocm_signal(signal);
    SIM_HSA_RULE(found, 0, "hsa_signal_load_scacquire: no live signal");
    sim_rocm_asked();
    return found->value;
}

static void store(const char *function, kiln__hsa_signal signal, kiln__hsa_signal_value value) {
    SIM_HSA_LOCK();
    sim_signal *found = sim_rocm_signal(signal);
    if (!found) {
        sim_violation("%s: no live signal", function);
    } else if (found->doorbell_of) {
        sim_rocm_doorbell(found->doorbell_of, (uint64_t)value);
    } else {
        found->value = value;
    }
    sim_rocm_changed();
}

void hsa_signal_store_relaxed(kiln__hsa_signal signal, kiln__hsa_signal_value value) {
    store(__func__, signal, value);
}

void hsa_signal_store_screlease(kiln__hsa_signal signal, kiln__hsa_signal_value value) {
    store(__func__, signal, value);
}

/* Wakes nobody: who waits finds out in the end. */
void hsa_signal_silent_store_relaxed(kiln__hsa_signal signal, kiln__hsa_signal_value value) {
    SIM_HSA_LOCK();
    sim_signal *found = sim_rocm_signal(signal);
    if (!found || found->doorbell_of)
        sim_violation("hsa_signal_silent_store_relaxed: no live signal, or a doorbell");
    else
        found->value = value;
}

kiln__hsa_status hsa_amd_signal_value_pointer(kiln__hsa_signal signal, volatile kiln__hsa_signal_value **out_pointer) {
    SIM_HSA_ENTER();
    sim_signal *found = sim_rocm_signal(signal);
    if (!found || found->doorbell_of) return SIM_HSA_ERROR_INVALID_SIGNAL;
    SIM_HSA_RULE(out_pointer, SIM_HSA_ERROR_INVALID_ARGUMENT, "hsa_amd_signal_value_pointer: no result");
    *out_pointer = &found->value;
    return KILN__HSA_STATUS_SUCCESS;
}

static void add(const char *function, kiln__hsa_signal signal, kiln__hsa_signal_value value) {
    SIM_HSA_LOCK();
    sim_signal *found = sim_rocm_signal(signal);
    if (!found || found->doorbell_of) {
        sim_violation("%s: no live signal, or a doorbell", function);
        return;
    }
    sim_rocm_signal_add(signal, value);
}

void hsa_signal_add_relaxed(kiln__hsa_signal signal, kiln__hsa_signal_value value) {
    add(__func__, signal, value);
}

void hsa_signal_add_screlease(kiln__hsa_signal signal, kiln__hsa_signal_value value) {
    add(__func__, signal, value);
}

void hsa_signal_subtract_relaxed(kiln__hsa_signal signal, kiln__hsa_signal_value value) {
    add(__func__, signal, -value);
}

void hsa_signal_subtract_screlease(kiln__hsa_signal signal, kiln__hsa_signal_value value) {
    add(__func__, signal, -value);
}

kiln__hsa_signal_value hsa_signal_load_relaxed(kiln__hsa_signal signal) {
    return hsa_signal_load_scacquire(signal);
}

bool sim_rocm_signal_holds(kiln__hsa_signal_value value, uint32_t condition, kiln__hsa_signal_value compare) {
    switch (condition) {
    case 0:
        return value == compare;
    case 1:
        return value != compare;
    case 2:
        return value < compare;
    default:
        return value >= compare;
    }
}

/* Its value when the condition holds or the time is over. */
static kiln__hsa_signal_value wait(kiln__hsa_signal signal, uint32_t condition, kiln__hsa_signal_value compare,
                                   uint64_t timeout_ticks) {
    const uint64_t begin = sim_rocm_ticks();
    for (;;) {
        const sim_signal *found = sim_rocm_signal(signal);
        SIM_HSA_RULE(found, 0, "hsa_signal_wait_scacquire: no live signal");
        const uint64_t waited = sim_rocm_ticks() - begin;
        if (sim_rocm_signal_holds(found->value, condition, compare) || waited >= timeout_ticks) return found->value;
        const uint64_t left = timeout_ticks - waited;
        sim_rocm_wait_change(left < 10000000 ? left * SIM_TICK_NANOSECONDS : 100000000);
    }
}

kiln__hsa_signal_value hsa_signal_wait_scacquire(kiln__hsa_signal signal, uint32_t condition,
                                                 kiln__hsa_signal_value compare, uint64_t timeout_ticks,
                                                 uint32_t wait_state) {
    SIM_HSA_LOCK();
    SIM_HSA_RULE(condition <= 3 && wait_state <= 1, 0, "hsa_signal_wait_scacquire: unknown condition or wait state");
    sim_rocm_wait_begin();
    const kiln__hsa_signal_value value = wait(signal, condition, compare, timeout_ticks);
    sim_rocm_wait_end();
    return value;
}

kiln__hsa_signal_value hsa_signal_wait_relaxed(kiln__hsa_signal signal, uint32_t condition,
                                               kiln__hsa_signal_value compare, uint64_t timeout_ticks,
                                               uint32_t wait_state) {
    return hsa_signal_wait_scacquire(signal, condition, compare, timeout_ticks, wait_state);
}

kiln__hsa_status hsa_amd_profiling_get_dispatch_time(kiln__hsa_agent agent, kiln__hsa_signal signal,
                                                     kiln__hsa_dispatch_time *out_time) {
    SIM_HSA_ENTER();
    const int32_t device = sim_rocm_device(agent);
    const sim_signal *found = sim_rocm_signal(signal);
    if (device < 0) return SIM_HSA_ERROR_INVALID_AGENT;
    if (!found) return SIM_HSA_ERROR_INVALID_SIGNAL;
    SIM_HSA_RULE(out_time, SIM_HSA_ERROR_INVALID_ARGUMENT, "hsa_amd_profiling_get_dispatch_time: time is NULL");
    SIM_HSA_RULE(
        found->end && found->device == device && found->value <= 0, SIM_HSA_ERROR_INVALID_SIGNAL,
        "hsa_amd_profiling_get_dispatch_time: the signal's packet was not profiled on this agent, or is not done");
    *out_time = (kiln__hsa_dispatch_time){found->start, found->end};
    return KILN__HSA_STATUS_SUCCESS;
}

/* A copy's times are left in its completion signal if hsa_amd_profiling_async_copy_enable asked for them. */
kiln__hsa_status hsa_amd_profiling_get_async_copy_time(kiln__hsa_signal signal, kiln__hsa_dispatch_time *out_time) {
    SIM_HSA_ENTER();
    const sim_signal *found = sim_rocm_signal(signal);
    if (!found) return SIM_HSA_ERROR_INVALID_SIGNAL;
    SIM_HSA_RULE(out_time, SIM_HSA_ERROR_INVALID_ARGUMENT, "hsa_amd_profiling_get_async_copy_time: time is NULL");
    SIM_HSA_RULE(found->end && found->value <= 0, SIM_HSA_ERROR_INVALID_SIGNAL,
                 "hsa_amd_profiling_get_async_copy_time: the signal's copy was not profiled, or is not done");
    *out_time = (kiln__hsa_dispatch_time){found->start, found->end};
    return KILN__HSA_STATUS_SUCCESS;
}
