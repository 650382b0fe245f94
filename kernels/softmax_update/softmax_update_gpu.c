/* softmax_update: adds a block of scores, or another state, to the state of an online softmax of each row.
 *
 * 1 to 256 threads share a row. A thread asks for eight vectors before it uses the first, so that the latency of the
 * memory is waited for once, and keeps them until the threads of the row have met and know the greatest score. So up to
 * 32 KiB of a row are read once, and each score costs one exponential. Of a longer row the rest is read again, from a
 * cache. The first threads of the block finish a row each, so that the states of all rows of a block cost what those of
 * one do. Rows are not divided between blocks: the operator is for many short blocks of scores, and log_softmax sums
 * few long rows.
 *
 * A weight is 2^(x log2 e - p), rounded once before the power is taken, p being the origin times log2 e; what p was
 * rounded by is made good in the sum. It has an error of 5e-7 for scores of up to 5.5 below the origin, and of 1.2e-6
 * for those of 11 to 22 below it, each of which adds 1.5e-5 or less.
 *
 * Floor: one read of the scores at memory bandwidth, 4 bytes an element of f32, 2 of 16 bits, and 24 bytes for each
 * row's states. Instructions take longer than 0.6 of the memory's time on sm_100 (0.65 to 0.86) and, in 16 bits, on the
 * early chips of gfx9 (0.74; predicted): a score takes five there, eight turns of gfx9's vector unit of which the power
 * has four, and a thread's begin and the two meetings of a row as many again as half of its 64 scores. Two passes over
 * vectors that were asked for one by one, [32768, 1024] in bf16, took 55.7 us (H100 80GB HBM3, driver 580.159.04,
 * 2026-11-26), 44 % of a copy's speed. This: not measured. Test: build/tests/ops/softmax_update_test. Bench: build/kiln
 * bench softmax_update */
#include "kernels/common/math/two.h"
#include "kernels/common/reduce/greatest_number.h"
#include "kernels/common/reduce/reduce.h"
#include "kernels/common/span.h"
#include "kernels/softmax_update/state.h"

#if defined(__HIP__)
#include "kernels/arch/gfx.h"
#include "kernels/common/reduce/row_reduce.h"
#endif

#if defined(KILN_PART_f32)

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

KILN_INLINE float power(float x, base b) {
    return kiln_fast_exp2(KILN_FMA(x - b.shift, KILN_LOG2_E, -b.power));
}

#else

/* How scores become powers of 2: x factor - power. Beyond 2^15 neighbouring bf16 are so far apart that only those of
 * the origin count, for any factor; 1 leaves no error of power's, which is 2^-9 at most with log2 e. */
typedef struct base {
    float factor;
    float power;
    float correction; /* the factor for sums of these powers */
} base;

KILN_INLINE base base_of(float origin) {
    const float finite = kiln_online_origin(origin), distance = kiln_fast_max(finite, -finite);
    const bool far = KILN_ELEMENT_NEGATIVE_INFINITY == 0xff80u && distance >= 0x1p15f; /* of bf16 */
    base b = {far ? 1.0f : KILN_LOG2_E, 0.0f, 1.0f};
    b.power = finite * b.factor;
    b.correction = kiln_fast_exp2(-KILN_FMA(finite, b.factor, -b.power));
    return b;
}

KILN_INLINE float power(float x, base b) {
    return kiln_fast_exp2(KILN_FMA(x, b.factor, -b.power));
}

#endif

enum { HELD = 1 << KILN_SOFTMAX_UPDATE_VECTORS_LOG2 };

/* Vectors of a thread, as they were read. Those that the row does not have are -inf. */
typedef struct held {
    kiln_vector vectors[HELD];
    uint32_t used; /* of the row's thread that has the most */
} held;

/* The unrolled loop over those that are used, in pairs: a pair is skipped where no thread of the row has it. */
#define FOR_USED(h, k)                              \
    KILN_UNROLL                                     \
    for (uint32_t pair = 0; pair < HELD; pair += 2) \
        if (pair < (h)->used) KILN_UNROLL           \
    for (uint32_t k = pair; k < pair + 2; k++)

/* source: the thread's first vector of them, all of which the row has. */
KILN_INLINE void take_all(held *h, kiln_span s, const kiln_element *source) {
    h->used = HELD;
    KILN_UNROLL
    for (uint32_t k = 0; k < HELD; k++)
        h->vectors[k] = kiln_vector_load(source + k * (uint64_t)s.lanes * KILN_VECTOR);
}

