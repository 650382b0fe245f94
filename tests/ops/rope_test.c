/* rope against f64, and its frequencies against libm in long double. */
#include "tests/ops/harness.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct shape {
    int64_t tokens, heads, pairs;
    int64_t head_padding, y_padding, x_padding; /* the first of both tensors, where they are one */
    int64_t y_place, x_place;
    bool in_place;
    kiln_rope_layout layout;
} shape;

static double any_number(void) {
    return random_number(-4, 4);
}

/* Turned, they are still numbers of f16. */
static double large_number(void) {
    return random_number(-40000, 40000);
}

/* Positions of all sizes, of either sign. */
static double any_position(void) {
    int64_t most = (int64_t)1 << random_integer(0, 31);
    return (double)random_integer(random_integer(0, 3) ? 0 : -most, most - 1);
}

static const double pi = 3.14159265358979323846;

/* The angle of a position: exact in 64 bits, as it is defined. */
static double angle_of(int64_t frequency, double position) {
    uint64_t turns = (uint64_t)frequency * (uint64_t)(int64_t)position;
    return ldexp((double)(int64_t)turns, -64) * 2 * pi;
}

/* Which elements of a head a pair is. */
static void pair_of(kiln_rope_layout layout, int64_t pairs, int64_t pair, int64_t *first, int64_t *second) {
    *first = layout == KILN_ROPE_HALF ? pair : 2 * pair;
    *second = *first + (layout == KILN_ROPE_HALF ? pairs : 1);
}

/* A matrix has a token in each row; the pads between heads are poison too, which matrix_get cannot know: it compares
 * rows whole. So the reference starts with what the memory holds. */
static void run(kiln_stream *stream, precision p, shape s) {
    harness_describe("rope_%s %lld x %lld x %lld pairs, %s, paddings %lld %lld %lld, at %lld %lld%s", precision_name(p),
                     (long long)s.tokens, (long long)s.heads, (long long)s.pairs,
                     s.layout == KILN_ROPE_HALF ? "halves" : "interleaved", (long long)s.head_padding,
                     (long long)s.y_padding, (long long)s.x_padding, (long long)s.y_place, (long long)s.x_place,
                     s.in_place ? ", in place" : "");
    int64_t head = 2 * s.pairs + s.head_padding, width = s.heads * head;
    matrix x = matrix_create(stream, p, s.tokens, width, width + s.x_padding, s.x_place);
    matrix y = matrix_create(stream, p, s.tokens, width, width + s.y_padding, s.y_place);
    matrix positions = matrix_create(stream, I32, 1, s.tokens, 0, AT_END), *to = s.in_place ? &x : &y;
    size_t bytes = sizeof(double) * (size_t)(s.tokens * width);
    double *expected = malloc(bytes), *allowed = calloc(1, bytes);
    int64_t *host = malloc(sizeof *host * (size_t)s.pairs);
    assert_true(expected && allowed && host);
    harness_ok(kiln_rope_frequencies(10000, NULL, s.pairs, host));
    void *frequencies;
    harness_ok(kiln_memory_alloc(stream->device, sizeof *host * (size_t)s.pairs, &frequencies));
    harness_ok(kiln_copy(stream, frequencies, host, sizeof *host * (size_t)s.pairs, KILN_COPY_TO_DEVICE));
    harness_ok(kiln_stream_sync(stream));
    matrix_fill(&x, any_number);
    matrix_fill(&y, any_number);
    matrix_fill(&positions, any_position);
    for (int64_t i = 0; i < s.tokens * width; i++)
        expected[i] = to->values[i];
    for (int64_t i = 0; i < s.tokens * s.heads * s.pairs; i++) {
        int64_t token = i / (s.heads * s.pairs), pair = i % s.pairs, base = i / s.pairs * head, first, second;
        pair_of(s.layout, s.pairs, pair, &first, &second);
        first += base;
        second += base;
        double angle = angle_of(host[pair], positions.values[token]);
        double a = x.values[first], b = x.values[second];
        expected[first] = a * cos(angle) - b * sin(angle);
        expected[second] = a * sin(angle) + b * cos(angle);
        allowed[first] = allowed[second] = 3e-7 * (fabs(a) + fabs(b));
    }
    kiln_rope_params params = {.y = to->data,
                               .x = x.data,
                               .positions = positions.data,
                               .frequencies = frequencies,
                               .tokens = s.tokens,
                               .heads = s.heads,
                               .pairs = s.pairs,
                               .y_stride = to->stride,
                               .y_head_stride = s.head_padding ? head : 0,
                               .x_stride = x.stride == width ? 0 : x.stride,
                               .x_head_stride = s.head_padding ? head : 0,
                               .layout = (int32_t)s.layout};
    harness_ok(operator_function(&kiln__operator_rope, p)->call(stream, &params, sizeof params));
    matrix_expect(to, expected, allowed);
    if (!s.in_place) matrix_expect_unchanged(&x);
    matrix_expect_unchanged(&positions);
    kiln_memory_free(stream->device, frequencies);
    matrix_destroy(&x);
    matrix_destroy(&y);
    matrix_destroy(&positions);
    free(expected);
    free(allowed);
    free(host);
}

