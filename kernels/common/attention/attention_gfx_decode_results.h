/* The rows of attention_gfx_decode.h, and what becomes of their results: a block's waves add up theirs in shared
 * memory. Includers define what attention_gfx_decode.h asks for. */
#ifndef KILN_KERNELS_COMMON_ATTENTION_ATTENTION_GFX_DECODE_RESULTS_H
#define KILN_KERNELS_COMMON_ATTENTION_ATTENTION_GFX_DECODE_RESULTS_H

#include "kernels/common/attention/attention_gfx_decode_tiles.h"

/* What a lane has of one of the block's rows. */
struct decode_row {
    uint32_t token, head, query;
    kiln_window window;            /* of rows that do not exist: the last one's */
    float max, sum;                /* of scores as exponents of 2; the sum is of this lane's keys */
    few::sums result[KILN_VECTOR]; /* products, each of every eighth element */
};

KILN_INLINE decode_row start_decode_row(const kiln_attention_args &args, const decode_work &d) {
    decode_row r = {};
    row_place at = row_place_of(args, d, row_of_lane() < d.rows ? row_of_lane() : d.rows - 1);
    r.token = at.token;
    r.head = at.head;
    r.query = at.query;
    r.window = kiln_window_of(&args, &d.s, at.query);
    uint32_t last = d.work.key_end > r.window.begin ? d.work.key_end : r.window.begin;
    r.window.end = r.window.end < last ? r.window.end : last;
    r.max = -KILN_INFINITY;
    return r;
}

/* What the waves of a block share at the end, where queries have been: four of each eight elements of their rows'
 * results. */
struct decode_shared {
    float maxima[DECODE_WAVES][DECODE_ROWS], sums[DECODE_WAVES][DECODE_ROWS];
    quad results[DECODE_WAVES][DECODE_ROWS][DECODE_ROWS];
};

/* A row's maximum and sum, of all waves that have a part of its result, and four elements of that. */
struct joined {
    float max, sum;
    quad result;
};

template <uint32_t PARTS>
KILN_INLINE joined join_waves(const decode_shared &shared, uint32_t part, uint32_t row, uint32_t vector) {
    joined all = {-KILN_INFINITY, 0.0f, {}};
    KILN_UNROLL
    for (uint32_t w = part; w < part + DECODE_WAVES; w += PARTS)
        all.max = __builtin_fmaxf(all.max, shared.maxima[w][row]);
    float origin = all.max == -KILN_INFINITY ? 0.0f : all.max;
    KILN_UNROLL
    for (uint32_t w = part; w < part + DECODE_WAVES; w += PARTS) {
        float keep = kiln_fast_exp2(shared.maxima[w][row] - origin);
        quad share = shared.results[w][row][vector ^ row % 8];
        all.sum = KILN_FMA(shared.sums[w][row], keep, all.sum);
        KILN_UNROLL
        for (uint32_t j = 0; j < 4; j++)
            all.result.values[j] = KILN_FMA(share.values[j], keep, all.result.values[j]);
    }
    return all;
}

/* Writes four elements of a row's result, or of a block's share of it. */
KILN_INLINE void write_quad(const kiln_attention_args *args, const decode_work &d, uint32_t row, uint32_t first,
                            const joined &all) {
    row_place at = row_place_of(*args, d, row);
    uint64_t place = kiln_partial_row(args, d.work.split, at.token, at.head);
    float v_scale = kiln_cache_scale(args, args->v_scale, d.work.kv_head);
    float max = (all.max - (float)unit::WEIGHT_LOG2) * 0x1.62e430p-1f; /* of natural exponents */
    float scale = args->partials ? v_scale : all.sum == 0.0f ? 0.0f : v_scale * kiln_reciprocal(all.sum);
    quad values;
    KILN_UNROLL
    for (uint32_t j = 0; j < 4; j++)
        values.values[j] = all.result.values[j] * scale;
    if (args->partials) {
        *(quad *)(KILN_GLOBAL(float, args->partials) + place * args->head_dim + first) = values;
        if (first) return;
        kiln_partial_scales(args)[2 * place] = max;
        kiln_partial_scales(args)[2 * place + 1] = all.sum;
        return;
    }
    typedef struct pairs {
        uint32_t words[2];
    } __attribute__((aligned(8))) pairs;
    kiln_element *out = (kiln_element *)args->out + at.token * (uint64_t)args->out_stride + at.head * args->head_dim;
    pairs elements;
    KILN_UNROLL
    for (uint32_t w = 0; w < 2; w++)
        elements.words[w] = kiln_element_from_f32(values.values[2 * w]) |
                            (uint32_t)kiln_element_from_f32(values.values[2 * w + 1]) << 16;
    *(pairs *)(out + first) = elements;
    if (first || !args->lse) return;
    args->lse[at.head * (uint64_t)args->tokens + at.token] = all.sum == 0.0f ? -KILN_INFINITY : max + kiln_log(all.sum);
}

/* Adds up the waves' results, and writes them. Those of the next four products then take the place of the first. */
template <uint32_t PARTS>
KILN_INLINE void write_rows(const kiln_attention_args *args, const decode_work &d, decode_row *r,
                            decode_shared *shared) {
    uint32_t wave = wave_number(), vector = kiln_thread() % DECODE_ROWS;
    float sum = across_groups(r->sum, [](float a, float b) { return a + b; });
    kiln_gfx_shared_barrier(); /* the queries have been read */
    shared->maxima[wave][row_of_lane()] = r->max;
    shared->sums[wave][row_of_lane()] = sum;
    KILN_LOOP
    for (uint32_t first_product = 0; first_product < KILN_VECTOR; first_product += 4) {
        KILN_UNROLL
        for (uint32_t i = 0; i < few::ELEMENTS; i++)
            shared->results[wave][row_of_lane()][few::vector_of(i) ^ row_of_lane() % 8] = {
                {r->result[0][i], r->result[1][i], r->result[2][i], r->result[3][i]}};
        KILN_UNROLL
        for (uint32_t n = 4; n < KILN_VECTOR; n++)
            r->result[n - 4] = r->result[n];
        kiln_gfx_shared_barrier();
        KILN_LOOP
        for (uint32_t i = kiln_thread() / DECODE_ROWS; i < d.rows * PARTS; i += DECODE_THREADS / DECODE_ROWS) {
            uint32_t row = i / PARTS, part = i % PARTS;
            uint32_t first = part * DECODE_DIM + vector * KILN_VECTOR + first_product;
            if (first < args->head_dim) write_quad(args, d, row, first, join_waves<PARTS>(*shared, part, row, vector));
        }
        kiln_gfx_shared_barrier();
    }
}

#endif
