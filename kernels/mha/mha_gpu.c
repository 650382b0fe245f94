/* mha: attention on contiguous keys and values. The whole of it is in attention_gpu.h. */
#define ATTEND mha_attend
#define JOIN   mha_join
#include "kernels/common/attention_gpu.h"
