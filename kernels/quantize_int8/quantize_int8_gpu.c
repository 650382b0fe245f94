/* quantize_int8: codes = int8 of x / scale, and the decode scales amax / smax.
 *
 * Where each row, or each group of 128 of its columns, has a scale, the threads that share it reduce by shuffles alone,
 * or are a whole block. Where the scales or the greatest magnitudes are known beforehand, the launch goes element by
 * element. A scale of 128 rows by 128 columns takes a block. Each thread keeps the first vector that it reads, which is
 * all of its share of a group, in registers, and on NVIDIA's devices the others of a whole block of 16-bit elements in
 * shared memory; the rest of a longer row, and of other blocks, is read twice, the second time from a cache. Keeping
 * four vectors in registers made the code too large: each further one lengthens it as much again.
 *
 * Floor: one read of x and one write of a byte for each element at memory bandwidth, 5 bytes an element of f32, 3 of 16
 * bits; docs/kernel-report.md has the instruction counts and the time that they take.
 * Test: build/tests/ops/quantize_test. Bench: build/kiln bench quantize_int8 */
#include "kernels/common/device.h"
#include "kernels/common/formats/encode_gpu.h"
#define KILN_QUANTIZE_EIGHT(values, bound) kiln_int8_eight(values, bound)
#include "kernels/common/quantize/quantize_gpu.h"
#define KILN_QUANTIZE_MOST           127.0f
#define KILN_QUANTIZE_UNIT           1.0f
#define KILN_QUANTIZE_FINITE(values) kiln_int8_finite(values)
#include "kernels/common/quantize/quantize_transposed_tile.h"

#if defined(__CUDACC__) && !defined(KILN_PART_f32) /* no fewer blocks resident than without kiln_quantize_hold */
#undef KILN_ENTRY_HEAD
#define KILN_ENTRY_HEAD extern "C" __global__ __launch_bounds__(KILN_BLOCK, 5) void
#endif

KILN_ENTRY(quantize_int8, kiln_quantize_args) {
    KILN_SHARED float exchange[KILN_SUBGROUPS];
    KILN_DYNAMIC_SHARED(kiln_vector, tile);
    kiln_quantize(&args, exchange, tile);
}

#if defined(__CUDACC__) /* no fewer blocks resident than without the codes of whole tiles */
#undef KILN_ENTRY_HEAD
#define KILN_ENTRY_HEAD extern "C" __global__ __launch_bounds__(KILN_BLOCK, 6) void
#endif

KILN_ENTRY(quantize_int8_transposed, kiln_quantize_transposed_args) {
    KILN_SHARED kiln_quantize_transposed_shared shared;
    KILN_DYNAMIC_SHARED(kiln_vector, tiles);
    if (!kiln_quantize_transposed_tile(&args, tiles)) kiln_quantize_transposed(&args, tiles, &shared);
}
