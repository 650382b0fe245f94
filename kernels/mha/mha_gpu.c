/* mha: attention on contiguous keys and values, softmax(mask(scale * q k^T)) v. Its tiles and its floor are told in
 * attention_gpu.h, which is the whole of it.
 *
 * Test: build/tests/ops/mha_test. Bench: build/kiln bench mha */
#define ATTEND mha_attend
#define JOIN   mha_join
#define PAGED  0
#include "kernels/common/attention/attention_gpu.h"
