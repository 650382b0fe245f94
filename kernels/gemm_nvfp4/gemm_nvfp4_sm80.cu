/* gemm_nvfp4 for sm_80 and later, by products of f16: gemm_nvfp4_mma_large, _small and _rows where rows of codes are
 * 16-byte aligned, beside the portable kernels (gemm_nvfp4_gpu.c) for the rest. gemm_nvfp4_mma.h has what a number is
 * there, and the kernel for few rows.
 *
 * gemm_nvfp4_mma_large and _small: a block does a tile of 128 x 128 or 64 x 64 elements of d, each of its 8 warps 64 x
 * 32 or 32 x 16 of them by mma.sync m16n8k16. 64 elements of k are a stage, of which there are two. Codes come into
 * registers, 16 bytes of a row and its two scales by a thread, while the stage before them is multiplied; then they
 * become f16 on their way to shared memory, each once for a block: by each warp that needs them it would be three
 * times. A row of a stage is 8 vectors of 16 bytes, whose order is xor-ed with the row's number: neither writing nor
 * ldmatrix meets a bank twice. Blocks go over d in bands of 8 rows of tiles, so that what they read stays in L2. The
 * sums leave through shared memory, 16 rows of a warp at a time, so that rows of d are written whole.
 *
 * Floor: 2 m n k operations, or for few rows one read of b, 0.5625 bytes an element. Not measured.
 * Test: build/tests/ops/gemm_nvfp4_test. Bench: build/kiln bench gemm_nvfp4 */
#include "kernels/common/tuned.h"
#include "kernels/gemm_nvfp4/gemm_nvfp4_mma.h"

KILN_TUNED_PARTS(f32 f16 bf16)
KILN_SHAPE(gemm_nvfp4_mma_large, 128, 128, 64, 32768, 100)
KILN_STAGES(gemm_nvfp4_mma_large, 2)
KILN_SHAPE(gemm_nvfp4_mma_small, 64, 64, 64, 16384, 60)
KILN_STAGES(gemm_nvfp4_mma_small, 2)
KILN_SHAPE(gemm_nvfp4_mma_rows, 16, 32, 1024, 0, 100)

enum : uint32_t {
    STAGE_DEPTH = 64,
    ROW_CHUNKS = STAGE_DEPTH / CHUNK, /* of a stage */
    ROW_VECTORS = STAGE_DEPTH * 2 / KILN_VECTOR_BYTES,
    ROW_BYTES = ROW_VECTORS * KILN_VECTOR_BYTES,
    STAGE_BLOCKS = STAGE_DEPTH / KILN_NVFP4_BLOCK
};

/* What a thread takes from one row to each stage. */
struct row_chunk {
    const uint8_t *codes, *scales;
    uint32_t scale_step; /* to those of the next stage */
    uint32_t present;    /* non-zero: the row is there */
    chunk held;
    uint32_t held_scales;
};

/* The chunk number `half` of row `row`, from column k on, a multiple of a stage. */
KILN_INLINE row_chunk row_chunk_of(const kiln_nvfp4_operand &operand, uint64_t row, int64_t rows, uint32_t k,
                                   uint32_t half) {
    row_chunk c;
    c.present = row < (uint64_t)rows;
    if (!c.present) row = 0;
    c.codes = codes_of(&operand, row) + (k + half * CHUNK) / 2;
    c.scales = operand.scales + scale_place(&operand, row, k / KILN_NVFP4_BLOCK + half * (CHUNK / KILN_NVFP4_BLOCK));
    c.scale_step = operand.swizzled ? STAGE_BLOCKS * 128 : STAGE_BLOCKS;
    return c;
}

/* Begins to load the next stage's, of which there are `left` columns, and moves on. */
KILN_INLINE void load_chunk(row_chunk *c, uint32_t left) {
    const bool there = c->present && left;
    kiln_sm80_load_v4(c->held.words, c->codes, there);
    c->held_scales = kiln_sm80_load_u16(c->scales, there);
    c->codes += STAGE_DEPTH / 2;
    c->scales += c->scale_step;
}

/* The address of vector `vector` of row `row`. */
KILN_INLINE uint32_t vector_at(uint32_t shared, uint32_t row, uint32_t vector) {
    return shared + row * ROW_BYTES + (vector ^ row % 8) * KILN_VECTOR_BYTES;
}

/* Writes a thread's chunk, the half `half` of row `row` of a stage, as f16. */
KILN_INLINE void put_chunk(char *stage, const row_chunk &c, uint32_t row, uint32_t half) {
    KILN_UNROLL
    for (uint32_t w = 0; w < CHUNK_WORDS; w++) {
        kiln_vector vector;
        pairs_of(vector.words, c.held.words[w], scale_pair(c.held_scales >> w / 2 * 8));
        *(kiln_vector *)(stage + vector_at(0, row, half * CHUNK_WORDS + w)) = vector;
    }
}

