/* mha_nvfp4_fwd: attention on q, k and v in NVFP4, v transposed. mha_nvfp4_fwd_gpu.h has all of it.
 *
 * Floor: one read of k and v at memory bandwidth when tokens are generated, 4 * rows * keys * head_dim operations for
 * prompts. Not measured.
 * Test: build/tests/ops/mha_nvfp4_fwd_test. Bench: build/kiln bench mha_nvfp4_fwd */
#include "kernels/mha_nvfp4_fwd/mha_nvfp4_fwd_gpu.h"
