#include "loader/module.h"
#include "loader/backend.h"
#include "loader/image/inflate.h"
#include "loader/operator.h"
#include "loader/trace.h"
#include <stdlib.h>
#include <string.h>

enum { REASONS_SIZE = 16384, IMAGE_MAX = 4096, KERNEL_MAX = 4096 };

static void module_free(kiln_module *module) {
    if (!module) return;
    free(module->kernels);
    free(module->reasons);
    free(module->image_memory);
    free(module);
}

static kiln_module *module_create(kiln_device *device, const kiln_bundle *bundle, const kiln_part *part) {
    kiln_module *module = calloc(1, sizeof *module);
    if (!module) return NULL;
    module->device = device;
    module->bundle = bundle;
    module->part = *part;
    module->kernels = calloc(part->kernel_count ? part->kernel_count : 1, sizeof *module->kernels);
    if (module->kernels) return module;
    module_free(module);
    return NULL;
}

/* Sets the image and what the table states about its kernels; the backend sets the rest. */
static void module_set_image(kiln_module *module, const kiln_image *image) {
    module->image = *image;
    for (uint32_t i = 0; i < module->part.kernel_count; i++) {
        kiln_kernel_info info = kiln_image_kernel(&module->part, image, i);
        module->kernels[i] = (kiln_kernel){
            .device = module->device,
            .arguments_size = info.arguments_size,
            .max_threads = info.max_threads,
            .module = module,
            .name = module->part.kernel_names[i],
            .info = info,
        };
    }
}

static void add_reason(kiln__text *text, const kiln_image *image, const kiln_target *target, uint32_t reasons) {
    char sentence[256];
    kiln_reason_text(image, target, reasons, sentence, sizeof sentence);
    kiln__text_add(text, "%s%s", text->length ? "\n" : "", sentence);
}

/* Tries the fitting images from best to worst. reasons gets why each image tried before the loaded one was refused or,
 * with KILN_ERROR_NO_IMAGE, why every image was. */
static kiln_status load_best(kiln_module *module, const kiln_candidate *candidates, uint32_t fitting,
                             kiln__text *reasons) {
    const kiln_target *target = &module->device->info.target;
    for (uint32_t i = 0; i < module->part.image_count; i++) {
        kiln_image image = kiln_part_image(&module->part, candidates[i].image);
        if (i >= fitting) {
            add_reason(reasons, &image, target, candidates[i].reasons);
            continue;
        }
        KILN__TRY(kiln__image_unpack(&image, &module->image_memory));
        module_set_image(module, &image);
        if (module->device->plan) return KILN_OK;
        kiln_status status = module->device->backend->module_load(module);
        if (status != KILN_ERROR_NO_IMAGE) return status;
        free(module->image_memory);
        module->image_memory = NULL;
        add_reason(reasons, &image, target, KILN_REASON_REFUSED);
        kiln__text_add(reasons, " (%s)", kiln_last_error());
    }
    return KILN_ERROR_NO_IMAGE;
}

static kiln_status module_load(kiln_module *module) {
    const kiln_part *part = &module->part;
    const kiln_device *device = module->device;
    kiln_candidate *candidates = calloc(part->image_count ? part->image_count : 1, sizeof *candidates);
    char *bytes = calloc(1, REASONS_SIZE);
    kiln__text reasons = {bytes, REASONS_SIZE, 0};
    uint32_t fitting = 0;
    kiln_status status =
        candidates && bytes ? KILN_OK : kiln__fail(KILN_ERROR_OUT_OF_MEMORY, "no memory to judge images");
    if (status == KILN_OK) status = kiln_select(module->bundle, part, &device->info.target, candidates, &fitting);
    if (status == KILN_OK) status = load_best(module, candidates, fitting, &reasons);
    free(candidates);
    module->status = status;
    if (reasons.length)
        module->reasons = bytes;
    else
        free(bytes);
    return status;
}

static kiln_status no_image(const kiln_module *module) {
    return kiln__fail(KILN_ERROR_NO_IMAGE, "%s %s: no image for %s:%d (%.127s)\n%s", module->bundle->name,
                      module->part.name, module->device->backend->name, module->device->info.ordinal,
                      module->device->info.name, module->reasons ? module->reasons : "the part has no images");
}

