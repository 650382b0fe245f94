#include "loader/rocm/rocm_queue.h"
#include <time.h>

static void on_queue_error(kiln__hsa_status status, kiln__hsa_queue *queue, void *data) {
    (void)queue;
    if (status != KILN__HSA_STATUS_SUCCESS) kiln__rocm_device_lose(data, status);
}

static kiln_status queue_create(kiln__rocm_device *rocm, kiln__rocm_queue *queue) {
    kiln__hsa_queue *native = NULL;
    KILN__ROCM_TRY(rocm->device, queue_create, rocm->agent, rocm->queue_packets, KILN__HSA_QUEUE_TYPE_MULTI,
                   on_queue_error, rocm->device, UINT32_MAX, UINT32_MAX, &native);
    if (!native || !native->base_address || !native->size || (native->size & (native->size - 1)))
        return kiln__rocm_fail_empty(kiln__rocm_names.queue_create);
    *queue = (kiln__rocm_queue){.queue = native};
    return KILN_OK;
}

/* The queue with the fewest streams; one that does not exist yet has none. */
static kiln__rocm_queue *least_used(kiln__rocm_device *rocm) {
    kiln__rocm_queue *least = &rocm->queues[0];
    for (int i = 1; i < KILN__ROCM_QUEUES; i++)
        if (rocm->queues[i].streams < least->streams) least = &rocm->queues[i];
    return least;
}

static void queue_drop(kiln__rocm_queue *queue) {
    if (queue->streams) return;
    kiln__rocm.queue_destroy(queue->queue);
    queue->queue = NULL;
}

static kiln_status acquire_locked(kiln__rocm_device *rocm, bool timing, kiln__rocm_queue **out_queue) {
    kiln__rocm_queue *queue = least_used(rocm);
    if (!queue->queue) KILN__TRY(queue_create(rocm, queue));
    if (timing && !queue->profiled) {
        kiln__hsa_status status = kiln__rocm.set_profiler_enabled(queue->queue, 1);
        if (status != KILN__HSA_STATUS_SUCCESS) {
            queue_drop(queue);
            return kiln__rocm_fail(rocm->device, kiln__rocm_names.set_profiler_enabled, status);
        }
        queue->profiled = true;
    }
    queue->streams++;
    *out_queue = queue;
    return KILN_OK;
}

kiln_status kiln__rocm_queue_acquire(kiln__rocm_device *rocm, bool timing, kiln__rocm_queue **out_queue) {
    pthread_mutex_lock(&rocm->queue_lock);
    kiln_status status = acquire_locked(rocm, timing, out_queue);
    pthread_mutex_unlock(&rocm->queue_lock);
    return status;
}

void kiln__rocm_queue_release(kiln__rocm_device *rocm, kiln__rocm_queue *queue) {
    pthread_mutex_lock(&rocm->queue_lock);
    queue->streams--;
    queue_drop(queue);
    pthread_mutex_unlock(&rocm->queue_lock);
}

/* A queue of thousands of packets is full: sleeping costs nothing then, and spinning a whole core. */
kiln_status kiln__rocm_queue_wait(kiln__rocm_stream *stream, uint64_t index) {
    for (;;) {
        stream->read_seen = kiln__rocm.queue_load_read_index(stream->queue);
        if (index - stream->read_seen <= stream->packet_mask) return KILN_OK;
        KILN__TRY(kiln__device_check(stream->rocm->device));
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    }
}

/* A signal that is not done yet never will be on a lost device, or behind a copy that failed. */
static kiln_status check_progress(kiln__rocm_device *rocm) {
    KILN__TRY(kiln__device_check(rocm->device));
    if (!kiln__rocm_signals_failed(&rocm->signals)) return KILN_OK;
    kiln__device_lose(rocm->device, "%s: a copy failed on the device", kiln__rocm_names.async_copy);
    return kiln__fail(KILN_ERROR_DRIVER, "%s: a copy failed on the device", kiln__rocm_names.async_copy);
}

kiln_status kiln__rocm_wait(kiln__rocm_device *rocm, kiln__hsa_signal signal) {
    const uint64_t timeout = rocm->ticks_per_second / 16;
    while (kiln__rocm.signal_wait(signal, KILN__HSA_SIGNAL_CONDITION_LT, 1, timeout, KILN__HSA_WAIT_STATE_BLOCKED) > 0)
        KILN__TRY(check_progress(rocm));
    return kiln__device_check(rocm->device);
}

kiln_status kiln__rocm_poll(kiln__rocm_device *rocm, kiln__hsa_signal signal, bool *out_done) {
    *out_done = kiln__rocm.signal_load(signal) <= 0;
    return *out_done ? kiln__device_check(rocm->device) : check_progress(rocm);
}

kiln_status kiln__rocm_barrier(kiln__rocm_stream *stream, kiln__hsa_signal dependency, kiln__hsa_signal completion) {
    uint64_t index;
    KILN__TRY(kiln__rocm_reserve(stream, &index));
    stream->barriers++;
    kiln__hsa_barrier_packet *packet = (kiln__hsa_barrier_packet *)(void *)kiln__rocm_packet(stream, index);
    packet->reserved1 = 0;
    packet->dep_signal[0] = dependency;
    for (int i = 1; i < 5; i++)
        packet->dep_signal[i] = (kiln__hsa_signal){0};
    packet->reserved2 = 0;
    packet->completion_signal = completion;
    kiln__rocm_publish(stream, index, packet, KILN__ROCM_BARRIER_HEADER);
    return KILN_OK;
}
