/* mha_nvfp4_fwd: against f64, with weights that are rounded as it promises, for all shapes and masks; and with
 * mha_quantize_nvfp4 before it against attention on the tensors themselves. */
#include "tests/ops/attention.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 16, TILE = 64 };

static double e4m3_value(int code) {
    int exponent = code >> 3 & 15, fraction = code & 7;
    if ((code & 0x7f) == 0x7f) return NAN;
    return exponent ? ldexp(8 + fraction, exponent - 10) : ldexp(fraction, -9);
}
static double e2m1_value(int code) {
    static const double numbers[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    return code & 8 ? -numbers[code & 7] : numbers[code & 7];
}

/* The nearest E4M3 to a number from 0 on. */
static double e4m3_nearest(double number) {
    int exponent;
    frexp(number, &exponent);
    int field = exponent - 1 < -6 || number == 0 ? -6 : exponent - 1;
    return fmin(ldexp(nearbyint(ldexp(number, 3 - field)), field - 3), 448);
}

/* The nearest E2M1 to a number from 0 on. */
static double e2m1_nearest(double number) {
    double step = number >= 4 ? 2 : number >= 2 ? 1 : 0.5;
    return fmin(nearbyint(number / step) * step, 6);
}

/* A weight as a code with this scale has it, times 2688. */
static double weight_with(double weight, double scale) {
    return scale == 0 ? 0 : e2m1_nearest(weight * 2688 / scale) * scale;
}

static int64_t head_blocks(int64_t size) {
    return (size + TILE - 1) / TILE * 4;
}
static int64_t v_blocks(int64_t keys, int64_t batch) {
    return (keys / TILE + batch) * 4;
}

typedef struct tensors {
    matrix q, k, v, q_blocks, k_blocks, v_blocks, q_scales, k_scales, v_scales, k_means, v_means, out, lse,
        cu_seqlens_q, cu_seqlens_k;
    double *q_numbers, *k_numbers, *v_numbers; /* as rows of tokens; v without its decode scales */
} tensors;

static double any_byte(void) {
    return (double)random_integer(0, 255);
}
static double any_block_scale(void) {
    return (double)random_integer(0x30, 0x47);
}
static double any_scale(void) {
    return random_number(0.05, 0.15);
}
static double any_number(void) {
    return random_number(-1, 1);
}

static double *numbers_of(const matrix *codes, const matrix *blocks, const matrix *scales, int64_t heads,
                          int64_t size) {
    double *numbers = malloc(sizeof(double) * (size_t)(codes->rows * size + 1));
    assert_non_null(numbers);
    for (int64_t row = 0; row < codes->rows; row++)
        for (int64_t d = 0; d < size; d++) {
            int code = (int)codes->values[row * codes->cols + d / 2] >> d % 2 * 4 & 15;
            double scale = scales->values[row % heads * scales->cols + (scales->cols == 1 ? 0 : row / heads)];
            numbers[row * size + d] =
                e2m1_value(code) * e4m3_value((int)blocks->values[row * blocks->cols + d / BLOCK]) * scale;
        }
    return numbers;
}

/* v, transposed back. What no key needs of its blocks may be anything. */
static double *values_of(tensors *t, const attention_shape *s) {
    const int64_t keys = attention_total(s->seqlens_k, s->batch), channels = t->v.rows;
    double *numbers = malloc(sizeof(double) * (size_t)(keys * channels + 1));
    assert_non_null(numbers);
    matrix_fill(&t->v_blocks, any_byte);
    for (int64_t b = 0, row = 0; b < s->batch; b++) {
        const int64_t tile = row / TILE + b;
        for (int64_t key = 0; key < s->seqlens_k[b]; key++, row++)
            for (int64_t c = 0; c < channels; c++) {
                double *scale = &t->v_blocks.values[c * t->v_blocks.cols + tile * 4 + key / BLOCK];
                if (key % BLOCK == 0) *scale = s->v != 0 ? 0x7f : any_block_scale();
                const int byte = (int)t->v.values[c * t->v.cols + tile * 32 + key / 2];
                numbers[row * channels + c] = e2m1_value(byte >> key % 2 * 4 & 15) * e4m3_value((int)*scale);
            }
    }
    matrix_set(&t->v_blocks, t->v_blocks.values);
    return numbers;
}

static tensors create(kiln_stream *stream, precision p, const attention_shape *s, bool one_scale) {
    const int64_t tokens = attention_total(s->seqlens_q, s->batch), keys = attention_total(s->seqlens_k, s->batch);
    const int64_t width = s->heads * s->size, kv_width = s->kv_heads * s->size, blocks = head_blocks(s->size);
    const int64_t columns = v_blocks(keys, s->batch);
    tensors t = {
        .q = matrix_create(stream, U8, tokens * s->heads, 8 * blocks, 0, AT_END),
        .k = matrix_create(stream, U8, keys * s->kv_heads, 8 * blocks, 0, AT_END),
        .v = matrix_create(stream, U8, kv_width, 8 * columns, 0, AT_END),
        .q_blocks = matrix_create(stream, U8, tokens * s->heads, blocks, 0, AT_END),
        .k_blocks = matrix_create(stream, U8, keys * s->kv_heads, blocks, 0, AT_END),
        .v_blocks = matrix_create(stream, U8, kv_width, columns, 0, AT_END),
        .q_scales = matrix_create(stream, F32, s->heads, one_scale ? 1 : tokens, 0, AT_END),
        .k_scales = matrix_create(stream, F32, s->kv_heads, one_scale ? 1 : keys, 0, AT_END),
        .v_scales = matrix_create(stream, F32, s->batch, kv_width, 0, AT_END),
        .k_means = matrix_create(stream, F32, s->batch, kv_width, 0, AT_END),
        .v_means = matrix_create(stream, F32, s->batch, kv_width, 0, AT_END),
        .out = matrix_create(stream, p, tokens, width, width + s->padding, s->place),
        .lse = matrix_create(stream, F32, s->heads, tokens, 0, 0),
        .cu_seqlens_q = matrix_create(stream, I32, 1, s->batch + 1, 0, AT_END),
        .cu_seqlens_k = matrix_create(stream, I32, 1, s->batch + 1, 0, AT_END),
    };
    matrix_fill(&t.q, any_byte);
    matrix_fill(&t.k, any_byte);
    matrix_fill(&t.v, any_byte);
    matrix_fill(&t.q_blocks, any_block_scale);
    matrix_fill(&t.k_blocks, any_block_scale);
    matrix_fill(&t.q_scales, any_scale);
    matrix_fill(&t.k_scales, any_scale);
    matrix_fill(&t.v_scales, any_scale);
    matrix_fill(&t.k_means, any_number);
    matrix_fill(&t.v_means, any_number);
    /* Behind a head's last element are zeros. */
    for (matrix *m = &t.q; m <= &t.k; m++) {
        for (int64_t i = 0; i < m->rows * m->cols; i++)
            if (i % m->cols * 2 >= s->size)
                m->values[i] = 0;
            else if (i % m->cols * 2 + 1 == s->size)
                m->values[i] = (double)((int)m->values[i] & 15);
        matrix_set(m, m->values);
    }
    for (int64_t i = 0; i <= s->batch; i++) {
        t.cu_seqlens_q.values[i] = (double)attention_total(s->seqlens_q, i);
        t.cu_seqlens_k.values[i] = (double)attention_total(s->seqlens_k, i);
    }
    matrix_set(&t.cu_seqlens_q, t.cu_seqlens_q.values);
    matrix_set(&t.cu_seqlens_k, t.cu_seqlens_k.values);
    t.q_numbers = numbers_of(&t.q, &t.q_blocks, &t.q_scales, s->heads, s->size);
    t.k_numbers = numbers_of(&t.k, &t.k_blocks, &t.k_scales, s->kv_heads, s->size);
    t.v_numbers = values_of(&t, s);
    return t;
}

static void destroy(tensors *t) {
    matrix *all[] = {&t->q,        &t->k,        &t->v,        &t->q_blocks,     &t->k_blocks,
                     &t->v_blocks, &t->q_scales, &t->k_scales, &t->v_scales,     &t->k_means,
                     &t->v_means,  &t->out,      &t->lse,      &t->cu_seqlens_q, &t->cu_seqlens_k};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        matrix_destroy(all[i]);
    free(t->q_numbers);
    free(t->k_numbers);
    free(t->v_numbers);
}

/* ---- What must be ---- */

/* What a sum of matrix instructions may lose of the magnitudes of what it adds, where the image has them. */
static double coarseness(kiln_stream *stream, precision p) {
    extern const kiln_bundle kiln__bundle_mha_nvfp4_fwd;
    return harness_has_tuned(stream, &kiln__bundle_mha_nvfp4_fwd, p) ? 0x1p-18 : 0;
}

/* The weights of 16 keys become those of codes, and slack by how much these may be off: to the codes next to them,
 * with the scale next to theirs, where the loss of the scores may take them there; all of it below the scales whose
 * rounding does not depend on the order of keys. */
static void round_block(double *weights, double *slack, int64_t count, double loss) {
    double greatest = 0;
    for (int64_t i = 0; i < count; i++)
        greatest = fmax(greatest, weights[i]);
    const double scales[] = {e4m3_nearest(448 * greatest * (1 - loss)), e4m3_nearest(448 * greatest),
                             e4m3_nearest(448 * greatest * (1 + loss))};
    for (int64_t i = 0; i < count; i++) {
        const double weight = weights[i];
        double low = INFINITY, high = 0;
        for (int j = 0; j < 9; j++) {
            const double other = weight_with(weight * (1 + loss * (j % 3 - 1)), scales[j / 3]);
            low = fmin(low, other);
            high = fmax(high, other);
        }
        weights[i] = weight_with(weight, scales[1]);
        slack[i] = high - low + (448 * greatest < 0x1.1p-6 ? 2688 * weight + 0x1p-8 : 0);
        if (weight == 0) slack[i] = 0;
    }
}

/* One query of one head: sums of v's numbers with rounded weights. */
static void query_reference(const attention_shape *s, const double *q, const double *k, const double *v, int64_t stride,
                            int64_t query, int64_t seqlen_q, int64_t seqlen_k, double *out, double *allowed,
                            double *lse, double *lse_allowed) {
    double *weights = malloc(sizeof *weights * (size_t)(seqlen_k + 1)), *slack = calloc((size_t)seqlen_k + 1, 8);
    double max = -INFINITY, sum = 0, rounded = 0, loss = 0;
    assert_true(weights && slack);
    const int64_t own = query + seqlen_k - seqlen_q, right = s->causal ? 1 : s->right;
    const double scale = s->scale == 0 ? 1 / sqrt((double)s->size) : (double)(float)s->scale;
    for (int64_t key = 0; key < seqlen_k; key++) {
        double dot = 0, magnitude = 0;
        for (int64_t d = 0; d < s->size; d++) {
            dot += q[d] * k[key * stride + d];
            magnitude += fabs(q[d] * k[key * stride + d]);
        }
        const bool seen = !(s->left && key <= own - s->left) && !(right && key >= own + right);
        weights[key] = seen ? dot * scale : -INFINITY;
        max = fmax(max, weights[key]);
        if (seen) loss = fmax(loss, magnitude * fabs(scale) * (sqrt((double)s->size + 8) * 0x1p-23 + s->rounding));
    }
    const double origin = ceil(max / log(2)) * log(2);
    loss += 2e-6 + fabs(max) * 4e-7;
    for (int64_t key = 0; key < seqlen_k; key++) {
        weights[key] = weights[key] == -INFINITY ? 0 : exp(weights[key] - origin);
        sum += weights[key];
    }
    for (int64_t key = 0; key < seqlen_k; key += BLOCK)
        round_block(weights + key, slack + key, seqlen_k - key < BLOCK ? seqlen_k - key : BLOCK, loss);
    double loose = 0; /* of the sum of weights, by which results are divided */
    for (int64_t key = 0; key < seqlen_k; key++) {
        rounded += weights[key];
        loose += slack[key];
    }
    const double least = fmax(rounded - loose, rounded / 2);
    for (int64_t d = 0; d < s->size; d++) {
        double result = 0, magnitude = 0;
        for (int64_t key = 0; key < seqlen_k; key++) {
            result += weights[key] * v[key * stride + d];
            magnitude += weights[key] * fabs(v[key * stride + d]);
        }
        out[d] = rounded == 0 ? 0 : result / rounded;
        allowed[d] = rounded == 0 ? 0 : (4e-6 + 2 * s->rounding) * magnitude / rounded;
        for (int64_t key = 0; key < seqlen_k; key++)
            if (slack[key] != 0) allowed[d] += 1.1 * slack[key] * fabs(v[key * stride + d] - out[d]) / least;
    }
    *lse = sum == 0 ? -INFINITY : origin + log(sum);
    *lse_allowed = loss + 2e-6;
    free(weights);
    free(slack);
}

static void reference(const attention_shape *s, const tensors *t, bool k_means, bool v_means, double *expected,
                      double *allowed, double *lses, double *lses_allowed) {
    const int64_t tokens = t->out.rows, width = t->out.cols, kv_width = s->kv_heads * s->size;
    const double scale = s->scale == 0 ? 1 / sqrt((double)s->size) : (double)(float)s->scale;
    for (int64_t b = 0; b < s->batch; b++) {
        const int64_t first = attention_total(s->seqlens_q, b), kv_first = attention_total(s->seqlens_k, b);
        for (int64_t query = 0; query < s->seqlens_q[b]; query++)
            for (int64_t head = 0; head < s->heads; head++) {
                const int64_t kv_head = head / (s->heads / s->kv_heads), token = first + query;
                const int64_t place = token * width + head * s->size, channels = b * kv_width + kv_head * s->size;
                const int64_t key = kv_first * kv_width + kv_head * s->size;
                double *lse = &lses[head * tokens + token], *lse_allowed = &lses_allowed[head * tokens + token];
                query_reference(s, t->q_numbers + place, t->k_numbers + key, t->v_numbers + key, kv_width, query,
                                s->seqlens_q[b], s->seqlens_k[b], expected + place, allowed + place, lse, lse_allowed);
                for (int64_t d = 0; d < s->size; d++) {
                    const double mean = v_means && *lse != -INFINITY ? t->v_means.values[channels + d] : 0;
                    expected[place + d] = expected[place + d] * t->v_scales.values[channels + d] + mean;
                    allowed[place + d] = allowed[place + d] * t->v_scales.values[channels + d] + 2e-7 * fabs(mean);
                    const double term = k_means ? t->q_numbers[place + d] * t->k_means.values[channels + d] * scale : 0;
                    *lse += term;
                    *lse_allowed += 1e-6 * fabs(term);
                }
            }
    }
}

/* ---- One call ---- */

static kiln_mha_nvfp4_fwd_params params_of(const tensors *t, const attention_shape *s, bool k_means, bool v_means) {
    return (kiln_mha_nvfp4_fwd_params){.out = t->out.data,
                                       .lse = s->lse ? t->lse.data : NULL,
                                       .q = t->q.data,
                                       .k = t->k.data,
                                       .v = t->v.data,
                                       .q_block_scales = t->q_blocks.data,
                                       .k_block_scales = t->k_blocks.data,
                                       .v_block_scales = t->v_blocks.data,
                                       .q_scales = t->q_scales.data,
                                       .k_scales = t->k_scales.data,
                                       .v_scales = t->v_scales.data,
                                       .k_means = k_means ? t->k_means.data : NULL,
                                       .v_means = v_means ? t->v_means.data : NULL,
                                       .cu_seqlens_q = s->varlen ? t->cu_seqlens_q.data : NULL,
                                       .cu_seqlens_k = s->varlen ? t->cu_seqlens_k.data : NULL,
                                       .tokens = t->out.rows,
                                       .kv_tokens = t->k.rows / s->kv_heads,
                                       .batch = s->batch,
                                       .heads = s->heads,
                                       .kv_heads = s->kv_heads,
                                       .head_dim = s->size,
                                       .q_scale_rows = t->q_scales.cols,
                                       .k_scale_rows = t->k_scales.cols,
                                       .out_stride = s->padding ? t->out.stride : 0,
                                       .max_seqlen_q = s->varlen ? attention_longest(s->seqlens_q, s->batch) : 0,
                                       .max_seqlen_k = s->varlen ? attention_longest(s->seqlens_k, s->batch) : 0,
                                       .window_left = s->left,
                                       .window_right = s->right,
                                       .scale = (float)s->scale,
                                       .causal = s->causal,
                                       .kernel = s->portable ? KILN_MHA_KERNEL_PORTABLE : KILN_MHA_KERNEL_AUTO};
}

static void call(kiln_stream *stream, precision p, kiln_mha_nvfp4_fwd_params params, bool shared) {
    const kiln_operator_function *function = operator_function(&kiln__operator_mha_nvfp4_fwd, p);
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

static void run_with(kiln_stream *stream, precision p, attention_shape s, bool one_scale, bool k_means, bool v_means) {
    attention_describe("mha_nvfp4_fwd", p, s);
    s.rounding = s.portable ? 0 : coarseness(stream, p);
    tensors t = create(stream, p, &s, one_scale);
    const size_t count = (size_t)(t.out.rows * t.out.cols), rows = (size_t)(t.out.rows * s.heads);
    double *expected = malloc(8 * (2 * count + 2 * rows)), *allowed = expected + count, *lses = allowed + count;
    assert_non_null(expected);
    reference(&s, &t, k_means, v_means, expected, allowed, lses, lses + rows);
    call(stream, p, params_of(&t, &s, k_means, v_means), s.workspace);
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
    const bool one_scale = attention_total(s.seqlens_k, s.batch) && !random_integer(0, 3);
    s.softcap = 0;
    run_with(stream, p, s, one_scale, random_integer(0, 1), random_integer(0, 1));
}

/* ---- Tests ---- */

static void test_random(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < harness_rounds(stream, 20); i++) {
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
        for (int i = 0; i < (int)(sizeof sizes / sizeof *sizes); i++) {
            if (!harness_on_cpu(stream) && (i + (int)p) % 2) continue;
            attention_shape s = attention_plain(random_integer(33, 140), random_integer(65, 150), 2, 1, sizes[i]);
            s.causal = i % 2;
            s.lse = true;
            s.left = i % 3 == 2 ? 40 : 0;
            run_with(stream, p, s, i % 2, true, i % 2);
            s = attention_plain(1, random_integer(520, 600), 3, 1, sizes[i]);
            s.workspace = s.lse = true;
            run_with(stream, p, s, false, false, true);
        }
}

/* ---- From tensors that are not quantised ---- */

/* Quantises and attends. lse of t, too. */
static void attend(kiln_stream *stream, precision p, const attention_shape *s, attention_tensors *t, bool v_means) {
    const int64_t channels = s->batch * t->k.cols, blocks = head_blocks(s->size),
                  columns = v_blocks(t->k.rows, s->batch);
    const int64_t rows[] = {t->q.rows * s->heads, t->k.rows * s->kv_heads, t->k.cols};
    const int64_t scale_counts[] = {rows[0], rows[1], channels};
    matrix codes[3], of_blocks[3], scales[3], means[2];
    for (int i = 0; i < 3; i++) {
        const int64_t count = i == 2 ? columns : blocks;
        codes[i] = matrix_create(stream, U8, rows[i], 8 * count, 0, 0);
        of_blocks[i] = matrix_create(stream, U8, rows[i], count, 0, 0);
        scales[i] = matrix_create(stream, F32, 1, scale_counts[i], 0, 0);
        if (i < 2) means[i] = matrix_create(stream, F32, 1, channels, 0, 0);
    }
    kiln_mha_quantize_nvfp4_params prepare = {.q_codes = codes[0].data,
                                              .k_codes = codes[1].data,
                                              .v_codes = codes[2].data,
                                              .q_block_scales = of_blocks[0].data,
                                              .k_block_scales = of_blocks[1].data,
                                              .v_block_scales = of_blocks[2].data,
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
                                              .head_dim = s->size};
    const kiln_operator_function *quantize = operator_function(&kiln__operator_mha_quantize_nvfp4, p);
    harness_ok(quantize->workspace_size(stream, &prepare, sizeof prepare, &prepare.workspace_size));
    matrix workspace = matrix_create(stream, F32, 1, (int64_t)prepare.workspace_size / 4, 0, 0);
    prepare.workspace = workspace.data;
    harness_ok(quantize->call(stream, &prepare, sizeof prepare));
    const kiln_mha_nvfp4_fwd_params params = {.out = t->out.data,
                                              .lse = t->lse.data,
                                              .q = codes[0].data,
                                              .k = codes[1].data,
                                              .v = codes[2].data,
                                              .q_block_scales = of_blocks[0].data,
                                              .k_block_scales = of_blocks[1].data,
                                              .v_block_scales = of_blocks[2].data,
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
    harness_ok(operator_function(&kiln__operator_mha_nvfp4_fwd, p)->call(stream, &params, sizeof params));
    matrix_get(&t->out);
    matrix_get(&t->lse);
    for (int i = 0; i < 3; i++) {
        matrix_destroy(&codes[i]);
        matrix_destroy(&of_blocks[i]);
        matrix_destroy(&scales[i]);
        if (i < 2) matrix_destroy(&means[i]);
    }
    matrix_destroy(&workspace);
}

/* mha by one call gives what the two calls before it gave, to the bit, and wants its workspace. */
static void attend_at_once(kiln_stream *stream, precision p, const attention_shape *s, attention_tensors *t) {
    const size_t count = (size_t)(t->out.rows * t->out.cols), rows = (size_t)(t->lse.rows * t->lse.cols);
    double *out = malloc(sizeof *out * (count + rows));
    assert_non_null(out);
    memcpy(out, t->out.values, sizeof *out * count);
    memcpy(out + count, t->lse.values, sizeof *out * rows);
    matrix_poison(&t->out);
    matrix_poison(&t->lse);
    kiln_mha_params params = attention_mha_params(t, *s);
    const kiln_operator_function *function = operator_function(&kiln__operator_mha, p);
    params.compute = KILN_MHA_COMPUTE_NVFP4;
    harness_ok(function->workspace_size(stream, &params, sizeof params, &params.workspace_size));
    matrix workspace = matrix_create(stream, F32, 1, (int64_t)params.workspace_size / 4, 0, 0);
    expect_refusal(stream, function, &params, sizeof params, "workspace is");
    params.workspace = workspace.data;
    params.workspace_size--;
    expect_refusal(stream, function, &params, sizeof params, "workspace_size");
    params.workspace_size++;
    harness_ok(function->call(stream, &params, sizeof params));
    matrix_expect_exact(&t->out, out);
    matrix_expect_exact(&t->lse, out + count);
    matrix_get(&workspace); /* nothing around it is written */
    matrix_destroy(&workspace);
    free(out);
}

static void expect_accuracy(kiln_stream *stream, precision p, attention_data kind, bool many) {
    const int64_t queries = many ? 180 : 24;
    const double least = many ? 0.98 : 0.965, most = many ? 0.3 : 0.4;
    attention_shape s = attention_plain(queries, 190, 2, 1, 64);
    s.causal = true;
    s.lse = true;
    harness_describe("mha_quantize_nvfp4_%s and mha_nvfp4_fwd, data %d", precision_name(p), (int)kind);
    attention_tensors t = attention_create(stream, p, s);
    attention_fill(&t, &s, kind);
    attention_reference(&s, &t);
    attend(stream, p, &s, &t, kind == ATTENTION_VALUES_WITH_MEANS);
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
    const double cosine = product / sqrt(found * wanted), relative = off / sum;
    if (getenv("KILN_TEST_LOG"))
        print_message("data %d: cosine %.6f, L1 %.4f, lse %.4f\n", (int)kind, cosine, relative, lse);
    if (!(cosine >= least) || !(relative <= most)) harness_fail("cosine %g, L1 %g", cosine, relative);
    const double lse_most = kind == ATTENTION_BIASED_KEYS || kind == ATTENTION_SINK ? 2 : 0.5; /* scores are large */
    if (!(lse <= lse_most)) harness_fail("lse is off by %g", lse);
    if (kind != ATTENTION_VALUES_WITH_MEANS) attend_at_once(stream, p, &s, &t);
    attention_destroy(&t);
}

/* Of few queries the cosine is 0.98 give or take a hundredth, and the error varies as much; many show what it is. */
static void test_accuracy(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int kind = 0; kind < ATTENTION_KINDS; kind++)
            if ((kind + (int)p) % 3 == 0) /* each once, in one precision */
                expect_accuracy(stream, p, (attention_data)kind, false);
}
static void test_accuracy_of_many(kiln_stream *stream) {
    for (int kind = 0; kind < ATTENTION_KINDS; kind++)
        expect_accuracy(stream, F32, (attention_data)kind, harness_on_cpu(stream));
}

/* Scales that are NaN, no keys at all, and what is refused. */
static void test_special_values(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int many = 0; many < 2; many++) { /* rows: for the portable and for tuned kernels */
            attention_shape s = attention_plain(many ? 20 : 5, 7, 2, 1, 24);
            s.lse = true;
            harness_describe("mha_nvfp4_fwd_%s of a NaN", precision_name(p));
            tensors t = create(stream, p, &s, false);
            t.q_scales.values[2] = NAN; /* of the first head's third token */
            matrix_set(&t.q_scales, t.q_scales.values);
            call(stream, p, params_of(&t, &s, false, false), false);
            matrix_get(&t.out);
            for (int64_t i = 0; i < t.out.rows * t.out.cols; i++)
                if (isnan(t.out.values[i]) != (i / t.out.cols == 2 && i % t.out.cols < s.size))
                    harness_fail("element %lld is %g", (long long)i, t.out.values[i]);
            harness_describe("mha_nvfp4_fwd_%s without keys", precision_name(p));
            kiln_mha_nvfp4_fwd_params params = params_of(&t, &s, true, true);
            double zeros[2 * 24 * 20] = {0}, none[2 * 20];
            for (int i = 0; i < 2 * 20; i++)
                none[i] = -INFINITY;
            params.kv_tokens = params.k_scale_rows = 0;
            params.k = params.v = params.k_block_scales = params.v_block_scales = NULL;
            params.k_scales = NULL;
            call(stream, p, params, false);
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
#define WRONG(field, value) {#field, offsetof(kiln_mha_nvfp4_fwd_params, field), value}
        WRONG(heads, 7),
        WRONG(kv_heads, 0),
        WRONG(head_dim, 257),
        WRONG(batch, 0),
        WRONG(head_blocks, 8),
        WRONG(v_blocks, 8),
        WRONG(v_blocks, 131),
        WRONG(q_scale_rows, 3),
        WRONG(k_scale_rows, 2),
        WRONG(window_left, -1),
        WRONG(out_stride, 3),
        WRONG(q, 0),
        WRONG(k, 8),
        WRONG(v, 24),
        WRONG(q_block_scales, 2),
        WRONG(k_block_scales, 0),
        WRONG(q_scales, 0),
        WRONG(v_block_scales, 1),
        WRONG(v_scales, 0),
        WRONG(workspace_size, 8),
#undef WRONG
    };
    harness_describe("mha_nvfp4_fwd refused");
    const attention_shape s = attention_plain(40, 2000, 4, 2, 16);
    tensors t = create(stream, F32, &s, false);
    const kiln_mha_nvfp4_fwd_params good = params_of(&t, &s, true, true);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        kiln_mha_nvfp4_fwd_params params = good;
        memcpy((char *)&params + wrong[i].offset, &wrong[i].value, sizeof wrong[i].value);
        expect_refusal(stream, operator_function(&kiln__operator_mha_nvfp4_fwd, F32), &params, sizeof params,
                       wrong[i].names);
    }
    matrix_expect_unchanged(&t.out);
    destroy(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        on_each_device(test_random),   on_each_device(test_edges),           on_each_device(test_sizes),
        on_each_device(test_accuracy), on_one_device(test_accuracy_of_many), on_each_device(test_special_values),
        on_one_device(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
