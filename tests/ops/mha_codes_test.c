/* mha_int8_x_fp8_fwd and mha_fp8_fwd: against f64, with weights that are rounded as they promise, for all shapes, masks
 * and ways to share scales; and with mha_quantize before them against attention on the tensors themselves. */
#include "tests/ops/attention.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Both operators' params have the same fields at the same places. */
_Static_assert(sizeof(kiln_mha_fp8_fwd_params) == sizeof(kiln_mha_int8_x_fp8_fwd_params), "one struct for both");

static const kiln_operator *const operators[] = {&kiln__operator_mha_int8_x_fp8_fwd, &kiln__operator_mha_fp8_fwd};

static double e4m3_value(int code) {
    int exponent = code >> 3 & 15, fraction = code & 7;
    if ((code & 0x7f) == 0x7f) return NAN;
    double magnitude = exponent ? ldexp(8 + fraction, exponent - 10) : ldexp(fraction, -9);
    return code & 0x80 ? -magnitude : magnitude;
}

/* The nearest E4M3 to a number from 0 to 256. */
static double e4m3_nearest(double number) {
    int exponent;
    frexp(number, &exponent);
    int field = exponent - 1 < -6 || number == 0 ? -6 : exponent - 1;
    return ldexp(nearbyint(ldexp(number, 3 - field)), field - 3);
}

static int64_t up(int64_t count, int64_t step) {
    return (count + step - 1) / step;
}

/* How scales are shared: by no tokens, as blocks, warps or threads have them. */
static int64_t q_scale(int how, int64_t t) {
    return how == 0 ? t : how == 1 ? t / 128 : how == 2 ? t / 32 : t / 32 * 8 + t % 8;
}
static int64_t k_scale(int how, int64_t t) {
    return how == 0 ? t : how == 3 ? t / 64 * 4 + t % 8 / 2 : t / 64;
}
static int64_t scale_rows(bool of_k, int how, int64_t tokens) {
    if (how == 0) return tokens;
    return of_k ? up(tokens, 64) * (how == 3 ? 4 : 1) : up(tokens, how == 1 ? 128 : 32) * (how == 3 ? 8 : 1);
}

typedef struct tensors {
    matrix q, k, v, q_scales, k_scales, v_scales, k_means, v_means, out, lse, cu_seqlens_q, cu_seqlens_k;
    double *q_numbers, *k_numbers, *v_numbers; /* v without its scales */
} tensors;

static double any_int8(void) {
    return (double)random_integer(-127, 127);
}
static double any_e4m3(void) {
    return (double)(random_integer(0, 0x7e) + 128 * random_integer(0, 1));
}
static double small_scale(void) {
    return random_number(0.004, 0.015);
}
static double any_scale(void) {
    return random_number(0.01, 0.02);
}
static double any_number(void) {
    return random_number(-1, 1);
}

static double *numbers_of(const matrix *codes, const matrix *scales, bool of_k, int how, bool e4m3, int64_t size) {
    double *numbers = malloc(sizeof(double) * (size_t)(codes->rows * codes->cols + 1));
    assert_non_null(numbers);
    for (int64_t i = 0; i < codes->rows * codes->cols; i++) {
        int64_t token = i / codes->cols, head = i % codes->cols / size;
        double scale = 1;
        if (scales) scale = scales->values[head * scales->cols + (of_k ? k_scale(how, token) : q_scale(how, token))];
        numbers[i] = (e4m3 ? e4m3_value((int)codes->values[i]) : codes->values[i]) * scale;
    }
    return numbers;
}

