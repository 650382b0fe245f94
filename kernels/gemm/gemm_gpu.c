/* gemm: d = activation(scale * a * b^T + c + bias), in f32 with one rounding.
 *
 * gemm_tiles: a block does a tile of 64 x 64 elements of d, and each of its 256 threads 4 x 4 of them. Both factors
 * pass through shared memory as f32, 64 bytes of each row at a time: a thread reads one vector of 16 bytes of each,
 * while the products of the last ones are made. There a step of k is a row of 64 elements, whose order is swizzled by
 * which vector of the 64 bytes it came from: so the four threads that write vectors of one row meet no bank twice, and
 * reading four neighbours stays one access. Of b and a each element is read from memory once for every 64 rows of the
 * other.
 *
 * Where d has few tiles and k is long, blocks share a tile's k: each writes its sum to the workspace, and gemm_join
 * adds them up, in their order.
 *
 * gemm_rows: up to 8 rows of a, as when tokens are generated one by one. A subgroup does 4 rows of b, which it reads
 * once, in vectors of 16 bytes, each thread 4 of them at a time; a comes from the cache. Memory bounds it.
 *
 * gemm_fused.h has the kernels for calls that normalise the rows of a or gate the result.
 *
 * Floor: 2 m n k operations for gemm_tiles, one read of b at memory bandwidth for gemm_rows.
 * Test: build/tests/ops/gemm_test. Bench: build/kiln bench gemm */
#include "kernels/gemm/gemm_portable.h"
