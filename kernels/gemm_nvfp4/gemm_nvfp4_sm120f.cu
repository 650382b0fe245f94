/* gemm_nvfp4 for sm_120a and its family, by products of E2M1 with block scales: gemm_nvfp4_mma_large and _small where
 * rows of codes are 16-byte aligned, beside the kernel for few rows (gemm_nvfp4_mma.h), whose codes become f16 in
 * registers, and the portable kernels (gemm_nvfp4_gpu.c) for the rest.
 *
 * A block does a tile of 128 x 128 or 64 x 64 elements of d, each of its 8 warps 64 x 32 or 32 x 16 of them by mma.sync
 * m16n8k64, which takes codes and scales as they are in memory. 128 elements of k are a stage; cp.async fills up to
 * three stages ahead of the one at work, 72 KB of the 99 that a block may have. A row of a stage is 4 vectors of 16
 * bytes, so that two rows lie on the same banks: the order of the vectors is xor-ed with half the row's number, and
 * neither the copies nor ldmatrix meet a bank twice. Scales are a word for each row and 64 of k, in an order in which a
 * warp reads 32 of them at once: a lane has those of a row, of two products of a's rows and of four of b's columns.
 * Blocks go over d in bands of 8 rows of tiles, so that what they read stays in L2.
 *
 * Floor: 2 m n k operations. Not measured.
 * Test: build/tests/ops/gemm_nvfp4_test. Bench: build/kiln bench gemm_nvfp4 */
#include "kernels/arch/sm120f.h"
#include "kernels/arch/sm80.h"
#include "kernels/common/tuned.h"
#include "kernels/gemm_nvfp4/gemm_nvfp4_mma.h"

KILN_TUNED_PARTS(f32 f16 bf16)
KILN_SHAPE(gemm_nvfp4_mma_large, 128, 128, 128, 18432, 100)
KILN_STAGES(gemm_nvfp4_mma_large, 4)
KILN_SHAPE(gemm_nvfp4_mma_small, 64, 64, 128, 9216, 60)
KILN_STAGES(gemm_nvfp4_mma_small, 4)
KILN_SHAPE(gemm_nvfp4_mma_rows, 16, 32, 1024, 0, 100)

enum : uint32_t {
    STAGES = 4,
    STAGE_DEPTH = 128,
    STEP_DEPTH = 64, /* of a product */
    STEPS_OF_STAGE = STAGE_DEPTH / STEP_DEPTH,
    VECTOR_CODES = 2 * KILN_VECTOR_BYTES,
    ROW_VECTORS = STAGE_DEPTH / VECTOR_CODES,
    ROW_BYTES = ROW_VECTORS * KILN_VECTOR_BYTES,
    SCALE_WORD = 4,                      /* blocks: bytes, of a row's 64 columns */
    UNSIGNED = 0x7f7f7f7fu,              /* ue4m3 is E4M3 without its sign */
    LOAD_ROWS = KILN_BLOCK / ROW_VECTORS /* that a block copies at once */
};

/* The address of vector `vector` of row `row`. */
KILN_INLINE uint32_t vector_at(uint32_t shared, uint32_t row, uint32_t vector) {
    return shared + row * ROW_BYTES + (vector ^ row / 2 % 4) * KILN_VECTOR_BYTES;
}

/* A row of one factor of which a thread copies something. */
struct row_source {
    const uint8_t *from; /* of the row that is copied where this one is not there, for nothing */
    bool present;
};

KILN_INLINE row_source codes_source(const kiln_nvfp4_operand &operand, uint64_t row, int64_t rows) {
    return {codes_of(&operand, row < (uint64_t)rows ? row : 0), row < (uint64_t)rows};
}

/* Copies 4 scales of a row, those of columns from k on, of which there may be fewer. */
KILN_INLINE void copy_scales(const kiln_nvfp4_operand &operand, uint32_t shared, uint64_t row, int64_t rows, uint32_t k,
                             uint32_t end) {
    const uint32_t blocks = k < end ? (end - k) / KILN_NVFP4_BLOCK : 0;
    const bool there = row < (uint64_t)rows && blocks;
    const uint64_t place = there ? scale_place(&operand, row, k / KILN_NVFP4_BLOCK) : 0;
    kiln_sm80_cp_async_4(shared, operand.scales + place, !there ? 0 : blocks < SCALE_WORD ? blocks : SCALE_WORD);
}