static tensors create(kiln_stream *stream, precision p, attention_shape s, bool fp8, int how) {
    int64_t tokens = attention_total(s.seqlens_q, s.batch), keys = attention_total(s.seqlens_k, s.batch);
    int64_t width = s.heads * s.size, kv_width = s.kv_heads * s.size;
    precision codes = fp8 ? U8 : I8;
    tensors t = {
        .q = matrix_create(stream, codes, tokens, width, width + s.padding, s.place),
        .k = matrix_create(stream, codes, keys, kv_width, kv_width + s.padding, s.place),
        .v = matrix_create(stream, U8, keys, kv_width, kv_width + s.padding, s.place),
        .q_scales = matrix_create(stream, F32, s.heads, scale_rows(false, how, tokens), 0, AT_END),
        .k_scales = matrix_create(stream, F32, s.kv_heads, scale_rows(true, how, keys), 0, AT_END),
        .v_scales = matrix_create(stream, F32, s.batch, kv_width, 0, AT_END),
        .k_means = matrix_create(stream, F32, s.batch, kv_width, 0, AT_END),
        .v_means = matrix_create(stream, F32, s.batch, kv_width, 0, AT_END),
        .out = matrix_create(stream, p, tokens, width, width + s.padding, s.place),
        .lse = matrix_create(stream, F32, s.heads, tokens, 0, 0),
        .cu_seqlens_q = matrix_create(stream, I32, 1, s.batch + 1, 0, AT_END),
        .cu_seqlens_k = matrix_create(stream, I32, 1, s.batch + 1, 0, AT_END),
    };
    matrix_fill(&t.q, fp8 ? any_e4m3 : any_int8);
    matrix_fill(&t.k, fp8 ? any_e4m3 : any_int8);
    matrix_fill(&t.v, any_e4m3);
    matrix_fill(&t.q_scales, small_scale);
    matrix_fill(&t.k_scales, small_scale);
    matrix_fill(&t.v_scales, any_scale);
    matrix_fill(&t.k_means, any_number);
    matrix_fill(&t.v_means, any_number);
    for (int64_t i = 0; i <= s.batch; i++) {
        t.cu_seqlens_q.values[i] = (double)attention_total(s.seqlens_q, i);
        t.cu_seqlens_k.values[i] = (double)attention_total(s.seqlens_k, i);
    }
    matrix_set(&t.cu_seqlens_q, t.cu_seqlens_q.values);
    matrix_set(&t.cu_seqlens_k, t.cu_seqlens_k.values);
    t.q_numbers = numbers_of(&t.q, &t.q_scales, false, how, fp8, s.size);
    t.k_numbers = numbers_of(&t.k, &t.k_scales, true, how, fp8, s.size);
    t.v_numbers = numbers_of(&t.v, NULL, true, how, true, s.size);
    return t;
}

static void destroy(tensors *t) {
    matrix *all[] = {&t->q,       &t->k,       &t->v,   &t->q_scales, &t->k_scales,     &t->v_scales,
                     &t->k_means, &t->v_means, &t->out, &t->lse,      &t->cu_seqlens_q, &t->cu_seqlens_k};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        matrix_destroy(all[i]);
    free(t->q_numbers);
    free(t->k_numbers);
    free(t->v_numbers);
}

static const kiln_bundle *bundle_of(bool fp8) {
    extern const kiln_bundle kiln__bundle_mha_fp8_fwd, kiln__bundle_mha_int8_x_fp8_fwd;
    return fp8 ? &kiln__bundle_mha_fp8_fwd : &kiln__bundle_mha_int8_x_fp8_fwd;
}

/* What each product of a sum of values loses, relative to the greatest one, where warpgroups multiply E4M3: they keep
 * 13 bits below the greatest and cut off toward zero, so that up to 128 losses in one sum have one direction. */
static double truncation(kiln_stream *stream, precision p, bool fp8) {
    char name[64];
    kiln_kernel_info info;
    snprintf(name, sizeof name, "kiln_%s_wgmma_128_%s", operators[fp8]->name, precision_name(p));
    return harness_find_kernel(stream, bundle_of(fp8), p, name, &info) ? 0x1p-13 : 0;
}

/* What a sum of matrix instructions on E4M3 loses of the magnitudes of what it adds, where none of them outweighs the
 * others, as in a score. Products of 16 bits, in which sm_80 and sm_86 have those of E4M3, lose what f32 does. */
static double coarseness(kiln_stream *stream, precision p, bool fp8) {
    kiln_device_info info;
    if (truncation(stream, p, fp8) != 0) return 0x1p-10;
    harness_ok(kiln_device_get_info(stream->device, &info));
    return harness_has_tuned(stream, bundle_of(fp8), p) && info.target.compute_capability >= 89 ? 0x1p-11 : 0;
}

