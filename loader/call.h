/* Calls that were made before. Matrix products, attention, rope and the operators that quantise check some twenty
 * parameters, choose among the kernels of an image and describe tensors to the hardware, which takes the host longer
 * than to launch a kernel. What a call launches depends on its parameters, its device and whether the stream's kernels
 * overlap: so it is kept, and the next call of the kind launches it again. Parameters hold addresses and sizes, never
 * contents: those of the device's memory may have changed.
 *
 * The process has one table, without a lock (kept.h). A call is not kept if it failed, if it launched more than
 * KILN__CALL_LAUNCHES kernels or called another operator, on the CPU, or while the device is traced or only plans. */
#ifndef KILN_LOADER_CALL_H
#define KILN_LOADER_CALL_H

#include "loader/operator.h"

enum { KILN__CALL_LAUNCHES = 2, KILN__CALL_PARAMS_BYTES = 288, KILN__CALL_ARGUMENTS_BYTES = 960 };

typedef struct kiln__call_launch_of {
    const kiln_kernel *kernel;
    kiln_launch_config config;
    uint32_t at, size; /* of its arguments, in bytes */
} kiln__call_launch_of;

typedef struct kiln__call_launches {
    uint32_t count; /* more than KILN__CALL_LAUNCHES: the call cannot be kept */
    kiln__call_launch_of launches[KILN__CALL_LAUNCHES];
    _Alignas(16) char arguments[KILN__CALL_ARGUMENTS_BYTES];
} kiln__call_launches;

/* A call that is being made. */
typedef struct kiln__call {
    struct kiln__call *outer; /* the call that this one is part of */
    kiln__call_launches made;
} kiln__call;

/* Makes a kept call again. Returns whether there was one; *out_status is then its status. Parameters are compared byte
 * by byte, so they must have no padding; their size is a multiple of 8. */
bool kiln__call_again(kiln_stream *stream, unsigned slot, const void *params, size_t params_size,
                      kiln_status *out_status);

/* Enclose a call that was not kept: what the thread launches between them by kiln__call_launch is the call's. The end
 * returns the call's status. With a params_size of 0, for parameters of another version, the call is not kept. */
void kiln__call_begin(kiln__call *call);
kiln_status kiln__call_end(kiln__call *call, const kiln_stream *stream, unsigned slot, const void *params,
                           size_t params_size, kiln_status status);

/* kiln__operator_launch for operators whose calls are kept, with or without clusters. */
kiln_status kiln__call_launch(kiln_stream *stream, const kiln_kernel *kernel, const kiln_launch_config *config,
                              const void *arguments, size_t arguments_size);

#endif
