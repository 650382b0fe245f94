/* rope3d against f64: grids that fill their sequences and grids that do not, whose other tokens are copied. */
#include "tests/ops/harness.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct shape {
    int64_t batch, tokens, heads, pairs;
    int64_t frame_pairs, row_pairs; /* 0: as Wan has them */
    int64_t padding, place;         /* of tokens; of x and y */
    bool in_place;
    bool nan; /* all of x is */
    kiln_rope_layout layout;
} shape;

static double any_number(void) {
    return random_number(-4, 4);
}

static double not_a_number(void) {
    return (double)NAN;
}

/* The position on the axis of a pair, or -1 for a token behind the grid's last. */
static int64_t position_of(shape s, const double *grid, int64_t token, int64_t pair) {
    int64_t frames = (int64_t)grid[0], rows = (int64_t)grid[1], cols = (int64_t)grid[2];
    if (frames <= 0 || rows <= 0 || cols <= 0 || token >= frames * rows * cols) return -1;
    bool given = s.frame_pairs || s.row_pairs;
    int64_t first = given ? s.frame_pairs : s.pairs - 2 * (s.pairs / 3);
    int64_t second = first + (given ? s.row_pairs : s.pairs / 3);
    if (pair < first) return token / (rows * cols);
    return pair < second ? token % (rows * cols) / cols : token % cols;
}

/* Grids of any size, some without tokens. */
static void fill_grids(matrix *grids) {
    for (int64_t i = 0; i < grids->rows; i++) {
        for (int axis = 0; axis < 3; axis++)
            grids->values[3 * i + axis] = (double)random_integer(1, 4 + axis);
        if (i % 2) grids->values[3 * i + i / 2] = (double)random_integer(-1, 0);
    }
    matrix_set(grids, grids->values);
}

/* Each pair turned by its position, or copied. */
static void reference(shape s, const matrix *x, const matrix *grids, const int64_t *frequencies, double *expected,
                      double *allowed) {
    memcpy(expected, x->values, sizeof(double) * (size_t)(x->rows * x->cols));
    for (int64_t i = 0; i < s.batch * s.tokens * s.heads * s.pairs; i++) {
        int64_t row = i / (s.heads * s.pairs), pair = i % s.pairs, base = i / s.pairs * 2 * s.pairs;
        bool half = s.layout == KILN_ROPE_HALF;
        int64_t first = base + (half ? pair : 2 * pair), second = first + (half ? s.pairs : 1);
        int64_t position = position_of(s, grids->values + row / s.tokens * 3, row % s.tokens, pair);
        if (position < 0) continue;
        double angle = ldexp((double)frequencies[pair], -64) * 2 * acos(-1) * (double)position;
        double a = x->values[first], b = x->values[second];
        expected[first] = a * cos(angle) - b * sin(angle);
        expected[second] = a * sin(angle) + b * cos(angle);
        allowed[first] = allowed[second] = 3e-7 * (fabs(a) + fabs(b));
    }
}

static void run(kiln_stream *stream, precision p, shape s) {
    harness_describe("rope3d_%s %lld of %lld x %lld x %lld pairs (%lld, %lld), %s, padding %lld, at %lld%s",
                     precision_name(p), (long long)s.batch, (long long)s.tokens, (long long)s.heads, (long long)s.pairs,
                     (long long)s.frame_pairs, (long long)s.row_pairs,
                     s.layout == KILN_ROPE_HALF ? "halves" : "interleaved", (long long)s.padding, (long long)s.place,
                     s.in_place ? ", in place"
                     : s.nan    ? ", of NaNs"
                                : "");
    int64_t width = s.heads * 2 * s.pairs;
    matrix x = matrix_create(stream, p, s.batch * s.tokens, width, width + s.padding, s.place);
    matrix y = matrix_create(stream, p, s.batch * s.tokens, width, width + s.padding, s.place);
    matrix grids = matrix_create(stream, I32, s.batch, 3, 0, AT_END), *to = s.in_place ? &x : &y;
    size_t count = (size_t)(s.batch * s.tokens * width);
    double *expected = malloc(sizeof(double) * count), *allowed = calloc(count, sizeof(double));
    int64_t *host = malloc(sizeof *host * (size_t)s.pairs);
    void *frequencies;
    assert_true(expected && allowed && host);
    harness_ok(kiln_rope_frequencies(4, NULL, s.pairs, host)); /* so that no pair turns slowly */
    harness_ok(kiln_memory_alloc(stream->device, sizeof *host * (size_t)s.pairs, &frequencies));
    harness_ok(kiln_copy(stream, frequencies, host, sizeof *host * (size_t)s.pairs, KILN_COPY_TO_DEVICE));
    harness_ok(kiln_stream_sync(stream));
    matrix_fill(&x, s.nan ? not_a_number : any_number);
    fill_grids(&grids);
    reference(s, &x, &grids, host, expected, allowed);
    kiln_rope3d_params params = {.y = to->data,
                                 .x = x.data,
                                 .grids = grids.data,
                                 .frequencies = frequencies,
                                 .batch = s.batch,
                                 .tokens = s.tokens,
                                 .heads = s.heads,
                                 .pairs = s.pairs,
                                 .y_stride = s.padding ? to->stride : 0,
                                 .x_stride = s.padding ? x.stride : 0,
                                 .frame_pairs = s.frame_pairs,
                                 .row_pairs = s.row_pairs,
                                 .layout = (int32_t)s.layout};
    harness_ok(operator_function(&kiln__operator_rope3d, p)->call(stream, &params, sizeof params));
    matrix_expect(to, expected, allowed);
    if (!s.in_place) matrix_expect_unchanged(&x);
    matrix_expect_unchanged(&grids);
    kiln_memory_free(stream->device, frequencies);
    matrix_destroy(&x);
    matrix_destroy(&y);
    matrix_destroy(&grids);
    free(expected);
    free(allowed);
    free(host);
}

