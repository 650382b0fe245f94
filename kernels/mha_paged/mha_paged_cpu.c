/* mha_paged on the CPU: attention on keys and values in blocks of a cache. The whole of it is in attention_cpu.h. */
#define ATTEND mha_paged_attend
#define JOIN   mha_paged_join
#include "kernels/common/attention_cpu.h"
