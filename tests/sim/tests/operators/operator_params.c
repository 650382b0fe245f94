#include "tests/sim/tests/operators/operator_params.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LINE_BYTES = 256 };

uint64_t call_element(const call *c) {
    return strcmp(c->part, "f32") ? 2 : 4;
}

static void ok(const tensors *t, kiln_status status) {
    if (status != KILN_OK)
        fail_msg("tensors of %lld x %lld in %s: %s", (long long)t->of->rows, (long long)t->of->cols, t->of->part,
                 kiln_last_error());
}

static void *memory_of(tensors *t, size_t size) {
    assert_true(t->count < TENSORS_MEMORIES);
    ok(t, kiln_memory_alloc(t->stream->device, size, &t->memory[t->count]));
    return t->memory[t->count++];
}

char *tensors_zeros(tensors *t, size_t size) {
    void *memory = memory_of(t, size + LINE_BYTES);
    ok(t, kiln_fill(t->stream, memory, 0, size + LINE_BYTES));
    return memory;
}

static int32_t *numbers(tensors *t, size_t many) {
    int32_t *host = malloc(many * sizeof *host), *memory = memory_of(t, many * sizeof *host);
    assert_non_null(host);
    for (size_t i = 0; i < many; i++)
        host[i] = (int32_t)i;
    ok(t, kiln_copy(t->stream, memory, host, many * sizeof *host, KILN_COPY_TO_DEVICE));
    ok(t, kiln_stream_sync(t->stream));
    free(host);
    return memory;
}

tensors tensors_new(kiln_stream *stream, const call *c) {
    tensors t = {.stream = stream, .of = c};
    size_t row = (size_t)c->cols * call_element(c), bytes = 2 * (size_t)c->rows * row;
    for (size_t i = 0; i < TENSORS_INPUTS; i++)
        t.input[i] = tensors_zeros(&t, bytes) + c->misplaced;
    for (size_t i = 0; i < TENSORS_OUTPUTS; i++)
        t.output[i] = tensors_zeros(&t, bytes) + c->misplaced;
    t.bias = tensors_zeros(&t, row) + c->misplaced;
    t.numbers = numbers(&t, 2 * (size_t)c->rows + 4);
    t.frequencies = (void *)tensors_zeros(&t, (size_t)c->cols * sizeof *t.frequencies);
    return t;
}

void tensors_free(tensors *t) {
    for (size_t i = 0; i < t->count; i++)
        kiln_memory_free(t->stream->device, t->memory[i]);
}

void params_add(params *p, const call *c, const tensors *t) {
    p->add = (kiln_add_params){.y = t->output[0], .a = t->input[0], .b = t->input[1], .count = c->rows * c->cols};
}

void params_add_gelu(params *p, const call *c, const tensors *t) {
    p->add_gelu = (kiln_add_gelu_params){
        .y = t->output[0], .x = t->input[0], .bias = c->bias ? t->bias : NULL, .rows = c->rows, .cols = c->cols};
}

void params_add_rmsnorm(params *p, const call *c, const tensors *t) {
    p->add_rmsnorm = (kiln_add_rmsnorm_params){.y = t->output[0],
                                               .sum = t->output[1],
                                               .x = t->input[0],
                                               .residual = t->input[1],
                                               .rows = c->rows,
                                               .cols = c->cols};
}

void params_amax(params *p, const call *c, const tensors *t) {
    p->amax = (kiln_amax_params){.y = (void *)t->numbers,
                                 .x = t->input[0],
                                 .rows = c->rows,
                                 .cols = c->cols,
                                 .scale_rows = c->rows,
                                 .scale_cols = 1,
                                 .workspace = t->workspace,
                                 .workspace_size = t->workspace_size};
}

void params_argmax(params *p, const call *c, const tensors *t) {
    p->argmax = (kiln_argmax_params){.y = t->numbers,
                                     .x = t->input[0],
                                     .rows = c->rows,
                                     .cols = c->cols,
                                     .workspace = t->workspace,
                                     .workspace_size = t->workspace_size};
}

void params_dequantize_fp8(params *p, const call *c, const tensors *t) {
    p->dequantize_fp8 = (kiln_dequantize_fp8_params){.y = t->output[0],
                                                     .codes = (void *)t->input[0],
                                                     .scales = (void *)t->numbers,
                                                     .rows = c->rows,
                                                     .cols = c->cols,
                                                     .scale_rows = 1,
                                                     .scale_cols = 1};
}

