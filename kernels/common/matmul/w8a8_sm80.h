/* The kernels of gemm_int8 and gemm_fp8 by mma.sync m16n8k32 of bytes (m8n8k16 on sm_75), for rows of a and b that are
 * 16-byte aligned, beside the portable ones (w8a8_gpu.h) for the rest.
 *
 * w8a8_mma: a block does a tile of ROWS x COLS of d, each of its 8 warps WARP_ROWS x WARP_COLS of them. 128 codes of k
 * are a stage, and so is a group that may have scales of its own, which come with it: cp.async fills one or two stages
 * ahead of the one at work. A row of a stage is 8 vectors of 16 bytes, whose order is xor-ed with the row's number:
 * neither the copies nor ldmatrix meet a bank twice. Where products are taken over group by group, those of 32 x 32 of
 * a warp's elements at a time are made for a whole group, and scaled and added to the sums in f32: all of a warp's
 * products would not fit into its registers beside its sums. Blocks go over d in bands of 8 rows of tiles, so that what
 * they read stays in L2. The sums leave through shared memory, 16 rows of a warp at a time, so that rows of d are
 * written whole.
 *
 * `unit` is what w8a8_mma_rows.h says. */
#ifndef KILN_KERNELS_COMMON_MATMUL_W8A8_SM80_H
#define KILN_KERNELS_COMMON_MATMUL_W8A8_SM80_H

#include "kernels/common/copies.h"
#include "kernels/common/matmul/matmul_mma.h"
#include "kernels/common/matmul/w8a8_gpu.h"
#include "kernels/common/matmul/w8a8_sums.h"

enum : uint32_t {
    STAGE_DEPTH = KILN_W8A8_GROUP,
    VECTOR = KILN_VECTOR_BYTES,
    ROW_VECTORS = STAGE_DEPTH / VECTOR,   /* of a stage */
    LOAD_ROWS = KILN_BLOCK / ROW_VECTORS, /* that a block copies at once */
    PART = 32                             /* rows and columns of a warp whose products of a group it has at once */
};

/* What a result is added up in: f32 where it is scaled or taken over group by group, else as mma does. */
template <class unit, bool GROUPWISE> struct kiln_w8a8_sum_of { typedef float type; };
template <class unit> struct kiln_w8a8_sum_of<unit, false> { typedef typename unit::sums type; };

/* ---- What a block copies ---- */

/* A block's share of one factor: rows of which each stage has the next STAGE_DEPTH codes, and their scales. What can be
 * made of the arguments is made of them again and again: registers are few. */
struct operand {
    const uint8_t *source; /* this thread's vector of its first row */
    uint32_t first;        /* its first row */
};

KILN_INLINE operand operand_of(const uint8_t *data, int64_t stride, uint64_t first, uint32_t k) {
    uint32_t row = kiln_thread() / ROW_VECTORS;
    return {data + (first + row) * (uint64_t)stride + k + kiln_thread() % ROW_VECTORS * VECTOR, (uint32_t)first + row};
}

/* A thread's vectors of ROWS rows of a stage. */
template <uint32_t ROWS> using row_copies = copies<ROWS / LOAD_ROWS, 1>;

/* Starts to copy ROWS rows of the next stage, of which `bytes` of this thread's vector are there, and moves on. Rows
 * beyond the last are zeros. */
template <uint32_t ROWS>
KILN_INLINE void copy_rows(row_copies<ROWS> *to, operand *from, int64_t stride, int64_t rows, const void *valid,
                           uint32_t shared, uint32_t bytes) {
    uint32_t row = kiln_thread() / ROW_VECTORS, vector = kiln_thread() % ROW_VECTORS ^ row % 8;
    shared += (row * ROW_VECTORS + vector) * VECTOR;
    const uint8_t *source = from->source;
    uint64_t step = LOAD_ROWS * (uint64_t)stride;
    uint32_t first = from->first;
    asm volatile("" : "+l"(step), "+r"(first)); /* else what follows from them for each row is kept, and spilled */
    KILN_UNROLL
    for (uint32_t i = 0; i < ROWS / LOAD_ROWS; i++) {
        uint32_t present = first + i * LOAD_ROWS < (uint32_t)rows ? bytes : 0;
        to->start(i, shared + i * LOAD_ROWS * STAGE_DEPTH, present ? source : (const uint8_t *)valid, present);
        source += step;
    }
    from->source += STAGE_DEPTH;
}

/* Starts to copy the scales of ROWS rows for the group with column k, this thread's; those of rows beyond the last are
 * the last's, and those of groups beyond the last are zeros: both are for nothing. */
