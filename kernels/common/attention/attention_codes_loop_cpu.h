/* The loop of attention on codes on the CPU, that mha_int8_x_fp8_fwd, mha_fp8_fwd and mha_nvfp4_fwd share, and its
 * definition; attention_codes_loop_gpu.h says what a block does.
 *
 * A tile of k is converted to f32 and multiplied with one row at a time, in vectors along a head; scales of keys are
 * factors of their scores. The tile of v then takes its place, and is multiplied with the weights of up to four rows at
 * a time. Codes of a whole tile that has one row may be multiplied as they become numbers, without the tile. Heads lie
 * side by side, so that pieces of a head lie far from each other: blocks that differ in the head of k and v alone are
 * computed together, a tile of each in turn, and what comes next is prefetched.
 *
 * Floor: one read of k and v at memory bandwidth when tokens are generated, 4 * rows * keys * head_dim operations for
 * prompts. Includers define, before it, ATTEND and JOIN, the entries' names, ATTEND_ARGS, the type of the former's
 * argument, and CODES_OF(args), the kiln_attention_codes_args in it; and, after it, the functions that are only
 * declared here; VALUES_UNIT is what the numbers of its tiles of v are multiples of. */
#ifndef KILN_KERNELS_COMMON_ATTENTION_ATTENTION_CODES_LOOP_CPU_H
#define KILN_KERNELS_COMMON_ATTENTION_ATTENTION_CODES_LOOP_CPU_H

#define PAGED 0
#include "kernels/common/attention/attention_codes.h"
#include "kernels/common/vec.h"

enum {
    KEYS = KILN_ATTENTION_KEYS,
    SIZE = KILN_ATTENTION_DIM, /* of a row in the tiles; a multiple of KILN_VEC */
    ROWS = KILN_ATTENTION_ROWS * KILN_ATTENTION_SUBGROUPS,
    HEADS = 8, /* of k and v whose blocks are computed together, at most */
    BLOCK = 4  /* rows whose results are added up at a time */
};

/* What a block holds of its rows; those beyond the last, up to whole BLOCKs, are zeros. */
typedef struct state {
    float queries[ROWS][SIZE], results[ROWS][SIZE];
    float (*tile)[SIZE]; /* KEYS of k, then of v; of all heads that are computed together */
    float weights[ROWS][KEYS];
    float key_scales[KEYS];         /* factors of the tile's scores */
    float origin[ROWS];             /* the multiple of ln 2 that weights are relative to; -inf before the first key */
    float sum[ROWS], rounded[ROWS]; /* of the weights, and of their codes */
    kiln_window windows[ROWS];
    uint32_t rows, padded; /* elements of a head, up to whole vectors */
} state;

/* Blocks that are computed together. */
typedef struct states {
    float tile[KEYS][SIZE];
    state heads[HEADS];
} states;
_Static_assert(sizeof(states) <= KILN_CPU_SCRATCH, "fits");

/* The token and the head of a row. */
typedef struct place {
    uint64_t token;
    uint32_t head;
} place;

KILN_INLINE place place_of(const kiln_attention_args *args, const kiln_sequence *s, uint32_t kv_head, uint32_t row) {
    return (place){s->q_first + row / args->group, kv_head * args->group + row % args->group};
}

/* ---- What the includer has ---- */

/* Loads a row's query, times its scales. */
KILN_INLINE void load_query(float *to, const ATTEND_ARGS *args, place at);

/* The products of all rows with KEYS keys from `key` on, in place of their weights, and the scales of these keys: loads
 * the tile, with zeros from work->key_end on and behind a head's last element, and calls score_tile. */
KILN_INLINE void score_keys(state *held, const ATTEND_ARGS *args, const kiln_sequence *s,
                            const kiln_attention_work *work, uint32_t key);

/* Adds these keys' values, times their weights, to the results of all rows: likewise, by add_tile. */
KILN_INLINE void add_values(state *held, const ATTEND_ARGS *args, const kiln_sequence *s,
                            const kiln_attention_work *work, uint32_t key);

/* Makes a tile's weights of a row what their codes are. */
KILN_INLINE void round_weights(float *weights);

/* ---- The loop ---- */

