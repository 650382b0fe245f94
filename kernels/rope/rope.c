/* rope, host side, and kiln_rope_frequencies. */
#include "kernels/common/rotary/rotate_host.h"
#include "kernels/rope/rope_args.h"
#include <kiln/ops/rope.h>

extern const kiln_bundle kiln__bundle_rope;

enum {
#define KILN_KERNEL(name) KERNEL_##name,
#include "kernels/rope/rope.def"
};

/* Whether a GPU's threads take a pair each, rather than vectors of them: where there are so few that the time is that
 * of one thread after another computing its pairs' directions. An H100 took 5.3 us for one token of 40 heads of 64
 * pairs by vectors, of which some 2 are the launch, and 3.4 by pairs (driver 580.159.04, 2026-11-26, by ncu). */
static bool by_pairs(const kiln_module *module, const kiln_rope_params *params) {
    const uint64_t most = 1 << 16;
    return module->device->info.backend != KILN_BACKEND_CPU && params->frequencies &&
           (uint64_t)params->tokens <= most && (uint64_t)params->heads * (uint64_t)params->pairs <= most &&
           (uint64_t)params->tokens * (uint64_t)params->heads * (uint64_t)params->pairs <= most;
}

/* How many heads of a token a block begins with at once, as a logarithm: half of them, unless that would leave most of
 * a device idle, since a thread that has two waits for their memory once. */
static unsigned slots_log2_of(int64_t tokens, int64_t heads, unsigned lanes_log2) {
    enum { BLOCKS_LOG2 = 8 };
    const bool many = (uint64_t)tokens >= 1ull << 32 ||
                      (uint64_t)tokens * (uint64_t)heads >> (KILN_BLOCK_LOG2 - lanes_log2) >= 1u << BLOCKS_LOG2;
    const uint64_t wanted = many ? ((uint64_t)heads + KILN_ROPE_HEADS - 1) / KILN_ROPE_HEADS : (uint64_t)heads;
    const unsigned log2 = wanted <= 1 ? 0 : 64 - (unsigned)__builtin_clzll(wanted - 1);
    return log2 < KILN_BLOCK_LOG2 - lanes_log2 ? log2 : KILN_BLOCK_LOG2 - lanes_log2;
}