void params_dequantize_int8(params *p, const call *c, const tensors *t) {
    p->dequantize_int8 = (kiln_dequantize_int8_params){.y = t->output[0],
                                                       .codes = (void *)t->input[0],
                                                       .scales = (void *)t->numbers,
                                                       .rows = c->rows,
                                                       .cols = c->cols,
                                                       .scale_rows = 1,
                                                       .scale_cols = 1};
}

void params_dequantize_nvfp4(params *p, const call *c, const tensors *t) {
    p->dequantize_nvfp4 = (kiln_dequantize_nvfp4_params){.y = t->output[0],
                                                         .codes = (void *)t->input[0],
                                                         .scales = (void *)t->input[1],
                                                         .global_scale = (void *)t->numbers,
                                                         .rows = c->rows,
                                                         .cols = c->cols,
                                                         .scale_rows = c->rows,
                                                         .scale_cols = (c->cols + 15) / 16,
                                                         .global_rows = 1};
}

void params_dequantize_w4a16(params *p, const call *c, const tensors *t) {
    p->dequantize_w4a16 = (kiln_dequantize_w4a16_params){
        .y = t->output[0], .weights = (void *)t->input[0], .scales = t->input[1], .n = c->rows, .k = c->cols};
}

void params_causal_conv1d(params *p, const call *c, const tensors *t) {
    p->causal_conv1d = (kiln_causal_conv1d_params){
        .y = t->output[0], .x = t->input[0], .weight = t->bias, .tokens = c->rows, .channels = c->cols, .width = 1};
}

void params_engram_gate(params *p, const call *c, const tensors *t) {
    p->engram_gate = (kiln_engram_gate_params){.y = t->output[0],
                                               .normed = t->output[1],
                                               .key = t->input[0],
                                               .query = t->input[1],
                                               .value = t->input[2],
                                               .tokens = c->rows,
                                               .groups = 1,
                                               .cols = c->cols};
}

void params_engram_hash(params *p, const call *c, const tensors *t) {
    p->engram_hash = (kiln_engram_hash_params){.rows = (void *)t->output[0],
                                               .ids = t->numbers,
                                               .multipliers = t->frequencies,
                                               .primes = t->frequencies,
                                               .tokens = c->rows,
                                               .layers = 1,
                                               .orders = 2,
                                               .heads = c->cols / 16};
}

void params_embedding(params *p, const call *c, const tensors *t) {
    p->embedding = (kiln_embedding_params){.y = t->output[0],
                                           .table = t->input[0],
                                           .ids = t->numbers,
                                           .rows = c->rows,
                                           .cols = c->cols,
                                           .vocabulary = c->rows};
}

void params_gemm(params *p, const call *c, const tensors *t) {
    p->gemm = (kiln_gemm_params){.d = t->output[0],
                                 .a = t->input[0],
                                 .b = t->input[1],
                                 .batch = 1,
                                 .m = c->rows,
                                 .n = c->rows,
                                 .k = c->cols,
                                 .tile = KILN_GEMM_TILE_PORTABLE,
                                 .workspace = t->workspace,
                                 .workspace_size = t->workspace_size};
}

void params_gemm_w4a16(params *p, const call *c, const tensors *t) {
    p->gemm_w4a16 = (kiln_gemm_w4a16_params){.d = t->output[0],
                                             .a = t->input[0],
                                             .weights = (void *)t->input[1],
                                             .scales = t->input[2],
                                             .m = c->rows,
                                             .n = c->rows,
                                             .k = c->cols,
                                             .workspace = t->workspace,
                                             .workspace_size = t->workspace_size};
}

void params_gemm_fp8(params *p, const call *c, const tensors *t) {
    p->gemm_fp8 = (kiln_gemm_fp8_params){.d = t->output[0],
                                         .a = (const uint8_t *)t->input[0],
                                         .b = (const uint8_t *)t->input[1],
                                         .a_scales = (const float *)t->input[2],
                                         .b_scales = (const float *)t->input[2],
                                         .m = c->rows,
                                         .n = c->rows,
                                         .k = c->cols,
                                         .workspace = t->workspace,
                                         .workspace_size = t->workspace_size};
}

