#include "loader/cpu/cpu_device.h"
#include "loader/cpu/cpu_float_state.h"

typedef struct cpu_launch {
    kiln_cpu_function function;
    const void *arguments;
    uint32_t grid[3];
} cpu_launch;

static void run_span(void *context, void *scratch, uint64_t begin, uint64_t end) {
    const cpu_launch *launch = context;
    kiln_cpu_span span = {begin, end, {launch->grid[0], launch->grid[1], launch->grid[2]}, 0, scratch};
    kiln__cpu_float_state before = kiln__cpu_float_enter();
    launch->function(launch->arguments, &span);
    kiln__cpu_float_leave(before);
}

/* The shape of a block and its shared memory matter to GPUs only. */
kiln_status kiln__cpu_launch(kiln_stream *stream, const kiln_kernel *kernel, const kiln_launch_config *config,
                             const void *arguments) {
    if (config->cluster[0] || config->cluster[1] || config->cluster[2])
        return kiln__fail(KILN_ERROR_UNSUPPORTED, "kiln_launch: kernel %s has a cluster: the CPU has no clusters",
                          kernel->name);
    if (config->flags) KILN__TRY(kiln__launch_flags_refuse(kernel, config));
    cpu_launch launch = {(kiln_cpu_function)kernel->function, arguments, {0}};
    uint64_t blocks = 1;
    for (int i = 0; i < 3; i++) {
        launch.grid[i] = config->grid[i] ? config->grid[i] : 1;
        KILN__REQUIRE(!__builtin_mul_overflow(blocks, launch.grid[i], &blocks),
                      "%s: grid is %u x %u x %u: must have fewer than 2^64 blocks", kernel->name, config->grid[0],
                      config->grid[1], config->grid[2]);
    }
    const kiln__cpu_device *native = stream->device->native;
    kiln__cpu_pool_run(native->pool, blocks, run_span, &launch, stream->state);
    return KILN_OK;
}