/* Those from number `begin` of the row on. */
KILN_INLINE void take(held *h, kiln_span s, uint32_t lanes_log2, uint32_t begin, const kiln_element *source) {
    const uint32_t none = KILN_ELEMENT_NEGATIVE_INFINITY * (sizeof(kiln_element) == 4 ? 1u : 0x10001u);
    if (begin + HELD * s.lanes <= s.whole) {
        take_all(h, s, source);
        return;
    }
    h->used = (s.whole - begin + s.lanes - 1) >> lanes_log2;
    KILN_UNROLL
    for (uint32_t k = 0; k < HELD; k++) {
        h->vectors[k] = (kiln_vector){{none, none, none, none}};
        if (begin + s.first + k * s.lanes < s.whole)
            h->vectors[k] = kiln_vector_load(source + k * (uint64_t)s.lanes * KILN_VECTOR);
    }
}

#if defined(__HIP__) && !defined(KILN_PART_f32)
/* The greatest element as integers have it, two at a time: of bits as signed ones the greatest, unless all are
 * negative; then the least of unsigned ones, which no NaN is. Returns NaN if a positive one is the greatest. */
KILN_INLINE float greatest_quickly(const held *h) {
    typedef int16_t signed_two __attribute__((ext_vector_type(2)));
    typedef uint16_t unsigned_two __attribute__((ext_vector_type(2)));
    const unsigned_two none = KILN_ELEMENT_NEGATIVE_INFINITY;
    signed_two positive = (signed_two)(int16_t)KILN_ELEMENT_NEGATIVE_INFINITY;
    unsigned_two negative = none;
    FOR_USED(h, k) {
        KILN_UNROLL
        for (int i = 0; i < 4; i++) {
            const uint32_t word = h->vectors[k].words[i];
            positive = __builtin_elementwise_max(positive, __builtin_bit_cast(signed_two, word));
            negative = __builtin_elementwise_min(negative, __builtin_bit_cast(unsigned_two, word));
        }
    }
    const int16_t greatest = positive.x > positive.y ? positive.x : positive.y;
    const uint16_t least = negative.x < negative.y ? negative.x : negative.y;
    return kiln_element_to_f32(greatest < 0 ? least : (kiln_element)greatest);
}
#endif

KILN_INLINE float greatest_of(const held *h, float max) {
#if defined(__HIP__) && !defined(KILN_PART_f32)
    const float quickly = greatest_quickly(h);
    if (!kiln_gfx_ballot(quickly != quickly)) return kiln_fast_max(quickly, max);
#endif
    kiln_greatest_number greatest = kiln_greatest_number_none(false);
    FOR_USED(h, k)
    kiln_greatest_number_take(&greatest, h->vectors[k], false);
    return kiln_fast_max(kiln_greatest_number_value(greatest), max);
}

#if defined(__HIP__) && !defined(KILN_PART_f16) /* two at a time where the device can */
KILN_INLINE kiln_online_sum weights_of(const held *h, base b) {
    kiln_two sums = kiln_two_of(0.0f, 0.0f);
    FOR_USED(h, k) {
        float values[KILN_VECTOR];
        kiln_vector_values(values, h->vectors[k]);
        KILN_UNROLL
        for (int i = 0; i < KILN_VECTOR; i += 2) {
            const kiln_two two = kiln_two_of(values[i], values[i + 1]);
#if defined(KILN_PART_f32)
            const kiln_two powers = __builtin_elementwise_fma(two - b.shift, (kiln_two)KILN_LOG2_E, (kiln_two)-b.power);
#else
            const kiln_two powers = __builtin_elementwise_fma(two, (kiln_two)b.factor, (kiln_two)-b.power);
#endif
            sums += kiln_two_of(kiln_fast_exp2(powers.x), kiln_fast_exp2(powers.y));
        }
    }
    return (kiln_online_sum){sums.x + sums.y, 0.0f};
}
#else
KILN_INLINE kiln_online_sum weights_of(const held *h, base b) {
    float values[KILN_VECTOR], sums[2] = {0.0f, 0.0f};
    FOR_USED(h, k) {
        kiln_vector_values(values, h->vectors[k]);
        KILN_UNROLL
        for (int i = 0; i < KILN_VECTOR; i++)
            sums[i % 2] += power(values[i], b);
    }
    return (kiln_online_sum){sums[0] + sums[1], 0.0f};
}
#endif

/* The number of infinite scores among every lanes-th of a row that has some; NaN if one is NaN. */
KILN_INLINE float infinities(kiln_span s, const kiln_element *x) {
    float count = 0.0f;
    KILN_LOOP
    for (uint32_t i = s.first; i < s.count; i += s.lanes) {
        float value = kiln_element_to_f32(x[i]);
        count += value == KILN_INFINITY ? 1.0f : value == value ? 0.0f : value;
    }
    return count;
}