void params_gemm_int8(params *p, const call *c, const tensors *t) {
    p->gemm_int8 = (kiln_gemm_int8_params){.d = t->output[0],
                                           .a = (const int8_t *)t->input[0],
                                           .b = (const int8_t *)t->input[1],
                                           .a_scales = (const float *)t->input[2],
                                           .b_scales = (const float *)t->input[2],
                                           .m = c->rows,
                                           .n = c->rows,
                                           .k = c->cols,
                                           .workspace = t->workspace,
                                           .workspace_size = t->workspace_size};
}

void params_gemm_nvfp4(params *p, const call *c, const tensors *t) {
    const int64_t blocks = (c->cols + 15) / 16;
    p->gemm_nvfp4 = (kiln_gemm_nvfp4_params){.d = t->output[0],
                                             .a = (const uint8_t *)t->input[0],
                                             .b = (const uint8_t *)t->input[1],
                                             .a_scales = (const uint8_t *)t->input[2],
                                             .b_scales = (const uint8_t *)t->input[2],
                                             .a_global_scale = (const float *)t->input[2],
                                             .b_global_scale = (const float *)t->input[2],
                                             .m = c->rows,
                                             .n = c->rows,
                                             .k = c->cols,
                                             .a_scale_rows = c->rows,
                                             .a_scale_cols = blocks,
                                             .b_scale_rows = c->rows,
                                             .b_scale_cols = blocks,
                                             .a_global_rows = 1,
                                             .b_global_rows = 1,
                                             .workspace = t->workspace,
                                             .workspace_size = t->workspace_size};
}

void params_kv_compact(params *p, const call *c, const tensors *t) {
    p->kv_compact = (kiln_kv_compact_params){.key_cache = t->output[0],
                                             .value_cache = t->output[1],
                                             .slot_mapping = t->numbers,
                                             .path = t->numbers + c->rows,
                                             .accepted = t->numbers + c->rows,
                                             .batch = 1,
                                             .nodes = 2 * c->rows,
                                             .depth = c->rows,
                                             .cols = c->cols,
                                             .capacity = 2 * c->rows};
}

void params_kv_copy_blocks(params *p, const call *c, const tensors *t) {
    p->kv_copy_blocks = (kiln_kv_copy_blocks_params){.key_cache = t->output[0],
                                                     .value_cache = t->output[1],
                                                     .pairs = t->numbers,
                                                     .count = c->rows,
                                                     .blocks = 2 * c->rows,
                                                     .cols = c->cols};
}

void params_kv_store(params *p, const call *c, const tensors *t) {
    p->kv_store = (kiln_kv_store_params){.key_cache = t->output[0],
                                         .value_cache = t->output[1],
                                         .key = t->input[0],
                                         .value = t->input[1],
                                         .slot_mapping = t->numbers,
                                         .tokens = c->rows,
                                         .cols = c->cols,
                                         .capacity = c->rows};
}

void params_mha(params *p, const call *c, const tensors *t) {
    p->mha = (kiln_mha_params){.out = t->output[0],
                               .q = t->input[0],
                               .k = t->input[1],
                               .v = t->input[2],
                               .tokens = 1,
                               .kv_tokens = c->rows,
                               .batch = 1,
                               .heads = 1,
                               .kv_heads = 1,
                               .head_dim = c->cols,
                               .workspace = t->workspace,
                               .workspace_size = t->workspace_size,
                               .kernel = KILN_MHA_KERNEL_PORTABLE};
}

void params_mha_fp8_fwd(params *p, const call *c, const tensors *t) {
    p->mha_fp8_fwd = (kiln_mha_fp8_fwd_params){.out = t->output[0],
                                               .q = (const uint8_t *)t->input[0],
                                               .k = (const uint8_t *)t->input[1],
                                               .v = (const uint8_t *)t->input[2],
                                               .q_scales = (const float *)t->input[1],
                                               .k_scales = (const float *)t->input[1],
                                               .v_scales = (const float *)t->input[1],
                                               .tokens = 1,
                                               .kv_tokens = c->rows,
                                               .batch = 1,
                                               .heads = 1,
                                               .kv_heads = 1,
                                               .head_dim = c->cols,
                                               .workspace = t->workspace,
                                               .workspace_size = t->workspace_size,
                                               .kernel = KILN_MHA_KERNEL_PORTABLE};
}

