/* Attention: the device source of mha and mha_paged, which differ in where a key lies and in nothing else.
 *
 *     out = softmax(mask(scale * q k^T)) v
 *
 * in one pass over the keys with a running maximum and sum (Milakov and Gimelshein, arXiv 1805.02867; Dao et al., arXiv
 * 2205.14135), so that the matrix of scores is never in memory. In f32, with one rounding.
 *
 * A block does 8, 16 or 32 rows: queries of the heads that share one head of k and v, so that grouped heads read it
 * once. It takes the keys in tiles of 32. A tile of k is put into shared memory as f32; each of the eight subgroups
 * makes the scores of its 1, 2 or 4 rows, a key for each thread, and their maximum and sum by shuffles; then the tile
 * of v takes the place of k, and a thread adds up every 32nd element of its rows' results. Rows of shared memory are
 * filled up with zeros to a multiple of 32 floats and 4 more, whereby threads that read vectors of different keys meet
 * no bank twice.
 *
 * Where there are few rows, as when tokens are generated one by one, blocks share a sequence's keys: each leaves its
 * result with its maximum and sum in the workspace, and a second launch, of a block for each row, joins them.
 *
 * Codes of a cache of E4M3 become f32, times their scale, on their way into shared memory. Masks of trees are there
 * too, a word for each row and tile, and where each row begins in a mask that is added, which is read where it lies. A
 * wave of 64 has hardly a register left for what all its threads have in common.
 *
 * Floor: one read of k and v at memory bandwidth when tokens are generated, 4 * rows * keys * head_dim operations for
 * prompts. Includers define ATTEND and JOIN, the entries' names, and whether keys are PAGED.
 * Test: build/tests/ops/mha_test. Bench: build/kiln bench mha */
#include "kernels/common/device.h"

#include "kernels/common/attention/sequence.h"
#include "kernels/common/formats/small_float_gpu.h"
#include "kernels/common/late_args.h"
#if defined(__CUDACC__) && __CUDA_ARCH__ >= 1000 /* whose texts are of a version that has it */
#include "kernels/arch/sm89.h"
#endif

enum {
    KEYS = KILN_ATTENTION_KEYS,
    SUBGROUPS = KILN_ATTENTION_SUBGROUPS,
    ROWS = KILN_ATTENTION_ROWS,
    SLICES = KILN_ATTENTION_DIM / KILN_SUBGROUP, /* elements of a head that a thread adds up */
    LOADERS = KILN_BLOCK / KEYS                  /* threads that load a key */
};

typedef struct quad {
    float values[4];
} __attribute__((aligned(16))) quad;

/* A subgroup's row. */
typedef struct row {
    kiln_window window;
    float max, sum;
    float result[SLICES];
} row;

/* Whether a subgroup has a row, and whether a head has a slice. Few conditions, since each that is uniform takes two
 * registers of a wave of 64: rows are 1, 2 or 4, and slices 2, 4 or 8. Slices beyond a head's end add up numbers that
 * are there, of the next row, and are not written. */
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

/* The numbers of 4 codes of E4M3, times a scale. */
KILN_INLINE quad numbers_of(uint32_t codes, float scale) {
    quad numbers;
#if defined(__CUDACC__) && __CUDA_ARCH__ >= 1000
    kiln_sm89_cvt_f32_e4m3x4(numbers.values, codes);
#else
    KILN_UNROLL
    for (uint32_t i = 0; i < 4; i++)
        numbers.values[i] = kiln_e4m3_number(codes >> 8 * i);
#endif
    KILN_UNROLL
    for (uint32_t i = 0; i < 4; i++)
        numbers.values[i] *= scale;
    return numbers;
}

/* Puts a key of `size` elements, by LOADERS threads, into its row of shared memory as f32, zeros behind its last. */
KILN_INLINE void load_row(const kiln_attention_args *args, float *to, const kiln_element *from, uint32_t size,
                          uint32_t stride) {
    uint32_t lane = kiln_thread() % LOADERS, whole = args->wide ? size / KILN_VECTOR * KILN_VECTOR : 0;
    KILN_LOOP
    for (uint32_t d = lane * KILN_VECTOR; d < whole; d += LOADERS * KILN_VECTOR) {
        kiln_vector vector = kiln_vector_load(from + d);
        KILN_UNROLL
        for (uint32_t q = 0; q < KILN_QUADS; q++) {
            quad out;
            kiln_quad_take(&vector, out.values);
            *(quad *)(to + d + 4 * q) = out;
        }
    }
    KILN_LOOP
    for (uint32_t d = whole + lane; d < stride; d += LOADERS)
        to[d] = d < size ? kiln_element_to_f32(from[d]) : 0.0f;
}

