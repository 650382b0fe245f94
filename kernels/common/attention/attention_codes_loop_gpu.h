/* The loop of attention on codes, and its kernels: the device source that mha_int8_x_fp8_fwd, mha_fp8_fwd and
 * mha_nvfp4_fwd share.
 *
 *     out = softmax(mask(scale * (q q_scale) (k k_scale)^T)) v * v_scale + v_mean
 *
 * as SageAttention does it (Zhang et al., arXiv 2410.02367 and 2411.10958), with weights rounded to codes
 * (attention_codes.h, attention_nvfp4.h) and all sums in f32. Blocks, tiles and their division are those of
 * attention_gpu.h: a block does 8, 16 or 32 rows of heads that share one head of k and v, over tiles of 32 keys, which
 * go into shared memory as f32, k with its scales; blocks share the keys of few rows, and a second launch joins what
 * they have.
 *
 * Floor: one read of k and v at memory bandwidth when tokens are generated, 4 * rows * keys * head_dim operations for
 * prompts. Not measured. Includers define, before, ATTEND and JOIN, the entries' names, ATTEND_ARGS, the type of the
 * former's argument, and CODES_OF(args), the kiln_attention_codes_args in it; and, behind, the functions that are only
 * declared here. */
#ifndef KILN_KERNELS_COMMON_ATTENTION_ATTENTION_CODES_LOOP_GPU_H
#define KILN_KERNELS_COMMON_ATTENTION_ATTENTION_CODES_LOOP_GPU_H

#define PAGED 0
#include "kernels/common/device.h"

#include "kernels/common/attention/attention_codes.h"
#include "kernels/common/formats/small_float_gpu.h"
#include "kernels/common/global.h"

enum {
    KEYS = KILN_ATTENTION_KEYS,
    SUBGROUPS = KILN_ATTENTION_SUBGROUPS,
    ROWS = KILN_ATTENTION_ROWS,
    SLICES = KILN_ATTENTION_DIM / KILN_SUBGROUP, /* elements of a head that a thread adds up */
    LOADERS = KILN_BLOCK / KEYS,                 /* threads that load a key */
    CODES = 16                                   /* of a vector */
};

typedef struct quad {
    float values[4];
} __attribute__((aligned(16))) quad;

/* A subgroup's row. */
typedef struct row {
    kiln_window window;
    float origin;       /* the multiple of ln 2 that weights are taken from; -inf before the first key */
    float sum, rounded; /* of weights, and of them as codes */
    float result[SLICES];
} row;

/* The arguments, where a kernel reads what it does not need at once. AMD's compiler loads all that it will ever need of
 * them at the start, for which waves of 64 have too few registers: there they are copied to shared memory. */
#if defined(__HIP__)
#define KILN_ARGS_AT_HAND(name, args)    \
    KILN_SHARED ATTEND_ARGS kept;        \
    const ATTEND_ARGS *name = &kept;     \
    if (kiln_thread() == 0) kept = args; \
    kiln_barrier()
#else
#define KILN_ARGS_AT_HAND(name, args) const ATTEND_ARGS *name = &args
#endif

/* Whether a subgroup has a row, and whether a head has a slice: as in attention_gpu.h. */
KILN_INLINE bool has_row(const kiln_attention_args *args, uint32_t r) {
    return r == 0 || args->rows > (r == 1 ? 1u : 2u);
}
KILN_INLINE bool has_slice(const kiln_attention_args *args, uint32_t i) {
    return i < 2 || args->head_dim > (i < 4 ? 2u : 4u) * KILN_SUBGROUP;
}

KILN_INLINE float reduce(float value, bool sums) {
    KILN_UNROLL
    for (uint32_t mask = 1; mask < KILN_SUBGROUP; mask *= 2) {
        float other = kiln_shuffle_xor(value, mask);
        value = sums ? value + other : kiln_max(value, other);
    }
    return value;
}

/* ---- What the includer has ---- */

/* Puts a tile of keys, or of their values, into shared memory as f32, zeros behind the last key and behind a head's
 * last element. */
KILN_INLINE void load_tile(const ATTEND_ARGS *args, const kiln_sequence *s, const kiln_attention_work *work,
                           float *tile, uint32_t stride, bool values, uint32_t key);

