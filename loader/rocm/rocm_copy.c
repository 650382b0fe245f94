/* Copies.
 *
 * The runtime's copy engines are independent of queues. So a copy waits for the signal of a barrier packet, and a
 * second barrier packet, after which the stream continues, waits for the signal of the copy. */
#include "loader/rocm/rocm_copy.h"
#include "loader/rocm/rocm_queue.h"
#include <string.h>

enum { STAGING_BYTES = 1 << 20, STAGED_MOST = 64 << 10 };

/* The signals of a run of copies: before them, each one's own, and that of the packet that waits for the last. Each
 * waits for the one in front of it. */
typedef struct copy_signals {
    kiln__rocm_signal *list[KILN__ROCM_RUN_MOST + 2];
    uint32_t count;
} copy_signals;

static void cancel(kiln__rocm_signals *pool, const copy_signals *signals, uint32_t from) {
    for (uint32_t i = signals->count; i > from; i--)
        kiln__rocm_signal_cancel(pool, signals->list[i - 1]);
}

static kiln_status take(kiln__rocm_signals *pool, uint32_t copies, copy_signals *signals) {
    kiln__rocm_signal *target = NULL;
    for (signals->count = 0; signals->count < copies + 2; signals->count++) {
        const kiln_status status = kiln__rocm_signal_take(pool, target, &signals->list[signals->count]);
        if (status != KILN_OK) {
            cancel(pool, signals, 0);
            return status;
        }
        target = signals->list[signals->count];
    }
    return KILN_OK;
}

/* Hands copies to the engine; *out_given is how many it has. */
static kiln__hsa_status give(const kiln__rocm_copy_piece *pieces, uint32_t count, const copy_signals *signals,
                             uint32_t *out_given) {
    for (*out_given = 0; *out_given < count; ++*out_given) {
        const kiln__rocm_copy_piece *piece = &pieces[*out_given];
        kiln__rocm_signal *copied = signals->list[*out_given + 1];
        const kiln__hsa_status status =
            kiln__rocm.async_copy(piece->to, piece->to_agent, piece->from, piece->from_agent, piece->size, 1,
                                  &signals->list[*out_given]->handle, copied->handle);
        if (status != KILN__HSA_STATUS_SUCCESS) return status;
        copied->copies = true;
    }
    return KILN__HSA_STATUS_SUCCESS;
}

kiln_status kiln__rocm_copies_begin(kiln__rocm_stream *stream, const kiln__rocm_copy_piece *pieces, uint32_t count,
                                    kiln__rocm_signal **out_copied) {
    kiln__rocm_signals *pool = &stream->rocm->signals;
    copy_signals signals = {0};
    uint32_t given;
    *out_copied = NULL;
    KILN__TRY(take(pool, count, &signals));
    kiln_status status = kiln__rocm_barrier(stream, (kiln__hsa_signal){0}, signals.list[0]->handle);
    if (status != KILN_OK) {
        cancel(pool, &signals, 0);
        return status;
    }
    const kiln__hsa_status refused = give(pieces, count, &signals, &given);
    if (refused != KILN__HSA_STATUS_SUCCESS) {
        cancel(pool, &signals, given + 1);
        if (given) kiln__rocm_wait(stream->rocm, signals.list[given]->handle);
        status = kiln__rocm_fail(stream->rocm->device, kiln__rocm_names.async_copy, refused);
    } else {
        status = kiln__rocm_barrier(stream, signals.list[count]->handle, signals.list[count + 1]->handle);
        kiln__rocm_signal_drop(pool, signals.list[count + 1]);
    }
    for (uint32_t i = 0; i < given; i++)
        kiln__rocm_signal_drop(pool, signals.list[i]);
    if (given)
        *out_copied = signals.list[given];
    else
        kiln__rocm_signal_drop(pool, signals.list[0]);
    return status;
}

