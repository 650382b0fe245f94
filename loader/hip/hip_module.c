#include "loader/hip/hip_backend.h"
#include "loader/image/elf.h"
#include "loader/image/hsaco.h"
#include <stdlib.h>
#include <string.h>

/* module->native */
typedef struct hip_module {
    kiln__hip_module module;
    char *bytes; /* malloc'd, what HIP reads the image from, to which it keeps pointers; NULL: the image itself */
} hip_module;

/* ---- The image as HIP wants it ---- */

/* HIP looks up a section of the name .strtab and refuses an image that has none, though it makes no use of it: one
 * that was stripped. The section of the sections' names is such a table too, and the ELF header has its number, so
 * that in HIP's copy it takes that name. *out_at is where that name is in the file; 0: the image has a .strtab. */
static kiln_status find_section_name(const kiln_image *image, size_t *out_at) {
    static const char wanted[] = ".strtab", names[] = ".shstrtab";
    kiln__elf elf;
    *out_at = 0;
    KILN__TRY(kiln__elf_read(image->data, (size_t)image->size, &elf));
    size_t at = 0;
    for (uint32_t i = 0; i < elf.section_count; i++) {
        const kiln__elf_section section = kiln__elf_section_at(&elf, i);
        if (!strcmp(section.name, wanted)) return KILN_OK;
        if (!strcmp(section.name, names)) at = (size_t)(section.name - (const char *)image->data);
    }
    *out_at = at;
    return KILN_OK;
}

/* What hipModuleLoadData is given; *out_copy is set if it is a copy. HIP takes images without a length: what it would
 * read must end inside the bytes, which reading the ELF file has checked. */
static kiln_status prepare(const kiln_image *image, char **out_copy) {
    size_t at = 0;
    *out_copy = NULL;
    if (!image->data || !image->size) return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "%s image is empty", image->target);
    kiln_status status = find_section_name(image, &at);
    if (status != KILN_OK) return kiln__fail_within(status, "%s hsaco", image->target);
    if (!at) return KILN_OK;
    char *copy = malloc((size_t)image->size);
    if (!copy) return kiln__fail(KILN_ERROR_OUT_OF_MEMORY, "hip: no memory for the image");
    memcpy(copy, image->data, (size_t)image->size);
    memcpy(copy + at, ".strtab", sizeof ".strtab");
    *out_copy = copy;
    return KILN_OK;
}

/* ---- Kernels ---- */

/* What the image's metadata says, and HIP does not. */
static kiln_status set_facts(kiln_kernel *kernel, const kiln__hsaco_kernel *facts) {
    const uint32_t most = (uint32_t)kernel->device->info.max_threads;
    if (kernel->info.arguments_size && kernel->info.arguments_size != facts->arguments_size)
        return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "kernel %s takes %u bytes of arguments, its bundle says %u",
                          kernel->name, facts->arguments_size, kernel->info.arguments_size);
    kernel->arguments_size = facts->arguments_size;
    kernel->max_threads = facts->max_threads && facts->max_threads < most ? facts->max_threads : most;
    kernel->info.registers = facts->vgprs;
    kernel->info.spill_bytes = (facts->vgpr_spills + facts->sgpr_spills) * 4;
    return KILN_OK;
}

static kiln_status resolve(kiln_module *module, kiln_kernel *kernel) {
    const hip_module *native = module->native;
    kiln__hip_function function = NULL;
    kiln__hip_error result = kiln__hip.hipModuleGetFunction(&function, native->module, kernel->name);
    if (result) {
        kiln_status status = kiln__hip_fail(module->device, "hipModuleGetFunction", result);
        return status != KILN_ERROR_NOT_FOUND
                   ? status
                   : kiln__fail_within(status, "the %s image has no kernel %s", module->image.target, kernel->name);
    }
    if (!function) return kiln__hip_fail_empty("hipModuleGetFunction");
    kernel->function = function;
    return KILN_OK;
}

static kiln_kernel *kernel_find(kiln_module *module, kiln__bytes name) {
    for (uint32_t i = 0; i < module->part.kernel_count; i++)
        if (kiln__bytes_are(name.at, name.size, module->kernels[i].name)) return &module->kernels[i];
    return NULL;
}

