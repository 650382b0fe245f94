/* gemm_fp8 by the matrix units of AMD chips: what its tuned sources have in common; w8a8_amd.h and w8a8_amd_rows.h tell
 * the rest. gemm_fp8_mma_large is tiles of 128 x 128 elements of d, 64 x 64 by a wave of 64 and 64 x 32 by one of 32;
 * gemm_fp8_mma_small of 64 x 64, 32 x 32 and 32 x 16; gemm_fp8_mma_rows_16 does up to 16 rows of a and 16 columns. Both
 * stages of the large tile are 42 KiB of LDS, room for one block on a compute unit.
 *
 * Sums are f32 throughout: of a group of 128 columns where a scale is of one, else of all of k. These units have no
 * need of two levels: those of gfx942 add 16 products at a time to a sum with 24 bits below the greatest of them and
 * round the result to f32, to nearest, and those of gfx90a round sums of two products and of four (microsoft/MMA-Sim);
 * what gfx11 and gfx12 do within a product of 16 is not known, but between them sums are f32. The test allows what sums
 * of f32 may lose.
 *
 * Floor: 2 m n k operations, or for few rows one read of b. Not measured. For each stage of the large tile a wave of
 * gfx942 makes 16 products of 32 cycles, beside 8 reads and 4 writes of LDS by 16 bytes, and to make 64 codes FNUZ
 * takes each of its threads 9 instructions for every four. Codes become f16 in some 20 for four, where there are half
 * as many in a stage.
 * Includers define `tile` and `few`.
 * Test: build/tests/ops/w8a8_test. Bench: build/kiln bench gemm_fp8 */
#ifndef KILN_KERNELS_GEMM_FP8_AMD_H
#define KILN_KERNELS_GEMM_FP8_AMD_H

KILN_ENTRY(gemm_fp8_mma_large, kiln_w8a8_args) {
    w8a8_mma<tile, 128>(args);
}

KILN_ENTRY(gemm_fp8_mma_small, kiln_w8a8_args) {
    w8a8_mma<tile, 64>(args);
}

KILN_ENTRY(gemm_fp8_mma_rows_16, kiln_w8a8_args) {
    KILN_SHARED few_shared<few> sums;
    w8a8_mma_rows<few>(args, &sums);
}

#endif
