/* What cpu_ops_bench measures: each operator over tensors of count elements, in rows of COLS. */
#ifndef KILN_TESTS_BENCH_CPU_OPS_CASES_H
#define KILN_TESTS_BENCH_CPU_OPS_CASES_H

#include <kiln/ops.h>
#include <stdbool.h>

enum {
    LARGE = 64 << 20, /* bytes of a tensor */
    COLS = 4096,
    PAIRS = 64, /* of a head that is turned */
    HEAD_DIM = 2 * PAIRS,
    BLOCK = 8, /* keys of a paged cache's block: what is in cache has so many rows */
    ROWS = LARGE / 2 / COLS
};

typedef struct tensors {
    void *y, *sum, *a; /* a is an operand, which rope_kv_store updates in place */
    const void *b, *c;
    int32_t numbers[ROWS]; /* from 0 on: positions, ids, slots, blocks */
    int64_t frequencies[PAIRS];
} tensors;

typedef kiln_status (*operation)(kiln_stream *stream, const tensors *t, int64_t count);

#define MUL_ADD(part)                                                                                    \
    static kiln_status mul_add_##part(kiln_stream *stream, const tensors *t, int64_t count) {            \
        return kiln_mul_add_##part(                                                                      \
            stream, &(kiln_mul_add_params){.y = t->y, .a = t->a, .b = t->b, .c = t->c, .count = count}); \
    }
#define ADD(part)                                                                                            \
    static kiln_status add_##part(kiln_stream *stream, const tensors *t, int64_t count) {                    \
        return kiln_add_##part(stream, &(kiln_add_params){.y = t->y, .a = t->a, .b = t->b, .count = count}); \
    }
#define ADD_GELU(part, form, number)                                                                                \
    static kiln_status add_gelu_##form##_##part(kiln_stream *stream, const tensors *t, int64_t count) {             \
        return kiln_add_gelu_##part(                                                                                \
            stream, &(kiln_add_gelu_params){                                                                        \
                        .y = t->y, .x = t->a, .bias = t->b, .rows = count / COLS, .cols = COLS, .approx = number}); \
    }
#define SILU_MUL(part)                                                                                                 \
    static kiln_status silu_mul_##part(kiln_stream *stream, const tensors *t, int64_t count) {                         \
        return kiln_silu_mul_##part(                                                                                   \
            stream, &(kiln_silu_mul_params){.y = t->y, .gate = t->a, .up = t->b, .rows = count / COLS, .cols = COLS}); \
    }
#define SOFTMAX(part)                                                                                                 \
    static kiln_status softmax_##part(kiln_stream *stream, const tensors *t, int64_t count) {                         \
        return kiln_softmax_##part(stream,                                                                            \
                                   &(kiln_softmax_params){.y = t->y, .x = t->a, .rows = count / COLS, .cols = COLS}); \
    }
#define RMSNORM(part)                                                                                             \
    static kiln_status rmsnorm_##part(kiln_stream *stream, const tensors *t, int64_t count) {                     \
        return kiln_rmsnorm_##part(                                                                               \
            stream, &(kiln_rmsnorm_params){                                                                       \
                        .y = t->y, .x = t->a, .weight = t->b, .rows = count / COLS, .cols = COLS, .eps = 1e-5f}); \
    }
#define ADD_RMSNORM(part)                                                                         \
    static kiln_status add_rmsnorm_##part(kiln_stream *stream, const tensors *t, int64_t count) { \
        return kiln_add_rmsnorm_##part(stream, &(kiln_add_rmsnorm_params){.y = t->y,              \
                                                                          .sum = t->sum,          \
                                                                          .x = t->a,              \
                                                                          .residual = t->b,       \
                                                                          .weight = t->c,         \
                                                                          .rows = count / COLS,   \
                                                                          .cols = COLS,           \
                                                                          .eps = 1e-5f});         \
    }
#define ROPE(part, form, number)                                                                    \
    static kiln_status rope_##form##_##part(kiln_stream *stream, const tensors *t, int64_t count) { \
        return kiln_rope_##part(stream, &(kiln_rope_params){.y = t->y,                              \
                                                            .x = t->a,                              \
                                                            .positions = t->numbers,                \
                                                            .frequencies = t->frequencies,          \
                                                            .tokens = count / COLS,                 \
                                                            .heads = COLS / (2 * PAIRS),            \
                                                            .pairs = PAIRS,                         \
                                                            .layout = number});                     \
    }
#define ROPE3D(part)                                                                           \
    static kiln_status rope3d_##part(kiln_stream *stream, const tensors *t, int64_t count) {   \
        static const int32_t grid[] = {1, 64, ROWS / 64};                                      \
        return kiln_rope3d_##part(stream, &(kiln_rope3d_params){.y = t->y,                     \
                                                                .x = t->a,                     \
                                                                .grids = grid,                 \
                                                                .frequencies = t->frequencies, \
                                                                .batch = 1,                    \
                                                                .tokens = count / COLS,        \
                                                                .heads = COLS / (2 * PAIRS),   \
                                                                .pairs = PAIRS});              \
    }
#define EMBEDDING(part)                                                                             \
    static kiln_status embedding_##part(kiln_stream *stream, const tensors *t, int64_t count) {     \
        return kiln_embedding_##part(stream, &(kiln_embedding_params){.y = t->y,                    \
                                                                      .table = t->a,                \
                                                                      .ids = t->numbers,            \
                                                                      .rows = count / COLS,         \
                                                                      .cols = COLS,                 \
                                                                      .vocabulary = count / COLS}); \
    }