/* One query of one head: sums of v's numbers with rounded weights, which are off by a step where the score's rounding
 * may take them to the other side of a tie, or below 2^-14, where their step depends on the order of keys. */
static void query_reference(const attention_shape *s, bool fp8, const double *q, const double *k, const double *v,
                            int64_t stride, int64_t query, int64_t seqlen_q, int64_t seqlen_k, double *out,
                            double *allowed, double *lse, double *lse_allowed) {
    double *weights = malloc(sizeof *weights * (size_t)(seqlen_k + 1)), *slack = calloc((size_t)seqlen_k + 1, 8);
    double *largest = malloc(sizeof *largest * (size_t)(s->size + 1));
    double max = -INFINITY, sum = 0, rounded = 0, loss = 0, greatest = 0, terms = 0;
    assert_true(weights && slack && largest);
    int64_t own = query + seqlen_k - seqlen_q, right = s->causal ? 1 : s->right;
    double scale = s->scale == 0 ? 1 / sqrt((double)s->size) : (double)(float)s->scale;
    for (int64_t key = 0; key < seqlen_k; key++) {
        double dot, magnitude;
        harness_dot(q, k + key * stride, s->size, &dot, &magnitude);
        bool seen = !(s->left && key <= own - s->left) && !(right && key >= own + right);
        weights[key] = seen ? dot * scale : -INFINITY;
        max = fmax(max, weights[key]);
        if (seen)
            loss =
                fmax(loss, magnitude * fabs(scale) * (sqrt((double)s->size + 8) * 0x1p-23 + (fp8 ? s->rounding : 0)));
    }
    double origin = ceil(max / log(2)) * log(2);
    loss += 2e-6 + fabs(max) * 4e-7;
    for (int64_t key = 0; key < seqlen_k; key++) {
        if (weights[key] == -INFINITY) {
            weights[key] = 0;
            continue;
        }
        double weight = exp(weights[key] - origin);
        double low = e4m3_nearest(256 * weight * (1 - loss)), high = e4m3_nearest(256 * weight * (1 + loss));
        sum += weight;
        weights[key] = e4m3_nearest(256 * weight) / 256;
        slack[key] = (high - low) / 256 + (weight < 0x1p-13 ? 0x1p-17 : 0);
        rounded += weights[key];
        greatest = fmax(greatest, weights[key]);
        terms += weights[key] != 0;
    }
    for (int64_t d = 0; d < s->size; d++)
        out[d] = allowed[d] = largest[d] = 0;
    for (int64_t key = 0; key < seqlen_k; key++)
        for (int64_t d = 0; d < s->size && weights[key] != 0; d++) {
            double term = weights[key] * v[key * stride + d];
            out[d] += term;
            allowed[d] += fabs(term);
            largest[d] = fabs(term) > largest[d] ? fabs(term) : largest[d];
        }
    for (int64_t d = 0; d < s->size; d++) {
        out[d] = rounded == 0 ? 0 : out[d] / rounded;
        allowed[d] = rounded == 0 ? 0 : (4e-6 + 2 * s->rounding) * allowed[d] / rounded;
        if (rounded != 0) allowed[d] += s->truncation * terms * (largest[d] + fabs(out[d]) * greatest) / rounded;
    }
    for (int64_t key = 0; key < seqlen_k; key++)
        for (int64_t d = 0; d < s->size && slack[key] != 0; d++)
            allowed[d] += 1.1 * slack[key] * fabs(v[key * stride + d] - out[d]) / rounded;
    *lse = sum == 0 ? -INFINITY : origin + log(sum);
    *lse_allowed = loss + 2e-6;
    free(weights);
    free(slack);
    free(largest);
}

