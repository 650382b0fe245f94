/* mha on the CPU: attention on contiguous keys and values, softmax(mask(scale * q k^T)) v. attention_cpu.h has all of
 * it, with its tiles and its floor.
 *
 * Test: build/tests/ops/mha_test. Bench: build/kiln bench mha --device cpu */
#define ATTEND mha_attend
#define JOIN   mha_join
#define PAGED  0
#include "kernels/common/attention/attention_cpu.h"