#define ENGRAM_GATE(part)                                                                         \
    static kiln_status engram_gate_##part(kiln_stream *stream, const tensors *t, int64_t count) { \
        return kiln_engram_gate_##part(stream, &(kiln_engram_gate_params){.y = t->y,              \
                                                                          .key = t->a,            \
                                                                          .query = t->b,          \
                                                                          .value = t->c,          \
                                                                          .tokens = count / COLS, \
                                                                          .groups = 1,            \
                                                                          .cols = COLS});         \
    }
#define ENGRAM_HASH(part) /* 8 KB of results for each id: two bytes for an element */             \
    static kiln_status engram_hash_##part(kiln_stream *stream, const tensors *t, int64_t count) { \
        return kiln_engram_hash_##part(stream, &(kiln_engram_hash_params){.rows = t->y,           \
                                                                          .ids = t->numbers,      \
                                                                          .multipliers = t->c,    \
                                                                          .primes = t->c,         \
                                                                          .tokens = count / COLS, \
                                                                          .layers = 4,            \
                                                                          .orders = 2,            \
                                                                          .heads = 128});         \
    }
#define CAUSAL_CONV1D(part) /* the factors are the first rows of another tensor */                            \
    static kiln_status causal_conv1d_##part(kiln_stream *stream, const tensors *t, int64_t count) {           \
        return kiln_causal_conv1d_##part(stream, &(kiln_causal_conv1d_params){.y = t->y,                      \
                                                                              .x = t->a,                      \
                                                                              .weight = t->b,                 \
                                                                              .residual = t->c,               \
                                                                              .tokens = count / COLS,         \
                                                                              .channels = COLS,               \
                                                                              .width = 4,                     \
                                                                              .dilation = 3,                  \
                                                                              .activation = KILN_CONV_SILU}); \
    }
#define KV_STORE(part)                                                                          \
    static kiln_status kv_store_##part(kiln_stream *stream, const tensors *t, int64_t count) {  \
        return kiln_kv_store_##part(stream, &(kiln_kv_store_params){.key_cache = t->y,          \
                                                                    .value_cache = t->sum,      \
                                                                    .key = t->a,                \
                                                                    .value = t->b,              \
                                                                    .slot_mapping = t->numbers, \
                                                                    .tokens = count / COLS,     \
                                                                    .cols = COLS,               \
                                                                    .capacity = count / COLS}); \
    }
#define ROPE_KV_STORE(part) /* as many heads of keys and values as of queries, which are rotated in place */  \
    static kiln_status rope_kv_store_##part(kiln_stream *stream, const tensors *t, int64_t count) {           \
        return kiln_rope_kv_store_##part(stream, &(kiln_rope_kv_store_params){.query_out = t->a,              \
                                                                              .key_cache = t->y,              \
                                                                              .value_cache = t->sum,          \
                                                                              .query = t->a,                  \
                                                                              .key = t->b,                    \
                                                                              .value = t->c,                  \
                                                                              .slot_mapping = t->numbers,     \
                                                                              .positions = t->numbers,        \
                                                                              .frequencies = t->frequencies,  \
                                                                              .tokens = count / COLS,         \
                                                                              .heads = COLS / (2 * PAIRS),    \
                                                                              .kv_heads = COLS / (2 * PAIRS), \
                                                                              .head_dim = 2 * PAIRS,          \
                                                                              .pairs = PAIRS,                 \
                                                                              .capacity = count / COLS,       \
                                                                              .layout = KILN_ROPE_HALF});     \
    }
#define KV_COPY_BLOCKS(part)                                                                               \
    static kiln_status kv_copy_blocks_##part(kiln_stream *stream, const tensors *t, int64_t count) {       \
        return kiln_kv_copy_blocks_##part(stream, &(kiln_kv_copy_blocks_params){.key_cache = t->y,         \
                                                                                .value_cache = t->sum,     \
                                                                                .pairs = t->numbers,       \
                                                                                .count = count / COLS / 2, \
                                                                                .blocks = count / COLS,    \
                                                                                .cols = COLS});            \
    }
#define KV_COMPACT(part)                                                                               \
    static kiln_status kv_compact_##part(kiln_stream *stream, const tensors *t, int64_t count) {       \
        const int64_t half = count / COLS / 2;                                                         \
        return kiln_kv_compact_##part(stream, &(kiln_kv_compact_params){.key_cache = t->y,             \
                                                                        .value_cache = t->sum,         \
                                                                        .slot_mapping = t->numbers,    \
                                                                        .path = &t->numbers[half],     \
                                                                        .accepted = &t->numbers[half], \
                                                                        .batch = 1,                    \
                                                                        .nodes = 2 * half,             \
                                                                        .depth = half,                 \
                                                                        .cols = COLS,                  \
                                                                        .capacity = 2 * half});        \
    }
#define MHA_OF(part, name, kv, queries)                                                         \
    static kiln_status name##_##part(kiln_stream *stream, const tensors *t, int64_t count) {    \
        return kiln_mha_##part(stream, &(kiln_mha_params){.out = t->y,                          \
                                                          .q = t->c,                            \
                                                          .k = t->a,                            \
                                                          .v = t->b,                            \
                                                          .tokens = 1,                          \
                                                          .kv_tokens = count / ((kv)*HEAD_DIM), \
                                                          .batch = 1,                           \
                                                          .heads = (kv) * (queries),            \
                                                          .kv_heads = kv,                       \
                                                          .head_dim = HEAD_DIM,                 \
                                                          .workspace = t->sum,                  \
                                                          .workspace_size = LARGE});            \
    }
