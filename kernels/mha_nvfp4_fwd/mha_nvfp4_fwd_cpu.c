/* mha_nvfp4_fwd on the CPU, and its definition: attention on q, k and v in NVFP4, v transposed. attention_codes_cpu.h
 * has how a group works, and the floor; a tile of v is transposed back, 16 keys of a channel at a time.
 *
 * Test: build/tests/ops/mha_nvfp4_fwd_test. Bench: build/kiln bench mha_nvfp4_fwd --device cpu */
#include "kernels/common/cpu.h"

#include "kernels/common/attention_nvfp4.h"
#include "kernels/mha_nvfp4_fwd/mha_nvfp4_fwd_args.h"

#define ATTEND       mha_nvfp4_fwd_attend
#define JOIN         mha_nvfp4_fwd_join
#define CODES_SOURCE "kernels/mha_nvfp4_fwd/mha_nvfp4_fwd_codes_cpu.h"
#define CODES_ARGS   kiln_attention_nvfp4_args
#include "kernels/common/attention_codes_cpu.h"
