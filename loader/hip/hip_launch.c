#include "loader/hip/hip_backend.h"

/* Clusters and flags, of which HIP has none. */
static kiln_status __attribute__((cold, noinline))
check_extras(const kiln_kernel *kernel, const kiln_launch_config *config) {
    if (config->flags) KILN__TRY(kiln__launch_flags_refuse(kernel, config));
    for (int i = 0; i < 3; i++)
        if (config->cluster[i] > 1)
            return kiln__fail(KILN_ERROR_UNSUPPORTED, "kiln_launch: cluster[%d] is %u: hip has no clusters", i,
                              config->cluster[i]);
    return KILN_OK;
}

/* Refuses to launch on a stream that is captured where HIP would launch at once. */
static kiln_status __attribute__((cold, noinline)) check_capture(kiln_stream *stream, const kiln_kernel *kernel) {
    bool capturing;
    KILN__TRY(kiln__hip_stream_capturing(stream, &capturing));
    return capturing ? kiln__fail(KILN_ERROR_UNSUPPORTED, "kernel %s: captures of launches need HIP 5.6, this is %s",
                                  kernel->name, kiln__hip_driver_text())
                     : KILN_OK;
}

static kiln_status __attribute__((cold, noinline))
launch_failed(const kiln_kernel *kernel, const kiln_launch_config *config, kiln__hip_error result) {
    kiln_status status = kiln__hip_fail(kernel->device, "hipModuleLaunchKernel", result);
    /* The handles and the arguments are kiln's; what can be invalid in a launch is its shape. */
    if (result == KILN__hipErrorInvalidValue || result == KILN__hipErrorInvalidConfiguration)
        status = KILN_ERROR_INVALID_ARGUMENT;
    /* The image was chosen, and the kernel found, when it was loaded: such an error is HIP's own. */
    if (status == KILN_ERROR_NO_IMAGE || status == KILN_ERROR_NOT_FOUND) status = KILN_ERROR_DRIVER;
    return kiln__fail_within(status, "kernel %s, grid %ux%ux%u, block %ux%ux%u, %u bytes of dynamic shared memory",
                             kernel->name, kiln__at_least_one(config->grid[0]), kiln__at_least_one(config->grid[1]),
                             kiln__at_least_one(config->grid[2]), kiln__at_least_one(config->block[0]),
                             kiln__at_least_one(config->block[1]), kiln__at_least_one(config->block[2]),
                             config->dynamic_shared_bytes);
}

/* HIP reads the arguments and their size and does not write them, though its prototype does not say so. */
kiln_status kiln__hip_launch(kiln_stream *stream, const kiln_kernel *kernel, const kiln_launch_config *config,
                             const void *arguments) {
    kiln_device *device = kernel->device;
    void *extra[] = {KILN__HIP_LAUNCH_PARAM_BUFFER_POINTER, (void *)(uintptr_t)arguments,
                     KILN__HIP_LAUNCH_PARAM_BUFFER_SIZE, (void *)(uintptr_t)&kernel->arguments_size,
                     KILN__HIP_LAUNCH_PARAM_END};
    if (KILN__UNLIKELY(config->flags | config->cluster[0] | config->cluster[1] | config->cluster[2]))
        KILN__TRY(check_extras(kernel, config));
    if (KILN__UNLIKELY(!kiln__hip_driver_is_recent())) KILN__TRY(check_capture(stream, kernel));
    kiln__hip_scope here;
    KILN__TRY(kiln__hip_enter(device, &here));
    kiln__hip_error result = kiln__hip.hipModuleLaunchKernel(
        kernel->function, kiln__at_least_one(config->grid[0]), kiln__at_least_one(config->grid[1]),
        kiln__at_least_one(config->grid[2]), kiln__at_least_one(config->block[0]), kiln__at_least_one(config->block[1]),
        kiln__at_least_one(config->block[2]), config->dynamic_shared_bytes, stream->native, NULL, extra);
    kiln__hip_leave(&here);
    return KILN__LIKELY(!result) ? KILN_OK : launch_failed(kernel, config, result);
}