#define MHA(part) MHA_OF(part, mha, COLS / HEAD_DIM, 1) MHA_OF(part, mha_grouped, 8, 4)
#define MHA_PAGED(part)                                                                                           \
    static kiln_status mha_paged_##part(kiln_stream *stream, const tensors *t, int64_t count) {                   \
        return kiln_mha_paged_##part(stream, &(kiln_mha_paged_params){.out = t->y,                                \
                                                                      .q = t->c,                                  \
                                                                      .k_cache = t->a,                            \
                                                                      .v_cache = t->b,                            \
                                                                      .block_table = t->numbers,                  \
                                                                      .seqlens_k = &t->numbers[count / COLS - 1], \
                                                                      .tokens = 1,                                \
                                                                      .blocks = count / COLS / BLOCK,             \
                                                                      .block_size = BLOCK,                        \
                                                                      .batch = 1,                                 \
                                                                      .max_blocks_per_seq = count / COLS / BLOCK, \
                                                                      .heads = COLS / HEAD_DIM,                   \
                                                                      .kv_heads = COLS / HEAD_DIM,                \
                                                                      .head_dim = HEAD_DIM,                       \
                                                                      .workspace = t->sum,                        \
                                                                      .workspace_size = LARGE});                  \
    }
#define MHA_FP8_FWD(part)                                                                                  \
    static kiln_status mha_fp8_fwd_##part(kiln_stream *stream, const tensors *t, int64_t count) {          \
        return kiln_mha_fp8_fwd_##part(stream, &(kiln_mha_fp8_fwd_params){.out = t->y,                     \
                                                                          .q = (const uint8_t *)t->c,      \
                                                                          .k = (const uint8_t *)t->a,      \
                                                                          .v = (const uint8_t *)t->b,      \
                                                                          .q_scales = (const float *)t->c, \
                                                                          .k_scales = (const float *)t->c, \
                                                                          .v_scales = (const float *)t->c, \
                                                                          .tokens = 1,                     \
                                                                          .kv_tokens = count / COLS,       \
                                                                          .batch = 1,                      \
                                                                          .heads = COLS / HEAD_DIM,        \
                                                                          .kv_heads = COLS / HEAD_DIM,     \
                                                                          .head_dim = HEAD_DIM});          \
    }
#define MHA_INT8_X_FP8_FWD(part)                                                                                 \
    static kiln_status mha_int8_x_fp8_fwd_##part(kiln_stream *stream, const tensors *t, int64_t count) {         \
        return kiln_mha_int8_x_fp8_fwd_##part(stream,                                                            \
                                              &(kiln_mha_int8_x_fp8_fwd_params){.out = t->y,                     \
                                                                                .q = (const int8_t *)t->c,       \
                                                                                .k = (const int8_t *)t->a,       \
                                                                                .v = (const uint8_t *)t->b,      \
                                                                                .q_scales = (const float *)t->c, \
                                                                                .k_scales = (const float *)t->c, \
                                                                                .v_scales = (const float *)t->c, \
                                                                                .tokens = 1,                     \
                                                                                .kv_tokens = count / COLS,       \
                                                                                .batch = 1,                      \
                                                                                .heads = COLS / HEAD_DIM,        \
                                                                                .kv_heads = COLS / HEAD_DIM,     \
                                                                                .head_dim = HEAD_DIM});          \
    }
#define MHA_QUANTIZE(part)                                                                               \
    static kiln_status mha_quantize_##part(kiln_stream *stream, const tensors *t, int64_t count) {       \
        return kiln_mha_quantize_##part(stream, &(kiln_mha_quantize_params){.q_codes = t->y,             \
                                                                            .q_scales = (float *)t->sum, \
                                                                            .q = t->a,                   \
                                                                            .tokens = count / COLS,      \
                                                                            .heads = COLS / HEAD_DIM,    \
                                                                            .head_dim = HEAD_DIM});      \
    }
#define MHA_NVFP4_FWD(part)                                                                                            \
    static kiln_status mha_nvfp4_fwd_##part(kiln_stream *stream, const tensors *t, int64_t count) {                    \
        return kiln_mha_nvfp4_fwd_##part(stream, &(kiln_mha_nvfp4_fwd_params){.out = t->y,                             \
                                                                              .q = (const uint8_t *)t->c,              \
                                                                              .k = (const uint8_t *)t->a,              \
                                                                              .v = (const uint8_t *)t->b,              \
                                                                              .q_block_scales = (const uint8_t *)t->c, \
                                                                              .k_block_scales = (const uint8_t *)t->c, \
                                                                              .v_block_scales = (const uint8_t *)t->c, \
                                                                              .q_scales = (const float *)t->c,         \
                                                                              .k_scales = (const float *)t->c,         \
                                                                              .v_scales = (const float *)t->c,         \
                                                                              .tokens = 1,                             \
                                                                              .kv_tokens = count / COLS,               \
                                                                              .batch = 1,                              \
                                                                              .heads = COLS / HEAD_DIM,                \
                                                                              .kv_heads = COLS / HEAD_DIM,             \
                                                                              .head_dim = HEAD_DIM});                  \
    }