static void reference(const attention_shape *s, const tensors *t, bool fp8, bool k_means, bool v_means,
                      double *expected, double *allowed, double *lses, double *lses_allowed) {
    int64_t tokens = t->q.rows, width = t->q.cols, kv_width = t->k.cols;
    double scale = s->scale == 0 ? 1 / sqrt((double)s->size) : (double)(float)s->scale;
    for (int64_t b = 0; b < s->batch; b++) {
        int64_t first = attention_total(s->seqlens_q, b), kv_first = attention_total(s->seqlens_k, b);
        for (int64_t query = 0; query < s->seqlens_q[b]; query++)
            for (int64_t head = 0; head < s->heads; head++) {
                int64_t kv_head = head / (s->heads / s->kv_heads), token = first + query;
                int64_t place = token * width + head * s->size, channels = b * kv_width + kv_head * s->size;
                int64_t key = kv_first * kv_width + kv_head * s->size;
                double *lse = &lses[head * tokens + token], *lse_allowed = &lses_allowed[head * tokens + token];
                query_reference(s, fp8, t->q_numbers + place, t->k_numbers + key, t->v_numbers + key, kv_width, query,
                                s->seqlens_q[b], s->seqlens_k[b], expected + place, allowed + place, lse, lse_allowed);
                for (int64_t d = 0; d < s->size; d++) {
                    double mean = v_means && *lse != -INFINITY ? t->v_means.values[channels + d] : 0;
                    expected[place + d] = expected[place + d] * t->v_scales.values[channels + d] + mean;
                    allowed[place + d] = allowed[place + d] * t->v_scales.values[channels + d] + 2e-7 * fabs(mean);
                    double term = k_means ? t->q_numbers[place + d] * t->k_means.values[channels + d] * scale : 0;
                    *lse += term;
                    *lse_allowed += 1e-6 * fabs(term);
                }
            }
    }
}

static kiln_mha_fp8_fwd_params params_of(const tensors *t, attention_shape s, int how, bool k_means, bool v_means) {
    return (kiln_mha_fp8_fwd_params){.out = t->out.data,
                                     .lse = s.lse ? t->lse.data : NULL,
                                     .q = t->q.data,
                                     .k = t->k.data,
                                     .v = t->v.data,
                                     .q_scales = t->q_scales.data,
                                     .k_scales = t->k_scales.data,
                                     .v_scales = t->v_scales.data,
                                     .k_means = k_means ? t->k_means.data : NULL,
                                     .v_means = v_means ? t->v_means.data : NULL,
                                     .cu_seqlens_q = s.varlen ? t->cu_seqlens_q.data : NULL,
                                     .cu_seqlens_k = s.varlen ? t->cu_seqlens_k.data : NULL,
                                     .tokens = t->q.rows,
                                     .kv_tokens = t->k.rows,
                                     .batch = s.batch,
                                     .heads = s.heads,
                                     .kv_heads = s.kv_heads,
                                     .head_dim = s.size,
                                     .q_scale_rows = how ? t->q_scales.cols : 0,
                                     .k_scale_rows = how ? t->k_scales.cols : 0,
                                     .out_stride = s.padding ? t->out.stride : 0,
                                     .q_stride = s.padding ? t->q.stride : 0,
                                     .k_stride = s.padding ? t->k.stride : 0,
                                     .v_stride = s.padding ? t->v.stride : 0,
                                     .max_seqlen_q = s.varlen ? attention_longest(s.seqlens_q, s.batch) : 0,
                                     .max_seqlen_k = s.varlen ? attention_longest(s.seqlens_k, s.batch) : 0,
                                     .window_left = s.left,
                                     .window_right = s.right,
                                     .scale = (float)s.scale,
                                     .causal = s.causal,
                                     .kernel = s.portable ? KILN_MHA_KERNEL_PORTABLE : KILN_MHA_KERNEL_AUTO};
}

static void call(kiln_stream *stream, const kiln_operator_function *function, kiln_mha_fp8_fwd_params params,
                 bool shared) {
    matrix workspace = {0};
    if (shared) {
        harness_ok(function->workspace_size(stream, &params, sizeof params, &params.workspace_size));
        workspace = matrix_create(stream, F32, 1, (int64_t)params.workspace_size / 4, 0, 0);
        if (params.workspace_size) params.workspace = workspace.data;
    }
    harness_ok(function->call(stream, &params, sizeof params));
    if (!shared) return;
    matrix_get(&workspace); /* nothing around it is written */
    matrix_destroy(&workspace);
}

