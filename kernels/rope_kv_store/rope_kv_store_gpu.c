/* rope_kv_store: the heads of a query and of a key are rotated as by rope (rotate_gpu.h), those of the key and of the
 * value stored as by kv_store, in rows of a cache that slot_mapping names, or as codes of E4M3.
 *
 * A token's heads are numbered: those of its query, its key, its value. A block has heads of one or several tokens: 1
 * << lanes_log2 threads share a head, each with a vector of pairs from each half at a time, or one pair where there are
 * few tokens or alignment lacks. Few tokens are spread over as many blocks as their heads take; of many, a thread has
 * its share of two heads, for which it computes directions once. It reads its share of the heads, the slot and the
 * position before it needs any of them. A token whose slot is outside the cache has its query rotated only.
 *
 * Floor: one read and one write of the tensors at memory bandwidth, of a byte per element where they become codes; for
 * few tokens the latency of one read. Not measured.
 * Test: build/tests/ops/rope_kv_store_test. Bench: build/kiln bench rope_kv_store */
#include "kernels/common/rotary/rotate_gpu.h"

#include "kernels/common/global.h"
#include "kernels/common/late_args.h"
#include "kernels/common/quantize/store_codes_gpu.h"
#include "kernels/rope_kv_store/rope_kv_store_args.h"

#if defined(__CUDACC__)
/* Three blocks of a multiprocessor: NVIDIA's assembler would spill for four. */
#undef KILN_ENTRY_HEAD
#define KILN_ENTRY_HEAD extern "C" __global__ __launch_bounds__(KILN_BLOCK, 3) void
#endif

#define LATE(args) KILN_LATE_ARGS(kiln_rope_kv_store_args, *(args))

enum { HEADS = KILN_ROPE_KV_STORE_HEADS };

/* An index as it was read, so that nothing waits for it before it is needed: the lower and the upper half of 64 bits,
 * or twice all 32. */
typedef struct raw_index {
    uint32_t low, high;
} raw_index;

KILN_INLINE raw_index raw_read(const void *indices, uint32_t is_64, uint64_t i) {
    const uint32_t *words = (const uint32_t *)indices + (i << is_64);
    const raw_index raw = {words[0], words[is_64]};
    return raw;
}

KILN_INLINE uint64_t raw_value(raw_index raw, uint32_t is_64) {
    return is_64 ? (uint64_t)raw.high << 32 | raw.low : (uint64_t)(int64_t)(int32_t)raw.low;
}

/* A token and the heads of it that a thread has a share of: count numbers, `slots` apart. */
typedef struct share {
    uint64_t token;
    raw_index position, slot;
    uint32_t head, count, slots;
    uint32_t lane, lanes; /* of those that share a head */
    bool turns;           /* not all of the heads are of its value */
    float scales[HEADS];  /* of the heads' codes */
} share;

/* Which head of which tensor a number is. */
typedef struct head_of {
    bool is_query, is_value;
    uint32_t number;
} head_of;

KILN_INLINE head_of find(const kiln_rope_kv_store_args *args, uint32_t head) {
    head_of h = {head < args->heads, false, head};
    if (!h.is_query) {
        h.number -= args->heads;
        h.is_value = h.number >= args->kv_heads;
        if (h.is_value) h.number -= args->kv_heads;
    }
    return h;
}

KILN_INLINE const kiln_element *source_of(const kiln_rope_kv_store_args *args, uint64_t token, uint32_t head) {
    const head_of h = find(args, head);
    const void *tensor = h.is_query ? args->query : h.is_value ? args->value : args->key;
    const int64_t stride = h.is_query ? args->query_stride : h.is_value ? args->value_stride : args->key_stride;
    return (const kiln_element *)tensor + token * (uint64_t)stride + h.number * (uint64_t)args->head_dim;
}

/* Where a head goes, and as what. */
typedef struct target {
    char *to;
    bool there; /* else it goes nowhere */
    bool turned, coded;
    float factor; /* of codes */
} target;

