/* mha_paged: attention on keys and values in blocks of a cache, softmax(mask(scale * q k^T)) v. Its tiles and its floor
 * are told in attention_gpu.h, which is the whole of it.
 *
 * Test: build/tests/ops/mha_test. Bench: build/kiln bench mha_paged */
#define ATTEND mha_paged_attend
#define JOIN   mha_paged_join
#define PAGED  1
#include "kernels/common/attention/attention_gpu.h"
