/* What the operators are called with where it is only counted what they touch: tensors of zeros. */
#ifndef KILN_TESTS_SIM_OPERATOR_PARAMS_H
#define KILN_TESTS_SIM_OPERATOR_PARAMS_H

#include <kiln/ops.h>
#include <stdbool.h>
#include <stddef.h>

/* An operator on rows x cols, its tensors so many bytes behind an aligned address. */
typedef struct call {
    const struct operation *op; /* the test's own */
    const char *part;
    int64_t rows, cols;
    size_t misplaced;
    bool bias; /* add_gelu has one */
} call;

/* Bytes of an element. */
uint64_t call_element(const call *c);

enum { TENSORS_INPUTS = 3, TENSORS_OUTPUTS = 2, TENSORS_MEMORIES = 16 };

/* What any operator is called with. */
typedef struct tensors {
    kiln_stream *stream;
    const call *of;
    void *memory[TENSORS_MEMORIES];
    size_t count;
    char *input[TENSORS_INPUTS], *output[TENSORS_OUTPUTS], *bias; /* of zeros; in- and outputs have twice the rows */
    int32_t *numbers;                                             /* 0, 1, ... for twice the rows */
    int64_t *frequencies;
    void *workspace;
    size_t workspace_size;
} tensors;

/* Fails the running test without memory. The call and the stream must outlive the tensors. */
tensors tensors_new(kiln_stream *stream, const call *c);
void tensors_free(tensors *t);

/* More memory of zeros, which is freed with the tensors. */
char *tensors_zeros(tensors *t, size_t size);

typedef union params {
    kiln_add_params add;
    kiln_add_gelu_params add_gelu;
    kiln_add_rmsnorm_params add_rmsnorm;
    kiln_amax_params amax;
    kiln_argmax_params argmax;
    kiln_causal_conv1d_params causal_conv1d;
    kiln_dequantize_fp8_params dequantize_fp8;
    kiln_dequantize_int8_params dequantize_int8;
    kiln_dequantize_nvfp4_params dequantize_nvfp4;
    kiln_dequantize_w4a16_params dequantize_w4a16;
    kiln_embedding_params embedding;
    kiln_engram_gate_params engram_gate;
    kiln_engram_hash_params engram_hash;
    kiln_gemm_params gemm;
    kiln_gemm_fp8_params gemm_fp8;
    kiln_gemm_int8_params gemm_int8;
    kiln_gemm_nvfp4_params gemm_nvfp4;
    kiln_gemm_w4a16_params gemm_w4a16;
    kiln_kv_compact_params kv_compact;
    kiln_kv_copy_blocks_params kv_copy_blocks;
    kiln_kv_store_params kv_store;
    kiln_mha_params mha;
    kiln_mha_fp8_fwd_params mha_fp8_fwd;
    kiln_mha_int8_x_fp8_fwd_params mha_int8_x_fp8_fwd;
    kiln_mha_paged_params mha_paged;
    kiln_mha_quantize_params mha_quantize;
    kiln_mha_nvfp4_fwd_params mha_nvfp4_fwd;
    kiln_mha_quantize_nvfp4_params mha_quantize_nvfp4;
    kiln_log_softmax_params log_softmax;
    kiln_merge_attention_states_params merge_attention_states;
    kiln_mul_add_params mul_add;
    kiln_quantize_embedding_params quantize_embedding;
    kiln_quantize_fp8_params quantize_fp8;
    kiln_quantize_int8_params quantize_int8;
    kiln_quantize_nvfp4_params quantize_nvfp4;
    kiln_rmsnorm_params rmsnorm;
    kiln_rmsnorm_fp8_params rmsnorm_fp8;
    kiln_rmsnorm_int8_params rmsnorm_int8;
    kiln_rmsnorm_nvfp4_params rmsnorm_nvfp4;
    kiln_rope_params rope;
    kiln_rope3d_params rope3d;
    kiln_rope_kv_store_params rope_kv_store;
    kiln_sample_params sample;
    kiln_top_k_params top_k;
    kiln_tree_accept_params tree_accept;
    kiln_vector_search_params vector_search;
    kiln_silu_mul_params silu_mul;
    kiln_silu_mul_fp8_params silu_mul_fp8;
    kiln_silu_mul_int8_params silu_mul_int8;
    kiln_silu_mul_nvfp4_params silu_mul_nvfp4;
    kiln_softmax_params softmax;
    kiln_softmax_update_params softmax_update;
    kiln_tree_verify_sampled_params tree_verify_sampled;
} params;

/* Keys: that a query sees in a window, that a group reads at a time, that a block holds. */
enum { SEEN = 40, TILE = 32, KEYS = 16 };

