#include "tests/ops/paged.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NAN_CODE = 0x7f };

/* The numbers below count in any order, to be freed. */
static int64_t *shuffled(int64_t count) {
    int64_t *order = malloc(sizeof *order * (size_t)count);
    assert_non_null(order);
    for (int64_t i = 0; i < count; i++)
        order[i] = i;
    for (int64_t i = count - 1; i > 0; i--) {
        int64_t other = random_integer(0, i), block = order[i];
        order[i] = order[other];
        order[other] = block;
    }
    return order;
}

/* Copies a sequence's key of this number and its value, of all keys and all values, into a row of the caches. */
static void cache_key(paged *c, attention_shape s, double *const sources[2], int64_t sequence, int64_t key,
                      int64_t row) {
    int64_t cols = c->caches[0].cols, from = (attention_total(s.seqlens_k, sequence) + key) * cols;
    for (int i = 0; i < 2; i++)
        memcpy(c->caches[i].values + row * cols, sources[i] + from, sizeof(double) * (size_t)cols);
}

/* What no sequence owns is NaN, and entries of block_table that no key needs are anything. */
static void paged_fill(paged *c, attention_shape s, double *const sources[2]) {
    int64_t *order = shuffled(c->blocks), used = 0;
    for (int64_t i = 0; i < c->blocks * c->block_size * c->caches[0].cols; i++)
        c->caches[0].values[i] = c->caches[1].values[i] = c->cache_scales ? (double)NAN_CODE : (double)NAN;
    for (int64_t b = 0; b < s.batch; b++) {
        c->lengths.values[b] = (double)s.seqlens_k[b];
        for (int64_t i = 0; i < c->max_blocks_per_seq; i++) {
            bool needed = i * c->block_size < s.seqlens_k[b];
            int64_t block = needed ? order[used++] : random_integer(-9, 1 << 20);
            c->block_table.values[b * c->max_blocks_per_seq + i] = (double)block;
            for (int64_t j = i * c->block_size; needed && j < (i + 1) * c->block_size && j < s.seqlens_k[b]; j++)
                cache_key(c, s, sources, b, j, block * c->block_size + j % c->block_size);
        }
    }
    free(order);
}

kiln_mha_paged_params paged_params(const paged *c, const attention_tensors *t, attention_shape s) {
    return (kiln_mha_paged_params){.out = t->out.data,
                                   .lse = s.lse ? t->lse.data : NULL,
                                   .q = t->q.data,
                                   .k_cache = c->caches[0].data,
                                   .v_cache = c->caches[1].data,
                                   .block_table = c->block_table.data,
                                   .seqlens_k = c->lengths.data,
                                   .cu_seqlens_q = s.varlen ? t->cu_seqlens_q.data : NULL,
                                   .tokens = t->q.rows,
                                   .blocks = c->blocks,
                                   .block_size = c->block_size,
                                   .batch = s.batch,
                                   .max_blocks_per_seq = c->max_blocks_per_seq,
                                   .max_seqlen_q = s.varlen ? attention_longest(s.seqlens_q, s.batch) : 0,
                                   .heads = s.heads,
                                   .kv_heads = s.kv_heads,
                                   .head_dim = s.size,
                                   .out_stride = t->out.stride,
                                   .q_stride = t->q.stride,
                                   .k_cache_stride = c->caches[0].stride,
                                   .v_cache_stride = c->caches[1].stride,
                                   .window_left = s.left,
                                   .window_right = s.right,
                                   .scale = (float)s.scale,
                                   .softcap = (float)s.softcap,
                                   .workspace = c->workspace_size ? c->workspace.data : NULL,
                                   .workspace_size = c->workspace_size,
                                   .causal = s.causal,
                                   .cache_type = c->cache_scales ? KILN_CACHE_E4M3 : KILN_CACHE_OF_PRECISION,
                                   .k_scale = c->cache_scales ? c->scales[0].data : NULL,
                                   .v_scale = c->cache_scales ? c->scales[1].data : NULL,
                                   .cache_scales = c->cache_scales,
                                   .kernel = s.portable ? KILN_MHA_KERNEL_PORTABLE : KILN_MHA_KERNEL_AUTO};
}

