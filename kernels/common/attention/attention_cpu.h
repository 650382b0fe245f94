/* Attention on the CPU, for mha and mha_paged, the operators' definition: attention_gpu.h says what its blocks do.
 *
 * Memory is read fastest from front to back, and the heads of a key lie side by side. So blocks that differ in the head
 * of k and v alone are computed together, as many as follow each other: of a tile of keys, a few keys are multiplied
 * with the queries of all these heads before the next few are, and what lies as far ahead in this order is prefetched
 * meanwhile; the tile's values are added up in the same way. A few rows are multiplied with a few keys at a time, in
 * vectors along a head, which are converted in registers (attention_products_cpu.h).
 *
 * On an AMD EPYC (Zen 5) a thread that reads 256 bytes of each of 32 keys, then those of the next head, comes to 60 %
 * of the bandwidth of one that reads from front to back, however it prefetches. Tried there: to prefetch into the
 * second level cache was 10 % slower; to spread what is prefetched over the products gained 5 % of some cases and lost
 * as much of others; to convert keys once for all rows was 6 to 16 % slower with 8 rows, and faster with 32 only in
 * bf16 on x86-64-v3, by 6 %.
 *
 * Includers define ATTEND and JOIN, the entries' names, and whether keys are PAGED.
 *
 * Floor: one read of k and v at memory bandwidth when tokens are generated, 4 * rows * keys * head_dim operations for
 * prompts.
 * Test: build/tests/ops/mha_test. Bench: build/kiln bench mha --device cpu */
#include "kernels/common/cpu.h"

#include "kernels/common/attention/attention_products_cpu.h"
#include "kernels/common/attention/sequence.h"

enum {
    SIZE = KILN_ATTENTION_DIM, /* of a row, at most; a multiple of KILN_VEC */
    HEAD_ROWS = KILN_ATTENTION_ROWS * KILN_ATTENTION_SUBGROUPS,
    ROWS = 128,         /* of all heads that are computed together */
    ELEMENTS = 1 << 13, /* of their queries */
    AHEAD = 8192,       /* bytes that are prefetched before they are multiplied, */
    LINE = 64           /* in lines of so many */
};
_Static_assert(HEAD_ROWS <= ROWS && KILN_ATTENTION_ROWS / 2 * KILN_ATTENTION_SUBGROUPS * SIZE <= ELEMENTS, "fits");

/* What blocks hold of their rows: those of a head follow each other, and those of the next head follow them. */
typedef struct state {
    float queries[ELEMENTS], results[ELEMENTS];
    float weights[ROWS][KEYS];
    float max[ROWS], sum[ROWS];
    uint64_t masks[ROWS];           /* kiln_mask_row(), where there is a mask */
    kiln_window windows[HEAD_ROWS]; /* the same for each head */
    uint64_t tokens[HEAD_ROWS];     /* rows of q */
    float converted[KEYS_AT_A_TIME][SIZE];
    float zeros[SIZE];          /* a head's, where there is no key */
    const char *keys[3 * KEYS]; /* the first head's places: of a tile of k, the tile of v, and the next tile of k */
    bool masked[ROWS];          /* the mask excludes a tile's keys for all rows of the head */
    int32_t tree;               /* kiln_tree_begin() */
    uint32_t heads, rows;       /* rows of each head */
    uint32_t padded;            /* elements of a head, up to whole vectors */
    uint32_t head_bytes, ahead; /* of k and v; ahead: keys */
} state;
_Static_assert(sizeof(state) <= KILN_CPU_SCRATCH, "fits");

KILN_INLINE void load_row(float *to, const void *from, uint32_t size, kiln_cpu_dtype dtype) {
    uint32_t d = 0;
    for (; d + KILN_VEC <= size; d += KILN_VEC)
        KILN_VEC_STORE(to + d, kiln_vec_widen(kiln_at(from, d, dtype), dtype));
    if (d < size) KILN_VEC_STORE(to + d, kiln_vec_load(kiln_at(from, d, dtype), size - d, dtype));
}

