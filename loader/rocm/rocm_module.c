#include "loader/image/descriptor.h"
#include "loader/rocm/rocm_backend.h"
#include <stdlib.h>
#include <string.h>

/* module->native */
typedef struct rocm_module {
    kiln__hsa_reader reader; /* needs the image's bytes, which outlive the module */
    kiln__hsa_executable executable;
    kiln__rocm_kernel kernels[]; /* in the part's order */
} rocm_module;

static void module_free(rocm_module *module) {
    if (module->executable.handle) kiln__rocm.executable_destroy(module->executable);
    if (module->reader.handle) kiln__rocm.reader_destroy(module->reader);
    free(module);
}

void kiln__rocm_module_unload(kiln_module *module) {
    module_free(module->native);
}

/* ---- What the metadata says ---- */

static const struct {
    const char *name;
    bool provided;
} hidden_kinds[KILN__HIDDEN_KIND_COUNT + 1] = {
#define HIDDEN_KIND(name, text, provided) [KILN__HIDDEN_##name] = {text, provided},
    KILN__HIDDEN_ARGUMENTS(HIDDEN_KIND)
#undef HIDDEN_KIND
        [KILN__HIDDEN_UNKNOWN] = {"a hidden argument of a kind unknown to this version of kiln", false},
};

/* A compiler lists a kind that the kernel does not use as hidden_none, so a listed one is needed: one without a runtime
 * behind it (printf, hostcall, device malloc, ...) is refused here and not found out by the kernel. */
static kiln_status set_hidden(const kiln_kernel *kernel, kiln__rocm_kernel *function, const kiln__hsaco_kernel *facts) {
    for (uint32_t i = 0; i < facts->hidden_count; i++) {
        const kiln__hidden_argument *hidden = &facts->hidden[i];
        if (!hidden_kinds[hidden->kind].provided)
            return kiln__fail(KILN_ERROR_UNSUPPORTED, "kernel %s needs %s, which kiln does not provide", kernel->name,
                              hidden_kinds[hidden->kind].name);
        if (hidden->size > sizeof(uint64_t) || hidden->offset < facts->arguments_size ||
            hidden->offset > facts->kernarg_size || hidden->size > facts->kernarg_size - hidden->offset)
            return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "kernel %s: %s at %u of %u bytes is outside its kernargs",
                              kernel->name, hidden_kinds[hidden->kind].name, hidden->offset, hidden->size);
        if (hidden->kind != KILN__HIDDEN_NONE) function->hidden[function->hidden_count++] = *hidden;
    }
    return KILN_OK;
}

static kiln_status set_facts(kiln_kernel *kernel, kiln__rocm_kernel *function, const kiln__hsaco_kernel *facts) {
    const kiln_device_info *device = &kernel->device->info;
    const kiln__rocm_device *rocm = kernel->device->native;
    if (facts->kernarg_size > KILN__ROCM_KERNARG_MOST)
        return kiln__fail(KILN_ERROR_UNSUPPORTED, "kernel %s takes %u bytes of arguments: at most %d", kernel->name,
                          facts->kernarg_size, KILN__ROCM_KERNARG_MOST);
    if (facts->dynamic_stack)
        return kiln__fail(KILN_ERROR_UNSUPPORTED,
                          "kernel %s has a stack of unknown size (recursion or calls by pointer)", kernel->name);
    if (facts->arguments_size > facts->kernarg_size)
        return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "kernel %s: arguments of %u bytes in kernargs of %u", kernel->name,
                          facts->arguments_size, facts->kernarg_size);
    *function = (kiln__rocm_kernel){0};
    if (kernel->info.arguments_size && kernel->info.arguments_size != facts->arguments_size)
        return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "kernel %s takes %u bytes of arguments, its bundle says %u",
                          kernel->name, facts->arguments_size, kernel->info.arguments_size);
    KILN__TRY(set_hidden(kernel, function, facts));
    function->kernarg_bytes = facts->kernarg_size;
    function->arguments_bytes = facts->arguments_size;
    function->slots = (facts->kernarg_size + KILN__ROCM_SLOT_BYTES - 1) / KILN__ROCM_SLOT_BYTES;
    if (!function->slots) function->slots = 1;
    function->last_place = KILN__ROCM_SECTION_SLOTS - function->slots;
    function->vgprs = facts->vgprs;
    function->wave_size = facts->wave_size ? facts->wave_size : (uint32_t)device->wave_size;
    function->threads_max = (uint32_t)device->max_threads;
    if (facts->max_threads && facts->max_threads < function->threads_max) function->threads_max = facts->max_threads;
    function->line_max = rocm->block_max[0] < function->threads_max ? rocm->block_max[0] : function->threads_max;
    kernel->function = function;
    kernel->arguments_size = facts->arguments_size;
    kernel->max_threads = function->threads_max;
    kernel->info.registers = facts->vgprs;
    kernel->info.spill_bytes = (facts->vgpr_spills + facts->sgpr_spills) * 4;
    return KILN_OK;
}