#define MHA_QUANTIZE_NVFP4(part)                                                                                   \
    static kiln_status mha_quantize_nvfp4_##part(kiln_stream *stream, const tensors *t, int64_t count) {           \
        return kiln_mha_quantize_nvfp4_##part(stream,                                                              \
                                              &(kiln_mha_quantize_nvfp4_params){.q_codes = (uint8_t *)t->y,        \
                                                                                .q_block_scales = (uint8_t *)t->b, \
                                                                                .q_scales = (float *)t->sum,       \
                                                                                .q = t->a,                         \
                                                                                .tokens = count / COLS,            \
                                                                                .heads = COLS / HEAD_DIM,          \
                                                                                .head_dim = HEAD_DIM});            \
    }
#define AMAX(part)                                                                         \
    static kiln_status amax_##part(kiln_stream *stream, const tensors *t, int64_t count) { \
        return kiln_amax_##part(stream, &(kiln_amax_params){.y = t->y,                     \
                                                            .x = t->a,                     \
                                                            .rows = count / COLS,          \
                                                            .cols = COLS,                  \
                                                            .scale_rows = count / COLS,    \
                                                            .scale_cols = 1});             \
    }
#define ARGMAX(part)                                                                                                \
    static kiln_status argmax_##part(kiln_stream *stream, const tensors *t, int64_t count) {                        \
        return kiln_argmax_##part(stream,                                                                           \
                                  &(kiln_argmax_params){.y = t->y, .x = t->a, .rows = count / COLS, .cols = COLS}); \
    }
#define SAMPLE(part)                                                                         \
    static kiln_status sample_##part(kiln_stream *stream, const tensors *t, int64_t count) { \
        return kiln_sample_##part(stream, &(kiln_sample_params){.y = t->y,                   \
                                                                .x = t->a,                   \
                                                                .rows = count / COLS,        \
                                                                .cols = COLS,                \
                                                                .seed = 1,                   \
                                                                .temperature = 1,            \
                                                                .top_p = 0.9f});             \
    }
#define LOG_SOFTMAX(part)                                                                                         \
    static kiln_status log_softmax_##part(kiln_stream *stream, const tensors *t, int64_t count) {                 \
        return kiln_log_softmax_##part(                                                                           \
            stream,                                                                                               \
            &(kiln_log_softmax_params){.y = t->y, .lse = t->sum, .x = t->a, .rows = count / COLS, .cols = COLS}); \
    }
#define TREE_VERIFY_SAMPLED(part) /* a token of each row: trees of a root */                              \
    static kiln_status tree_verify_sampled_##part(kiln_stream *stream, const tensors *t, int64_t count) { \
        return kiln_tree_verify_sampled_##part(                                                           \
            stream, &(kiln_tree_verify_sampled_params){.path = t->y,                                      \
                                                       .accepted = (int32_t *)t->y + count / COLS,        \
                                                       .next = t->sum,                                    \
                                                       .target = t->a,                                    \
                                                       .tokens = t->numbers,                              \
                                                       .parents = t->numbers,                             \
                                                       .batch = count / COLS,                             \
                                                       .nodes = 1,                                        \
                                                       .depth = 1,                                        \
                                                       .vocabulary = COLS,                                \
                                                       .trees = 1});                                      \
    }
#define SOFTMAX_UPDATE(part)                                                                                       \
    static kiln_status softmax_update_##part(kiln_stream *stream, const tensors *t, int64_t count) {               \
        return kiln_softmax_update_##part(                                                                         \
            stream, &(kiln_softmax_update_params){.states = t->y, .x = t->a, .rows = count / COLS, .cols = COLS}); \
    }
#define MERGE_ATTENTION_STATES(part) /* parts of equal weight */                                                    \
    static kiln_status merge_attention_states_##part(kiln_stream *stream, const tensors *t, int64_t count) {        \
        return kiln_merge_attention_states_##part(stream,                                                           \
                                                  &(kiln_merge_attention_states_params){.out = t->y,                \
                                                                                        .x = t->a,                  \
                                                                                        .x_lse = t->b,              \
                                                                                        .parts = 2,                 \
                                                                                        .tokens = count / 2 / COLS, \
                                                                                        .heads = COLS / HEAD_DIM,   \
                                                                                        .head_dim = HEAD_DIM});     \
    }
#define TOP_K(part)                                                                                                \
    static kiln_status top_k_##part(kiln_stream *stream, const tensors *t, int64_t count) {                        \
        return kiln_top_k_##part(                                                                                  \
            stream, &(kiln_top_k_params){.indices = t->y, .x = t->a, .rows = count / COLS, .cols = COLS, .k = 8}); \
    }
#define TREE_ACCEPT(part) /* the likeliest token of each row: trees of a root */                                      \
    static kiln_status tree_accept_##part(kiln_stream *stream, const tensors *t, int64_t count) {                     \
        return kiln_tree_accept_##part(stream, &(kiln_tree_accept_params){.path = t->y,                               \
                                                                          .accepted = (int32_t *)t->y + count / COLS, \
                                                                          .next = t->sum,                             \
                                                                          .logits = t->a,                             \
                                                                          .tokens = t->numbers,                       \
                                                                          .parents = t->numbers,                      \
                                                                          .batch = count / COLS,                      \
                                                                          .nodes = 1,                                 \
                                                                          .depth = 1,                                 \
                                                                          .vocabulary = COLS,                         \
                                                                          .trees = 1});                               \
    }