/* The products of a row with the tile's keys. */
KILN_INLINE void score_row(state *held, uint32_t r) {
    for (uint32_t first = 0; first < KEYS; first += KILN_VEC) {
        kiln_vec sums[KILN_VEC];
        KILN_UNROLL
        for (uint32_t i = 0; i < KILN_VEC; i++)
            sums[i] = KILN_VEC_ZERO();
        for (uint32_t d = 0; d < held->padded; d += KILN_VEC) {
            kiln_vec query = KILN_VEC_LOAD(held->queries[r] + d);
            KILN_UNROLL
            for (uint32_t i = 0; i < KILN_VEC; i++)
                sums[i] = KILN_VEC_FMA(query, KILN_VEC_LOAD(held->tile[first + i] + d), sums[i]);
        }
        KILN_VEC_STORE(&held->weights[r][first], kiln_vec_sums(sums));
    }
}

KILN_INLINE void score_tile(state *held) {
    for (uint32_t r = 0; r < held->rows; r++)
        score_row(held, r);
}

/* Turns a row's products into weights, as codes, and rescales its previous result to the new origin. */
KILN_INLINE void weigh(state *held, const kiln_attention_args *args, uint32_t r, uint32_t key) {
    float *weights = held->weights[r], sums[KEYS], rounded[KEYS];
    kiln_window window = held->windows[r];
    for (uint32_t i = 0; i < KEYS; i++) {
        bool seen = key + i >= window.begin && key + i < window.end;
        weights[i] = seen ? weights[i] * (args->scale * held->key_scales[i]) : -KILN_INFINITY;
        rounded[i] = kiln_max(weights[i], -KILN_INFINITY); /* which NaN becomes */
    }
    KILN_UNROLL
    for (uint32_t half = KEYS / 2; half; half /= 2) {
        for (uint32_t i = 0; i < half; i++)
            rounded[i] = kiln_max(rounded[i], rounded[i + half]);
    }
    float origin = kiln_max(kiln_weight_origin(rounded[0]), held->origin[r]);
    for (uint32_t i = 0; i < KEYS; i++) {
        float weight = kiln_exp(weights[i] - origin), seen = weights[i] == -KILN_INFINITY ? 0.0f : weight;
        sums[i] = weights[i] = seen;
    }
    round_weights(weights);
    memcpy(rounded, weights, sizeof rounded);
    KILN_UNROLL
    for (uint32_t half = KEYS / 2; half; half /= 2) {
        for (uint32_t i = 0; i < half; i++) {
            sums[i] += sums[i + half];
            rounded[i] += rounded[i + half];
        }
    }
    float keep = held->origin[r] == -KILN_INFINITY ? 0.0f : kiln_exp(held->origin[r] - origin);
    held->sum[r] = KILN_FMA(held->sum[r], keep, sums[0]);
    held->rounded[r] = KILN_FMA(held->rounded[r], keep, rounded[0]);
    held->origin[r] = origin;
    for (uint32_t d = 0; keep != 1.0f && d < held->padded; d++)
        held->results[r][d] *= keep;
}

/* Adds the tile's values, times their weights, to the results of count rows, a power of two of at most BLOCK: in BLOCK
 * sums, of which each row has some, since one would wait for itself. */
KILN_INLINE void add_tile_to(state *held, uint32_t first, uint32_t count) {
    const uint32_t parts = BLOCK / count;
    for (uint32_t d = 0; d < held->padded; d += KILN_VEC) {
        kiln_vec sums[BLOCK];
        KILN_UNROLL
        for (uint32_t i = 0; i < BLOCK; i++)
            sums[i] = i < count ? KILN_VEC_LOAD(held->results[first + i] + d) : KILN_VEC_ZERO();
        for (uint32_t k = 0; k < KEYS; k += parts) {
            KILN_UNROLL
            for (uint32_t i = 0; i < BLOCK; i++) {
                const uint32_t r = i % count, key = k + i / count;
                const kiln_vec weight = KILN_VEC_SET(held->weights[first + r][key]);
                sums[i] = KILN_VEC_FMA(weight, KILN_VEC_LOAD(held->tile[key] + d), sums[i]);
            }
        }
        KILN_UNROLL
        for (uint32_t half = BLOCK / 2; half >= count; half /= 2) {
            KILN_UNROLL
            for (uint32_t i = 0; i < half; i++)
                sums[i] = KILN_VEC_ADD(sums[i], sums[i + half]);
        }
        KILN_UNROLL
        for (uint32_t r = 0; r < count; r++)
            KILN_VEC_STORE(held->results[first + r] + d, sums[r]);
    }
}

KILN_INLINE void add_tile(state *held) {
    for (uint32_t first = 0; first < held->rows; first += BLOCK) {
        const uint32_t count = held->rows - first;
        if (count == 1)
            add_tile_to(held, first, 1);
        else if (count == 2)
            add_tile_to(held, first, 2);
        else
            add_tile_to(held, first, BLOCK);
    }
}

