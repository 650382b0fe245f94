/* Copies and fills.
 *
 * The runtime's copy engines know nothing of queues: a copy waits for the signal of a barrier packet, and a second
 * barrier packet, behind which the stream goes on, waits for the copy's. */
#include "loader/rocm/rocm_queue.h"
#include <stdlib.h>
#include <string.h>

enum { STAGING_BYTES = 1 << 20 };

/* The three signals of a copy: before it, its own, and that of the packet that waits for it. */
typedef struct copy_signals {
    kiln__rocm_signal *before, *copied, *after;
} copy_signals;

static void cancel(kiln__rocm_signals *pool, const copy_signals *signals) {
    kiln__rocm_signal_cancel(pool, signals->copied);
    kiln__rocm_signal_cancel(pool, signals->after);
}

static kiln_status take(kiln__rocm_signals *pool, copy_signals *signals) {
    kiln_status status = kiln__rocm_signal_take(pool, NULL, &signals->before);
    if (status == KILN_OK) status = kiln__rocm_signal_take(pool, signals->before, &signals->copied);
    if (status == KILN_OK) status = kiln__rocm_signal_take(pool, signals->copied, &signals->after);
    if (status == KILN_OK) return KILN_OK;
    cancel(pool, signals);
    kiln__rocm_signal_cancel(pool, signals->before);
    return status;
}

/* Hands a copy to the engine, in stream order, between memory that the device can reach. *out_copied is the copy's
 * signal with a hold for the caller, NULL if the engine was given nothing. Behind a copy that the engine has, only the
 * loss of the device is an error. */
static kiln_status copy_begin(kiln__rocm_stream *stream, void *destination, const void *source, size_t size,
                              kiln_copy_direction direction, kiln__rocm_signal **out_copied) {
    kiln__rocm_device *rocm = stream->rocm;
    kiln__rocm_signals *pool = &rocm->signals;
    copy_signals signals = {0};
    *out_copied = NULL;
    KILN__TRY(take(pool, &signals));
    kiln_status status = kiln__rocm_barrier(stream, (kiln__hsa_signal){0}, signals.before->handle);
    if (status != KILN_OK) {
        cancel(pool, &signals);
        kiln__rocm_signal_cancel(pool, signals.before);
        return status;
    }
    kiln__hsa_status copied =
        kiln__hsa.async_copy(destination, direction == KILN_COPY_TO_HOST ? rocm->host : rocm->agent, source,
                             direction == KILN_COPY_TO_DEVICE ? rocm->host : rocm->agent, size, 1,
                             &signals.before->handle, signals.copied->handle);
    if (copied != KILN__HSA_STATUS_SUCCESS) {
        cancel(pool, &signals);
        kiln__rocm_signal_drop(pool, signals.before);
        return kiln__hsa_fail(copied, kiln__hsa_names.async_copy);
    }
    signals.copied->copies = true;
    status = kiln__rocm_barrier(stream, signals.copied->handle, signals.after->handle);
    kiln__rocm_signal_drop(pool, signals.before);
    kiln__rocm_signal_drop(pool, signals.after);
    *out_copied = signals.copied;
    return status;
}

/* Gives up a copy's signal. After an error the engine has a second to be done with the copy, since it may outlive the
 * device's queues; false if it is not: then it may read and write its memory at any time. */
static bool copy_end(kiln__rocm_device *rocm, kiln__rocm_signal *copied, kiln_status status) {
    const bool ended = status == KILN_OK || !copied ||
                       kiln__hsa.signal_wait(copied->handle, KILN__HSA_SIGNAL_CONDITION_LT, 1, rocm->ticks_per_second,
                                             KILN__HSA_WAIT_STATE_BLOCKED) < 1;
    kiln__rocm_signal_drop(&rocm->signals, copied);
    return ended;
}

/* The same without waiting for the copy, unless it cannot be waited for later. */
static kiln_status copy_ordered(kiln__rocm_stream *stream, void *destination, const void *source, size_t size,
                                kiln_copy_direction direction) {
    kiln__rocm_signal *copied;
    const kiln_status status = copy_begin(stream, destination, source, size, direction, &copied);
    copy_end(stream->rocm, copied, status);
    return status;
}

/* How the device comes to a range of host memory. */
typedef enum host_kind {
    HOST_PAGEABLE,
    HOST_PINNED,  /* of the runtime's, and granted to the device */
    HOST_FOREIGN, /* of the runtime's, and granted to other devices alone: it cannot be locked */
} host_kind;

/* Where the runtime leaves the list of agents that it is asked for: in the thread's own memory, since a copy allocates
 * nothing. */
enum { AGENTS_MOST = 64 };
static _Thread_local kiln__hsa_agent told_agents[AGENTS_MOST];

static void *agents_room(size_t size) {
    return size <= sizeof told_agents ? told_agents : NULL;
}

static kiln_status host_kind_of(const kiln__rocm_device *rocm, const void *host, size_t size, host_kind *out_kind) {
    kiln__hsa_pointer_info info = {.size = sizeof info};
    kiln__hsa_agent *agents = NULL;
    uint32_t count = 0;
    *out_kind = HOST_PAGEABLE;
    KILN__HSA_TRY(pointer_info, host, &info, agents_room, &count, &agents);
    const uintptr_t begin = (uintptr_t)host, base = (uintptr_t)info.host_base_address;
    if (info.type == KILN__HSA_EXT_POINTER_TYPE_HSA && begin >= base && size <= info.size_in_bytes &&
        begin - base <= info.size_in_bytes - size)
        *out_kind = HOST_FOREIGN;
    for (int32_t i = 0; i < rocm->gpu_count && *out_kind == HOST_FOREIGN; i++)
        if (rocm->gpus[i].handle == info.agent_owner.handle) *out_kind = HOST_PINNED; /* the engine judges it */
    for (uint32_t i = 0; agents && i < count && *out_kind == HOST_FOREIGN; i++)
        if (agents[i].handle == rocm->agent.handle) *out_kind = HOST_PINNED;
    return KILN_OK;
}

