/* Queues and packets.
 *
 * Every packet has the barrier bit set, so that a stream's work runs in order even if streams share a queue.
 *
 * System-scope fences write back or invalidate the L2 cache, so launches on kiln's own queues use agent scope. The host
 * and other devices read results only after a barrier packet (a wait, a copy, an event), which acquires and releases at
 * system scope; after a host wait, the next launch acquires at system scope, to see what the host wrote. On a borrowed
 * queue the application may read results after any launch, so every launch uses system scope.
 *
 * A packet is published in this order: first take everything that can fail (a kernarg slot, a signal), then reserve the
 * packet index, wait while the queue is full, write all but the first 32 bits, store those with release, and ring the
 * doorbell. Between reserving and publishing, nothing may fail unless the device is lost: an index reserved but never
 * published would stall the queue forever. */
#ifndef KILN_LOADER_ROCM_QUEUE_H
#define KILN_LOADER_ROCM_QUEUE_H

#include "loader/rocm/rocm_backend.h"

enum {
    KILN__ROCM_ORDERED = 1 << KILN__HSA_PACKET_HEADER_BARRIER,
    KILN__ROCM_AGENT_ACQUIRE = KILN__HSA_FENCE_SCOPE_AGENT << KILN__HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE,
    KILN__ROCM_AGENT_RELEASE = KILN__HSA_FENCE_SCOPE_AGENT << KILN__HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE,
    KILN__ROCM_SYSTEM_ACQUIRE = KILN__HSA_FENCE_SCOPE_SYSTEM << KILN__HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE,
    KILN__ROCM_SYSTEM_RELEASE = KILN__HSA_FENCE_SCOPE_SYSTEM << KILN__HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE,
    KILN__ROCM_HEADER = KILN__ROCM_ORDERED | KILN__ROCM_SYSTEM_ACQUIRE | KILN__ROCM_SYSTEM_RELEASE,
    KILN__ROCM_DISPATCH = KILN__ROCM_ORDERED | KILN__HSA_PACKET_TYPE_KERNEL_DISPATCH |
                          3 << (16 + KILN__HSA_KERNEL_DISPATCH_PACKET_SETUP_DIMENSIONS),
    KILN__ROCM_BARRIER_HEADER = KILN__ROCM_HEADER | KILN__HSA_PACKET_TYPE_BARRIER_AND,
};

/* Creates or shares a queue. Returns KILN_OK, KILN_ERROR_OUT_OF_MEMORY, KILN_ERROR_DRIVER. */
kiln_status kiln__rocm_queue_acquire(kiln__rocm_device *rocm, bool timing, kiln__rocm_queue **out_queue);
void kiln__rocm_queue_release(kiln__rocm_device *rocm, kiln__rocm_queue *queue);

/* Waits until the packet of a reserved index may be written. Returns KILN_OK or KILN_ERROR_DEVICE_LOST. */
kiln_status kiln__rocm_queue_wait(kiln__rocm_stream *stream, uint64_t index) __attribute__((cold));

/* Waits until a signal is 0. Returns KILN_OK, KILN_ERROR_DEVICE_LOST (the packet will never complete),
 * KILN_ERROR_DRIVER (a copy failed, which loses the device). */
kiln_status kiln__rocm_wait(kiln__rocm_device *rocm, kiln__hsa_signal signal) __attribute__((cold));

/* Publishes a barrier packet: when all earlier packets are done and dependency (if any) is 0, it decrements completion.
 * Returns KILN_OK or KILN_ERROR_DEVICE_LOST. */
kiln_status kiln__rocm_barrier(kiln__rocm_stream *stream, kiln__hsa_signal dependency, kiln__hsa_signal completion);

/* Like kiln__rocm_wait, but does not wait: *out_done is whether the signal is 0. */
kiln_status kiln__rocm_poll(kiln__rocm_device *rocm, kiln__hsa_signal signal, bool *out_done);

/* Counts the stream's packets. On a borrowed queue, the application's packets are the stream's work too. */
static inline uint64_t kiln__rocm_queue_work(const kiln__rocm_stream *stream) {
    return stream->own ? stream->slots + stream->barriers : kiln__rocm.queue_load_write_index(stream->queue);
}

/* Reserves a packet. It must be published next. Returns KILN_OK or KILN_ERROR_DEVICE_LOST. */
static inline kiln_status kiln__rocm_reserve(kiln__rocm_stream *stream, uint64_t *out_index) {
    *out_index = kiln__rocm.queue_add_write_index(stream->queue, 1);
    if (KILN__UNLIKELY(*out_index - stream->read_seen > stream->packet_mask))
        return kiln__rocm_queue_wait(stream, *out_index);
    return KILN_OK;
}

static inline kiln__hsa_dispatch_packet *kiln__rocm_packet(kiln__rocm_stream *stream, uint64_t index) {
    return &stream->packets[index & stream->packet_mask];
}

/* Stores header and setup as one word, which hands the packet to the device, and rings the doorbell. */
static inline void kiln__rocm_publish(kiln__rocm_stream *stream, uint64_t index, void *packet, uint32_t header) {
    __atomic_store_n((uint32_t *)packet, header, __ATOMIC_RELEASE);
    kiln__rocm.signal_store_release(stream->doorbell, (kiln__hsa_signal_value)index);
}

#endif