template <uint32_t ROWS>
KILN_INLINE void copy_scales(word_copy *to, const operand &from, const kiln_w8a8_scales &scales, int64_t rows,
                             uint32_t shared, uint32_t k, uint32_t end) {
    uint32_t row = from.first, present = k < end ? 4 : 0;
    asm volatile("" : "+r"(row)); /* as with copy_rows */
    row += kiln_thread() - kiln_thread() / ROW_VECTORS;
    if (row >= (uint32_t)rows) row = (uint32_t)rows - 1;
    uint64_t place = (row >> scales.rows_log2) * (uint64_t)scales.cols + k / KILN_W8A8_GROUP * scales.step;
    if (kiln_thread() < ROWS) to->start(shared + kiln_thread() * 4, scales.values + (present ? place : 0), present);
}

/* ---- Products ---- */

/* The address that a lane gives to ldmatrix: of row `row`, its vector `vector`. */
KILN_INLINE uint32_t vector_at(uint32_t shared, uint32_t row, uint32_t vector) {
    return shared + (row * ROW_VECTORS + (vector ^ row % 8)) * VECTOR;
}

/* Adds the products of a stage: a_shared and b_shared are at a warp's first rows. */
template <class unit, uint32_t ROWS, uint32_t COLS>
KILN_INLINE void multiply_stage(typename unit::sums (*sums)[COLS / 8][4], uint32_t a_shared, uint32_t b_shared) {
    uint32_t lane = kiln_thread() % 32;
    _Pragma("unroll 2") /* whole, a large tile would spill */
        for (uint32_t k = 0; k < ROW_VECTORS; k += 2) {
        uint32_t a[4], b[COLS / 16][4];
        KILN_UNROLL
        for (uint32_t i = 0; i < COLS / 16; i++)
            kiln_sm80_ldmatrix_x4(b[i], vector_at(b_shared, 16 * i + lane % 8 + lane / 16 * 8, k + lane / 8 % 2));
        KILN_UNROLL
        for (uint32_t i = 0; i < ROWS / 16; i++) {
            kiln_sm80_ldmatrix_x4(a, vector_at(a_shared, 16 * i + lane % 16, k + lane / 16));
            KILN_UNROLL
            for (uint32_t j = 0; j < COLS / 8; j++)
                unit::mma(sums[i][j], a, b[j / 2] + j % 2 * 2);
        }
    }
}

/* Adds the products of a group, scaled, to a warp's sums: those of PART x PART of them at a time. a_scales and b_scales
 * are at its first rows. */
template <class unit, uint32_t ROWS, uint32_t COLS>
KILN_INLINE void add_group(float (*sums)[COLS / 8][4], uint32_t a_shared, uint32_t b_shared, const float *a_scales,
                           const float *b_scales) {
    a_scales += kiln_thread() % 32 / 4;
    b_scales += kiln_thread() % 4 * 2;
    KILN_UNROLL
    for (uint32_t part = 0; part < (ROWS / PART) * (COLS / PART); part++) {
        const uint32_t row = part / (COLS / PART) * PART, col = part % (COLS / PART) * PART;
        typename unit::sums products[PART / 16][PART / 8][4];
        KILN_UNROLL
        for (uint32_t i = 0; i < PART / 16 * (PART / 8) * 4; i++)
            products[i / (PART / 8 * 4)][i / 4 % (PART / 8)][i % 4] = unit::first();
        multiply_stage<unit, PART, PART>(products, a_shared + row * STAGE_DEPTH, b_shared + col * STAGE_DEPTH);
        KILN_UNROLL
        for (uint32_t i = 0; i < PART / 16; i++) {
            const float low = a_scales[row + 16 * i], high = a_scales[row + 16 * i + 8];
            KILN_UNROLL
            for (uint32_t j = 0; j < PART / 8; j++) {
                const float2 right = *(const float2 *)&b_scales[col + 8 * j];
                float *sum = sums[row / 16 + i][col / 8 + j];
                const typename unit::sums *product = products[i][j];
                sum[0] = KILN_FMA(unit::value(product[0]) * low, right.x, sum[0]);
                sum[1] = KILN_FMA(unit::value(product[1]) * low, right.y, sum[1]);
                sum[2] = KILN_FMA(unit::value(product[2]) * high, right.x, sum[2]);
                sum[3] = KILN_FMA(unit::value(product[3]) * high, right.y, sum[3]);
            }
        }
    }
}

/* ---- Tiles ---- */

