/* sample: which columns may be chosen, how often each is, and that every backend chooses the same. */
#include "tests/ops/harness.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Philox 4x32-10, written from its paper, checked against its authors' known answers. */
static void philox(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4]) {
    uint32_t k[2] = {key[0], key[1]}, c[4];
    memcpy(c, counter, sizeof c);
    for (int i = 0; i < 10; i++) {
        uint64_t p0 = (uint64_t)0xD2511F53 * c[0], p1 = (uint64_t)0xCD9E8D57 * c[2];
        uint32_t next[4] = {(uint32_t)(p1 >> 32) ^ c[1] ^ k[0], (uint32_t)p1, (uint32_t)(p0 >> 32) ^ c[3] ^ k[1],
                            (uint32_t)p0};
        memcpy(c, next, sizeof c);
        k[0] += 0x9E3779B9;
        k[1] += 0xBB67AE85;
    }
    memcpy(out, c, sizeof c);
}

static void test_philox(void **state) {
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uint32_t out[4];
        philox(known[i].key, known[i].counter, out);
        assert_memory_equal(out, known[i].out, sizeof out);
    }
}

typedef struct call {
    int64_t rows, cols, padding, place;
    int64_t seed, top_k;
    double temperature, top_p, min_p;
} call;

/* Chooses on the stream; values are [rows, cols] as matrix_set rounds them. */
static void choose(kiln_stream *stream, precision p, call c, const matrix *x, const void *positions, matrix *y) {
    kiln_sample_params params = {.y = y->data,
                                 .x = x->data,
                                 .row_position = positions,
                                 .index_type = KILN_INDEX_I64,
                                 .rows = c.rows,
                                 .cols = c.cols,
                                 .x_stride = c.padding ? x->stride : 0,
                                 .seed = c.seed,
                                 .top_k = c.top_k,
                                 .temperature = (float)c.temperature,
                                 .top_p = (float)c.top_p,
                                 .min_p = (float)c.min_p};
    harness_ok(operator_function(&kiln__operator_sample, p)->call(stream, &params, sizeof params));
}

static void describe(precision p, call c) {
    harness_describe(
        "sample_%s %lld x %lld, padding %lld, at %lld, seed %lld, top_k %lld, temperature %g, top_p %g, min_p %g",
        precision_name(p), (long long)c.rows, (long long)c.cols, (long long)c.padding, (long long)c.place,
        (long long)c.seed, (long long)c.top_k, c.temperature, c.top_p, c.min_p);
}

static int compare_ranks(const void *a, const void *b, void *row) {
    int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
    const double *values = row;
    if (values[i] != values[j]) return values[i] > values[j] ? -1 : 1;
    return i < j ? -1 : 1;
}

/* What a logit weighs beside the greatest of its row: of infinite ones each the same, and others nothing. */
static double weight_of(double logit, double greatest, double temperature) {
    return isinf(greatest) ? isinf(logit) : exp((logit - greatest) / temperature);
}

/* Fails unless a column may be chosen: it is ranked before top_k, weighs min_p of the greatest or more, and what is
 * ranked before it has less than top_p. */
static void check_column(const double *row, call c, int64_t col) {
    int64_t *ranks = malloc(sizeof *ranks * (size_t)c.cols), count = 0;
    assert_non_null(ranks);
    for (int64_t i = 0; i < c.cols; i++)
        if (row[i] > -INFINITY) ranks[count++] = i;
    qsort_r(ranks, (size_t)count, sizeof *ranks, compare_ranks, (void *)(uintptr_t)row);
    if (!count) {
        if (col != -1) harness_fail("column %lld of a row without any", (long long)col);
        free(ranks);
        return;
    }
    int64_t kept = c.temperature == 0 ? 1 : c.top_k && c.top_k < count ? c.top_k : count, rank = 0;
    double greatest = row[ranks[0]], sum = 0, before = 0;
    while (kept > 1 && weight_of(row[ranks[kept - 1]], greatest, c.temperature) < c.min_p * (1 - 1e-5))
        kept--;
    for (int64_t i = 0; i < kept; i++)
        sum += weight_of(row[ranks[i]], greatest, c.temperature);
    while (rank < kept && ranks[rank] != col)
        before += weight_of(row[ranks[rank++]], greatest, c.temperature) / sum;
    if (rank == kept) harness_fail("column %lld is not of the greatest %lld", (long long)col, (long long)kept);
    bool possible = rank == 0 || before < (c.top_p == 0 ? 1 : c.top_p + 1e-5);
    if (!possible) harness_fail("column %lld: what is ranked before it has %g", (long long)col, before);
    free(ranks);
}