/* ---- What the loaded executable says ---- */

static kiln_status resolve(kiln_kernel *kernel, kiln__rocm_kernel *function, kiln__hsa_executable executable,
                           const char *symbol_name) {
    const kiln__rocm_device *rocm = kernel->device->native;
    const uint32_t lds = (uint32_t)kernel->device->info.max_shared_bytes;
    kiln__hsa_symbol symbol = {0};
    uint32_t kernarg_bytes = 0;
    bool dynamic_stack = false;
    KILN__ROCM_TRY(kernel->device, executable_get_symbol, executable, symbol_name, &rocm->agent, &symbol);
    if (!symbol.handle) return kiln__rocm_fail_empty(kiln__rocm_names.executable_get_symbol);
    const struct {
        uint32_t attribute;
        void *value;
    } facts[] = {
        {KILN__HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, &function->object},
        {KILN__HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE, &kernarg_bytes},
        {KILN__HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE, &function->lds_bytes},
        {KILN__HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE, &function->private_bytes},
        {KILN__HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_DYNAMIC_CALLSTACK, &dynamic_stack},
    };
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        KILN__ROCM_TRY(kernel->device, symbol_get_info, symbol, facts[i].attribute, facts[i].value);
    if (!function->object) return kiln__rocm_fail_empty(kiln__rocm_names.symbol_get_info);
    if (dynamic_stack) return kiln__fail(KILN_ERROR_UNSUPPORTED, "kernel %s has a stack of unknown size", kernel->name);
    if (kernarg_bytes > function->slots * KILN__ROCM_SLOT_BYTES || function->lds_bytes > lds)
        return kiln__fail(KILN_ERROR_UNSUPPORTED,
                          "kernel %s takes %u bytes of arguments and %u of LDS: at most %u and %u", kernel->name,
                          kernarg_bytes, function->lds_bytes, function->slots * KILN__ROCM_SLOT_BYTES, lds);
    function->dynamic_max = lds - function->lds_bytes;
    return KILN_OK;
}

static kiln_status load_executable(const kiln_module *module, rocm_module *native) {
    const kiln__rocm_device *rocm = module->device->native;
    KILN__ROCM_TRY(module->device, reader_create, module->image.data, (size_t)module->image.size, &native->reader);
    if (!native->reader.handle) return kiln__rocm_fail_empty(kiln__rocm_names.reader_create);
    KILN__ROCM_TRY(module->device, executable_create, KILN__HSA_PROFILE_FULL,
                   KILN__HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, NULL, &native->executable);
    if (!native->executable.handle) return kiln__rocm_fail_empty(kiln__rocm_names.executable_create);
    KILN__ROCM_TRY(module->device, executable_load, native->executable, rocm->agent, native->reader, NULL, NULL);
    KILN__ROCM_TRY(module->device, executable_freeze, native->executable, NULL);
    return KILN_OK;
}

static kiln_kernel *kernel_find(kiln_module *module, kiln__bytes name) {
    for (uint32_t i = 0; i < module->part.kernel_count; i++)
        if (kiln__bytes_are(name.at, name.size, module->kernels[i].name)) return &module->kernels[i];
    return NULL;
}