/* The same of a key's codes. */
KILN_INLINE void load_codes(const kiln_attention_args *args, float *to, const uint8_t *codes, float scale,
                            uint32_t size, uint32_t stride) {
    uint32_t lane = kiln_thread() % LOADERS, whole = args->wide ? size / KILN_VECTOR_BYTES * KILN_VECTOR_BYTES : 0;
    KILN_LOOP
    for (uint32_t d = lane * KILN_VECTOR_BYTES; d < whole; d += LOADERS * KILN_VECTOR_BYTES) {
        kiln_vector vector = *(const kiln_vector *)(codes + d);
        KILN_LOOP
        for (uint32_t q = 0; q < KILN_VECTOR_BYTES / 4; q++) {
            *(quad *)(to + d + 4 * q) = numbers_of(vector.words[0], scale);
            KILN_UNROLL
            for (uint32_t i = 0; i < 3; i++)
                vector.words[i] = vector.words[i + 1];
        }
    }
    KILN_LOOP
    for (uint32_t d = whole + lane; d < stride; d += LOADERS)
        to[d] = d < size ? kiln_e4m3_number(codes[d]) * scale : 0.0f;
}

/* Puts a tile of keys, or of values, into shared memory as f32, zeros behind the last and behind a head's last element.
 */
KILN_INLINE void load_tile(const kiln_attention_args *args, const kiln_sequence *s, float *tile, uint32_t stride,
                           bool values, uint32_t kv_head, uint32_t key, uint32_t end) {
    uint32_t number = kiln_thread() / LOADERS, last = end - 1 - key, size = number <= last ? args->head_dim : 0;
    const void *tensor = values ? args->v : args->k;
    uint64_t first = kiln_key_row(args, s, key + (number <= last ? number : last));
    float *to = tile + number * stride;
    first = first * (uint64_t)(values ? args->v_stride : args->k_stride) + kv_head * args->head_dim;
    if (PAGED && args->codes)
        load_codes(args, to, (const uint8_t *)tensor + first,
                   kiln_cache_scale(args, values ? args->v_scale : args->k_scale, kv_head), size, stride);
    else
        load_row(args, to, (const kiln_element *)tensor + first, size, stride);
}

/* The scores of the subgroup's rows with the thread's key, -inf where it is not seen; the rows' maxima and sums with
 * them; what is left of the old results is scaled to the new maxima. Leaves the weights in shared memory. */
KILN_INLINE void score_tile(const kiln_attention_args *args, row *rows, const float *queries, const float *tile,
                            const uint32_t *masks, float *weights, uint32_t stride, uint32_t key) {
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
        if (PAGED) seen = seen && (masks[subgroup + r * SUBGROUPS] >> lane & 1u);
        float score = seen ? kiln_score(args, dots[r]) : -KILN_INFINITY;
        if (!PAGED && args->mask && seen) {
            uint64_t row = ((const uint64_t *)masks)[subgroup + r * SUBGROUPS];
            float added = kiln_element_to_f32(((const kiln_element *)args->mask)[row + key + lane]);
            seen = added != -KILN_INFINITY;
            score = seen ? score + added : -KILN_INFINITY;
        }
        float max = kiln_max(reduce(score, false), rows[r].max);
        float origin = max == -KILN_INFINITY ? 0.0f : max;
        float weight = seen ? kiln_exp(score - origin) : 0.0f;
        float keep = rows[r].max == -KILN_INFINITY ? 0.0f : kiln_exp(rows[r].max - origin);
        rows[r].sum = KILN_FMA(rows[r].sum, keep, reduce(weight, true));
        rows[r].max = max;
        KILN_UNROLL
        for (uint32_t i = 0; i < SLICES; i++)
            rows[r].result[i] *= keep;
        weights[(subgroup + r * SUBGROUPS) * KEYS + lane] = weight;
    }
}