/* Puts the block's queries into shared memory as f32, with their scales: zeros beyond the last, and behind a head's
 * last element. */
KILN_INLINE void load_queries(const ATTEND_ARGS *args, const kiln_sequence *s, const kiln_attention_work *work,
                              float *queries, uint32_t stride, uint32_t end);

/* The weight of the thread's key as its code has it. All threads of the subgroup come here. */
KILN_INLINE float weight_rounded(float weight);

/* ---- The loop ---- */

/* The weights of the subgroup's rows for the thread's key as codes, in shared memory, 0 where it is not seen; the rows'
 * maxima and sums with them; what is left of the old results is scaled to the new origins. */
KILN_INLINE void score_tile(const kiln_attention_args *args, row *rows, const float *queries, const float *tile,
                            float *weights, uint32_t stride, uint32_t key) {
    uint32_t subgroup = kiln_thread() / KILN_SUBGROUP, lane = kiln_thread() % KILN_SUBGROUP;
    float dots[ROWS] = {0.0f};
    KILN_LOOP
    for (uint32_t d = 0; d < args->head_dim; d += 4) {
        quad right = *(const quad *)(tile + lane * stride + d);
        KILN_UNROLL
        for (uint32_t r = 0; r < ROWS; r++) {
            if (!has_row(args, r)) continue;
            quad left = *(const quad *)(queries + (subgroup + r * SUBGROUPS) * stride + d);
            KILN_UNROLL
            for (uint32_t i = 0; i < 4; i++)
                dots[r] = KILN_FMA(left.values[i], right.values[i], dots[r]);
        }
    }
    KILN_UNROLL
    for (uint32_t r = 0; r < ROWS; r++) {
        if (!has_row(args, r)) continue;
        bool seen = key + lane >= rows[r].window.begin && key + lane < rows[r].window.end;
        float score = seen ? dots[r] * args->scale : -KILN_INFINITY;
        float origin = kiln_max(kiln_weight_origin(reduce(score, false)), rows[r].origin);
        float weight = seen ? kiln_exp(score - origin) : 0.0f, rounded = weight_rounded(weight);
        float keep = rows[r].origin == -KILN_INFINITY ? 0.0f : kiln_exp(rows[r].origin - origin);
        rows[r].sum = KILN_FMA(rows[r].sum, keep, reduce(weight, true));
        rows[r].rounded = KILN_FMA(rows[r].rounded, keep, reduce(rounded, true));
        rows[r].origin = origin;
        KILN_UNROLL
        for (uint32_t i = 0; i < SLICES; i++)
            rows[r].result[i] *= keep;
        weights[(subgroup + r * SUBGROUPS) * KEYS + lane] = rounded;
    }
}

/* Adds the tile's values, each with its weight, to the results. */
KILN_INLINE void add_tile(const kiln_attention_args *args, row *rows, const float *tile, const float *weights,
                          uint32_t stride) {
    uint32_t subgroup = kiln_thread() / KILN_SUBGROUP, lane = kiln_thread() % KILN_SUBGROUP;
    KILN_LOOP
    for (uint32_t key = 0; key < KEYS; key++) {
        float weight[ROWS];
        KILN_UNROLL
        for (uint32_t r = 0; r < ROWS; r++)
            weight[r] = has_row(args, r) ? weights[(subgroup + r * SUBGROUPS) * KEYS + key] : 0.0f;
        KILN_UNROLL
        for (uint32_t i = 0; i < SLICES; i++) {
            uint32_t d = i * KILN_SUBGROUP + lane;
            if (!has_slice(args, i)) continue;
            float value = tile[key * stride + d];
            KILN_UNROLL
            for (uint32_t r = 0; r < ROWS; r++)
                rows[r].result[i] = KILN_FMA(weight[r], value, rows[r].result[i]);
        }
    }
}

/* By how much a row's scores are greater than those of keys less their mean. All threads of the subgroup come here. */
KILN_INLINE float score_of_means(const kiln_attention_codes_args *args, uint64_t channels, const float *query) {
    float sum = 0.0f;
    if (!args->k_means || !args->plain.lse) return 0.0f;
    KILN_LOOP
    for (uint32_t d = kiln_thread() % KILN_SUBGROUP; d < args->plain.head_dim; d += KILN_SUBGROUP)
        sum = KILN_FMA(query[d], KILN_GLOBAL(const float, args->k_means)[channels + d], sum);
    return reduce(sum, true) * args->plain.scale;
}

