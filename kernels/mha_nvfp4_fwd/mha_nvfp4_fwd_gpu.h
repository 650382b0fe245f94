/* The portable kernels of mha_nvfp4_fwd, on all targets: attention on q, k and v in NVFP4, v transposed. Their tiles
 * and their floor are told in attention_codes_gpu.h. */
#ifndef KILN_KERNELS_MHA_NVFP4_FWD_GPU_H
#define KILN_KERNELS_MHA_NVFP4_FWD_GPU_H

#include "kernels/common/device.h"

#include "kernels/common/attention_nvfp4.h"
#include "kernels/mha_nvfp4_fwd/mha_nvfp4_fwd_args.h"

#define ATTEND       mha_nvfp4_fwd_attend
#define JOIN         mha_nvfp4_fwd_join
#define CODES_SOURCE "kernels/mha_nvfp4_fwd/mha_nvfp4_fwd_codes_gpu.h"
#define CODES_ARGS   kiln_attention_nvfp4_args
#include "kernels/common/attention_codes_gpu.h"

#endif