static void run_with(kiln_stream *stream, precision p, attention_shape s, bool fp8, int how, bool k_means,
                     bool v_means) {
    attention_describe(operators[fp8]->name, p, s);
    s.rounding = s.portable ? 0 : coarseness(stream, p, fp8);
    s.truncation = s.portable ? 0 : truncation(stream, p, fp8);
    tensors t = create(stream, p, s, fp8, how);
    size_t count = (size_t)(t.q.rows * t.q.cols), rows = (size_t)(t.q.rows * s.heads);
    double *expected = malloc(8 * (2 * count + 2 * rows)), *allowed = expected + count, *lses = allowed + count;
    assert_non_null(expected);
    if (harness_needs_reference()) reference(&s, &t, fp8, k_means, v_means, expected, allowed, lses, lses + rows);
    call(stream, operator_function(operators[fp8], p), params_of(&t, s, how, k_means, v_means), s.workspace);
    matrix_expect(&t.out, expected, allowed);
    if (s.lse)
        matrix_expect(&t.lse, lses, lses + rows);
    else
        matrix_expect_unchanged(&t.lse);
    matrix_expect_unchanged(&t.q);
    matrix_expect_unchanged(&t.k);
    matrix_expect_unchanged(&t.v);
    free(expected);
    destroy(&t);
}

static void run(kiln_stream *stream, precision p, attention_shape s) {
    int how = (int)random_integer(0, 3);
    int64_t tokens = attention_total(s.seqlens_q, s.batch), keys = attention_total(s.seqlens_k, s.batch);
    /* Numbers of scales that would be taken for another way to share them. */
    if (scale_rows(false, how, tokens) == tokens || scale_rows(true, how, keys) == keys || (how == 2 && tokens <= 32))
        how = 0;
    s.softcap = 0;
    run_with(stream, p, s, random_integer(0, 1), how, random_integer(0, 1), random_integer(0, 1));
}

/* ---- Tests ---- */

static void test_random(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < harness_rounds(stream, 40); i++) {
            attention_shape s = attention_random_shape();
            s.workspace = random_integer(0, 1);
            run(stream, p, s);
        }
}

static void test_edges(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        attention_edges(stream, p, run);
}

/* Heads of all sizes that tuned kernels have, with rows and keys of several tiles; keys divided among groups. */
static void test_sizes(kiln_stream *stream) {
    static const int64_t sizes[] = {16, 64, 96, 112, 128, 160, 256};
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < (int)(sizeof sizes / sizeof *sizes); i++)
            for (int fp8 = 0; fp8 < 2; fp8++) {
                if (!harness_on_cpu(stream) && (i + (int)p + fp8) % 3) continue; /* each once, in one precision */
                attention_shape s = attention_plain(random_integer(33, 140), random_integer(65, 150), 2, 1, sizes[i]);
                s.causal = i % 2;
                s.lse = fp8;
                run_with(stream, p, s, fp8, (i + fp8) % 2 * 3, true, i % 2);
                s = attention_plain(1, random_integer(520, 600), 3, 1, sizes[i]);
                s.workspace = s.lse = true;
                run_with(stream, p, s, fp8, 0, !fp8, fp8);
            }
}

/* Several tiles of rows and of keys where matrix units do them, some of which are seen whole and some of which windows
 * cut at either side; sequences that begin within keys that share a scale; keys divided among groups. */
