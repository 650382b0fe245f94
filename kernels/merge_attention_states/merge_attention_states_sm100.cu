/* merge_attention_states for sm_100 and later, in bf16: merge_attention_states_gpu.c. Its text takes fewer instructions
 * than that of merge_attention_states_sm80.cu, which would otherwise be used. Not measured. */
#include "kernels/common/tuned.h"
#include "kernels/merge_attention_states/merge_attention_states_gpu.c"

KILN_TUNED_PARTS(bf16)