static double rarely_infinite_logit(void) {
    return random_integer(0, 15) ? random_number(-6, 6) : (double)INFINITY;
}

static double any_logit(void) {
    return random_number(-6, 6);
}

static double few_logits(void) {
    return random_integer(0, 3) ? (double)random_integer(-3, 3) : -INFINITY;
}

static double rarely_finite_logit(void) {
    return random_integer(0, 3) ? -INFINITY : random_number(-6, 6);
}

static double negative_logit(void) {
    return random_number(-120, -110);
}

static double infinite_logits(void) {
    return random_integer(0, 3) ? random_number(-6, 6) : (double)INFINITY;
}

static void check_allowed(kiln_stream *stream, precision p, call c, double (*logit)(void)) {
    describe(p, c);
    matrix x = matrix_create(stream, p, c.rows, c.cols, c.cols + c.padding, c.place);
    matrix y = matrix_create(stream, I32, 1, c.rows, 0, AT_END);
    matrix_fill(&x, logit);
    choose(stream, p, c, &x, NULL, &y);
    matrix_get(&y);
    for (int64_t row = 0; row < c.rows; row++)
        check_column(x.values + row * c.cols, c, (int64_t)y.values[row]);
    matrix_expect_unchanged(&x);
    matrix_destroy(&x);
    matrix_destroy(&y);
}

/* With each kind of logits: neither top-k nor top-p, one of them, both; and top-k of more than can be chosen. */
static void test_allowed(kiln_stream *stream) {
    static const int64_t cols[] = {1, 2, 7, 32, 100, 257, 1000, 5003};
    static const int64_t places[] = {0, 1, 3, AT_END};
    static double (*const logits[])(void) = {any_logit, few_logits, negative_logit, infinite_logits};
    for (precision p = precision_first(); p < precision_end(); p++) {
        for (size_t i = 0; i < sizeof cols / sizeof *cols * 4; i++) {
            call c = {.rows = random_integer(1, cols[i / 4] < 1000 ? 5 : 2),
                      .cols = cols[i / 4],
                      .padding = random_integer(0, 5),
                      .place = places[random_integer(0, 3)],
                      .seed = (int64_t)random_bits(),
                      .top_k = i & 1 ? random_integer(1, random_integer(0, 1) ? 40 : 400) : 0,
                      .temperature = random_integer(0, 7) ? random_number(0.3, 2) : 0,
                      .top_p = i & 2 ? random_number(0.01, 1) : 0,
                      .min_p = random_integer(0, 1) ? random_number(0.001, 1) : 0};
            check_allowed(stream, p, c, logits[(i + i / 4) % 4]);
        }
        call more = {.rows = 3, .cols = 257, .seed = (int64_t)random_bits(), .top_k = 250, .temperature = 1};
        check_allowed(stream, p, more, rarely_finite_logit);
    }
}

