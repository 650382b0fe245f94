/* What kernels of mha that copy by tensor maps take: the arguments of the others, and maps of keys and values. */
#ifndef KILN_KERNELS_COMMON_ATTENTION_ATTENTION_MAPPED_ARGS_H
#define KILN_KERNELS_COMMON_ATTENTION_ATTENTION_MAPPED_ARGS_H

#include "kernels/common/attention/attention_args.h"
#include "kernels/common/tensor_map.h"

KILN_ARGS_BEGIN
typedef struct kiln_attention_mapped_args {
    kiln_attention_args plain;
    kiln_tensor_map maps[2]; /* [kv_tokens, kv_heads, head_dim], of keys and of values */
} kiln_attention_mapped_args;
KILN_ARGS_END

#endif
