/* gemm by mma.sync for sm_75 and later: gemm_mma_large and gemm_mma_small, where the rows of a and b are 16-byte
 * aligned.
 *
 * A block does a tile of 128 x 256 (large) or 64 x 128 elements of d (small), each of its 8 warps 64 x 64 or 32 x 32 of
 * them. 128 bytes of each row of a and b are a stage: cp.async fills one or two ahead of the one at work, as many as
 * the chip's shared memory takes (2 on sm_86, 89 and 120, 3 on the others). sm_75, with 64 KiB of shared memory and no
 * cp.async, has two stages of 64 bytes, of which the next is loaded into registers while one is at work (copies.h). A
 * row of a stage is 8 vectors of 16 bytes, whose order is xor-ed with the row's number, or 4, with half of it: neither
 * the copies nor ldmatrix meet a bank twice. Blocks go over d in bands of 8 rows of tiles, so that what they read stays
 * in L2. The sums leave through shared memory, 16 rows of a warp at a time, so that rows of d are written whole.
 *
 * Floor: 2 m n k operations. The structure of the large tile as a prototype reached 475 to 490 TFLOP/s on an H100 in
 * f16 (4096 and 8192 cubed, 0.60 to 0.62 of cuBLAS; 64 x 64 by a warp decides: with 64 x 32 it was 300); these kernels
 * are not measured.
 *
 * The includer defines, after the portable kernels:
 *   load_fragment(words, shared)   a lane's four words of four matrices of 8 rows of 16 bytes, as ldmatrix has them
 *   mma(sums, a, b)                sums[16 x 8] += a b, of 32 bytes of each row */
#ifndef KILN_KERNELS_GEMM_MMA_TILES_H
#define KILN_KERNELS_GEMM_MMA_TILES_H

#include "kernels/common/copies.h"
#include "kernels/common/matmul/matmul_mma.h"
#include "kernels/gemm/gemm_portable.h"

enum : uint32_t {
#if __CUDA_ARCH__ >= 800
    ROW_VECTORS = 8, /* of a stage */
#else
    ROW_VECTORS = 4,
#endif
    SWIZZLE_ROWS = 8 / ROW_VECTORS, /* neighbours that have their vectors in the same order */
    STAGE_DEPTH = ROW_VECTORS * KILN_VECTOR,
    LOAD_ROWS = KILN_BLOCK / ROW_VECTORS /* that a block copies at once */
};

/* A block's share of one factor: rows of which each stage has the next STAGE_DEPTH elements. */
struct operand {
    const kiln_element *source; /* this thread's vector of its first row */
    uint64_t step;              /* elements between the rows that it copies */
    uint32_t first, rows;       /* its first row, and how many there are */
};

KILN_INLINE operand operand_of(const void *data, uint64_t offset, uint64_t stride, uint64_t first, uint64_t rows,
                               uint32_t k) {
    uint32_t row = kiln_thread() / ROW_VECTORS;
    const kiln_element *source = (const kiln_element *)data + offset + (first + row) * stride;
    return {source + k + kiln_thread() % ROW_VECTORS * KILN_VECTOR, LOAD_ROWS * stride, (uint32_t)first + row,
            (uint32_t)rows};
}

/* A thread's vectors of ROWS rows of a stage. */
template <uint32_t ROWS> using row_copies = copies<ROWS / LOAD_ROWS, sizeof(kiln_element)>;

/* Starts to copy ROWS rows of the next stage, of which `bytes` of this thread's vector are there, and moves on. Rows
 * beyond the last are zeros. */
template <uint32_t ROWS>
KILN_INLINE void copy_rows(row_copies<ROWS> *to, operand *from, const void *valid, uint32_t shared, uint32_t bytes) {
    uint32_t row = kiln_thread() / ROW_VECTORS, vector = kiln_thread() % ROW_VECTORS ^ row / SWIZZLE_ROWS % ROW_VECTORS;
    shared += (row * ROW_VECTORS + vector) * KILN_VECTOR_BYTES;
    KILN_UNROLL
    for (uint32_t i = 0; i < ROWS / LOAD_ROWS; i++) {
        uint32_t present = from->first + i * LOAD_ROWS < from->rows ? bytes : 0;
        const void *source = present ? from->source + i * from->step : valid;
        to->start(i, shared + i * LOAD_ROWS * ROW_VECTORS * KILN_VECTOR_BYTES, source, present);
    }
    from->source += STAGE_DEPTH;
}

/* The address that a lane gives to ldmatrix: of row `row`, its vector `vector`. */
KILN_INLINE uint32_t vector_at(uint32_t shared, uint32_t row, uint32_t vector) {
    return shared + (row * ROW_VECTORS + (vector ^ row / SWIZZLE_ROWS % ROW_VECTORS)) * KILN_VECTOR_BYTES;
}

