/* Modules and functions. */
#include "tests/sim/cuda/sim_cuda.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char function_kind[] = ".function"; /* goes with its module */

/* A text has the registers that the driver's compiler gives it, which is not known. */
enum { SHARED_WITHOUT_OPT_IN = 48 << 10, REGISTERS_OF_A_TEXT = 32 };

/* Attributes of functions beside those that kiln uses. */
enum {
    ATTRIBUTE_CONST_SIZE = 2,
    ATTRIBUTE_PTX_VERSION = 5,
    ATTRIBUTE_BINARY_VERSION = 6,
    ATTRIBUTE_CACHE_MODE_CA = 7,
    ATTRIBUTE_CARVEOUT = 9
};
enum { JIT_INFO_LOG = 3, JIT_INFO_LOG_SIZE = 4 };
enum { CARVEOUT_DEFAULT = -1, CARVEOUT_MAX = 100 };

static void module_delete(sim_module *module) {
    for (uint32_t i = 0; module->functions && i < module->image.entry_count; i++)
        if (module->functions[i]) sim_object_delete(function_kind, module->functions[i]);
    free(module->functions);
    sim_cuda_image_free(&module->image);
    sim_cuda_program_unload(module);
    sim_object_delete("module", module);
}

/* The option values hold a number in the slot itself. */
static void *value_of(unsigned int count, const kiln__cu_enum *options, void **values, kiln__cu_enum option,
                      void ***out_slot) {
    for (unsigned int i = 0; i < count; i++) {
        if (options[i] != option) continue;
        *out_slot = &values[i];
        return values[i];
    }
    return NULL;
}

/* Gives one of the caller's logs its text, cut to the buffer's size, and says how much of that is filled. */
static void log_write(unsigned int count, const kiln__cu_enum *options, void **values, kiln__cu_enum buffer,
                      kiln__cu_enum size_option, const char *text) {
    void **slot = NULL, **size_slot = NULL;
    char *log = value_of(count, options, values, buffer, &slot);
    const size_t size = (uint32_t)(uintptr_t)value_of(count, options, values, size_option, &size_slot);
    if (log && size) snprintf(log, size, "%s", text);
    if (size_slot) *size_slot = (void *)(uintptr_t)(log && size ? strlen(log) : 0);
}

/* log gets a line if the image cannot be loaded; NULL: nobody wants it. */
static kiln__cu_result module_load(const char *function, sim_context *context, const void *image, char *log,
                                   size_t log_size, kiln__cu_module *out_module) {
    SIM_CUDA_RULE(out_module && image, SIM_CUDA_INVALID_VALUE, "%s: the image or the result is NULL", function);
    kiln__cu_result result = sim_cuda_unsafe();
    if (result) return result;
    char message[256] = "";
    sim_module *created = sim_object_new("module", sizeof *created);
    if (!created) return SIM_CUDA_OUT_OF_MEMORY;
    created->context = context;
    char *text = NULL;
    if (sim_cuda_is_fatbin(image)) {
        result = sim_cuda_fatbin_text(image, sim_cuda_capability(context->device), &text, message, sizeof message);
        image = text;
    }
    if (!result)
        result =
            sim_cuda_image_read(image, sim_cuda_capability(context->device), &created->image, message, sizeof message);
    if (!result) result = sim_cuda_program_load(created, image, message, sizeof message);
    free(text);
    if (log && log_size) snprintf(log, log_size, "%s", message);
    created->functions = calloc(created->image.entry_count + 1, sizeof(sim_function *));
    if (!result && !created->functions) result = SIM_CUDA_OUT_OF_MEMORY;
    if (result)
        module_delete(created);
    else
        *out_module = created;
    return result;
}

kiln__cu_result cuModuleLoadDataEx(kiln__cu_module *out_module, const void *image, unsigned int option_count,
                                   kiln__cu_enum *options, void **option_values) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(!option_count || (options && option_values), SIM_CUDA_INVALID_VALUE,
                  "cuModuleLoadDataEx: options without values");
    char message[256] = "";
    kiln__cu_result result = module_load(__func__, context, image, message, sizeof message, out_module);
    log_write(option_count, options, option_values, KILN__CU_JIT_ERROR_LOG_BUFFER,
              KILN__CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, message);
    log_write(option_count, options, option_values, JIT_INFO_LOG, JIT_INFO_LOG_SIZE, "");
    return result;
}