/* Called under the device's load lock. */
static kiln_module *module_find(const kiln_device *device, const kiln_bundle *bundle, const char *part) {
    for (kiln_module *module = device->modules; module; module = module->next)
        if (module->bundle == bundle && strcmp(module->part.name, part) == 0) return module;
    return NULL;
}

/* Finds or loads a module, under the device's load lock. *out_module is also set for KILN_ERROR_NO_IMAGE. *out_fresh:
 * the module is new, not a cached one. stream may be NULL. */
static kiln_status module_get(kiln_device *device, kiln_stream *stream, const kiln_bundle *bundle, const char *name,
                              kiln_module **out_module, bool *out_fresh) {
    kiln_module *module = module_find(device, bundle, name);
    if (module) {
        *out_module = module;
        return module->status != KILN_OK ? no_image(module) : KILN_OK;
    }
    bool capturing = false;
    if (stream && !device->plan) KILN__TRY(device->backend->stream_capturing(stream, &capturing));
    if (capturing)
        return kiln__fail(KILN_ERROR_CAPTURING,
                          "%s %s is not loaded and the stream is being captured: load it before "
                          "the capture (kiln_preload, kiln_module_get or a first call)",
                          bundle->name, name);
    kiln_part part;
    KILN__TRY(kiln_bundle_find_part(bundle, name, &part));
    KILN__REQUIRE(part.image_count <= IMAGE_MAX && part.kernel_count <= KERNEL_MAX,
                  "bundle %s: part %s has %u images and %u kernels: at most %d each", bundle->name, name,
                  part.image_count, part.kernel_count, IMAGE_MAX);
    module = module_create(device, bundle, &part);
    if (!module) return kiln__fail(KILN_ERROR_OUT_OF_MEMORY, "%s %s: no memory for the module", bundle->name, name);
    kiln_status status = module_load(module);
    if (status != KILN_OK && status != KILN_ERROR_NO_IMAGE) {
        module_free(module);
        return kiln__fail_within(status, "%s %s", bundle->name, name);
    }
    module->next = device->modules;
    device->modules = module;
    *out_fresh = true;
    *out_module = module;
    return status != KILN_OK ? no_image(module) : KILN_OK;
}

/* Logs the result of a load. Call it without locks held. */
static void log_load(const kiln_module *module) {
    const char *bundle = module->bundle->name, *part = module->part.name;
    const kiln_device *device = module->device;
    if (module->status != KILN_OK) {
        kiln__log(KILN_LOG_ERROR, "%s", kiln_last_error());
        return;
    }
    if (module->reasons)
        kiln__log(KILN_LOG_WARNING, "%s %s on %s:%d:\n%s", bundle, part, device->backend->name, device->info.ordinal,
                  module->reasons);
    kiln__log(KILN_LOG_INFO, "%s %s on %s:%d: %s %s", bundle, part, device->backend->name, device->info.ordinal,
              module->image.target, kiln_image_kind_name(module->image.kind));
}

static kiln_status get_locked(kiln_device *device, kiln_stream *stream, const kiln_bundle *bundle, const char *part,
                              const kiln_module **out_module) {
    if (!device || !device->plan) KILN__TRY(kiln__device_argument_check("kiln_module_get", device));
    KILN__REQUIRE(bundle && bundle->name, "kiln_module_get: bundle is NULL");
    KILN__REQUIRE(part, "kiln_module_get: part is NULL");
    kiln_module *module = NULL;
    bool fresh = false;
    int64_t begin = kiln__trace_now();
    pthread_mutex_lock(&device->load_lock);
    kiln_status status = module_get(device, stream, bundle, part, &module, &fresh);
    pthread_mutex_unlock(&device->load_lock);
    if (fresh) log_load(module);
    if (status != KILN_OK) return status;
    if (fresh) kiln__trace_load(module, begin);
    *out_module = module;
    return KILN_OK;
}