bool kiln__rocm_copies_end(kiln__rocm_device *rocm, kiln__rocm_signal *copied, kiln_status status) {
    const bool ended = status == KILN_OK || !copied ||
                       kiln__rocm.signal_wait(copied->handle, KILN__HSA_SIGNAL_CONDITION_LT, 1, rocm->ticks_per_second,
                                              KILN__HSA_WAIT_STATE_BLOCKED) < 1;
    kiln__rocm_signal_drop(&rocm->signals, copied);
    return ended;
}

static kiln_status copy_begin(kiln__rocm_stream *stream, void *destination, const void *source, size_t size,
                              kiln_copy_direction direction, kiln__rocm_signal **out_copied) {
    const kiln__rocm_device *rocm = stream->rocm;
    const kiln__rocm_copy_piece piece = {destination, direction == KILN_COPY_TO_HOST ? rocm->host : rocm->agent, source,
                                         direction == KILN_COPY_TO_DEVICE ? rocm->host : rocm->agent, size};
    return kiln__rocm_copies_begin(stream, &piece, 1, out_copied);
}

/* The same, without waiting for the copy unless an error makes it impossible to wait for it later. */
static kiln_status copy_ordered(kiln__rocm_stream *stream, void *destination, const void *source, size_t size,
                                kiln_copy_direction direction) {
    kiln__rocm_signal *copied;
    const kiln_status status = copy_begin(stream, destination, source, size, direction, &copied);
    kiln__rocm_copies_end(stream->rocm, copied, status);
    return status;
}

/* How the device can reach a range of host memory. */
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
    KILN__ROCM_TRY(rocm->device, pointer_info, host, &info, agents_room, &count, &agents);
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
    *out_ended = kiln__rocm_copies_end(state->rocm, copied, status);
    return status;
}

/* The stream's pinned buffer, made by the first copy that needs it. One that a copy may still use is left for good. */
static kiln_status staging_get(kiln__rocm_stream *stream) {
    if (stream->staging) return KILN_OK;
    return kiln__rocm_pool_alloc(stream->rocm->device, stream->rocm->host_pool, &stream->rocm->agent, 1, STAGING_BYTES,
                                 &stream->staging);
}

/* Through a pinned buffer: for little, and for memory that cannot be locked, such as a file mapped for reading, or
 * another device's. */
static kiln_status copy_staged(kiln_stream *stream, const copy_piece *whole, kiln_copy_direction direction) {
    kiln__rocm_stream *state = stream->state;
    bool ended = true;
    KILN__TRY(staging_get(state));
    for (size_t done = 0; done < whole->size; done += STAGING_BYTES) {
        const size_t left = whole->size - done;
        const copy_piece piece = {state->staging, whole->device + done, left < STAGING_BYTES ? left : STAGING_BYTES};
        if (direction == KILN_COPY_TO_DEVICE) memcpy(piece.host, whole->host + done, piece.size);
        const kiln_status status = copy_waited(stream, &piece, direction, &ended);
        if (!ended) state->staging = NULL;
        if (status != KILN_OK) return status;
        if (direction == KILN_COPY_TO_HOST) memcpy(whole->host + done, piece.host, piece.size);
    }
    return KILN_OK;
}

/* Pageable host memory is locked for the duration of the copy, unless staging the bytes costs less. */
static kiln_status copy_pageable(kiln_stream *stream, const copy_piece *whole, kiln_copy_direction direction) {
    kiln__rocm_device *rocm = stream->device->native;
    void *reachable = NULL;
    if (whole->size <= STAGED_MOST ||
        kiln__rocm.memory_lock(whole->host, whole->size, &rocm->agent, 1, &reachable) != KILN__HSA_STATUS_SUCCESS)
        return copy_staged(stream, whole, direction);
    kiln_status status = KILN_OK;
    bool ended = true;
    if (reachable)
        status = copy_waited(stream, &(copy_piece){reachable, whole->device, whole->size}, direction, &ended);
    else
        status = kiln__rocm_fail_empty(kiln__rocm_names.memory_lock);
    if (ended) kiln__rocm.memory_unlock(whole->host);
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
