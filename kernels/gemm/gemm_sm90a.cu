/* gemm for sm_90a, f16 and bf16: gemm_wgmma_large, _medium and _small where the rows of a and b are 16-byte aligned;
 * beside them the kernels for few rows (gemm_mma_rows.h) and the portable ones (gemm_gpu.c) for the rest.
 *
 * A block does tiles of 128 x 256 (large), 128 x 128 (medium) or 128 x 64 elements of d (small), one after the other:
 * as many blocks as there are multiprocessors. 64 elements of k are a stage, and 4, 6 or 8 stages are in shared memory,
 * 192 KB of it. One thread of the first warpgroup asks for them by tensor copies, whose rows of 128 bytes are swizzled
 * as wgmma takes them, ahead across the tiles; beyond the ends of a and b a copy writes zeros. Of each stage two
 * barriers: `full` counts the bytes that have come, `empty` the warps that have multiplied it. Two warpgroups have half
 * of a tile's rows each and leave the products of one stage under way while they wait for the next. The first one gives
 * its registers to them: 168 for each thread become 40 and 232.
 *
 * In the large tile two blocks of a cluster do two tiles below each other: each copies its rows of a and half of those
 * of b, these to both. A stage is empty when the warps of both have multiplied it.
 *
 * Tiles come in groups of 16 (large) or 8 rows of tiles, column by column, so that what the blocks read at a time stays
 * in L2. Where d has few tiles and k is long, blocks share a tile's k, and gemm_join adds up the parts.
 *
 * The end of a tile: a thread has of each 8 columns two elements of two rows. It adds c and the bias and takes the
 * activation of 4 times 8 columns, rounds, and the four threads of a row exchange their words by shuffles, so that each
 * writes 16 bytes of it. What is not aligned so, or beyond d's last columns, is written element by element.
 *
 * Floor: 2 m n k operations. Not measured. A prototype of this structure on an H100 reached cuBLAS: 807 TFLOP/s at 8192
 * cubed and 725 sustained with clusters of two (without: 796, but 661 sustained), 692 at 2048 cubed (medium), 310 at
 * 1024 cubed (small); the rates below are those. There acquire and release at the scope of the cluster in the loop over
 * k cost a quarter of the speed, and so did a branch around the arrival at the other block's barrier. Registers by
 * ptxas 12.0: 168 in each. Test: build/tests/ops/gemm_test. Bench: build/kiln bench gemm */
#include "kernels/arch/sm90a.h"
#include "kernels/common/tuned.h"
#include "kernels/common/values.h"
#include "kernels/gemm/gemm_mapped_args.h"
#include "kernels/gemm/gemm_mma_rows.h"

KILN_TUNED_PARTS(f16 bf16)
KILN_SHAPE(gemm_wgmma_large, 128, 256, 64, 49168, 100)
KILN_STAGES(gemm_wgmma_large, 4)
KILN_CLUSTER(gemm_wgmma_large, 2)
KILN_TENSOR_MAPS(gemm_wgmma_large, 240, 64x128x1, 64x128x1)
KILN_SHAPE(gemm_wgmma_medium, 128, 128, 64, 32784, 88)
KILN_STAGES(gemm_wgmma_medium, 6)
KILN_TENSOR_MAPS(gemm_wgmma_medium, 240, 64x128x1, 64x128x1)
KILN_SHAPE(gemm_wgmma_small, 128, 64, 64, 24592, 44)
KILN_STAGES(gemm_wgmma_small, 8)
KILN_TENSOR_MAPS(gemm_wgmma_small, 240, 64x128x1, 64x64x1)
KILN_SHAPE(gemm_mma_rows_8, 8, 16, 1024, 0, 100)
KILN_SHAPE(gemm_mma_rows_16, 16, 32, 512, 0, 100)

static_assert(KILN_TENSOR_MAP_FITS_SM90(offsetof(kiln_gemm_mapped_args, a)), "the offset of tensor maps");