/* Temperature 0 is argmax, the first of equal ones; NaN and -inf are never chosen, and +inf always is. */
static void test_greatest(kiln_stream *stream) {
    enum { ROWS = 5, COLS = 300 };
    for (precision p = precision_first(); p < precision_end(); p++) {
        for (int hot = 0; hot < 2; hot++) {
            call c = {.rows = ROWS, .cols = COLS, .temperature = hot};
            describe(p, c);
            matrix x = matrix_create(stream, p, ROWS, COLS, 0, AT_END), y = matrix_create(stream, I32, 1, ROWS, 0, 0);
            for (int64_t i = 0; i < ROWS * COLS; i++)
                x.values[i] = i / COLS == 0 ? (double)NAN : i % 2 ? -INFINITY : hot ? -INFINITY : -5;
            x.values[1 * COLS + 299] = INFINITY;
            x.values[2 * COLS + 77] = x.values[2 * COLS + 78] = hot ? -INFINITY : 3;
            if (hot) x.values[2 * COLS + 77] = 3;
            x.values[3 * COLS + 5] = NAN;
            x.values[3 * COLS + 6] = hot ? -1 : 0.0;
            x.values[4 * COLS + 200] = 65504;
            matrix_set(&x, x.values);
            choose(stream, p, c, &x, NULL, &y);
            matrix_expect_exact(&y, (const double[ROWS]){-1, 299, 77, 6, 200});
            matrix_destroy(&x);
            matrix_destroy(&y);
        }
    }
}

/* Rows of which each thread has many elements, and some one more: the greatest is found wherever it is, and the first
 * of equal elements, infinite ones too, where these are more than a group has threads. */
static void test_long_rows(kiln_stream *stream) {
    enum { ROWS = 12, COLS = 5003, KEPT = 300, FEWER = 4 };
    for (precision p = precision_first(); p < precision_end(); p++) {
        matrix x = matrix_create(stream, p, ROWS, COLS, 0, 0), y = matrix_create(stream, I32, 1, ROWS, 0, 0);
        double expected[ROWS];
        for (int64_t i = 0; i < ROWS * COLS; i++)
            x.values[i] = 1;
        for (int64_t row = 0; row < ROWS; row++) {
            const int64_t col = row < ROWS / 2 ? row * COLS / (ROWS / 2) : COLS - 1 - (row - ROWS / 2) * 50;
            expected[row] = (double)col;
            x.values[row * COLS + col] = 2;
        }
        matrix_set(&x, x.values);
        call c = {.rows = ROWS, .cols = COLS};
        describe(p, c);
        choose(stream, p, c, &x, NULL, &y);
        matrix_expect_exact(&y, expected);

        for (int64_t i = 0; i < ROWS * COLS; i++)
            x.values[i] = i / COLS % 2 ? INFINITY : 1;
        matrix_set(&x, x.values);
        c.temperature = 1;
        c.rows = FEWER;
        for (int limits = 1; limits < 4; limits++) {
            c.top_k = limits & 1 ? KEPT : 0;
            c.top_p = limits & 2 ? 0.1 : 0;
            describe(p, c);
            choose(stream, p, c, &x, NULL, &y);
            matrix_get(&y);
            for (int64_t row = 0; row < c.rows; row++)
                check_column(x.values + row * COLS, c, (int64_t)y.values[row]);
        }
        matrix_destroy(&x);
        matrix_destroy(&y);
    }
}

/* Equal logits, infinite ones, and some infinite ones, which then are chosen from: the column is that of the random
 * number, which seed, position and row make, of as many as are kept. */