KILN__HOST_SIDE kiln_status rope(kiln_stream *stream, const kiln_rope_params *params, size_t params_size, unsigned part,
                                 const char *name) {
    kiln_rope_params copy;
    KILN__PARAMS(name, params, params_size, &copy);
    int64_t tokens = params->tokens, heads = params->heads, pairs = params->pairs;
    KILN__TRY(kiln__stream_check(name, stream));
    KILN__TRY(kiln__size_check(name, "tokens", tokens, INT64_MAX >> 8));
    KILN__TRY(kiln__size_check(name, "heads", heads, KILN__ROTATE_MOST));
    KILN__TRY(kiln__size_check(name, "pairs", pairs, KILN__ROTATE_MOST));
    KILN__REQUIRE((uint32_t)params->layout <= KILN_ROPE_HALF, "%s: layout is %d: must be interleaved (0) or half (1)",
                  name, params->layout);
    KILN__REQUIRE((uint32_t)params->table_type <= KILN_ROPE_TABLE_F32,
                  "%s: table_type is %d: must be part (0) or f32 (1)", name, params->table_type);
    KILN__REQUIRE(__builtin_isfinite(params->scale), "%s: scale is %g: must be finite", name, (double)params->scale);
    KILN__TRY(kiln__index_type_check(name, params->index_type));
    if (KILN__UNLIKELY(!tokens || !heads || !pairs)) return KILN_OK;

    unsigned size_log2 = kiln__part_size_log2(part);
    kiln__rotated y = {"y", params->y, params->y_stride, params->y_head_stride};
    kiln__rotated x = {"x", params->x, params->x_stride, params->x_head_stride};
    KILN__TRY(kiln__rotated_check(name, &y, tokens, heads, pairs, size_log2));
    KILN__TRY(kiln__rotated_check(name, &x, tokens, heads, pairs, size_log2));
    bool positions_64 = params->index_type == KILN_INDEX_I64, is_f32 = params->table_type == KILN_ROPE_TABLE_F32;
    int64_t table_stride = params->table_stride;
    if (params->positions)
        KILN__TRY(kiln__tensor_check(name, "positions", params->positions, 1, tokens, tokens, positions_64 ? 3 : 2));
    if (params->frequencies)
        KILN__TRY(kiln__tensor_check(name, "frequencies", params->frequencies, 1, pairs, pairs, 3));
    const kiln__turn_table table = {params->cosines, params->sines, params->table_rows, pairs, is_f32 ? 2 : size_log2};
    if (!params->frequencies || params->cosines || params->sines)
        KILN__TRY(kiln__turn_table_check(name, &table, &table_stride));
    KILN__TRY(kiln__rotated_in_place_check(name, &y, &x));

    const kiln_module *module;
    KILN__TRY(kiln__operator_require(stream, KILN__OPERATOR_rope, part, &kiln__bundle_rope, &module));
    unsigned lanes_log2 = kiln__rotate_lanes_log2(pairs, size_log2);
    uint32_t wide =
        kiln__rotated_wide(&y, &x, tokens, heads, pairs, size_log2) | kiln__turn_table_wide(&table, table_stride);
    if (by_pairs(module, params)) {
        lanes_log2 = kiln__rotate_lanes_log2(pairs, 4); /* as for elements of 16 bytes */
        wide &= ~(uint32_t)KILN_ROTATE_WIDE_HEADS;
    }
    unsigned slots_log2 = slots_log2_of(tokens, heads, lanes_log2);
    bool one_vector = kiln__vectors(pairs, size_log2) <= 1ull << lanes_log2;
    if (wide == (KILN_ROTATE_WIDE_HEADS | KILN_ROTATE_WIDE_TABLES) && !params->frequencies && one_vector &&
        params->layout == KILN_ROPE_HALF)
        wide |= KILN_ROTATE_BY_TABLE;
    const kiln_rope_args args = {
        .y = params->y,
        .x = params->x,
        .positions = params->positions,
        .frequencies = (const uint64_t *)params->frequencies,
        .cosines = params->cosines,
        .sines = params->sines,
        .tokens = tokens,
        .y_stride = y.stride,
        .y_head_stride = y.head_stride,
        .x_stride = x.stride,
        .x_head_stride = x.head_stride,
        .table_rows = params->table_rows,
        .table_stride = table_stride,
        .heads = (uint32_t)heads,
        .pairs = (uint32_t)pairs,
        .lanes_log2 = lanes_log2,
        .step = params->layout == KILN_ROPE_HALF ? (uint32_t)pairs : 1,
        .wide = wide,
        .positions_64 = positions_64,
        .source = params->frequencies ? KILN_TURN_BY_FREQUENCY
                  : is_f32            ? KILN_TURN_BY_TABLE_F32
                                      : KILN_TURN_BY_TABLE,
        .scale = params->scale == 0.0f ? 1.0f : params->scale,
        .slots_log2 = slots_log2,
    };
    kiln_launch_config config;
    uint64_t tile = (uint64_t)KILN_ROPE_HEADS << slots_log2;
    KILN__TRY(
        kiln__grid(name, ((uint64_t)heads + tile - 1) / tile, kiln__blocks(tokens, lanes_log2 + slots_log2), &config));
    return kiln__call_launch(stream, &module->kernels[KERNEL_rope], &config, &args, sizeof args);
}

#define FUNCTION(part, size) KILN__KEPT_OPERATOR_FUNCTION(rope, part)
KILN__FLOAT_PARTS(FUNCTION)

/* ---- Frequencies -------------------------------------------------------------------------------------------------
 *
 * libc without libm has no exp and log: these are series in long double, good to the last bit of f64. */

static const long double LN2 = 0x1.62e42fefa39ef35793c7673007e6p-1L;
static const long double TURN = 0x1.921fb54442d18469898cc51701b8p+2L; /* 2 pi */