enum : uint32_t {
    STAGE_DEPTH = 64,
    ROW_BYTES = STAGE_DEPTH * sizeof(kiln_element), /* of a stage: the swizzle's span */
    PRODUCT_DEPTH = 16,                             /* of k, in one instruction */
    WARPGROUP = 128,
    CONSUMERS = 2, /* warpgroups */
    CONSUMER_ROWS = 64,
    TILE_ROWS = CONSUMERS * CONSUMER_ROWS,
    THREADS = WARPGROUP * (1 + CONSUMERS),
    PRODUCER_REGISTERS = 40,
    CONSUMER_REGISTERS = 232,
    BARRIER_BYTES = 8,
    PART_COLS = 32 /* of a tile, that are finished at a time */
};

/* A kernel's tile, and where its stages lie in shared memory: data, then the barriers `full`, then `empty`. */
template <uint32_t COLS_, uint32_t STAGES_, uint32_t CLUSTER_> struct shape {
    enum : uint32_t {
        COLS = COLS_,
        STAGES = STAGES_,
        CLUSTER = CLUSTER_,
        RASTER = (COLS_ == 256 ? 16 : 8) / CLUSTER_, /* rows of clusters of tiles that are gone over together */
        A_BYTES = TILE_ROWS * ROW_BYTES,
        B_BYTES = COLS_ * ROW_BYTES,
        STAGE_BYTES = A_BYTES + B_BYTES,
        FULL = STAGES_ * STAGE_BYTES,
        EMPTY = FULL + STAGES_ * BARRIER_BYTES
    };
};

/* The stage that comes next, and the parity of the phase of its barriers: of `full`, and the opposite of `empty`. */
struct place {
    uint32_t stage, parity;
};

template <class S> KILN_INLINE void advance(place *at) {
    at->stage++;
    if (at->stage < S::STAGES) return;
    at->stage = 0;
    at->parity ^= 1;
}

/* A tile of this block: its first row and column in d, and which columns of a and b it takes. */
struct work {
    uint32_t row, col, batch, split, begin, steps;
};

template <class S> KILN_INLINE uint32_t tiles_down(const kiln_gemm_args &args) {
    return (args.tile_rows + S::CLUSTER - 1) / S::CLUSTER;
}

template <class S> KILN_INLINE uint32_t tiles_across(const kiln_gemm_args &args) {
    return ((uint32_t)args.n + S::COLS - 1) / S::COLS;
}

/* How much there is to do for all clusters together. */
template <class S> KILN_INLINE uint32_t work_count(const kiln_gemm_args &args) {
    return tiles_down<S>(args) * tiles_across<S>(args) * args.splits * args.batch;
}

template <class S> KILN_INLINE work work_of(const kiln_gemm_args &args, uint32_t number, uint32_t rank) {
    uint32_t rows = tiles_down<S>(args), cols = tiles_across<S>(args);
    uint32_t tile = number % (rows * cols), rest = number / (rows * cols);
    uint32_t group = tile / (S::RASTER * cols), within = tile % (S::RASTER * cols), above = group * S::RASTER;
    uint32_t height = rows - above < S::RASTER ? rows - above : S::RASTER;
    work w;
    w.row = ((above + within % height) * S::CLUSTER + rank) * TILE_ROWS;
    w.col = within / height * S::COLS;
    w.split = rest % args.splits;
    w.batch = rest / args.splits;
    w.begin = w.split * args.split;
    uint32_t left = (uint32_t)args.k - w.begin, depth = left < args.split ? left : args.split;
    w.steps = (depth + STAGE_DEPTH - 1) / STAGE_DEPTH;
    return w;
}

/* ---- Copies: one thread ---- */

template <class S> KILN_INLINE void copy_tiles(const kiln_gemm_mapped_args &args, uint32_t shared, uint32_t rank) {
    const uint32_t count = work_count<S>(args.plain), part = rank * (S::COLS / S::CLUSTER);
    place at = {0, 0};
    KILN_LOOP
    for (uint32_t number = blockIdx.x / S::CLUSTER; number < count; number += gridDim.x / S::CLUSTER) {
        work w = work_of<S>(args.plain, number, rank);
        KILN_LOOP
        for (uint32_t step = 0; step < w.steps; step++) {
            uint32_t full = shared + S::FULL + at.stage * BARRIER_BYTES, to = shared + at.stage * S::STAGE_BYTES;
            int32_t k = (int32_t)(w.begin + step * STAGE_DEPTH), batch = (int32_t)w.batch;
            kiln_sm90a_mbarrier_wait(shared + S::EMPTY + at.stage * BARRIER_BYTES, at.parity ^ 1);
            kiln_sm90a_mbarrier_arrive_expect_tx(full, S::STAGE_BYTES);
            kiln_sm90a_copy_3d(to, &args.a, full, k, (int32_t)w.row, batch);
            to += S::A_BYTES + part * ROW_BYTES;
            if (S::CLUSTER > 1)
                kiln_sm90a_copy_3d_multicast(to, &args.b, full, (1 << S::CLUSTER) - 1, k, (int32_t)(w.col + part),
                                             batch);
            else
                kiln_sm90a_copy_3d(to, &args.b, full, k, (int32_t)w.col, batch);
            advance<S>(&at);
        }
    }
}