KILN_INLINE void begin_rows(state *held, const ATTEND_ARGS *args, const kiln_sequence *s,
                            const kiln_attention_work *work) {
    const kiln_attention_args *plain = &CODES_OF(args)->plain;
    for (uint32_t r = 0; r < (held->rows + BLOCK - 1) / BLOCK * BLOCK; r++) {
        held->origin[r] = -KILN_INFINITY;
        held->sum[r] = held->rounded[r] = 0.0f;
        held->windows[r] = (kiln_window){0, 0};
        memset(held->results[r], 0, held->padded * sizeof(float));
        memset(held->queries[r], 0, held->padded * sizeof(float));
        if (r >= held->rows) continue;
        place at = place_of(plain, s, work->kv_head, work->row + r);
        load_query(held->queries[r], args, at);
        held->windows[r] = kiln_window_of(plain, s, (work->row + r) / plain->group);
    }
}

/* Writes a head's elements. */
KILN_INLINE void write_row(const kiln_attention_args *args, place at, const float *result, kiln_cpu_dtype dtype) {
    uint64_t index = at.token * (uint64_t)args->out_stride + (uint64_t)at.head * args->head_dim;
    void *out = kiln_at_mut(args->out, index, dtype);
    if (dtype == KILN_CPU_f32)
        memcpy(out, result, args->head_dim * sizeof *result);
    else
        kiln_tile_write(out, result, args->head_dim, dtype, false);
}

KILN_INLINE void write_lse(const kiln_attention_args *args, place at, float origin, float sum) {
    if (args->lse)
        args->lse[at.head * (uint64_t)args->tokens + at.token] = sum == 0.0f ? -KILN_INFINITY : origin + kiln_log(sum);
}

/* The amount by which the row's scores exceed those of keys without their mean. */
KILN_INLINE float score_of_means(const state *held, const kiln_attention_codes_args *args, uint32_t r,
                                 uint64_t channels) {
    float sum = 0.0f;
    if (!args->k_means || !args->plain.lse) return 0.0f;
    for (uint32_t d = 0; d < args->plain.head_dim; d++)
        sum = KILN_FMA(held->queries[r][d], args->k_means[channels + d], sum);
    return sum * args->plain.scale;
}

/* Writes results, divided by the sum of their weights' codes, times v's scales, plus its means; where blocks share a
 * row's keys, each leaves its own, times that sum. */
KILN_INLINE void end_rows(state *held, const kiln_attention_codes_args *args, const kiln_sequence *s,
                          const kiln_attention_work *work, kiln_cpu_dtype dtype) {
    const kiln_attention_args *plain = &args->plain;
    const uint64_t channels = ((uint64_t)work->batch * plain->kv_heads + work->kv_head) * plain->head_dim;
    for (uint32_t r = 0; r < held->rows; r++) {
        place at = place_of(plain, s, work->kv_head, work->row + r);
        float *result = held->results[r], sum = held->sum[r];
        float factor = sum == 0.0f ? 0.0f : kiln_reciprocal(held->rounded[r]) * (1 / VALUES_UNIT);
        float present = sum == 0.0f ? 0.0f : 1.0f;
        float origin = held->origin[r] + score_of_means(held, args, r, channels);
        for (uint32_t d = 0; d < plain->head_dim; d++)
            result[d] = result[d] * factor * args->v_scales[channels + d];
        for (uint32_t d = 0; args->v_means && d < plain->head_dim; d++)
            result[d] = KILN_FMA(present, args->v_means[channels + d], result[d]);
        if (!plain->partials) {
            write_row(plain, at, result, dtype);
            write_lse(plain, at, origin, sum);
            continue;
        }
        uint64_t row = kiln_partial_row(plain, work->split, at.token, at.head);
        for (uint32_t d = 0; d < plain->head_dim; d++)
            plain->partials[row * plain->head_dim + d] = result[d] * held->rounded[r];
        kiln_partial_scales(plain)[2 * row] = origin;
        kiln_partial_scales(plain)[2 * row + 1] = held->rounded[r];
        kiln_partial_sums(plain)[row] = sum;
    }
}

/* How many blocks from index on differ in the head of k and v alone. */
KILN_INLINE uint32_t heads_together(const kiln_attention_args *args, const kiln_cpu_span *span, uint64_t index,
                                    uint32_t kv_head) {
    if (span->grid[0] != 1 || args->splits != 1) return 1;
    return (uint32_t)kiln_min(kiln_min(args->kv_heads - kv_head, span->end - index), HEADS);
}