static void test_shapes(kiln_stream *stream) {
    static const int64_t pairs[] = {1, 2, 3, 4, 8, 9, 16, 20, 24, 32, 33, 64, 128, 130, 300, 2056};
    static const int64_t places[] = {0, 1, 2, 3, 5, 8, AT_END};
    for (precision p = precision_first(); p < precision_end(); p++) {
        for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
            for (int layout = 0; layout < 2; layout++) {
                shape s = {.tokens = random_integer(1, 5),
                           .heads = random_integer(1, pairs[i] < 64 ? 40 : 5),
                           .pairs = pairs[i],
                           .layout = (kiln_rope_layout)layout};
                run(stream, p, s);
                s.in_place = random_integer(0, 1);
                s.head_padding = random_integer(0, 1) * random_integer(1, 20);
                s.x_padding = random_integer(0, 17);
                s.y_padding = random_integer(0, 17);
                s.x_place = places[random_integer(0, 6)];
                s.y_place = places[random_integer(0, 6)];
                run(stream, p, s);
            }
        }
    }
}

/* By a table of the precision or of f32, packed or as one of cosines and sines side by side: turned as it says, times
 * the scale; a position that it does not have is not turned, but scaled. Without positions a token's number is its own.
 */
static void run_table(kiln_stream *stream, precision p, kiln_rope_layout layout, bool is_f32, bool together, bool wide,
                      bool positioned, int64_t pairs) {
    enum { TOKENS = 9, HEADS = 3, ROWS = 6 };
    harness_describe("rope_%s by a table%s%s, %lld pairs, layout %d, positions %s", precision_name(p),
                     is_f32 ? " of f32" : "", together ? ", cosines and sines side by side" : "", (long long)pairs,
                     layout, positioned ? wide ? "i64" : "i32" : "left out");
    const int64_t head = 2 * pairs, stride = together ? 2 * pairs : pairs + 3;
    const float scale = positioned ? 1.25f : 0;
    matrix x = matrix_create(stream, p, TOKENS, HEADS * head, 0, 0),
           y = matrix_create(stream, p, TOKENS, HEADS * head, 0, 0);
    matrix cosines = matrix_create(stream, is_f32 ? F32 : p, ROWS, together ? stride : pairs, stride, AT_END);
    matrix sines = matrix_create(stream, is_f32 ? F32 : p, ROWS, pairs, stride, AT_END);
    int64_t given[TOKENS] = {0, 5, -1, 6, 3, INT32_MIN, 2, INT32_MAX, 5}, narrow_bits[TOKENS];
    if (wide) given[5] = INT64_MIN, given[7] = (int64_t)1 << 32; /* cut to 32 bits they would be 0 */
    for (int i = 0; i < TOKENS; i++)
        ((int32_t *)narrow_bits)[i] = (int32_t)given[i];
    void *positions;
    harness_ok(kiln_memory_alloc(stream->device, sizeof given, &positions));
    harness_ok(kiln_copy(stream, positions, wide ? given : narrow_bits, sizeof given, KILN_COPY_TO_DEVICE));
    harness_ok(kiln_stream_sync(stream));
    matrix_fill(&x, any_number);
    matrix_fill(&cosines, any_number);
    matrix_fill(&sines, any_number);
    double *expected = malloc(sizeof *expected * (size_t)(TOKENS * HEADS * head));
    double *allowed = malloc(sizeof *allowed * (size_t)(TOKENS * HEADS * head));
    assert_true(expected && allowed);
    for (int64_t i = 0; i < TOKENS * HEADS * pairs; i++) {
        const int64_t token = i / (HEADS * pairs), pair = i % pairs, row = positioned ? given[token] : token;
        const double factor = scale == 0 ? 1 : (double)scale;
        double c = 1, s = 0;
        if (row >= 0 && row < ROWS) {
            c = cosines.values[row * cosines.cols + pair];
            s = together ? cosines.values[row * cosines.cols + pairs + pair] : sines.values[row * pairs + pair];
        }
        int64_t first, second;
        pair_of(layout, pairs, pair, &first, &second);
        first += i / pairs * head;
        second += i / pairs * head;
        const double a = x.values[first], b = x.values[second];
        expected[first] = factor * (a * c - b * s);
        expected[second] = factor * (a * s + b * c);
        allowed[first] = allowed[second] = 3e-7 * factor * (fabs(a) + fabs(b)) * (fabs(c) + fabs(s));
    }
    const char *right = (const char *)cosines.data + (size_t)pairs * precision_size(is_f32 ? F32 : p);
    kiln_rope_params params = {.y = y.data,
                               .x = x.data,
                               .positions = positioned ? positions : NULL,
                               .cosines = cosines.data,
                               .sines = together ? right : sines.data,
                               .tokens = TOKENS,
                               .heads = HEADS,
                               .pairs = pairs,
                               .table_rows = ROWS,
                               .table_stride = stride,
                               .scale = scale,
                               .layout = (int32_t)layout,
                               .index_type = wide ? KILN_INDEX_I64 : KILN_INDEX_I32,
                               .table_type = is_f32 ? KILN_ROPE_TABLE_F32 : KILN_ROPE_TABLE_PRECISION};
    harness_ok(operator_function(&kiln__operator_rope, p)->call(stream, &params, sizeof params));
    matrix_expect(&y, expected, allowed);
    matrix_expect_unchanged(&x);
    kiln_memory_free(stream->device, positions);
    matrix_destroy(&x);
    matrix_destroy(&y);
    matrix_destroy(&cosines);
    matrix_destroy(&sines);
    free(expected);
    free(allowed);
}