/* ---- Products: two warpgroups ---- */

#ifdef KILN_PART_bf16
#define MULTIPLY(n) kiln_sm90a_wgmma_bf16_n##n<0>(sums, a, b, add)
#else
#define MULTIPLY(n) kiln_sm90a_wgmma_f16_n##n<0>(sums, a, b, add)
#endif

template <uint32_t COLS> KILN_INLINE void multiply_wgmma(float *sums, uint64_t a, uint64_t b, bool add) {
    if constexpr (COLS == 256)
        MULTIPLY(256);
    else if constexpr (COLS == 128)
        MULTIPLY(128);
    else
        MULTIPLY(64);
}

/* A warp has multiplied a stage: each block of the cluster is told by one of its lanes. */
template <class S> KILN_INLINE void release(uint32_t shared, uint32_t stage, bool present) {
    uint32_t lane = kiln_thread() % 32;
    kiln_sm90a_mbarrier_arrive_remote(shared + S::EMPTY + stage * BARRIER_BYTES, lane, present && lane < S::CLUSTER);
}

/* Four threads of a row have a word of each of four vectors of 16 bytes; afterwards each has a vector. */
KILN_INLINE void exchange(uint32_t *words) {
    uint32_t lane = kiln_thread();
    KILN_UNROLL
    for (uint32_t mask = 1; mask < 4; mask *= 2) {
        bool upper = lane & mask;
        KILN_UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            if (i & mask) continue;
            uint32_t got = __shfl_xor_sync(0xffffffffu, upper ? words[i] : words[i | mask], (int)mask);
            words[i] = upper ? got : words[i];
            words[i | mask] = upper ? words[i | mask] : got;
        }
    }
}

/* Whether 16 bytes of d can be written at a time, and two elements of c and of the bias be read. */
KILN_INLINE bool is_aligned(const kiln_gemm_args &args) {
    uint64_t d = (uint64_t)args.d | (uint64_t)(args.d_stride | args.d_batch_stride) * sizeof(kiln_element);
    uint64_t c = (uint64_t)args.c | (uint64_t)(args.c_stride | args.c_batch_stride) * sizeof(kiln_element);
    return !(d % KILN_VECTOR_BYTES) && !(((args.c ? c : 0) | (uint64_t)args.bias) % sizeof(uint32_t));
}

/* PIECE sums of a thread: two elements of one row in each of PART_COLS / 8 times 8 columns. */
enum : uint32_t { PIECE = PART_COLS / 8 * 2 };

/* Rounds a piece and writes it by vectors: the whole PART_COLS columns from col on of its row. */
KILN_INLINE void write_vectors(const kiln_gemm_args &args, const float *values, uint32_t batch, uint32_t row,
                               uint32_t col) {
    uint32_t words[PIECE / 2];
    KILN_UNROLL
    for (uint32_t i = 0; i < PIECE / 2; i++)
        words[i] = kiln_pair_of(values + 2 * i);
    exchange(words);
    kiln_element *d = (kiln_element *)args.d + batch * args.d_batch_stride + row * args.d_stride + col;
    if (row < (uint32_t)args.m)
        kiln_vector_store(d + kiln_thread() % 4 * KILN_VECTOR, kiln_vector{{words[0], words[1], words[2], words[3]}});
}

