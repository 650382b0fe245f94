/* engram_hash against a plain reference: integers, equal on every device, and the same whether sequences are hashed at
 * once or token by token. */
#include "tests/ops/harness.h"
#include <stdlib.h>
#include <string.h>

typedef struct shape {
    int64_t tokens, batch, layers, orders, heads, vocabulary;
    bool ragged, offset, long_ids;
    int64_t most; /* of the multipliers */
} shape;

/* What a call has, with its tensors as numbers. */
typedef struct problem {
    shape s;
    int64_t *ids, *history, *multipliers, *primes, *offsets, *expected;
    int32_t *cu_seqlens, *lookup;
    int64_t pad_id;
} problem;

static void *room(int64_t count, size_t size) {
    void *memory = calloc((size_t)count + 1, size);
    assert_non_null(memory);
    return memory;
}

static int64_t any_id(const shape *s) {
    if (random_integer(0, 9) == 0) return random_integer(-3, s->vocabulary + 2);
    if (s->long_ids && random_integer(0, 3) == 0) return (int64_t)random_bits();
    return random_integer(0, s->vocabulary);
}

static int64_t any_prime(void) {
    static const int64_t primes[] = {646403,     646411,     2, 1, 3, INT64_MAX, ((int64_t)1 << 61) - 1,
                                     4294967291, 4294967296, 0, -7};
    return primes[random_integer(0, random_integer(0, 1) ? 1 : sizeof primes / sizeof *primes - 1)];
}

static problem problem_create(shape s) {
    int64_t columns = s.orders * s.heads;
    problem p = {s,
                 room(s.tokens, 8),
                 room(s.batch * s.orders, 8),
                 room(s.layers * (s.orders + 1), 8),
                 room(s.layers * columns, 8),
                 room(s.layers * columns, 8),
                 room(s.layers * s.tokens * columns, 8),
                 room(s.batch + 1, 4),
                 room(s.vocabulary, 4),
                 random_integer(-1, s.vocabulary)};
    for (int64_t i = 0; i < s.tokens; i++)
        p.ids[i] = any_id(&s);
    for (int64_t i = 0; i < s.batch * s.orders; i++)
        p.history[i] = any_id(&s);
    for (int64_t i = 0; i < s.layers * (s.orders + 1); i++)
        p.multipliers[i] = s.most ? random_integer(0, s.most) * 2 + 1 : (int64_t)random_bits();
    for (int64_t i = 0; i < s.layers * columns; i++) {
        p.primes[i] = any_prime();
        p.offsets[i] = s.offset ? random_integer(0, 1 << 30) : 0;
    }
    for (int64_t i = 0; i < s.vocabulary; i++)
        p.lookup[i] = (int32_t)random_integer(0, s.vocabulary - 1);
    for (int64_t i = 0; i <= s.batch; i++)
        p.cu_seqlens[i] = (int32_t)(s.ragged ? random_integer(0, s.tokens) : i * (s.tokens / s.batch));
    for (int64_t i = 1; s.ragged && i <= s.batch; i++) /* in order, by insertion */
        for (int64_t at = i; at > 0 && p.cu_seqlens[at] < p.cu_seqlens[at - 1]; at--) {
            int32_t other = p.cu_seqlens[at];
            p.cu_seqlens[at] = p.cu_seqlens[at - 1];
            p.cu_seqlens[at - 1] = other;
        }
    return p;
}

static void problem_destroy(problem *p) {
    void *const memory[] = {p->ids,     p->history,  p->multipliers, p->primes,
                            p->offsets, p->expected, p->cu_seqlens,  p->lookup};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        free(memory[i]);
}

static int64_t looked_up(const problem *p, int64_t id, bool lookup) {
    return lookup && id >= 0 && id < p->s.vocabulary ? p->lookup[id] : id;
}

/* Sequence by sequence, by __int128's remainder. */
static void reference(const problem *p, bool history, bool lookup) {
    const shape *s = &p->s;
    int64_t columns = s->orders * s->heads;
    for (int64_t i = 0; i < s->layers * s->tokens * columns; i++)
        p->expected[i] = -1;
    for (int64_t b = 0; b < s->batch; b++)
        for (int64_t t = p->cu_seqlens[b]; t < p->cu_seqlens[b + 1]; t++)
            for (int64_t i = 0; i < s->layers * columns; i++) {
                int64_t layer = i / columns, order = i % columns / s->heads;
                uint64_t mix = 0;
                for (int64_t k = 0; k <= order + 1; k++) {
                    int64_t place = t - p->cu_seqlens[b] - k, id = p->pad_id;
                    if (place >= 0)
                        id = p->ids[t - k];
                    else if (history)
                        id = p->history[b * s->orders + s->orders + place];
                    mix ^= (uint64_t)looked_up(p, id, lookup) * (uint64_t)p->multipliers[layer * (s->orders + 1) + k];
                }
                if (p->primes[i] < 1) continue;
                int64_t left = (int64_t)((__int128)(int64_t)mix % p->primes[i]);
                if (left < 0) left += p->primes[i];
                p->expected[(layer * s->tokens + t) * columns + i % columns] = left + p->offsets[i];
            }
}