kiln__cu_result cuModuleLoadData(kiln__cu_module *out_module, const void *image) {
    SIM_CUDA_ENTER_CONTEXT(context);
    return module_load(__func__, context, image, NULL, 0, out_module);
}

kiln__cu_result cuModuleLoadFatBinary(kiln__cu_module *out_module, const void *image) {
    SIM_CUDA_ENTER_CONTEXT(context);
    return module_load(__func__, context, image, NULL, 0, out_module);
}

kiln__cu_result cuModuleUnload(kiln__cu_module module) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(sim_object_live("module", module), SIM_CUDA_INVALID_HANDLE, "cuModuleUnload: %p is no module",
                  (void *)module);
    SIM_CUDA_RULE(module->context == context, SIM_CUDA_INVALID_CONTEXT,
                  "cuModuleUnload: the module is of another context than the current one");
    kiln__cu_result result = sim_cuda_unsafe();
    if (!result) result = sim_cuda_finish_all(context);
    if (result) return result;
    module_delete(module);
    return SIM_CUDA_SUCCESS;
}

kiln__cu_result cuModuleGetFunction(kiln__cu_function *out_function, kiln__cu_module module, const char *name) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(out_function && name, SIM_CUDA_INVALID_VALUE, "cuModuleGetFunction: the name or the result is NULL");
    SIM_CUDA_RULE(sim_object_live("module", module) && module->context == context, SIM_CUDA_INVALID_HANDLE,
                  "cuModuleGetFunction: %p is no module of the current context", (void *)module);
    for (uint32_t i = 0; i < module->image.entry_count; i++) {
        if (strcmp(module->image.entries[i].name, name)) continue;
        if (!module->functions[i]) {
            sim_function *created = sim_object_new(function_kind, sizeof *created);
            if (!created) return SIM_CUDA_OUT_OF_MEMORY;
            const sim_entry *entry = &module->image.entries[i];
            *created = (sim_function){module, entry, SHARED_WITHOUT_OPT_IN, CARVEOUT_DEFAULT, false, false};
            if (entry->shared_bytes <= SHARED_WITHOUT_OPT_IN) created->max_dynamic_shared -= entry->shared_bytes;
            module->functions[i] = created;
        }
        *out_function = module->functions[i];
        return SIM_CUDA_SUCCESS;
    }
    return SIM_CUDA_NOT_FOUND;
}

kiln__cu_result cuModuleGetGlobal_v2(kiln__cu_address *out_address, size_t *out_size, kiln__cu_module module,
                                     const char *name) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(name, SIM_CUDA_INVALID_VALUE, "cuModuleGetGlobal: the name is NULL");
    SIM_CUDA_RULE(sim_object_live("module", module) && module->context == context, SIM_CUDA_INVALID_HANDLE,
                  "cuModuleGetGlobal: %p is no module of the current context", (void *)module);
    return sim_cuda_program_global(module, name, out_address, out_size);
}

/* Makes a function resident, as a lazy driver does at its first use: not while a capture could be disturbed. */
static kiln__cu_result load(sim_function *function) {
    kiln__cu_result result = function->loaded ? SIM_CUDA_SUCCESS : sim_cuda_unsafe();
    if (result) return result;
    function->loaded = true;
    return SIM_CUDA_SUCCESS;
}

kiln__cu_result cuFuncLoad(kiln__cu_function function) {
    SIM_CUDA_ENTER_CONTEXT(context);
    (void)context;
    SIM_CUDA_RULE(sim_object_live(function_kind, function), SIM_CUDA_INVALID_HANDLE, "cuFuncLoad: %p is no function",
                  (void *)function);
    return load(function);
}

