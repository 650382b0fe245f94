/* mha on the CPU: attention on contiguous keys and values, softmax(mask(scale * q k^T)) v. Its tiles and its floor are
 * told in attention_cpu.h, which is the whole of it.
 *
 * Test: build/tests/ops/mha_test. Bench: build/kiln bench mha --device cpu */
#define ATTEND mha_attend
#define JOIN   mha_join
#define PAGED  0
#include "kernels/common/attention_cpu.h"