#define QUANTIZE_FP8(part)                                                                              \
    static kiln_status quantize_fp8_##part(kiln_stream *stream, const tensors *t, int64_t count) {      \
        return kiln_quantize_fp8_##part(stream, &(kiln_quantize_fp8_params){.codes = t->y,              \
                                                                            .scales = t->sum,           \
                                                                            .x = t->a,                  \
                                                                            .rows = count / COLS,       \
                                                                            .cols = COLS,               \
                                                                            .scale_rows = count / COLS, \
                                                                            .scale_cols = 1});          \
    }
#define QUANTIZE_INT8(part)                                                                               \
    static kiln_status quantize_int8_##part(kiln_stream *stream, const tensors *t, int64_t count) {       \
        return kiln_quantize_int8_##part(stream, &(kiln_quantize_int8_params){.codes = t->y,              \
                                                                              .scales = t->sum,           \
                                                                              .x = t->a,                  \
                                                                              .rows = count / COLS,       \
                                                                              .cols = COLS,               \
                                                                              .scale_rows = count / COLS, \
                                                                              .scale_cols = 1});          \
    }
#define QUANTIZE_NVFP4(part)                                                                                \
    static kiln_status quantize_nvfp4_##part(kiln_stream *stream, const tensors *t, int64_t count) {        \
        return kiln_quantize_nvfp4_##part(stream, &(kiln_quantize_nvfp4_params){.codes = t->y,              \
                                                                                .scales = (void *)t->sum,   \
                                                                                .x = t->a,                  \
                                                                                .amax = t->b,               \
                                                                                .rows = count / COLS,       \
                                                                                .cols = COLS,               \
                                                                                .scale_rows = count / COLS, \
                                                                                .scale_cols = COLS / 16,    \
                                                                                .global_rows = 1});         \
    }
/* Codes are some bytes of y, and scales some of sum. */
#define RMSNORM_CODES(part, op)                                                                       \
    static kiln_status rmsnorm_##op##_##part(kiln_stream *stream, const tensors *t, int64_t count) {  \
        return kiln_rmsnorm_##op##_##part(stream, &(kiln_rmsnorm_##op##_params){.codes = t->y,        \
                                                                                .scales = t->sum,     \
                                                                                .x = t->a,            \
                                                                                .weight = t->b,       \
                                                                                .rows = count / COLS, \
                                                                                .cols = COLS,         \
                                                                                .scale_cols = 1});    \
    }
#define RMSNORM_NVFP4(part)                                                                               \
    static kiln_status rmsnorm_nvfp4_##part(kiln_stream *stream, const tensors *t, int64_t count) {       \
        return kiln_rmsnorm_nvfp4_##part(stream, &(kiln_rmsnorm_nvfp4_params){.codes = t->y,              \
                                                                              .scales = (void *)t->sum,   \
                                                                              .x = t->a,                  \
                                                                              .weight = t->b,             \
                                                                              .rows = count / COLS,       \
                                                                              .cols = COLS,               \
                                                                              .scale_rows = count / COLS, \
                                                                              .scale_cols = COLS / 16});  \
    }
#define SILU_MUL_CODES(part, op)                                                                        \
    static kiln_status silu_mul_##op##_##part(kiln_stream *stream, const tensors *t, int64_t count) {   \
        return kiln_silu_mul_##op##_##part(stream, &(kiln_silu_mul_##op##_params){.codes = t->y,        \
                                                                                  .scales = t->sum,     \
                                                                                  .gate = t->a,         \
                                                                                  .up = t->b,           \
                                                                                  .rows = count / COLS, \
                                                                                  .cols = COLS,         \
                                                                                  .scale_cols = 1});    \
    }
#define SILU_MUL_NVFP4(part)                                                                                \
    static kiln_status silu_mul_nvfp4_##part(kiln_stream *stream, const tensors *t, int64_t count) {        \
        return kiln_silu_mul_nvfp4_##part(stream, &(kiln_silu_mul_nvfp4_params){.codes = t->y,              \
                                                                                .scales = (void *)t->sum,   \
                                                                                .gate = t->a,               \
                                                                                .up = t->b,                 \
                                                                                .rows = count / COLS,       \
                                                                                .cols = COLS,               \
                                                                                .scale_rows = count / COLS, \
                                                                                .scale_cols = COLS / 16});  \
    }
/* The tensor is y; codes and scales are some bytes of a and b. */
#define DEQUANTIZE(part, op)                                                                                      \
    static kiln_status dequantize_##op##_##part(kiln_stream *stream, const tensors *t, int64_t count) {           \
        return kiln_dequantize_##op##_##part(stream, &(kiln_dequantize_##op##_params){.y = t->y,                  \
                                                                                      .codes = t->a,              \
                                                                                      .scales = t->b,             \
                                                                                      .rows = count / COLS,       \
                                                                                      .cols = COLS,               \
                                                                                      .scale_rows = count / COLS, \
                                                                                      .scale_cols = 1});          \
    }
#define DEQUANTIZE_NVFP4(part)                                                                                  \
    static kiln_status dequantize_nvfp4_##part(kiln_stream *stream, const tensors *t, int64_t count) {          \
        return kiln_dequantize_nvfp4_##part(stream, &(kiln_dequantize_nvfp4_params){.y = t->y,                  \
                                                                                    .codes = t->a,              \
                                                                                    .scales = t->b,             \
                                                                                    .global_scale = t->b,       \
                                                                                    .rows = count / COLS,       \
                                                                                    .cols = COLS,               \
                                                                                    .scale_rows = count / COLS, \
                                                                                    .scale_cols = COLS / 16,    \
                                                                                    .global_rows = 1});         \
    }