/* Adds the products of a warp's 16 rows i of a and its 8 columns j of b: the lanes of their scales are constants. */
template <uint32_t ROWS, uint32_t COLS, uint32_t I, uint32_t J>
KILN_INLINE void multiply_part(float (*sums)[COLS / 8][4], const uint32_t (*a)[4], const uint32_t (*b)[4],
                               const uint32_t *a_scales, const uint32_t *b_scales) {
    kiln_sm120f_mma_nvfp4<I % 2, J % 4>(sums[I][J], a[I], b[J / 2] + J % 2 * 2, a_scales[I / 2], b_scales[J / 4]);
    if constexpr (J + 1 < COLS / 8)
        multiply_part<ROWS, COLS, I, J + 1>(sums, a, b, a_scales, b_scales);
    else if constexpr (I + 1 < ROWS / 16)
        multiply_part<ROWS, COLS, I + 1, 0>(sums, a, b, a_scales, b_scales);
}

/* Adds the products of a stage to a warp's sums: a_shared and b_shared are at its first row, a_words and b_words at its
 * first scale, and those of the next 64 columns `next` words behind. */
template <uint32_t ROWS, uint32_t COLS>
KILN_INLINE void multiply_stage(float (*sums)[COLS / 8][4], uint32_t a_shared, uint32_t b_shared,
                                const uint32_t *a_words, const uint32_t *b_words, uint32_t next) {
    enum : uint32_t { A_WORDS = (ROWS + 31) / 32, B_WORDS = (COLS + 31) / 32 };
    const uint32_t lane = kiln_thread() % 32, row = lane % 4 * 8 + lane / 4;
    KILN_UNROLL
    for (uint32_t step = 0; step < STEPS_OF_STAGE; step++) {
        const uint32_t k = 2 * step;
        uint32_t a[ROWS / 16][4], b[COLS / 16][4], a_scales[A_WORDS], b_scales[B_WORDS];
        KILN_UNROLL
        for (uint32_t i = 0; i < A_WORDS; i++)
            a_scales[i] = a_words[step * next + 32 * i + row % ROWS] & UNSIGNED;
        KILN_UNROLL
        for (uint32_t i = 0; i < B_WORDS; i++)
            b_scales[i] = b_words[step * next + 32 * i + row % COLS] & UNSIGNED;
        KILN_UNROLL
        for (uint32_t i = 0; i < ROWS / 16; i++)
            kiln_sm80_ldmatrix_x4(a[i], vector_at(a_shared, 16 * i + lane % 16, k + lane / 16));
        KILN_UNROLL
        for (uint32_t i = 0; i < COLS / 16; i++)
            kiln_sm80_ldmatrix_x4(b[i], vector_at(b_shared, 16 * i + lane % 8 + lane / 16 * 8, k + lane / 8 % 2));
        multiply_part<ROWS, COLS, 0, 0>(sums, a, b, a_scales, b_scales);
    }
}

/* A tile of SIDE_ROWS x SIDE_ROWS of d; a warp does WARP_ROWS x WARP_COLS of it. A stage is the codes of a, those of b,
 * and for each 64 columns the scales of a and those of b. */