static void test_table(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < 32; i++)
            run_table(stream, p, i & 1 ? KILN_ROPE_HALF : KILN_ROPE_INTERLEAVED, i & 2, i & 4, i & 8, i & 16,
                      i & 1 ? 5 : 16);
}

/* Positions of 64 bits, and the scale, with frequencies. */
static void test_wide_positions(kiln_stream *stream) {
    enum { PAIRS = 8 };
    static const int64_t given[] = {0, -3, (int64_t)1 << 40, INT64_MAX, 12345};
    enum { TOKENS = sizeof given / sizeof *given };
    int64_t host[PAIRS];
    void *frequencies, *positions;
    harness_ok(kiln_rope_frequencies(10000, NULL, PAIRS, host));
    harness_ok(kiln_memory_alloc(stream->device, sizeof host, &frequencies));
    harness_ok(kiln_memory_alloc(stream->device, sizeof given, &positions));
    harness_ok(kiln_copy(stream, frequencies, host, sizeof host, KILN_COPY_TO_DEVICE));
    harness_ok(kiln_copy(stream, positions, given, sizeof given, KILN_COPY_TO_DEVICE));
    for (precision p = precision_first(); p < precision_end(); p++) {
        harness_describe("rope_%s at positions of 64 bits, scaled", precision_name(p));
        matrix x = matrix_create(stream, p, TOKENS, 2 * PAIRS, 0, 0),
               y = matrix_create(stream, p, TOKENS, 2 * PAIRS, 0, 0);
        matrix_fill(&x, any_number);
        double expected[TOKENS * 2 * PAIRS], allowed[TOKENS * 2 * PAIRS];
        for (int64_t i = 0; i < TOKENS * PAIRS; i++) {
            const int64_t at = i / PAIRS * 2 * PAIRS + i % PAIRS * 2;
            const uint64_t turns = (uint64_t)host[i % PAIRS] * (uint64_t)given[i / PAIRS];
            const double angle = ldexp((double)(int64_t)turns, -64) * 2 * pi, a = x.values[at], b = x.values[at + 1];
            expected[at] = 0.5 * (a * cos(angle) - b * sin(angle));
            expected[at + 1] = 0.5 * (a * sin(angle) + b * cos(angle));
            allowed[at] = allowed[at + 1] = 3e-7 * (fabs(a) + fabs(b));
        }
        kiln_rope_params params = {.y = y.data,
                                   .x = x.data,
                                   .positions = positions,
                                   .frequencies = frequencies,
                                   .tokens = TOKENS,
                                   .heads = 1,
                                   .pairs = PAIRS,
                                   .scale = 0.5f,
                                   .index_type = KILN_INDEX_I64};
        harness_ok(operator_function(&kiln__operator_rope, p)->call(stream, &params, sizeof params));
        matrix_expect(&y, expected, allowed);
        matrix_destroy(&x);
        matrix_destroy(&y);
    }
    kiln_memory_free(stream->device, frequencies);
    kiln_memory_free(stream->device, positions);
}

