#include "loader/backend.h"
#include "loader/bundle.h"
#include <stdio.h>

/* The first failure. Its text is copied, since later failures and calls by the callback overwrite the thread's. */
typedef struct failure {
    kiln_status status;
    char text[KILN__ERROR_TEXT_SIZE];
} failure;

/* Loads one part on one device. */
static void check_part(kiln_device *device, const kiln_bundle *bundle, const char *part, kiln_preload_callback report,
                       void *user, failure *first) {
    kiln_preload_result result = {.device = device, .bundle = bundle, .part = part};
    const kiln_module *module;
    char chosen[64];
    result.status = kiln_module_get(device, bundle, part, &module);
    if (result.status == KILN_OK) {
        result.target = module->image.target;
        result.kind = module->image.kind;
        snprintf(chosen, sizeof chosen, "%s %s", module->image.target, kiln_image_kind_name(module->image.kind));
        result.text = chosen;
    } else {
        result.text = kiln_last_error();
    }
    if (result.status != KILN_OK && first->status == KILN_OK) {
        first->status = result.status;
        snprintf(first->text, sizeof first->text, "%s", result.text);
    }
    if (report) report(user, &result);
}

kiln_status kiln_preload(kiln_device *const *devices, size_t device_count, const kiln_bundle *const *bundles,
                         size_t bundle_count, kiln_preload_callback report, void *user) {
    KILN__REQUIRE(devices || !device_count, "kiln_preload: devices is NULL");
    KILN__REQUIRE(bundles || !bundle_count, "kiln_preload: bundles is NULL");
    for (size_t b = 0; b < bundle_count; b++)
        KILN__TRY(kiln__bundle_check(bundles[b]));
    for (size_t d = 0; d < device_count; d++)
        KILN__REQUIRE(devices[d], "kiln_preload: devices[%zu] is NULL", d);
    failure first;
    first.status = KILN_OK;
    for (size_t d = 0; d < device_count; d++) {
        for (size_t b = 0; b < bundle_count; b++) {
            for (uint32_t p = 0; p < bundles[b]->part_count; p++) {
                kiln_part part = kiln_bundle_part(bundles[b], p);
                check_part(devices[d], bundles[b], part.name, report, user, &first);
            }
        }
    }
    return first.status == KILN_OK ? KILN_OK : kiln__fail(first.status, "%s", first.text);
}
