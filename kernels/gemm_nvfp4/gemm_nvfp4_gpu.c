/* gemm_nvfp4: d = activation(scale * a * b^T + bias), a and b in NVFP4: E2M1, times the E4M3 of each 16 columns, times
 * an f32 of the matrix or the row. Products are added in f32 with the blocks' scales on them; global scales come at the
 * end.
 *
 * gemm_nvfp4_tiles: as gemm_tiles. A block does a tile of 64 x 64 elements of d, and each of its 256 threads 4 x 4 of
 * them. 32 codes of each row of both factors pass through shared memory at a time, as f32 and times their scales, 8 of
 * a row by a thread. There the rows are columns, whose order is swizzled by which part of a row they are: neither
 * writing nor reading meets a bank twice. Where d has few tiles and k is long, blocks share a tile's k: each writes its
 * sum to the workspace, and gemm_nvfp4_join adds them up, in their order.
 *
 * gemm_nvfp4_rows: up to 16 rows of a, as when tokens are generated, 8 by a block. A subgroup does 4 rows of b, which
 * it reads once, in vectors of 16 bytes with their two scales; a comes from the cache. The products of 8 codes are
 * added, exactly, before they are scaled. Converting the codes costs more than reading them, where few rows share it.
 *
 * Floor: 2 m n k operations for gemm_nvfp4_tiles, one read of b, 0.5625 bytes an element, for gemm_nvfp4_rows. Not
 * measured; docs/kernel-report.md has the instructions counted.
 * Test: build/tests/ops/gemm_nvfp4_test. Bench: build/kiln bench gemm_nvfp4 */
#include "kernels/gemm_nvfp4/gemm_nvfp4_portable.h"