static void test_numbers(kiln_stream *stream) {
    enum { ROWS = 20, COLS = 300 };
    static const struct {
        int64_t top_k;
        double top_p;
        uint64_t kept, infinite_kept;
    } limits[] = {
        {0, 0, COLS, COLS / 3}, {200, 0, 200, COLS / 3}, {0, 0.25, COLS / 4, COLS / 12}, {200, 0.25, 50, COLS / 12}};
    call c = {.rows = ROWS, .cols = COLS, .seed = 0x123456789abcdef, .temperature = 0.7};
    int64_t positions[ROWS];
    uint64_t bits[ROWS];
    void *memory;
    for (int64_t row = 0; row < ROWS; row++) {
        positions[row] = (int64_t)(random_bits() >> 1);
        const uint32_t key[2] = {(uint32_t)c.seed, (uint32_t)((uint64_t)c.seed >> 32)};
        const uint32_t counter[4] = {(uint32_t)positions[row], (uint32_t)((uint64_t)positions[row] >> 32),
                                     (uint32_t)row, 0};
        uint32_t out[4];
        philox(key, counter, out);
        bits[row] = (uint64_t)out[1] << 32 | out[0];
    }
    harness_ok(kiln_memory_alloc(stream->device, sizeof positions, &memory));
    harness_ok(kiln_copy(stream, memory, positions, sizeof positions, KILN_COPY_TO_DEVICE));
    for (precision p = precision_first(); p < precision_end(); p++) {
        matrix x = matrix_create(stream, p, ROWS, COLS, 0, 0), y = matrix_create(stream, I32, 1, ROWS, 0, 0);
        for (int64_t i = 0; i < ROWS * COLS; i++)
            x.values[i] = i / COLS % 3 == 0 || (i / COLS % 3 == 1 && i % COLS % 3) ? 1.5 : (double)INFINITY;
        matrix_set(&x, x.values);
        for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
            double expected[ROWS];
            for (int64_t row = 0; row < ROWS; row++) {
                bool some = row % 3 == 1; /* every third column is infinite */
                unsigned __int128 scaled =
                    (unsigned __int128)bits[row] * (some ? limits[i].infinite_kept : limits[i].kept);
                expected[row] = (double)(uint64_t)(scaled >> 64) * (some ? 3 : 1);
            }
            c.top_k = limits[i].top_k;
            c.top_p = limits[i].top_p;
            describe(p, c);
            choose(stream, p, c, &x, memory, &y);
            matrix_expect_exact(&y, expected);
        }
        matrix_destroy(&x);
        matrix_destroy(&y);
    }
    kiln_memory_free(stream->device, memory);
}

/* How often each column comes: a chi-square test with a bound that chance breaks once in a million runs. Other devices
 * choose what the CPU does. */
static void test_frequencies(kiln_stream *stream) {
    if (!harness_on_cpu(stream)) return;
    enum { COLS = 12 };
    const int64_t rows = 20000;
    const call calls[] = {{.temperature = 1},
                          {.temperature = 0.5, .top_k = 5},
                          {.temperature = 2, .top_p = 0.8},
                          {.temperature = 1.5, .min_p = 0.3, .top_p = 0.9}};
    static const double logits[COLS] = {0.5, -1, 2, 0, 1.5, -2, 1, 0.25, -0.5, 1.75, -3, 0.75};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        call c = calls[i];
        c.rows = rows;
        c.cols = COLS;
        c.seed = (int64_t)random_bits();
        describe(F32, c);
        matrix x = matrix_create(stream, F32, rows, COLS, 0, 0), y = matrix_create(stream, I32, 1, rows, 0, 0);
        for (int64_t j = 0; j < rows * COLS; j++)
            x.values[j] = logits[j % COLS];
        matrix_set(&x, x.values);
        choose(stream, F32, c, &x, NULL, &y);
        matrix_get(&y);
        int64_t found[COLS] = {0}, ranks[COLS], kept = 0;
        double sum = 0, all = 0, chi = 0;
        for (int64_t j = 0; j < rows; j++)
            found[(int64_t)y.values[j]]++;
        for (int64_t j = 0; j < COLS; j++)
            ranks[j] = j;
        qsort_r(ranks, COLS, sizeof *ranks, compare_ranks, (void *)(uintptr_t)logits);
        int64_t most = c.top_k ? c.top_k : COLS;
        while (weight_of(logits[ranks[most - 1]], logits[ranks[0]], c.temperature) < c.min_p)
            most--;
        for (int64_t j = 0; j < most; j++)
            all += exp(logits[ranks[j]] / c.temperature);
        while (kept < most && (c.top_p == 0 || sum < c.top_p * all))
            sum += exp(logits[ranks[kept++]] / c.temperature);
        for (int64_t j = 0; j < COLS; j++) {
            double expected = j < kept ? (double)rows * exp(logits[ranks[j]] / c.temperature) / sum : 0;
            int64_t seen = found[ranks[j]];
            if (j >= kept && seen) harness_fail("column %lld was chosen", (long long)ranks[j]);
            if (j < kept) chi += ((double)seen - expected) * ((double)seen - expected) / expected;
        }
        if (chi > 50) harness_fail("chi square is %g with %lld columns", chi, (long long)kept);
        matrix_destroy(&x);
        matrix_destroy(&y);
    }
}

