#include "loader/cuda/cuda_backend.h"
#include "loader/image/elf.h"
#include <string.h>

/* Dynamic shared memory that a kernel may use without opting in. */
enum { SHARED_WITHOUT_OPT_IN = 48 * 1024 };

/* Room for the JIT compiler's messages: what of them fits into an error text. */
enum { JIT_LOG_SIZE = 1536 };

/* The driver takes images without a length: what it would read must end inside the bytes. */
static kiln_status check_extent(const kiln_image *image) {
    const char *bytes = image->data;
    if (!bytes || !image->size) return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "%s image is empty", image->target);
    if (image->kind == KILN_IMAGE_PTX) {
        if (memchr(bytes, 0, image->size) || bytes[image->size])
            return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "%s PTX: must end with its only NUL byte", image->target);
        return KILN_OK;
    }
    kiln__elf elf;
    kiln_status status = kiln__elf_read(bytes, image->size, &elf);
    return status == KILN_OK ? status : kiln__fail_within(status, "%s cubin", image->target);
}

static kiln_status load_image(kiln_module *module) {
    char log[JIT_LOG_SIZE] = "";
    kiln__cu_module native = NULL;
    kiln__cu_enum options[] = {KILN__CU_JIT_ERROR_LOG_BUFFER, KILN__CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    /* A number goes into the slot itself. */
    void *values[] = {log, (void *)(uintptr_t)(sizeof log - 1)};
    kiln__cu_result result = kiln__cuda.cuModuleLoadDataEx(&native, module->image.data, 2, options, values);
    if (result) {
        kiln_status status = kiln__cuda_fail(module->device, "cuModuleLoadDataEx", result);
        size_t length = strnlen(log, sizeof log);
        while (length && (log[length - 1] == '\n' || log[length - 1] == ' '))
            length--;
        return length ? kiln__fail(status, "%s: %.*s", kiln_last_error(), (int)length, log) : status;
    }
    if (!native) return kiln__cuda_fail_empty("cuModuleLoadDataEx");
    module->native = native;
    return KILN_OK;
}

/* Bytes of all parameters of a kernel as the driver has them. 0: this driver cannot say (before CUDA 12.4), or there
 * are none. A parameter beyond the last is an invalid value. One aligned to more than 16 bytes is aligned by its
 * address in constant memory, which the packed buffer is copied to: the gap in front of it is in no C struct. */
static kiln_status get_arguments_size(const kiln_kernel *kernel, kiln__cu_function function, uint32_t *out_size) {
    enum { PARAMETER_MAX = 4096, PARAMETER_GAP = 16 };
    *out_size = 0;
    if (!kiln__cuda.cuFuncGetParamInfo) return KILN_OK;
    for (size_t i = 0; i < PARAMETER_MAX; i++) {
        size_t offset = 0, size = 0;
        kiln__cu_result result = kiln__cuda.cuFuncGetParamInfo(function, i, &offset, &size);
        if (result == KILN__CU_ERROR_INVALID_VALUE) break;
        if (result) return kiln__cuda_fail(kernel->device, "cuFuncGetParamInfo", result);
        if (offset >= *out_size + PARAMETER_GAP)
            return kiln__fail(KILN_ERROR_UNSUPPORTED,
                              "kernel %s: parameter %zu is at offset %zu behind %u bytes, since it is aligned to more "
                              "than 16 by its address in constant memory: align it to at most 16",
                              kernel->name, i, offset, *out_size);
        *out_size = (uint32_t)(offset + size);
    }
    return KILN_OK;
}

/* The size of the arguments, which the bundle's table says; where the driver can say it too, both must agree. */
static kiln_status set_arguments_size(kiln_kernel *kernel, kiln__cu_function function) {
    uint32_t size = 0;
    KILN__TRY(get_arguments_size(kernel, function, &size));
    if (size && kernel->info.arguments_size && size != kernel->info.arguments_size)
        return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "kernel %s takes %u bytes of arguments, its bundle says %u",
                          kernel->name, size, kernel->info.arguments_size);
    kernel->arguments_size = kernel->info.arguments_size ? kernel->info.arguments_size : size;
    return KILN_OK;
}

/* Lets a kernel use all the dynamic shared memory that its static leaves, so that no launch has to ask. */
static kiln_status opt_in_shared(kiln_kernel *kernel, kiln__cu_function function) {
    int used = 0;
    KILN__CUDA_TRY(kernel->device, cuFuncGetAttribute, &used, KILN__CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function);
    int room = kernel->device->info.max_shared_bytes - used;
    if (room <= SHARED_WITHOUT_OPT_IN) return KILN_OK;
    KILN__CUDA_TRY(kernel->device, cuFuncSetAttribute, function, KILN__CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                   room);
    return KILN_OK;
}

/* Resolves a kernel and makes it resident: a driver that loads lazily would otherwise load it at its first launch,
 * which may be inside a capture. Before CUDA 12.4 asking for its attributes does it. */