/* Whether k and v are codes of E4M3. */
KILN_INLINE bool has_codes(const kiln_attention_args *args) {
    return PAGED && args->codes;
}

/* The numbers of a head's codes, followed by zeros up to whole vectors. */
KILN_INLINE void load_codes(float *to, const uint8_t *codes, uint32_t size) {
    kiln_e4m3_load(to, codes, size);
    for (uint32_t d = size; d % KILN_VEC; d++)
        to[d] = 0.0f;
}

/* ---- Keys and values ---- */

/* Finds where the head of each of a tile's keys is, of k or v; the last key's again for those from `end` on. */
KILN_OUTLINED void find_keys(const char **keys, const kiln_attention_args *args, const kiln_sequence *s,
                             const void *tensor, int64_t stride, uint32_t kv_head, uint32_t key, uint32_t end,
                             uint32_t element_bytes) {
    for (uint32_t i = 0; i < KEYS; i++) {
        uint64_t row = kiln_key_row(args, s, key + i < end ? key + i : end - 1);
        keys[i] = (const char *)tensor + (row * (uint64_t)stride + (uint64_t)kv_head * args->head_dim) * element_bytes;
    }
}

/* Whether heads are not multiplied where they lie: they cannot be, or codes had better be converted once for many rows.
 */
KILN_INLINE bool must_convert(const state *held, const kiln_attention_args *args, kiln_cpu_dtype dtype) {
    if (has_codes(args)) return args->head_dim % KILN_E4M3_AT_A_TIME || held->rows > ROWS_AT_A_TIME;
    return args->head_dim % KILN_VEC || !widens(dtype);
}

/* Converts heads to f32. */
KILN_OUTLINED void convert(state *held, const kiln_attention_args *args, const void **heads, kiln_cpu_dtype dtype) {
    for (uint32_t i = 0; i < KEYS_AT_A_TIME; i++) {
        if (has_codes(args))
            load_codes(held->converted[i], heads[i], args->head_dim);
        else if (dtype == KILN_CPU_f32)
            load_row(held->converted[i], heads[i], args->head_dim, KILN_CPU_f32);
        else if (dtype == KILN_CPU_f16)
            load_row(held->converted[i], heads[i], args->head_dim, KILN_CPU_f16);
        else
            load_row(held->converted[i], heads[i], args->head_dim, KILN_CPU_bf16);
        heads[i] = held->converted[i];
    }
}

/* Goes over the first count keys of a tile, or values, whose places begin at held->keys[first]: multiplies the keys
 * with all queries, or adds up the values. */
KILN_OUTLINED void go_over(state *held, const kiln_attention_args *args, uint32_t first, uint32_t count,
                           kiln_cpu_dtype dtype) {
    const uint32_t rows = held->rows;
    const bool converts = must_convert(held, args, dtype), codes = has_codes(args) && !converts;
    uint32_t next = first + held->ahead, next_head = 0;
    for (uint32_t key = 0; key < count; key += KEYS_AT_A_TIME)
        for (uint32_t head = 0; head < held->heads; head++) {
            for (uint32_t i = 0; i < KEYS_AT_A_TIME; i++) {
                const char *place = held->keys[next] + next_head * held->head_bytes;
                for (uint32_t byte = 0; byte < held->head_bytes; byte += LINE)
                    __builtin_prefetch(place + byte);
                if (++next_head < held->heads) continue;
                next++;
                next_head = 0;
            }
            if (held->masked[head]) continue;
            const void *heads[KEYS_AT_A_TIME];
            for (uint32_t i = 0; i < KEYS_AT_A_TIME; i++)
                heads[i] =
                    key + i < count ? held->keys[first + key + i] + head * held->head_bytes : (const char *)held->zeros;
            if (converts) convert(held, args, heads, dtype);
            const products p = {.heads = heads,
                                .queries = held->queries + head * rows * held->padded,
                                .results = held->results + head * rows * held->padded,
                                .weights = &held->weights[head * rows][key],
                                .rows = rows,
                                .padded = held->padded};
            if (codes && first == 0)
                multiply_codes_of_keys(&p);
            else if (codes)
                multiply_codes_of_values(&p);
            else if (first == 0)
                multiply_keys(&p, converts ? KILN_CPU_f32 : dtype);
            else
                multiply_values(&p, converts ? KILN_CPU_f32 : dtype);
        }
}