/* Numbers of all magnitudes. */
static double wide_logit(void) {
    return (random_integer(0, 1) ? 1 : -1) * exp2(random_number(-14, 9));
}

/* Numbers so small that they all weigh the same with a temperature of 1. */
static double small_logit(void) {
    return random_number(-0x1p-40, 0x1p-40);
}

static double some_logit(void) {
    return random_integer(0, 2) ? any_logit() : rarely_infinite_logit();
}

/* The same calls on the CPU give the same columns, whichever way a device finds them: among few candidates, among more
 * than a block has threads, among more than there is room for, with candidates that turn out not to suffice, by how
 * many elements there are of each number, where that does not suffice, and in rows whose threads have more vectors than
 * groups. The CPU's one thread is the process's own: mutants run in no
 * process of several. */
static void test_agreement(kiln_stream *stream) {
    static const struct {
        int64_t rows, cols, top_k;
        double temperature, top_p, min_p, (*logit)(void);
    } calls[] = {
        {60, 333, 50, 0.8, 0.9, 0.02, some_logit},  {3, 5003, 50, 0.8, 0.9, 0, any_logit},
        {2, 5003, 400, 1, 0.95, 0, any_logit},      {2, 5003, 1020, 4, 0.5, 0, any_logit},
        {2, 5003, 3000, 3, 0.9, 0, any_logit},      {2, 5003, 0, 0.1, 0.9, 0, any_logit},
        {2, 5003, 0, 1, 0.9, 0, any_logit},         {2, 5003, 0, 1, 0, 0.2, any_logit},
        {2, 5003, 0, 1, 0.7, 0.01, any_logit},      {2, 5003, 300, 90, 0, 0, wide_logit},
        {2, 5003, 500, 90, 0.9, 0, wide_logit},     {1, 40003, 50, 1, 0.9, 0, any_logit},
        {2, 5003, 0, 1, 0, 0, any_logit},           {1, 16411, 0, 1, 0, 0, any_logit},
        {1, 16411, 0, 0, 0, 0, any_logit},          {1, 16411, 0, 0.3, 0.9, 0, any_logit},
        {1, 16411, 3000, 3, 0.9, 0, any_logit},     {1, 16411, 0, 3, 0.9, 0, any_logit},
        {1, 16411, 0, 1, 0.7, 0.01, any_logit},     {1, 16411, 3000, 0.02, 0, 0, any_logit},
        {2, 5003, 3000, 0.02, 0, 0, any_logit},     {2, 5003, 4900, 1, 0, 0, rarely_infinite_logit},
        {3, 16411, 0, 1, 0, 0, any_logit},          {3, 40003, 0, 0.7, 0, 0, any_logit},
        {3, 16411, 0, 0, 0, 0, few_logits},         {3, 16411, 1, 1, 0.5, 0, few_logits},
        {3, 16411, 50, 1, 0.9, 0, any_logit},       {2, 16411, 0, 1, 0, 0, rarely_infinite_logit},
        {2, 16411, 0, 20, 0, 0, wide_logit},        {3, 16411, 0, 0.01, 0, 0, negative_logit},
        {2, 16411, 0, 20, 0.9, 0, wide_logit},      {2, 16411, 0, 0.7, 0.6, 0, negative_logit},
        {3, 16411, 0, 1, 0.8, 0, few_logits},       {2, 16411, 0, 1, 0.97, 0, few_logits},
        {2, 16411, 0, 1, 0.5, 0, small_logit},      {2, 16411, 0, 1, 0, 0, small_logit},
        {2, 16411, 0, 1, 0.9, 0, some_logit},       {2, 16411, 0, 1, 0.9, 0, rarely_finite_logit},
        {3, 16411, 3000, 1, 0.9, 0.001, any_logit}, {2, 16411, 500, 20, 0.9, 0, wide_logit},
        {2, 16411, 9000, 1, 0, 0, few_logits},      {2, 16411, 2000, 1, 0.5, 0, few_logits},
        {2, 16411, 60, 1, 0, 0.2, any_logit},       {2, 16411, 0, 20, 0, 0.9, wide_logit},
    };
    kiln_device_options options = {.backend = KILN_BACKEND_CPU, .threads = 1};
    kiln_device *cpu;
    kiln_stream other;
    harness_ok(kiln_device_open(&options, &cpu));
    harness_ok(kiln_stream_open(cpu, 0, &other));
    for (precision p = precision_first(); p < precision_end(); p++)
        for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
            call c = {.rows = calls[i].rows,
                      .cols = calls[i].cols,
                      .seed = (int64_t)random_bits(),
                      .temperature = calls[i].temperature,
                      .top_k = calls[i].top_k,
                      .top_p = calls[i].top_p,
                      .min_p = calls[i].min_p};
            describe(p, c);
            matrix x = matrix_create(stream, p, c.rows, c.cols, 0, 0), y = matrix_create(stream, I32, 1, c.rows, 0, 0);
            matrix other_x = matrix_create(&other, p, c.rows, c.cols, 0, 0),
                   other_y = matrix_create(&other, I32, 1, c.rows, 0, 0);
            for (int64_t k = 0; k < c.rows * c.cols; k++)
                x.values[k] = calls[i].logit();
            matrix_set(&x, x.values);
            matrix_set(&other_x, x.values);
            choose(stream, p, c, &x, NULL, &y);
            choose(&other, p, c, &other_x, NULL, &other_y);
            matrix_get(&other_y);
            matrix_expect_exact(&y, other_y.values);
            matrix_destroy(&x);
            matrix_destroy(&y);
            matrix_destroy(&other_x);
            matrix_destroy(&other_y);
        }
    kiln_stream_close(&other);
    kiln_device_close(cpu);
}