/* What a subgroup leaves of a row in shared memory for write_row, where its weights were. */
enum { LEFT_ORIGIN, LEFT_SUM, LEFT_ROUNDED };

KILN_INLINE void leave_row(const kiln_attention_args *args, const row *r, float of_means, float *result, float *left) {
    uint32_t lane = kiln_thread() % KILN_SUBGROUP;
    KILN_UNROLL
    for (uint32_t i = 0; i < SLICES; i++)
        if (i * KILN_SUBGROUP + lane < args->head_dim) result[i * KILN_SUBGROUP + lane] = r->result[i];
    if (lane) return;
    left[LEFT_ORIGIN] = r->origin + of_means;
    left[LEFT_SUM] = r->sum;
    left[LEFT_ROUNDED] = r->rounded;
}

/* Writes a row's result, divided by the sum of its weights' codes, with v's scales and means; or where blocks share its
 * keys, the same times that sum. */
KILN_INLINE void write_row(const kiln_attention_codes_args *args, const kiln_sequence *s,
                           const kiln_attention_work *work, const float *result, const float *left, uint32_t number) {
    const kiln_attention_args *plain = &args->plain;
    uint32_t lane = kiln_thread() % KILN_SUBGROUP, size = plain->head_dim;
    uint32_t head = work->kv_head * plain->group + number % plain->group;
    uint64_t token = s->q_first + number / plain->group;
    uint64_t channels = ((uint64_t)work->batch * plain->kv_heads + work->kv_head) * size;
    uint64_t place = kiln_partial_row(plain, work->split, token, head);
    kiln_element *out = KILN_GLOBAL(kiln_element, plain->out) + token * (uint64_t)plain->out_stride + head * size;
    float sum = left[LEFT_SUM], origin = left[LEFT_ORIGIN];
    float scale = sum == 0.0f ? 0.0f : kiln_reciprocal(left[LEFT_ROUNDED]);
    KILN_LOOP
    for (uint32_t d = lane; d < size; d += KILN_SUBGROUP) {
        float value = result[d] * scale * KILN_GLOBAL(const float, args->v_scales)[channels + d];
        if (args->v_means && sum != 0.0f) value += KILN_GLOBAL(const float, args->v_means)[channels + d];
        if (plain->partials)
            KILN_GLOBAL(float, plain->partials)[place * size + d] = value * left[LEFT_ROUNDED];
        else
            out[d] = kiln_element_from_f32(value);
    }
    if (lane) return;
    if (plain->partials) {
        KILN_GLOBAL(float, kiln_partial_scales(plain))[2 * place] = origin;
        KILN_GLOBAL(float, kiln_partial_scales(plain))[2 * place + 1] = left[LEFT_ROUNDED];
        KILN_GLOBAL(float, kiln_partial_sums(plain))[place] = sum;
    } else if (plain->lse) {
        KILN_GLOBAL(float, plain->lse)
        [head * (uint64_t)plain->tokens + token] = sum == 0.0f ? -KILN_INFINITY : origin + kiln_log(sum);
    }
}