void params_mha_int8_x_fp8_fwd(params *p, const call *c, const tensors *t) {
    p->mha_int8_x_fp8_fwd = (kiln_mha_int8_x_fp8_fwd_params){.out = t->output[0],
                                                             .q = (const int8_t *)t->input[0],
                                                             .k = (const int8_t *)t->input[1],
                                                             .v = (const uint8_t *)t->input[2],
                                                             .q_scales = (const float *)t->input[1],
                                                             .k_scales = (const float *)t->input[1],
                                                             .v_scales = (const float *)t->input[1],
                                                             .tokens = 1,
                                                             .kv_tokens = c->rows,
                                                             .batch = 1,
                                                             .heads = 1,
                                                             .kv_heads = 1,
                                                             .head_dim = c->cols,
                                                             .workspace = t->workspace,
                                                             .workspace_size = t->workspace_size,
                                                             .kernel = KILN_MHA_KERNEL_PORTABLE};
}

void params_mha_quantize(params *p, const call *c, const tensors *t) {
    p->mha_quantize =
        (kiln_mha_quantize_params){.q_codes = t->output[0],
                                   .k_codes = t->output[0] + c->rows * c->cols / 2,
                                   .v_codes = (uint8_t *)t->output[1],
                                   .q_scales = (float *)t->output[1] + c->rows * c->cols / 4,
                                   .k_scales = (float *)t->output[1] + c->rows * c->cols / 4 + c->rows,
                                   .v_scales = (float *)t->output[1] + c->rows * c->cols / 4 + 2 * c->rows,
                                   .k_means = (float *)t->output[1] + c->rows * c->cols / 4 + 2 * c->rows + c->cols,
                                   .q = t->input[0],
                                   .k = t->input[1],
                                   .v = t->input[2],
                                   .tokens = c->rows,
                                   .kv_tokens = c->rows,
                                   .batch = 1,
                                   .heads = 1,
                                   .kv_heads = 1,
                                   .head_dim = c->cols,
                                   .workspace = t->workspace,
                                   .workspace_size = t->workspace_size};
}

void params_mha_nvfp4_fwd(params *p, const call *c, const tensors *t) {
    p->mha_nvfp4_fwd = (kiln_mha_nvfp4_fwd_params){.out = t->output[0],
                                                   .q = (const uint8_t *)t->input[0],
                                                   .k = (const uint8_t *)t->input[1],
                                                   .v = (const uint8_t *)t->input[2],
                                                   .q_block_scales = (const uint8_t *)t->input[0],
                                                   .k_block_scales = (const uint8_t *)t->input[1],
                                                   .v_block_scales = (const uint8_t *)t->input[2],
                                                   .q_scales = (const float *)t->input[1],
                                                   .k_scales = (const float *)t->input[1],
                                                   .v_scales = (const float *)t->input[1],
                                                   .tokens = 1,
                                                   .kv_tokens = c->rows,
                                                   .batch = 1,
                                                   .heads = 1,
                                                   .kv_heads = 1,
                                                   .head_dim = c->cols,
                                                   .workspace = t->workspace,
                                                   .workspace_size = t->workspace_size,
                                                   .kernel = KILN_MHA_KERNEL_PORTABLE};
}

void params_mha_quantize_nvfp4(params *p, const call *c, const tensors *t) {
    const int64_t bytes = c->rows * c->cols / 2, blocks = bytes / 8, columns = bytes + 32 * c->cols;
    uint8_t *codes = (uint8_t *)t->output[0], *v_codes = (uint8_t *)t->output[1], *v_blocks = v_codes + columns;
    float *scales = (float *)(void *)(v_blocks + columns / 8);
    p->mha_quantize_nvfp4 = (kiln_mha_quantize_nvfp4_params){.q_codes = codes,
                                                             .k_codes = codes + bytes,
                                                             .v_codes = v_codes,
                                                             .q_block_scales = codes + 2 * bytes,
                                                             .k_block_scales = codes + 2 * bytes + blocks,
                                                             .v_block_scales = v_blocks,
                                                             .q_scales = scales,
                                                             .k_scales = scales + c->rows,
                                                             .v_scales = scales + 2 * c->rows,
                                                             .k_means = scales + 2 * c->rows + c->cols,
                                                             .q = t->input[0],
                                                             .k = t->input[1],
                                                             .v = t->input[2],
                                                             .tokens = c->rows,
                                                             .kv_tokens = c->rows,
                                                             .batch = 1,
                                                             .heads = 1,
                                                             .kv_heads = 1,
                                                             .head_dim = c->cols,
                                                             .workspace = t->workspace,
                                                             .workspace_size = t->workspace_size};
}

