/* softmax_update: adds a block of scores, or another state, to the state of an online softmax of each row.
 *
 * 1 to 256 threads share a row. A thread asks for eight vectors before it uses the first, so that the latency of the
 * memory is waited for once, and keeps them until the threads of the row have met and know the greatest score. So up to
 * 32 KiB of a row are read once, and each score costs one exponential. What a longer row has beyond them is read eight
 * vectors at a time: a thread moves the origin of its sum only where its scores are far above it, and the threads meet
 * again. The first threads of the block finish a row each, so that the states of all rows of a block cost what those of
 * one do. Rows are not divided between blocks: the operator is for many short blocks of scores, and log_softmax sums
 * few long rows.
 *
 * A weight is 2^(x log2 e - p), rounded once before the power is taken, p being the origin times log2 e; what p was
 * rounded by is made good in the sum. It has an error of 5e-7 for scores of up to 5.5 below the origin, and of 1.2e-6
 * for those of 11 to 22 below it, each of which adds 1.5e-5 or less.
 *
 * Floor: one read of the scores at memory bandwidth, 4 bytes an element of f32, 2 of 16 bits, and 24 bytes for each
 * row's states. Two passes over vectors that were asked for one by one, [32768, 1024] in bf16, took 55.7 us (H100 80GB
 * HBM3, driver 580.159.04, 2026-11-26), 44 % of a copy's speed. This: not measured.
 * Test: build/tests/ops/softmax_update_test. Bench: build/kiln bench softmax_update */
#include "kernels/common/row_reduce.h"
#include "kernels/common/span.h"
#include "kernels/common/values.h"
#include "kernels/softmax_update/state.h"

/* A thread's share of a row. */
typedef struct share {
    float max;
    float origin; /* of the sum; -inf before the first score */
    kiln_online_sum sum;
} share;

/* How scores become powers of 2: (x - shift) log2 e - power. The difference of scores beyond 2^10 is exact where it
 * counts; that of smaller ones need not be, but power is little. */
typedef struct base {
    float shift;
    float power;
    float correction; /* the factor for sums of these powers */
} base;

KILN_INLINE base base_of(float origin) {
    float finite = kiln_online_origin(origin), distance = kiln_fast_max(finite, -finite);
    bool little = distance < 0x1p10f;
    base b = {little ? 0.0f : finite, little ? finite * KILN_LOG2_E : 0.0f, 1.0f};
    b.correction = KILN_FMA(KILN_FMA(little ? finite : 0.0f, KILN_LOG2_E, -b.power), -0x1.62e43p-1f, 1.0f);
    return b;
}

KILN_INLINE float weight(float x, base b) {
    return kiln_fast_exp2(KILN_FMA(x - b.shift, KILN_LOG2_E, -b.power));
}

/* Eight vectors of a thread, from `vector` on, as they were read. Those beyond `whole` are -inf. */
enum { EIGHT = 1 << KILN_SOFTMAX_UPDATE_VECTORS_LOG2 };

typedef struct eight {
    kiln_vector vectors[EIGHT];
    uint32_t used; /* of a thread of the row that has the most */
} eight;

/* The unrolled loop over those that are used, in pairs: a pair is skipped where no thread of the row has it. */
#define FOR_USED(taken, k)                           \
    KILN_UNROLL                                      \
    for (uint32_t pair = 0; pair < EIGHT; pair += 2) \
        if (pair < (taken)->used) KILN_UNROLL        \
    for (uint32_t k = pair; k < pair + 2; k++)

KILN_INLINE void take(eight *taken, kiln_span s, uint32_t lanes_log2, uint32_t vector, const kiln_element *x) {
    const uint32_t none = KILN_ELEMENT_NEGATIVE_INFINITY * (sizeof(kiln_element) == 4 ? 1u : 0x10001u);
    const kiln_element *source = x + vector * KILN_VECTOR;
    const uint64_t step = (uint64_t)s.lanes * KILN_VECTOR;
    uint32_t begin = vector - s.first;
    taken->used = begin < s.whole ? (s.whole - begin + s.lanes - 1) >> lanes_log2 : 0;
    if (vector + (EIGHT - 1) * s.lanes < s.whole) {
        KILN_UNROLL
        for (uint32_t k = 0; k < EIGHT; k++)
            taken->vectors[k] = kiln_vector_load(source + k * step);
    } else {
        KILN_UNROLL
        for (uint32_t k = 0; k < EIGHT; k++) {
            taken->vectors[k] = (kiln_vector){{none, none, none, none}};
            if (vector + k * s.lanes < s.whole) taken->vectors[k] = kiln_vector_load(source + k * step);
        }
    }
}

KILN_INLINE float greatest_of(const eight *taken) {
    float values[KILN_VECTOR], max = -KILN_INFINITY;
    FOR_USED(taken, k) {
        kiln_vector_values(values, taken->vectors[k]);
        KILN_UNROLL
        for (int i = 0; i < KILN_VECTOR; i++)
            max = kiln_fast_max(values[i], max);
    }
    return max;
}