static long double exp_of(long double x) {
    int n = (int)(x / LN2 + (x < 0 ? -0.5L : 0.5L));
    long double r = x - (long double)n * LN2, term = 1, sum = 1;
    for (int i = 1; i < 30; i++)
        sum += term *= r / i;
    for (; n > 0; n--)
        sum *= 2;
    for (; n < 0; n++)
        sum /= 2;
    return sum;
}

/* ln x for x >= 1: x = m 2^n, and ln m = 2 artanh((m - 1) / (m + 1)). */
static long double log_of(long double x) {
    int n = 0;
    while (x > 1.5L) {
        x /= 2;
        n++;
    }
    long double z = (x - 1) / (x + 1), power = z, sum = 0;
    for (int i = 1; i < 90; i += 2) {
        sum += power / i;
        power *= z * z;
    }
    return 2 * sum + n * LN2;
}

/* "Llama 3" scaling: long wavelengths are stretched by the factor, short ones stay, and those between are blended. */
static long double llama3(const kiln_rope_scaling *scaling, long double frequency) {
    long double waves = (long double)scaling->original_length * frequency / TURN; /* in the original context */
    if (waves > scaling->high_factor) return frequency;
    if (waves < scaling->low_factor) return frequency / scaling->factor;
    long double blend = (waves - scaling->low_factor) / (scaling->high_factor - scaling->low_factor);
    return (1 - blend) * frequency / scaling->factor + blend * frequency;
}

/* YaRN's beta_slow and beta_fast. */
static double slow_waves(const kiln_rope_scaling *scaling) {
    return scaling->low_factor == 0 ? 1 : scaling->low_factor;
}
static double fast_waves(const kiln_rope_scaling *scaling) {
    return scaling->high_factor == 0 ? 32 : scaling->high_factor;
}

static long double floor_of(long double x) {
    if (x > 1e15L || x < -1e15L) return x;
    long double whole = (long double)(int64_t)x;
    return whole > x ? whole - 1 : whole;
}

/* The pairs between which YaRN blends: the first is kept, the second divided. */
typedef struct pair_range {
    long double first, second;
} pair_range;

/* The number, not rounded, of the pair that makes that many waves in the original context; rate is ln theta / pairs. */
static long double pair_with(const kiln_rope_scaling *scaling, long double waves, long double rate) {
    long double ratio = (long double)scaling->original_length / (waves * TURN);
    long double logarithm = ratio >= 1 ? log_of(ratio) : -log_of(1 / ratio);
    return logarithm / rate;
}

static pair_range yarn_range(const kiln_rope_scaling *scaling, long double rate, int64_t pairs) {
    /* With a theta of 1 all pairs are alike. */
    long double first = rate > 0 ? pair_with(scaling, fast_waves(scaling), rate) : 0;
    long double second = rate > 0 ? pair_with(scaling, slow_waves(scaling), rate) : 0;
    const long double most = 2 * (long double)pairs - 1;
    if (!scaling->untruncated) {
        first = floor_of(first);
        second = -floor_of(-second);
    }
    if (first < 0) first = 0;
    if (second > most) second = most;
    if (second == first) second += 0.001L;
    return (pair_range){first, second};
}

static long double yarn(const kiln_rope_scaling *scaling, const pair_range *range, long double frequency,
                        int64_t pair) {
    long double blend = ((long double)pair - range->first) / (range->second - range->first);
    blend = blend < 0 ? 0 : blend > 1 ? 1 : blend;
    return frequency * (1 - blend) + frequency / scaling->factor * blend;
}

static kiln_status yarn_check(const char *name, const kiln_rope_scaling *scaling) {
    KILN__REQUIRE(scaling->mscale >= 0 && scaling->mscale <= 1e6, "%s: scaling mscale is %g: must be from 0 to 1e6",
                  name, scaling->mscale);
    KILN__REQUIRE(scaling->mscale_all_dim >= 0 && scaling->mscale_all_dim <= 1e6,
                  "%s: scaling mscale_all_dim is %g: must be from 0 to 1e6", name, scaling->mscale_all_dim);
    return KILN_OK;
}

