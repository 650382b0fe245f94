#include "loader/backend.h"
#include "loader/plan.h"
#include "loader/trace.h"

kiln_status kiln__launch(kiln_stream *stream, const kiln_kernel *kernel, const kiln_launch_config *config,
                         const void *arguments, size_t arguments_size) {
    kiln_kernel sized = *kernel;
    sized.arguments_size = arguments_size;
    return stream->device->launch(stream, &sized, config, arguments);
}

static const struct {
    uint32_t flag;
    const char *text;
} flags[] = {
#define LAUNCH_FLAG(name, bit, text) {KILN_LAUNCH_##name, text},
    KILN_LAUNCH_FLAG_MAP(LAUNCH_FLAG)
#undef LAUNCH_FLAG
};

kiln_status kiln__launch_flags_check(const kiln_kernel *kernel, const kiln_launch_config *config) {
    uint32_t unknown = config->flags;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        unknown &= ~flags[i].flag;
    KILN__REQUIRE(!unknown, "kiln_launch: kernel %s: flags is 0x%x: has unknown bits", kernel->name, config->flags);
    return KILN_OK;
}

kiln_status kiln__launch_flags_refuse(const kiln_kernel *kernel, const kiln_launch_config *config) {
    KILN__TRY(kiln__launch_flags_check(kernel, config));
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (config->flags & flags[i].flag)
            return kiln__fail(KILN_ERROR_UNSUPPORTED, "kiln_launch: kernel %s: %s has no %s", kernel->name,
                              kernel->device->backend->name, flags[i].text);
    return KILN_OK;
}

/* Whether size is parameters, the size that the image states, plus the trailing padding of the caller's struct. */
static bool is_padded(size_t size, size_t parameters) {
    for (size_t align = 2; align <= 16; align *= 2)
        if (size == ((parameters + align - 1) & ~(align - 1))) return true;
    return false;
}

/* All but the fast path: reports errors, and launches on traced devices and those that plan. */
static kiln_status __attribute__((cold, noinline))
launch_slowly(kiln_stream *stream, const kiln_kernel *kernel, const kiln_launch_config *config, const void *arguments,
              size_t arguments_size) {
    KILN__REQUIRE(stream && stream->device, "kiln_launch: stream is NULL or closed");
    KILN__REQUIRE(kernel, "kiln_launch: kernel is NULL");
    KILN__REQUIRE(config, "kiln_launch: config is NULL");
    KILN__REQUIRE(arguments || !arguments_size, "kiln_launch: arguments is NULL");
    KILN__REQUIRE(kernel->device == stream->device, "kiln_launch: kernel %s is of %s:%d, the stream of %s:%d",
                  kernel->name, kernel->device->backend->name, kernel->device->info.ordinal,
                  stream->device->backend->name, stream->device->info.ordinal);
    if (is_padded(arguments_size, kernel->arguments_size)) arguments_size = kernel->arguments_size;
    KILN__REQUIRE(!kernel->arguments_size || arguments_size == kernel->arguments_size,
                  "kiln_launch: arguments_size is %zu, kernel %s takes %zu bytes", arguments_size, kernel->name,
                  kernel->arguments_size);
    if (stream->device->plan) return kiln__plan_launch(kernel, config);
    KILN__TRY(kiln__device_check(stream->device));
    if (!arguments) arguments = ""; /* for kernels without arguments: a backend may copy from it */
    if (atomic_load_explicit(stream->device->state, memory_order_relaxed) & KILN__TRACING)
        return kiln__trace_launch(stream, kernel, config, arguments, arguments_size);
    return kiln__launch(stream, kernel, config, arguments, arguments_size);
}

/* Tests with one branch that neither is NULL. Also false for two pointers without a common bit: such a launch takes the
 * slow path, which checks again. */
static inline bool both_set(const void *one, const void *other) {
    return (uintptr_t)one & (uintptr_t)other;
}

kiln_status kiln_launch(kiln_stream *stream, const kiln_kernel *kernel, const kiln_launch_config *config,
                        const void *arguments, size_t arguments_size) {
    if (KILN__LIKELY(both_set(stream, kernel) && both_set(config, arguments))) {
        kiln_device *device = stream->device;
        if (KILN__LIKELY(device == kernel->device && arguments_size == kernel->arguments_size &&
                         atomic_load_explicit(device->state, memory_order_relaxed) == KILN__READY))
            return device->launch(stream, kernel, config, arguments);
    }
    return launch_slowly(stream, kernel, config, arguments, arguments_size);
}
