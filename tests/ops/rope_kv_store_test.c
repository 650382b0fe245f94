/* rope_kv_store: bit for bit what rope and then kv_store leave on the same device, and against f64. */
#include "tests/ops/harness.h"
#include <math.h>
#include <stdlib.h>

typedef enum source { BY_FREQUENCY, BY_TABLE, BY_TABLE_F32 } source;

enum { ROWS = 7 }; /* of tables */

typedef struct shape {
    int64_t tokens, heads, kv_heads, head_dim, pairs;
    int64_t capacity;
    int64_t padding, table_padding, place;
    source source;
    kiln_rope_layout layout;
    bool together;   /* query, key and value are columns of one tensor, and the query is rotated in place */
    bool positioned; /* positions are given */
    bool codes;      /* the caches are of E4M3 */
    int64_t scales;  /* of codes; 0: none */
    float scale;
} shape;

/* Columns of a matrix that has a token in each row. */
typedef struct columns {
    matrix *m;
    int64_t first, count;
} columns;

enum { KEY, VALUE, CACHES };

static double any_number(void) {
    return random_number(-4, 4);
}

/* What is only copied may be anything. */
static double any_value(void) {
    static const double specials[] = {0, -0.0, INFINITY, -INFINITY, NAN, 448, 3e4};
    return random_integer(0, 9) ? any_number() : specials[random_integer(0, 6)];
}

static double any_code(void) {
    return (double)random_integer(0, 255);
}

/* Those that count as 1 are among them. */
static double any_scale(void) {
    return random_integer(0, 3) ? random_number(0.01, 4) : 0;
}

static double any_position(void) {
    int64_t most = (int64_t)1 << random_integer(0, 31);
    return (double)random_integer(random_integer(0, 3) ? 0 : -most, most - 1);
}

static double any_row(void) {
    return (double)random_integer(-2, ROWS + 1);
}

/* Slots that differ, in a cache that has room for all tokens; some tokens have none. */
static void choose_slots(matrix *slots, int64_t capacity) {
    static const double outside[] = {-1, INT32_MIN, INT32_MAX, 0x1p32, -0x1p63}; /* the last two of I64 alone */
    for (int64_t i = 0; i < slots->cols; i++) {
        const bool stored = capacity && random_integer(0, 4) != 0;
        const double other = i % 2 ? (double)capacity : outside[random_integer(0, slots->p == I64 ? 4 : 2)];
        slots->values[i] = stored ? (double)(capacity - 1 - i) : other;
    }
    matrix_set(slots, slots->values);
}

static void *data_of(columns c) {
    return (char *)c.m->data + (size_t)c.first * precision_size(c.m->p);
}

static double *value_of(columns c, int64_t token) {
    return c.m->values + token * c.m->cols + c.first;
}

static double *copy_of(const matrix *m) {
    double *copy = malloc(sizeof *copy * (size_t)(m->rows * m->cols + 1));
    assert_non_null(copy);
    for (int64_t i = 0; i < m->rows * m->cols; i++)
        copy[i] = m->values[i];
    return copy;
}

/* ---- What rotates ---- */

typedef struct turning {
    matrix positions, cosines, sines;
    int64_t *host; /* the frequencies */
    void *frequencies;
} turning;

static turning turning_create(kiln_stream *stream, precision p, const shape *s) {
    const precision of_table = s->source == BY_TABLE_F32 ? F32 : p;
    const int64_t some = s->pairs ? s->pairs : 1;
    turning t = {.positions = matrix_create(stream, random_integer(0, 1) ? I64 : I32, 1, s->tokens, 0, AT_END),
                 .cosines = matrix_create(stream, of_table, ROWS, some, some + s->table_padding, 0),
                 .sines = matrix_create(stream, of_table, ROWS, some, some + s->table_padding, 0),
                 .host = malloc(sizeof *t.host * (size_t)some)};
    assert_non_null(t.host);
    harness_ok(kiln_rope_frequencies(10000, NULL, some, t.host));
    harness_ok(kiln_memory_alloc(stream->device, sizeof *t.host * (size_t)some, &t.frequencies));
    harness_ok(kiln_copy(stream, t.frequencies, t.host, sizeof *t.host * (size_t)some, KILN_COPY_TO_DEVICE));
    harness_ok(kiln_stream_sync(stream));
    matrix_fill(&t.positions, s->source == BY_FREQUENCY ? any_position : any_row);
    matrix_fill(&t.cosines, any_number);
    matrix_fill(&t.sines, any_number);
    return t;
}

