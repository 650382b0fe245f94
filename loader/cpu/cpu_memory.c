#include "loader/cpu/cpu_device.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    ALIGNMENT = 256,
    HUGE_PAGE = 2 << 20,
    HUGE_PAGES_LEAST = 2, /* of memory that is made of them */
    PIECE = 1 << 18,      /* bytes of a copy or fill that one thread does at a time */
};

/* Large memory is asked for in huge pages, of which a product of matrices needs fewer entries of the TLB: where the
 * system gives none, it is as good without. */
kiln_status kiln__cpu_memory_alloc(kiln_device *device, size_t size, void **out_memory) {
    (void)device;
    const size_t whole = size / HUGE_PAGE * HUGE_PAGE;
    const bool huge = whole >= (size_t)HUGE_PAGES_LEAST * HUGE_PAGE;
    if (posix_memalign(out_memory, huge ? HUGE_PAGE : ALIGNMENT, size) == 0) {
        if (huge) (void)madvise(*out_memory, whole, MADV_HUGEPAGE);
        return KILN_OK;
    }
    *out_memory = NULL;
    return kiln__fail(KILN_ERROR_OUT_OF_MEMORY, "cpu: no memory for %zu bytes", size);
}

void kiln__cpu_memory_free(kiln_device *device, void *memory) {
    (void)device;
    free(memory);
}

/* A copy, or without a source a fill. */
typedef struct transfer_job {
    uint8_t *destination;
    const uint8_t *source;
    size_t size;
    uint8_t value;
} transfer_job;

static void transfer_pieces(void *context, void *scratch, uint64_t begin, uint64_t end) {
    (void)scratch;
    const transfer_job *transfer = context;
    size_t first = (size_t)begin * PIECE, last = (size_t)end * PIECE;
    if (last > transfer->size) last = transfer->size;
    if (transfer->source)
        memcpy(transfer->destination + first, transfer->source + first, last - first);
    else
        memset(transfer->destination + first, transfer->value, last - first);
}

static void run_transfer(const kiln_stream *stream, transfer_job transfer) {
    const kiln__cpu_device *native = stream->device->native;
    size_t pieces = transfer.size / PIECE + (transfer.size % PIECE != 0);
    kiln__cpu_pool_run(native->pool, pieces, transfer_pieces, &transfer, stream->state);
}

kiln_status kiln__cpu_copy(kiln_stream *stream, void *destination, const void *source, size_t size,
                           kiln_copy_direction direction) {
    (void)direction; /* all memory is the host's */
    run_transfer(stream, (transfer_job){destination, source, size, 0});
    return KILN_OK;
}

kiln_status kiln__cpu_fill(kiln_stream *stream, void *destination, uint8_t value, size_t size) {
    run_transfer(stream, (transfer_job){destination, NULL, size, value});
    return KILN_OK;
}
