/* kiln's operators.
 *
 * kiln_<op>_<precision>(stream, &params) checks its parameters, chooses a kernel and launches it on the stream. The
 * same call works on every backend and gives the same result within the operator's tolerance.
 *
 * Rules for every operator:
 *
 * - Pointers are to memory of the stream's device, which the caller owns and keeps valid until the stream has completed
 *   the call. The comment of a pointer gives the tensor's shape, as [rows, cols], with the last dimension contiguous.
 *   Strides between rows are in elements, and 0 means packed. Tensors must be aligned to their elements; those whose
 *   rows are aligned to 16 bytes are fastest. const void * and void * have elements of the function's precision, in
 *   which f16 and bf16 are uint16_t.
 * - Arithmetic is in f32, with one rounding to nearest even at the end. NaN propagates unless stated otherwise.
 * - If a size is 0 the call succeeds and writes nothing, unless the size's comment gives 0 a meaning. Sizes are
 *   int64_t, and tensors of more than 2^31 elements work. A call that needs more blocks of 256 threads than a launch
 * may have is refused; every device takes 2^23 - 1 of them.
 * - Outputs may alias inputs only where that is stated.
 * - No operator allocates, waits or reads results back, so once loaded (by kiln_preload or by its first call) it can be
 *   captured in a CUDA graph.
 * - Zero in any other field of params selects the default. params may be a temporary.
 * - A workspace is scratch memory of the device. Fill in all other fields of params, ask the operator's
 *   ..._workspace_size function for the bytes, allocate them once and pass them. Its contents need not be kept or
 *   cleared between calls, so all calls on a stream may share one that is large enough for each.
 * - Any thread may call, but a stream may be used by only one thread at a time.
 * - A thread with 32 KB of stack can call every operator, and no frame that GCC makes reaches 4 KB, on the CPU either:
 *   working memory belongs to the stream and the device.
 * - The exported functions have the suffix _sized and take sizeof(params), so that structs can grow: the missing tail
 *   of an older caller's shorter struct counts as zero, and a longer struct with a non-zero tail is refused.
 *   Foreign-function interfaces call these, as kiln_add_f16_sized(stream, params, size); the functions without the
 *   suffix are inline and in no library. docs/foreign-functions.md lists every exported name.
 *
 * Each function returns KILN_OK; KILN_ERROR_INVALID_ARGUMENT, before anything is launched, with the parameter and the
 * rule in kiln_last_error(); on its first use also what loading can return (see kiln_module_get), with
 * KILN_ERROR_CAPTURING if the stream is being captured; and what kiln_launch returns.
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
