/* Softmax of two rows on the best device of this machine. */
#include <kiln/ops.h>
#include <stdio.h>

int main(void) {
    const float x[2][4] = {{1, 2, 3, 4}, {-1, 0, 0, 1}};
    float y[2][4] = {{0}};
    kiln_device *device = NULL;
    kiln_stream stream = {0};
    void *memory = NULL;

    kiln_status status = kiln_device_open(NULL, &device);
    if (!status) status = kiln_stream_open(device, 0, &stream);
    if (!status) status = kiln_memory_alloc(device, sizeof x, &memory);
    if (!status) status = kiln_copy(&stream, memory, x, sizeof x, KILN_COPY_TO_DEVICE);

    kiln_softmax_params params = {.y = memory, .x = memory, .rows = 2, .cols = 4};
    if (!status) status = kiln_softmax_f32(&stream, &params);
    if (!status) status = kiln_copy(&stream, y, memory, sizeof y, KILN_COPY_TO_HOST);
    if (!status) status = kiln_stream_sync(&stream);

    if (status) fprintf(stderr, "%s: %s\n", kiln_status_text(status), kiln_last_error());
    for (int row = 0; row < 2 && !status; row++) {
        printf("%.4f %.4f %.4f %.4f\n", y[row][0], y[row][1], y[row][2], y[row][3]);
    }
    kiln_memory_free(device, memory);
    kiln_stream_close(&stream);
    kiln_device_close(device);
    return status != KILN_OK;
}