/* What is done to a piece's sums before they are rounded. */
KILN_INLINE void finish_piece(const kiln_gemm_args &args, float *values, uint32_t batch, uint32_t row, uint32_t col) {
    float addends[PIECE] = {};
    if (args.c && row < (uint32_t)args.m) {
        const kiln_element *c = (const kiln_element *)args.c + batch * args.c_batch_stride + row * args.c_stride + col;
        KILN_UNROLL
        for (uint32_t i = 0; i < PIECE; i += 2)
            kiln_pair_values(addends + i, *(const uint32_t *)(c + 4 * i));
    }
    KILN_UNROLL
    for (uint32_t i = 0; i < PIECE; i++)
        values[i] = KILN_FMA(args.scale, values[i], addends[i]);
    if (args.bias) {
        const kiln_element *bias = (const kiln_element *)args.bias + col;
        KILN_UNROLL
        for (uint32_t i = 0; i < PIECE; i += 2) {
            float pair[2];
            kiln_pair_values(pair, *(const uint32_t *)(bias + 4 * i));
            values[i] += pair[0];
            values[i + 1] += pair[1];
        }
    }
    if (!args.gated) return;
    KILN_UNROLL
    for (uint32_t i = 0; i < PIECE; i++)
        values[i] = kiln_gated(values[i], args.bound, args.coefficients, KILN_GEMM_COEFFICIENTS);
}

/* The same element by element, as far as d reaches; or into the partial sums where blocks share k. */
KILN_INLINE void write_elements(const kiln_gemm_args &args, const float *sums, const work &w, uint32_t row,
                                uint32_t col) {
    if (row >= (uint32_t)args.m) return;
    float *partials = args.partials;
    partials += ((uint64_t)(w.split * args.batch + w.batch) * (uint64_t)args.m + row) * (uint64_t)args.n;
    KILN_UNROLL
    for (uint32_t i = 0; i < PIECE; i++) {
        uint32_t at = col + i / 2 * 8 + i % 2;
        if (at >= (uint32_t)args.n) continue;
        if (args.splits > 1)
            partials[at] = sums[i];
        else
            finish_element(&args, sums[i], w.batch, row, at);
    }
}

/* The piece of a tile's sums in 8 rows of its columns from PART_COLS * part on, the upper ones or the lower ones. */
KILN_INLINE void take_piece(float *piece, const float *sums, uint32_t part, uint32_t lower) {
    KILN_UNROLL
    for (uint32_t i = 0; i < PIECE; i++)
        piece[i] = sums[part * 2 * PIECE + i / 2 * 4 + 2 * lower + i % 2];
}

template <uint32_t COLS>
KILN_INLINE void write_tile(const kiln_gemm_args &args, const float *sums, const work &w, bool aligned) {
    enum : uint32_t { PIECES = COLS / PART_COLS * 2 };
    const uint32_t row = w.row + (kiln_thread() - WARPGROUP) / 32 * 16 + kiln_thread() % 32 / 4,
                   pair = kiln_thread() % 4 * 2;
    float piece[PIECE];
    if (aligned && !args.c && !args.bias && !args.gated && w.col + COLS <= (uint32_t)args.n) {
        KILN_UNROLL
        for (uint32_t i = 0; i < PIECES; i++) {
            take_piece(piece, sums, i / 2, i % 2);
            KILN_UNROLL
            for (uint32_t j = 0; j < PIECE; j++)
                piece[j] *= args.scale;
            write_vectors(args, piece, w.batch, row + i % 2 * 8, w.col + i / 2 * PART_COLS);
        }
        return;
    }
    KILN_LOOP
    for (uint32_t i = 0; i < PIECES; i++) {
        KILN_UNROLL
        for (uint32_t j = 0; j < PIECES; j++) /* registers have no index */
            if (j == i) take_piece(piece, sums, j / 2, j % 2);
        const uint32_t col = w.col + i / 2 * PART_COLS, at = row + i % 2 * 8;
        if (aligned && col + PART_COLS <= (uint32_t)args.n) {
            finish_piece(args, piece, w.batch, at, col + pair);
            write_vectors(args, piece, w.batch, at, col);
        } else {
            write_elements(args, piece, w, at, col + pair);
        }
    }
}