/* Every kernel of the part, by the image's metadata. The image may have others. */
static kiln_status load_kernels(kiln_module *module, rocm_module *native) {
    kiln__hsaco hsaco;
    kiln__elf elf;
    kiln__elf_symbols symbols;
    KILN__TRY(kiln__hsaco_read(module->image.data, (size_t)module->image.size, &hsaco));
    KILN__TRY(kiln__elf_read(module->image.data, (size_t)module->image.size, &elf));
    KILN__TRY(kiln__descriptor_symbols(&elf, &symbols));
    for (uint32_t i = 0; i < module->part.kernel_count; i++)
        module->kernels[i].function = NULL;
    for (uint32_t i = 0; i < hsaco.kernel_count; i++) {
        kiln__hsaco_kernel facts;
        KILN__TRY(kiln__hsaco_kernel_read(&hsaco, i, &facts));
        kiln_kernel *kernel = kernel_find(module, facts.name);
        if (!kernel) continue;
        kiln__rocm_kernel *function = &native->kernels[kernel - module->kernels];
        KILN__TRY(set_facts(kernel, function, &facts));
        const char *symbol = kiln__descriptor_name(&symbols, &facts);
        if (!symbol) return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "kernel %s has no descriptor", kernel->name);
        KILN__TRY(resolve(kernel, function, native->executable, symbol));
    }
    for (uint32_t i = 0; i < module->part.kernel_count; i++)
        if (!module->kernels[i].function && !module->kernels[i].info.absent)
            return kiln__fail(KILN_ERROR_NOT_FOUND, "the %s image has no kernel %s", module->image.target,
                              module->kernels[i].name);
    return KILN_OK;
}

kiln_status kiln__rocm_module_load(kiln_module *module) {
    rocm_module *native = calloc(1, sizeof *native + module->part.kernel_count * sizeof *native->kernels);
    if (!native) return kiln__fail(KILN_ERROR_OUT_OF_MEMORY, "rocm: no memory for the module");
    kiln_status status = load_executable(module, native);
    if (status == KILN_OK) status = load_kernels(module, native);
    if (status != KILN_OK) {
        module_free(native);
        return status;
    }
    module->native = native;
    return KILN_OK;
}

kiln_status kiln__rocm_kernel_attributes(const kiln_kernel *kernel, kiln_kernel_attributes *out_attributes) {
    const kiln__rocm_kernel *function = kernel->function;
    *out_attributes = (kiln_kernel_attributes){
        .arguments_size = function->arguments_bytes,
        .registers = function->vgprs,
        .local_bytes = function->private_bytes,
        .shared_bytes = function->lds_bytes,
        .max_threads = function->threads_max,
        .max_dynamic_shared_bytes = function->dynamic_max,
    };
    return KILN_OK;
}

kiln_status kiln__rocm_module_variable(const kiln_module *module, const char *name, void **out_address,
                                       size_t *out_size) {
    const kiln__rocm_device *rocm = module->device->native;
    const rocm_module *native = module->native;
    kiln__hsa_symbol symbol = {0};
    uint32_t kind = 0, size = 0;
    uint64_t address = 0;
    kiln__hsa_status status = kiln__rocm.executable_get_symbol(native->executable, name, &rocm->agent, &symbol);
    if (status != KILN__HSA_STATUS_SUCCESS)
        return kiln__fail_within(kiln__rocm_fail(module->device, kiln__rocm_names.executable_get_symbol, status),
                                 "kiln_module_find_variable: %s", name);
    if (!symbol.handle) return kiln__rocm_fail_empty(kiln__rocm_names.executable_get_symbol);
    KILN__ROCM_TRY(module->device, symbol_get_info, symbol, KILN__HSA_EXECUTABLE_SYMBOL_INFO_TYPE, &kind);
    if (kind != KILN__HSA_SYMBOL_KIND_VARIABLE)
        return kiln__fail(KILN_ERROR_NOT_FOUND, "kiln_module_find_variable: %s: is no variable", name);
    KILN__ROCM_TRY(module->device, symbol_get_info, symbol, KILN__HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS,
                   &address);
    KILN__ROCM_TRY(module->device, symbol_get_info, symbol, KILN__HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_SIZE, &size);
    if (!address) return kiln__rocm_fail_empty(kiln__rocm_names.symbol_get_info);
    *out_address = (void *)(uintptr_t)address;
    *out_size = size;
    return KILN_OK;
}
