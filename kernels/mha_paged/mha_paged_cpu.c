/* mha_paged on the CPU: attention on keys and values in blocks of a cache, softmax(mask(scale * q k^T)) v.
 * attention_cpu.h has all of it, with its tiles and its floor.
 *
 * Test: build/tests/ops/mha_paged_test. Bench: build/kiln bench mha_paged --device cpu */
#define ATTEND mha_paged_attend
#define JOIN   mha_paged_join
#define PAGED  1
#include "kernels/common/attention/attention_cpu.h"
