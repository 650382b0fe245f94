/* Which device an instance works on. */
#ifndef KILN_TRITON_DEVICE_CHOICE_H
#define KILN_TRITON_DEVICE_CHOICE_H

#include "triton_error.h"
#include <kiln/kiln.h>

/* Reads "cpu", "cuda:1" or "rocm:0"; of several with commas between them the instance with the number `turn` takes one
 * in turn. "" is the GPU that the server gave an instance of KIND_GPU, and for all others the CPU. */
TRITONSERVER_Error *device_choose(const char *words, int32_t turn, TRITONBACKEND_ModelInstance *instance,
                                  kiln_device_options *out);

#endif
