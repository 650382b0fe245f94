/* gemm_nvfp4 for sm_80 and later, by products of f16: gemm_nvfp4_mma_large, _small and _rows where rows of codes are
 * 16-byte aligned, beside the portable kernels (gemm_nvfp4_gpu.c) for the rest.
 *
 * A code is four bits of an f16, the sign and three that stand at the lower end of its exponent and the upper of its
 * fraction: the number times 2^-14, with no more than moving them. Times the E4M3 of its block it is still exact, as
 * both have six bits together and the least of them is f16's least, 2^-24: so are products, and only f32 sums of them
 * are rounded. They get 2^28 at the end. Which of a word's codes make a pair is the same for both factors, and so it
 * does not matter.
 *
 * gemm_nvfp4_mma_large and _small: a block does a tile of 128 x 128 or 64 x 64 elements of d, each of its 8 warps 64 x
 * 32 or 32 x 16 of them by mma.sync m16n8k16. 64 elements of k are a stage, of which there are two. Codes come into
 * registers, 16 bytes of a row and its two scales by a thread, while the stage before them is multiplied; then they
 * become f16 on their way to shared memory, each once for a block: by each warp that needs them it would be three
 * times. A row of a stage is 8 vectors of 16 bytes, whose order is xor-ed with the row's number: neither writing nor
 * ldmatrix meets a bank twice. Blocks go over d in groups of 8 rows of tiles, so that what they read stays in L2. The
 * sums leave through shared memory, 16 rows of a warp at a time, so that rows of d are written whole.
 *
 * gemm_nvfp4_mma_rows: up to 16 rows of a, as when tokens are generated. A block does 32 rows of b, read once, straight
 * into registers; its 8 warps share k, 128 elements at a time, and add up their sums in shared memory. Rows of b are
 * the first factor of mma.sync and those of a the second. The next 128 elements of both, with their scales, are on
 * their way while these are multiplied. The second 8 rows of a are passed over where there are none.
 *
 * Floor: 2 m n k operations, or for few rows one read of b, 0.5625 bytes an element. Not measured.
 * Test: build/tests/ops/gemm_nvfp4_test. Bench: build/kiln bench gemm_nvfp4 */
#include "kernels/arch/sm80.h"
#include "kernels/arch/sm80_pairs.h"
#include "kernels/common/tuned.h"
#include "kernels/gemm_nvfp4/gemm_nvfp4_portable.h"

KILN_TUNED_PARTS(f32 f16 bf16)
KILN_SHAPE(gemm_nvfp4_mma_large, 128, 128, 64, 32768, 100)
KILN_STAGES(gemm_nvfp4_mma_large, 2)
KILN_SHAPE(gemm_nvfp4_mma_small, 64, 64, 64, 16384, 60)
KILN_STAGES(gemm_nvfp4_mma_small, 2)
KILN_SHAPE(gemm_nvfp4_mma_rows, 16, 32, 1024, 0, 100)

enum : uint32_t {
    WARPS = KILN_BLOCK / 32,
    CHUNK = KILN_NVFP4_CHUNK, /* codes of a row that a thread has at a time */
    CHUNK_WORDS = CHUNK / WORD,
    PAIRS = WORD / 2 /* of a word's codes */
};

/* ---- Numbers ---- */

KILN_INLINE uint32_t product_of(uint32_t a, uint32_t b) {
    return kiln_sm80_fma_f16x2(a, b, 0x80008000u); /* -0: a product of 0 keeps its sign */
}

/* The E4M3 in the lowest byte, which is not negative, as f16 twice. */
KILN_INLINE uint32_t scale_pair(uint32_t code) {
    code &= 0x7fu;
    const uint32_t pair = product_of(code * 0x00800080u, 0x5c005c00u); /* times 2^8 */
    return code == 0x7fu ? 0x7e007e00u : pair;
}

/* The numbers of a word's codes, times the scale and 2^-14: code i and code i + 4 in pair i. */
KILN_INLINE void pairs_of(uint32_t *pairs, uint32_t word, uint32_t scale) {
    KILN_UNROLL
    for (uint32_t i = 0; i < PAIRS; i++) {
        const uint32_t moved = word << (12 - 4 * i);
        pairs[i] = product_of((moved & 0x80008000u) | (moved >> 3 & 0x0e000e00u), scale);
    }
}

#define SUM_SCALE 0x1p28f

/* ---- gemm_nvfp4_mma_large and _small ---- */

