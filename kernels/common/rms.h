/* What the host sides of the RMS norms share. */
#ifndef KILN_KERNELS_COMMON_RMS_H
#define KILN_KERNELS_COMMON_RMS_H

#include "kernels/common/host.h"

/* Checks eps and replaces 0 by the default. */
static inline kiln_status kiln__eps_resolve(const char *name, float eps, float *out_eps) {
    *out_eps = eps == 0.0f ? 1e-6f : eps;
    KILN__REQUIRE(eps == 0.0f || (eps >= 1e-30f && eps <= 1e30f), "%s: eps is %g: must be 0 or from 1e-30 to 1e30",
                  name, (double)eps);
    return KILN_OK;
}

/* The launch over rows each of which a subgroup reduces, or a block if a subgroup's threads would have more than
 * KILN_THREAD_VECTORS vectors each. A row is one tile. */
static inline kiln_status kiln__rms_rows(const char *name, int64_t rows, int64_t cols, unsigned size_log2,
                                         uint32_t wide, kiln_shape *shape, kiln_launch_config *config) {
    uint64_t vectors = kiln__vectors(cols, size_log2);
    unsigned lanes_log2 = kiln__lanes_log2(vectors);
    if (lanes_log2 > KILN_SUBGROUP_LOG2) lanes_log2 = KILN_BLOCK_LOG2;
    KILN__TRY(kiln__size_check(name, "cols", cols, UINT32_MAX - KILN_BLOCK * KILN_VECTOR_BYTES));
    *shape = (kiln_shape){.rows = rows, .cols = cols, .tile = (uint32_t)cols, .lanes_log2 = lanes_log2, .wide = wide};
    return kiln__grid(name, 1, kiln__blocks(rows, lanes_log2), config);
}

#endif