/* What each row of a batch has of its own. */
enum { OWN_ROWS = 24 };
typedef struct own_options {
    float temperature[OWN_ROWS], top_p[OWN_ROWS], min_p[OWN_ROWS];
    int32_t top_k[OWN_ROWS], narrow_position[OWN_ROWS];
    int64_t seed[OWN_ROWS], position[OWN_ROWS];
} own_options;

/* Those that the device reads as they are, and what they mean. */
static void make_own_options(own_options *given, own_options *meant) {
    static const float temperatures[][2] = {{0, 0},           {-1, 0},      {NAN, 0},    {1e-7f, 0},
                                            {INFINITY, 1e6f}, {2e7f, 1e6f}, {0.7f, 0.7f}};
    static const float parts[][2] = {{-1, 0}, {NAN, 0}, {0, 0}, {1, 1}, {0.4f, 0.4f}};
    static const int32_t limits[][2] = {{-7, 0}, {0, 0}, {1, 1}, {9, 9}, {INT32_MAX, 0}};
    for (int i = 0; i < OWN_ROWS; i++) {
        const float *temperature = temperatures[i < 7 ? i : 6];
        const float *top_p = parts[random_integer(0, 4)], *min_p = parts[random_integer(0, 4)];
        const int32_t *top_k = limits[random_integer(0, 4)];
        given->temperature[i] = temperature[0];
        meant->temperature[i] = temperature[1];
        given->top_p[i] = top_p[0];
        meant->top_p[i] = top_p[1];
        given->min_p[i] = min_p[0];
        meant->min_p[i] = min_p[1];
        given->top_k[i] = top_k[0];
        meant->top_k[i] = top_k[1];
        given->seed[i] = (int64_t)random_bits();
        given->narrow_position[i] = (int32_t)random_integer(0, 1 << 20);
        given->position[i] = random_integer(0, 1) ? (int64_t)random_bits() : given->narrow_position[i];
    }
    given->min_p[OWN_ROWS - 1] = 3;
    meant->min_p[OWN_ROWS - 1] = 1;
}

/* Each row of a batch, with options of its own, is the column that a call for it alone gives, whose options are
 * scalars: so it does not depend on the row's place. */
