#include "loader/rocm/rocm_queue.h"
#include <stdlib.h>

static void stream_free(kiln__rocm_stream *stream) {
    for (int i = 0; i < KILN__ROCM_RING_SECTIONS; i++)
        if (stream->sections[i].handle) kiln__rocm.signal_destroy(stream->sections[i]);
    if (stream->idle.handle) kiln__rocm.signal_destroy(stream->idle);
    if (stream->mark.handle) kiln__rocm.signal_destroy(stream->mark);
    if (stream->staging) kiln__rocm.pool_free(stream->staging);
    if (stream->ring) kiln__rocm.pool_free(stream->ring);
    if (stream->own) kiln__rocm_queue_release(stream->rocm, stream->own);
    free(stream);
}

/* Creates the ring and its signals. After a failure, what was created stays in the stream for stream_free. */
static kiln_status stream_fill(kiln__rocm_stream *stream) {
    void *ring;
    KILN__TRY(kiln__rocm_pool_alloc(stream->rocm->device, stream->rocm->kernarg_pool, &stream->rocm->agent, 1,
                                    KILN__ROCM_RING_SLOTS * KILN__ROCM_SLOT_BYTES, &ring));
    stream->ring = ring;
    for (int i = 0; i < KILN__ROCM_RING_SECTIONS; i++)
        KILN__TRY(kiln__rocm_signal_create(0, &stream->sections[i]));
    KILN__TRY(kiln__rocm_signal_create(0, &stream->idle));
    return kiln__rocm_signal_create(0, &stream->mark);
}

/* The host may have written what the next launch reads. */
static void acquire_from_host(kiln__rocm_stream *stream) {
    stream->header = (stream->header_behind & ~(uint32_t)KILN__ROCM_AGENT_ACQUIRE) | KILN__ROCM_SYSTEM_ACQUIRE;
}

/* Makes a stream on a queue: own, or borrowed if own is NULL. own's count passes to the stream. */
static kiln_status stream_create(kiln_device *device, kiln__hsa_queue *queue, kiln__rocm_queue *own, bool timing,
                                 kiln_stream *out_stream) {
    kiln__rocm_device *rocm = device->native;
    kiln__rocm_stream *stream = calloc(1, sizeof *stream);
    if (!stream) {
        if (own) kiln__rocm_queue_release(rocm, own);
        return kiln__fail(KILN_ERROR_OUT_OF_MEMORY, "kiln_stream_open: no memory for the stream");
    }
    stream->rocm = rocm;
    stream->queue = queue;
    stream->own = own;
    stream->timing = timing;
    stream->header_behind = own ? KILN__ROCM_DISPATCH | KILN__ROCM_AGENT_ACQUIRE | KILN__ROCM_AGENT_RELEASE
                                : KILN__ROCM_DISPATCH | KILN__ROCM_SYSTEM_ACQUIRE | KILN__ROCM_SYSTEM_RELEASE;
    acquire_from_host(stream);
    stream->packets = queue->base_address;
    stream->packet_mask = queue->size - 1;
    stream->read_seen = kiln__rocm.queue_load_read_index(queue);
    stream->doorbell = queue->doorbell_signal;
    kiln_status status = stream_fill(stream);
    if (status != KILN_OK) {
        stream_free(stream);
        return status;
    }
    *out_stream = (kiln_stream){device, queue, stream};
    return KILN_OK;
}

kiln_status kiln__rocm_stream_open(kiln_device *device, uint32_t flags, kiln_stream *out_stream) {
    const bool timing = flags & KILN_STREAM_TIMING;
    kiln__rocm_queue *queue = NULL;
    KILN__TRY(kiln__rocm_queue_acquire(device->native, timing, &queue));
    return stream_create(device, queue->queue, queue, timing, out_stream);
}

