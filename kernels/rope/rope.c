/* rope, host side, and the frequencies. */
#include "kernels/common/rotate_host.h"
#include "kernels/rope/rope_args.h"

extern const kiln_bundle kiln__bundle_rope;

enum {
#define KILN_KERNEL(name) KERNEL_##name,
#include "kernels/rope/rope.def"
};

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
    KILN__REQUIRE(params->reserved == 0, "%s: reserved is %d: must be 0", name, params->reserved);
    if (KILN__UNLIKELY(!tokens || !heads || !pairs)) return KILN_OK;

    unsigned size_log2 = kiln__part_size_log2(part);
    kiln__rotated y = {"y", params->y, params->y_stride, params->y_head_stride};
    kiln__rotated x = {"x", params->x, params->x_stride, params->x_head_stride};
    KILN__TRY(kiln__rotated_check(name, &y, tokens, heads, pairs, size_log2));
    KILN__TRY(kiln__rotated_check(name, &x, tokens, heads, pairs, size_log2));
    KILN__TRY(kiln__tensor_check(name, "positions", params->positions, 1, tokens, tokens, 2));
    KILN__TRY(kiln__tensor_check(name, "frequencies", params->frequencies, 1, pairs, pairs, 3));
    KILN__TRY(kiln__rotated_in_place_check(name, &y, &x));

    const kiln_module *module;
    KILN__TRY(kiln__operator_require(stream, KILN__OPERATOR_rope, part, &kiln__bundle_rope, &module));
    unsigned lanes_log2 = kiln__rotate_lanes_log2(pairs, size_log2);
    const kiln_rope_args args = {
        .y = params->y,
        .x = params->x,
        .positions = params->positions,
        .frequencies = (const uint64_t *)params->frequencies,
        .tokens = tokens,
        .y_stride = y.stride,
        .y_head_stride = y.head_stride,
        .x_stride = x.stride,
        .x_head_stride = x.head_stride,
        .heads = (uint32_t)heads,
        .pairs = (uint32_t)pairs,
        .lanes_log2 = lanes_log2,
        .step = params->layout == KILN_ROPE_HALF ? (uint32_t)pairs : 1,
        .wide = kiln__rotated_wide(&y, &x, tokens, heads, pairs, size_log2),
    };
    kiln_launch_config config;
    KILN__TRY(kiln__grid(name, kiln__blocks(heads, lanes_log2), (uint64_t)tokens, &config));
    return kiln__operator_launch(stream, &module->kernels[KERNEL_rope], &config, &args, sizeof args);
}

#define FUNCTION(part, size) KILN__OPERATOR_FUNCTION(rope, part)
KILN__FLOAT_PARTS(FUNCTION)

/* ---- Frequencies -------------------------------------------------------------------------------------------------
 *
 * libc alone has no exp and log: series in long double, good to f64's last bit. */

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

/* "Llama 3" scaling: long waves are stretched by the factor, short ones stay, and those between are blended. */
static long double llama3(const kiln_rope_scaling *scaling, long double frequency) {
    long double waves = (long double)scaling->original_length * frequency / TURN; /* in the original context */
    if (waves > scaling->high_factor) return frequency;
    if (waves < scaling->low_factor) return frequency / scaling->factor;
    long double blend = (waves - scaling->low_factor) / (scaling->high_factor - scaling->low_factor);
    return (1 - blend) * frequency / scaling->factor + blend * frequency;
}

static kiln_status scaling_check(const kiln_rope_scaling *scaling) {
    const char *name = "kiln_rope_frequencies";
    KILN__REQUIRE((uint32_t)scaling->kind <= KILN_ROPE_LLAMA3,
                  "%s: scaling kind is %d: must be none (0), linear (1) or llama3 (2)", name, scaling->kind);
    KILN__REQUIRE(scaling->reserved == 0, "%s: scaling reserved is %d: must be 0", name, scaling->reserved);
    if (scaling->kind == KILN_ROPE_UNSCALED) return KILN_OK;
    KILN__REQUIRE(scaling->factor >= 1 && scaling->factor <= 1e6, "%s: scaling factor is %g: must be from 1 to 1e6",
                  name, scaling->factor);
    if (scaling->kind == KILN_ROPE_LINEAR) return KILN_OK;
    KILN__REQUIRE(
        scaling->low_factor > 0 && scaling->high_factor > scaling->low_factor && scaling->high_factor <= 1e6,
        "%s: scaling low_factor is %g and high_factor %g: must be positive, the second larger and at most 1e6", name,
        scaling->low_factor, scaling->high_factor);
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
    if (scaling) KILN__TRY(scaling_check(scaling));
    if (!pairs) return KILN_OK;
    KILN__REQUIRE(out_frequencies, "%s: out_frequencies is NULL", name);
    long double rate = -log_of(theta == 0 ? 10000 : (long double)theta) / (long double)pairs;
    for (int64_t i = 0; i < pairs; i++) {
        long double frequency = exp_of(rate * (long double)i); /* radians */
        if (scaling && scaling->kind == KILN_ROPE_LINEAR) frequency /= scaling->factor;
        if (scaling && scaling->kind == KILN_ROPE_LLAMA3) frequency = llama3(scaling, frequency);
        out_frequencies[i] = (int64_t)(frequency / TURN * 0x1p64L + 0.5L);
    }
    return KILN_OK;
}
