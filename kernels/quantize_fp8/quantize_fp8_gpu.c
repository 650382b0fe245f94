/* quantize_fp8: codes = E4M3 of x / scale, and the decode scales amax / smax.
 *
 * Where each row, or each group of 128 of its columns, has a scale, the threads that share it reduce by shuffles alone,
 * or are a whole block. Where the scales or the greatest magnitudes are known beforehand, the launch goes element by
 * element. A scale of 128 rows by 128 columns takes a block. Such blocks, and long rows, keep their elements in shared
 * memory if they are aligned (quantize_held.h). Elsewhere a thread keeps the first vector that it reads, which is all
 * of its share of a group, and reads the rest twice, the second time from a cache. In 16 bits instructions take 0.61 to
 * 0.66 of the memory's time on sm_80 and on the early chips of gfx9 (predicted), which do not convert to E4M3.
 *
 * Floor: one read of x and one write of a byte for each element at memory bandwidth, 5 bytes an element of f32, 3 of 16
 * bits; docs/kernel-report.md has the instruction counts and the time that they take.
 * Test: build/tests/ops/quantize_test. Bench: build/kiln bench quantize_fp8 */
#include "kernels/common/device.h"
#include "kernels/common/formats/e4m3_finite.h"
#define KILN_QUANTIZE_EIGHT(values, bound) kiln_e4m3_eight_of(values, bound)
#include "kernels/common/quantize/quantize_gpu.h"

#define KILN_QUANTIZE_MOST             448.0f
#define KILN_QUANTIZE_UNIT             KILN_E4M3_UNIT
#define KILN_QUANTIZE_FINITE(products) kiln_e4m3_finite(products)
#include "kernels/common/quantize/quantize_held.h"
#include "kernels/common/quantize/quantize_transposed_tile.h"

#if defined(__CUDACC__) /* no fewer blocks resident than without quantize_held.h */
#undef KILN_ENTRY_HEAD
#define KILN_ENTRY_HEAD extern "C" __global__ __launch_bounds__(KILN_BLOCK, 5) void
#endif

KILN_ENTRY(quantize_fp8, kiln_quantize_args) {
    KILN_SHARED float exchange[KILN_SUBGROUPS];
    KILN_DYNAMIC_SHARED(kiln_vector, tile);
    if (!kiln_quantize_of_block(&args, (uint32_t *)exchange, tile)) kiln_quantize(&args, exchange);
}

#if defined(__CUDACC__) /* no fewer blocks resident than without the codes of whole tiles */
#undef KILN_ENTRY_HEAD
#define KILN_ENTRY_HEAD extern "C" __global__ __launch_bounds__(KILN_BLOCK, 6) void
#endif

KILN_ENTRY(quantize_fp8_transposed, kiln_quantize_transposed_args) {
    KILN_SHARED kiln_quantize_transposed_shared shared;
    KILN_DYNAMIC_SHARED(kiln_vector, tiles);
    if (!kiln_quantize_transposed_tile(&args, tiles)) kiln_quantize_transposed(&args, tiles, &shared);
}