/* Later runtimes tell whose queue it is; with an older one a wrong queue is found out by the device. */
static kiln_status check_agent(kiln_device *device, kiln__hsa_queue *queue) {
    const kiln__rocm_device *rocm = device->native;
    kiln__hsa_agent agent = {0};
    if (!kiln__rocm.queue_get_info) return KILN_OK;
    KILN__ROCM_TRY(device, queue_get_info, queue, KILN__HSA_AMD_QUEUE_INFO_AGENT, &agent);
    if (!agent.handle) return kiln__rocm_fail_empty(kiln__rocm_names.queue_get_info);
    KILN__REQUIRE(agent.handle == rocm->agent.handle,
                  "kiln_stream_borrow: native is a queue of another agent: must be of rocm:%d's", device->info.ordinal);
    return KILN_OK;
}

/* The application's queue keeps its profiling state, so kiln's events on it cannot be timed. */
kiln_status kiln__rocm_stream_borrow(kiln_device *device, void *native, kiln_stream *out_stream) {
    kiln__hsa_queue *queue = native;
    KILN__REQUIRE(queue, "kiln_stream_borrow: native is NULL: must be an hsa_queue_t of the device's agent");
    KILN__REQUIRE(queue->base_address && queue->size && !(queue->size & (queue->size - 1)) &&
                      (queue->features & KILN__HSA_QUEUE_FEATURE_KERNEL_DISPATCH),
                  "kiln_stream_borrow: native is not a queue of kernel dispatches");
    KILN__TRY(check_agent(device, queue));
    return stream_create(device, queue, NULL, false, out_stream);
}

kiln_status kiln__rocm_stream_sync(kiln_stream *stream) {
    kiln__rocm_stream *state = stream->state;
    const uint64_t work = kiln__rocm_queue_work(state);
    kiln__rocm.signal_store_relaxed(state->idle, 1);
    KILN__TRY(kiln__rocm_barrier(state, (kiln__hsa_signal){0}, state->idle));
    acquire_from_host(state);
    KILN__TRY(kiln__rocm_wait(state->rocm, state->idle));
    state->marked = work + 1; /* with the barrier packet; the mark in front of it is done, too */
    return KILN_OK;
}

/* A barrier packet behind the work that there is. */
static kiln_status put_mark(kiln__rocm_stream *state, uint64_t work) {
    kiln__rocm.signal_store_relaxed(state->mark, 1);
    KILN__TRY(kiln__rocm_barrier(state, (kiln__hsa_signal){0}, state->mark));
    state->marked = work + 1;
    return KILN_OK;
}

static bool is_full(const kiln__rocm_stream *state) {
    return kiln__rocm.queue_load_write_index(state->queue) - kiln__rocm.queue_load_read_index(state->queue) >
           state->packet_mask;
}

/* A queue says which packets were read, not which are done: so a mark is put behind new work, once the one before is
 * done. A queue without room for it has work to do. */
kiln_status kiln__rocm_stream_query(kiln_stream *stream, bool *out_done) {
    kiln__rocm_stream *state = stream->state;
    const uint64_t work = kiln__rocm_queue_work(state);
    KILN__TRY(kiln__rocm_poll(state->rocm, state->mark, out_done));
    if (*out_done && work != state->marked) {
        *out_done = false;
        if (is_full(state)) return KILN_OK;
        KILN__TRY(put_mark(state, work));
        KILN__TRY(kiln__rocm_poll(state->rocm, state->mark, out_done));
    }
    if (*out_done) acquire_from_host(state);
    return KILN_OK;
}

/* A lost device's remaining work is not waited for, since it may never be done. Nor may it begin once its arguments are
 * freed; on a borrowed queue the application has to ensure that. */
void kiln__rocm_stream_close(kiln_stream *stream) {
    kiln__rocm_stream *state = stream->state;
    const bool done = kiln__device_check(stream->device) == KILN_OK && kiln__rocm_stream_sync(stream) == KILN_OK;
    if (!done && state->own) kiln__rocm.queue_inactivate(state->queue);
    stream_free(state);
}

/* HSA has no stream capture. */
kiln_status kiln__rocm_stream_capturing(kiln_stream *stream, bool *out_capturing) {
    (void)stream;
    *out_capturing = false;
    return KILN_OK;
}
