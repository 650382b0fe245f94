/* Whether something holds for any thread of a subgroup. */
#ifndef KILN_KERNELS_COMMON_REDUCE_SUBGROUP_ANY_H
#define KILN_KERNELS_COMMON_REDUCE_SUBGROUP_ANY_H

#include "kernels/common/device.h"

#if defined(__HIP__)
#include "kernels/arch/gfx.h"
#endif

KILN_INLINE bool kiln_subgroup_any(bool holds) {
#if defined(__CUDACC__)
    return __any_sync(0xffffffffu, holds);
#else
    return kiln_gfx_ballot(holds) != 0;
#endif
}

#endif
