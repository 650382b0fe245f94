/* Every operator's bundle. An object of its own: only what refers to it links all images. */
#include "loader/status.h"
#include <kiln/ops/describe.h>

#define KILN_OPERATOR(name) extern const kiln_bundle kiln__bundle_##name;
#include "kernels/ops.def"
#undef KILN_OPERATOR

kiln_status kiln_all_bundles(const kiln_bundle *const **out_bundles, size_t *out_count) {
    static const kiln_bundle *const bundles[] = {
#define KILN_OPERATOR(name) &kiln__bundle_##name,
#include "kernels/ops.def"
#undef KILN_OPERATOR
    };
    if (out_bundles) *out_bundles = NULL;
    if (out_count) *out_count = 0;
    KILN__REQUIRE(out_bundles, "kiln_all_bundles: out_bundles is NULL");
    KILN__REQUIRE(out_count, "kiln_all_bundles: out_count is NULL");
    *out_bundles = bundles;
    *out_count = sizeof bundles / sizeof *bundles;
    return KILN_OK;
}