void params_mha_windowed(params *p, const call *c, const tensors *t) {
    params_mha(p, c, t);
    p->mha.window_left = SEEN;
}

void params_mha_causal(params *p, const call *c, const tensors *t) {
    params_mha(p, c, t);
    p->mha.tokens = c->rows;
    p->mha.causal = 1;
    p->mha.lse = (float *)t->output[1];
}

void params_mha_late(params *p, const call *c, const tensors *t) {
    params_mha_causal(p, c, t);
    p->mha.kv_tokens = TILE;
}

void params_mha_shared(params *p, const call *c, const tensors *t) {
    params_mha(p, c, t);
    p->mha.tokens = TILE;
    p->mha.lse = (float *)t->output[1];
}

void params_mha_paged(params *p, const call *c, const tensors *t) {
    p->mha_paged = (kiln_mha_paged_params){.out = t->output[0],
                                           .q = t->input[0],
                                           .k_cache = t->input[1],
                                           .v_cache = t->input[2],
                                           .block_table = t->numbers,
                                           .seqlens_k = t->numbers + c->rows,
                                           .tokens = 1,
                                           .blocks = c->rows / KEYS,
                                           .block_size = KEYS,
                                           .batch = 1,
                                           .max_blocks_per_seq = c->rows / KEYS,
                                           .heads = 1,
                                           .kv_heads = 1,
                                           .head_dim = c->cols,
                                           .workspace = t->workspace,
                                           .workspace_size = t->workspace_size,
                                           .kernel = KILN_MHA_KERNEL_PORTABLE};
}

void params_mha_paged_causal(params *p, const call *c, const tensors *t) {
    params_mha_paged(p, c, t);
    p->mha_paged.tokens = c->rows;
    p->mha_paged.causal = 1;
    p->mha_paged.lse = (float *)t->output[1];
}

void params_mha_paged_shared(params *p, const call *c, const tensors *t) {
    params_mha_paged(p, c, t);
    p->mha_paged.tokens = TILE;
    p->mha_paged.lse = (float *)t->output[1];
}

void params_log_softmax(params *p, const call *c, const tensors *t) {
    p->log_softmax = (kiln_log_softmax_params){.y = t->output[0],
                                               .lse = (void *)t->numbers,
                                               .x = t->input[0],
                                               .rows = c->rows,
                                               .cols = c->cols,
                                               .workspace = t->workspace,
                                               .workspace_size = t->workspace_size};
}

void params_tree_verify_sampled(params *p, const call *c, const tensors *t) {
    p->tree_verify_sampled = (kiln_tree_verify_sampled_params){.path = (void *)t->output[0],
                                                               .accepted = (void *)t->output[1],
                                                               .next = (void *)t->frequencies,
                                                               .target = t->input[0],
                                                               .tokens = t->numbers,
                                                               .parents = t->numbers,
                                                               .batch = c->rows,
                                                               .nodes = 1,
                                                               .depth = 1,
                                                               .vocabulary = c->cols,
                                                               .trees = 1};
}

void params_softmax_update(params *p, const call *c, const tensors *t) {
    p->softmax_update = (kiln_softmax_update_params){
        .states = (void *)t->frequencies, .x = t->input[0], .rows = c->rows, .cols = c->cols};
}

void params_merge_attention_states(params *p, const call *c, const tensors *t) {
    p->merge_attention_states = (kiln_merge_attention_states_params){.out = t->output[0],
                                                                     .x = t->input[0],
                                                                     .x_lse = (void *)t->frequencies,
                                                                     .parts = 2,
                                                                     .tokens = c->rows / 2,
                                                                     .heads = 1,
                                                                     .head_dim = c->cols};
}

void params_mul_add(params *p, const call *c, const tensors *t) {
    p->mul_add = (kiln_mul_add_params){
        .y = t->output[0], .a = t->input[0], .b = t->input[1], .c = t->input[2], .count = c->rows * c->cols};
}