/* ---- Weights ---- */

/* One of the rows of all heads. */
typedef struct row {
    uint32_t number; /* of all */
    uint32_t of_head;
} row;

/* The mask of a row for the tile's keys; -inf after its window. */
KILN_INLINE void load_mask(float *to, const state *held, const kiln_attention_args *args, row r, uint32_t key,
                           kiln_cpu_dtype dtype) {
    const uint32_t end = held->windows[r.of_head].end, count = end > key ? (uint32_t)kiln_min(end - key, KEYS) : 0;
    for (uint32_t i = 0; i < KEYS; i++)
        to[i] = -KILN_INFINITY;
    for (uint32_t i = 0; i < count; i += KILN_VEC) {
        const void *from = kiln_at(args->mask, held->masks[r.number] + key + i, dtype);
        kiln_vec added = kiln_vec_load(from, count - i, dtype);
        if (count - i >= KILN_VEC)
            KILN_VEC_STORE(to + i, added);
        else {
            float tail[KILN_VEC];
            KILN_VEC_STORE(tail, added);
            memcpy(to + i, tail, (count - i) * sizeof *to);
        }
    }
}

/* Adds the mask to a row's scores. */
KILN_INLINE void add_mask(state *held, const kiln_attention_args *args, row r, uint32_t key, kiln_cpu_dtype dtype) {
    float *scores = held->weights[r.number], mask[KEYS];
    load_mask(mask, held, args, r, key, dtype);
    for (uint32_t i = 0; i < KEYS; i++)
        scores[i] = mask[i] == -KILN_INFINITY ? -KILN_INFINITY : scores[i] + mask[i];
}

/* Whether the mask excludes the tile's keys for all rows of a head. */
KILN_INLINE bool is_masked(const state *held, const kiln_attention_args *args, uint32_t head, uint32_t key,
                           kiln_cpu_dtype dtype) {
    bool masked = true;
    for (uint32_t i = 0; i < held->rows && masked; i++) {
        float mask[KEYS];
        load_mask(mask, held, args, (row){head * held->rows + i, i}, key, dtype);
        for (uint32_t k = 0; k < KEYS; k++)
            masked &= mask[k] == -KILN_INFINITY;
    }
    return masked;
}

/* Finds the heads whose keys of the tile the mask excludes. Whether it leaves out all heads. */
KILN_OUTLINED bool find_masked(state *held, const kiln_attention_args *args, uint32_t key, kiln_cpu_dtype dtype) {
    bool all = true;
    for (uint32_t head = 0; head < held->heads; head++) {
        held->masked[head] = is_masked(held, args, head, key, dtype);
        all &= held->masked[head];
    }
    return all;
}

/* Makes scores of a row's products; -inf where it does not see the key. */
KILN_INLINE void score_keys(state *held, const kiln_attention_args *args, row r, uint32_t key) {
    float *scores = held->weights[r.number];
    const kiln_window window = held->windows[r.of_head];
    const uint32_t bits = kiln_tree_bits(args, held->tree, held->tokens[r.of_head], key);
    if (args->softcap == 0.0f)
        for (uint32_t i = 0; i < KEYS; i++)
            scores[i] *= args->scale;
    else
        for (uint32_t i = 0; i < KEYS; i++)
            scores[i] = kiln_score(args, scores[i]);
    if (key >= window.begin && key + KEYS <= window.end && bits == 0xffffffffu) return;
    for (uint32_t i = 0; i < KEYS; i++) {
        bool seen = (key + i >= window.begin) & (key + i < window.end) & (bits >> i & 1u);
        scores[i] = seen ? scores[i] : -KILN_INFINITY;
    }
}

