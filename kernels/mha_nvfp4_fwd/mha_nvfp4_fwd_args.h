/* mha_nvfp4_fwd: the argument of its kernels. */
#ifndef KILN_KERNELS_MHA_NVFP4_FWD_ARGS_H
#define KILN_KERNELS_MHA_NVFP4_FWD_ARGS_H

#include "kernels/common/attention/attention_codes_args.h"

KILN_ARGS_BEGIN
typedef struct kiln_attention_nvfp4_args {
    kiln_attention_codes_args codes; /* q, k and v are pairs of E2M1; they have no strides */
    const uint8_t *q_blocks;         /* [tokens, heads, head_blocks], E4M3 */
    const uint8_t *k_blocks;         /* [kv_tokens, kv_heads, head_blocks] */
    const uint8_t *v_blocks;         /* [kv_heads, head_dim, value_blocks] */
    uint32_t head_blocks;            /* a multiple of 4 */
    uint32_t value_blocks;
} kiln_attention_nvfp4_args;
KILN_ARGS_END

#endif