static void test_refusals(kiln_stream *stream) {
    harness_describe("rope refused");
    matrix x = matrix_create(stream, F32, 1, 64, 0, 0);
    const kiln_operator_function *function = operator_function(&kiln__operator_rope, F32);
    const kiln_rope_params good = {.y = x.data,
                                   .x = x.data,
                                   .cosines = x.data,
                                   .sines = x.data,
                                   .tokens = 1,
                                   .heads = 1,
                                   .pairs = 4,
                                   .table_rows = 2};
    kiln_rope_params params = good;
    params.sines = NULL;
    expect_refusal(stream, function, &params, sizeof params, "sines");
    params = good;
    params.table_rows = -1;
    expect_refusal(stream, function, &params, sizeof params, "table_rows");
    params = good;
    params.table_stride = 3;
    expect_refusal(stream, function, &params, sizeof params, "table_stride");
    params = good;
    params.table_type = 2;
    expect_refusal(stream, function, &params, sizeof params, "table_type");
    params = good;
    params.index_type = -1;
    expect_refusal(stream, function, &params, sizeof params, "index_type");
    params = good;
    params.scale = NAN;
    expect_refusal(stream, function, &params, sizeof params, "scale");
    matrix_expect_unchanged(&x);
    matrix_destroy(&x);
}