static void test_own_options(kiln_stream *stream) {
    enum { COLS = 150 };
    own_options given, meant, *memory;
    make_own_options(&given, &meant);
    harness_ok(kiln_memory_alloc(stream->device, sizeof given, (void **)&memory));
    harness_ok(kiln_copy(stream, memory, &given, sizeof given, KILN_COPY_TO_DEVICE));
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int wide = 0; wide < 2; wide++) {
            harness_describe("sample_%s of rows with options of their own, positions i%d", precision_name(p),
                             wide ? 64 : 32);
            const kiln_operator_function *function = operator_function(&kiln__operator_sample, p);
            matrix x = matrix_create(stream, p, OWN_ROWS, COLS, 0, 0),
                   y = matrix_create(stream, I32, 1, OWN_ROWS, 0, 0);
            matrix alone = matrix_create(stream, I32, 1, OWN_ROWS, 0, 0);
            matrix_fill(&x, any_logit);
            kiln_sample_params params = {.y = y.data,
                                         .x = x.data,
                                         .row_temperature = memory->temperature,
                                         .row_top_k = memory->top_k,
                                         .row_top_p = memory->top_p,
                                         .row_min_p = memory->min_p,
                                         .row_seed = memory->seed,
                                         .row_position =
                                             wide ? (void *)memory->position : (void *)memory->narrow_position,
                                         .rows = OWN_ROWS,
                                         .cols = COLS,
                                         .seed = 1,
                                         .position = 2,
                                         .top_k = 1,
                                         .temperature = 3,
                                         .top_p = 0.5f,
                                         .min_p = 0.5f,
                                         .index_type = wide};
            harness_ok(function->call(stream, &params, sizeof params));
            for (int i = 0; i < OWN_ROWS; i++) {
                params = (kiln_sample_params){.y = (int32_t *)alone.data + i,
                                              .x = (const char *)x.data + (size_t)i * COLS * precision_size(p),
                                              .rows = 1,
                                              .cols = COLS,
                                              .seed = given.seed[i],
                                              .position = wide ? given.position[i] : given.narrow_position[i],
                                              .top_k = meant.top_k[i],
                                              .temperature = meant.temperature[i],
                                              .top_p = meant.top_p[i],
                                              .min_p = meant.min_p[i]};
                harness_ok(function->call(stream, &params, sizeof params));
            }
            matrix_get(&alone);
            matrix_expect_exact(&y, alone.values);
            matrix_destroy(&x);
            matrix_destroy(&y);
            matrix_destroy(&alone);
        }
    kiln_memory_free(stream->device, memory);
}

/* Many short rows, which a device chooses from one by one in another way, with options of their own: the CPU gives the
 * same columns. */
