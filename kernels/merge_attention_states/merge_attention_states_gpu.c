/* merge_attention_states: attention to all keys, from attention to parts of them: the sum of exp(lse_i - lse) x_i, in
 * f32, with one rounding.
 *
 * A row is a head of a token. Each of up to 32 threads that share it finds the parts' weights for itself, which costs
 * an exponential or two for two parts beside one or two vectors of 16 bytes, and two for each of more, and sums its
 * vectors over the parts. In 16 bits the exponentials are the hardware's: those of math.h would take more instructions
 * than all else. Those of the first two parts are asked for together, before the weights are known. An output vector
 * is written by the thread that has read it of all parts, so that it may replace the first. A row's lse is written
 * after a barrier, since it may replace one that other threads of the row have yet to read.
 *
 * Floor: one read of all parts and one write at memory bandwidth: of f16 2 parts + 2 bytes an element. Not measured.
 * Measured on an H100 (80 GB HBM3, driver 580.159.04, 2026-11-26) before, when each vector was asked for after the one
 * of the part before, and two parts took four exponentials: 2 parts of 4096 tokens, 32 heads of 128, bf16 49.1 us, 75 %
 * of the speed of a copy.
 * Test: build/tests/ops/merge_attention_states_test. Bench: build/kiln bench merge_attention_states */
#define KILN_PACKED_ELEMENTS
#include "kernels/common/math/packed.h"
#include "kernels/common/span.h"

#if !defined(KILN_PART_f32)
#define KILN_QUERY_QUICKLY /* a result of 16 bits has an error of 2.4e-4 and more from its rounding */
#endif
#include "kernels/merge_attention_states/query.h"

enum { AHEAD = 2, PAIRS = KILN_VECTOR / 2 }; /* vectors that a thread asks for at once */

KILN_INLINE void first_vector(kiln_packed *sums, kiln_vector vector, float weight) {
    kiln_packed pairs[PAIRS];
    kiln_vector_pairs(pairs, vector);
    KILN_UNROLL
    for (int i = 0; i < PAIRS; i++)
        sums[i] = kiln_packed_mul(pairs[i], kiln_pack(weight, weight));
}

KILN_INLINE void add_vector(kiln_packed *sums, kiln_vector vector, float weight) {
    kiln_packed pairs[PAIRS];
    kiln_vector_pairs(pairs, vector);
    KILN_UNROLL
    for (int i = 0; i < PAIRS; i++)
        sums[i] = kiln_packed_fma(pairs[i], kiln_pack(weight, weight), sums[i]);
}

/* A vector of each of the first two parts, of which one may be all there is. */
typedef struct first_vectors {
    kiln_vector of[2];
} first_vectors;

KILN_INLINE void load_first(first_vectors *first, const kiln_merge_attention_states_args *args, const kiln_query *q,
                            kiln_span s, uint32_t vector) {
    KILN_UNROLL
    for (uint32_t k = 0; k < AHEAD; k++, vector += s.lanes) {
        if (vector < s.whole) {
            const kiln_element *x = (const kiln_element *)args->x + q->x + vector * KILN_VECTOR;
            first[k].of[0] = kiln_vector_load(x);
            if (args->parts > 1) first[k].of[1] = kiln_vector_load(x + args->x_part_stride);
        }
    }
}

KILN_INLINE void put_vector(const kiln_merge_attention_states_args *args, const kiln_query *q,
                            const first_vectors *first, uint32_t vector, float scale) {
    const kiln_element *x = (const kiln_element *)args->x + q->x + vector * KILN_VECTOR;
    kiln_packed sums[PAIRS];
    first_vector(sums, first->of[0], q->first[0] * scale);
    if (args->parts > 1) add_vector(sums, first->of[1], q->first[1] * scale);
    KILN_LOOP
    for (uint32_t i = 2; i < args->parts; i++) {
        float weight = kiln_query_weight(q, i) * scale;
        add_vector(sums, kiln_vector_load(x + i * args->x_part_stride), weight);
    }
    kiln_vector_store((kiln_element *)args->out + q->out + vector * KILN_VECTOR, kiln_vector_of_pairs(sums));
}

KILN_INLINE void put_element(const kiln_merge_attention_states_args *args, const kiln_query *q, uint32_t col,
                             float scale) {
    const kiln_element *x = (const kiln_element *)args->x + q->x + col;
    float sum = 0.0f;
    KILN_LOOP
    for (uint32_t i = 0; i < args->parts; i++, x += args->x_part_stride) {
        float weight = kiln_query_weight(q, i);
        sum = KILN_FMA(kiln_element_to_f32(*x), weight, sum);
    }
    ((kiln_element *)args->out)[q->out + col] = kiln_element_from_f32(sum * scale);
}

KILN_ENTRY(merge_attention_states, kiln_merge_attention_states_args) {
    kiln_span s = kiln_span_of(&args.shape);
    if (s.row - (kiln_thread() >> args.shape.lanes_log2) >= (uint64_t)args.shape.rows) return; /* the whole block */
    bool inside = s.row < (uint64_t)args.shape.rows;
    kiln_query q =
        kiln_query_at(&args, inside ? (uint32_t)s.row : 0); /* beyond the last: computes the first and writes nothing */
    first_vectors first[AHEAD];
    load_first(first, &args, &q, s, s.first);
    kiln_query_weigh(&q, args.parts);
    if (inside) {
        const float scale = kiln_query_scale(&q);
        KILN_LOOP
        for (uint32_t begin = s.first; begin < s.whole; begin += AHEAD * s.lanes) {
            if (begin != s.first) load_first(first, &args, &q, s, begin);
            KILN_UNROLL
            for (uint32_t k = 0, vector = begin; k < AHEAD; k++, vector += s.lanes) {
                if (vector >= s.whole) break;
                put_vector(&args, &q, &first[k], vector, scale);
            }
        }
        KILN_LOOP
        KILN_FOR_REST(s, col)
        put_element(&args, &q, col, scale);
    }
    kiln_barrier();
    if (inside && (kiln_thread() & (s.lanes - 1)) == 0) kiln_query_put_lse(&args, &q);
}