/* ---- Calls ------------------------------------------------------------------------------------------------------- */

/* Integers of 64 bits as doubles, which hold halves of them alone: the lower half before the upper. */
static double *halves(int64_t count, const int64_t *numbers) {
    double *pairs = room(2 * count, sizeof *pairs);
    for (int64_t i = 0; i < count; i++) {
        pairs[2 * i] = (int32_t)(uint32_t)numbers[i];
        pairs[2 * i + 1] = (int32_t)(numbers[i] >> 32);
    }
    return pairs;
}

static matrix wide_integers(kiln_stream *stream, int64_t count, const int64_t *numbers) {
    matrix m = matrix_create(stream, I32, 1, 2 * count, 0, AT_END);
    double *pairs = halves(count, numbers);
    matrix_set(&m, pairs);
    free(pairs);
    return m;
}

static matrix narrow_integers(kiln_stream *stream, int64_t count, const int32_t *numbers) {
    matrix m = matrix_create(stream, I32, 1, count, 0, AT_END);
    for (int64_t i = 0; i < count; i++)
        m.values[i] = numbers[i];
    matrix_set(&m, m.values);
    return m;
}

/* Ids of either type. */
static matrix ids_of(kiln_stream *stream, bool wide, int64_t count, const int64_t *numbers) {
    if (wide) return wide_integers(stream, count, numbers);
    matrix m = matrix_create(stream, I32, 1, count, 0, AT_END);
    for (int64_t i = 0; i < count; i++)
        m.values[i] = (double)numbers[i];
    matrix_set(&m, m.values);
    return m;
}

static void expect(matrix *rows, const problem *p) {
    double *expected = halves(p->s.layers * p->s.tokens * p->s.orders * p->s.heads, p->expected);
    matrix_expect_exact(rows, expected);
    free(expected);
}

/* optional: a bit for each of what may be left out. */
enum { HISTORY = 1, LOOKUP = 2, OFFSETS = 4, SEQUENCES = 8, WIDE = 16 };

static void run(kiln_stream *stream, precision part, problem *p, int optional) {
    const shape *s = &p->s;
    const bool wide = s->long_ids || optional & WIDE;
    int64_t columns = s->orders * s->heads;
    harness_describe(
        "engram_hash_%s of %lld tokens, %lld sequences%s, %lld layers, %lld orders of %lld heads, options %d",
        precision_name(part), (long long)s->tokens, (long long)s->batch, s->ragged ? ", ragged" : "",
        (long long)s->layers, (long long)s->orders, (long long)s->heads, optional);
    reference(p, optional & HISTORY, optional & LOOKUP);
    matrix rows = matrix_create(stream, I32, 1, 2 * s->layers * s->tokens * columns, 0, AT_END);
    matrix inputs[] = {ids_of(stream, wide, s->tokens, p->ids),
                       ids_of(stream, wide, s->batch * s->orders, p->history),
                       narrow_integers(stream, s->batch + 1, p->cu_seqlens),
                       narrow_integers(stream, s->vocabulary, p->lookup),
                       wide_integers(stream, s->layers * (s->orders + 1), p->multipliers),
                       wide_integers(stream, s->layers * columns, p->primes),
                       wide_integers(stream, s->layers * columns, p->offsets)};
    kiln_engram_hash_params params = {.rows = rows.data,
                                      .ids = inputs[0].data,
                                      .history = optional & HISTORY ? inputs[1].data : NULL,
                                      .cu_seqlens = optional & SEQUENCES || s->ragged ? inputs[2].data : NULL,
                                      .lookup = optional & LOOKUP ? inputs[3].data : NULL,
                                      .multipliers = inputs[4].data,
                                      .primes = inputs[5].data,
                                      .offsets = optional & OFFSETS || s->offset ? inputs[6].data : NULL,
                                      .tokens = s->tokens,
                                      .batch = s->batch,
                                      .layers = s->layers,
                                      .orders = s->orders,
                                      .heads = s->heads,
                                      .vocabulary = s->vocabulary,
                                      .pad_id = p->pad_id,
                                      .index_type = wide ? KILN_INDEX_I64 : KILN_INDEX_I32};
    harness_ok(operator_function(&kiln__operator_engram_hash, part)->call(stream, &params, sizeof params));
    expect(&rows, p);
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        matrix_expect_unchanged(&inputs[i]);
        matrix_destroy(&inputs[i]);
    }
    matrix_destroy(&rows);
}