template <uint32_t SIDE_ROWS, uint32_t WARP_ROWS, uint32_t WARP_COLS>
KILN_INLINE void gemm_nvfp4_mma(const kiln_gemm_nvfp4_args &args) {
    enum : uint32_t {
        STAGE_ROWS = 2 * SIDE_ROWS,
        CODES_BYTES = STAGE_ROWS * ROW_BYTES,
        STAGE_BYTES = CODES_BYTES + STAGE_ROWS * STEPS_OF_STAGE * SCALE_WORD,
        COPIES = STAGE_ROWS / LOAD_ROWS,                         /* of a thread: vectors of codes */
        SCALE_COPIES = STAGE_ROWS * STEPS_OF_STAGE / KILN_BLOCK, /* and words of scales */
        ACROSS = SIDE_ROWS / WARP_COLS
    };
    KILN_DYNAMIC_SHARED(kiln_vector, stages);
    const uint32_t block = (uint32_t)kiln_block(), split = block / args.tile_rows, thread = kiln_thread();
    uint32_t tile_row = block % args.tile_rows, tile_col = kiln_tile();
    if (split >= args.splits) return; /* the whole block */
    raster(&tile_row, &tile_col, args.tile_rows, ((uint32_t)args.n + SIDE_ROWS - 1) / SIDE_ROWS);
    const uint64_t first_row = (uint64_t)tile_row * SIDE_ROWS, first_col = (uint64_t)tile_col * SIDE_ROWS;
    uint32_t begin = split * args.split, end = begin + args.split;
    if (end > (uint32_t)args.k) end = (uint32_t)args.k;

    const uint32_t row = thread / ROW_VECTORS, vector = thread % ROW_VECTORS;
    const uint32_t shared = kiln_sm80_shared(stages);
    uint32_t next = begin, fill = 0, use = 0;
    row_source sources[COPIES];
    KILN_UNROLL
    for (uint32_t i = 0; i < COPIES; i++) {
        const uint32_t place = row + i * LOAD_ROWS;
        sources[i] = place < SIDE_ROWS ? codes_source(args.a, first_row + place, args.m)
                                       : codes_source(args.b, first_col + place - SIDE_ROWS, args.n);
    }
    auto copy_stage = [&]() {
        const uint32_t k = next + vector * VECTOR_CODES;
        KILN_UNROLL
        for (uint32_t i = 0; i < COPIES; i++) {
            const bool there = sources[i].present && k < end;
            kiln_sm80_cp_async(vector_at(shared + fill, row + i * LOAD_ROWS, vector),
                               sources[i].from + (there ? k / 2 : 0), there ? KILN_VECTOR_BYTES : 0);
        }
        KILN_UNROLL
        for (uint32_t i = 0; i < SCALE_COPIES; i++) {
            const uint32_t word = thread + i * KILN_BLOCK, place = word % STAGE_ROWS;
            const uint32_t to = shared + fill + CODES_BYTES + word * SCALE_WORD;
            const uint32_t from = next + word / STAGE_ROWS * STEP_DEPTH;
            if (place < SIDE_ROWS)
                copy_scales(args.a, to, first_row + place, args.m, from, end);
            else
                copy_scales(args.b, to, first_col + place - SIDE_ROWS, args.n, from, end);
        }
        kiln_sm80_cp_async_commit();
        next += STAGE_DEPTH;
        fill = fill + STAGE_BYTES == STAGES * STAGE_BYTES ? 0 : fill + STAGE_BYTES;
    };
    const uint32_t warp = thread / 32, warp_row = warp / ACROSS * WARP_ROWS, warp_col = warp % ACROSS * WARP_COLS;
    float sums[WARP_ROWS / 16][WARP_COLS / 8][4] = {};
    KILN_LOOP
    for (uint32_t i = 1; i < STAGES; i++)
        copy_stage();
    KILN_LOOP
    for (; begin < end; begin += STAGE_DEPTH) {
        kiln_sm80_cp_async_wait<STAGES - 2>();
        kiln_barrier();
        copy_stage();
        const uint32_t *words = (const uint32_t *)((const char *)stages + use + CODES_BYTES);
        multiply_stage<WARP_ROWS, WARP_COLS>(sums, shared + use + warp_row * ROW_BYTES,
                                             shared + use + (SIDE_ROWS + warp_col) * ROW_BYTES, words + warp_row,
                                             words + SIDE_ROWS + warp_col, STAGE_ROWS);
        use = use + STAGE_BYTES == STAGES * STAGE_BYTES ? 0 : use + STAGE_BYTES;
    }
    kiln_sm80_cp_async_wait<0>();
    kiln_barrier();

    float *partials = args.partials + (uint64_t)split * (uint64_t)args.m * (uint64_t)args.n;
    float *slice = (float *)stages + warp * SLICE * (WARP_COLS + 8);
    write_sums<WARP_ROWS, WARP_COLS>(
        &args, sums, slice, first_row + warp_row, first_col + warp_col,
        [&](float sum, uint64_t row, uint64_t col) { write_sum(&args, partials, sum, row, col); });
}

KILN_ENTRY(gemm_nvfp4_mma_large, kiln_gemm_nvfp4_args) {
    gemm_nvfp4_mma<128, 64, 32>(args);
}

KILN_ENTRY(gemm_nvfp4_mma_small, kiln_gemm_nvfp4_args) {
    gemm_nvfp4_mma<64, 32, 16>(args);
}
