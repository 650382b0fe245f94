/* mha_quantize on the CPU: the operator's definition. mha_quantize_gpu.c says what its blocks do.
 *
 * Floor: k with means and v are read twice, q once, and a byte is written for each element, at memory bandwidth.
 * Test: build/tests/ops/mha_quantize_test. Bench: build/kiln bench mha_quantize --device cpu */
#include "kernels/common/cpu.h"
#include "kernels/mha_quantize/mha_quantize_scale.h"

#define CHANNELS mha_quantize_channels
#define JOIN     mha_quantize_join
#include "kernels/common/attention/mha_quantize_cpu.h"

/* The tokens of one head that a block quantises. */
typedef struct head {
    const void *from;
    uint8_t *to;
    const float *means; /* [batch, kv_heads, head_dim], from the head on; NULL: none */
    uint64_t stride, codes_stride, offset;
    uint32_t first, end;
    uint32_t size, kv_size; /* of a head, and of all heads of k: the stride between sequences in means */
} head;

/* A token's numbers minus the means; zeros if it belongs to no sequence. Returns the sequence. */
KILN_INLINE uint32_t token_load(const kiln_mha_quantize_args *args, const head *h, uint32_t token, bool is_key,
                                float *values, kiln_cpu_dtype dtype) {
    uint32_t sequence = is_key ? sequence_of_key(args, token) : 0;
    if (is_key && sequence == args->batch) {
        memset(values, 0, h->size * sizeof *values);
        return sequence;
    }
    const float *from = kiln_tile_load(values, kiln_at(h->from, token * h->stride + h->offset, dtype), h->size, dtype);
    if (from != values) memcpy(values, from, h->size * sizeof *values);
    for (uint32_t d = 0; h->means && d < h->size; d++)
        values[d] -= h->means[(uint64_t)sequence * h->kv_size + d];
    return sequence;
}

KILN_INLINE void store(uint8_t *codes, const float *values, float factor, uint32_t size, bool e4m3) {
    KILN_INDEPENDENT
    for (uint32_t d = 0; d < size; d++)
        codes[d] = code_of(values[d] * factor, e4m3);
}

/* Working memory: a token, and the greatest magnitudes of all. */
typedef struct tokens {
    float values[SIZE], amax[TOKENS];
} tokens;
_Static_assert(sizeof(tokens) <= KILN_CPU_SCRATCH, "fits");

KILN_INLINE void tokens_codes(const kiln_mha_quantize_args *args, const head *h, bool is_key, kiln_scale_index index,
                              float *scales, tokens *held, kiln_cpu_dtype dtype) {
    float *amax = held->amax, *values = held->values;
    const uint32_t count = (uint32_t)kiln_min(h->end - h->first, TOKENS);
    for (uint32_t t = 0; t < count; t++) {
        token_load(args, h, h->first + t, is_key, values, dtype);
        amax[t] = 0.0f;
        for (uint32_t d = 0; d < h->size; d++) /* NaN is not greater */
            amax[t] = kiln_max(kiln_float(kiln_bits(values[d]) & 0x7fffffffu), amax[t]);
    }
    for (uint32_t t = 0; t < count; t++) {
        uint64_t place = kiln_scale_at(index, h->first + t);
        float greatest = amax[t];
        for (uint32_t other = 0; index.high && other < count; other++)
            if (kiln_scale_at(index, h->first + other) == place) greatest = kiln_max(amax[other], greatest);
        float scale = scale_of(greatest, greatest_code(args));
        scales[place] = scale;
        token_load(args, h, h->first + t, is_key, values, dtype);
        uint8_t *to = h->to + (h->first + t) * h->codes_stride + h->offset;
        if (args->e4m3)
            store(to, values, 1.0f / scale, h->size, true);
        else
            store(to, values, 1.0f / scale, h->size, false);
    }
}

KILN_INLINE void values_codes(const kiln_mha_quantize_args *args, const head *h, const float *scales, tokens *held,
                              kiln_cpu_dtype dtype) {
    float *values = held->values;
    for (uint32_t t = h->first; t < kiln_min(h->first + TOKENS, h->end); t++) {
        uint32_t sequence = token_load(args, h, t, true, values, dtype);
        uint8_t *to = h->to + t * h->codes_stride + h->offset;
        if (sequence == args->batch) {
            memset(to, 0, h->size);
            continue;
        }
        const float *own = scales + (uint64_t)sequence * h->kv_size;
        KILN_INDEPENDENT
        for (uint32_t d = 0; d < h->size; d++)
            to[d] = kiln_e4m3_of(values[d] * (1.0f / own[d]));
    }
}

KILN_OUTLINED void mha_quantize_codes(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_mha_quantize_args args =
        *(const kiln_mha_quantize_args *)arguments; /* a copy, which no store can change */
    const uint32_t size = args.head_dim, kv_size = args.kv_heads * size;
    for (uint64_t block = span->begin; block < span->end; block++) {
        uint32_t number = (uint32_t)(block % span->grid[0]);
        head h = {.first = (uint32_t)(block / span->grid[0]) * TOKENS, .size = size, .kv_size = kv_size};
        if (number < args.heads) {
            h.from = args.q;
            h.to = args.q_codes;
            h.stride = (uint64_t)args.q_stride;
            h.codes_stride = args.heads * (uint64_t)size;
            h.offset = (uint64_t)number * size;
            h.end = args.tokens;
            if (h.to && h.first < h.end)
                tokens_codes(&args, &h, false, args.q_index, args.q_scales + number * (uint64_t)args.q_scale_rows,
                             span->scratch, dtype);
            continue;
        }
        number -= args.heads;
        uint32_t tensor = number >= args.kv_heads, kv_head = number - (tensor ? args.kv_heads : 0);
        const float *means = tensor ? args.v_means : args.k_means;
        h.from = tensor ? args.v : args.k;
        h.to = tensor ? args.v_codes : args.k_codes;
        h.offset = (uint64_t)kv_head * size;
        h.means = means ? means + h.offset : NULL;
        h.stride = (uint64_t)(tensor ? args.v_stride : args.k_stride);
        h.codes_stride = kv_size;
        h.end = args.kv_tokens;
        if (!h.to || h.first >= h.end) continue;
        if (tensor)
            values_codes(&args, &h, args.v_scales + h.offset, span->scratch, dtype);
        else
            tokens_codes(&args, &h, true, args.k_index, args.k_scales + kv_head * (uint64_t)args.k_scale_rows,
                         span->scratch, dtype);
    }
}
KILN_CPU_KERNEL(mha_quantize_codes)