/* At position 0 nothing changes, to the bit, however large; elsewhere a NaN reaches the other element of its pair. */
static void test_special_values(kiln_stream *stream) {
    enum { TOKENS = 2, HEADS = 3, PAIRS_MOST = 8 };
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < 4; i++) {
            const kiln_rope_layout layout = (kiln_rope_layout)(i % 2);
            const int64_t pairs = i / 2 ? PAIRS_MOST : 5, head = 2 * pairs, width = HEADS * head;
            harness_describe("rope_%s of special values, %lld pairs, layout %d", precision_name(p), (long long)pairs,
                             layout);
            matrix x = matrix_create(stream, p, TOKENS, width, 0, 0), y = matrix_create(stream, p, TOKENS, width, 0, 0);
            matrix positions = matrix_create(stream, I32, 1, TOKENS, 0, 0);
            int64_t host[PAIRS_MOST], one, other;
            double expected[TOKENS * HEADS * 2 * PAIRS_MOST], allowed[TOKENS * HEADS * 2 * PAIRS_MOST] = {0};
            void *frequencies;
            harness_ok(kiln_rope_frequencies(10000, NULL, pairs, host));
            harness_ok(kiln_memory_alloc(stream->device, sizeof host, &frequencies));
            harness_ok(kiln_copy(stream, frequencies, host, sizeof host, KILN_COPY_TO_DEVICE));
            harness_ok(kiln_stream_sync(stream));
            matrix_set(&positions, (const double[TOKENS]){0, 12345});
            matrix_fill(&x, large_number);
            pair_of(layout, pairs, 3, &one, &other);
            x.values[width + head + one] = NAN; /* of the second token's second head */
            for (int64_t j = 0; j < head; j++)
                x.values[width + 2 * head + j] = NAN; /* and all of its third */
            matrix_set(&x, x.values);
            for (int64_t j = 0; j < width; j++)
                expected[j] = x.values[j];
            for (int64_t j = 0; j < HEADS * pairs; j++) {
                pair_of(layout, pairs, j % pairs, &one, &other);
                one += width + j / pairs * head;
                other += width + j / pairs * head;
                double angle = angle_of(host[j % pairs], 12345), a = x.values[one], b = x.values[other];
                expected[one] = a * cos(angle) - b * sin(angle);
                expected[other] = a * sin(angle) + b * cos(angle);
                allowed[one] = allowed[other] = 3e-7 * (fabs(a) + fabs(b));
            }
            kiln_rope_params params = {.y = y.data,
                                       .x = x.data,
                                       .positions = positions.data,
                                       .frequencies = frequencies,
                                       .tokens = TOKENS,
                                       .heads = HEADS,
                                       .pairs = pairs,
                                       .layout = (int32_t)layout};
            harness_ok(operator_function(&kiln__operator_rope, p)->call(stream, &params, sizeof params));
            matrix_expect(&y, expected, allowed);
            kiln_memory_free(stream->device, frequencies);
            matrix_destroy(&x);
            matrix_destroy(&y);
            matrix_destroy(&positions);
        }
}

/* More pairs than a GPU's threads take one by one. */
static void test_vectors(kiln_stream *stream) {
    static const int64_t pairs[] = {24, 64, 300};
    for (precision p = precision_first(); p < precision_end(); p++) {
        shape s = {.heads = 40, .pairs = pairs[random_integer(0, 2)], .layout = (kiln_rope_layout)random_integer(0, 1)};
        s.tokens = 65536 / (s.heads * s.pairs) + 1;
        run(stream, p, s);
    }
}

/* Tensors of more than the 8 MB from which the CPU writes results past the caches. */
static void test_large(kiln_stream *stream) {
    if (!harness_on_cpu(stream)) return;
    shape s = {.tokens = 701, .heads = 33, .pairs = 50, .x_padding = 3, .y_padding = 5, .x_place = 1, .y_place = 7};
    run(stream, F32, s);
    s = (shape){.tokens = 517, .heads = 64, .pairs = 64, .layout = KILN_ROPE_HALF};
    run(stream, F32, s);
    s.tokens = 1025;
    s.in_place = true;
    run(stream, BF16, s);
}

