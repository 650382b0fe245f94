/* Fills. The runtime's own fill is independent of queues and makes the host wait. So a fill is a series of copies:
 * first a page of the value, then what is already filled, twice as much each time. */
#include "loader/rocm/rocm_copy.h"
#include <string.h>

enum { PAGE = 4096, VALUES = 256 };

/* A page of each value, made by the device's first fill and never written again, so that no copy is waited for. */
static kiln_status pages_get(kiln__rocm_device *rocm, const uint8_t **out_pages) {
    void *pages = NULL;
    kiln_status status = KILN_OK;
    pthread_mutex_lock(&rocm->pages_lock);
    if (!rocm->pages)
        status = kiln__rocm_pool_alloc(rocm->device, rocm->host_pool, &rocm->agent, 1, VALUES * PAGE, &pages);
    for (int value = 0; pages && value < VALUES; value++)
        memset((uint8_t *)pages + value * PAGE, value, PAGE);
    if (pages) rocm->pages = pages;
    *out_pages = rocm->pages;
    pthread_mutex_unlock(&rocm->pages_lock);
    return status;
}

kiln_status kiln__rocm_fill(kiln_stream *stream, void *destination, uint8_t value, size_t size) {
    kiln__rocm_device *rocm = stream->device->native;
    kiln__rocm_copy_piece pieces[KILN__ROCM_RUN_MOST];
    uint32_t count = 0;
    const uint8_t *pages;
    KILN__TRY(pages_get(rocm, &pages));
    size_t done = size < PAGE ? size : PAGE;
    pieces[count++] = (kiln__rocm_copy_piece){destination, rocm->agent, pages + value * PAGE, rocm->host, done};
    while (done < size) {
        const size_t next = size - done < done ? size - done : done;
        pieces[count++] =
            (kiln__rocm_copy_piece){(uint8_t *)destination + done, rocm->agent, destination, rocm->agent, next};
        done += next;
    }
    kiln__rocm_signal *filled;
    const kiln_status status = kiln__rocm_copies_begin(stream->state, pieces, count, &filled);
    kiln__rocm_copies_end(rocm, filled, status);
    return status;
}
