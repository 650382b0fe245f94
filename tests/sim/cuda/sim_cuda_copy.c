/* Copies that copy and fills that fill. */
#include "tests/sim/cuda/sim_cuda.h"

/* ---- Enqueued ---- */

static kiln__cu_result submit(const char *function, sim_context *context, kiln__cu_stream handle, const sim_node *node,
                              sim_stream **out_stream) {
    *out_stream = sim_cuda_stream(function, context, handle);
    if (!*out_stream) return SIM_CUDA_INVALID_HANDLE;
    kiln__cu_result result = sim_cuda_stream_use(*out_stream);
    if (result) return result;
    sim_node submitted = *node;
    if ((*out_stream)->capture) submitted.staged = NULL;
    return sim_cuda_submit(*out_stream, &submitted);
}

/* What a copy is of. Bytes that are no memory of the driver's are pageable. */
static sim_node copy_node(void *to, const void *from, size_t size) {
    sim_node node = {.to = to, .from = from, .size = size};
    node.to_device = !sim_cuda_on_host(to);
    node.from_device = !sim_cuda_on_host(from);
    if (!sim_memory_find(from, 1)) node.staged = (void *)(uintptr_t)from;
    return node;
}

/* A copy inside a capture is part of the graph and happens when that is launched. Else pageable memory is read before
 * the call returns, and written before it returns; pinned memory when the copy's turn comes. */
static kiln__cu_result copy(const char *function, sim_context *context, kiln__cu_stream handle, void *to,
                            const void *from, size_t size) {
    const sim_node node = copy_node(to, from, size);
    sim_stream *stream;
    kiln__cu_result result = submit(function, context, handle, &node, &stream);
    return result || stream->capture || sim_memory_find(to, 1) ? result : sim_cuda_finish(stream);
}

/* A copy on the legacy default stream, for which the host waits, but for two kinds: between device memory, and from
 * pageable memory, of which it only waits until that was read (and first for what the stream had to do). */
static kiln__cu_result copy_now(const char *function, sim_context *context, void *to, const void *from, size_t size) {
    const sim_node node = copy_node(to, from, size);
    sim_stream *stream = sim_cuda_stream(function, context, NULL);
    if (!stream) return SIM_CUDA_OUT_OF_MEMORY;
    kiln__cu_result result = sim_cuda_stream_use(stream);
    if (!result && node.staged) result = sim_cuda_finish(stream);
    if (!result) result = sim_cuda_submit(stream, &node);
    if (result || (node.to_device && (node.from_device || node.staged))) return result;
    return sim_cuda_finish(stream);
}

/* ---- Copies ---- */

/* Whether a range is on the device, and whether bytes of the host can be at an address: else a violation. */
static bool check_device(const char *function, kiln__cu_address address, size_t size) {
    if (sim_cuda_on_device(address, size)) return true;
    sim_violation("%s: %zu bytes at %p are not device memory", function, size, sim_cuda_pointer(address));
    return false;
}

static bool check_host(const char *function, const void *address, size_t size) {
    const bool pinned = sim_memory_find(address, 1) != NULL;
    if (sim_cuda_on_host(address) && (!pinned || sim_memory_find(address, size))) return true;
    sim_violation("%s: %zu bytes at %p are not host memory", function, size, address);
    return false;
}

/* Of a copy that finds out itself. */
static bool check_any(const char *function, kiln__cu_address address, size_t size) {
    const void *at = sim_cuda_pointer(address);
    return sim_cuda_on_host(at) ? check_host(function, at, size) : check_device(function, address, size);
}

kiln__cu_result cuMemcpyHtoD_v2(kiln__cu_address destination, const void *source, size_t size) {
    SIM_CUDA_ENTER_CONTEXT(context);
    if (!check_device(__func__, destination, size) || !check_host(__func__, source, size))
        return SIM_CUDA_INVALID_VALUE;
    return copy_now(__func__, context, sim_cuda_pointer(destination), source, size);
}

kiln__cu_result cuMemcpyDtoH_v2(void *destination, kiln__cu_address source, size_t size) {
    SIM_CUDA_ENTER_CONTEXT(context);
    if (!check_device(__func__, source, size) || !check_host(__func__, destination, size))
        return SIM_CUDA_INVALID_VALUE;
    return copy_now(__func__, context, destination, sim_cuda_pointer(source), size);
}

kiln__cu_result cuMemcpyDtoD_v2(kiln__cu_address destination, kiln__cu_address source, size_t size) {
    SIM_CUDA_ENTER_CONTEXT(context);
    if (!check_device(__func__, source, size) || !check_device(__func__, destination, size))
        return SIM_CUDA_INVALID_VALUE;
    return copy_now(__func__, context, sim_cuda_pointer(destination), sim_cuda_pointer(source), size);
}

kiln__cu_result cuMemcpy(kiln__cu_address destination, kiln__cu_address source, size_t size) {
    SIM_CUDA_ENTER_CONTEXT(context);
    if (!check_any(__func__, source, size) || !check_any(__func__, destination, size)) return SIM_CUDA_INVALID_VALUE;
    return copy_now(__func__, context, sim_cuda_pointer(destination), sim_cuda_pointer(source), size);
}

