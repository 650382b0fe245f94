/* Attention on codes of 8 bits, mha_int8_x_fp8_fwd and mha_fp8_fwd: the one argument of their kernels, on every
 * backend, and which tokens share a scale. */
#ifndef KILN_KERNELS_COMMON_ATTENTION_ATTENTION_CODES_ARGS_H
#define KILN_KERNELS_COMMON_ATTENTION_ATTENTION_CODES_ARGS_H

#include "kernels/common/attention/attention_args.h"

/* Which of a head's scales a token has: (token >> high) << bits | (token & mask) >> low. Tokens that share one are
 * within 1 << high of each other. */
KILN_ARGS_BEGIN
typedef struct kiln_scale_index {
    uint32_t high, bits, mask, low;
} kiln_scale_index;

/* q, k and v of plain are codes, out is of the part; softcap is 0. */
typedef struct kiln_attention_codes_args {
    kiln_attention_args plain;
    const float *q_scales; /* [heads, q_scale_rows] */
    const float *k_scales; /* [kv_heads, k_scale_rows] */
    const float *v_scales; /* [batch, kv_heads, head_dim] */
    const float *k_means;  /* [batch, kv_heads, head_dim], what was taken from k; NULL: nothing */
    const float *v_means;  /* [batch, kv_heads, head_dim], what was taken from v; NULL: nothing */
    int64_t q_scale_rows;
    int64_t k_scale_rows;
    kiln_scale_index q_index;
    kiln_scale_index k_index;
} kiln_attention_codes_args;
KILN_ARGS_END

#endif