/* A piece of a copy, waited for: host and device advance together. */
typedef struct copy_piece {
    char *host, *device;
    size_t size;
} copy_piece;

/* *out_ended is false if the copy may still run after an error: what it uses must then stay. */
static kiln_status copy_waited(kiln_stream *stream, const copy_piece *piece, kiln_copy_direction direction,
                               bool *out_ended) {
    kiln__rocm_stream *state = stream->state;
    kiln__rocm_signal *copied;
    kiln_status status = direction == KILN_COPY_TO_DEVICE
                             ? copy_begin(state, piece->device, piece->host, piece->size, direction, &copied)
                             : copy_begin(state, piece->host, piece->device, piece->size, direction, &copied);
    if (status == KILN_OK) status = kiln__rocm_stream_sync(stream);
    *out_ended = copy_end(state->rocm, copied, status);
    return status;
}

/* Through a pinned buffer: for memory that cannot be locked, such as a file mapped for reading, or another device's. */
static kiln_status copy_staged(kiln_stream *stream, const copy_piece *whole, kiln_copy_direction direction) {
    kiln__rocm_device *rocm = stream->device->native;
    const size_t staging_size = whole->size < STAGING_BYTES ? whole->size : STAGING_BYTES;
    void *staging;
    KILN__TRY(kiln__rocm_pool_alloc(rocm, rocm->host_pool, false, staging_size, &staging));
    kiln_status status = KILN_OK;
    bool ended = true;
    for (size_t done = 0; status == KILN_OK && done < whole->size; done += staging_size) {
        const size_t left = whole->size - done;
        const copy_piece piece = {staging, whole->device + done, left < staging_size ? left : staging_size};
        if (direction == KILN_COPY_TO_DEVICE) memcpy(staging, whole->host + done, piece.size);
        status = copy_waited(stream, &piece, direction, &ended);
        if (status == KILN_OK && direction == KILN_COPY_TO_HOST) memcpy(whole->host + done, staging, piece.size);
    }
    if (ended) kiln__hsa.pool_free(staging);
    return status;
}

/* Pageable host memory is locked for the time of the copy. */
static kiln_status copy_pageable(kiln_stream *stream, const copy_piece *whole, kiln_copy_direction direction) {
    kiln__rocm_device *rocm = stream->device->native;
    void *reachable = NULL;
    if (kiln__hsa.memory_lock(whole->host, whole->size, &rocm->agent, 1, &reachable) != KILN__HSA_STATUS_SUCCESS)
        return copy_staged(stream, whole, direction);
    kiln_status status = KILN_OK;
    bool ended = true;
    if (reachable)
        status = copy_waited(stream, &(copy_piece){reachable, whole->device, whole->size}, direction, &ended);
    else
        status = kiln__hsa_fail_empty(kiln__hsa_names.memory_lock);
    if (ended) kiln__hsa.memory_unlock(whole->host);
    return status;
}

kiln_status kiln__rocm_copy(kiln_stream *stream, void *destination, const void *source, size_t size,
                            kiln_copy_direction direction) {
    if (direction == KILN_COPY_ON_DEVICE) return copy_ordered(stream->state, destination, source, size, direction);
    const bool to_device = direction == KILN_COPY_TO_DEVICE;
    const copy_piece whole = {to_device ? (char *)(uintptr_t)source : destination,
                              to_device ? destination : (char *)(uintptr_t)source, size};
    host_kind kind;
    KILN__TRY(host_kind_of(stream->device->native, whole.host, size, &kind));
    if (kind == HOST_PINNED) return copy_ordered(stream->state, destination, source, size, direction);
    return kind == HOST_FOREIGN ? copy_staged(stream, &whole, direction) : copy_pageable(stream, &whole, direction);
}

/* The runtime fills whole words at once and outside every queue: so the stream is waited for first, and the up to three
 * bytes before and behind the words are copied from the stream's scratch bytes, and waited for. */
kiln_status kiln__rocm_fill(kiln_stream *stream, void *destination, uint8_t value, size_t size) {
    kiln__rocm_stream *state = stream->state;
    uint8_t *bytes = destination;
    size_t head = (size_t)(-(uintptr_t)destination & 3);
    if (head > size) head = size;
    const size_t words = (size - head) / 4, tail = (size - head) % 4;
    KILN__TRY(kiln__rocm_stream_sync(stream));
    if (words) KILN__HSA_TRY(memory_fill, bytes + head, value * UINT32_C(0x01010101), words);
    uint8_t *scratch = state->ring + KILN__ROCM_RING_SLOTS * KILN__ROCM_SLOT_BYTES;
    memset(scratch, value, KILN__ROCM_SCRATCH_BYTES);
    const copy_piece pieces[] = {{(char *)scratch, (char *)bytes, head},
                                 {(char *)scratch, (char *)bytes + head + words * 4, tail}};
    bool ended;
    for (int i = 0; i < 2; i++)
        if (pieces[i].size) KILN__TRY(copy_waited(stream, &pieces[i], KILN_COPY_TO_DEVICE, &ended));
    return KILN_OK;
}
