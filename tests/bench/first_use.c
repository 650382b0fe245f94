/* How long a program waits for its first operator on the CPU: from main, with nothing loaded, to the result. Prints
 * nanoseconds. */
#include <kiln/ops.h>
#include <stdio.h>
#include <time.h>

enum { COUNT = 4096 };

static float y[COUNT], a[COUNT], b[COUNT], c[COUNT];

static long long now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

int main(void) {
    long long begin = now_ns();
    const kiln_device_options options = {.backend = KILN_BACKEND_CPU};
    const kiln_mul_add_params params = {.y = y, .a = a, .b = b, .c = c, .count = COUNT};
    kiln_device *device;
    kiln_stream stream;
    if (kiln_device_open(&options, &device) != KILN_OK || kiln_stream_open(device, 0, &stream) != KILN_OK ||
        kiln_mul_add_f32(&stream, &params) != KILN_OK) {
        fprintf(stderr, "first_use: %s\n", kiln_last_error());
        return 1;
    }
    printf("%lld\n", now_ns() - begin);
    kiln_stream_close(&stream);
    kiln_device_close(device);
    return 0;
}