/* Over the threads of a row. exchange is shared memory that nothing else is in. kiln_row_reduce is for AMD alone: its
 * loops are unrolled, which takes more room in an image. */
KILN_INLINE float reduce(float value, uint32_t lanes_log2, float *exchange, kiln_reduction reduction) {
#if defined(__HIP__)
    return kiln_row_reduce(value, lanes_log2, exchange, reduction);
#else
    uint32_t own = kiln_thread() >> KILN_SUBGROUP_LOG2,
             lanes = 1u << (lanes_log2 < KILN_SUBGROUP_LOG2 ? lanes_log2 : KILN_SUBGROUP_LOG2);
    KILN_LOOP
    for (uint32_t mask = 1; mask < lanes; mask *= 2)
        value = kiln_combine(value, kiln_shuffle_xor(value, mask), reduction);
    if (lanes_log2 <= KILN_SUBGROUP_LOG2) return value;
    if (kiln_thread() % KILN_SUBGROUP == 0) exchange[own] = value;
    kiln_barrier();
    uint32_t first = own >> (lanes_log2 - KILN_SUBGROUP_LOG2) << (lanes_log2 - KILN_SUBGROUP_LOG2);
    value = exchange[first];
    KILN_LOOP
    for (uint32_t i = 1; i < 1u << (lanes_log2 - KILN_SUBGROUP_LOG2); i++)
        value = kiln_combine(value, exchange[first + i], reduction);
    return value;
#endif
}

KILN_ENTRY(softmax_update, kiln_softmax_update_args) {
    KILN_SHARED float maxima[KILN_SUBGROUPS], sums[KILN_SUBGROUPS];
    KILN_SHARED float row_maxima[KILN_BLOCK], row_sums[KILN_BLOCK];
    kiln_span s = kiln_span_of(&args.shape);
    uint32_t lanes_log2 = args.shape.lanes_log2, of_block = kiln_thread() >> lanes_log2;
    uint64_t first_row = s.row - of_block;
    if (first_row >= (uint64_t)args.shape.rows) return; /* the whole block */
    const kiln_element *x = kiln_span_of_input(s, args.x, args.x_stride);

    /* Rows beyond the last take part with no elements: a reduction needs all threads. The vectors that are taken last
     * are still there in the second pass, which goes backwards. */
    const uint32_t vectors = HELD * s.lanes, step = vectors * KILN_VECTOR;
    const kiln_element *source = x + s.first * KILN_VECTOR;
    held h;
    float max = -KILN_INFINITY;
    uint32_t begin = 0;
    KILN_LOOP
    for (;; begin += vectors, source += step) {
        take(&h, s, lanes_log2, begin, source);
        max = greatest_of(&h, max);
        if (begin + vectors >= s.whole) break;
    }
    KILN_LOOP
    KILN_FOR_REST(s, i)
    max = kiln_fast_max(kiln_element_to_f32(x[i]), max);
    max = reduce(max, lanes_log2, maxima, KILN_REDUCE_MAX);

    base b = base_of(max);
    kiln_online_sum own = {0.0f, 0.0f};
    const uint32_t last = begin;
    KILN_LOOP
    for (;; begin -= vectors) {
        const kiln_online_sum part = weights_of(&h, b);
        if (begin == last)
            own = part;
        else
            own = kiln_online_add(own, part);
        if (!begin) break;
        source -= step;
        take_all(&h, s, source);
    }
    KILN_LOOP
    KILN_FOR_REST(s, i)
    own = kiln_online_add(own, (kiln_online_sum){power(kiln_element_to_f32(x[i]), b), 0.0f});
    float sum = (own.value + own.rest) * b.correction;
    if (max == KILN_INFINITY) sum = infinities(s, x);
    sum = reduce(sum, lanes_log2, sums, KILN_REDUCE_SUM);
    if (s.first == 0) {
        row_maxima[of_block] = max;
        row_sums[of_block] = sum;
    }
    kiln_barrier();

    uint64_t row = first_row + kiln_thread();
    if (kiln_thread() >= KILN_BLOCK >> lanes_log2 || row >= (uint64_t)args.shape.rows) return;
    kiln_online_state before = kiln_state_of(args.before, row, args.shape.rows);
    kiln_online_state other = kiln_state_of(args.other, row, args.shape.rows);
    kiln_online_state block = {row_maxima[kiln_thread()], {row_sums[kiln_thread()], 0.0f}};
    max = kiln_fast_max(other.max, kiln_fast_max(before.max, block.max));
    kiln_state_put(&args, row, before, other, block, max);
}