/* Every kernel of the part. The image may have others. */
static kiln_status load_kernels(kiln_module *module) {
    kiln__hsaco hsaco;
    KILN__TRY(kiln__hsaco_read(module->image.data, (size_t)module->image.size, &hsaco));
    kiln__bytes rest = hsaco.kernels;
    for (uint32_t i = 0; i < hsaco.kernel_count; i++) {
        kiln__hsaco_kernel facts;
        KILN__TRY(kiln__hsaco_kernel_next(&rest, &facts));
        kiln_kernel *kernel = kernel_find(module, facts.name);
        if (kernel) KILN__TRY(set_facts(kernel, &facts));
    }
    for (uint32_t i = 0; i < module->part.kernel_count; i++)
        if (!module->kernels[i].info.absent) KILN__TRY(resolve(module, &module->kernels[i]));
    return KILN_OK;
}

static kiln_status load_image(kiln_module *module) {
    hip_module *native = module->native;
    const void *bytes = native->bytes ? native->bytes : module->image.data;
    KILN__HIP_TRY(module->device, hipModuleLoadData, &native->module, bytes);
    return native->module ? KILN_OK : kiln__hip_fail_empty("hipModuleLoadData");
}

static kiln_status load(kiln_module *module) {
    kiln__hip_scope scope;
    KILN__TRY(kiln__hip_enter_relaxed(module->device, &scope));
    kiln_status status = load_image(module);
    if (status == KILN_OK) status = load_kernels(module);
    kiln__hip_leave(&scope);
    return status;
}

kiln_status kiln__hip_module_load(kiln_module *module) {
    hip_module *native = calloc(1, sizeof *native);
    if (!native) return kiln__fail(KILN_ERROR_OUT_OF_MEMORY, "hip: no memory for the module");
    module->native = native;
    kiln_status status = prepare(&module->image, &native->bytes);
    if (status == KILN_OK) status = load(module);
    if (status == KILN_OK) return KILN_OK;
    kiln__hip_module_unload(module);
    return status;
}

void kiln__hip_module_unload(kiln_module *module) {
    hip_module *native = module->native;
    if (native->module) KILN__HIP_RELEASE(module->device, hipModuleUnload, native->module);
    free(native->bytes);
    free(native);
    module->native = NULL;
}

/* ---- What HIP says of kernels and variables ---- */

static kiln_status get_attribute(const kiln_kernel *kernel, kiln__hip_enum attribute, uint32_t *out_value) {
    int value = 0;
    KILN__HIP_CALL(kernel->device, hipFuncGetAttribute, &value, attribute, kernel->function);
    *out_value = (uint32_t)value;
    return KILN_OK;
}

kiln_status kiln__hip_kernel_attributes(const kiln_kernel *kernel, kiln_kernel_attributes *out_attributes) {
    const uint32_t room = (uint32_t)kernel->device->info.max_shared_bytes;
    kiln_kernel_attributes found = {.arguments_size = (uint32_t)kernel->arguments_size,
                                    .max_threads = kernel->max_threads};
    KILN__TRY(get_attribute(kernel, KILN__HIP_FUNC_ATTRIBUTE_NUM_REGS, &found.registers));
    KILN__TRY(get_attribute(kernel, KILN__HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, &found.local_bytes));
    KILN__TRY(get_attribute(kernel, KILN__HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, &found.shared_bytes));
    found.max_dynamic_shared_bytes = room > found.shared_bytes ? room - found.shared_bytes : 0;
    *out_attributes = found;
    return KILN_OK;
}

kiln_status kiln__hip_kernel_occupancy(const kiln_kernel *kernel, uint32_t threads, uint32_t dynamic_shared_bytes,
                                       uint32_t *out_blocks) {
    int blocks = 0;
    KILN__REQUIRE(threads <= INT32_MAX, "kiln_kernel_get_occupancy: threads is %u: beyond any device", threads);
    KILN__HIP_CALL(kernel->device, hipModuleOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, kernel->function,
                   (int)threads, dynamic_shared_bytes);
    *out_blocks = (uint32_t)blocks;
    return KILN_OK;
}

kiln_status kiln__hip_module_variable(const kiln_module *module, const char *name, void **out_address,
                                      size_t *out_size) {
    const hip_module *native = module->native;
    kiln__hip_scope here;
    KILN__TRY(kiln__hip_enter(module->device, &here));
    kiln__hip_error result = kiln__hip.hipModuleGetGlobal(out_address, out_size, native->module, name);
    kiln__hip_leave(&here);
    if (result)
        return kiln__fail_within(kiln__hip_fail(module->device, "hipModuleGetGlobal", result),
                                 "kiln_module_find_variable: %s", name);
    return *out_address ? KILN_OK : kiln__hip_fail_empty("hipModuleGetGlobal");
}
