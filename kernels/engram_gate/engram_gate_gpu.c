/* engram_gate: y = sigmoid(sign(g) sqrt(max(|g|, 1e-6))) * value for each token and group, g the product of key's norm
 * and query's divided by sqrt(cols), and the norm of y beside it, in f32, with one rounding of each.
 *
 * A group of a token is a row, as in rmsnorm: 1 to 32 threads share it and reduce by shuffles alone, or the whole block
 * shares it. One pass sums the squares of key, query and value and the products of key and query; the norm of y needs
 * no pass of its own, since y is value times one number. value is read again for the result, from a cache. The blocks
 * of a token's groups are neighbours in the grid, so that value comes from memory once.
 *
 * Floor: a read of key and query, a read of value for all groups, and a write of y and normed, at memory bandwidth: of
 * 16 bits with four groups 8.5 bytes an element of y. docs/kernel-report.md has the instruction counts and the time
 * that they take. Not measured on hardware. Test: build/tests/ops/engram_gate_test. Bench: build/kiln bench engram_gate
 */
#include "kernels/common/reduce/reduce.h"
#include "kernels/common/span.h"
#include "kernels/common/values.h"
#include "kernels/engram_gate/gate.h"

/* A vector of weights; ones where there are none. */
KILN_INLINE void weights_of(float *weights, const kiln_element *weight, uint32_t vector) {
    KILN_UNROLL
    for (int i = 0; i < KILN_VECTOR; i++)
        weights[i] = 1.0f;
    if (weight) kiln_vector_values(weights, kiln_vector_load(weight + vector * KILN_VECTOR));
}
KILN_INLINE float weight_of(const kiln_element *weight, uint32_t i) {
    return weight ? kiln_element_to_f32(weight[i]) : 1.0f;
}

KILN_INLINE void add(kiln_engram_sums *sums, float key, float query, float value, float key_weight,
                     float query_weight) {
    sums->keys = KILN_FMA(key, key, sums->keys);
    sums->queries = KILN_FMA(query, query, sums->queries);
    sums->products = KILN_FMA(key * key_weight, query * query_weight, sums->products);
    sums->values = KILN_FMA(value, value, sums->values);
}

KILN_INLINE kiln_engram_sums sums_of(kiln_span s, const kiln_engram_gate_args *args, const kiln_element *value,
                                     const kiln_element *key_weight, const kiln_element *query_weight) {
    const kiln_element *key = kiln_span_of_input(s, args->key, args->key_stride);
    const kiln_element *query = kiln_span_of_input(s, args->query, args->query_stride);
    kiln_engram_sums sums = {0.0f, 0.0f, 0.0f, 0.0f};
    KILN_LOOP
    KILN_FOR_WHOLE(s, vector) {
        float keys[KILN_VECTOR], queries[KILN_VECTOR], values[KILN_VECTOR];
        float key_weights[KILN_VECTOR], query_weights[KILN_VECTOR];
        kiln_vector_values(keys, kiln_vector_load(key + vector * KILN_VECTOR));
        kiln_vector_values(queries, kiln_vector_load(query + vector * KILN_VECTOR));
        kiln_vector_values(values, kiln_vector_load(value + vector * KILN_VECTOR));
        weights_of(key_weights, key_weight, vector);
        weights_of(query_weights, query_weight, vector);
        KILN_UNROLL
        for (int i = 0; i < KILN_VECTOR; i++)
            add(&sums, keys[i], queries[i], values[i], key_weights[i], query_weights[i]);
    }
    KILN_LOOP
    KILN_FOR_REST(s, i)
    add(&sums, kiln_element_to_f32(key[i]), kiln_element_to_f32(query[i]), kiln_element_to_f32(value[i]),
        weight_of(key_weight, i), weight_of(query_weight, i));
    return sums;
}

/* Writes value * gate and, if it is wanted, that times the norm and the weights. */
KILN_INLINE void put(kiln_span s, const kiln_engram_gate_args *args, const kiln_element *value,
                     const kiln_element *weight, float gate, float norm) {
    kiln_element *y = kiln_span_in(s, args->y, args->y_stride);
    kiln_element *normed = kiln_span_in(s, args->normed, args->normed_stride);
    KILN_LOOP
    KILN_FOR_WHOLE(s, vector) {
        float values[KILN_VECTOR], weights[KILN_VECTOR];
        kiln_vector_values(values, kiln_vector_load(value + vector * KILN_VECTOR));
        KILN_UNROLL
        for (int i = 0; i < KILN_VECTOR; i++)
            values[i] *= gate;
        kiln_vector_store(y + vector * KILN_VECTOR, kiln_vector_of(values));
        if (!args->normed) continue;
        weights_of(weights, weight, vector);
        KILN_UNROLL
        for (int i = 0; i < KILN_VECTOR; i++)
            values[i] = values[i] * norm * weights[i];
        kiln_vector_store(normed + vector * KILN_VECTOR, kiln_vector_of(values));
    }
    KILN_LOOP
    KILN_FOR_REST(s, i) {
        float gated = kiln_element_to_f32(value[i]) * gate;
        y[i] = kiln_element_from_f32(gated);
        if (args->normed) normed[i] = kiln_element_from_f32(gated * norm * weight_of(weight, i));
    }
}

/* The weights of a block's group, or none. */
KILN_INLINE const kiln_element *group_of(kiln_span s, const void *weight) {
    return weight ? (const kiln_element *)weight + s.start : 0;
}

KILN_ENTRY(engram_gate, kiln_engram_gate_args) {
    KILN_SHARED float exchange[KILN_SUBGROUPS];
    kiln_span s = kiln_span_of(&args.shape);
    uint32_t lanes_log2 = args.shape.lanes_log2;
    if (s.row - (kiln_thread() >> lanes_log2) >= (uint64_t)args.shape.rows) return; /* the whole block */
    const kiln_element *value = (const kiln_element *)args.value + s.row * (uint64_t)args.value_stride;

    /* Rows beyond the last take part with no elements: a reduction needs all threads. */
    kiln_engram_sums sums = sums_of(s, &args, value, group_of(s, args.key_weight), group_of(s, args.query_weight));
    sums.keys = kiln_reduce(sums.keys, lanes_log2, exchange, KILN_REDUCE_SUM);
    sums.queries = kiln_reduce(sums.queries, lanes_log2, exchange, KILN_REDUCE_SUM);
    sums.products = kiln_reduce(sums.products, lanes_log2, exchange, KILN_REDUCE_SUM);
    if (args.normed) sums.values = kiln_reduce(sums.values, lanes_log2, exchange, KILN_REDUCE_SUM);
    float gate = kiln_engram_sigmoid(&args, sums);
    put(s, &args, value, group_of(s, args.norm_weight), gate, kiln_engram_norm(&args, sums, gate));
}