static void run_random(kiln_stream *stream, precision part, shape s) {
    problem p = problem_create(s);
    run(stream, part, &p, (int)random_integer(0, 31));
    problem_destroy(&p);
}

/* ---- Tests ------------------------------------------------------------------------------------------------------- */

static void test_shapes(kiln_stream *stream) {
    static const shape shapes[] = {
        {.tokens = 1, .batch = 1, .layers = 1, .orders = 1, .heads = 1, .vocabulary = 1, .most = 9},
        {.tokens = 37, .batch = 1, .layers = 2, .orders = 2, .heads = 8, .vocabulary = 300, .most = 1 << 20},
        {.tokens = 64, .batch = 64, .layers = 2, .orders = 2, .heads = 8, .vocabulary = 300, .offset = true},
        {.tokens = 60, .batch = 5, .layers = 3, .orders = 3, .heads = 5, .vocabulary = 50, .long_ids = true},
        {.tokens = 90, .batch = 7, .layers = 1, .orders = 4, .heads = 1, .vocabulary = 9, .ragged = true},
        {.tokens = 11, .batch = 3, .layers = 2, .orders = 1, .heads = 255, .vocabulary = 9, .ragged = true},
        {.tokens = 9, .batch = 9, .layers = 1, .orders = 128, .heads = 2, .vocabulary = 9, .long_ids = true},
    };
    for (precision part = precision_first(); part < precision_end(); part++)
        for (size_t i = 0; i < 3 * sizeof shapes / sizeof *shapes; i++) /* with what there may be in any combination */
            run_random(stream, part, shapes[i / 3]);
}

/* More tokens than threads have one each: runs of two, of which the last is not whole. */
static void test_runs(kiln_stream *stream) {
    run_random(stream, F16,
               (shape){.tokens = 257, .batch = 1, .layers = 2, .orders = 1, .heads = 255, .vocabulary = 9});
}

static void test_long(kiln_stream *stream) {
    if (!harness_on_cpu(stream)) return;
    run_random(stream, BF16,
               (shape){.tokens = 33000, .batch = 3, .layers = 2, .orders = 2, .heads = 8, .vocabulary = 999});
    run_random(stream, F32,
               (shape){.tokens = 99, .batch = 1, .layers = 32768, .orders = 1, .heads = 1, .vocabulary = 9});
}

/* Engram's own numbers: 129280 tokens, tables of primes from 646400 on, multipliers with which no product overflows. */
static void test_model(kiln_stream *stream) {
    problem p = problem_create((shape){.tokens = 24,
                                       .batch = 2,
                                       .layers = 2,
                                       .orders = 2,
                                       .heads = 8,
                                       .vocabulary = 129280,
                                       .most = INT64_MAX / 129280 / 2 - 1,
                                       .offset = true});
    int64_t prime = 129280 * 5, row = 0;
    for (int64_t i = 0; i < 2 * 16; i++) {
        for (bool divided = true; divided;) {
            divided = ++prime % 2 == 0;
            for (int64_t d = 3; d * d <= prime && !divided; d += 2)
                divided = prime % d == 0;
        }
        p.primes[i] = prime;
        p.offsets[i] = i % 16 ? row : 0;
        row = p.offsets[i] + prime;
    }
    run(stream, precision_first(), &p, HISTORY | LOOKUP);
    run(stream, precision_first(), &p, LOOKUP | WIDE);
    problem_destroy(&p);
}

/* A step for each token, with the ids before it as its history, gives what the whole sequences give. */
static void test_decode(kiln_stream *stream) {
    enum { BATCH = 3, LENGTH = 5, ORDERS = 2, HEADS = 3, COLUMNS = ORDERS * HEADS };
    problem whole = problem_create((shape){
        .tokens = BATCH * LENGTH, .batch = BATCH, .layers = 1, .orders = ORDERS, .heads = HEADS, .vocabulary = 40});
    reference(&whole, false, true);
    problem step = problem_create(
        (shape){.tokens = BATCH, .batch = BATCH, .layers = 1, .orders = ORDERS, .heads = HEADS, .vocabulary = 40});
    memcpy(step.multipliers, whole.multipliers, sizeof(int64_t) * (ORDERS + 1));
    memcpy(step.primes, whole.primes, sizeof(int64_t) * COLUMNS);
    memcpy(step.lookup, whole.lookup, sizeof(int32_t) * 40);
    step.pad_id = whole.pad_id;
    for (int64_t t = 0; t < LENGTH; t++) {
        for (int64_t b = 0; b < BATCH; b++) {
            step.ids[b] = whole.ids[b * LENGTH + t];
            for (int64_t i = 0; i < ORDERS; i++) {
                int64_t place = t - ORDERS + i;
                step.history[b * ORDERS + i] = place < 0 ? whole.pad_id : whole.ids[b * LENGTH + place];
            }
        }
        run(stream, precision_first(), &step, HISTORY | LOOKUP);
        for (int64_t b = 0; b < BATCH; b++)
            assert_memory_equal(step.expected + b * COLUMNS, whole.expected + (b * LENGTH + t) * COLUMNS,
                                sizeof(int64_t) * COLUMNS);
    }
    problem_destroy(&whole);
    problem_destroy(&step);
}

