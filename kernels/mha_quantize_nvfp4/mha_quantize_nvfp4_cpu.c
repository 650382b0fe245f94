/* mha_quantize_nvfp4 on the CPU: the operator's definition. mha_quantize_nvfp4_gpu.c says what its blocks do.
 *
 * Floor: k and v are read twice, q once, and 0.5625 bytes are written for each element, at memory bandwidth.
 * Test: build/tests/ops/mha_quantize_nvfp4_test. Bench: build/kiln bench mha_quantize_nvfp4 --device cpu */
#include "kernels/common/quantize/nvfp4_cpu.h"
#include "kernels/common/vec.h"
/* after them: */
#include "kernels/mha_quantize_nvfp4/mha_quantize_nvfp4_args.h"
#include "kernels/mha_quantize_nvfp4/mha_quantize_nvfp4_scale.h"

#define CHANNELS mha_quantize_nvfp4_channels
#define JOIN     mha_quantize_nvfp4_join
#include "kernels/common/attention/mha_quantize_cpu.h"

enum { BLOCK = KILN_NVFP4_BLOCK, BLOCK_BYTES = KILN_NVFP4_BLOCK_BYTES };

/* Of q or of k. */
typedef struct tokens {
    const void *from;
    uint8_t *codes, *blocks;
    float *scales;
    const float *means; /* NULL: none */
    uint64_t stride;
    uint32_t heads, number, first, end; /* tokens */
} tokens;

KILN_INLINE void tokens_codes(const kiln_mha_quantize_nvfp4_args *args, const tokens *of, float *values,
                              kiln_cpu_dtype dtype) {
    const kiln_mha_quantize_args *plain = &args->plain;
    const uint32_t size = plain->head_dim, padded = args->head_blocks * BLOCK;
    for (uint32_t t = of->first; t < kiln_min(of->first + TOKENS, of->end); t++) {
        const uint32_t sequence = of->means ? sequence_of_key(plain, t) : 0;
        memset(values, 0, padded * sizeof *values);
        if (!of->means || sequence < plain->batch) {
            const void *from = kiln_at(of->from, t * of->stride + (uint64_t)of->number * size, dtype);
            const float *loaded = kiln_tile_load(values, from, size, dtype);
            if (loaded != values) memcpy(values, loaded, size * sizeof *values);
            for (uint32_t d = 0; of->means && d < size; d++)
                values[d] -= of->means[(uint64_t)sequence * plain->kv_heads * size + d];
        }
        const float scale = kiln_nvfp4_global(kiln_float(kiln_greatest_magnitude(0, values, size)), 0);
        const uint64_t place = ((uint64_t)t * of->heads + of->number) * args->head_blocks;
        of->scales[t] = scale;
        kiln_nvfp4_encode(of->codes + place * BLOCK_BYTES, of->blocks + place, values, 1.0f / scale, args->head_blocks);
    }
}

/* A tile of v, a vector of channels at a time. */
typedef struct values_tile {
    float keys[KILN_VALUE_TILE][SIZE], channels[KILN_VEC][KILN_VALUE_TILE];
} values_tile;
_Static_assert(sizeof(values_tile) <= KILN_CPU_SCRATCH, "fits");

/* Writes the codes of a vector of channels from `first` on. channels: the number of channel 0 among v's scales, rows:
 * among v's rows of blocks, block: the tile's first there. */
KILN_INLINE void channels_codes(const kiln_mha_quantize_nvfp4_args *args, values_tile *held, uint32_t first,
                                uint64_t channels, uint64_t rows, uint64_t block) {
    const kiln_mha_quantize_args *plain = &args->plain;
    for (uint32_t key = 0; key < KILN_VALUE_TILE; key += KILN_VEC) {
        kiln_vec turned[KILN_VEC];
        KILN_UNROLL
        for (uint32_t i = 0; i < KILN_VEC; i++)
            turned[i] = KILN_VEC_LOAD(&held->keys[key + i][first]);
        kiln_vec_transpose(turned);
        KILN_UNROLL
        for (uint32_t i = 0; i < KILN_VEC; i++)
            KILN_VEC_STORE(&held->channels[i][key], turned[i]);
    }
    for (uint32_t d = first; d < kiln_min(first + KILN_VEC, plain->head_dim); d++) {
        const uint64_t place = (rows + d) * args->value_blocks + block;
        kiln_nvfp4_encode(plain->v_codes + place * BLOCK_BYTES, args->v_blocks + place, held->channels[d - first],
                          1.0f / plain->v_scales[channels + d], KILN_VALUE_TILE_BLOCKS);
    }
}