enum : uint32_t {
    STAGE_DEPTH = 64,
    ROW_CHUNKS = STAGE_DEPTH / CHUNK, /* of a stage */
    ROW_VECTORS = STAGE_DEPTH * 2 / KILN_VECTOR_BYTES,
    ROW_BYTES = ROW_VECTORS * KILN_VECTOR_BYTES,
    STAGE_BLOCKS = STAGE_DEPTH / KILN_NVFP4_BLOCK,
    RASTER = 8, /* rows of tiles that neighbouring blocks go over together */
    SLICE = 16  /* rows of a warp's sums that leave at once */
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

/* Writes a warp's sums to d, or to the partial sums where blocks share k: SLICE rows at a time, by its part of shared
 * memory, so that a row is written by neighbouring lanes. */
template <uint32_t ROWS, uint32_t COLS>
KILN_INLINE void write_sums(const kiln_gemm_nvfp4_args *args, float *partials, const float (*sums)[COLS / 8][4],
                            float *slice, uint64_t row, uint64_t col) {
    enum : uint32_t { PITCH = COLS + 8 }; /* no two rows that are written at once meet a bank */
    const uint32_t lane = kiln_thread() % 32;
    float *place = slice + lane / 4 * PITCH + lane % 4 * 2;
    KILN_LOOP
    for (uint32_t part = 0; part < ROWS / SLICE; part++, row += SLICE) {
        __syncwarp();
        KILN_UNROLL
        for (uint32_t i = 0; i < ROWS / SLICE; i++) { /* registers have no index */
            if (i != part) continue;
            KILN_UNROLL
            for (uint32_t j = 0; j < COLS / 8; j++) {
                *(float2 *)(place + j * 8) = make_float2(sums[i][j][0], sums[i][j][1]);
                *(float2 *)(place + j * 8 + 8 * PITCH) = make_float2(sums[i][j][2], sums[i][j][3]);
            }
        }
        __syncwarp();
        KILN_LOOP
        for (uint32_t i = lane; i < SLICE * COLS; i += 32) {
            const uint64_t d_row = row + i / COLS, d_col = col + i % COLS;
            if (d_row >= (uint64_t)args->m || d_col >= (uint64_t)args->n) continue;
            const float sum = slice[i / COLS * PITCH + i % COLS] * SUM_SCALE;
            if (args->splits > 1)
                partials[d_row * (uint64_t)args->n + d_col] = sum;
            else
                finish(args, sum, d_row, d_col);
        }
    }
}

/* Which tile a block does: they go down RASTER rows of tiles before they go on to the next column. */
KILN_INLINE void raster(uint32_t *row, uint32_t *col, uint32_t rows, uint32_t cols) {
    const uint32_t group = *row / RASTER, place = *row % RASTER * cols + *col;
    const uint32_t height = rows - group * RASTER < RASTER ? rows - group * RASTER : RASTER;
    *row = group * RASTER + place % height;
    *col = place / height;
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
    write_sums<WARP_ROWS, WARP_COLS>(&args, partials, sums, slice, first_row + warp_row, first_col + warp_col);
}

KILN_ENTRY(gemm_nvfp4_mma_large, kiln_gemm_nvfp4_args) {
    gemm_nvfp4_mma<128, 64, 32>(args);
}

KILN_ENTRY(gemm_nvfp4_mma_small, kiln_gemm_nvfp4_args) {
    gemm_nvfp4_mma<64, 32, 16>(args);
}

/* ---- gemm_nvfp4_mma_rows ---- */

enum : uint32_t {
    STEP = 4 * CHUNK, /* of k, that a warp does at a time: four lanes share a row */
    TILES = 2,        /* of 8 rows of a */
    BLOCKS = 2,       /* of 16 rows of b */
    COLS = 16 * BLOCKS
};

/* A lane's share of a step: its chunk of a row of each 8. */
template <uint32_t COUNT> struct lane_chunks {
    chunk of[COUNT];
    uint32_t scales[COUNT];
};

/* Chunks from k on; zeros where k is not there, or the row is not wanted. */
template <uint32_t COUNT>
KILN_INLINE void load_chunks(lane_chunks<COUNT> *to, const kiln_nvfp4_operand &operand, const uint64_t *rows,
                             uint32_t k, bool there, uint32_t wanted) {
    KILN_UNROLL
    for (uint32_t i = 0; i < COUNT; i++) {
        const bool present = there && i < wanted;
        kiln_sm80_load_v4(to->of[i].words, codes_of(&operand, rows[i]) + k / 2, present);
        to->scales[i] =
            kiln_sm80_load_u16(operand.scales + scale_place(&operand, rows[i], k / KILN_NVFP4_BLOCK), present);
    }
}

KILN_ENTRY(gemm_nvfp4_mma_rows, kiln_gemm_nvfp4_args) {
    KILN_SHARED float shared[WARPS][TILES][COLS][8];
    const uint32_t lane = kiln_thread() % 32, warp = kiln_thread() / 32, end = (uint32_t)args.k;
    const uint32_t tiles_wanted = args.m > 8 ? 2 : 1;
    const uint64_t first = (uint64_t)kiln_tile() * COLS, last_row = (uint64_t)args.m - 1,
                   last_col = (uint64_t)args.n - 1;
    if (kiln_block()) return; /* the whole block */
    uint64_t a_rows[TILES], b_rows[2 * BLOCKS];
    KILN_UNROLL
    for (uint32_t i = 0; i < 2 * BLOCKS; i++) { /* beyond the last one: that once more, for nothing; of a as well */
        const uint64_t col = first + lane / 4 + 8 * i;
        b_rows[i] = col < last_col ? col : last_col;
    }
    KILN_UNROLL
    for (uint32_t i = 0; i < TILES; i++) {
        const uint64_t row = lane / 4 + 8 * i;
        a_rows[i] = row < last_row ? row : last_row;
    }

    float sums[BLOCKS][TILES][4] = {};
    lane_chunks<TILES> a, next_a;
    lane_chunks<2 * BLOCKS> b, next_b;
    uint32_t k = warp * STEP + lane % 4 * CHUNK;
    load_chunks(&next_a, args.a, a_rows, k, k < end, tiles_wanted);
    load_chunks(&next_b, args.b, b_rows, k, k < end, 2 * BLOCKS);
    KILN_LOOP
    for (uint32_t step = warp * STEP; step < end; step += WARPS * STEP) {
        a = next_a, b = next_b;
        k += WARPS * STEP;
        load_chunks(&next_a, args.a, a_rows, k, k < end, tiles_wanted);
        load_chunks(&next_b, args.b, b_rows, k, k < end, 2 * BLOCKS);
        KILN_UNROLL
        for (uint32_t w = 0; w < CHUNK_WORDS; w++) {
            uint32_t left[2 * BLOCKS][PAIRS], right[PAIRS];
            KILN_UNROLL
            for (uint32_t i = 0; i < 2 * BLOCKS; i++)
                pairs_of(left[i], b.of[i].words[w], scale_pair(b.scales[i] >> w / 2 * 8));
            KILN_UNROLL
            for (uint32_t i = 0; i < TILES; i++) {
                if (i >= tiles_wanted) continue;
                pairs_of(right, a.of[i].words[w], scale_pair(a.scales[i] >> w / 2 * 8));
                KILN_UNROLL
                for (uint32_t p = 0; p < PAIRS; p += 2) {
                    KILN_UNROLL
                    for (uint32_t j = 0; j < BLOCKS; j++) {
                        const uint32_t fragment[4] = {left[2 * j][p], left[2 * j + 1][p], left[2 * j][p + 1],
                                                      left[2 * j + 1][p + 1]};
                        kiln_sm80_mma_f16(sums[j][i], fragment, right + p);
                    }
                }
            }
        }
    }

    KILN_UNROLL
    for (uint32_t i = 0; i < BLOCKS * TILES; i++) {
        const float *sum = sums[i / TILES][i % TILES];
        float(*to)[8] = &shared[warp][i % TILES][i / TILES * 16 + lane / 4];
        *(float2 *)&to[0][lane % 4 * 2] = make_float2(sum[0], sum[1]);
        *(float2 *)&to[8][lane % 4 * 2] = make_float2(sum[2], sum[3]);
    }
    kiln_barrier();
    KILN_LOOP
    for (uint32_t i = kiln_thread(); i < COLS * TILES * 8; i += KILN_BLOCK) {
        const uint64_t row = i / COLS, col = first + i % COLS;
        if (row >= (uint64_t)args.m || col >= (uint64_t)args.n) continue;
        float sum = 0.0f;
        KILN_UNROLL
        for (uint32_t w = 0; w < WARPS; w++)
            sum += shared[w][row / 8][i % COLS][row % 8];
        finish(&args, sum * SUM_SCALE, row, col);
    }
}
