/* Attention on the CPU, for mha and mha_paged, the operators' definition: attention_gpu.h says what its blocks do.
 *
 * A tile of k is converted to f32, transposed, and multiplied with a few rows at a time, in vectors of keys. The tile
 * of v then takes its place, and its rows are added up with the weights, in vectors along a head. Where few rows would
 * share that work, as when tokens are generated, keys are not transposed, f32 is read in place, the next tile is
 * prefetched, and blocks go over all heads of a share of the keys before the next share, since these heads lie in the
 * same pages. Includers define ATTEND and JOIN, the entries' names, and whether keys are PAGED.
 *
 * Floor: one read of k and v at memory bandwidth when tokens are generated, 4 * rows * keys * head_dim operations for
 * prompts.
 * Test: build/tests/ops/mha_test. Bench: build/kiln bench mha --device cpu */
#include "kernels/common/cpu.h"

#include "kernels/common/float8.h"
#include "kernels/common/sequence.h"
#include "kernels/common/vec.h"

enum {
    KEYS = KILN_ATTENTION_KEYS,
    SIZE = KILN_ATTENTION_DIM, /* of a row in the tiles; a multiple of KILN_VEC */
    TILE_ROWS = KILN_ATTENTION_ROWS * KILN_ATTENTION_SUBGROUPS,
    BLOCK = 4, /* rows multiplied at a time */
    VECS = 2,  /* with vectors of keys */
    FEW = 8,   /* rows for which keys are not transposed */
    LINE = 64  /* bytes */
};