/* Turns a row's scores into weights, and rescales its previous result to the new maximum. */
KILN_INLINE void weigh(state *held, const kiln_attention_args *args, row r, uint32_t key, kiln_cpu_dtype dtype) {
    float *weights = held->weights[r.number], *result = held->results + r.number * held->padded, lanes[KEYS];
    const float before = held->max[r.number];
    score_keys(held, args, r, key);
    if (!PAGED && args->mask) add_mask(held, args, r, key, dtype);
    for (uint32_t i = 0; i < KEYS; i++)
        lanes[i] = kiln_max(weights[i], before);
    KILN_UNROLL
    for (uint32_t half = KEYS / 2; half; half /= 2) {
        for (uint32_t i = 0; i < half; i++)
            lanes[i] = kiln_max(lanes[i], lanes[i + half]);
    }
    const float max = lanes[0], origin = max == -KILN_INFINITY ? 0.0f : max;
    for (uint32_t i = 0; i < KEYS; i++) {
        float weight = kiln_exp(weights[i] - origin);
        lanes[i] = weights[i] = weights[i] == -KILN_INFINITY ? 0.0f : weight;
    }
    KILN_UNROLL
    for (uint32_t half = KEYS / 2; half; half /= 2) {
        for (uint32_t i = 0; i < half; i++)
            lanes[i] += lanes[i + half];
    }
    held->max[r.number] = max;
    if (max == before) { /* as mostly: results are relative to it already */
        held->sum[r.number] += lanes[0];
        return;
    }
    const float keep = before == -KILN_INFINITY ? 0.0f : kiln_exp(before - origin);
    held->sum[r.number] = KILN_FMA(held->sum[r.number], keep, lanes[0]);
    for (uint32_t d = 0; d < held->padded; d++)
        result[d] *= keep;
}

KILN_OUTLINED void weigh_rows(state *held, const kiln_attention_args *args, uint32_t key, kiln_cpu_dtype dtype) {
    for (uint32_t head = 0; head < held->heads; head++)
        for (uint32_t i = 0; i < held->rows && !held->masked[head]; i++)
            weigh(held, args, (row){head * held->rows + i, i}, key, dtype);
}

/* ---- Rows ---- */

/* The token and the head of a row. */
typedef struct place {
    uint64_t token;
    uint32_t head;
} place;

/* number: of the row among those of the sequence. */
KILN_INLINE place place_of(const kiln_attention_args *args, const kiln_sequence *s, uint32_t kv_head, uint32_t number) {
    return (place){s->q_first + number / args->group, kv_head * args->group + number % args->group};
}

KILN_INLINE void begin_row(state *held, const kiln_attention_args *args, const kiln_attention_work *work, place at,
                           row r, kiln_cpu_dtype dtype) {
    const float k_scale = kiln_cache_scale(args, args->k_scale, at.head / args->group);
    const uint64_t q = at.token * (uint64_t)args->q_stride + (uint64_t)at.head * args->head_dim;
    float *query = held->queries + r.number * held->padded;
    held->max[r.number] = -KILN_INFINITY;
    held->sum[r.number] = 0.0f;
    memset(held->results + r.number * held->padded, 0, held->padded * sizeof(float));
    load_row(query, kiln_at(args->q, q, dtype), args->head_dim, dtype);
    for (uint32_t d = 0; PAGED && d < held->padded; d++)
        query[d] *= k_scale;
    if (!PAGED && args->mask)
        held->masks[r.number] = kiln_mask_row(args, work->batch, at.head, (work->row + r.of_head) / args->group);
}

KILN_OUTLINED void begin_rows(state *held, const kiln_attention_args *args, const kiln_sequence *s,
                              const kiln_attention_work *work, kiln_cpu_dtype dtype) {
    held->tree = kiln_tree_begin(args, s);
    for (uint32_t i = 0; i < held->rows; i++) {
        held->tokens[i] = place_of(args, s, 0, work->row + i).token;
        held->windows[i] = kiln_window_of(args, s, (work->row + i) / args->group);
    }
    for (uint32_t head = 0; head < held->heads; head++)
        for (uint32_t i = 0; i < held->rows; i++)
            begin_row(held, args, work, place_of(args, s, work->kv_head + head, work->row + i),
                      (row){head * held->rows + i, i}, dtype);
}

