/* gemm_int8: d = activation(scale * (the sum over k of a * b, each with its scale) + bias), a and b int8.
 *
 * gemm_int8_tiles: a block does a tile of 64 x 64 elements of d, and each of its 256 threads 4 x 4 of them. 64
 * codes of each row of both factors pass through shared memory at a time, four in a word as they are multiplied, while
 * those behind them are on their way into registers. There the rows are columns, whose order is swizzled by which part
 * of a row they are: neither writing nor reading meets a bank twice. Products are added in int32, over all of k or,
 * where there are scales for groups of 128 columns, over each group; then they are scaled and added in f32. Where d has
 * few tiles and k is long, blocks share a tile's k: each writes its sum to the workspace, and gemm_int8_join adds them
 * up, in their order.
 *
 * gemm_int8_rows: up to 16 rows of a, as when tokens are generated, 8 by a block. A subgroup does 4 rows of b, which it
 * reads once, in vectors of 16 bytes; a comes from the cache. A thread's 32 sums become one for each thread in 31
 * shuffles. Memory bounds it where the target multiplies four codes at once.
 *
 * Floor: 2 m n k operations for gemm_int8_tiles, one read of b at memory bandwidth for gemm_int8_rows. Not measured;
 * docs/kernel-report.md has the instructions counted.
 * Test: build/tests/ops/w8a8_test. Bench: build/kiln bench gemm_int8 */
#include "kernels/gemm_int8/gemm_int8_portable.h"
