/* merge_attention_states: attention to all keys, from attention to parts of them: the sum of exp(lse_i - lse) x_i, in
 * f32, with one rounding.
 *
 * A row is a head of a token. Each of up to 32 threads that share it finds the parts' weights for itself, which costs
 * two exponentials for each part beside a vector of 16 bytes, and sums its vectors over the parts. An output vector is
 * written by the thread that has read it of all parts, so that it may replace the first. A row's lse is written after a
 * barrier, since it may replace one that other threads of the row have yet to read.
 *
 * Floor: one read of all parts and one write at memory bandwidth: of f16 2 parts + 2 bytes an element. Not measured.
 * Test: build/tests/ops/merge_attention_states_test. Bench: build/kiln bench merge_attention_states */
#include "kernels/common/span.h"
#include "kernels/common/values.h"

#include "kernels/merge_attention_states/query.h"

KILN_INLINE void add_vector(float *sums, kiln_vector vector, float weight) {
    float values[KILN_VECTOR];
    kiln_vector_values(values, vector);
    KILN_UNROLL
    for (int i = 0; i < KILN_VECTOR; i++)
        sums[i] = KILN_FMA(values[i], weight, sums[i]);
}

KILN_INLINE void put_vector(const kiln_merge_attention_states_args *args, const kiln_query *q, uint32_t vector) {
    const kiln_element *x = (const kiln_element *)args->x + q->x + vector * KILN_VECTOR;
    float sums[KILN_VECTOR] = {0}, scale = kiln_query_scale(q);
    KILN_LOOP
    for (uint32_t i = 0; i < args->parts; i++, x += args->x_part_stride) {
        float weight = kiln_query_weight(q, i);
        add_vector(sums, kiln_vector_load(x), weight);
    }
    KILN_UNROLL
    for (int j = 0; j < KILN_VECTOR; j++)
        sums[j] *= scale;
    kiln_vector_store((kiln_element *)args->out + q->out + vector * KILN_VECTOR, kiln_vector_of(sums));
}

KILN_INLINE void put_element(const kiln_merge_attention_states_args *args, const kiln_query *q, uint32_t col) {
    const kiln_element *x = (const kiln_element *)args->x + q->x + col;
    float sum = 0.0f;
    KILN_LOOP
    for (uint32_t i = 0; i < args->parts; i++, x += args->x_part_stride) {
        float weight = kiln_query_weight(q, i);
        sum = KILN_FMA(kiln_element_to_f32(*x), weight, sum);
    }
    ((kiln_element *)args->out)[q->out + col] = kiln_element_from_f32(sum * kiln_query_scale(q));
}

KILN_ENTRY(merge_attention_states, kiln_merge_attention_states_args) {
    kiln_span s = kiln_span_of(&args.shape);
    if (s.row - (kiln_thread() >> args.shape.lanes_log2) >= (uint64_t)args.shape.rows) return; /* the whole block */
    bool inside = s.row < (uint64_t)args.shape.rows;
    kiln_query q =
        kiln_query_of(&args, inside ? (uint32_t)s.row : 0); /* beyond the last: computes the first and writes nothing */
    if (inside) {
        KILN_LOOP
        KILN_FOR_WHOLE(s, vector)
        put_vector(&args, &q, vector);
        KILN_LOOP
        KILN_FOR_REST(s, col)
        put_element(&args, &q, col);
    }
    kiln_barrier();
    if (inside && (kiln_thread() & (s.lanes - 1)) == 0) kiln_query_put_lse(&args, &q);
}