/* Attends to KEYS keys from `key` on with the rows of a head. */
KILN_INLINE void attend_keys(state *held, const ATTEND_ARGS *args, const kiln_sequence *s,
                             const kiln_attention_work *work, uint32_t key) {
    score_keys(held, args, s, work, key);
    for (uint32_t r = 0; r < held->rows; r++)
        weigh(held, &CODES_OF(args)->plain, r, key);
    add_values(held, args, s, work, key);
}

KILN_OUTLINED void ATTEND(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const ATTEND_ARGS args = *(const ATTEND_ARGS *)arguments; /* a copy, which no store can change */
    const kiln_attention_codes_args *codes = CODES_OF(&args);
    const kiln_attention_args *plain = &codes->plain;
    states *all = span->scratch;
    uint32_t heads = 1;
    for (uint64_t index = span->begin; index < span->end; index += heads) {
        uint32_t tile = (uint32_t)(index % span->grid[0]), block = (uint32_t)(index / span->grid[0]);
        kiln_attention_work work = kiln_attention_work_of(plain, tile, block);
        if (work.batch >= plain->batch) break;
        kiln_sequence s = kiln_sequence_of(plain, work.batch);
        const uint32_t end = s.seqlen_q * plain->group, first = work.kv_head;
        heads = 1;
        if (work.row >= end) continue;
        const uint32_t rows = (uint32_t)kiln_min(end - work.row, plain->rows * KILN_ATTENTION_SUBGROUPS);
        heads = heads_together(plain, span, index, first);
        kiln_attention_trim(plain, &s, work.row + rows, &work);
        for (uint32_t head = 0; head < heads; head++) {
            state *held = &all->heads[head];
            held->tile = all->tile;
            held->rows = rows;
            held->padded = (plain->head_dim + KILN_VEC - 1) / KILN_VEC * KILN_VEC;
            work.kv_head = first + head;
            begin_rows(held, &args, &s, &work);
        }
        for (uint32_t key = work.key; key < work.key_end; key += KEYS)
            for (uint32_t head = 0; head < heads; head++) {
                work.kv_head = first + head;
                attend_keys(&all->heads[head], &args, &s, &work, key);
            }
        for (uint32_t head = 0; head < heads; head++) {
            work.kv_head = first + head;
            end_rows(&all->heads[head], codes, &s, &work, dtype);
        }
    }
}

KILN_CPU_KERNEL(ATTEND)

/* The rows of a token: KILN_ATTENTION_SUBGROUPS heads for each block. */
KILN_OUTLINED void JOIN(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_attention_args args = *(const kiln_attention_args *)arguments; /* a copy, which no store can change */
    const float *scales = kiln_partial_scales(&args);
    uint32_t heads = args.kv_heads * args.group;
    for (uint64_t index = span->begin; index < span->end; index++) {
        uint32_t first = (uint32_t)(index % span->grid[0]) * KILN_ATTENTION_SUBGROUPS;
        place at = {.token = index / span->grid[0]};
        if (at.token >= (uint64_t)args.tokens) break;
        if (!kiln_sequence_has(&args, (uint32_t)at.token)) continue; /* there are no partial results */
        for (at.head = first; at.head < kiln_min(first + KILN_ATTENTION_SUBGROUPS, heads); at.head++) {
            float max = -KILN_INFINITY, sum = 0.0f, rounded = 0.0f, result[SIZE] = {0};
            for (uint32_t split = 0; split < args.splits; split++)
                max = kiln_max(scales[2 * kiln_partial_row(&args, split, at.token, at.head)], max);
            float origin = max == -KILN_INFINITY ? 0.0f : max;
            for (uint32_t split = 0; split < args.splits; split++) {
                uint64_t row = kiln_partial_row(&args, split, at.token, at.head);
                float keep = kiln_exp(scales[2 * row] - origin);
                rounded = KILN_FMA(scales[2 * row + 1], keep, rounded);
                sum = KILN_FMA(kiln_partial_sums(&args)[row], keep, sum);
                for (uint32_t d = 0; d < args.head_dim; d++)
                    result[d] = KILN_FMA(args.partials[row * args.head_dim + d], keep, result[d]);
            }
            float factor = sum == 0.0f ? 0.0f : kiln_reciprocal(rounded);
            for (uint32_t d = 0; d < args.head_dim; d++)
                result[d] *= factor;
            write_row(&args, at, result, dtype);
            write_lse(&args, at, origin, sum);
        }
    }
}
KILN_CPU_KERNEL(JOIN)

#endif
