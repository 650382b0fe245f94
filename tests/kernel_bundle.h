/* The bundle of one kernel that has one image: for tests and measurements with a kernel of their own. */
#ifndef KILN_TESTS_KERNEL_BUNDLE_H
#define KILN_TESTS_KERNEL_BUNDLE_H

#include <kiln/kiln.h>

/* Points into itself: it stays where it was made. */
typedef struct kernel_bundle {
    kiln_kernel_info kernel;
    const char *name;
    kiln_image image;
    kiln_part part;
    kiln_bundle bundle;
} kernel_bundle;

/* The kernel gives the bundle its name; its part is "own". The image's table of kernels is filled in. */
static inline void kernel_bundle_make(kernel_bundle *made, kiln_kernel_info kernel, kiln_image image) {
    *made = (kernel_bundle){.kernel = kernel, .name = kernel.name, .image = image};
    made->image.kernel_size = sizeof made->kernel;
    made->image.kernels = &made->kernel;
    made->part = (kiln_part){.name = "own",
                             .images = &made->image,
                             .kernel_names = &made->name,
                             .image_count = 1,
                             .image_size = sizeof made->image,
                             .kernel_count = 1};
    made->bundle = (kiln_bundle){.version = KILN_BUNDLE_VERSION,
                                 .part_size = sizeof made->part,
                                 .name = kernel.name,
                                 .parts = &made->part,
                                 .part_count = 1};
}

/* Loads it on a device, which it must outlive. Returns as kiln_module_get and kiln_module_find_kernel. */
static inline kiln_status kernel_bundle_load(const kernel_bundle *made, kiln_device *device,
                                             const kiln_kernel **out_kernel) {
    const kiln_module *module;
    kiln_status status = kiln_module_get(device, &made->bundle, made->part.name, &module);
    return status == KILN_OK ? kiln_module_find_kernel(module, made->name, out_kernel) : status;
}

#endif
