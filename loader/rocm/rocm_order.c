/* Memory in stream order.
 *
 * The runtime frees memory at once, whatever is running. So memory that a stream frees is kept, with the signal of a
 * barrier packet after the work that the stream has so far, and allocations take such memory first: either what the
 * same stream freed, since its earlier work ends before its next begins, or what is no longer in use. The rest is
 * returned to the runtime when an allocation finds nothing suitable, and when the device is closed. */
#include "loader/rocm/rocm_queue.h"
#include <stdlib.h>

struct kiln__rocm_freed {
    void *memory;
    size_t size;
    kiln__rocm_signal *done;
    const kiln__rocm_stream *stream; /* that freed it, compared and no more */
    kiln__rocm_freed *next;
};

static bool is_done(const kiln__rocm_freed *freed) {
    return kiln__rocm.signal_load(freed->done->handle) <= 0;
}

/* Takes an entry out of the list. Its memory is the caller's. */
static void *take_out(kiln__rocm_device *rocm, kiln__rocm_freed **place) {
    kiln__rocm_freed *freed = *place;
    void *memory = freed->memory;
    *place = freed->next;
    kiln__rocm_signal_drop(&rocm->signals, freed->done);
    free(freed);
    return memory;
}

/* The smallest that is enough, and not twice as much as that. NULL: none. */
static void *take_suitable(kiln__rocm_device *rocm, const kiln__rocm_stream *stream, size_t size) {
    kiln__rocm_freed **best = NULL;
    for (kiln__rocm_freed **place = &rocm->freed; *place; place = &(*place)->next) {
        const kiln__rocm_freed *freed = *place;
        if (freed->size < size || freed->size / 2 > size || (best && freed->size >= (*best)->size)) continue;
        if (freed->stream == stream || is_done(freed)) best = place;
    }
    return best ? take_out(rocm, best) : NULL;
}

static bool release_done(kiln__rocm_device *rocm) {
    bool any = false;
    for (kiln__rocm_freed **place = &rocm->freed; *place;) {
        if (is_done(*place)) {
            kiln__rocm.pool_free(take_out(rocm, place));
            any = true;
        } else {
            place = &(*place)->next;
        }
    }
    return any;
}

bool kiln__rocm_freed_release(kiln__rocm_device *rocm) {
    pthread_mutex_lock(&rocm->freed_lock);
    const bool any = release_done(rocm);
    pthread_mutex_unlock(&rocm->freed_lock);
    return any;
}

void kiln__rocm_freed_close(kiln__rocm_device *rocm) {
    while (rocm->freed)
        kiln__rocm.pool_free(take_out(rocm, &rocm->freed));
    pthread_mutex_destroy(&rocm->freed_lock);
}

kiln_status kiln__rocm_memory_alloc_async(kiln_stream *stream, size_t size, void **out_memory) {
    kiln__rocm_device *rocm = stream->device->native;
    pthread_mutex_lock(&rocm->freed_lock);
    *out_memory = take_suitable(rocm, stream->state, size);
    if (!*out_memory) release_done(rocm);
    pthread_mutex_unlock(&rocm->freed_lock);
    return *out_memory ? KILN_OK : kiln__rocm_memory_alloc(stream->device, size, out_memory);
}

static kiln_status size_of(const kiln__rocm_device *rocm, const void *memory, size_t *out_size) {
    kiln__hsa_pointer_info info = {.size = sizeof info};
    KILN__ROCM_TRY(rocm->device, pointer_info, memory, &info, NULL, NULL, NULL);
    KILN__REQUIRE(info.type == KILN__HSA_EXT_POINTER_TYPE_HSA && info.agent_base_address == memory &&
                      info.agent_owner.handle == rocm->agent.handle,
                  "kiln_memory_free_async: memory is %p: must be of an allocation on rocm:%d, and its beginning",
                  memory, rocm->device->info.ordinal);
    *out_size = info.size_in_bytes;
    return KILN_OK;
}

static bool is_freed(const kiln__rocm_device *rocm, const void *memory) {
    const kiln__rocm_freed *freed = rocm->freed;
    while (freed && freed->memory != memory)
        freed = freed->next;
    return freed;
}

/* Gives an entry the signal of a packet behind the stream's work. */
static kiln_status put_signal(kiln__rocm_stream *stream, kiln__rocm_freed *freed) {
    kiln__rocm_device *rocm = stream->rocm;
    KILN__REQUIRE(!is_freed(rocm, freed->memory), "kiln_memory_free_async: memory %p is freed already", freed->memory);
    KILN__TRY(kiln__rocm_signal_take(&rocm->signals, NULL, &freed->done));
    const kiln_status status = kiln__rocm_barrier(stream, (kiln__hsa_signal){0}, freed->done->handle);
    if (status != KILN_OK) kiln__rocm_signal_cancel(&rocm->signals, freed->done);
    return status;
}

kiln_status kiln__rocm_memory_free_async(kiln_stream *stream, void *memory) {
    kiln__rocm_device *rocm = stream->device->native;
    size_t size = 0;
    KILN__TRY(size_of(rocm, memory, &size));
    kiln__rocm_freed *freed = malloc(sizeof *freed);
    if (!freed) return kiln__fail(KILN_ERROR_OUT_OF_MEMORY, "kiln_memory_free_async: no memory for an entry");
    *freed = (kiln__rocm_freed){.memory = memory, .size = size, .stream = stream->state};
    pthread_mutex_lock(&rocm->freed_lock);
    const kiln_status status = put_signal(stream->state, freed);
    if (status == KILN_OK) {
        freed->next = rocm->freed;
        rocm->freed = freed;
    }
    pthread_mutex_unlock(&rocm->freed_lock);
    if (status != KILN_OK) free(freed);
    return status;
}