void params_quantize_embedding(params *p, const call *c, const tensors *t) {
    p->quantize_embedding = (kiln_quantize_embedding_params){.codes = (void *)t->output[0],
                                                             .scales = (void *)t->numbers,
                                                             .x = t->input[0],
                                                             .rows = c->rows,
                                                             .cols = c->cols,
                                                             .code_cols = c->cols,
                                                             .code_type = KILN_VECTOR_INT8,
                                                             .normalize = 1};
}

void params_quantize_fp8(params *p, const call *c, const tensors *t) {
    p->quantize_fp8 = (kiln_quantize_fp8_params){.codes = (void *)t->output[0],
                                                 .scales = (void *)t->numbers,
                                                 .x = t->input[0],
                                                 .rows = c->rows,
                                                 .cols = c->cols,
                                                 .scale_rows = c->rows,
                                                 .scale_cols = 1};
}

void params_quantize_int8(params *p, const call *c, const tensors *t) {
    p->quantize_int8 = (kiln_quantize_int8_params){.codes = (void *)t->output[0],
                                                   .scales = (void *)t->numbers,
                                                   .x = t->input[0],
                                                   .rows = c->rows,
                                                   .cols = c->cols,
                                                   .scale_rows = c->rows,
                                                   .scale_cols = 1};
}

void params_quantize_nvfp4(params *p, const call *c, const tensors *t) {
    p->quantize_nvfp4 = (kiln_quantize_nvfp4_params){.codes = (void *)t->output[0],
                                                     .scales = (void *)t->output[1],
                                                     .x = t->input[0],
                                                     .amax = (void *)t->numbers,
                                                     .rows = c->rows,
                                                     .cols = c->cols,
                                                     .scale_rows = c->rows,
                                                     .scale_cols = (c->cols + 15) / 16,
                                                     .global_rows = 1};
}

void params_rmsnorm(params *p, const call *c, const tensors *t) {
    p->rmsnorm = (kiln_rmsnorm_params){.y = t->output[0], .x = t->input[0], .rows = c->rows, .cols = c->cols};
}

void params_rmsnorm_fp8(params *p, const call *c, const tensors *t) {
    p->rmsnorm_fp8 = (kiln_rmsnorm_fp8_params){.codes = (void *)t->output[0],
                                               .scales = (void *)t->numbers,
                                               .x = t->input[0],
                                               .rows = c->rows,
                                               .cols = c->cols,
                                               .scale_cols = 1};
}

void params_rmsnorm_int8(params *p, const call *c, const tensors *t) {
    p->rmsnorm_int8 = (kiln_rmsnorm_int8_params){.codes = (void *)t->output[0],
                                                 .scales = (void *)t->numbers,
                                                 .x = t->input[0],
                                                 .rows = c->rows,
                                                 .cols = c->cols,
                                                 .scale_cols = 1};
}

void params_rmsnorm_nvfp4(params *p, const call *c, const tensors *t) {
    p->rmsnorm_nvfp4 = (kiln_rmsnorm_nvfp4_params){.codes = (void *)t->output[0],
                                                   .scales = (void *)t->output[1],
                                                   .global_scale = (void *)t->numbers,
                                                   .x = t->input[0],
                                                   .rows = c->rows,
                                                   .cols = c->cols,
                                                   .scale_rows = c->rows,
                                                   .scale_cols = (c->cols + 15) / 16};
}

void params_rope(params *p, const call *c, const tensors *t) {
    p->rope = (kiln_rope_params){.y = t->output[0],
                                 .x = t->input[0],
                                 .positions = t->numbers,
                                 .frequencies = t->frequencies,
                                 .tokens = c->rows,
                                 .heads = 1,
                                 .pairs = c->cols / 2};
}

/* The queries in place. */
void params_rope_kv_store(params *p, const call *c, const tensors *t) {
    p->rope_kv_store = (kiln_rope_kv_store_params){.query_out = t->input[0],
                                                   .key_cache = t->output[0],
                                                   .value_cache = t->output[1],
                                                   .query = t->input[0],
                                                   .key = t->input[1],
                                                   .value = t->input[2],
                                                   .slot_mapping = t->numbers,
                                                   .positions = t->numbers,
                                                   .frequencies = t->frequencies,
                                                   .tokens = c->rows,
                                                   .heads = 1,
                                                   .kv_heads = 1,
                                                   .head_dim = c->cols,
                                                   .pairs = c->cols / 2,
                                                   .capacity = c->rows};
}