/* Writes n elements of a result. */
KILN_INLINE void put(const kiln_attention_args *args, place at, const float *result, kiln_cpu_dtype dtype) {
    uint64_t index = at.token * (uint64_t)args->out_stride + (uint64_t)at.head * args->head_dim;
    void *out = kiln_at_mut(args->out, index, dtype);
    if (dtype == KILN_CPU_f32)
        memcpy(out, result, args->head_dim * sizeof *result);
    else
        kiln_tile_write(out, result, args->head_dim, dtype, false);
}

KILN_INLINE void put_lse(const kiln_attention_args *args, place at, float max, float sum) {
    if (args->lse)
        args->lse[at.head * (uint64_t)args->tokens + at.token] = sum == 0.0f ? -KILN_INFINITY : max + kiln_log(sum);
}

KILN_INLINE void end_row(state *held, const kiln_attention_args *args, const kiln_attention_work *work, place at,
                         uint32_t r, kiln_cpu_dtype dtype) {
    const float v_scale = kiln_cache_scale(args, args->v_scale, at.head / args->group), sum = held->sum[r];
    float *result = held->results + r * held->padded;
    for (uint32_t d = 0; PAGED && d < held->padded; d++)
        result[d] *= v_scale;
    if (args->partials) {
        uint64_t partial = kiln_partial_row(args, work->split, at.token, at.head);
        memcpy(args->partials + partial * args->head_dim, result, args->head_dim * sizeof(float));
        kiln_partial_scales(args)[2 * partial] = held->max[r];
        kiln_partial_scales(args)[2 * partial + 1] = sum;
        return;
    }
    const float scale = sum == 0.0f ? 0.0f : kiln_reciprocal(sum);
    for (uint32_t d = 0; d < held->padded; d++)
        result[d] *= scale;
    put(args, at, result, dtype);
    put_lse(args, at, held->max[r], sum);
}

KILN_OUTLINED void end_rows(state *held, const kiln_attention_args *args, const kiln_sequence *s,
                            const kiln_attention_work *work, kiln_cpu_dtype dtype) {
    for (uint32_t head = 0; head < held->heads; head++)
        for (uint32_t i = 0; i < held->rows; i++)
            end_row(held, args, work, place_of(args, s, work->kv_head + head, work->row + i), head * held->rows + i,
                    dtype);
}

/* ---- Blocks ---- */

/* The tiles of a block. */
KILN_OUTLINED void add_tiles(state *held, const kiln_attention_args *args, const kiln_sequence *s,
                             const kiln_attention_work *work, kiln_cpu_dtype dtype) {
    const uint32_t bytes = has_codes(args) ? 1 : (uint32_t)kiln_dtype_size(dtype), head = work->kv_head,
                   end = work->key_end;
    uint32_t found = end; /* the tile whose keys were found as the next one's */
    held->head_bytes = args->head_dim * bytes;
    held->ahead = KEYS_AT_A_TIME;
    while (held->ahead < KEYS && held->ahead * held->heads * held->head_bytes < AHEAD)
        held->ahead *= 2;
    for (uint32_t key = work->key; key < end; key += KEYS) {
        if (!PAGED && args->mask && find_masked(held, args, key, dtype)) continue;
        if (found == key)
            memcpy(held->keys, held->keys + 2 * KEYS, KEYS * sizeof *held->keys);
        else
            find_keys(held->keys, args, s, args->k, args->k_stride, head, key, end, bytes);
        find_keys(held->keys + KEYS, args, s, args->v, args->v_stride, head, key, end, bytes);
        found = key + KEYS;
        find_keys(held->keys + 2 * KEYS, args, s, args->k, args->k_stride, head, found, end, bytes);
        const uint32_t count = (uint32_t)kiln_min(end - key, KEYS);
        go_over(held, args, 0, count, dtype);
        weigh_rows(held, args, key, dtype);
        go_over(held, args, KEYS, count, dtype);
    }
}