KILN_INLINE kiln_online_sum weights_of(const eight *taken, base b) {
    float values[KILN_VECTOR], sums[2] = {0.0f, 0.0f};
    FOR_USED(taken, k) {
        kiln_vector_values(values, taken->vectors[k]);
        KILN_UNROLL
        for (int i = 0; i < KILN_VECTOR; i++)
            sums[i % 2] += weight(values[i], b);
    }
    return (kiln_online_sum){(sums[0] + sums[1]) * b.correction, 0.0f};
}

/* Takes scores of which max is the greatest into account, before their weights are added. */
KILN_INLINE void raise(share *own, float max) {
    const float far = 8.0f;
    own->max = kiln_fast_max(own->max, max);
    if (!(max > own->origin + far)) return;
    own->sum = kiln_online_scaled(own->sum, kiln_online_weight(own->origin, max));
    own->origin = max;
}

/* Adds what a thread has of a row besides its first eight vectors. */
KILN_INLINE void add_others(share *own, kiln_span s, uint32_t lanes_log2, const kiln_element *x) {
    KILN_LOOP
    for (uint32_t vector = s.first + EIGHT * s.lanes; vector < s.whole; vector += EIGHT * s.lanes) {
        eight taken;
        take(&taken, s, lanes_log2, vector, x);
        raise(own, greatest_of(&taken));
        own->sum = kiln_online_add(own->sum, weights_of(&taken, base_of(own->origin)));
    }
    KILN_LOOP
    KILN_FOR_REST(s, i) {
        float value = kiln_element_to_f32(x[i]);
        raise(own, kiln_fast_max(value, -KILN_INFINITY));
        base b = base_of(own->origin);
        own->sum = kiln_online_add(own->sum, (kiln_online_sum){weight(value, b) * b.correction, 0.0f});
    }
}

/* The number of infinite scores of a thread that has some; NaN if it has a NaN. */
KILN_INLINE float infinities(kiln_span s, const kiln_element *x) {
    float count = 0.0f;
    KILN_LOOP
    KILN_FOR_WHOLE(s, vector) {
        KILN_LOOP
        for (uint32_t i = 0; i < KILN_VECTOR; i++) {
            float value = kiln_element_to_f32(x[vector * KILN_VECTOR + i]);
            count += value == KILN_INFINITY ? 1.0f : value == value ? 0.0f : value;
        }
    }
    KILN_LOOP
    KILN_FOR_REST(s, i) {
        float value = kiln_element_to_f32(x[i]);
        count += value == KILN_INFINITY ? 1.0f : value == value ? 0.0f : value;
    }
    return count;
}

/* A row's greatest score and the sum of its weights. */
typedef struct row_sum {
    float max;
    float sum;
} row_sum;

/* Whether a row has more than the first eight vectors of its threads. */
KILN_INLINE bool has_others(const kiln_shape *shape) {
    uint64_t held = (uint64_t)EIGHT * KILN_VECTOR << shape->lanes_log2;
    return !shape->wide || (uint64_t)shape->cols > held || shape->cols % KILN_VECTOR != 0;
}

KILN_ENTRY(softmax_update, kiln_softmax_update_args) {
    KILN_SHARED float first_maxima[KILN_SUBGROUPS], maxima[KILN_SUBGROUPS], sums[KILN_SUBGROUPS];
    KILN_SHARED row_sum rows[KILN_BLOCK];
    kiln_span s = kiln_span_of(&args.shape);
    uint32_t lanes_log2 = args.shape.lanes_log2, of_block = kiln_thread() >> lanes_log2;
    uint64_t first_row = s.row - of_block;
    if (first_row >= (uint64_t)args.shape.rows) return; /* the whole block */
    const kiln_element *x = kiln_span_of_input(s, args.x, args.x_stride);

    /* Rows beyond the last take part with no elements: a reduction needs all threads. */
    eight taken;
    take(&taken, s, lanes_log2, s.first, x);
    float max = kiln_row_reduce(greatest_of(&taken), lanes_log2, first_maxima, KILN_REDUCE_MAX);
    share own = {max, max, weights_of(&taken, base_of(max))};
    if (has_others(&args.shape)) { /* the whole block */
        add_others(&own, s, lanes_log2, x);
        max = kiln_row_reduce(own.max, lanes_log2, maxima, KILN_REDUCE_MAX);
        own.sum = kiln_online_scaled(own.sum, kiln_online_weight(own.origin, kiln_online_origin(max)));
    }
    if (max == KILN_INFINITY) own.sum = (kiln_online_sum){infinities(s, x), 0.0f};
    float sum = kiln_row_reduce(own.sum.value + own.sum.rest, lanes_log2, sums, KILN_REDUCE_SUM);
    if (s.first == 0) rows[of_block] = (row_sum){max, sum};
    kiln_barrier();

    uint64_t row = first_row + kiln_thread();
    if (kiln_thread() >= KILN_BLOCK >> lanes_log2 || row >= (uint64_t)args.shape.rows) return;
    kiln_online_state before = kiln_state_of(args.before, row, args.shape.rows);
    kiln_online_state other = kiln_state_of(args.other, row, args.shape.rows);
    row_sum own_row = rows[kiln_thread()];
    max = kiln_fast_max(other.max, kiln_fast_max(before.max, own_row.max));
    float scale = kiln_online_weight(own_row.max, kiln_online_origin(max));
    kiln_state_put(&args, row, before, other, kiln_online_scaled((kiln_online_sum){own_row.sum, 0.0f}, scale), max);
}