void params_rope3d(params *p, const call *c, const tensors *t) {
    p->rope3d = (kiln_rope3d_params){.y = t->output[0],
                                     .x = t->input[0],
                                     .grids = t->numbers + 1,
                                     .frequencies = t->frequencies,
                                     .batch = 1,
                                     .tokens = c->rows,
                                     .heads = 1,
                                     .pairs = c->cols / 2};
}

void params_sample(params *p, const call *c, const tensors *t) {
    p->sample = (kiln_sample_params){.y = t->numbers, .x = t->input[0], .rows = c->rows, .cols = c->cols};
}

void params_silu_mul(params *p, const call *c, const tensors *t) {
    p->silu_mul = (kiln_silu_mul_params){
        .y = t->output[0], .gate = t->input[0], .up = t->input[1], .rows = c->rows, .cols = c->cols};
}

void params_silu_mul_fp8(params *p, const call *c, const tensors *t) {
    p->silu_mul_fp8 = (kiln_silu_mul_fp8_params){.codes = (void *)t->output[0],
                                                 .scales = (void *)t->numbers,
                                                 .gate = t->input[0],
                                                 .up = t->input[1],
                                                 .rows = c->rows,
                                                 .cols = c->cols,
                                                 .scale_cols = 1};
}

void params_silu_mul_int8(params *p, const call *c, const tensors *t) {
    p->silu_mul_int8 = (kiln_silu_mul_int8_params){.codes = (void *)t->output[0],
                                                   .scales = (void *)t->numbers,
                                                   .gate = t->input[0],
                                                   .up = t->input[1],
                                                   .rows = c->rows,
                                                   .cols = c->cols,
                                                   .scale_cols = 1};
}

void params_silu_mul_nvfp4(params *p, const call *c, const tensors *t) {
    p->silu_mul_nvfp4 = (kiln_silu_mul_nvfp4_params){.codes = (void *)t->output[0],
                                                     .scales = (void *)t->output[1],
                                                     .global_scale = (void *)t->numbers,
                                                     .gate = t->input[0],
                                                     .up = t->input[1],
                                                     .rows = c->rows,
                                                     .cols = c->cols,
                                                     .scale_rows = c->rows,
                                                     .scale_cols = (c->cols + 15) / 16};
}

void params_softmax(params *p, const call *c, const tensors *t) {
    p->softmax = (kiln_softmax_params){.y = t->output[0],
                                       .x = t->input[0],
                                       .rows = c->rows,
                                       .cols = c->cols,
                                       .workspace = t->workspace,
                                       .workspace_size = t->workspace_size};
}

void params_top_k(params *p, const call *c, const tensors *t) {
    p->top_k = (kiln_top_k_params){.indices = t->numbers,
                                   .x = t->input[0],
                                   .rows = c->rows,
                                   .cols = c->cols,
                                   .k = 1,
                                   .workspace = t->workspace,
                                   .workspace_size = t->workspace_size};
}

/* Of the tree's nodes the root alone has a parent that it may have: only its row is looked at. */
void params_tree_accept(params *p, const call *c, const tensors *t) {
    p->tree_accept = (kiln_tree_accept_params){.path = (void *)t->output[0],
                                               .accepted = (void *)t->output[0],
                                               .next = (void *)t->output[0],
                                               .logits = t->input[0],
                                               .tokens = t->numbers,
                                               .parents = t->numbers,
                                               .batch = 1,
                                               .nodes = c->rows,
                                               .depth = 1,
                                               .vocabulary = c->cols,
                                               .trees = 1};
}

/* One row of bits is found. */
void params_vector_search(params *p, const call *c, const tensors *t) {
    p->vector_search = (kiln_vector_search_params){.indices = t->numbers,
                                                   .query_codes = (void *)t->input[1],
                                                   .table_codes = (void *)t->input[0],
                                                   .queries = 1,
                                                   .rows = c->rows,
                                                   .code_cols = c->cols,
                                                   .k = 1,
                                                   .workspace = t->workspace,
                                                   .workspace_size = t->workspace_size};
}