static kiln_status resolve(kiln_module *module, kiln_kernel *kernel) {
    kiln_device *device = module->device;
    kiln__cu_function function = NULL;
    int threads = 0;
    kiln__cu_result result = kiln__cuda.cuModuleGetFunction(&function, module->native, kernel->name);
    if (result) {
        kiln_status status = kiln__cuda_fail(device, "cuModuleGetFunction", result);
        return status != KILN_ERROR_NOT_FOUND
                   ? status
                   : kiln__fail_within(status, "%s %s has no kernel %s", module->image.target,
                                       kiln_image_kind_name(module->image.kind), kernel->name);
    }
    if (!function) return kiln__cuda_fail_empty("cuModuleGetFunction");
    if (kiln__cuda.cuFuncLoad) KILN__CUDA_TRY(device, cuFuncLoad, function);
    KILN__CUDA_TRY(device, cuFuncGetAttribute, &threads, KILN__CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function);
    KILN__TRY(set_arguments_size(kernel, function));
    KILN__TRY(opt_in_shared(kernel, function));
    kernel->function = function;
    kernel->max_threads = (uint32_t)threads;
    return KILN_OK;
}

static kiln_status load(kiln_module *module) {
    KILN__TRY(load_image(module));
    kiln_status status = KILN_OK;
    for (uint32_t i = 0; i < module->part.kernel_count && status == KILN_OK; i++) {
        kiln_kernel_info *info = &module->kernels[i].info;
        /* Without the maps that it takes a kernel is of no use: drivers before CUDA 12 encode none. */
        if (kiln__tensor_map_count(info) && !kiln__cuda.cuTensorMapEncodeTiled) info->absent = 1;
        if (!info->absent) status = resolve(module, &module->kernels[i]);
    }
    if (status == KILN_OK) return KILN_OK;
    (void)kiln__cuda.cuModuleUnload(module->native);
    module->native = NULL;
    return status;
}

kiln_status kiln__cuda_module_load(kiln_module *module) {
    kiln__cuda_scope scope;
    KILN__TRY(check_extent(&module->image));
    KILN__TRY(kiln__cuda_enter_relaxed(module->device, &scope));
    kiln_status status = load(module);
    kiln__cuda_leave(&scope);
    return status;
}

void kiln__cuda_module_unload(kiln_module *module) {
    KILN__CUDA_RELEASE(module->device, cuModuleUnload, module->native);
    module->native = NULL;
}

static kiln_status get_attribute(const kiln_kernel *kernel, kiln__cu_enum attribute, uint32_t *out_value) {
    int value = 0;
    KILN__CUDA_CALL(kernel->device, cuFuncGetAttribute, &value, attribute, kernel->function);
    *out_value = (uint32_t)value;
    return KILN_OK;
}

kiln_status kiln__cuda_kernel_attributes(const kiln_kernel *kernel, kiln_kernel_attributes *out_attributes) {
    kiln_kernel_attributes found = {.arguments_size = (uint32_t)kernel->arguments_size};
    KILN__TRY(get_attribute(kernel, KILN__CU_FUNC_ATTRIBUTE_NUM_REGS, &found.registers));
    KILN__TRY(get_attribute(kernel, KILN__CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, &found.local_bytes));
    KILN__TRY(get_attribute(kernel, KILN__CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, &found.shared_bytes));
    KILN__TRY(get_attribute(kernel, KILN__CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &found.max_threads));
    KILN__TRY(
        get_attribute(kernel, KILN__CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, &found.max_dynamic_shared_bytes));
    *out_attributes = found;
    return KILN_OK;
}

kiln_status kiln__cuda_kernel_occupancy(const kiln_kernel *kernel, uint32_t threads, uint32_t dynamic_shared_bytes,
                                        uint32_t *out_blocks) {
    int blocks = 0;
    KILN__REQUIRE(threads <= INT32_MAX, "kiln_kernel_get_occupancy: threads is %u: beyond any device", threads);
    KILN__CUDA_CALL(kernel->device, cuOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, kernel->function,
                    (int)threads, dynamic_shared_bytes);
    *out_blocks = (uint32_t)blocks;
    return KILN_OK;
}

kiln_status kiln__cuda_module_variable(const kiln_module *module, const char *name, void **out_address,
                                       size_t *out_size) {
    kiln__cu_address address = 0;
    kiln__cuda_scope here;
    KILN__TRY(kiln__cuda_enter(module->device, &here));
    kiln__cu_result result = kiln__cuda.cuModuleGetGlobal(&address, out_size, module->native, name);
    kiln__cuda_leave(&here);
    if (result)
        return kiln__fail_within(kiln__cuda_fail(module->device, "cuModuleGetGlobal", result),
                                 "kiln_module_find_variable: %s", name);
    if (!address) return kiln__cuda_fail_empty("cuModuleGetGlobal");
    *out_address = (void *)(uintptr_t)address;
    return KILN_OK;
}
