/* gemm_w4a16: d = activation(scale * (a * pre_scale) * w^T + c + bias), w = q * scale of its group + zero of its group,
 * in f32 with one rounding at the end.
 *
 * gemm_w4a16_rows: up to 8 rows of a, as when tokens are generated one by one. A subgroup does 4 rows of weights, which
 * it reads once: each thread 16 bytes of each, which are 32 elements of one group, and every subgroup 1024 elements at
 * a time. An integer becomes f32 as the low bits of 2^23 + q + 8, from which 2^23 + 8 is subtracted: an or and an
 * addition, both at full rate on every chip, where conversions are not.
 *
 * gemm_w4a16_tiles: as gemm_tiles. A block does a tile of 64 x 64 elements of d, and each of its 256 threads 4 x 4 of
 * them. Both factors pass through shared memory as f32, 64 bytes of each row of a at a time and as many elements of the
 * weights, which become f32 on their way. There a step of k is a row of 64 elements, whose order is swizzled by which
 * vector of the 64 bytes it came from, so that writing and reading meet no bank twice. Where d has few tiles and k is
 * long, blocks share a tile's k: each writes its sum to the workspace, and gemm_w4a16_join adds them up, in their
 * order.
 *
 * gemm_w4a16_fused_rows: gemm_w4a16_rows for calls with norm_weight, c, an activation or gates. The squares of a row of
 * a are added up beside the products, and the sums divided by the root. Of gated calls a subgroup does rows of gates
 * and those that they are for. gemm_w4a16_norm normalises many rows into the workspace, and gemm_w4a16_join gates what
 * tiles have left there.
 *
 * Floor: one read of the weights, half a byte an element, for gemm_w4a16_rows; 2 m n k operations for gemm_w4a16_tiles.
 * None is measured. Test: build/tests/ops/gemm_w4a16_test. Bench: build/kiln bench gemm_w4a16 */
#include "kernels/gemm_w4a16/gemm_w4a16_portable.h"