kiln__cu_result cuMemcpyHtoDAsync_v2(kiln__cu_address destination, const void *source, size_t size,
                                     kiln__cu_stream stream) {
    SIM_CUDA_ENTER_CONTEXT(context);
    if (!check_device(__func__, destination, size) || !check_host(__func__, source, size))
        return SIM_CUDA_INVALID_VALUE;
    return copy(__func__, context, stream, sim_cuda_pointer(destination), source, size);
}

kiln__cu_result cuMemcpyDtoHAsync_v2(void *destination, kiln__cu_address source, size_t size, kiln__cu_stream stream) {
    SIM_CUDA_ENTER_CONTEXT(context);
    if (!check_device(__func__, source, size) || !check_host(__func__, destination, size))
        return SIM_CUDA_INVALID_VALUE;
    return copy(__func__, context, stream, destination, sim_cuda_pointer(source), size);
}

kiln__cu_result cuMemcpyDtoDAsync_v2(kiln__cu_address destination, kiln__cu_address source, size_t size,
                                     kiln__cu_stream stream) {
    SIM_CUDA_ENTER_CONTEXT(context);
    if (!check_device(__func__, source, size) || !check_device(__func__, destination, size))
        return SIM_CUDA_INVALID_VALUE;
    return copy(__func__, context, stream, sim_cuda_pointer(destination), sim_cuda_pointer(source), size);
}

kiln__cu_result cuMemcpyAsync(kiln__cu_address destination, kiln__cu_address source, size_t size,
                              kiln__cu_stream stream) {
    SIM_CUDA_ENTER_CONTEXT(context);
    if (!check_any(__func__, source, size) || !check_any(__func__, destination, size)) return SIM_CUDA_INVALID_VALUE;
    return copy(__func__, context, stream, sim_cuda_pointer(destination), sim_cuda_pointer(source), size);
}

/* ---- Of rows ---- */

/* The driver's CUDA_MEMCPY2D. */
typedef struct place {
    size_t x, y; /* bytes, rows */
    kiln__cu_enum type;
    void *host;
    kiln__cu_address device;
    void *array;
    size_t pitch; /* 0: as wide as the copy */
} place;

struct CUDA_MEMCPY2D_st {
    place from, to;
    size_t width, height;
};

enum { TYPE_HOST = 1, TYPE_DEVICE, TYPE_ARRAY, TYPE_UNIFIED };

static bool place_is(const char *function, const place *p, size_t width, size_t height) {
    const size_t pitch = p->pitch ? p->pitch : width;
    if (p->type < TYPE_HOST || p->type > TYPE_UNIFIED || p->type == TYPE_ARRAY) {
        sim_violation("%s: memory of type %u is not presented", function, p->type);
        return false;
    }
    if (pitch < width || p->x > pitch - width || (height && p->y + height - 1 > (SIZE_MAX >> 1) / pitch)) {
        sim_violation("%s: %zu bytes from %zu on in rows of %zu", function, width, p->x, pitch);
        return false;
    }
    return true;
}

static uint8_t *row_of(const place *p, size_t row, size_t width) {
    uint8_t *base = p->type == TYPE_HOST ? p->host : sim_cuda_pointer(p->device);
    return base + (p->y + row) * (p->pitch ? p->pitch : width) + p->x;
}

static bool row_is(const char *function, const place *p, uint8_t *row, size_t width) {
    if (p->type == TYPE_HOST) return check_host(function, row, width);
    if (p->type == TYPE_DEVICE) return check_device(function, (uintptr_t)row, width);
    return check_any(function, (uintptr_t)row, width);
}

/* Row by row, in the order of the stream. now: as copies without a stream. */
static kiln__cu_result copy_rows(const char *function, sim_context *context, kiln__cu_stream stream, bool now,
                                 const struct CUDA_MEMCPY2D_st *rows) {
    SIM_CUDA_RULE(rows, SIM_CUDA_INVALID_VALUE, "%s: the copy is NULL", function);
    const size_t width = rows->width;
    kiln__cu_result result = SIM_CUDA_SUCCESS;
    if (!width || !rows->height) return result;
    if (!place_is(function, &rows->from, width, rows->height) || !place_is(function, &rows->to, width, rows->height))
        return SIM_CUDA_INVALID_VALUE;
    for (size_t i = 0; i < rows->height; i++)
        if (!row_is(function, &rows->from, row_of(&rows->from, i, width), width) ||
            !row_is(function, &rows->to, row_of(&rows->to, i, width), width))
            return SIM_CUDA_INVALID_VALUE;
    for (size_t i = 0; i < rows->height && !result; i++) {
        void *to = row_of(&rows->to, i, width);
        const void *from = row_of(&rows->from, i, width);
        result = now ? copy_now(function, context, to, from, width) : copy(function, context, stream, to, from, width);
    }
    return result;
}