/* What a block holds of its rows. BLOCK rows are processed at a time; those beyond the last are zeros. */
typedef struct state {
    float queries[TILE_ROWS][SIZE], results[TILE_ROWS][SIZE];
    float weights[TILE_ROWS][KEYS];
    float max[TILE_ROWS], sum[TILE_ROWS];
    kiln_window windows[TILE_ROWS];
    uint64_t tokens[TILE_ROWS]; /* rows of q */
    uint64_t masks[TILE_ROWS];  /* kiln_mask_row(), where there is a mask */
    int32_t tree;               /* kiln_tree_begin() */
    union {
        float keys[SIZE][KEYS];   /* a tile of k, transposed, and */
        float values[KEYS][SIZE]; /* the tile of v after it; for few rows that of k too */
    };
    const float *rows_at[KEYS]; /* of a tile of k or v, for few rows */
    uint32_t rows, padded;      /* elements of a head, up to whole vectors */
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

/* The head of a key, of k or v. */
KILN_INLINE const void *key_head(const kiln_attention_args *args, const kiln_sequence *s, const void *tensor,
                                 int64_t stride, uint32_t kv_head, uint32_t key, kiln_cpu_dtype dtype) {
    uint64_t index = kiln_key_row(args, s, key) * (uint64_t)stride + (uint64_t)kv_head * args->head_dim;
    return has_codes(args) ? (const char *)tensor + index : kiln_at(tensor, index, dtype);
}

/* The numbers of a head's codes, followed by zeros up to whole vectors. */
KILN_INLINE void load_codes(float *to, const uint8_t *codes, uint32_t size) {
    for (uint32_t d = 0; d < size; d++)
        to[d] = kiln_e4m3_value(codes[d]);
    for (uint32_t d = size; d % KILN_VEC; d++)
        to[d] = 0.0f;
}

/* A head of k or v as f32, followed by zeros up to whole vectors. */
KILN_INLINE void load_head(float *to, const kiln_attention_args *args, const void *head, kiln_cpu_dtype dtype) {
    if (has_codes(args))
        load_codes(to, head, args->head_dim);
    else
        load_row(to, head, args->head_dim, dtype);
}

/* A vector of each of count heads from d on, with zeros after its last element and for missing heads. */
KILN_INLINE void load_block(kiln_vec *block, const kiln_attention_args *args, const void *const *heads, uint32_t count,
                            uint32_t d, kiln_cpu_dtype dtype) {
    const uint32_t left = args->head_dim - d;
    if (!has_codes(args)) {
        KILN_UNROLL
        for (uint32_t i = 0; i < KILN_VEC; i++)
            block[i] = i < count ? kiln_vec_load(kiln_at(heads[i], d, dtype), left, dtype) : KILN_VEC_ZERO();
        return;
    }
    float tile[KILN_VEC][KILN_VEC] = {{0}};
    for (uint32_t i = 0; i < count; i++)
        load_codes(tile[i], (const uint8_t *)heads[i] + d, left < KILN_VEC ? left : KILN_VEC);
    KILN_UNROLL
    for (uint32_t i = 0; i < KILN_VEC; i++)
        block[i] = KILN_VEC_LOAD(tile[i]);
}

/* Loads the tile's keys, each as a column; zeros from `end` on. */
KILN_INLINE void load_keys(state *held, const kiln_attention_args *args, const kiln_sequence *s, uint32_t kv_head,
                           uint32_t key, uint32_t end, kiln_cpu_dtype dtype) {
    for (uint32_t first = 0; first < KEYS; first += KILN_VEC) {
        const void *heads[KILN_VEC];
        uint32_t count = (uint32_t)kiln_min(end > key + first ? end - key - first : 0, KILN_VEC);
        for (uint32_t i = 0; i < count; i++)
            heads[i] = key_head(args, s, args->k, args->k_stride, kv_head, key + first + i, dtype);
        for (uint32_t d = 0; d < args->head_dim; d += KILN_VEC) {
            kiln_vec block[KILN_VEC];
            load_block(block, args, heads, count, d, dtype);
            kiln_vec_transpose(block);
            KILN_UNROLL
            for (uint32_t i = 0; i < KILN_VEC; i++)
                KILN_VEC_STORE(&held->keys[d + i][first], block[i]);
        }
    }
}

KILN_INLINE void load_values(state *held, const kiln_attention_args *args, const kiln_sequence *s, uint32_t kv_head,
                             uint32_t key, uint32_t end, kiln_cpu_dtype dtype) {
    for (uint32_t i = 0; i < KEYS; i++) {
        if (key + i < end)
            load_head(held->values[i], args, key_head(args, s, args->v, args->v_stride, kv_head, key + i, dtype),
                      dtype);
        else
            memset(held->values[i], 0, held->padded * sizeof(float));
    }
}

/* ---- Few rows ---- */

/* One of k and v. */
typedef struct tensor {
    const void *data;
    int64_t stride;
} tensor;

/* Finds the rows of a tile, from `key` to before `end`, as f32, and zeros for those after it; prefetches the other
 * tensor, which is read next, from `ahead` on. */
KILN_INLINE void find_rows(state *held, const kiln_attention_args *args, const kiln_sequence *s, uint32_t kv_head,
                           tensor from, uint32_t key, tensor next, uint32_t ahead, uint32_t end, kiln_cpu_dtype dtype) {
    const bool codes = has_codes(args);
    const uint32_t bytes = args->head_dim * (codes ? 1 : dtype == KILN_CPU_f32 ? 4 : 2);
    for (uint32_t i = 0; i < KEYS; i++) {
        if (ahead + i < end) {
            const char *row = key_head(args, s, next.data, next.stride, kv_head, ahead + i, dtype);
            for (uint32_t byte = 0; byte < bytes; byte += LINE)
                __builtin_prefetch(row + byte);
        }
        held->rows_at[i] = held->values[i];
        if (key + i >= end) {
            memset(held->values[i], 0, held->padded * sizeof(float));
            continue;
        }
        const void *row = key_head(args, s, from.data, from.stride, kv_head, key + i, dtype);
        if (dtype == KILN_CPU_f32 && !codes && held->rows == 1 && args->head_dim % KILN_VEC == 0)
            held->rows_at[i] = row; /* more rows would compete for few sets of the cache, being a power of 2 apart */
        else
            load_head(held->values[i], args, row, dtype);
    }
}

/* The scores of one row. */
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
                sums[i] = KILN_VEC_FMA(query, KILN_VEC_LOAD(held->rows_at[first + i] + d), sums[i]);
        }
        KILN_VEC_STORE(&held->weights[r][first], kiln_vec_sums(sums));
    }
}

/* Adds `vecs` vectors of the tile's rows from d on, times the rows' weights, to the results of `rows` rows. */
KILN_INLINE void add_vectors(state *held, uint32_t first, uint32_t rows, uint32_t d, uint32_t vecs) {
    kiln_vec sums[BLOCK][BLOCK];
    KILN_UNROLL
    for (uint32_t r = 0; r < rows; r++) {
        KILN_UNROLL
        for (uint32_t v = 0; v < vecs; v++)
            sums[r][v] = KILN_VEC_LOAD(held->results[first + r] + d + v * KILN_VEC);
    }
    for (uint32_t k = 0; k < KEYS; k++) {
        KILN_UNROLL
        for (uint32_t v = 0; v < vecs; v++) {
            kiln_vec values = KILN_VEC_LOAD(held->rows_at[k] + d + v * KILN_VEC);
            KILN_UNROLL
            for (uint32_t r = 0; r < rows; r++)
                sums[r][v] = KILN_VEC_FMA(KILN_VEC_SET(held->weights[first + r][k]), values, sums[r][v]);
        }
    }
    KILN_UNROLL
    for (uint32_t r = 0; r < rows; r++) {
        KILN_UNROLL
        for (uint32_t v = 0; v < vecs; v++)
            KILN_VEC_STORE(held->results[first + r] + d + v * KILN_VEC, sums[r][v]);
    }
}