/* Adds the products of a stage to a warp's sums: a_shared and b_shared are at its first row. */
template <uint32_t ROWS, uint32_t COLS>
KILN_INLINE void multiply_stage(float (*sums)[COLS / 8][4], uint32_t a_shared, uint32_t b_shared) {
    const uint32_t lane = kiln_thread() % 32;
    KILN_UNROLL
    for (uint32_t k = 0; k < ROW_VECTORS; k += 2) {
        uint32_t a[ROWS / 16][4], b[COLS / 16][4];
        KILN_UNROLL
        for (uint32_t i = 0; i < ROWS / 16; i++)
            kiln_sm80_ldmatrix_x4(a[i], vector_at(a_shared, 16 * i + lane % 16, k + lane / 16));
        KILN_UNROLL
        for (uint32_t i = 0; i < COLS / 16; i++)
            kiln_sm80_ldmatrix_x4(b[i], vector_at(b_shared, 16 * i + lane % 8 + lane / 16 * 8, k + lane / 8 % 2));
        KILN_UNROLL
        for (uint32_t i = 0; i < ROWS / 16; i++) {
            KILN_UNROLL
            for (uint32_t j = 0; j < COLS / 8; j++)
                kiln_sm80_mma_f16(sums[i][j], a[i], b[j / 2] + j % 2 * 2);
        }
    }
}

/* A tile of SIDE_ROWS x SIDE_ROWS of d; a warp does WARP_ROWS x WARP_COLS of it. */
template <uint32_t SIDE_ROWS, uint32_t WARP_ROWS, uint32_t WARP_COLS>
KILN_INLINE void gemm_nvfp4_mma(const kiln_gemm_nvfp4_args &args) {
    enum : uint32_t {
        STAGE_ROWS = 2 * SIDE_ROWS, /* those of a, then those of b */
        STAGE_BYTES = STAGE_ROWS * ROW_BYTES,
        CHUNKS = STAGE_ROWS * ROW_CHUNKS / KILN_BLOCK, /* of a thread */
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

    const uint32_t row = thread / ROW_CHUNKS, half = thread % ROW_CHUNKS;
    row_chunk chunks[CHUNKS];
    KILN_UNROLL
    for (uint32_t i = 0; i < CHUNKS; i++) {
        const uint32_t place = row + i * (KILN_BLOCK / ROW_CHUNKS);
        chunks[i] = place < SIDE_ROWS ? row_chunk_of(args.a, first_row + place, args.m, begin, half)
                                      : row_chunk_of(args.b, first_col + place - SIDE_ROWS, args.n, begin, half);
    }
    uint32_t next = begin + half * CHUNK, use = 0;
    auto load = [&]() {
        KILN_UNROLL
        for (uint32_t i = 0; i < CHUNKS; i++)
            load_chunk(&chunks[i], next < end ? end - next : 0);
        next += STAGE_DEPTH;
    };
    const uint32_t warp = thread / 32, warp_row = warp / ACROSS * WARP_ROWS, warp_col = warp % ACROSS * WARP_COLS;
    const uint32_t shared = kiln_sm80_shared(stages);
    float sums[WARP_ROWS / 16][WARP_COLS / 8][4] = {};
    load();
    KILN_LOOP
    for (; begin < end; begin += STAGE_DEPTH) {
        KILN_UNROLL
        for (uint32_t i = 0; i < CHUNKS; i++)
            put_chunk((char *)stages + use, chunks[i], row + i * (KILN_BLOCK / ROW_CHUNKS), half);
        kiln_barrier(); /* with two stages one is enough: who writes the other has passed the one before */
        load();
        multiply_stage<WARP_ROWS, WARP_COLS>(sums, shared + use + warp_row * ROW_BYTES,
                                             shared + use + (SIDE_ROWS + warp_col) * ROW_BYTES);
        use ^= STAGE_BYTES;
    }
    kiln_barrier();

    float *partials = args.partials + (uint64_t)split * (uint64_t)args.m * (uint64_t)args.n;
    float *slice = (float *)stages + warp * SLICE * (WARP_COLS + 8);
    write_sums<WARP_ROWS, WARP_COLS>(
        &args, sums, slice, first_row + warp_row, first_col + warp_col,
        [&](float sum, uint64_t row, uint64_t col) { write_sum(&args, partials, sum * F16_FACTOR, row, col); });
}

KILN_ENTRY(gemm_nvfp4_mma_large, kiln_gemm_nvfp4_args) {
    gemm_nvfp4_mma<128, 64, 32>(args);
}

KILN_ENTRY(gemm_nvfp4_mma_small, kiln_gemm_nvfp4_args) {
    gemm_nvfp4_mma<64, 32, 16>(args);
}