kiln__cu_result cuMemcpy2D_v2(const struct CUDA_MEMCPY2D_st *rows) {
    SIM_CUDA_ENTER_CONTEXT(context);
    return copy_rows(__func__, context, NULL, true, rows);
}

kiln__cu_result cuMemcpy2DUnaligned_v2(const struct CUDA_MEMCPY2D_st *rows) {
    SIM_CUDA_ENTER_CONTEXT(context);
    return copy_rows(__func__, context, NULL, true, rows);
}

kiln__cu_result cuMemcpy2DAsync_v2(const struct CUDA_MEMCPY2D_st *rows, kiln__cu_stream stream) {
    SIM_CUDA_ENTER_CONTEXT(context);
    return copy_rows(__func__, context, stream, false, rows);
}

/* ---- Between contexts: each of its own memory ---- */

static bool check_peer(const char *function, kiln__cu_address address, kiln__cu_context context, size_t size) {
    const sim_memory *memory = sim_cuda_on_device(address, size);
    if (memory && sim_object_live("context", context) && memory->owner == (uintptr_t)context) return true;
    sim_violation("%s: %zu bytes at %p are not device memory of context %p", function, size, sim_cuda_pointer(address),
                  (void *)context);
    return false;
}

/* Comes after all that the three contexts had to do, and before all that they get to do. */
kiln__cu_result cuMemcpyPeer(kiln__cu_address destination, kiln__cu_context destination_context,
                             kiln__cu_address source, kiln__cu_context source_context, size_t size) {
    SIM_CUDA_ENTER_CONTEXT(context);
    if (!check_peer(__func__, source, source_context, size) ||
        !check_peer(__func__, destination, destination_context, size))
        return SIM_CUDA_INVALID_VALUE;
    sim_cuda_finish_all(source_context);
    sim_cuda_finish_all(destination_context);
    kiln__cu_result result = sim_cuda_finish_all(context);
    if (!result) result = copy_now(__func__, context, sim_cuda_pointer(destination), sim_cuda_pointer(source), size);
    return result ? result : sim_cuda_finish_all(context);
}

kiln__cu_result cuMemcpyPeerAsync(kiln__cu_address destination, kiln__cu_context destination_context,
                                  kiln__cu_address source, kiln__cu_context source_context, size_t size,
                                  kiln__cu_stream stream) {
    SIM_CUDA_ENTER_CONTEXT(context);
    if (!check_peer(__func__, source, source_context, size) ||
        !check_peer(__func__, destination, destination_context, size))
        return SIM_CUDA_INVALID_VALUE;
    return copy(__func__, context, stream, sim_cuda_pointer(destination), sim_cuda_pointer(source), size);
}

/* ---- Fills: those without a stream are work of the legacy default stream, and nothing waits for them ---- */

static kiln__cu_result fill(const char *function, sim_context *context, kiln__cu_stream handle,
                            kiln__cu_address destination, uint32_t value, uint32_t width, size_t count) {
    SIM_CUDA_RULE(destination % width == 0 && count <= SIZE_MAX / width, SIM_CUDA_INVALID_VALUE,
                  "%s: %zu elements of %u bytes at %p", function, count, width, sim_cuda_pointer(destination));
    if (!check_device(function, destination, count * width)) return SIM_CUDA_INVALID_VALUE;
    sim_stream *stream;
    const sim_node node = {
        .to = sim_cuda_pointer(destination), .to_device = true, .value = value, .width = width, .size = count * width};
    return submit(function, context, handle, &node, &stream);
}

kiln__cu_result cuMemsetD8_v2(kiln__cu_address destination, unsigned char value, size_t count) {
    SIM_CUDA_ENTER_CONTEXT(context);
    return fill(__func__, context, NULL, destination, value, 1, count);
}

kiln__cu_result cuMemsetD16_v2(kiln__cu_address destination, unsigned short value, size_t count) {
    SIM_CUDA_ENTER_CONTEXT(context);
    return fill(__func__, context, NULL, destination, value, 2, count);
}

kiln__cu_result cuMemsetD32_v2(kiln__cu_address destination, unsigned int value, size_t count) {
    SIM_CUDA_ENTER_CONTEXT(context);
    return fill(__func__, context, NULL, destination, value, 4, count);
}

kiln__cu_result cuMemsetD8Async(kiln__cu_address destination, unsigned char value, size_t count,
                                kiln__cu_stream stream) {
    SIM_CUDA_ENTER_CONTEXT(context);
    return fill(__func__, context, stream, destination, value, 1, count);
}

kiln__cu_result cuMemsetD16Async(kiln__cu_address destination, unsigned short value, size_t count,
                                 kiln__cu_stream stream) {
    SIM_CUDA_ENTER_CONTEXT(context);
    return fill(__func__, context, stream, destination, value, 2, count);
}

kiln__cu_result cuMemsetD32Async(kiln__cu_address destination, unsigned int value, size_t count,
                                 kiln__cu_stream stream) {
    SIM_CUDA_ENTER_CONTEXT(context);
    return fill(__func__, context, stream, destination, value, 4, count);
}