#define DEQUANTIZE_W4A16(part)                                                                                    \
    static kiln_status dequantize_w4a16_##part(kiln_stream *stream, const tensors *t, int64_t count) {            \
        return kiln_dequantize_w4a16_##part(                                                                      \
            stream, &(kiln_dequantize_w4a16_params){                                                              \
                        .y = t->y, .weights = t->a, .scales = t->b, .n = count / COLS, .k = COLS, .group = 128}); \
    }
/* The tensor is b: few rows of a, as when tokens are generated. */
#define GEMM(part, few, how)                                                                               \
    static kiln_status gemm_##how##_##few##_##part(kiln_stream *stream, const tensors *t, int64_t count) { \
        return kiln_gemm_##part(stream, &(kiln_gemm_params){.d = t->y,                                     \
                                                            .a = t->a,                                     \
                                                            .b = t->b,                                     \
                                                            .batch = 1,                                    \
                                                            .m = few,                                      \
                                                            .n = count / COLS,                             \
                                                            .k = COLS,                                     \
                                                            .compute = KILN_GEMM_COMPUTE_##how});          \
    }
/* count bytes of weights. */
#define GEMM_W4A16(part, few)                                                                            \
    static kiln_status gemm_w4a16_##few##_##part(kiln_stream *stream, const tensors *t, int64_t count) { \
        return kiln_gemm_w4a16_##part(stream, &(kiln_gemm_w4a16_params){.d = t->y,                       \
                                                                        .a = t->a,                       \
                                                                        .weights = t->b,                 \
                                                                        .scales = t->c,                  \
                                                                        .m = few,                        \
                                                                        .n = count * 2 / COLS,           \
                                                                        .k = COLS,                       \
                                                                        .group = 128});                  \
    }
#define GEMM_W8A8(part, op, few)                                                                   \
    static kiln_status op##_##few##_##part(kiln_stream *stream, const tensors *t, int64_t count) { \
        return kiln_##op##_##part(stream, &(kiln_##op##_params){.d = t->y,                         \
                                                                .a = t->a,                         \
                                                                .b = t->b,                         \
                                                                .a_scales = t->c,                  \
                                                                .b_scales = t->c,                  \
                                                                .m = few,                          \
                                                                .n = count / COLS,                 \
                                                                .k = COLS,                         \
                                                                .a_scale_rows = 1,                 \
                                                                .b_scale_rows = 1});               \
    }
#define GEMM_NVFP4(part, few)                                                                             \
    static kiln_status gemm_nvfp4_##few##_##part(kiln_stream *stream, const tensors *t, int64_t count) {  \
        return kiln_gemm_nvfp4_##part(stream, &(kiln_gemm_nvfp4_params){.d = t->y,                        \
                                                                        .a = t->a,                        \
                                                                        .b = t->b,                        \
                                                                        .a_scales = t->c,                 \
                                                                        .b_scales = t->c,                 \
                                                                        .a_global_scale = t->c,           \
                                                                        .b_global_scale = t->c,           \
                                                                        .m = few,                         \
                                                                        .n = count * 2 / COLS,            \
                                                                        .k = COLS,                        \
                                                                        .a_scale_rows = few,              \
                                                                        .a_scale_cols = COLS / 16,        \
                                                                        .b_scale_rows = count * 2 / COLS, \
                                                                        .b_scale_cols = COLS / 16,        \
                                                                        .a_global_rows = 1,               \
                                                                        .b_global_rows = 1});             \
    }
/* Rows of embeddings, and a table of their codes: rows of 128 bytes, which are 1024 bits, 128 int8 or 256 int4. */
#define QUANTIZE_EMBEDDING(part, form, number, bytes)                                                             \
    static kiln_status quantize_embedding_##form##_##part(kiln_stream *stream, const tensors *t, int64_t count) { \
        return kiln_quantize_embedding_##part(stream, &(kiln_quantize_embedding_params){.codes = t->y,            \
                                                                                        .scales = t->sum,         \
                                                                                        .x = t->a,                \
                                                                                        .rows = count / COLS,     \
                                                                                        .cols = COLS,             \
                                                                                        .code_cols = bytes,       \
                                                                                        .code_type = number,      \
                                                                                        .normalize = 1});         \
    }
#define VECTOR_SEARCH(part, form, number)                                                                    \
    static kiln_status vector_search_##form##_##part(kiln_stream *stream, const tensors *t, int64_t count) { \
        return kiln_vector_search_##part(stream, &(kiln_vector_search_params){.indices = t->y,               \
                                                                              .query_codes = t->b,           \
                                                                              .table_codes = t->a,           \
                                                                              .queries = 1,                  \
                                                                              .rows = count / 128,           \
                                                                              .code_cols = 128,              \
                                                                              .k = 10,                       \
                                                                              .code_type = number,           \
                                                                              .workspace = t->sum,           \
                                                                              .workspace_size = 1 << 20});   \
    }