kiln__cu_result cuFuncGetAttribute(int *out_value, kiln__cu_enum attribute, kiln__cu_function function) {
    SIM_CUDA_ENTER_CONTEXT(context);
    (void)context;
    SIM_CUDA_RULE(out_value && sim_object_live(function_kind, function), SIM_CUDA_INVALID_HANDLE,
                  "cuFuncGetAttribute: %p is no function, or the result is NULL", (void *)function);
    kiln__cu_result result = load(function);
    if (result) return result;
    switch (attribute) {
    case KILN__CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *out_value = (int)function->entry->max_threads;
        break;
    case KILN__CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *out_value = (int)function->entry->shared_bytes;
        break;
    case KILN__CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
        *out_value = (int)sim_cuda_program_local(function);
        break;
    case ATTRIBUTE_CONST_SIZE:
        *out_value = (int)sim_cuda_program_const(function->module);
        break;
    case KILN__CU_FUNC_ATTRIBUTE_NUM_REGS:
        *out_value = function->entry->registers ? (int)function->entry->registers : REGISTERS_OF_A_TEXT;
        break;
    case KILN__CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *out_value = (int)function->max_dynamic_shared;
        break;
    case ATTRIBUTE_PTX_VERSION:
        *out_value = (int)function->module->image.virtual_target;
        break;
    case ATTRIBUTE_BINARY_VERSION:
        *out_value = (int)function->module->image.target;
        break;
    case ATTRIBUTE_CACHE_MODE_CA:
        *out_value = 0;
        break;
    case ATTRIBUTE_CARVEOUT:
        *out_value = function->carveout;
        break;
    default:
        sim_violation("cuFuncGetAttribute: attribute %u is not presented", attribute);
        return SIM_CUDA_INVALID_VALUE;
    }
    return SIM_CUDA_SUCCESS;
}

kiln__cu_result cuFuncSetAttribute(kiln__cu_function function, kiln__cu_enum attribute, int value) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(sim_object_live(function_kind, function), SIM_CUDA_INVALID_HANDLE,
                  "cuFuncSetAttribute: %p is no function", (void *)function);
    if (attribute == ATTRIBUTE_CARVEOUT) {
        SIM_CUDA_RULE(value >= CARVEOUT_DEFAULT && value <= CARVEOUT_MAX, SIM_CUDA_INVALID_VALUE,
                      "cuFuncSetAttribute: a carveout of %d", value);
        function->carveout = value;
        return SIM_CUDA_SUCCESS;
    }
    if (attribute == KILN__CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) {
        SIM_CUDA_RULE(value == 0 || value == 1, SIM_CUDA_INVALID_VALUE,
                      "cuFuncSetAttribute: clusters of non-portable size are allowed or not, and not %d", value);
        function->large_clusters = value;
        return SIM_CUDA_SUCCESS;
    }
    SIM_CUDA_RULE(attribute == KILN__CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, SIM_CUDA_INVALID_VALUE,
                  "cuFuncSetAttribute: attribute %u is not presented", attribute);
    uint32_t limit = sim_cuda_processor(context->device)->shared;
    SIM_CUDA_RULE(value >= 0 && (uint32_t)value + function->entry->shared_bytes <= limit, SIM_CUDA_INVALID_VALUE,
                  "cuFuncSetAttribute: %d bytes of dynamic shared memory beside %u, the device has %u", value,
                  function->entry->shared_bytes, limit);
    function->max_dynamic_shared = (uint32_t)value;
    return SIM_CUDA_SUCCESS;
}

kiln__cu_result cuFuncGetParamInfo(kiln__cu_function function, size_t index, size_t *out_offset, size_t *out_size) {
    SIM_CUDA_ENTER_CONTEXT(context);
    (void)context;
    SIM_CUDA_RULE(out_offset && sim_object_live(function_kind, function), SIM_CUDA_INVALID_HANDLE,
                  "cuFuncGetParamInfo: %p is no function, or the result is NULL", (void *)function);
    if (index >= function->entry->parameter_count) return SIM_CUDA_INVALID_VALUE;
    *out_offset = function->entry->parameters[index].offset;
    if (out_size) *out_size = function->entry->parameters[index].size;
    return SIM_CUDA_SUCCESS;
}

static bool of_context(const void *module, const void *context) {
    return ((const sim_module *)module)->context == context;
}

void sim_cuda_modules_sweep(const sim_context *context) {
    for (sim_module *module; (module = sim_object_find("module", of_context, context));)
        module_delete(module);
}
