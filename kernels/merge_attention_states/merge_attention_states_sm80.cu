/* merge_attention_states for sm_80 and later, in bf16: merge_attention_states_gpu.c, with their conversion of two
 * numbers to bf16, which takes five instructions for each on sm_75. Not measured. */
#include "kernels/common/tuned.h"
#include "kernels/merge_attention_states/merge_attention_states_gpu.c"

KILN_TUNED_PARTS(bf16)