static void turning_destroy(kiln_stream *stream, turning *t) {
    kiln_memory_free(stream->device, t->frequencies);
    free(t->host);
    matrix_destroy(&t->positions);
    matrix_destroy(&t->cosines);
    matrix_destroy(&t->sines);
}

static void direction_of(const turning *t, const shape *s, int64_t token, int64_t pair, double *c, double *sine) {
    const double position = s->positioned ? t->positions.values[token] : (double)token;
    *c = 1, *sine = 0;
    if (s->source == BY_FREQUENCY) {
        const uint64_t turns = (uint64_t)t->host[pair] * (uint64_t)(int64_t)position;
        const double angle = ldexp((double)(int64_t)turns, -64) * 2 * 3.14159265358979323846;
        *c = cos(angle), *sine = sin(angle);
    } else if (position >= 0 && position < ROWS) {
        *c = t->cosines.values[(int64_t)position * s->pairs + pair];
        *sine = t->sines.values[(int64_t)position * s->pairs + pair];
    }
}

/* A token's head, rotated in f64, and by how much a result may differ. */
static void turn_head(const turning *t, const shape *s, int64_t token, const double *x, double *y, double *allowed) {
    const double factor = s->scale == 0 ? 1 : (double)s->scale;
    for (int64_t i = 0; i < s->head_dim; i++)
        y[i] = x[i], allowed[i] = 0;
    for (int64_t pair = 0; pair < s->pairs; pair++) {
        const bool halves = s->layout == KILN_ROPE_HALF;
        const int64_t first = halves ? pair : 2 * pair, second = first + (halves ? s->pairs : 1);
        double c, sine;
        direction_of(t, s, token, pair, &c, &sine);
        y[first] = factor * (x[first] * c - x[second] * sine);
        y[second] = factor * (x[first] * sine + x[second] * c);
        allowed[first] = allowed[second] = 3e-7 * factor * (fabs(x[first]) + fabs(x[second])) * (fabs(c) + fabs(sine));
    }
}

/* ---- What rope and kv_store make of the same ---- */

/* Heads of a head_dim, rotated by rope in a matrix of their own. */
static matrix rope_of(kiln_stream *stream, precision p, const turning *t, const shape *s, columns from, int64_t heads) {
    matrix x = matrix_create(stream, p, s->tokens, from.count, 0, 0);
    for (int64_t token = 0; token < s->tokens; token++)
        for (int64_t col = 0; col < from.count; col++)
            x.values[token * from.count + col] = value_of(from, token)[col];
    matrix_set(&x, x.values);
    const kiln_rope_params params = {.y = x.data,
                                     .x = x.data,
                                     .positions = s->positioned ? t->positions.data : NULL,
                                     .frequencies = s->source == BY_FREQUENCY ? t->frequencies : NULL,
                                     .cosines = s->source == BY_FREQUENCY ? NULL : t->cosines.data,
                                     .sines = s->source == BY_FREQUENCY ? NULL : t->sines.data,
                                     .tokens = s->tokens,
                                     .heads = heads,
                                     .pairs = s->pairs,
                                     .y_stride = from.count,
                                     .y_head_stride = s->head_dim,
                                     .x_stride = from.count,
                                     .x_head_stride = s->head_dim,
                                     .table_rows = ROWS,
                                     .table_stride = t->cosines.stride,
                                     .scale = s->scale,
                                     .layout = (int32_t)s->layout,
                                     .index_type = t->positions.p == I64 ? KILN_INDEX_I64 : KILN_INDEX_I32,
                                     .table_type = s->source == BY_TABLE_F32 ? KILN_ROPE_TABLE_F32 : 0};
    harness_ok(operator_function(&kiln__operator_rope, p)->call(stream, &params, sizeof params));
    return x;
}

