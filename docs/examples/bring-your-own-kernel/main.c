/* A kernel of one's own, packed by kiln pack and launched on the best device of this machine. */
#include "saxpy_args.h"
#include <kiln/kiln.h>
#include <stdio.h>

extern const kiln_bundle saxpy; /* written by kiln pack */

enum { COUNT = 1000 };

static kiln_status launch(kiln_stream *stream, float *y, const float *x, float a) {
    const kiln_module *module;
    const kiln_kernel *kernel;
    kiln_status status = kiln_module_get(stream->device, &saxpy, "saxpy", &module);
    if (!status) status = kiln_module_find_kernel(module, "saxpy", &kernel);
    if (status) return status;
    saxpy_args args = {.y = y, .x = x, .count = COUNT, .a = a};
    kiln_launch_config config = {.grid = {(COUNT + SAXPY_BLOCK - 1) / SAXPY_BLOCK}, .block = {SAXPY_BLOCK}};
    return kiln_launch(stream, kernel, &config, &args, sizeof args);
}

/* y = 2 x + y for x = i and y = 1. */
static kiln_status run(kiln_stream *stream, float *y) {
    float x[COUNT];
    for (int i = 0; i < COUNT; i++) {
        x[i] = (float)i;
        y[i] = 1;
    }
    void *memory;
    kiln_status status = kiln_memory_alloc(stream->device, 2 * sizeof x, &memory);
    if (status) return status;
    float *device_x = memory, *device_y = device_x + COUNT;
    status = kiln_copy(stream, device_x, x, sizeof x, KILN_COPY_TO_DEVICE);
    if (!status) status = kiln_copy(stream, device_y, y, sizeof x, KILN_COPY_TO_DEVICE);
    if (!status) status = launch(stream, device_y, device_x, 2);
    if (!status) status = kiln_copy(stream, y, device_y, sizeof x, KILN_COPY_TO_HOST);
    if (!status) status = kiln_stream_sync(stream);
    kiln_memory_free(stream->device, memory);
    return status;
}

int main(void) {
    kiln_device *device = NULL;
    kiln_stream stream = {0};
    kiln_device_info info = {0};
    float y[COUNT];

    kiln_status status = kiln_device_open(NULL, &device);
    if (!status) status = kiln_device_get_info(device, &info);
    if (!status) status = kiln_stream_open(device, 0, &stream);
    if (!status) status = run(&stream, y);
    kiln_stream_close(&stream);
    kiln_device_close(device);
    if (status) {
        fprintf(stderr, "%s: %s\n", kiln_status_text(status), kiln_last_error());
        return 1;
    }
    for (int i = 0; i < COUNT; i++) {
        if (y[i] == 2 * (float)i + 1) continue;
        fprintf(stderr, "y[%d] is %g\n", i, y[i]);
        return 1;
    }
    printf("saxpy on %s: ok\n", info.name);
    return 0;
}