/* cu_seqlens that no sequences can have: nothing is read that is not there. */
static void test_bad_sequences(kiln_stream *stream) {
    problem p = problem_create(
        (shape){.tokens = 8, .batch = 3, .layers = 1, .orders = 2, .heads = 2, .vocabulary = 9, .ragged = true});
    static const int32_t odd[] = {-5, 3, 100, 7};
    memcpy(p.cu_seqlens, odd, sizeof odd);
    harness_describe("engram_hash of sequences out of order");
    matrix rows = matrix_create(stream, I32, 1, 2 * 8 * 4, 0, AT_END), ids = ids_of(stream, false, 8, p.ids);
    matrix sequences = narrow_integers(stream, 4, p.cu_seqlens), primes = wide_integers(stream, 4, p.primes);
    matrix multipliers = wide_integers(stream, 3, p.multipliers);
    kiln_engram_hash_params params = {.rows = rows.data,
                                      .ids = ids.data,
                                      .cu_seqlens = sequences.data,
                                      .multipliers = multipliers.data,
                                      .primes = primes.data,
                                      .tokens = 8,
                                      .batch = 3,
                                      .layers = 1,
                                      .orders = 2,
                                      .heads = 2};
    harness_ok(kiln_engram_hash_f32(stream, &params));
    matrix_get(&rows);
    matrix *all[] = {&rows, &ids, &sequences, &primes, &multipliers};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        matrix_destroy(all[i]);
    problem_destroy(&p);
}

static void test_refusals(kiln_stream *stream) {
    int64_t memory[8] = {0};
    const kiln_engram_hash_params good = {.rows = memory,
                                          .ids = memory,
                                          .multipliers = memory,
                                          .primes = memory,
                                          .tokens = 2,
                                          .layers = 1,
                                          .orders = 1,
                                          .heads = 1};
    const kiln_operator_function *function = operator_function(&kiln__operator_engram_hash, F32);
#define REFUSED(field, value, parameter)                                     \
    do {                                                                     \
        kiln_engram_hash_params params = good;                               \
        params.field = value;                                                \
        expect_refusal(stream, function, &params, sizeof params, parameter); \
    } while (0)
    REFUSED(tokens, -1, "tokens");
    REFUSED(tokens, (int64_t)1 << 31, "tokens");
    REFUSED(batch, 3, "batch");
    REFUSED(layers, 32769, "layers");
    REFUSED(orders, -1, "orders");
    REFUSED(heads, 257, "heads");
    REFUSED(orders, 257, "orders");
    REFUSED(vocabulary, -1, "vocabulary");
    REFUSED(index_type, 2, "index_type");
    REFUSED(reserved, 1, "reserved");
    REFUSED(rows, NULL, "rows");
    REFUSED(ids, NULL, "ids");
    REFUSED(multipliers, (const int64_t *)(const void *)((const char *)memory + 4), "multipliers");
    REFUSED(primes, NULL, "primes");
    REFUSED(offsets, (const int64_t *)(const void *)((const char *)memory + 4), "offsets");
    REFUSED(history, (const char *)memory + 1, "history");
#undef REFUSED
    kiln_engram_hash_params params = good;
    params.lookup = (const int32_t *)(const void *)((const char *)memory + 2);
    params.vocabulary = 2;
    expect_refusal(stream, function, &params, sizeof params, "lookup");
    params = good;
    params.orders = 16;
    params.heads = 17;
    expect_refusal(stream, function, &params, sizeof params, "heads");
    params = good;
    params.tokens = 0;
    params.ids = NULL;
    harness_ok(kiln_engram_hash_f32(stream, &params));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        on_each_device(test_shapes),  on_each_device(test_runs),   on_one_device(test_long),
        on_each_device(test_model),   on_each_device(test_decode), on_each_device(test_bad_sequences),
        on_one_device(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
