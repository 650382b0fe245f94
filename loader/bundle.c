#include "loader/bundle.h"
#include <string.h>

/* The linked-in bundles: each bundle's object puts a pointer to it into the section kiln_bundles. The linker defines
 * the bounds; they are weak, since a program may link no bundle. */
extern const kiln_bundle *const __start_kiln_bundles[] __attribute__((weak, visibility("hidden")));
extern const kiln_bundle *const __stop_kiln_bundles[] __attribute__((weak, visibility("hidden")));

kiln_status kiln_linked_bundles(const kiln_bundle *const **out_bundles, size_t *out_count) {
    KILN__REQUIRE(out_bundles && out_count, "kiln_linked_bundles: out_bundles or out_count is NULL");
    *out_bundles = __start_kiln_bundles;
    *out_count = (size_t)(__stop_kiln_bundles - __start_kiln_bundles);
    return KILN_OK;
}

const char *kiln_image_kind_name(kiln_image_kind kind) {
    switch (kind) {
    case KILN_IMAGE_PTX:
        return "ptx";
    case KILN_IMAGE_CUBIN:
        return "cubin";
    case KILN_IMAGE_HSACO:
        return "hsaco";
    case KILN_IMAGE_CPU:
        return "cpu";
    }
    return "unknown";
}

/* Copies entry index of a table whose entries are entry_size bytes; members that a short entry lacks are zeroed. */
static void entry_copy(void *copy, size_t size, const void *table, uint32_t entry_size, uint32_t index,
                       uint32_t count) {
    memset(copy, 0, size);
    if (table && index < count)
        memcpy(copy, (const char *)table + (size_t)index * entry_size, entry_size < size ? entry_size : size);
}

kiln_part kiln_bundle_part(const kiln_bundle *bundle, uint32_t index) {
    kiln_part part;
    entry_copy(&part, sizeof part, bundle->parts, bundle->part_size, index, bundle->part_count);
    return part;
}

kiln_image kiln_part_image(const kiln_part *part, uint32_t index) {
    kiln_image image;
    entry_copy(&image, sizeof image, part->images, part->image_size, index, part->image_count);
    return image;
}

kiln_kernel_info kiln_image_kernel(const kiln_part *part, const kiln_image *image, uint32_t index) {
    kiln_kernel_info info;
    entry_copy(&info, sizeof info, image->kernels, image->kernel_size, index, part->kernel_count);
    return info;
}

static bool table_valid(const void *table, uint32_t count, uint32_t entry_size, size_t least) {
    return count == 0 || (table && entry_size >= least && entry_size % _Alignof(void *) == 0);
}

bool kiln__part_valid(const kiln_part *part) {
    return part->name && table_valid(part->images, part->image_count, part->image_size, offsetof(kiln_image, sha256)) &&
           (part->kernel_count == 0 || part->kernel_names);
}

kiln_status kiln__bundle_check(const kiln_bundle *bundle) {
    KILN__REQUIRE(bundle, "bundle is NULL");
    KILN__REQUIRE(bundle->version == KILN_BUNDLE_VERSION,
                  "bundle: its table has version %u, this kiln reads version %d: pack it again", bundle->version,
                  KILN_BUNDLE_VERSION);
    KILN__REQUIRE(bundle->name, "bundle: its name is NULL");
    KILN__REQUIRE(table_valid(bundle->parts, bundle->part_count, bundle->part_size, offsetof(kiln_part, reserved)),
                  "bundle %s: its table of parts is malformed", bundle->name);
    for (uint32_t i = 0; i < bundle->part_count; i++) {
        kiln_part part = kiln_bundle_part(bundle, i);
        KILN__REQUIRE(kiln__part_valid(&part), "bundle %s: part number %u is malformed", bundle->name, i);
    }
    return KILN_OK;
}

kiln_status kiln_bundle_find_part(const kiln_bundle *bundle, const char *name, kiln_part *out_part) {
    KILN__REQUIRE(out_part, "kiln_bundle_find_part: out_part is NULL");
    memset(out_part, 0, sizeof *out_part);
    KILN__REQUIRE(name, "kiln_bundle_find_part: name is NULL");
    KILN__TRY(kiln__bundle_check(bundle));
    char bytes[512] = "";
    kiln__text list = {bytes, sizeof bytes, 0};
    for (uint32_t i = 0; i < bundle->part_count; i++) {
        kiln_part part = kiln_bundle_part(bundle, i);
        if (strcmp(part.name, name) == 0) {
            *out_part = part;
            return KILN_OK;
        }
        kiln__text_add(&list, " %s", part.name);
    }
    return kiln__fail(KILN_ERROR_NOT_FOUND, "bundle %s has no part \"%.64s\"; it has%s", bundle->name, name,
                      bundle->part_count ? bytes : " none");
}