static void test_many_rows(kiln_stream *stream) {
    enum { ROWS = 521 };
    static const int64_t cols[] = {173, 1100};
    static const float temperatures[] = {0, 0.7f, 1}, top_ps[] = {0, 0, 0.4f, 0.9f}, min_ps[] = {0, 0, 0.5f};
    static const int32_t top_ks[] = {1, 9, 50, 90};
    static struct many_options {
        float temperature[ROWS], top_p[ROWS], min_p[ROWS];
        int32_t top_k[ROWS];
    } options, *memory;
    const kiln_device_options cpu_options = {.backend = KILN_BACKEND_CPU, .threads = 1};
    kiln_device *cpu;
    kiln_stream other;
    harness_ok(kiln_device_open(&cpu_options, &cpu));
    harness_ok(kiln_stream_open(cpu, 0, &other));
    harness_ok(kiln_memory_alloc(stream->device, sizeof options, (void **)&memory));
    for (precision p = precision_first(); p < precision_end(); p++)
        for (size_t i = 0; i < sizeof cols / sizeof *cols; i++) {
            harness_describe("sample_%s of %d rows of %lld", precision_name(p), ROWS, (long long)cols[i]);
            for (int row = 0; row < ROWS; row++) {
                bool any = row % 32 == 7, filtered = any || random_integer(0, 1);
                options.temperature[row] = temperatures[random_integer(0, 2)];
                options.top_p[row] = filtered ? top_ps[random_integer(0, 3)] : 0;
                options.min_p[row] = filtered ? min_ps[random_integer(0, 2)] : 0;
                options.top_k[row] = any ? 200 * (int32_t)random_integer(0, 1) : top_ks[random_integer(0, 3)];
                if (!filtered) options.top_k[row] = 0;
            }
            harness_ok(kiln_copy(stream, memory, &options, sizeof options, KILN_COPY_TO_DEVICE));
            matrix x = matrix_create(stream, p, ROWS, cols[i], 0, 0), y = matrix_create(stream, I32, 1, ROWS, 0, 0);
            matrix other_x = matrix_create(&other, p, ROWS, cols[i], 0, 0);
            matrix other_y = matrix_create(&other, I32, 1, ROWS, 0, 0);
            for (int64_t k = 0; k < ROWS * cols[i]; k++)
                x.values[k] = k / cols[i] % 64 == 63 ? rarely_infinite_logit()
                              : k / cols[i] == 5     ? -INFINITY
                                                     : any_logit() * (k / cols[i] % 2 ? 1 : 4);
            matrix_set(&x, x.values);
            matrix_set(&other_x, x.values);
            kiln_sample_params params = {.y = y.data,
                                         .x = x.data,
                                         .row_temperature = memory->temperature,
                                         .row_top_k = memory->top_k,
                                         .row_top_p = memory->top_p,
                                         .row_min_p = memory->min_p,
                                         .rows = ROWS,
                                         .cols = cols[i],
                                         .seed = (int64_t)random_bits()};
            harness_ok(operator_function(&kiln__operator_sample, p)->call(stream, &params, sizeof params));
            params.y = other_y.data;
            params.x = other_x.data;
            params.row_temperature = options.temperature;
            params.row_top_k = options.top_k;
            params.row_top_p = options.top_p;
            params.row_min_p = options.min_p;
            harness_ok(operator_function(&kiln__operator_sample, p)->call(&other, &params, sizeof params));
            matrix_get(&other_y);
            matrix_expect_exact(&y, other_y.values);
            matrix_destroy(&x);
            matrix_destroy(&y);
            matrix_destroy(&other_x);
            matrix_destroy(&other_y);
        }
    kiln_memory_free(stream->device, memory);
    kiln_stream_close(&other);
    kiln_device_close(cpu);
}

static void test_refusals(kiln_stream *stream) {
    harness_describe("sample refused");
    matrix x = matrix_create(stream, F32, 1, 64, 0, 0);
    const kiln_operator_function *function = operator_function(&kiln__operator_sample, F32);
    const kiln_sample_params good = {.y = x.data, .x = x.data, .rows = 1, .cols = 64};
    kiln_sample_params params = good;
    params.top_k = -1;
    expect_refusal(stream, function, &params, sizeof params, "top_k");
    params = good;
    params.temperature = -1;
    expect_refusal(stream, function, &params, sizeof params, "temperature");
    params = good;
    params.top_p = 1.5f;
    expect_refusal(stream, function, &params, sizeof params, "top_p");
    params = good;
    params.min_p = -0.1f;
    expect_refusal(stream, function, &params, sizeof params, "min_p");
    params = good;
    params.index_type = 2;
    expect_refusal(stream, function, &params, sizeof params, "index_type");
    params = good;
    params.row_seed = (const int64_t *)(const void *)((const char *)x.data + 4);
    expect_refusal(stream, function, &params, sizeof params, "row_seed");
    params = good;
    params.cols = (1 << 22) + 1;
    expect_refusal(stream, function, &params, sizeof params, "cols");
    matrix_expect_unchanged(&x);
    matrix_destroy(&x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_philox),    on_each_device(test_greatest),  on_each_device(test_numbers),
        on_each_device(test_allowed),     on_each_device(test_long_rows), on_each_device(test_agreement),
        on_each_device(test_own_options), on_each_device(test_many_rows), on_one_device(test_refusals),
        on_one_device(test_frequencies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