/* Puts into shared memory which of the tile's keys each of `count` rows sees by its tree mask, a bit each, a thread for
 * each row; behind these are the rows' tokens. */
KILN_INLINE void put_masks(const kiln_attention_args *args, const kiln_sequence *s, uint32_t *masks, uint32_t count,
                           uint32_t key) {
    uint32_t row = kiln_thread();
    if (args->tree_mask && row < count)
        masks[row] = kiln_tree_bits(args, kiln_tree_begin(args, s), masks[count + row], key);
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

/* Writes a row's result, or its share of it. */
KILN_INLINE void write_row(const kiln_attention_args *args, const row *r, uint32_t split, uint64_t token,
                           uint32_t head) {
    uint32_t lane = kiln_thread() % KILN_SUBGROUP, size = args->head_dim;
    uint64_t place = kiln_partial_row(args, split, token, head);
    kiln_element *out = (kiln_element *)args->out + token * (uint64_t)args->out_stride + head * size;
    float scale = r->sum == 0.0f ? 0.0f : kiln_reciprocal(r->sum);
    KILN_UNROLL
    for (uint32_t i = 0; i < SLICES; i++) {
        uint32_t d = i * KILN_SUBGROUP + lane;
        if (d >= size) continue;
        if (args->partials)
            args->partials[place * size + d] = r->result[i];
        else
            out[d] = kiln_element_from_f32(r->result[i] * scale);
    }
    if (lane) return;
    if (args->partials) {
        kiln_partial_scales(args)[2 * place] = r->max;
        kiln_partial_scales(args)[2 * place + 1] = r->sum;
    } else if (args->lse) {
        float lse = r->sum == 0.0f ? -KILN_INFINITY : r->max + kiln_log(r->sum);
        args->lse[head * (uint64_t)args->tokens + token] = lse;
    }
}

KILN_ENTRY(ATTEND, kiln_attention_args) {
    KILN_DYNAMIC_SHARED(float, shared);
    uint32_t subgroup = kiln_thread() / KILN_SUBGROUP, lane = kiln_thread() % KILN_SUBGROUP;
    uint32_t stride = KILN_ATTENTION_STRIDE(args.head_dim), count = args.rows * SUBGROUPS;
    float *tile = shared, *queries = tile + KEYS * stride, *weights = queries + count * stride;
    uint32_t *masks = (uint32_t *)(weights + count * KEYS); /* and tokens, of rows; or their kiln_mask_row() */
    kiln_attention_work work = kiln_attention_work_of(&args, kiln_tile(), (uint32_t)kiln_block());
    if (work.batch >= args.batch) return; /* the whole block */
    kiln_sequence s = kiln_sequence_of(&args, work.batch);
    uint32_t end = s.seqlen_q * args.group; /* of the rows */
    if (work.row >= end) return;            /* the whole block */
    kiln_attention_trim(&args, &s, work.row + count < end ? work.row + count : end, &work);

    /* Rows beyond the last take part with queries of zeros. */
    row rows[ROWS];
    KILN_UNROLL
    for (uint32_t r = 0; r < ROWS; r++) {
        if (!has_row(&args, r)) continue;
        uint32_t number = work.row + subgroup + r * SUBGROUPS, query = number / args.group;
        uint32_t head = work.kv_head * args.group + number % args.group;
        const kiln_element *q = (const kiln_element *)args.q + (s.q_first + query) * (uint64_t)args.q_stride;
        KILN_LOOP
        for (uint32_t d = lane; d < stride; d += KILN_SUBGROUP) {
            bool inside = number < end && d < args.head_dim;
            queries[(subgroup + r * SUBGROUPS) * stride + d] =
                inside ? kiln_element_to_f32(q[head * args.head_dim + d]) : 0.0f;
        }
        if (PAGED && lane == 0) {
            masks[subgroup + r * SUBGROUPS] = 0xffffffffu;
            masks[count + subgroup + r * SUBGROUPS] = s.q_first + (number < end ? query : 0);
        }
        if (!PAGED && args.mask && lane == 0)
            ((uint64_t *)masks)[subgroup + r * SUBGROUPS] =
                kiln_mask_row(&args, work.batch, head, number < end ? query : 0);
        rows[r].window = kiln_window_of(&args, &s, number < end ? query : 0);
        rows[r].max = -KILN_INFINITY;
        rows[r].sum = 0.0f;
        KILN_UNROLL
        for (uint32_t i = 0; i < SLICES; i++)
            rows[r].result[i] = 0.0f;
    }

    if (PAGED) kiln_barrier();
    KILN_LOOP
    for (uint32_t key = work.key; key < work.key_end; key += KEYS) {
        if (PAGED) put_masks(KILN_LATE_ARGS(kiln_attention_args, args), &s, masks, count, key);
        load_tile(KILN_LATE_ARGS(kiln_attention_args, args), &s, tile, stride, false, work.kv_head, key, work.key_end);
        kiln_barrier();
        score_tile(&args, rows, queries, tile, masks, weights, stride, key);
        kiln_barrier();
        load_tile(KILN_LATE_ARGS(kiln_attention_args, args), &s, tile, stride, true, work.kv_head, key, work.key_end);
        kiln_barrier();
        add_tile(&args, rows, tile, weights, stride);
        kiln_barrier();
    }

    const kiln_attention_args *late = KILN_LATE_ARGS(kiln_attention_args, args);
    KILN_UNROLL
    for (uint32_t r = 0; r < ROWS; r++) {
        uint32_t number = work.row + subgroup + r * SUBGROUPS;
        if (!has_row(&args, r) || number >= end) continue;
        uint32_t head = work.kv_head * args.group + number % args.group;
        write_row(late, &rows[r], work.split, s.q_first + number / args.group, head);
    }
}

/* A block joins the shares of one row: every eighth of them a subgroup, so that all are on their way at once. */
KILN_ENTRY(JOIN, kiln_attention_args) {
    KILN_SHARED float results[SUBGROUPS][KILN_ATTENTION_DIM];
    uint32_t subgroup = kiln_thread() / KILN_SUBGROUP, lane = kiln_thread() % KILN_SUBGROUP, d = kiln_thread();
    uint32_t head = kiln_tile(), size = args.head_dim;
    uint64_t token = kiln_block();
    if (head >= args.kv_heads * args.group || token >= (uint64_t)args.tokens) return;
    if (!kiln_sequence_has(&args, (uint32_t)token)) return; /* nothing was written */
    const float *scales = kiln_partial_scales(&args);
    float max = -KILN_INFINITY, sum = 0.0f, result[SLICES] = {0.0f};
    KILN_LOOP
    for (uint32_t split = lane; split < args.splits; split += KILN_SUBGROUP)
        max = kiln_max(scales[2 * kiln_partial_row(&args, split, token, head)], max);
    max = reduce(max, false);
    float origin = max == -KILN_INFINITY ? 0.0f : max;
    KILN_LOOP
    for (uint32_t split = lane; split < args.splits; split += KILN_SUBGROUP) {
        uint64_t place = 2 * kiln_partial_row(&args, split, token, head);
        sum = KILN_FMA(scales[place + 1], kiln_exp(scales[place] - origin), sum);
    }
    sum = reduce(sum, true);
    KILN_LOOP
    for (uint32_t split = subgroup; split < args.splits; split += SUBGROUPS) {
        uint64_t place = kiln_partial_row(&args, split, token, head);
        float keep = kiln_exp(scales[2 * place] - origin);
        KILN_UNROLL
        for (uint32_t i = 0; i < SLICES; i++)
            if (i * KILN_SUBGROUP + lane < size)
                result[i] = KILN_FMA(args.partials[place * size + i * KILN_SUBGROUP + lane], keep, result[i]);
    }
    KILN_UNROLL
    for (uint32_t i = 0; i < SLICES; i++)
        results[subgroup][i * KILN_SUBGROUP + lane] = result[i];
    kiln_barrier();
    if (d < size) {
        float all = 0.0f, scale = sum == 0.0f ? 0.0f : kiln_reciprocal(sum);
        KILN_UNROLL
        for (uint32_t i = 0; i < SUBGROUPS; i++)
            all += results[i][d];
        kiln_element *out = (kiln_element *)args.out + token * (uint64_t)args.out_stride + head * size;
        out[d] = kiln_element_from_f32(all * scale);
    }
    if (d == 0 && args.lse)
        args.lse[head * (uint64_t)args.tokens + token] = sum == 0.0f ? -KILN_INFINITY : max + kiln_log(sum);
}
