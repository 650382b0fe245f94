/* mha_nvfp4_fwd: attention on q, k and v in NVFP4, v transposed. A group does its tiles as attention_codes_gpu.h tells,
 * which has the floor too: codes become f32 in shared memory, a block of 16 keys of a channel of v by one thread.
 *
 * Test: build/tests/ops/mha_nvfp4_fwd_test. Bench: build/kiln bench mha_nvfp4_fwd */
#include "kernels/mha_nvfp4_fwd/mha_nvfp4_fwd_gpu.h"
