/* mha_quantize_nvfp4: the argument of the kernel that makes codes. Those that have channels take `plain`. */
#ifndef KILN_KERNELS_MHA_QUANTIZE_NVFP4_ARGS_H
#define KILN_KERNELS_MHA_QUANTIZE_NVFP4_ARGS_H

#include "kernels/common/attention/mha_quantize_args.h"

KILN_ARGS_BEGIN
typedef struct kiln_mha_quantize_nvfp4_args {
    kiln_mha_quantize_args plain; /* codes are pairs of E2M1; q and k have a scale for each token */
    uint8_t *q_blocks;            /* scales of blocks */
    uint8_t *k_blocks;
    uint8_t *v_blocks;
    uint32_t head_blocks;  /* of a head of q and k */
    uint32_t value_blocks; /* of a channel of v */
} kiln_mha_quantize_nvfp4_args;
KILN_ARGS_END

#endif