/* The cache of keys and values, whose type is p, or U8 where they are codes. */
static paged create(kiln_stream *stream, precision p, attention_shape s, const attention_tensors *t, int64_t block_size,
                    paged c, double *const sources[2]) {
    c.block_size = block_size;
    /* Keys are divided as mha divides them only if the table has room for the longest sequence and no more. */
    c.max_blocks_per_seq =
        (attention_longest(s.seqlens_k, s.batch) + block_size - 1) / block_size + (s.workspace ? 0 : 1);
    c.blocks = s.batch * c.max_blocks_per_seq + 3;
    for (int i = 0; i < 2; i++)
        c.caches[i] = matrix_create(stream, c.cache_scales ? U8 : p, c.blocks * block_size, t->k.cols,
                                    t->k.cols + s.padding, s.place);
    c.block_table = matrix_create(stream, I32, s.batch, c.max_blocks_per_seq, 0, 0);
    c.lengths = matrix_create(stream, I32, 1, s.batch, 0, 0);
    paged_fill(&c, s, sources);
    matrix *all[] = {&c.caches[0], &c.caches[1], &c.block_table, &c.lengths};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        matrix_set(all[i], all[i]->values);
    if (s.workspace) {
        kiln_mha_paged_params params = paged_params(&c, t, s);
        harness_ok(operator_function(&kiln__operator_mha_paged, p)
                       ->workspace_size(stream, &params, sizeof params, &c.workspace_size));
        c.workspace = matrix_create(stream, F32, 1, (int64_t)c.workspace_size / 4, 0, 0);
    }
    return c;
}

paged paged_create(kiln_stream *stream, precision p, attention_shape s, const attention_tensors *t,
                   int64_t block_size) {
    return create(stream, p, s, t, block_size, (paged){0}, (double *const[]){t->k.values, t->v.values});
}

double paged_e4m3(int code) {
    int exponent = code >> 3 & 15, fraction = code & 7;
    double magnitude = exponent ? ldexp(8 + fraction, exponent - 10) : ldexp(fraction, -9);
    return (code & 0x7f) == NAN_CODE ? (double)NAN : code & 0x80 ? -magnitude : magnitude;
}

/* Codes of numbers of up to 4, subnormal ones too; values become these times the scales. */
static double *random_codes(double *values, const matrix *scales, int64_t rows, int64_t cols, int64_t nan) {
    double *codes = malloc(sizeof *codes * (size_t)(rows * cols + 1));
    assert_non_null(codes);
    for (int64_t i = 0; i < rows * cols; i++) {
        int64_t head = i % cols / (cols / scales->cols);
        int code = (int)(random_integer(0, 99) < nan ? NAN_CODE : random_integer(0, 0x48));
        code |= random_integer(0, 1) ? 0x80 : 0;
        codes[i] = code;
        values[i] = paged_e4m3(code) * scales->values[head];
    }
    return codes;
}

static double any_scale(void) {
    return random_number(0.2, 1.5);
}

paged paged_create_codes(kiln_stream *stream, precision p, attention_shape s, attention_tensors *t, int64_t block_size,
                         int64_t cache_scales, int64_t nan) {
    paged c = {.cache_scales = cache_scales};
    double *codes[2];
    for (int i = 0; i < 2; i++) {
        matrix *numbers = i ? &t->v : &t->k;
        c.scales[i] = matrix_create(stream, F32, 1, cache_scales, 0, AT_END);
        matrix_fill(&c.scales[i], any_scale);
        codes[i] = random_codes(numbers->values, &c.scales[i], numbers->rows, numbers->cols, nan);
    }
    c = create(stream, p, s, t, block_size, c, codes);
    free(codes[0]);
    free(codes[1]);
    return c;
}

void paged_destroy(paged *c, attention_shape s) {
    for (int i = 0; c->cache_scales && i < 2; i++)
        matrix_destroy(&c->scales[i]);
    matrix_destroy(&c->caches[0]);
    matrix_destroy(&c->caches[1]);
    matrix_destroy(&c->block_table);
    matrix_destroy(&c->lengths);
    if (!s.workspace) return;
    matrix_get(&c->workspace); /* nothing around it is written */
    matrix_destroy(&c->workspace);
}