KILN_INLINE target target_of(const kiln_rope_kv_store_args *args, const share *s, bool rotates) {
    const head_of h = find(args, s->head);
    const uint64_t at = h.number * (uint64_t)args->head_dim, slot = raw_value(s->slot, args->slots_64);
    target t = {NULL, false, rotates && !h.is_value, args->codes && !h.is_query, 1.0f};
    if (h.is_query) {
        t.to = (char *)((kiln_element *)args->query_out + s->token * (uint64_t)args->query_out_stride + at);
        t.there = rotates || args->query_out != args->query;
    } else {
        const int64_t stride = h.is_value ? args->value_cache_stride : args->key_cache_stride;
        t.to = (char *)(h.is_value ? args->value_cache : args->key_cache) +
               (slot * (uint64_t)stride + at) * (args->codes ? 1 : sizeof(kiln_element));
        t.there = slot < (uint64_t)args->capacity;
    }
    if (t.coded) t.factor = kiln_store_factor(s->scales, 0);
    t.to = KILN_GLOBAL(char, t.to);
    return t;
}

/* The next of a thread's heads. */
KILN_INLINE void advance(share *s) {
    s->head += s->slots;
    s->scales[0] = s->scales[1];
}

/* Stores what belongs at an element of a head. */
KILN_INLINE void give_vector(const target *t, uint32_t element, kiln_vector vector) {
    if (t->coded)
        kiln_store_codes((uint8_t *)t->to + element, vector, t->factor);
    else
        kiln_vector_store((kiln_element *)t->to + element, vector);
}
KILN_INLINE void give_element(const target *t, uint32_t element, kiln_element value) {
    if (t->coded)
        ((uint8_t *)t->to)[element] = kiln_e4m3_of(kiln_element_to_f32(value) * t->factor);
    else
        ((kiln_element *)t->to)[element] = value;
}

/* The row of the tables that the position has. */
KILN_INLINE kiln_pairs pairs_of(const kiln_rope_kv_store_args *args, uint64_t position) {
    const bool inside = position < (uint64_t)args->table_rows;
    uint64_t row = inside ? position * (uint64_t)args->table_stride : 0;
    row *= args->source == KILN_TURN_BY_TABLE_F32 ? sizeof(float) : sizeof(kiln_element);
    const kiln_pairs pairs = {args->frequencies,
                              (const char *)args->cosines + row,
                              (const char *)args->sines + row,
                              args->scale,
                              args->source,
                              inside,
                              args->pairs,
                              args->step,
                              args->wide};
    return pairs;
}

/* ---- Vectors of pairs ---- */

enum { RUN = KILN_VECTOR / 2 };

/* The directions of the pairs of two vectors, as two runs of neighbouring pairs: the first and the second half of those
 * of one vector from each half of a head, or those of each vector. */
typedef struct directions {
    kiln_direction d[2 * RUN];
} directions;

typedef struct run_of_elements {
    uint32_t words[2];
} __attribute__((aligned(8))) run_of_elements;

/* A run of a row of a table, which is aligned. */
KILN_INLINE void take_run(float *to, const void *row, uint32_t first, uint32_t source) {
#if !defined(KILN_PART_f32)
    if (source != KILN_TURN_BY_TABLE) {
        const kiln_vector v = kiln_vector_load((const kiln_element *)((const float *)row + first));
        KILN_UNROLL
        for (int i = 0; i < RUN; i++)
            to[i] = kiln_float(v.words[i]);
        return;
    }
#endif
    const run_of_elements r = *(const run_of_elements *)((const kiln_element *)row + first);
    KILN_UNROLL
    for (int i = 0; i < 2; i++) {
#if defined(KILN_PART_f32)
        to[i] = kiln_float(r.words[i]);
#else
        kiln_pair_values(to + 2 * i, r.words[i]);
#endif
    }
}

