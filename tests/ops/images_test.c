/* Every image of every operator that fits a device loads on it, also those that another one would be preferred to, and
 * has the kernels that its table promises. */
#include "tests/ops/harness.h"
#include <stdlib.h>

enum { IMAGES_MAX = 64 };

/* A bundle of one image; a module keeps its bundle until the device closes. */
typedef struct single {
    kiln_bundle bundle;
    kiln_part part;
    kiln_image image;
    struct single *next;
} single;

static single *singles;

static void load_alone(kiln_device *device, const kiln_bundle *bundle, const kiln_part *part, const kiln_image *image) {
    single *s = malloc(sizeof *s);
    if (!s) harness_fail("no memory");
    *s = (single){.bundle = *bundle, .part = *part, .image = *image, .next = singles};
    s->bundle.parts = &s->part;
    s->bundle.part_count = 1;
    s->bundle.part_size = sizeof s->part;
    s->part.images = &s->image;
    s->part.image_count = 1;
    s->part.image_size = sizeof s->image;
    singles = s;
    const kiln_module *module;
    harness_ok(kiln_module_get(device, &s->bundle, part->name, &module));
    for (uint32_t i = 0; i < part->kernel_count; i++) {
        const kiln_kernel *kernel;
        kiln_kernel_attributes attributes;
        if (kiln_image_kernel(part, image, i).absent) continue;
        harness_describe("%s %s, %s %s: %s", bundle->name, part->name, image->target, kiln_image_kind_name(image->kind),
                         part->kernel_names[i]);
        harness_ok(kiln_module_find_kernel(module, part->kernel_names[i], &kernel));
        harness_ok(kiln_kernel_get_attributes(kernel, &attributes));
        if (attributes.max_threads == 0) harness_fail("takes no threads");
    }
}

static uint32_t load_fitting(kiln_device *device, const kiln_target *target, const kiln_bundle *bundle,
                             const kiln_part *part) {
    kiln_candidate candidates[IMAGES_MAX];
    uint32_t fitting;
    if (part->image_count > IMAGES_MAX) harness_fail("%s has %u images", bundle->name, part->image_count);
    harness_ok(kiln_select(bundle, part, target, candidates, &fitting));
    if (fitting == 0) harness_fail("no image of %s %s fits", bundle->name, part->name);
    for (uint32_t i = 0; i < fitting; i++) {
        const kiln_image image = kiln_part_image(part, candidates[i].image);
        harness_describe("%s %s, %s %s", bundle->name, part->name, image.target, kiln_image_kind_name(image.kind));
        load_alone(device, bundle, part, &image);
    }
    return fitting;
}

static void load_all(kiln_stream *stream) {
    const kiln_bundle *const *bundles;
    size_t count;
    kiln_device_info info;
    uint32_t loaded = 0;
    harness_ok(kiln_all_bundles(&bundles, &count));
    harness_ok(kiln_device_get_info(stream->device, &info));
    for (size_t i = 0; i < count; i++) {
        for (uint32_t p = 0; p < bundles[i]->part_count; p++) {
            const kiln_part part = kiln_bundle_part(bundles[i], p);
            loaded += load_fitting(stream->device, &info.target, bundles[i], &part);
        }
    }
    print_message("# %s: %u images\n", info.name, loaded);
}

static void every_image_that_fits_loads(void **state) {
    (void)state;
    harness_on_each_device(load_all);
    while (singles) {
        single *next = singles->next;
        free(singles);
        singles = next;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_image_that_fits_loads)};
    return cmocka_run_group_tests_name("images", tests, NULL, NULL);
}