static void test_tiles(kiln_stream *stream) {
    static const int64_t sizes[] = {64, 96, 128, 144, 208, 256};
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < 12; i++) {
            const bool fp8 = (i + i / 6 + (int)p) % 2;
            if (harness_on_cpu(stream) || !harness_has_tuned(stream, bundle_of(fp8), p)) continue;
            attention_shape s =
                attention_plain(random_integer(170, 215), random_integer(530, 600), 1, 1, sizes[(i + 3 * (int)p) % 6]);
            int how = i % 4 == 0 ? 0 : i % 4 == 1 ? 3 : i % 4 == 2 ? 1 : 3;
            s.lse = i % 3 == 1;
            if (i == 2 || i == 3) s.causal = true;
            if (i == 4 || i == 5) {
                s.left = random_integer(130, 420);
                s.right = i == 4 ? random_integer(1, 140) : 0;
            }
            if (i == 6 || i == 7) {
                s.varlen = true;
                s.batch = 2;
                s.seqlens_q[0] = random_integer(20, 40);
                s.seqlens_k[0] = random_integer(1, 7) * (i == 6 ? 9 : 64);
                s.seqlens_q[1] = random_integer(40, 70);
                s.seqlens_k[1] = random_integer(300, 400);
            }
            if (i >= 10) { /* few rows, and more tiles than a ring has */
                s.heads = 3;
                s.seqlens_q[0] = random_integer(3, 5);
                s.seqlens_k[0] = random_integer(1050, 1300);
                s.causal = s.lse = true;
            }
            if (i == 8 || i == 9) {
                s.seqlens_q[0] = random_integer(17, 40);
                s.seqlens_k[0] = random_integer(900, 1100);
                s.workspace = true;
                s.causal = i == 9;
            }
            run_with(stream, p, s, fp8, how, i % 2, i % 3 == 0);
        }
}

/* ---- From tensors that are not quantised ---- */

/* Quantises and attends. lse of t, too. */
static void attend(kiln_stream *stream, precision p, const attention_shape *s, attention_tensors *t, bool fp8,
                   bool v_means) {
    int64_t channels = s->batch * t->k.cols;
    matrix codes[3], scales[3], means[2];
    const matrix *from[] = {&t->q, &t->k, &t->v};
    for (int i = 0; i < 3; i++) {
        codes[i] = matrix_create(stream, fp8 || i == 2 ? U8 : I8, from[i]->rows, from[i]->cols, 0, 0);
        int64_t count = i == 0 ? s->heads * t->q.rows : i == 1 ? s->kv_heads * t->k.rows : channels;
        scales[i] = matrix_create(stream, F32, 1, count, 0, 0);
        if (i < 2) means[i] = matrix_create(stream, F32, 1, channels, 0, 0);
    }
    kiln_mha_quantize_params prepare = {.q_codes = codes[0].data,
                                        .k_codes = codes[1].data,
                                        .v_codes = codes[2].data,
                                        .q_scales = scales[0].data,
                                        .k_scales = scales[1].data,
                                        .v_scales = scales[2].data,
                                        .k_means = means[0].data,
                                        .v_means = v_means ? means[1].data : NULL,
                                        .q = t->q.data,
                                        .k = t->k.data,
                                        .v = t->v.data,
                                        .tokens = t->q.rows,
                                        .kv_tokens = t->k.rows,
                                        .batch = s->batch,
                                        .heads = s->heads,
                                        .kv_heads = s->kv_heads,
                                        .head_dim = s->size,
                                        .code_type = fp8 ? KILN_MHA_CODE_E4M3 : KILN_MHA_CODE_INT8};
    const kiln_operator_function *quantize = operator_function(&kiln__operator_mha_quantize, p);
    harness_ok(quantize->workspace_size(stream, &prepare, sizeof prepare, &prepare.workspace_size));
    matrix workspace = matrix_create(stream, F32, 1, (int64_t)prepare.workspace_size / 4, 0, 0);
    prepare.workspace = workspace.data;
    harness_ok(quantize->call(stream, &prepare, sizeof prepare));
    kiln_mha_fp8_fwd_params params = {.out = t->out.data,
                                      .lse = t->lse.data,
                                      .q = codes[0].data,
                                      .k = codes[1].data,
                                      .v = codes[2].data,
                                      .q_scales = scales[0].data,
                                      .k_scales = scales[1].data,
                                      .v_scales = scales[2].data,
                                      .k_means = means[0].data,
                                      .v_means = v_means ? means[1].data : NULL,
                                      .tokens = t->q.rows,
                                      .kv_tokens = t->k.rows,
                                      .batch = s->batch,
                                      .heads = s->heads,
                                      .kv_heads = s->kv_heads,
                                      .head_dim = s->size,
                                      .causal = s->causal};
    harness_ok(operator_function(operators[fp8], p)->call(stream, &params, sizeof params));
    matrix_get(&t->out);
    matrix_get(&t->lse);
    for (int i = 0; i < 3; i++) {
        matrix_destroy(&codes[i]);
        matrix_destroy(&scales[i]);
        if (i < 2) matrix_destroy(&means[i]);
    }
    matrix_destroy(&workspace);
}