/* ---- A call ---- */

/* What a call and its references take. */
typedef struct tensors {
    turning t;
    int64_t width, kv_width; /* of a token's queries and keys */
    matrix queries, keys, values, results, slots;
    matrix caches[CACHES], others[CACHES], scales[CACHES]; /* others: for the two operators */
    columns query, out, key, value;                        /* of these matrices */
} tensors;

static void create_caches(kiln_stream *stream, precision p, const shape *s, tensors *c) {
    for (int i = 0; i < CACHES; i++) {
        c->caches[i] = matrix_create(stream, s->codes ? U8 : p, s->capacity, c->kv_width,
                                     c->kv_width + s->padding * (i + 1), i ? 0 : s->place);
        c->others[i] = matrix_create(stream, s->codes ? U8 : p, s->capacity, c->kv_width, 0, 0);
        c->scales[i] = matrix_create(stream, F32, 1, s->scales ? s->scales : 1, 0, AT_END);
        matrix_fill(&c->caches[i], s->codes ? any_code : any_number);
        matrix_set(&c->others[i], c->caches[i].values);
        matrix_fill(&c->scales[i], any_scale);
    }
}

/* Creates and fills them in place, since the columns are of matrices beside them. */
static void create_tensors(kiln_stream *stream, precision p, const shape *s, tensors *c) {
    const int64_t width = s->heads * s->head_dim, kv_width = s->kv_heads * s->head_dim;
    const int64_t all = s->together ? width + 2 * kv_width : width;
    c->t = turning_create(stream, p, s);
    c->width = width;
    c->kv_width = kv_width;
    c->queries = matrix_create(stream, p, s->tokens, all, all + s->padding, s->place);
    c->keys = matrix_create(stream, p, s->tokens, kv_width, kv_width + s->padding, s->place);
    c->values = matrix_create(stream, p, s->tokens, kv_width, kv_width + 2 * s->padding, AT_END);
    c->results = matrix_create(stream, p, s->tokens, width, width + 3 * s->padding, 0);
    c->slots = matrix_create(stream, random_integer(0, 1) ? I64 : I32, 1, s->tokens, 0, 0);
    c->query = (columns){&c->queries, 0, width};
    c->out = (columns){s->together ? &c->queries : &c->results, 0, width};
    c->key = s->together ? (columns){&c->queries, width, kv_width} : (columns){&c->keys, 0, kv_width};
    c->value = s->together ? (columns){&c->queries, width + kv_width, kv_width} : (columns){&c->values, 0, kv_width};
    matrix_fill(&c->queries, any_number);
    matrix_fill(&c->keys, any_number);
    matrix_fill(&c->values, any_value);
    choose_slots(&c->slots, s->capacity);
    create_caches(stream, p, s, c);
}

static void destroy_tensors(kiln_stream *stream, tensors *c) {
    matrix *const matrices[] = {&c->queries, &c->keys, &c->values, &c->results, &c->slots};
    turning_destroy(stream, &c->t);
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++)
        matrix_destroy(matrices[i]);
    for (int i = 0; i < CACHES; i++) {
        matrix_destroy(&c->caches[i]);
        matrix_destroy(&c->others[i]);
        matrix_destroy(&c->scales[i]);
    }
}

/* What is expected, and the error allowed, of the matrix with the results and of the cache of keys. */
typedef struct expectation {
    double *results, *results_allowed, *exact; /* exact: of the two operators */
    double *keys, *keys_allowed;
} expectation;