/* left and right: the first pairs of the two runs. Frequencies are read before the position is waited for. */
KILN_INLINE void take_directions(directions *all, const kiln_rope_kv_store_args *args, raw_index position,
                                 uint32_t left, uint32_t right) {
    if (args->source == KILN_TURN_BY_FREQUENCY) {
        uint64_t turns[2 * RUN];
        KILN_UNROLL
        for (uint32_t i = 0; i < RUN; i++) {
            turns[i] = args->frequencies[left + i];
            turns[RUN + i] = args->frequencies[right + i];
        }
        const uint64_t times = raw_value(position, args->positions_64);
        KILN_UNROLL
        for (uint32_t i = 0; i < 2 * RUN; i++)
            all->d[i] = kiln_direction_of(times * turns[i]);
    } else {
        const kiln_pairs pairs = pairs_of(args, raw_value(position, args->positions_64));
        float cosines[2 * RUN], sines[2 * RUN];
        take_run(cosines, pairs.cosines, left, args->source);
        take_run(cosines + RUN, pairs.cosines, right, args->source);
        take_run(sines, pairs.sines, left, args->source);
        take_run(sines + RUN, pairs.sines, right, args->source);
        KILN_UNROLL
        for (int i = 0; i < 2 * RUN; i++) {
            all->d[i].cosine = pairs.inside ? cosines[i] : 1.0f;
            all->d[i].sine = pairs.inside ? sines[i] : 0.0f;
        }
    }
    if (args->scale == 1.0f) return;
    KILN_UNROLL
    for (int i = 0; i < 2 * RUN; i++)
        all->d[i] = kiln_scaled(all->d[i], args->scale);
}

KILN_INLINE void turn_vectors(kiln_vector *vectors, const directions *all, bool adjacent) {
    float a[KILN_VECTOR], b[KILN_VECTOR];
    kiln_vector_values(a, vectors[0]);
    kiln_vector_values(b, vectors[1]);
    if (adjacent) {
        KILN_UNROLL
        for (int i = 0; i < RUN; i++) {
            kiln_turn(&a[2 * i], &a[2 * i + 1], all->d[i]);
            kiln_turn(&b[2 * i], &b[2 * i + 1], all->d[RUN + i]);
        }
    } else {
        KILN_UNROLL
        for (int i = 0; i < KILN_VECTOR; i++)
            kiln_turn(&a[i], &b[i], all->d[i]);
    }
    vectors[0] = kiln_vector_of(a);
    vectors[1] = kiln_vector_of(b);
}

/* Before the loop over the halves of a head: one copy of the conversion, for the size of the image, but where memory is
 * so fast that moving vectors between registers would count. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
#define FOR_HALVES KILN_UNROLL
#else
#define FOR_HALVES KILN_LOOP
#endif

/* A head is its pairs of vectors, and then the vectors after them, which are copied. */
KILN_INLINE void run_vectors(const kiln_rope_kv_store_args *args, const share *all) {
    const uint32_t pairs = args->pairs, end = pairs + (args->head_dim - 2 * pairs), round = all->lanes * KILN_VECTOR;
    const bool adjacent = args->step == 1;
    KILN_LOOP
    for (uint32_t at = all->lane * KILN_VECTOR; at < end; at += round) {
        const bool rotates = at < pairs;
        uint32_t first = at, second = at + args->step, left = first, right = first + RUN;
        if (!rotates) {
            first = second = at + pairs;
        } else if (adjacent) { /* neighbouring threads have neighbouring vectors, as in kiln_turn_heads */
            const uint32_t begin = at - all->lane * KILN_VECTOR, rest = pairs - begin;
            first += begin;
            second = first + (rest < round ? rest : round);
            left = first / 2;
            right = second / 2;
        }
        kiln_vector held[2 * HEADS];
        KILN_UNROLL
        for (uint32_t i = 0; i < HEADS; i++)
            if (i < all->count) {
                const kiln_element *from = source_of(args, all->token, all->head + i * all->slots);
                held[2 * i] = kiln_vector_load(from + first);
                held[2 * i + 1] = kiln_vector_load(from + second);
            }
        directions d;
        if (rotates && all->turns) take_directions(&d, args, all->position, left, right);
        share s = *all;
        KILN_LOOP
        for (uint32_t i = 0; i < all->count; i++, advance(&s)) {
            const target t = target_of(LATE(args), &s, rotates);
            if (t.turned) turn_vectors(held, &d, adjacent);
            FOR_HALVES
            for (uint32_t half = 0; half < 2; half++)
                if (t.there && (!half || rotates)) give_vector(&t, half ? second : first, half ? held[1] : held[0]);
            KILN_UNROLL
            for (uint32_t j = 2; j < 2 * HEADS; j++)
                held[j - 2] = held[j];
        }
    }
}