/* mha by one call gives what the two calls before it gave, to the bit, and wants its workspace. */
static void attend_at_once(kiln_stream *stream, precision p, const attention_shape *s, attention_tensors *t, bool fp8) {
    const size_t count = (size_t)(t->out.rows * t->out.cols), rows = (size_t)(t->lse.rows * t->lse.cols);
    double *out = malloc(sizeof *out * (count + rows));
    assert_non_null(out);
    memcpy(out, t->out.values, sizeof *out * count);
    memcpy(out + count, t->lse.values, sizeof *out * rows);
    matrix_poison(&t->out);
    matrix_poison(&t->lse);
    kiln_mha_params params = attention_mha_params(t, *s);
    const kiln_operator_function *function = operator_function(&kiln__operator_mha, p);
    params.compute = fp8 ? KILN_MHA_COMPUTE_FP8 : KILN_MHA_COMPUTE_INT8_X_FP8;
    harness_ok(function->workspace_size(stream, &params, sizeof params, &params.workspace_size));
    matrix workspace = matrix_create(stream, F32, 1, (int64_t)params.workspace_size / 4, 0, 0);
    expect_refusal(stream, function, &params, sizeof params, "workspace is");
    params.workspace = workspace.data;
    params.workspace_size--;
    expect_refusal(stream, function, &params, sizeof params, "workspace_size");
    params.workspace_size++;
    params.softcap = 1;
    expect_refusal(stream, function, &params, sizeof params, "softcap is 1: must be 0 unless compute is part (0)");
    params.softcap = 0;
    harness_ok(function->call(stream, &params, sizeof params));
    matrix_expect_exact(&t->out, out);
    matrix_expect_exact(&t->lse, out + count);
    matrix_get(&workspace); /* nothing around it is written */
    matrix_destroy(&workspace);
    free(out);
}

static void test_accuracy(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < 2 * ATTENTION_KINDS; i++) {
            const bool fp8 = i % 2;
            const attention_data kind = (attention_data)(i / 2);
            if (!harness_on_cpu(stream) && (i + (int)p) % 3) continue; /* each once, in one precision */
            attention_shape s = attention_plain(24, 190, 2, 1, 64 + i % 3 * 64);
            s.causal = true;
            s.lse = true;
            harness_describe("mha_quantize_%s and %s, data %d", precision_name(p), operators[fp8]->name, (int)kind);
            attention_tensors t = attention_create(stream, p, s);
            attention_fill(&t, &s, kind);
            attention_reference(&s, &t);
            attend(stream, p, &s, &t, fp8, i % 3 == 0);
            double product = 0, found = 0, wanted = 0, off = 0, sum = 0, lse = 0;
            for (int64_t e = 0; e < t.out.rows * t.out.cols; e++) {
                product += t.out.values[e] * t.expected[e];
                found += t.out.values[e] * t.out.values[e];
                wanted += t.expected[e] * t.expected[e];
                off += fabs(t.out.values[e] - t.expected[e]);
                sum += fabs(t.expected[e]);
                if (kind == ATTENTION_ONES && fabs(t.out.values[e] - 1) > (p == BF16 ? 0x1p-8 : 0x1p-11) * 1.01)
                    harness_fail("all ones give %g", t.out.values[e]);
            }
            for (int64_t e = 0; e < t.lse.rows * t.lse.cols; e++)
                lse = fmax(lse, fabs(t.lse.values[e] - t.lses[e]));
            double cosine = product / sqrt(found * wanted), relative = off / sum;
            if (!(cosine >= 0.995) || !(relative <= 0.08)) harness_fail("cosine %g, L1 %g", cosine, relative);
            if (!(lse <= (fp8 ? 0.5 : 0.1))) harness_fail("lse is off by %g", lse);
            if (getenv("KILN_TEST_LOG"))
                print_message("%s data %d: cosine %.6f, L1 %.4f, lse %.4f\n", operators[fp8]->name, (int)kind, cosine,
                              relative, lse);
            if (i % 3) attend_at_once(stream, p, &s, &t, fp8);
            attention_destroy(&t);
        }
}