/* A frequency by YaRN, from its paper and as Hugging Face's models have it, of a head of 2 * pairs elements. */
static long double yarn(const kiln_rope_scaling *scaling, double theta, int64_t pairs, int64_t pair) {
    const long double dim = 2 * (long double)pairs, length = (long double)scaling->original_length;
    const long double fast = scaling->high_factor == 0 ? 32 : scaling->high_factor;
    const long double slow = scaling->low_factor == 0 ? 1 : scaling->low_factor;
    long double low = dim * logl(length / (fast * 2 * acosl(-1))) / (2 * logl(theta));
    long double high = dim * logl(length / (slow * 2 * acosl(-1))) / (2 * logl(theta));
    if (!scaling->untruncated) low = floorl(low), high = ceill(high);
    low = fmaxl(low, 0);
    high = fminl(high, dim - 1);
    if (low == high) high += 0.001L;
    const long double ramp = fminl(fmaxl(((long double)pair - low) / (high - low), 0), 1);
    const long double f = powl(theta, -2 * (long double)pair / dim);
    return f / scaling->factor * ramp + f * (1 - ramp);
}

/* Against libm, whose long double has 11 bits more than what is asked for. */
static void expect_frequencies(double theta, const kiln_rope_scaling *scaling, int64_t pairs) {
    int64_t *found = malloc(sizeof *found * (size_t)pairs);
    assert_non_null(found);
    assert_int_equal(kiln_rope_frequencies(theta, scaling, pairs, found), KILN_OK);
    for (int64_t i = 0; i < pairs; i++) {
        long double f = powl(theta == 0 ? 10000 : theta, -(long double)i / (long double)pairs);
        if (scaling && scaling->kind == KILN_ROPE_LINEAR) f /= scaling->factor;
        if (scaling && scaling->kind == KILN_ROPE_LLAMA3) {
            long double wave = 2 * acosl(-1) / f, length = (long double)scaling->original_length;
            long double low = length / scaling->low_factor, high = length / scaling->high_factor;
            long double smooth = (length / wave - scaling->low_factor) / (scaling->high_factor - scaling->low_factor);
            if (wave > low) {
                f /= scaling->factor;
            } else if (wave >= high) {
                f = (1 - smooth) * f / scaling->factor + smooth * f;
            }
        }
        if (scaling && scaling->kind == KILN_ROPE_YARN) f = yarn(scaling, theta == 0 ? 10000 : theta, pairs, i);
        long double expected = ldexpl(f / (2 * acosl(-1)), 64), error = fabsl((long double)found[i] - expected);
        if (error > 1 + ldexpl(expected, -55))
            fail_msg("theta %g, pair %lld of %lld: %lld, expected %.0Lf", theta, (long long)i, (long long)pairs,
                     (long long)found[i], expected);
    }
    free(found);
}

static void test_frequencies(void **state) {
    (void)state;
    const kiln_rope_scaling linear = {.kind = KILN_ROPE_LINEAR, .factor = 4.5};
    const kiln_rope_scaling llama3 = {
        .kind = KILN_ROPE_LLAMA3, .factor = 8, .low_factor = 1, .high_factor = 4, .original_length = 8192};
    expect_frequencies(0, NULL, 4);
    expect_frequencies(1, NULL, 7);
    expect_frequencies(10000, NULL, 64);
    expect_frequencies(1e30, NULL, 129);
    expect_frequencies(1000000, &linear, 64);
    expect_frequencies(500000, &llama3, 64);
    expect_frequencies(10000, &llama3, 48);
    kiln_rope_scaling yarn_scaling = {.kind = KILN_ROPE_YARN, .factor = 4, .original_length = 32768};
    expect_frequencies(1000000, &yarn_scaling, 64); /* Qwen2.5 */
    expect_frequencies(0, &yarn_scaling, 5);
    yarn_scaling = (kiln_rope_scaling){.kind = KILN_ROPE_YARN,
                                       .factor = 32,
                                       .low_factor = 1,
                                       .high_factor = 32,
                                       .original_length = 4096,
                                       .untruncated = 1};
    expect_frequencies(150000, &yarn_scaling, 32); /* gpt-oss */
    yarn_scaling.original_length = 3;
    expect_frequencies(10000, &yarn_scaling, 32);
}