template <class S> KILN_INLINE void multiply_tiles(const kiln_gemm_args &args, uint32_t shared, uint32_t rank) {
    const uint32_t count = work_count<S>(args), own = (kiln_thread() / WARPGROUP - 1) * CONSUMER_ROWS * ROW_BYTES;
    const bool aligned = args.splits == 1 && is_aligned(args);
    place at = {0, 0};
    float sums[S::COLS / 2];
    KILN_LOOP
    for (uint32_t number = blockIdx.x / S::CLUSTER; number < count; number += gridDim.x / S::CLUSTER) {
        work w = work_of<S>(args, number, rank);
        uint32_t before = 0;
        KILN_UNROLL
        for (uint32_t i = 0; i < S::COLS / 2; i++)
            sums[i] = 0.0f;
        KILN_LOOP
        for (uint32_t step = 0; step < w.steps; step++) {
            uint32_t from = shared + at.stage * S::STAGE_BYTES;
            uint64_t a = kiln_sm90a_swizzled_128(from + own, 0, 8 * ROW_BYTES);
            uint64_t b = kiln_sm90a_swizzled_128(from + S::A_BYTES, 0, 8 * ROW_BYTES);
            kiln_sm90a_mbarrier_wait(shared + S::FULL + at.stage * BARRIER_BYTES, at.parity);
            kiln_sm90a_wgmma_fence();
            KILN_UNROLL
            for (uint32_t k = 0; k < STAGE_DEPTH / PRODUCT_DEPTH; k++) /* the addresses in units of 16 bytes */
                multiply_wgmma<S::COLS>(sums, a + 2 * k, b + 2 * k, true);
            kiln_sm90a_wgmma_commit();
            kiln_sm90a_wgmma_wait<1>();
            release<S>(shared, before, step > 0);
            before = at.stage;
            advance<S>(&at);
        }
        kiln_sm90a_wgmma_wait<0>();
        release<S>(shared, before, true);
        write_tile<S::COLS>(args, sums, w, aligned);
    }
}

/* ---- The kernels ---- */

template <class S> KILN_INLINE void gemm_wgmma(const kiln_gemm_mapped_args &args) {
    extern __shared__ __align__(1024) uint8_t stages[];
    uint32_t shared = kiln_sm90a_shared(stages), rank = S::CLUSTER > 1 ? kiln_sm90a_cluster_rank() : 0;
    if (kiln_thread() == 0) {
        kiln_sm90a_prefetch_tensormap(&args.a);
        kiln_sm90a_prefetch_tensormap(&args.b);
        KILN_UNROLL
        for (uint32_t i = 0; i < S::STAGES; i++) {
            kiln_sm90a_mbarrier_init(shared + S::FULL + i * BARRIER_BYTES, 1);
            kiln_sm90a_mbarrier_init(shared + S::EMPTY + i * BARRIER_BYTES, S::CLUSTER * CONSUMERS * (WARPGROUP / 32));
        }
        kiln_sm90a_fence_mbarrier_init();
    }
    __syncwarp();
    if (S::CLUSTER > 1)
        kiln_sm90a_cluster_sync();
    else
        kiln_barrier();
    if (kiln_thread() < WARPGROUP) {
        kiln_sm90a_setmaxnreg_dec<PRODUCER_REGISTERS>();
        if (kiln_thread() < 32 && kiln_sm90a_elect()) copy_tiles<S>(args, shared, rank);
    } else {
        kiln_sm90a_setmaxnreg_inc<CONSUMER_REGISTERS>();
        multiply_tiles<S>(args.plain, shared, rank);
    }
    /* No block leaves while the other one copies into it or tells its barriers. */
    __syncwarp();
    if (S::CLUSTER > 1) kiln_sm90a_cluster_sync();
}

#define GEMM_PASTE(kernel, part, cluster)                                              \
    extern "C" __global__ void __launch_bounds__(THREADS, 1) __cluster_dims__(cluster) \
        kiln_##kernel##_##part(const __grid_constant__ kiln_gemm_mapped_args args)
#define GEMM_OF_PART(kernel, part, cluster) GEMM_PASTE(kernel, part, cluster)
#define GEMM_ENTRY(kernel, cluster)         GEMM_OF_PART(kernel, KILN_PART, cluster)

GEMM_ENTRY(gemm_wgmma_large, 2) {
    gemm_wgmma<shape<256, 4, 2>>(args);
}

GEMM_ENTRY(gemm_wgmma_medium, 1) {
    gemm_wgmma<shape<128, 6, 1>>(args);
}

GEMM_ENTRY(gemm_wgmma_small, 1) {
    gemm_wgmma<shape<64, 8, 1>>(args);
}