kiln_status kiln__module_get_on(kiln_stream *stream, const kiln_bundle *bundle, const char *part,
                                const kiln_module **out_module) {
    return get_locked(stream->device, stream, bundle, part, out_module);
}

kiln_status kiln_module_get(kiln_device *device, const kiln_bundle *bundle, const char *part,
                            const kiln_module **out_module) {
    KILN__REQUIRE(out_module, "kiln_module_get: out_module is NULL");
    *out_module = NULL;
    return get_locked(device, NULL, bundle, part, out_module);
}

void kiln__modules_close(kiln_device *device, bool without_driver) {
    while (device->modules) {
        kiln_module *module = device->modules;
        device->modules = module->next;
        if (module->status == KILN_OK && !without_driver) device->backend->module_unload(module);
        module_free(module);
    }
}

kiln_status kiln_module_get_image(const kiln_module *module, kiln_image *out_image) {
    KILN__REQUIRE(out_image, "kiln_module_get_image: out_image is NULL");
    memset(out_image, 0, sizeof *out_image);
    KILN__REQUIRE(module, "kiln_module_get_image: module is NULL");
    *out_image = module->image;
    return KILN_OK;
}

kiln_status kiln_module_find_variable(const kiln_module *module, const char *name, void **out_address,
                                      size_t *out_size) {
    KILN__REQUIRE(out_address && out_size, "kiln_module_find_variable: %s is NULL",
                  out_address ? "out_size" : "out_address");
    *out_address = NULL;
    *out_size = 0;
    KILN__REQUIRE(module && name, "kiln_module_find_variable: %s is NULL", module ? "name" : "module");
    KILN__TRY(kiln__device_check(module->device));
    return module->device->backend->module_variable(module, name, out_address, out_size);
}

kiln_status kiln_module_find_kernel(const kiln_module *module, const char *name, const kiln_kernel **out_kernel) {
    KILN__REQUIRE(out_kernel, "kiln_module_find_kernel: out_kernel is NULL");
    *out_kernel = NULL;
    KILN__REQUIRE(module && name, "kiln_module_find_kernel: %s is NULL", module ? "name" : "module");
    char bytes[1024] = "";
    kiln__text list = {bytes, sizeof bytes, 0};
    for (uint32_t i = 0; i < module->part.kernel_count; i++) {
        if (module->kernels[i].info.absent) continue;
        if (strcmp(module->kernels[i].name, name) == 0) {
            *out_kernel = &module->kernels[i];
            return KILN_OK;
        }
        kiln__text_add(&list, " %.128s", module->kernels[i].name);
    }
    return kiln__fail(KILN_ERROR_NOT_FOUND, "%s %s, %s, has no kernel \"%.128s\"; it has%s", module->bundle->name,
                      module->part.name, module->image.target, name, bytes[0] ? bytes : " none");
}

kiln_status kiln_kernel_get_attributes(const kiln_kernel *kernel, kiln_kernel_attributes *out_attributes) {
    KILN__REQUIRE(out_attributes, "kiln_kernel_get_attributes: out_attributes is NULL");
    memset(out_attributes, 0, sizeof *out_attributes);
    KILN__REQUIRE(kernel, "kiln_kernel_get_attributes: kernel is NULL");
    KILN__TRY(kiln__device_check(kernel->device));
    return kernel->device->backend->kernel_attributes(kernel, out_attributes);
}

kiln_status kiln_kernel_get_occupancy(const kiln_kernel *kernel, uint32_t threads, uint32_t dynamic_shared_bytes,
                                      uint32_t *out_blocks) {
    KILN__REQUIRE(out_blocks, "kiln_kernel_get_occupancy: out_blocks is NULL");
    *out_blocks = 0;
    KILN__REQUIRE(kernel, "kiln_kernel_get_occupancy: kernel is NULL");
    KILN__REQUIRE(threads, "kiln_kernel_get_occupancy: threads is 0");
    KILN__TRY(kiln__device_check(kernel->device));
    return kernel->device->backend->kernel_occupancy(kernel, threads, dynamic_shared_bytes, out_blocks);
}
