/* A cache of operator calls. Matrix products, attention, rope and the quantising operators check some twenty
 * parameters, choose among the kernels of an image and encode tensor maps, which costs the host more than launching a
 * kernel. What a call launches depends only on its parameters, its device and whether the stream's kernels overlap, so
 * its launches are kept and an identical call repeats them. Parameters hold addresses and sizes, so the contents of
 * device memory do not matter.
 *
 * The process has one lock-free table (kept.h). A call is not kept if it failed, if it launched more than
 * KILN__CALL_LAUNCHES kernels or called another operator, or if its device is the CPU, is traced, or only plans. */
#ifndef KILN_LOADER_CALL_H
#define KILN_LOADER_CALL_H

#include "loader/operator.h"

enum { KILN__CALL_LAUNCHES = 2, KILN__CALL_PARAMS_BYTES = 288, KILN__CALL_ARGUMENTS_BYTES = 960 };

typedef struct kiln__call_launch_of {
    const kiln_kernel *kernel;
    kiln_launch_config config;
    uint32_t at, size; /* offset and size of its arguments, in bytes */
} kiln__call_launch_of;

typedef struct kiln__call_launches {
    uint32_t count; /* more than KILN__CALL_LAUNCHES: the call cannot be kept */
    kiln__call_launch_of launches[KILN__CALL_LAUNCHES];
    _Alignas(16) char arguments[KILN__CALL_ARGUMENTS_BYTES];
} kiln__call_launches;

/* A call in progress. */
typedef struct kiln__call {
    struct kiln__call *outer; /* the enclosing call, or NULL */
    kiln__call_launches made;
} kiln__call;

/* Repeats the kept call with these parameters, if there is one. Returns whether there was; if so, *out_status is its
 * status. Parameters are compared byte by byte, so they must have no padding; their size is a multiple of 8. */
bool kiln__call_again(kiln_stream *stream, unsigned slot, const void *params, size_t params_size,
                      kiln_status *out_status);

/* Bracket a call that was not kept: launches that the thread makes by kiln__call_launch in between belong to it.
 * kiln__call_end returns status. If params_size is 0, used for parameters of another version, the call is not kept. */
void kiln__call_begin(kiln__call *call);
kiln_status kiln__call_end(kiln__call *call, const kiln_stream *stream, unsigned slot, const void *params,
                           size_t params_size, kiln_status status);

/* kiln__operator_launch for operators whose calls are kept; allows clusters. */
kiln_status kiln__call_launch(kiln_stream *stream, const kiln_kernel *kernel, const kiln_launch_config *config,
                              const void *arguments, size_t arguments_size);

#endif