/* In f64. */
static expectation expect_turns(const tensors *c, const shape *s) {
    const matrix *out = c->out.m, *cache = &c->caches[KEY];
    const expectation e = {copy_of(out), copy_of(out), copy_of(out), copy_of(cache), copy_of(cache)};
    for (int64_t i = 0; i < out->rows * out->cols; i++)
        e.results_allowed[i] = 0;
    for (int64_t i = 0; i < s->capacity * c->kv_width; i++)
        e.keys_allowed[i] = 0;
    for (int64_t token = 0; token < s->tokens; token++) {
        const int64_t at = token * out->cols, slot = (int64_t)c->slots.values[token];
        for (int64_t head = 0, to = at; head < s->heads; head++, to += s->head_dim)
            turn_head(&c->t, s, token, value_of(c->query, token) + head * s->head_dim, e.results + to,
                      e.results_allowed + to);
        if (slot < 0 || slot >= s->capacity) continue;
        for (int64_t head = 0, to = slot * c->kv_width; head < s->kv_heads; head++, to += s->head_dim)
            turn_head(&c->t, s, token, value_of(c->key, token) + head * s->head_dim, e.keys + to, e.keys_allowed + to);
    }
    return e;
}

/* By rope and kv_store: the queries as numbers, the keys and values in the other caches. */
static void run_two(kiln_stream *stream, precision p, const shape *s, tensors *c, double *exact) {
    matrix turned = rope_of(stream, p, &c->t, s, c->query, s->heads);
    matrix turned_keys = rope_of(stream, p, &c->t, s, c->key, s->kv_heads);
    const kiln_kv_store_params store = {.key_cache = c->others[KEY].data,
                                        .value_cache = c->others[VALUE].data,
                                        .key = turned_keys.data,
                                        .value = data_of(c->value),
                                        .slot_mapping = c->slots.data,
                                        .tokens = s->tokens,
                                        .cols = c->kv_width,
                                        .capacity = s->capacity,
                                        .value_stride = c->value.m->stride,
                                        .index_type = c->slots.p == I64 ? KILN_INDEX_I64 : KILN_INDEX_I32,
                                        .cache_type = s->codes ? KILN_CACHE_E4M3 : KILN_CACHE_OF_PRECISION,
                                        .k_scale = s->scales ? c->scales[KEY].data : NULL,
                                        .v_scale = s->scales ? c->scales[VALUE].data : NULL,
                                        .cache_scales = s->scales};
    harness_ok(operator_function(&kiln__operator_kv_store, p)->call(stream, &store, sizeof store));
    matrix_get(&turned);
    for (int64_t token = 0; token < s->tokens; token++)
        for (int64_t col = 0; col < c->width; col++)
            exact[token * c->out.m->cols + col] = turned.values[token * c->width + col];
    matrix_destroy(&turned);
    matrix_destroy(&turned_keys);
}

static void run_one(kiln_stream *stream, precision p, const shape *s, const tensors *c) {
    const kiln_rope_kv_store_params params = {
        .query_out = data_of(c->out),
        .key_cache = c->caches[KEY].data,
        .value_cache = c->caches[VALUE].data,
        .query = data_of(c->query),
        .key = data_of(c->key),
        .value = data_of(c->value),
        .slot_mapping = c->slots.data,
        .positions = s->positioned ? c->t.positions.data : NULL,
        .frequencies = s->source == BY_FREQUENCY ? c->t.frequencies : NULL,
        .cosines = s->source == BY_FREQUENCY ? NULL : c->t.cosines.data,
        .sines = s->source == BY_FREQUENCY ? NULL : c->t.sines.data,
        .k_scale = s->scales ? c->scales[KEY].data : NULL,
        .v_scale = s->scales ? c->scales[VALUE].data : NULL,
        .tokens = s->tokens,
        .heads = s->heads,
        .kv_heads = s->kv_heads,
        .head_dim = s->head_dim,
        .pairs = s->pairs,
        .capacity = s->capacity,
        .table_rows = ROWS,
        .cache_scales = s->scales,
        .query_out_stride = s->padding || s->together ? c->out.m->stride : 0,
        .query_stride = s->padding || s->together ? c->query.m->stride : 0,
        .key_stride = s->padding || s->together ? c->key.m->stride : 0,
        .value_stride = s->padding || s->together ? c->value.m->stride : 0,
        .key_cache_stride = s->padding ? c->caches[KEY].stride : 0,
        .value_cache_stride = s->padding ? c->caches[VALUE].stride : 0,
        .table_stride = s->table_padding ? c->t.cosines.stride : 0,
        .scale = s->scale,
        .layout = (int32_t)s->layout,
        .position_type = c->t.positions.p == I64 ? KILN_INDEX_I64 : KILN_INDEX_I32,
        .slot_type = c->slots.p == I64 ? KILN_INDEX_I64 : KILN_INDEX_I32,
        .table_type = s->source == BY_TABLE_F32 ? KILN_ROPE_TABLE_F32 : KILN_ROPE_TABLE_PRECISION,
        .cache_type = s->codes ? KILN_CACHE_E4M3 : KILN_CACHE_OF_PRECISION};
    harness_ok(operator_function(&kiln__operator_rope_kv_store, p)->call(stream, &params, sizeof params));
}