/* Scales that are NaN, no keys at all, and what is refused. */
static void test_special_values(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int fp8 = 0; fp8 < 2; fp8++) {
            attention_shape s = attention_plain(5, 7, 2, 1, 24);
            s.lse = true;
            harness_describe("%s_%s of a NaN", operators[fp8]->name, precision_name(p));
            tensors t = create(stream, p, s, fp8, 0);
            t.q_scales.values[2] = NAN; /* of the first head's third token */
            matrix_set(&t.q_scales, t.q_scales.values);
            call(stream, operator_function(operators[fp8], p), params_of(&t, s, 0, false, false), false);
            matrix_get(&t.out);
            for (int64_t i = 0; i < t.out.rows * t.out.cols; i++)
                if (isnan(t.out.values[i]) != (i / t.out.cols == 2 && i % t.out.cols < s.size))
                    harness_fail("element %lld is %g", (long long)i, t.out.values[i]);
            harness_describe("%s_%s without keys", operators[fp8]->name, precision_name(p));
            kiln_mha_fp8_fwd_params params = params_of(&t, s, 0, true, true);
            double zeros[2 * 24 * 5] = {0}, none[2 * 5];
            for (int i = 0; i < 2 * 5; i++)
                none[i] = -INFINITY;
            params.kv_tokens = 0;
            params.k = params.v = NULL;
            params.k_scales = NULL;
            call(stream, operator_function(operators[fp8], p), params, false);
            matrix_expect_exact(&t.out, zeros);
            matrix_expect_exact(&t.lse, none);
            destroy(&t);
        }
}

static void test_refusals(kiln_stream *stream) {
    static const struct {
        const char *names;
        size_t offset;
        int64_t value;
    } wrong[] = {
        {"heads", offsetof(kiln_mha_fp8_fwd_params, heads), 7},
        {"kv_heads", offsetof(kiln_mha_fp8_fwd_params, kv_heads), 0},
        {"head_dim", offsetof(kiln_mha_fp8_fwd_params, head_dim), 257},
        {"batch", offsetof(kiln_mha_fp8_fwd_params, batch), 0},
        {"q_scale_rows", offsetof(kiln_mha_fp8_fwd_params, q_scale_rows), 3},
        {"k_scale_rows", offsetof(kiln_mha_fp8_fwd_params, k_scale_rows), 2},
        {"window_left", offsetof(kiln_mha_fp8_fwd_params, window_left), -1},
        {"k_stride", offsetof(kiln_mha_fp8_fwd_params, k_stride), 3},
        {"v_scales", offsetof(kiln_mha_fp8_fwd_params, v_scales), 0},
        {"workspace_size", offsetof(kiln_mha_fp8_fwd_params, workspace_size), 8},
    };
    for (int fp8 = 0; fp8 < 2; fp8++) {
        harness_describe("%s refused", operators[fp8]->name);
        attention_shape s = attention_plain(40, 2000, 4, 2, 16);
        tensors t = create(stream, F32, s, fp8, 0);
        const kiln_mha_fp8_fwd_params good = params_of(&t, s, 0, true, true);
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
            kiln_mha_fp8_fwd_params params = good;
            memcpy((char *)&params + wrong[i].offset, &wrong[i].value, sizeof wrong[i].value);
            expect_refusal(stream, operator_function(operators[fp8], F32), &params, sizeof params, wrong[i].names);
        }
        matrix_expect_unchanged(&t.out);
        destroy(&t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        on_each_device(test_random),  on_each_device(test_edges),    on_each_device(test_sizes),
        on_each_device(test_tiles),   on_each_device(test_accuracy), on_each_device(test_special_values),
        on_one_device(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