static void test_shapes(kiln_stream *stream) {
    static const int64_t pairs[] = {1, 2, 3, 8, 20, 24, 32, 64, 65, 2056};
    static const int64_t places[] = {0, 0, 1, 3, 8, AT_END};
    for (precision p = precision_first(); p < precision_end(); p++) {
        for (int i = 0; i < 4; i++) { /* by vectors and by pairs */
            shape s = {.batch = 1, .tokens = 3, .heads = 2, .pairs = i / 2 ? 32 : 3, .nan = true};
            s.layout = (kiln_rope_layout)(i % 2);
            run(stream, p, s);
        }
        for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
            shape s = {.batch = random_integer(1, 6),
                       .tokens = random_integer(1, pairs[i] > 1000 ? 2 : 40),
                       .heads = random_integer(1, 4),
                       .pairs = pairs[i],
                       .layout = KILN_ROPE_HALF};
            run(stream, p, s);
            s.layout = KILN_ROPE_INTERLEAVED;
            s.row_pairs = pairs[i] / 8;
            for (int64_t eighths = 1; eighths <= 6; eighths += 5) { /* all axes in a head's first half; in its second */
                s.frame_pairs = pairs[i] * eighths / 8;
                run(stream, p, s);
            }
            s.layout = (kiln_rope_layout)random_integer(0, 1);
            s.frame_pairs = random_integer(0, pairs[i]);
            s.row_pairs = random_integer(0, pairs[i] - s.frame_pairs);
            s.padding = random_integer(0, 17);
            s.batch = 6;
            s.place = places[random_integer(0, 5)];
            s.in_place = random_integer(0, 1);
            run(stream, p, s);
        }
    }
}

/* Tokens behind the grid's last are copied bit by bit, and the grid's first, which is not turned, as well. */
static void test_special_values(kiln_stream *stream) {
    enum { TOKENS = 3, PAIRS = 9, WIDTH = 2 * PAIRS };
    static const double numbers[] = {NAN, INFINITY, -INFINITY, -0.0, 65504, -6e-8};
    for (precision p = precision_first(); p < precision_end(); p++) {
        harness_describe("rope3d_%s of special values", precision_name(p));
        matrix x = matrix_create(stream, p, TOKENS, WIDTH, 0, 0), y = matrix_create(stream, p, TOKENS, WIDTH, 0, 0);
        matrix grid = matrix_create(stream, I32, 1, 3, 0, 0);
        int64_t host[PAIRS];
        void *frequencies;
        harness_ok(kiln_rope_frequencies(10000, NULL, PAIRS, host));
        harness_ok(kiln_memory_alloc(stream->device, sizeof host, &frequencies));
        harness_ok(kiln_copy(stream, frequencies, host, sizeof host, KILN_COPY_TO_DEVICE));
        harness_ok(kiln_stream_sync(stream));
        matrix_set(&grid, (const double[3]){1, 1, 1});
        matrix_fill(&x, any_number);
        for (int64_t i = WIDTH; i < TOKENS * WIDTH; i++)
            x.values[i] = numbers[i % (int64_t)(sizeof numbers / sizeof *numbers)];
        matrix_set(&x, x.values);
        kiln_rope3d_params params = {.y = y.data,
                                     .x = x.data,
                                     .grids = grid.data,
                                     .frequencies = frequencies,
                                     .batch = 1,
                                     .tokens = TOKENS,
                                     .heads = 1,
                                     .pairs = PAIRS};
        harness_ok(operator_function(&kiln__operator_rope3d, p)->call(stream, &params, sizeof params));
        matrix_expect_exact(&y, x.values);
        kiln_memory_free(stream->device, frequencies);
        matrix_destroy(&x);
        matrix_destroy(&y);
        matrix_destroy(&grid);
    }
}

/* Tensors of more than the 8 MB from which the CPU writes results past the caches. */
static void test_large(kiln_stream *stream) {
    if (!harness_on_cpu(stream)) return;
    run(stream, F32, (shape){.batch = 2, .tokens = 347, .heads = 33, .pairs = 50, .padding = 3, .place = 1});
    run(stream, F16, (shape){.batch = 3, .tokens = 347, .heads = 33, .pairs = 64, .layout = KILN_ROPE_HALF});
}

static void test_refusals(kiln_stream *stream) {
    harness_describe("rope3d refused");
    matrix x = matrix_create(stream, F32, 1, 1024, 0, 0);
    const kiln_operator_function *function = operator_function(&kiln__operator_rope3d, F32);
    const kiln_rope3d_params good = {.y = x.data,
                                     .x = x.data,
                                     .grids = x.data,
                                     .frequencies = x.data,
                                     .batch = 1,
                                     .tokens = 2,
                                     .heads = 2,
                                     .pairs = 8};
    kiln_rope3d_params params = good;
    params.frame_pairs = 9;
    expect_refusal(stream, function, &params, sizeof params, "frame_pairs");
    params.frame_pairs = 4;
    params.row_pairs = 5;
    expect_refusal(stream, function, &params, sizeof params, "row_pairs");
    params = good;
    params.batch = 1 << 16;
    params.tokens = 1 << 16;
    expect_refusal(stream, function, &params, sizeof params, "tokens");
    matrix_expect_unchanged(&x);
    matrix_destroy(&x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        on_each_device(test_shapes),
        on_each_device(test_special_values),
        on_one_device(test_large),
        on_one_device(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
