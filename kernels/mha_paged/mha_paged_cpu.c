/* mha_paged on the CPU: attention on keys and values in blocks of a cache, softmax(mask(scale * q k^T)) v. Its tiles
 * and its floor are told in attention_cpu.h, which is the whole of it.
 *
 * Test: build/tests/ops/mha_paged_test. Bench: build/kiln bench mha_paged --device cpu */
#define ATTEND mha_paged_attend
#define JOIN   mha_paged_join
#define PAGED  1
#include "kernels/common/attention_cpu.h"