/* Goes over heads before shares of the keys. */
KILN_INLINE uint32_t head_first(const kiln_attention_args *args, uint32_t block) {
    const uint32_t kv_head = block % args->kv_heads, rest = block / args->kv_heads;
    return (rest / args->splits * args->kv_heads + kv_head) * args->splits + rest % args->splits;
}

/* How many of the span's blocks from this one on are computed together: those that have the same rows and keys of
 * other heads. */
KILN_INLINE uint32_t heads_together(const state *held, const kiln_attention_args *args, const kiln_cpu_span *span,
                                    uint64_t index, uint32_t kv_head) {
    if (span->grid[0] > 1) return 1;
    uint64_t heads = kiln_min(args->kv_heads - kv_head, span->end - index);
    heads = kiln_min(heads, ROWS / held->rows);
    return (uint32_t)kiln_min(heads, ELEMENTS / (held->rows * held->padded));
}

KILN_OUTLINED void ATTEND(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_attention_args args = *(const kiln_attention_args *)arguments; /* a copy, which no store can change */
    state *held = span->scratch;
    held->padded = (args.head_dim + KILN_VEC - 1) / KILN_VEC * KILN_VEC;
    memset(held->masked, 0, sizeof held->masked);
    memset(held->zeros, 0, sizeof held->zeros);
    for (uint64_t index = span->begin; index < span->end; index += held->heads) {
        uint32_t tile = (uint32_t)(index % span->grid[0]), block = (uint32_t)(index / span->grid[0]);
        kiln_attention_work work = kiln_attention_work_of(&args, tile, head_first(&args, block));
        if (work.batch >= args.batch) break;
        kiln_sequence s = kiln_sequence_of(&args, work.batch);
        uint32_t end = s.seqlen_q * args.group;
        held->heads = 1;
        if (work.row >= end) continue;
        held->rows = (uint32_t)kiln_min(end - work.row, args.rows * KILN_ATTENTION_SUBGROUPS);
        held->heads = heads_together(held, &args, span, index, work.kv_head);
        kiln_attention_trim(&args, &s, work.row + held->rows, &work);
        begin_rows(held, &args, &s, &work, dtype);
        add_tiles(held, &args, &s, &work, dtype);
        end_rows(held, &args, &s, &work, dtype);
    }
}
#define ATTENTION_KERNEL(kernel) KILN_CPU_KERNEL(kernel)
ATTENTION_KERNEL(ATTEND)

/* A head of a token for each block. */
KILN_OUTLINED void JOIN(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_attention_args args = *(const kiln_attention_args *)arguments; /* a copy, which no store can change */
    const float *scales = kiln_partial_scales(&args);
    for (uint64_t index = span->begin; index < span->end; index++) {
        place at = {.token = index / span->grid[0], .head = (uint32_t)(index % span->grid[0])};
        float max = -KILN_INFINITY, sum = 0.0f, result[SIZE] = {0};
        if (at.token >= (uint64_t)args.tokens) break;
        if (!kiln_sequence_has(&args, (uint32_t)at.token)) continue; /* there are no partial results */
        for (uint32_t split = 0; split < args.splits; split++)
            max = kiln_max(scales[2 * kiln_partial_row(&args, split, at.token, at.head)], max);
        float origin = max == -KILN_INFINITY ? 0.0f : max;
        for (uint32_t split = 0; split < args.splits; split++) {
            uint64_t number = kiln_partial_row(&args, split, at.token, at.head);
            const float *partial = args.partials + number * args.head_dim;
            float keep = kiln_exp(scales[2 * number] - origin);
            sum = KILN_FMA(scales[2 * number + 1], keep, sum);
            for (uint32_t d = 0; d < args.head_dim; d++)
                result[d] = KILN_FMA(partial[d], keep, result[d]);
        }
        float scale = sum == 0.0f ? 0.0f : kiln_reciprocal(sum);
        for (uint32_t d = 0; d < args.head_dim; d++)
            result[d] *= scale;
        put(&args, at, result, dtype);
        put_lse(&args, at, max, sum);
    }
}
ATTENTION_KERNEL(JOIN)
