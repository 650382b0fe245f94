/* rope3d for sm_100 and later, in 16 bits: rope3d_gpu.c, with the pairs of a vector side by side, which takes fewer
 * instructions than a loop. Not measured. */
#define KILN_TURN_QUADS KILN_UNROLL
#include "kernels/common/tuned.h"
#include "kernels/rope3d/rope3d_gpu.c"

KILN_TUNED_PARTS(f16 bf16)