#define FUNCTIONS(part)                                            \
    MUL_ADD(part)                                                  \
    ADD(part)                                                      \
    SOFTMAX(part)                                                  \
    SILU_MUL(part)                                                 \
    ADD_GELU(part, tanh, KILN_GELU_TANH)                           \
    ADD_GELU(part, quick, KILN_GELU_QUICK)                         \
    ADD_GELU(part, erf, KILN_GELU_ERF)                             \
    RMSNORM(part)                                                  \
    ADD_RMSNORM(part)                                              \
    ROPE(part, interleaved, KILN_ROPE_INTERLEAVED)                 \
    ROPE(part, half, KILN_ROPE_HALF)                               \
    ROPE3D(part)                                                   \
    EMBEDDING(part)                                                \
    ROPE_KV_STORE(part)                                            \
    KV_STORE(part)                                                 \
    KV_COMPACT(part)                                               \
    KV_COPY_BLOCKS(part)                                           \
    MHA(part)                                                      \
    MHA_FP8_FWD(part)                                              \
    MHA_INT8_X_FP8_FWD(part)                                       \
    MHA_NVFP4_FWD(part)                                            \
    MHA_PAGED(part)                                                \
    MHA_QUANTIZE(part)                                             \
    MHA_QUANTIZE_NVFP4(part)                                       \
    AMAX(part)                                                     \
    ARGMAX(part)                                                   \
    RMSNORM_CODES(part, fp8)                                       \
    RMSNORM_CODES(part, int8)                                      \
    RMSNORM_NVFP4(part)                                            \
    SILU_MUL_CODES(part, fp8)                                      \
    SILU_MUL_CODES(part, int8)                                     \
    SILU_MUL_NVFP4(part)                                           \
    QUANTIZE_FP8(part)                                             \
    QUANTIZE_INT8(part)                                            \
    QUANTIZE_NVFP4(part)                                           \
    DEQUANTIZE(part, fp8)                                          \
    DEQUANTIZE(part, int8)                                         \
    DEQUANTIZE_NVFP4(part)                                         \
    DEQUANTIZE_W4A16(part)                                         \
    SAMPLE(part)                                                   \
    TREE_VERIFY_SAMPLED(part)                                      \
    SOFTMAX_UPDATE(part)                                           \
    MERGE_ATTENTION_STATES(part)                                   \
    LOG_SOFTMAX(part)                                              \
    TOP_K(part)                                                    \
    TREE_ACCEPT(part)                                              \
    ENGRAM_GATE(part)                                              \
    ENGRAM_HASH(part)                                              \
    CAUSAL_CONV1D(part)                                            \
    QUANTIZE_EMBEDDING(part, binary, KILN_VECTOR_BINARY, COLS / 8) \
    QUANTIZE_EMBEDDING(part, int8, KILN_VECTOR_INT8, COLS)         \
    QUANTIZE_EMBEDDING(part, int4, KILN_VECTOR_INT4, COLS / 2)     \
    VECTOR_SEARCH(part, binary, KILN_VECTOR_BINARY)                \
    VECTOR_SEARCH(part, int8, KILN_VECTOR_INT8)                    \
    VECTOR_SEARCH(part, int4, KILN_VECTOR_INT4)                    \
    GEMM(part, 1, F32)                                             \
    GEMM(part, 4, F32)                                             \
    GEMM(part, 8, F32)                                             \
    GEMM_W8A8(part, gemm_fp8, 1)                                   \
    GEMM_W8A8(part, gemm_fp8, 8)                                   \
    GEMM_W8A8(part, gemm_int8, 1)                                  \
    GEMM_W8A8(part, gemm_int8, 8)                                  \
    GEMM_NVFP4(part, 1)                                            \
    GEMM_NVFP4(part, 8)                                            \
    GEMM_W4A16(part, 1)                                            \
    GEMM_W4A16(part, 8)
FUNCTIONS(f32)
FUNCTIONS(f16)
FUNCTIONS(bf16)
GEMM(bf16, 1, DOT)
GEMM(bf16, 4, DOT)
GEMM(bf16, 8, DOT)

typedef struct bench_case {
    const char *name;
    operation run;
    size_t size;    /* of an element */
    unsigned moved; /* tensors read and written */
    bool reads;     /* them, and writes next to nothing */
} bench_case;