/* SCALED: group by group. A stage is the codes of a, those of b, the scales of a, those of b. */
template <class unit, bool SCALED, uint32_t ROWS, uint32_t COLS, uint32_t WARP_ROWS, uint32_t WARP_COLS>
KILN_INLINE void w8a8_mma_tile(const kiln_w8a8_args &args) {
    enum : uint32_t {
        A_BYTES = ROWS * STAGE_DEPTH,
        CODES_BYTES = A_BYTES + COLS * STAGE_DEPTH,
        STAGE_BYTES = CODES_BYTES + (ROWS + COLS) * (uint32_t)sizeof(float),
        ACROSS = COLS / WARP_COLS
    };
    typedef typename kiln_w8a8_sum_of<unit, SCALED>::type sum_type;
    KILN_DYNAMIC_SHARED(kiln_vector, stages);
    uint32_t block = (uint32_t)kiln_block(), tile_row = block % args.tile_rows, split = block / args.tile_rows;
    uint32_t tile_col = kiln_tile();
    if (split >= args.splits) return; /* the whole block */
    raster(&tile_row, &tile_col, args.tile_rows, ((uint32_t)args.n + COLS - 1) / COLS);
    uint64_t first_row = (uint64_t)tile_row * ROWS, first_col = (uint64_t)tile_col * COLS;
    uint32_t begin = split * args.split, end = begin + args.split;
    if (end > (uint32_t)args.k) end = (uint32_t)args.k;

    const uint32_t thread = kiln_thread();
    operand a = operand_of(args.a, args.a_stride, first_row, begin);
    operand b = operand_of(args.b, args.b_stride, first_col, begin);
    uint32_t warp = thread / 32, warp_row = warp / ACROSS * WARP_ROWS, warp_col = warp % ACROSS * WARP_COLS;
    uint32_t shared = kiln_sm80_shared(stages), limit = shared + args.stages * STAGE_BYTES;
    uint32_t next = begin + thread % ROW_VECTORS * VECTOR, fill = shared, use = shared;
    sum_type sums[WARP_ROWS / 16][WARP_COLS / 8][4] = {};
    row_copies<ROWS> a_codes;
    row_copies<COLS> b_codes;
    word_copy a_scale, b_scale;

    auto copy_stage = [&]() {
        uint32_t left = next < end ? end - next : 0, bytes = left < VECTOR ? left : VECTOR;
        copy_rows<ROWS>(&a_codes, &a, args.a_stride, args.m, args.a, fill, bytes);
        copy_rows<COLS>(&b_codes, &b, args.b_stride, args.n, args.b, fill + A_BYTES, bytes);
        if (SCALED) {
            const uint32_t k = next - thread % ROW_VECTORS * VECTOR, scales = fill + CODES_BYTES;
            copy_scales<ROWS>(&a_scale, a, args.a_scales, args.m, scales, k, end);
            copy_scales<COLS>(&b_scale, b, args.b_scales, args.n, scales + ROWS * 4, k, end);
        }
        copies_commit();
        next += STAGE_DEPTH;
        fill = fill + STAGE_BYTES == limit ? shared : fill + STAGE_BYTES;
    };
    auto land_stage = [&]() {
        a_codes.land();
        b_codes.land();
        if (SCALED && thread < ROWS) a_scale.land();
        if (SCALED && thread < COLS) b_scale.land();
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
        uint32_t a_shared = use + warp_row * STAGE_DEPTH, b_shared = use + A_BYTES + warp_col * STAGE_DEPTH;
        if constexpr (SCALED) {
            const float *scales = (const float *)((const char *)stages + (use - shared) + CODES_BYTES);
            add_group<unit, WARP_ROWS, WARP_COLS>(sums, a_shared, b_shared, scales + warp_row,
                                                  scales + ROWS + warp_col);
        } else {
            multiply_stage<unit, WARP_ROWS, WARP_COLS>(sums, a_shared, b_shared);
        }
        land_stage();
        use = use + STAGE_BYTES == limit ? shared : use + STAGE_BYTES;
    }
    copies_wait<0>();
    kiln_barrier();

    float *partials = args.partials;
    partials += (uint64_t)split * (uint64_t)args.m * (uint64_t)args.n;
    float *slice = (float *)stages + warp * SLICE * (WARP_COLS + 8);
    write_sums<WARP_ROWS, WARP_COLS>(
        &args, sums, slice, first_row + warp_row, first_col + warp_col, [&](float sum, uint64_t row, uint64_t col) {
            if (!SCALED) sum *= kiln_w8a8_scale(&args.a_scales, row, 0) * kiln_w8a8_scale(&args.b_scales, col, 0);
            if (args.splits > 1)
                partials[row * (uint64_t)args.n + col] = sum;
            else
                w8a8_finish(&args, sum, row, col);
        });
}

template <class unit, uint32_t ROWS, uint32_t COLS, uint32_t WARP_ROWS, uint32_t WARP_COLS>
KILN_INLINE void w8a8_mma(const kiln_w8a8_args &args) {
    if (unit::TWO_LEVEL || args.grouped)
        w8a8_mma_tile<unit, true, ROWS, COLS, WARP_ROWS, WARP_COLS>(args);
    else if constexpr (!unit::TWO_LEVEL)
        w8a8_mma_tile<unit, false, ROWS, COLS, WARP_ROWS, WARP_COLS>(args);
}

#endif
