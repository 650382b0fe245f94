/* kv_store for sm_90a: kv_store_gpu.c, whose kernels may begin before the preceding kernel has ended. Not measured. */
#include "kernels/arch/sm90a_programmatic.h"
#include "kernels/common/tuned.h"

#include "kernels/kv_store/kv_store_gpu.c"

KILN_TUNED_PARTS(f32 f16 bf16)
KILN_PROGRAMMATIC(kv_store)
KILN_PROGRAMMATIC(kv_store_e4m3)