#define CASES(part, size)                                                                                             \
    {"mul_add " #part, mul_add_##part, size, 4, false}, {"add " #part, add_##part, size, 3, false},                   \
        {"softmax " #part, softmax_##part, size, 2, false}, {"silu_mul " #part, silu_mul_##part, size, 3, false},     \
        {"add_gelu tanh " #part, add_gelu_tanh_##part, size, 2, false},                                               \
        {"add_gelu quick " #part, add_gelu_quick_##part, size, 2, false},                                             \
        {"add_gelu erf " #part, add_gelu_erf_##part, size, 2, false},                                                 \
        {"rmsnorm " #part, rmsnorm_##part, size, 2, false},                                                           \
        {"add_rmsnorm " #part, add_rmsnorm_##part, size, 4, false},                                                   \
        {"rope interleaved " #part, rope_interleaved_##part, size, 2, false},                                         \
        {"rope half " #part, rope_half_##part, size, 2, false}, {"rope3d " #part, rope3d_##part, size, 2, false},     \
        {"embedding " #part, embedding_##part, size, 2, false}, {"kv_store " #part, kv_store_##part, size, 4, false}, \
        {"rope_kv_store " #part, rope_kv_store_##part, size, 6, false},                                               \
        {"kv_compact " #part, kv_compact_##part, size, 2, false},                                                     \
        {"kv_copy_blocks " #part, kv_copy_blocks_##part, size, 2, false},                                             \
        {"mha 1 query " #part, mha_##part, size, 2, true},                                                            \
        {"mha 1 query grouped " #part, mha_grouped_##part, size, 2, true},                                            \
        {"mha_paged 1 query " #part, mha_paged_##part, size, 2, true},                                                \
        {"mha_fp8_fwd 1 query " #part, mha_fp8_fwd_##part, size, 1, true},                                            \
        {"mha_int8_x_fp8_fwd 1 query " #part, mha_int8_x_fp8_fwd_##part, size, 1, true},                              \
        {"mha_nvfp4_fwd 1 query " #part, mha_nvfp4_fwd_##part, size, 1, true},                                        \
        {"mha_quantize " #part, mha_quantize_##part, size, 1, true},                                                  \
        {"mha_quantize_nvfp4 " #part, mha_quantize_nvfp4_##part, size, 1, true},                                      \
        {"quantize_fp8 " #part, quantize_fp8_##part, size, 1, true},                                                  \
        {"quantize_int8 " #part, quantize_int8_##part, size, 1, true},                                                \
        {"quantize_nvfp4 " #part, quantize_nvfp4_##part, size, 1, true},                                              \
        {"rmsnorm_fp8 " #part, rmsnorm_fp8_##part, size, 1, true},                                                    \
        {"rmsnorm_int8 " #part, rmsnorm_int8_##part, size, 1, true},                                                  \
        {"rmsnorm_nvfp4 " #part, rmsnorm_nvfp4_##part, size, 1, true},                                                \
        {"silu_mul_fp8 " #part, silu_mul_fp8_##part, size, 2, true},                                                  \
        {"silu_mul_int8 " #part, silu_mul_int8_##part, size, 2, true},                                                \
        {"silu_mul_nvfp4 " #part, silu_mul_nvfp4_##part, size, 2, true},                                              \
        {"dequantize_fp8 " #part, dequantize_fp8_##part, size, 1, false},                                             \
        {"dequantize_int8 " #part, dequantize_int8_##part, size, 1, false},                                           \
        {"dequantize_nvfp4 " #part, dequantize_nvfp4_##part, size, 1, false},                                         \
        {"dequantize_w4a16 " #part, dequantize_w4a16_##part, size, 1, false},                                         \
        {"amax " #part, amax_##part, size, 1, true}, {"argmax " #part, argmax_##part, size, 1, true},                 \
        {"sample " #part, sample_##part, size, 1, true}, {"log_softmax " #part, log_softmax_##part, size, 2, false},  \
        {"tree_verify_sampled " #part, tree_verify_sampled_##part, size, 1, true},                                    \
        {"softmax_update " #part, softmax_update_##part, size, 1, true},                                              \
        {"merge_attention_states " #part, merge_attention_states_##part, size, 1, false},                             \
        {"top_k " #part, top_k_##part, size, 1, true}, {"tree_accept " #part, tree_accept_##part, size, 1, true},     \
        {"quantize_embedding binary " #part, quantize_embedding_binary_##part, size, 1, true},                        \
        {"quantize_embedding int8 " #part, quantize_embedding_int8_##part, size, 1, true},                            \
        {"quantize_embedding int4 " #part, quantize_embedding_int4_##part, size, 1, true},                            \
        {"vector_search binary " #part, vector_search_binary_##part, 1, 1, true},                                     \
        {"vector_search int8 " #part, vector_search_int8_##part, 1, 1, true},                                         \
        {"vector_search int4 " #part, vector_search_int4_##part, 1, 1, true},                                         \
        {"engram_gate " #part, engram_gate_##part, size, 4, false},                                                   \
        {"engram_hash " #part, engram_hash_##part, 2, 1, false},                                                      \
        {"causal_conv1d " #part, causal_conv1d_##part, size, 3, false},                                               \
        {"gemm 1 row " #part, gemm_F32_1_##part, size, 1, true},                                                      \
        {"gemm 4 rows " #part, gemm_F32_4_##part, size, 1, true},                                                     \
        {"gemm 8 rows " #part, gemm_F32_8_##part, size, 1, true},                                                     \
        {"gemm_fp8 1 row " #part, gemm_fp8_1_##part, 1, 1, true},                                                     \
        {"gemm_fp8 8 rows " #part, gemm_fp8_8_##part, 1, 1, true},                                                    \
        {"gemm_int8 1 row " #part, gemm_int8_1_##part, 1, 1, true},                                                   \
        {"gemm_int8 8 rows " #part, gemm_int8_8_##part, 1, 1, true},                                                  \
        {"gemm_nvfp4 1 row " #part, gemm_nvfp4_1_##part, 1, 1, true},                                                 \
        {"gemm_nvfp4 8 rows " #part, gemm_nvfp4_8_##part, 1, 1, true},                                                \
        {"gemm_w4a16 1 row " #part, gemm_w4a16_1_##part, 1, 1, true},                                                 \
        {"gemm_w4a16 8 rows " #part, gemm_w4a16_8_##part, 1, 1, true},
static const bench_case cases[] = {CASES(f32, 4) CASES(f16, 2)
                                       CASES(bf16, 2){"gemm dot 1 row bf16", gemm_DOT_1_bf16, 2, 1, true},
                                   {"gemm dot 4 rows bf16", gemm_DOT_4_bf16, 2, 1, true},
                                   {"gemm dot 8 rows bf16", gemm_DOT_8_bf16, 2, 1, true}};

#endif
