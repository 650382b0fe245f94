/* merge_attention_states for sm_90a: merge_attention_states_gpu.c, rounding to bf16 by an instruction for two elements.
 * Its kernel may begin before the preceding kernel has ended. Not measured. f16 and f32 would take room for images and
 * save no instructions. */
#include "kernels/arch/sm90a_programmatic.h"
#include "kernels/common/tuned.h"

#include "kernels/merge_attention_states/merge_attention_states_gpu.c"

KILN_TUNED_PARTS(bf16)
KILN_PROGRAMMATIC(merge_attention_states)