void params_add(params *p, const call *c, const tensors *t);
void params_add_gelu(params *p, const call *c, const tensors *t);
void params_add_rmsnorm(params *p, const call *c, const tensors *t);
/* Of each row. */
void params_amax(params *p, const call *c, const tensors *t);
void params_argmax(params *p, const call *c, const tensors *t);
/* A scale for the tensor. */
void params_dequantize_fp8(params *p, const call *c, const tensors *t);
void params_dequantize_int8(params *p, const call *c, const tensors *t);
void params_dequantize_nvfp4(params *p, const call *c, const tensors *t);
void params_dequantize_w4a16(params *p, const call *c, const tensors *t);
void params_embedding(params *p, const call *c, const tensors *t);
/* A group, with the norm of what is gated. */
void params_engram_gate(params *p, const call *c, const tensors *t);
/* A sixteenth of the columns is a head of two orders. */
void params_engram_hash(params *p, const call *c, const tensors *t);
/* One factor for each channel. */
void params_causal_conv1d(params *p, const call *c, const tensors *t);
/* The product of two square matrices. */
void params_gemm(params *p, const call *c, const tensors *t);
/* The same of codes, with a scale for each row. */
void params_gemm_fp8(params *p, const call *c, const tensors *t);
void params_gemm_int8(params *p, const call *c, const tensors *t);
void params_gemm_nvfp4(params *p, const call *c, const tensors *t);
void params_gemm_w4a16(params *p, const call *c, const tensors *t);
/* Each even block to the one behind it. */
/* A path of the last half of a tree's nodes. */
void params_kv_compact(params *p, const call *c, const tensors *t);
void params_kv_copy_blocks(params *p, const call *c, const tensors *t);
void params_kv_store(params *p, const call *c, const tensors *t);
/* One query and a key in each row. */
void params_mha(params *p, const call *c, const tensors *t);
void params_mha_fp8_fwd(params *p, const call *c, const tensors *t);
void params_mha_int8_x_fp8_fwd(params *p, const call *c, const tensors *t);
void params_mha_quantize(params *p, const call *c, const tensors *t);
void params_mha_nvfp4_fwd(params *p, const call *c, const tensors *t);
void params_mha_quantize_nvfp4(params *p, const call *c, const tensors *t);
/* The same, and it sees the last SEEN keys. */
void params_mha_windowed(params *p, const call *c, const tensors *t);
/* A query at each key, which sees none behind it. */
void params_mha_causal(params *p, const call *c, const tensors *t);
/* The first two tiles of queries stand before the first of TILE keys. */
void params_mha_late(params *p, const call *c, const tensors *t);
/* TILE queries, of which each group of many keys has all. */
void params_mha_shared(params *p, const call *c, const tensors *t);
/* One query and keys in blocks. */
void params_mha_paged(params *p, const call *c, const tensors *t);
/* As with mha. */
void params_mha_paged_causal(params *p, const call *c, const tensors *t);
void params_mha_paged_shared(params *p, const call *c, const tensors *t);
void params_log_softmax(params *p, const call *c, const tensors *t);
/* Of two parts of half the rows; both weigh the same. */
void params_merge_attention_states(params *p, const call *c, const tensors *t);
void params_mul_add(params *p, const call *c, const tensors *t);
/* A scale for each row. */
void params_quantize_embedding(params *p, const call *c, const tensors *t);
void params_quantize_fp8(params *p, const call *c, const tensors *t);
void params_quantize_int8(params *p, const call *c, const tensors *t);
/* The greatest magnitude is given. */
void params_quantize_nvfp4(params *p, const call *c, const tensors *t);
void params_rmsnorm(params *p, const call *c, const tensors *t);
/* A scale for each row; so do the others that quantise. */
void params_rmsnorm_fp8(params *p, const call *c, const tensors *t);
void params_rmsnorm_int8(params *p, const call *c, const tensors *t);
void params_rmsnorm_nvfp4(params *p, const call *c, const tensors *t);
void params_rope(params *p, const call *c, const tensors *t);
/* The first tokens are in a grid of 1 x 2 x 3. */
void params_rope3d(params *p, const call *c, const tensors *t);
void params_rope_kv_store(params *p, const call *c, const tensors *t);
/* At temperature 0. */
void params_sample(params *p, const call *c, const tensors *t);
/* Of one element of each row. */
void params_top_k(params *p, const call *c, const tensors *t);
void params_tree_accept(params *p, const call *c, const tensors *t);
void params_vector_search(params *p, const call *c, const tensors *t);
void params_silu_mul(params *p, const call *c, const tensors *t);
void params_silu_mul_fp8(params *p, const call *c, const tensors *t);
void params_silu_mul_int8(params *p, const call *c, const tensors *t);
void params_silu_mul_nvfp4(params *p, const call *c, const tensors *t);
void params_softmax(params *p, const call *c, const tensors *t);
/* Trees of a root. */
void params_tree_verify_sampled(params *p, const call *c, const tensors *t);
/* States of scores alone. */
void params_softmax_update(params *p, const call *c, const tensors *t);

#endif