/* ---- Pair by pair ---- */

/* The direction of a pair. Its frequency is read before the position is waited for. */
KILN_INLINE kiln_direction take_direction(const kiln_rope_kv_store_args *args, raw_index position, uint32_t pair) {
    if (args->source == KILN_TURN_BY_FREQUENCY) {
        const uint64_t turns = args->frequencies[pair];
        return kiln_scaled(kiln_direction_of(raw_value(position, args->positions_64) * turns), args->scale);
    }
    const kiln_place none = {{0, 0, 0}, 0, 0};
    const kiln_pairs pairs = pairs_of(args, raw_value(position, args->positions_64));
    return kiln_pair_direction(&pairs, &none, pair);
}

KILN_INLINE void run_pairs(const kiln_rope_kv_store_args *args, const share *all) {
    const uint32_t pairs = args->pairs, end = pairs + (args->head_dim - 2 * pairs);
    KILN_LOOP
    for (uint32_t at = all->lane; at < end; at += all->lanes) {
        const bool rotates = at < pairs;
        const uint32_t first = !rotates ? at + pairs : args->step == 1 ? 2 * at : at;
        const uint32_t second = rotates ? first + args->step : first;
        kiln_element left[HEADS], right[HEADS];
        KILN_UNROLL
        for (uint32_t i = 0; i < HEADS; i++)
            if (i < all->count) {
                const kiln_element *from = source_of(args, all->token, all->head + i * all->slots);
                left[i] = from[first];
                right[i] = from[second];
            }
        kiln_direction d = {1.0f, 0.0f};
        if (rotates && all->turns) d = take_direction(args, all->position, at);
        share s = *all;
        KILN_LOOP
        for (uint32_t i = 0; i < all->count; i++, advance(&s)) {
            const target t = target_of(LATE(args), &s, rotates);
            if (t.turned) {
                float a = kiln_element_to_f32(left[0]), b = kiln_element_to_f32(right[0]);
                kiln_turn(&a, &b, d);
                left[0] = kiln_element_from_f32(a);
                right[0] = kiln_element_from_f32(b);
            }
            if (t.there) give_element(&t, first, left[0]);
            if (t.there && rotates) give_element(&t, second, right[0]);
            left[0] = left[1];
            right[0] = right[1];
        }
    }
}

KILN_ENTRY(rope_kv_store, kiln_rope_kv_store_args) {
    const uint32_t threads_log2 = args.lanes_log2 + args.slots_log2; /* of a token */
    const uint32_t all = args.heads + 2 * args.kv_heads;
    share s;
    s.lanes = 1u << args.lanes_log2;
    s.slots = 1u << args.slots_log2;
    s.lane = kiln_thread() & (s.lanes - 1);
    s.head = kiln_tile() * args.each * s.slots + (kiln_thread() >> args.lanes_log2 & (s.slots - 1));
    s.token = (kiln_block() << (KILN_BLOCK_LOG2 - threads_log2)) + (kiln_thread() >> threads_log2);
    if (s.head >= all || s.token >= (uint64_t)args.tokens) return;
    s.turns = s.head < args.heads + args.kv_heads;
    s.count = args.each > 1 && s.head + s.slots < all ? 2 : 1;
    s.position.low = (uint32_t)s.token;
    s.position.high = (uint32_t)(s.token >> 32);
    s.slot = s.position; /* of no meaning, where nothing is stored */
    if (args.positions) s.position = raw_read(args.positions, args.positions_64, s.token);
    if (args.kv_heads) s.slot = raw_read(args.slot_mapping, args.slots_64, s.token);
    KILN_UNROLL
    for (uint32_t i = 0; i < HEADS; i++) {
        s.scales[i] = 1.0f;
        if (!args.codes || i >= s.count) continue;
        const head_of h = find(&args, s.head + i * s.slots);
        const float *scales = h.is_value ? args.v_scale : args.k_scale;
        if (!h.is_query && scales) s.scales[i] = scales[h.number * args.scale_step];
    }
    if (args.wide & KILN_ROTATE_WIDE_HEADS)
        run_vectors(&args, &s);
    else
        run_pairs(&args, &s);
}
