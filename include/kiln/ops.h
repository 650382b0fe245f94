/* kiln's operators.
 *
 * kiln_<op>_<precision>(stream, &params) checks its parameters, selects a kernel and launches it on the stream. The
 * same call works on every backend and produces the same result within the operator's tolerance.
 *
 * Rules for every operator:
 *
 * - Pointers refer to memory of the stream's device, which the caller owns and keeps valid until the stream has
 *   completed the call. The comment of a pointer states the tensor's shape, such as [rows, cols], with the last
 *   dimension contiguous. Strides between rows are in elements, and 0 means packed. Tensors must be aligned to the size
 *   of their elements; those whose rows are aligned to 16 bytes are fastest. const void * and void * point to elements
 *   of the function's precision; f16 and bf16 are stored as uint16_t.
 * - Arithmetic is in f32, with one rounding to nearest even at the end. NaN propagates unless stated otherwise.
 * - If a size is 0 the call succeeds and writes nothing, unless the size's comment defines a meaning for 0. Sizes are
 *   int64_t, and tensors of more than 2^31 elements are supported. A call that needs more blocks of 256 threads than a
 *   launch may have is rejected; every device supports 2^23 - 1 of them.
 * - Outputs may alias inputs only where stated.
 * - No operator allocates memory, waits, or reads results back to the host. Once its image has been loaded (by
 *   kiln_preload or by the first call), an operator can therefore be captured in a CUDA graph.
 * - Zero in any other field of params selects the default. params may be a temporary.
 * - A workspace is scratch memory of the device. Fill in all other fields of params, get the size in bytes from the
 *   operator's ..._workspace_size function, allocate the workspace once and pass it. Its contents need not be preserved
 *   or cleared between calls, so all calls on a stream may share one workspace that is large enough for each of them.
 * - Any thread may call, but a stream may be used by only one thread at a time.
 * - A thread with 32 KB of stack can call every operator, and no stack frame compiled by GCC reaches 4 KB, including on
 *   the CPU: working memory belongs to the stream and the device.
 * - The exported functions have the suffix _sized and take sizeof(params), so that structs can grow: the missing tail
 *   of an older caller's shorter struct counts as zero, and a longer struct with a non-zero tail is rejected.
 *   Foreign-function interfaces call these, for example kiln_add_f16_sized(stream, params, size); the functions without
 *   the suffix are inline and are not exported. docs/foreign-functions.md lists every exported name.
 *
 * Each function returns KILN_OK; KILN_ERROR_INVALID_ARGUMENT, before anything is launched, with the parameter and the
 * violated rule in kiln_last_error(); the statuses of kiln_launch; and on its first use, which loads the image, also
 * the statuses of kiln_module_get, including KILN_ERROR_CAPTURING if the stream is being captured.
 */
#ifndef KILN_OPS_H
#define KILN_OPS_H

#include <kiln/ops/attention.h>
#include <kiln/ops/cache.h>
#include <kiln/ops/conv.h>
#include <kiln/ops/describe.h>
#include <kiln/ops/elementwise.h>
#include <kiln/ops/embedding.h>
#include <kiln/ops/engram.h>
#include <kiln/ops/fused.h>
#include <kiln/ops/gemm.h>
#include <kiln/ops/norm.h>
#include <kiln/ops/quantize.h>
#include <kiln/ops/rope.h>
#include <kiln/ops/sample.h>
#include <kiln/ops/softmax.h>
#include <kiln/ops/vector.h>

#endif