static void run(kiln_stream *stream, precision p, shape s) {
    tensors c;
    harness_describe(
        "rope_kv_store_%s %lld tokens, %lld + %lld heads of %lld, %lld pairs, cache of %lld, paddings %lld "
        "%lld, at %lld, source %d, layout %d%s%s%s, %lld scales",
        precision_name(p), (long long)s.tokens, (long long)s.heads, (long long)s.kv_heads, (long long)s.head_dim,
        (long long)s.pairs, (long long)s.capacity, (long long)s.padding, (long long)s.table_padding, (long long)s.place,
        (int)s.source, (int)s.layout, s.together ? ", together" : "", s.positioned ? ", positions" : "",
        s.codes ? ", codes" : "", (long long)s.scales);
    create_tensors(stream, p, &s, &c);
    const expectation e = expect_turns(&c, &s);
    run_two(stream, p, &s, &c, e.exact);
    run_one(stream, p, &s, &c);
    matrix_expect(c.out.m, e.results, e.results_allowed);
    matrix_expect_exact(c.out.m, e.exact);
    if (!s.codes) matrix_expect(&c.caches[KEY], e.keys, e.keys_allowed);
    for (int i = 0; i < CACHES; i++) {
        matrix_get(&c.others[i]);
        matrix_expect_exact(&c.caches[i], c.others[i].values);
    }
    matrix *const unchanged[] = {&c.keys, &c.values, &c.slots, &c.t.positions};
    for (size_t i = 0; i < sizeof unchanged / sizeof *unchanged; i++)
        matrix_expect_unchanged(unchanged[i]);
    if (!s.together) matrix_expect_unchanged(&c.queries);
    double *const numbers[] = {e.results, e.results_allowed, e.exact, e.keys, e.keys_allowed};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        free(numbers[i]);
    destroy_tensors(stream, &c);
}

/* ---- Tests ---- */

/* Options of a call by chance. */
static shape vary(shape s) {
    s.capacity = s.tokens + random_integer(0, 3);
    s.source = (source)random_integer(0, 2);
    s.layout = (kiln_rope_layout)random_integer(0, 1);
    s.together = random_integer(0, 1);
    s.positioned = random_integer(0, 2);
    s.codes = random_integer(0, 1);
    s.scales = (int64_t[]){0, 1, s.kv_heads}[random_integer(0, 2)];
    s.scale = random_integer(0, 1) ? 1.25f : 0;
    return s;
}

static void test_shapes(kiln_stream *stream) {
    static const int64_t heads[][2] = {{1, 0},    {2, 1},     {3, 1},   {6, 3},   {16, 8},    {24, 8},
                                       {48, 8},   {64, 32},   {64, 16}, {80, 20}, {96, 48},   {128, 64},
                                       {128, 32}, {257, 100}, {272, 8}, {320, 0}, {600, 300}, {4200, 2056}};
    for (precision p = precision_first(); p < precision_end(); p++)
        for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
            const int64_t kv_heads = random_integer(1, heads[i][0] < 600 ? 5 : 2);
            shape s = vary((shape){.tokens = random_integer(1, 5),
                                   .heads = kv_heads * random_integer(1, 4),
                                   .kv_heads = kv_heads,
                                   .head_dim = heads[i][0],
                                   .pairs = heads[i][1]});
            run(stream, p, s);
            s = vary(s);
            s.table_padding = random_integer(0, 1) * 8;
            s.padding = random_integer(0, 1) * 16;
            run(stream, p, s);
            s = vary(s);
            s.table_padding = random_integer(0, 9);
            s.padding = random_integer(1, 17);
            s.place = random_place();
            run(stream, p, s);
        }
}