KILN_ENTRY(ATTEND, ATTEND_ARGS) {
    KILN_DYNAMIC_SHARED(float, shared);
    KILN_ARGS_AT_HAND(at_hand, args);
    const kiln_attention_codes_args *codes = CODES_OF(at_hand);
    const kiln_attention_args *plain = &CODES_OF(&args)->plain;
    uint32_t subgroup = kiln_thread() / KILN_SUBGROUP;
    uint32_t stride = KILN_ATTENTION_STRIDE(plain->head_dim), count = plain->rows * SUBGROUPS;
    float *tile = shared, *queries = tile + KEYS * stride, *weights = queries + count * stride;
    kiln_attention_work work = kiln_attention_work_of(plain, kiln_tile(), (uint32_t)kiln_block());
    if (work.batch >= plain->batch) return; /* the whole block */
    kiln_sequence s = kiln_sequence_of(plain, work.batch);
    uint32_t end = s.seqlen_q * plain->group; /* of the rows */
    if (work.row >= end) return;              /* the whole block */
    kiln_attention_trim(plain, &s, work.row + count < end ? work.row + count : end, &work);

    load_queries(at_hand, &s, &work, queries, stride, end);
    row rows[ROWS];
    KILN_UNROLL
    for (uint32_t r = 0; r < ROWS; r++) {
        if (!has_row(plain, r)) continue;
        uint32_t number = work.row + subgroup + r * SUBGROUPS;
        rows[r].window = kiln_window_of(plain, &s, number < end ? number / plain->group : 0);
        rows[r].origin = -KILN_INFINITY;
        rows[r].sum = rows[r].rounded = 0.0f;
        KILN_UNROLL
        for (uint32_t i = 0; i < SLICES; i++)
            rows[r].result[i] = 0.0f;
    }

    KILN_LOOP
    for (uint32_t key = work.key; key < work.key_end; key += KEYS) {
        load_tile(at_hand, &s, &work, tile, stride, false, key);
        kiln_barrier();
        score_tile(plain, rows, queries, tile, weights, stride, key);
        kiln_barrier();
        load_tile(at_hand, &s, &work, tile, stride, true, key);
        kiln_barrier();
        add_tile(plain, rows, tile, weights, stride);
        kiln_barrier();
    }

    uint64_t channels = ((uint64_t)work.batch * plain->kv_heads + work.kv_head) * plain->head_dim;
    KILN_UNROLL
    for (uint32_t r = 0; r < ROWS; r++) {
        if (!has_row(plain, r)) continue;
        float *query = queries + (subgroup + r * SUBGROUPS) * stride;
        leave_row(&codes->plain, &rows[r], score_of_means(codes, channels, query), query,
                  weights + (subgroup + r * SUBGROUPS) * KEYS);
    }
    kiln_barrier();
    KILN_LOOP
    for (uint32_t r = subgroup; r < count && work.row + r < end; r += SUBGROUPS)
        write_row(codes, &s, &work, queries + r * stride, weights + r * KEYS, work.row + r);
}

/* A subgroup joins the shares of one row. */
KILN_ENTRY(JOIN, kiln_attention_args) {
    uint32_t lane = kiln_thread() % KILN_SUBGROUP, heads = args.kv_heads * args.group, size = args.head_dim;
    uint32_t head = kiln_tile() * SUBGROUPS + kiln_thread() / KILN_SUBGROUP;
    uint64_t token = kiln_block();
    if (head >= heads || token >= (uint64_t)args.tokens) return;
    if (!kiln_sequence_has(&args, (uint32_t)token)) return; /* nothing was written */
    const float *scales = kiln_partial_scales(&args);
    float max = -KILN_INFINITY, sum = 0.0f, rounded = 0.0f;
    KILN_LOOP
    for (uint32_t split = 0; split < args.splits; split++)
        max = kiln_max(scales[2 * kiln_partial_row(&args, split, token, head)], max);
    float origin = max == -KILN_INFINITY ? 0.0f : max;
    KILN_LOOP
    for (uint32_t split = 0; split < args.splits; split++) {
        uint64_t place = kiln_partial_row(&args, split, token, head);
        float keep = kiln_exp(scales[2 * place] - origin);
        rounded = KILN_FMA(scales[2 * place + 1], keep, rounded);
        sum = KILN_FMA(kiln_partial_sums(&args)[place], keep, sum);
    }
    float scale = sum == 0.0f ? 0.0f : kiln_reciprocal(rounded);
    kiln_element *out = (kiln_element *)args.out + token * (uint64_t)args.out_stride + head * size;
    KILN_LOOP
    for (uint32_t d = lane; d < size; d += KILN_SUBGROUP) {
        float result = 0.0f;
        KILN_LOOP
        for (uint32_t split = 0; split < args.splits; split++) {
            uint64_t place = kiln_partial_row(&args, split, token, head);
            result = KILN_FMA(args.partials[place * size + d], kiln_exp(scales[2 * place] - origin), result);
        }
        out[d] = kiln_element_from_f32(result * scale);
    }
    if (lane == 0 && args.lse)
        args.lse[head * (uint64_t)args.tokens + token] = sum == 0.0f ? -KILN_INFINITY : origin + kiln_log(sum);
}

#endif