KILN_INLINE void values_codes(const kiln_mha_quantize_nvfp4_args *args, uint32_t kv_head, uint32_t tile,
                              values_tile *held, kiln_cpu_dtype dtype) {
    const kiln_mha_quantize_args *plain = &args->plain;
    const uint32_t batch = sequence_of_tile(plain, tile), size = plain->head_dim;
    const keys k = keys_of(plain, batch);
    const uint32_t key = (tile - kiln_value_tile(k.first, batch)) * KILN_VALUE_TILE;
    const uint64_t channels = ((uint64_t)batch * plain->kv_heads + kv_head) * size;
    const uint32_t count = key < k.count ? (uint32_t)kiln_min(k.count - key, KILN_VALUE_TILE) : 0;
    for (uint32_t i = 0; i < KILN_VALUE_TILE; i++) {
        float *values = held->keys[i];
        if (i >= count) {
            memset(values, 0, size * sizeof *values);
            continue;
        }
        const uint64_t at = (k.first + (uint64_t)key + i) * (uint64_t)plain->v_stride + (uint64_t)kv_head * size;
        const float *loaded = kiln_tile_load(values, kiln_at(plain->v, at, dtype), size, dtype);
        if (loaded != values) memcpy(values, loaded, size * sizeof *values);
        for (uint32_t d = 0; plain->v_means && d < size; d++)
            values[d] -= plain->v_means[channels + d];
    }
    for (uint32_t first = 0; first < size; first += KILN_VEC)
        channels_codes(args, held, first, channels, (uint64_t)kv_head * size, (uint64_t)tile * KILN_VALUE_TILE_BLOCKS);
}

KILN_OUTLINED void mha_quantize_nvfp4_codes(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_mha_quantize_nvfp4_args args =
        *(const kiln_mha_quantize_nvfp4_args *)arguments; /* a copy, which no store can change */
    const kiln_mha_quantize_args *plain = &args.plain;
    for (uint64_t block = span->begin; block < span->end; block++) {
        const uint32_t number = (uint32_t)(block % span->grid[0]), place = (uint32_t)(block / span->grid[0]);
        if (number >= plain->heads + plain->kv_heads) {
            const uint32_t kv_head = number - plain->heads - plain->kv_heads;
            for (uint32_t tile = 2 * place; tile < 2 * place + 2 && tile * KILN_VALUE_TILE_BLOCKS < args.value_blocks;
                 tile++)
                values_codes(&args, kv_head, tile, span->scratch, dtype);
            continue;
        }
        const bool is_key = number >= plain->heads;
        tokens of = {.from = plain->q,
                     .codes = plain->q_codes,
                     .blocks = args.q_blocks,
                     .scales = plain->q_scales + (uint64_t)number * plain->tokens,
                     .stride = (uint64_t)plain->q_stride,
                     .heads = plain->heads,
                     .number = number,
                     .first = place * TOKENS,
                     .end = plain->tokens};
        if (is_key) {
            of.from = plain->k;
            of.codes = plain->k_codes;
            of.blocks = args.k_blocks;
            of.number = number - plain->heads;
            of.scales = plain->k_scales + (uint64_t)of.number * plain->kv_tokens;
            of.means = plain->k_means + (uint64_t)of.number * plain->head_dim;
            of.stride = (uint64_t)plain->k_stride;
            of.heads = plain->kv_heads;
            of.end = plain->kv_tokens;
        }
        tokens_codes(&args, &of, span->scratch, dtype);
    }
}
KILN_CPU_KERNEL(mha_quantize_nvfp4_codes)
