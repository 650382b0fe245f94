/* Stream-ordered copies by the runtime's copy engines. */
#ifndef KILN_LOADER_ROCM_COPY_H
#define KILN_LOADER_ROCM_COPY_H

#include "loader/rocm/rocm_backend.h"

enum { KILN__ROCM_RUN_MOST = 64 }; /* copies of a run */

/* A copy between memory that the device can access. The agents own the memory. */
typedef struct kiln__rocm_copy_piece {
    void *to;
    kiln__hsa_agent to_agent;
    const void *from;
    kiln__hsa_agent from_agent;
    size_t size;
} kiln__rocm_copy_piece;

/* Submits a run of copies, each after the previous one, to the engine in stream order. *out_copied is the signal of the
 * last submitted copy, with a hold for the caller; NULL if none was submitted. Once all are submitted, the only error
 * is the loss of the device; if the engine refuses one, those before it are waited for. Returns KILN_OK,
 * KILN_ERROR_OUT_OF_MEMORY, KILN_ERROR_DEVICE_LOST, KILN_ERROR_DRIVER. */
kiln_status kiln__rocm_copies_begin(kiln__rocm_stream *stream, const kiln__rocm_copy_piece *pieces, uint32_t count,
                                    kiln__rocm_signal **out_copied);

/* Drops the caller's hold. If status is an error, first waits up to a second for the engine, whose copies may outlive
 * the device's queues. False if it did not finish: it may still access the copies' memory at any time. */
bool kiln__rocm_copies_end(kiln__rocm_device *rocm, kiln__rocm_signal *copied, kiln_status status);

#endif