/* Each source, layout and kind of cache where all is aligned. */
static void test_options(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < 12; i++)
            run(stream, p,
                (shape){.tokens = 3,
                        .heads = 4,
                        .kv_heads = 2,
                        .head_dim = 48,
                        .pairs = 16,
                        .capacity = 5,
                        .source = (source)(i % 3),
                        .layout = (kiln_rope_layout)(i / 3 % 2),
                        .together = true,
                        .positioned = true,
                        .codes = i / 6,
                        .scales = 2});
}

/* More pairs than a GPU's threads take one by one, and so many heads that a thread has two. */
static void test_many(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++) {
        const int64_t vector = 16 / (int64_t)precision_size(p);
        shape s = vary((shape){.tokens = 2428, .heads = 21, .kv_heads = 3, .head_dim = 2 * vector, .pairs = vector});
        s.source = BY_FREQUENCY;
        run(stream, p, s);
        s = vary((shape){.tokens = 13, .heads = 40, .kv_heads = 20, .head_dim = 128, .pairs = 64});
        s.source = BY_FREQUENCY;
        run(stream, p, s);
        s = vary((shape){.tokens = 2428, .heads = 21, .kv_heads = 3, .head_dim = 2, .pairs = 1});
        run(stream, p, s);
    }
}

/* Tensors of more than the 8 MB from which the CPU writes results past the caches. */
static void test_large(kiln_stream *stream) {
    if (!harness_on_cpu(stream)) return;
    shape s = vary((shape){.tokens = 501, .heads = 32, .kv_heads = 8, .head_dim = 128, .pairs = 50, .padding = 3});
    s.codes = false;
    s.place = 1;
    run(stream, F32, s);
    s.padding = s.place = 0;
    s.tokens = s.capacity = 1025;
    run(stream, BF16, s);
}

/* Nothing is stored without keys or without a cache, and nothing rotated without queries; then their tensors may be
 * NULL. */
static void test_parts(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++) {
        harness_describe("rope_kv_store_%s of queries alone, and of keys and values alone", precision_name(p));
        matrix x = matrix_create(stream, p, 1, 8, 0, 0), y = matrix_create(stream, p, 1, 8, 0, 0);
        matrix cosines = matrix_create(stream, p, 1, 4, 0, 0), cache = matrix_create(stream, p, 1, 8, 0, 0);
        matrix slots = matrix_create(stream, I32, 1, 1, 0, 0);
        const double numbers[] = {1, 2, 3, 4, 5, 6, 7, 8}, turned[] = {-5, -6, -7, -8, 1, 2, 3, 4};
        matrix_set(&x, numbers);
        matrix_set(&cosines, (const double[]){0, 0, 0, 0});
        matrix_set(&slots, (const double[]){0});
        matrix sines = matrix_create(stream, p, 1, 4, 0, 0);
        matrix_set(&sines, (const double[]){1, 1, 1, 1});
        const kiln_rope_kv_store_params queries = {.query_out = y.data,
                                                   .query = x.data,
                                                   .cosines = cosines.data,
                                                   .sines = sines.data,
                                                   .tokens = 1,
                                                   .heads = 1,
                                                   .head_dim = 8,
                                                   .pairs = 4,
                                                   .capacity = 1,
                                                   .table_rows = 1,
                                                   .layout = KILN_ROPE_HALF};
        harness_ok(operator_function(&kiln__operator_rope_kv_store, p)->call(stream, &queries, sizeof queries));
        matrix_expect_exact(&y, turned);
        kiln_rope_kv_store_params params = queries;
        params.kv_heads = 1;
        params.capacity = 0;
        matrix_poison(&y);
        harness_ok(operator_function(&kiln__operator_rope_kv_store, p)->call(stream, &params, sizeof params));
        matrix_expect_exact(&y, turned);
        params.heads = 0;
        params.capacity = 1;
        params.query = params.query_out = NULL;
        params.key_cache = y.data;
        params.value_cache = cache.data;
        params.key = params.value = x.data;
        params.slot_mapping = slots.data;
        matrix_poison(&y);
        harness_ok(operator_function(&kiln__operator_rope_kv_store, p)->call(stream, &params, sizeof params));
        matrix_expect_exact(&y, turned);
        matrix_expect_exact(&cache, numbers);
        matrix_expect_unchanged(&x);
        matrix *const matrices[] = {&x, &y, &cosines, &sines, &cache, &slots};
        for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++)
            matrix_destroy(matrices[i]);
    }
}