/* Adds the products of a stage to a warp's sums: a_shared and b_shared are at its first row. */
template <uint32_t ROWS, uint32_t COLS>
KILN_INLINE void multiply_stage(float (*sums)[COLS / 8][4], uint32_t a_shared, uint32_t b_shared) {
    uint32_t lane = kiln_thread() % 32;
    KILN_UNROLL
    for (uint32_t k = 0; k < ROW_VECTORS; k += 2) {
        uint32_t a[ROWS / 16][4], b[COLS / 16][4];
        KILN_UNROLL
        for (uint32_t i = 0; i < ROWS / 16; i++)
            load_fragment(a[i], vector_at(a_shared, 16 * i + lane % 16, k + lane / 16));
        KILN_UNROLL
        for (uint32_t i = 0; i < COLS / 16; i++)
            load_fragment(b[i], vector_at(b_shared, 16 * i + lane % 8 + lane / 16 * 8, k + lane / 8 % 2));
        KILN_UNROLL
        for (uint32_t i = 0; i < ROWS / 16; i++) {
            KILN_UNROLL
            for (uint32_t j = 0; j < COLS / 8; j++)
                mma(sums[i][j], a[i], b[j / 2] + j % 2 * 2);
        }
    }
}

template <uint32_t ROWS, uint32_t COLS, uint32_t WARP_ROWS, uint32_t WARP_COLS>
KILN_INLINE void gemm_mma(const kiln_gemm_args &args) {
    enum : uint32_t {
        A_BYTES = ROWS * ROW_VECTORS * KILN_VECTOR_BYTES,
        STAGE_BYTES = A_BYTES + COLS * ROW_VECTORS * KILN_VECTOR_BYTES,
        ACROSS = COLS / WARP_COLS
    };
    KILN_DYNAMIC_SHARED(kiln_vector, stages);
    uint32_t block = (uint32_t)kiln_block(), tile_row = block % args.tile_rows, rest = block / args.tile_rows;
    uint32_t split = rest % args.splits, batch = rest / args.splits, tile_col = kiln_tile();
    if (batch >= args.batch) return;
    raster(&tile_row, &tile_col, args.tile_rows, ((uint32_t)args.n + COLS - 1) / COLS);
    uint64_t first_row = (uint64_t)tile_row * ROWS, first_col = (uint64_t)tile_col * COLS;
    uint32_t begin = split * args.split, end = begin + args.split;
    if (end > (uint32_t)args.k) end = (uint32_t)args.k;

    operand a = operand_of(args.a, batch * args.a_batch_stride, args.a_stride, first_row, args.m, begin);
    operand b = operand_of(args.b, batch * args.b_batch_stride, args.b_stride, first_col, args.n, begin);
    uint32_t warp = kiln_thread() / 32, warp_row = warp / ACROSS * WARP_ROWS, warp_col = warp % ACROSS * WARP_COLS;
    uint32_t shared = kiln_sm80_shared(stages), limit = shared + args.stages * STAGE_BYTES;
    uint32_t next = begin + kiln_thread() % ROW_VECTORS * KILN_VECTOR, fill = shared, use = shared;
    float sums[WARP_ROWS / 16][WARP_COLS / 8][4] = {};
    row_copies<ROWS> a_copies;
    row_copies<COLS> b_copies;

    auto copy_stage = [&]() {
        uint32_t left = next < end ? end - next : 0,
                 bytes = (left < KILN_VECTOR ? left : KILN_VECTOR) * (uint32_t)sizeof(kiln_element);
        copy_rows<ROWS>(&a_copies, &a, args.a, fill, bytes);
        copy_rows<COLS>(&b_copies, &b, args.b, fill + A_BYTES, bytes);
        copies_commit();
        next += STAGE_DEPTH;
        fill = fill + STAGE_BYTES == limit ? shared : fill + STAGE_BYTES;
    };
    auto land_stage = [&]() {
        a_copies.land();
        b_copies.land();
    };
    KILN_LOOP
    for (uint32_t i = 1; i < args.stages; i++) {
        copy_stage();
        land_stage();
    }
    KILN_LOOP
    for (; begin < end; begin += STAGE_DEPTH) {
        if (args.stages == 2)
            copies_wait<0>();
        else
            copies_wait<1>();
        kiln_barrier();
        copy_stage();
        multiply_stage<WARP_ROWS, WARP_COLS>(sums, use + warp_row * ROW_VECTORS * KILN_VECTOR_BYTES,
                                             use + A_BYTES + warp_col * ROW_VECTORS * KILN_VECTOR_BYTES);
        land_stage();
        use = use + STAGE_BYTES == limit ? shared : use + STAGE_BYTES;
    }
    copies_wait<0>();
    kiln_barrier();

    float *partials = args.partials;
    partials += ((uint64_t)split * args.batch + batch) * (uint64_t)args.m * (uint64_t)args.n;
    float *slice = (float *)stages + warp * SLICE * (WARP_COLS + 8);
    write_sums<WARP_ROWS, WARP_COLS>(&args, sums, slice, first_row + warp_row, first_col + warp_col,
                                     [&args, partials, batch](float sum, uint64_t row, uint64_t col) {
                                         if (args.splits > 1)
                                             partials[row * (uint64_t)args.n + col] = sum;
                                         else
                                             finish_element(&args, sum, batch, row, col);
                                     });
}

KILN_ENTRY(gemm_mma_large, kiln_gemm_args) {
    gemm_mma<128, 256, 64, 64>(args);
}

KILN_ENTRY(gemm_mma_small, kiln_gemm_args) {
    gemm_mma<64, 128, 32, 32>(args);
}

#endif