static kiln_status scaling_check(const char *name, const kiln_rope_scaling *scaling) {
    KILN__REQUIRE((uint32_t)scaling->kind <= KILN_ROPE_YARN,
                  "%s: scaling kind is %d: must be none (0), linear (1), llama3 (2) or yarn (3)", name, scaling->kind);
    KILN__REQUIRE(scaling->reserved == 0, "%s: scaling reserved is %d: must be 0", name, scaling->reserved);
    KILN__REQUIRE(scaling->reserved_2 == 0, "%s: scaling reserved_2 is %d: must be 0", name, scaling->reserved_2);
    if (scaling->kind == KILN_ROPE_UNSCALED) return KILN_OK;
    KILN__REQUIRE(scaling->factor >= 1 && scaling->factor <= 1e6, "%s: scaling factor is %g: must be from 1 to 1e6",
                  name, scaling->factor);
    if (scaling->kind == KILN_ROPE_LINEAR) return KILN_OK;
    bool is_yarn = scaling->kind == KILN_ROPE_YARN;
    double low = is_yarn ? slow_waves(scaling) : scaling->low_factor;
    double high = is_yarn ? fast_waves(scaling) : scaling->high_factor;
    KILN__REQUIRE(
        low > 0 && high > low && high <= 1e6,
        "%s: scaling low_factor is %g and high_factor %g: must be positive, the second larger and at most 1e6", name,
        low, high);
    if (is_yarn) KILN__TRY(yarn_check(name, scaling));
    KILN__REQUIRE(scaling->original_length > 0, "%s: scaling original_length is %lld: must be positive", name,
                  (long long)scaling->original_length);
    return KILN_OK;
}

kiln_status kiln_rope_frequencies(double theta, const kiln_rope_scaling *scaling, int64_t pairs,
                                  int64_t *out_frequencies) {
    const char *name = "kiln_rope_frequencies";
    KILN__REQUIRE(theta == 0 || (theta >= 1 && theta <= 1e30), "%s: theta is %g: must be 0 or from 1 to 1e30", name,
                  theta);
    KILN__REQUIRE(pairs >= 0 && pairs <= 1 << 20, "%s: pairs is %lld: is negative or too large: at most 2^20", name,
                  (long long)pairs);
    if (scaling) KILN__TRY(scaling_check(name, scaling));
    if (!pairs) return KILN_OK;
    KILN__REQUIRE(out_frequencies, "%s: out_frequencies is NULL", name);
    const long double rate = log_of(theta == 0 ? 10000 : (long double)theta) / (long double)pairs;
    const bool is_yarn = scaling && scaling->kind == KILN_ROPE_YARN;
    const pair_range blended = is_yarn ? yarn_range(scaling, rate, pairs) : (pair_range){0, 0};
    for (int64_t i = 0; i < pairs; i++) {
        long double frequency = exp_of(-rate * (long double)i); /* radians */
        if (scaling && scaling->kind == KILN_ROPE_LINEAR) frequency /= scaling->factor;
        if (scaling && scaling->kind == KILN_ROPE_LLAMA3) frequency = llama3(scaling, frequency);
        if (is_yarn) frequency = yarn(scaling, &blended, frequency, i);
        out_frequencies[i] = (int64_t)(frequency / TURN * 0x1p64L + 0.5L);
    }
    return KILN_OK;
}

/* YaRN's mscale of a factor. */
static long double attention_scale(long double factor, long double weight) {
    return 0.1L * weight * log_of(factor) + 1;
}

kiln_status kiln_rope_attention_factor(const kiln_rope_scaling *scaling, float *out_factor) {
    const char *name = "kiln_rope_attention_factor";
    KILN__REQUIRE(out_factor, "%s: out_factor is NULL", name);
    *out_factor = 0;
    if (scaling) KILN__TRY(scaling_check(name, scaling));
    long double factor = 1;
    if (scaling && scaling->kind == KILN_ROPE_YARN) {
        /* As in Hugging Face's models, the two weights count only together. */
        bool weighted = scaling->mscale != 0 && scaling->mscale_all_dim != 0;
        factor = attention_scale(scaling->factor, weighted ? scaling->mscale : 1);
        if (weighted) factor /= attention_scale(scaling->factor, scaling->mscale_all_dim);
    }
    *out_factor = (float)factor;
    return KILN_OK;
}