static float factor_of(const kiln_rope_scaling *scaling) {
    float factor;
    assert_int_equal(kiln_rope_attention_factor(scaling, &factor), KILN_OK);
    return factor;
}

static void test_attention_factor(void **state) {
    (void)state;
    kiln_rope_scaling scaling = {.kind = KILN_ROPE_LINEAR, .factor = 8};
    assert_true(factor_of(NULL) == 1);
    assert_true(factor_of(&scaling) == 1);
    scaling = (kiln_rope_scaling){.kind = KILN_ROPE_YARN, .factor = 4, .original_length = 32768};
    assert_true(fabs((double)factor_of(&scaling) - (0.1 * log(4) + 1)) < 1e-7);
    scaling.factor = 1;
    assert_true(factor_of(&scaling) == 1);
    scaling.factor = 40;
    scaling.mscale = 0.707; /* DeepSeek-V2-Lite */
    assert_true(fabs((double)factor_of(&scaling) - (0.1 * log(40) + 1)) < 1e-7);
    scaling.mscale_all_dim = 1;
    assert_true(fabs((double)factor_of(&scaling) - (0.0707 * log(40) + 1) / (0.1 * log(40) + 1)) < 1e-7);
    float factor = 7;
    scaling.mscale = -1;
    assert_int_equal(kiln_rope_attention_factor(&scaling, &factor), KILN_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(kiln_last_error(), "mscale"));
    assert_true(factor == 0);
    assert_int_equal(kiln_rope_attention_factor(NULL, NULL), KILN_ERROR_INVALID_ARGUMENT);
}

static void expect_refused(double theta, const kiln_rope_scaling *scaling, int64_t pairs, const char *word) {
    int64_t room[4] = {7, 7, 7, 7};
    assert_int_equal(kiln_rope_frequencies(theta, scaling, pairs, room), KILN_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(kiln_last_error(), word));
    assert_int_equal(room[0], 7);
}

static void test_frequencies_refused(void **state) {
    (void)state;
    kiln_rope_scaling scaling = {.kind = KILN_ROPE_LLAMA3, .factor = 8, .low_factor = 4, .high_factor = 4};
    expect_refused(-1, NULL, 4, "theta");
    expect_refused((double)NAN, NULL, 4, "theta");
    expect_refused(10000, NULL, -1, "pairs");
    expect_refused(10000, NULL, INT64_MAX, "at most 2^20");
    expect_refused(10000, &scaling, 4, "high_factor");
    scaling.high_factor = 1e7;
    expect_refused(10000, &scaling, 4, "at most 1e6");
    scaling.high_factor = 5;
    expect_refused(10000, &scaling, 4, "original_length");
    scaling.factor = 0.5;
    expect_refused(10000, &scaling, 4, "factor");
    scaling.kind = 4;
    expect_refused(10000, &scaling, 4, "kind");
    scaling = (kiln_rope_scaling){.kind = KILN_ROPE_YARN, .factor = 2, .low_factor = 40};
    expect_refused(10000, &scaling, 4, "high_factor");
    scaling.low_factor = 0;
    expect_refused(10000, &scaling, 4, "original_length");
    assert_int_equal(kiln_rope_frequencies(10000, NULL, 4, NULL), KILN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(kiln_rope_frequencies(10000, NULL, 0, NULL), KILN_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        on_each_device(test_shapes),
        on_each_device(test_special_values),
        on_each_device(test_vectors),
        on_one_device(test_large),
        on_each_device(test_table),
        on_each_device(test_wide_positions),
        on_one_device(test_refusals),
        cmocka_unit_test(test_frequencies),
        cmocka_unit_test(test_frequencies_refused),
        cmocka_unit_test(test_attention_factor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