static void test_refusals(kiln_stream *stream) {
    harness_describe("rope_kv_store refused");
    matrix x = matrix_create(stream, F32, 1, 64, 0, 0);
    const kiln_rope_kv_store_params good = {.query_out = x.data,
                                            .key_cache = x.data,
                                            .value_cache = x.data,
                                            .query = x.data,
                                            .key = x.data,
                                            .value = x.data,
                                            .slot_mapping = x.data,
                                            .cosines = x.data,
                                            .sines = x.data,
                                            .tokens = 2,
                                            .heads = 2,
                                            .kv_heads = 2,
                                            .head_dim = 8,
                                            .pairs = 4,
                                            .capacity = 2,
                                            .table_rows = 2};
#define REFUSED(field, value, word)                                                                                  \
    {                                                                                                                \
        kiln_rope_kv_store_params params = good;                                                                     \
        params.field = (value);                                                                                      \
        expect_refusal(stream, operator_function(&kiln__operator_rope_kv_store, F32), &params, sizeof params, word); \
    }
    const void *odd = (const char *)x.data + 2;
    REFUSED(tokens, -1, "tokens")
    REFUSED(heads, -1, "heads")
    REFUSED(kv_heads, 1 << 21, "kv_heads")
    REFUSED(head_dim, -1, "head_dim")
    REFUSED(pairs, 5, "pairs")
    REFUSED(capacity, -1, "capacity")
    REFUSED(table_rows, -1, "table_rows")
    REFUSED(table_stride, 3, "table_stride")
    REFUSED(cache_scales, 3, "cache_scales")
    REFUSED(scale, NAN, "scale")
    REFUSED(layout, 2, "layout")
    REFUSED(position_type, 2, "position_type")
    REFUSED(slot_type, -1, "slot_type")
    REFUSED(table_type, 2, "table_type")
    REFUSED(cache_type, 2, "cache_type")
    REFUSED(query_out, NULL, "query_out")
    REFUSED(query, NULL, "query")
    REFUSED(key, odd, "key")
    REFUSED(value, NULL, "value")
    REFUSED(key_cache, NULL, "key_cache")
    REFUSED(value_cache, NULL, "value_cache")
    REFUSED(slot_mapping, odd, "slot_mapping")
    REFUSED(positions, odd, "positions")
    REFUSED(frequencies, odd, "frequencies")
    REFUSED(cosines, NULL, "cosines")
    REFUSED(sines, odd, "sines")
    REFUSED(k_scale, odd, "k_scale")
    REFUSED(v_scale, odd, "v_scale")
    REFUSED(query_out_stride, 20, "query_out_stride")
    REFUSED(query_stride, 15, "query_stride")
    REFUSED(key_stride, 15, "key_stride")
    REFUSED(value_stride, 15, "value_stride")
    REFUSED(key_cache_stride, 15, "key_cache_stride")
    REFUSED(value_cache_stride, 15, "value_cache_stride")
#undef REFUSED
    matrix_expect_unchanged(&x);
    matrix_destroy(&x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        on_each_device(test_shapes), on_each_device(test_options), on_each_device(test_many),
        on_one_device(test_large),   on_each_device(test_parts),   on_one_device(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
