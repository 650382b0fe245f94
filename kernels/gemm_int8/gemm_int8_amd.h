/* gemm_int8 by the matrix units of AMD chips: what its tuned sources have in common; w8a8_amd.h and w8a8_amd_rows.h
 * tell the rest. gemm_int8_mma_large is tiles of 128 x 128 elements of d, 64 x 64 by a wave of 64 and 64 x 32 by one of
 * 32; gemm_int8_mma_small of 64 x 64, 32 x 32 and 32 x 16; gemm_int8_mma_rows_16 does up to 16 rows of a and 16
 * columns. Both stages of the large tile are 42 KiB of LDS, room for one block on a compute unit.
 *
 * Sums are int32, and so exact: over all of k the result is that of the CPU, bit for bit.
 *
 * Floor: 2 m n k operations, or for few rows one read of b. Not measured. For each stage of the large tile a wave of
 * gfx942 makes 16 products of 32 cycles, beside 8 reads and 4 writes of LDS by 16 bytes; gfx90a 32 of 64 cycles.
 * Includers define `tile` and `few`.
 * Test: build/tests/ops/w8a8_test. Bench: build/kiln bench gemm_int8 */
#ifndef KILN_KERNELS_GEMM_INT8_AMD_H
#define KILN_KERNELS_GEMM_INT8_AMD_H

KILN_ENTRY(gemm_int8_mma_large, kiln_w8a8_args) {
    w8a8_mma<tile, 128>(args);
}

KILN_ENTRY(gemm_int8_mma_small, kiln_w8a8_args) {
    w8a8_mma<tile, 64>(args);
}

KILN_ENTRY(gemm_int8_mma_rows_16, kiln_w8a8_args) {
    KILN_SHARED few_shared<few> sums;
    w8a8_mma_rows<few>(args, &sums);
}

#endif
