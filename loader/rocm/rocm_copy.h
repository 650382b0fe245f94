/* Copies by the runtime's copy engines, in stream order. */
#ifndef KILN_LOADER_ROCM_COPY_H
#define KILN_LOADER_ROCM_COPY_H

#include "loader/rocm/rocm_backend.h"

enum { KILN__ROCM_RUN_MOST = 64 }; /* copies of a run */

/* Between memory that the device can reach. The agents are those whose memory it is. */
typedef struct kiln__rocm_copy_piece {
    void *to;
    kiln__hsa_agent to_agent;
    const void *from;
    kiln__hsa_agent from_agent;
    size_t size;
} kiln__rocm_copy_piece;

/* Hands a run of copies, one behind the other, to the engine in stream order. *out_copied is the signal of the last one
 * that the engine has, with a hold for the caller; NULL if it was given nothing. Once it has all of them only the loss
 * of the device is an error; if it refuses one, those before it are waited for. Returns KILN_OK,
 * KILN_ERROR_OUT_OF_MEMORY, KILN_ERROR_DEVICE_LOST, KILN_ERROR_DRIVER. */
kiln_status kiln__rocm_copies_begin(kiln__rocm_stream *stream, const kiln__rocm_copy_piece *pieces, uint32_t count,
                                    kiln__rocm_signal **out_copied);

/* Gives up the signal. After an error, status, the engine has a second to be done, since its copies may outlive the
 * device's queues; false if it is not: then it may read and write its memory at any time. */
bool kiln__rocm_copies_end(kiln__rocm_device *rocm, kiln__rocm_signal *copied, kiln_status status);

#endif