KILN_INLINE void add_rows(state *held, uint32_t first, uint32_t rows, uint32_t vecs) {
    uint32_t d = 0;
    for (; d + vecs * KILN_VEC <= held->padded; d += vecs * KILN_VEC)
        add_vectors(held, first, rows, d, vecs);
    for (; d < held->padded; d += KILN_VEC)
        add_vectors(held, first, rows, d, 1);
}

KILN_OUTLINED void score_few(state *held) {
    for (uint32_t r = 0; r < held->rows; r++)
        score_row(held, r);
}

KILN_OUTLINED void add_few(state *held) {
    uint32_t r = 0;
    for (; r + 4 <= held->rows; r += 4)
        add_rows(held, r, 4, 2);
    for (; r + 2 <= held->rows; r += 2)
        add_rows(held, r, 2, 4);
    if (r < held->rows) add_rows(held, r, 1, 4);
}

/* ---- All rows ---- */

/* The mask of a row for the tile's keys; -inf after its window. */
KILN_INLINE void load_mask(float *to, const state *held, const kiln_attention_args *args, uint32_t r, uint32_t key,
                           kiln_cpu_dtype dtype) {
    const uint32_t end = held->windows[r].end, count = end > key ? (uint32_t)kiln_min(end - key, KEYS) : 0;
    for (uint32_t i = 0; i < KEYS; i++)
        to[i] = -KILN_INFINITY;
    for (uint32_t i = 0; i < count; i += KILN_VEC) {
        const void *from = kiln_at(args->mask, held->masks[r] + key + i, dtype);
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
KILN_INLINE void add_mask(state *held, const kiln_attention_args *args, uint32_t r, uint32_t key,
                          kiln_cpu_dtype dtype) {
    float *scores = held->weights[r], mask[KEYS];
    load_mask(mask, held, args, r, key, dtype);
    for (uint32_t i = 0; i < KEYS; i++)
        scores[i] = mask[i] == -KILN_INFINITY ? -KILN_INFINITY : scores[i] + mask[i];
}

/* Whether the mask excludes the tile's keys for all rows. */
KILN_OUTLINED bool is_masked(const state *held, const kiln_attention_args *args, uint32_t key, kiln_cpu_dtype dtype) {
    if (PAGED || !args->mask) return false;
    bool masked = true;
    for (uint32_t r = 0; r < held->rows && masked; r++) {
        float mask[KEYS];
        load_mask(mask, held, args, r, key, dtype);
        for (uint32_t i = 0; i < KEYS; i++)
            masked &= mask[i] == -KILN_INFINITY;
    }
    return masked;
}

/* Turns a row's scores into weights, and rescales its previous result to the new maximum. */
KILN_INLINE void weigh(state *held, const kiln_attention_args *args, uint32_t r, uint32_t key, kiln_cpu_dtype dtype) {
    float *weights = held->weights[r], max = held->max[r], sum = 0.0f, lanes[KEYS];
    kiln_window window = held->windows[r];
    uint32_t bits = kiln_tree_bits(args, held->tree, held->tokens[r], key);
    for (uint32_t i = 0; i < KEYS; i++) {
        bool seen = key + i >= window.begin && key + i < window.end && (bits >> i & 1u);
        weights[i] = seen ? kiln_score(args, weights[i]) : -KILN_INFINITY;
    }
    if (!PAGED && args->mask) add_mask(held, args, r, key, dtype);
    for (uint32_t i = 0; i < KEYS; i++)
        max = kiln_max(weights[i], max);
    float origin = max == -KILN_INFINITY ? 0.0f : max;
    for (uint32_t i = 0; i < KEYS; i++) {
        float weight = kiln_exp(weights[i] - origin);
        lanes[i] = weights[i] = weights[i] == -KILN_INFINITY ? 0.0f : weight;
    }
    for (uint32_t half = KEYS / 2; half; half /= 2)
        for (uint32_t i = 0; i < half; i++)
            lanes[i] += lanes[i + half];
    sum = lanes[0];
    float keep = held->max[r] == -KILN_INFINITY ? 0.0f : kiln_exp(held->max[r] - origin);
    held->sum[r] = KILN_FMA(held->sum[r], keep, sum);
    held->max[r] = max;
    for (uint32_t d = 0; d < held->padded; d++)
        held->results[r][d] *= keep;
}

KILN_OUTLINED void weigh_rows(state *held, const kiln_attention_args *args, uint32_t key, kiln_cpu_dtype dtype) {
    for (uint32_t r = 0; r < held->rows; r++)
        weigh(held, args, r, key, dtype);
}

/* The scores of BLOCK rows. */
KILN_INLINE void score(state *held, uint32_t first, uint32_t size) {
    for (uint32_t key = 0; key < KEYS; key += VECS * KILN_VEC) {
        kiln_vec sums[BLOCK][VECS];
        KILN_UNROLL
        for (uint32_t i = 0; i < BLOCK * VECS; i++)
            sums[i / VECS][i % VECS] = KILN_VEC_ZERO();
        for (uint32_t d = 0; d < size; d++) {
            KILN_UNROLL
            for (uint32_t r = 0; r < BLOCK; r++) {
                kiln_vec element = KILN_VEC_SET(held->queries[first + r][d]);
                KILN_UNROLL
                for (uint32_t v = 0; v < VECS; v++)
                    sums[r][v] = KILN_VEC_FMA(element, KILN_VEC_LOAD(&held->keys[d][key + v * KILN_VEC]), sums[r][v]);
            }
        }
        KILN_UNROLL
        for (uint32_t i = 0; i < BLOCK * VECS; i++)
            KILN_VEC_STORE(&held->weights[first + i / VECS][key + i % VECS * KILN_VEC], sums[i / VECS][i % VECS]);
    }
}

KILN_OUTLINED void score_rows(state *held, uint32_t size) {
    for (uint32_t r = 0; r < held->rows; r += BLOCK)
        score(held, r, size);
}

/* Adds the tile's rows, times their weights, to the results of BLOCK rows. */
KILN_INLINE void add_block(state *held, uint32_t first) {
    for (uint32_t d = 0; d < held->padded; d += KILN_VEC) {
        kiln_vec sums[BLOCK];
        KILN_UNROLL
        for (uint32_t r = 0; r < BLOCK; r++)
            sums[r] = KILN_VEC_LOAD(held->results[first + r] + d);
        for (uint32_t k = 0; k < KEYS; k++) {
            kiln_vec values = KILN_VEC_LOAD(held->values[k] + d);
            KILN_UNROLL
            for (uint32_t r = 0; r < BLOCK; r++)
                sums[r] = KILN_VEC_FMA(KILN_VEC_SET(held->weights[first + r][k]), values, sums[r]);
        }
        KILN_UNROLL
        for (uint32_t r = 0; r < BLOCK; r++)
            KILN_VEC_STORE(held->results[first + r] + d, sums[r]);
    }
}

KILN_OUTLINED void add_values(state *held) {
    for (uint32_t r = 0; r < held->rows; r += BLOCK)
        add_block(held, r);
}

/* The token and the head of a row. */
typedef struct place {
    uint64_t token;
    uint32_t head;
} place;

KILN_INLINE place place_of(const kiln_attention_args *args, const kiln_sequence *s, uint32_t kv_head, uint32_t row) {
    return (place){s->q_first + row / args->group, kv_head * args->group + row % args->group};
}

KILN_OUTLINED void begin_rows(state *held, const kiln_attention_args *args, const kiln_sequence *s,
                              const kiln_attention_work *work, kiln_cpu_dtype dtype) {
    const float k_scale = kiln_cache_scale(args, args->k_scale, work->kv_head);
    held->tree = kiln_tree_begin(args, s);
    for (uint32_t r = 0; r < (held->rows + BLOCK - 1) / BLOCK * BLOCK; r++) {
        held->max[r] = -KILN_INFINITY;
        held->sum[r] = 0.0f;
        held->windows[r] = (kiln_window){0, 0};
        held->tokens[r] = 0;
        memset(held->results[r], 0, held->padded * sizeof(float));
        memset(held->queries[r], 0, held->padded * sizeof(float));
        if (r >= held->rows) continue;
        place at = place_of(args, s, work->kv_head, work->row + r);
        uint64_t q = at.token * (uint64_t)args->q_stride + (uint64_t)at.head * args->head_dim;
        load_row(held->queries[r], kiln_at(args->q, q, dtype), args->head_dim, dtype);
        for (uint32_t d = 0; PAGED && d < held->padded; d++)
            held->queries[r][d] *= k_scale;
        held->tokens[r] = at.token;
        held->windows[r] = kiln_window_of(args, s, (work->row + r) / args->group);
        if (!PAGED && args->mask)
            held->masks[r] = kiln_mask_row(args, work->batch, at.head, (work->row + r) / args->group);
    }
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

KILN_OUTLINED void end_rows(state *held, const kiln_attention_args *args, const kiln_sequence *s,
                            const kiln_attention_work *work, kiln_cpu_dtype dtype) {
    const float v_scale = kiln_cache_scale(args, args->v_scale, work->kv_head);
    for (uint32_t r = 0; r < held->rows; r++) {
        place at = place_of(args, s, work->kv_head, work->row + r);
        for (uint32_t d = 0; PAGED && d < held->padded; d++)
            held->results[r][d] *= v_scale;
        if (args->partials) {
            uint64_t row = kiln_partial_row(args, work->split, at.token, at.head);
            memcpy(args->partials + row * args->head_dim, held->results[r], args->head_dim * sizeof(float));
            kiln_partial_scales(args)[2 * row] = held->max[r];
            kiln_partial_scales(args)[2 * row + 1] = held->sum[r];
            continue;
        }
        float scale = held->sum[r] == 0.0f ? 0.0f : kiln_reciprocal(held->sum[r]);
        for (uint32_t d = 0; d < held->padded; d++)
            held->results[r][d] *= scale;
        put(args, at, held->results[r], dtype);
        put_lse(args, at, held->max[r], held->sum[r]);
    }
}

/* The tiles of a block with few rows. */
KILN_INLINE void add_tiles_few(state *held, const kiln_attention_args *args, const kiln_sequence *s,
                               const kiln_attention_work *work, kiln_cpu_dtype dtype) {
    const tensor k = {args->k, args->k_stride}, v = {args->v, args->v_stride};
    for (uint32_t key = work->key; key < work->key_end; key += KEYS) {
        if (is_masked(held, args, key, dtype)) continue;
        find_rows(held, args, s, work->kv_head, k, key, v, key, work->key_end, dtype);
        score_few(held);
        weigh_rows(held, args, key, dtype);
        find_rows(held, args, s, work->kv_head, v, key, k, key + KEYS, work->key_end, dtype);
        add_few(held);
    }
}

KILN_INLINE void add_tiles(state *held, const kiln_attention_args *args, const kiln_sequence *s,
                           const kiln_attention_work *work, kiln_cpu_dtype dtype) {
    for (uint32_t key = work->key; key < work->key_end; key += KEYS) {
        if (is_masked(held, args, key, dtype)) continue;
        load_keys(held, args, s, work->kv_head, key, work->key_end, dtype);
        score_rows(held, args->head_dim);
        weigh_rows(held, args, key, dtype);
        load_values(held, args, s, work->kv_head, key, work->key_end, dtype);
        add_values(held);
    }
}

/* Goes over heads before shares of the keys. */
KILN_INLINE uint32_t head_first(const kiln_attention_args *args, uint32_t block) {
    const uint32_t kv_head = block % args->kv_heads, rest = block / args->kv_heads;
    return (rest / args->splits * args->kv_heads + kv_head) * args->splits + rest % args->splits;
}

KILN_INLINE void ATTEND(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_attention_args args = *(const kiln_attention_args *)arguments; /* a copy, which no store can change */
    state *held = span->scratch;
    held->padded = (args.head_dim + KILN_VEC - 1) / KILN_VEC * KILN_VEC;
    for (uint64_t index = span->begin; index < span->end; index++) {
        uint32_t tile = (uint32_t)(index % span->grid[0]), block = (uint32_t)(index / span->grid[0]);
        kiln_attention_work work = kiln_attention_work_of(&args, tile, head_first(&args, block));
        if (work.batch >= args.batch) break;
        kiln_sequence s = kiln_sequence_of(&args, work.batch);
        uint32_t end = s.seqlen_q * args.group;
        if (work.row >= end) continue;
        held->rows = (uint32_t)kiln_min(end - work.row, args.rows * KILN_ATTENTION_SUBGROUPS);
        kiln_attention_trim(&args, &s, work.row + held->rows, &work);
        begin_rows(held, &args, &s, &work, dtype);
        if (held->rows <= FEW)
            add_tiles_few(held, &args, &s, &work, dtype);
        else
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
            uint64_t row = kiln_partial_row(&args, split, at.token, at.head);
            const float *partial = args.partials + row * args.head_dim;
            float keep = kiln_exp(scales[2 * row] - origin);
            sum = KILN_FMA(scales[2 * row + 1], keep, sum);
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
