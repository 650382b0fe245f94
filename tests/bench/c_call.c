/* What a call costs C: a shared object for tests/bench/python_calls.py, which times the same call from Python beside
 * it. */
#include <kiln/ops.h>

#include <time.h>

__attribute__((visibility("default"))) double c_call_nanoseconds(int calls);

/* The nanoseconds of one kiln_add_f32 of 32 elements on the CPU, the mean of so many; -1 if one fails. */
double c_call_nanoseconds(int calls) {
    static float y[32], a[32], b[32];
    static kiln_device *device;
    static kiln_stream stream;
    if (!device) {
        kiln_device_options options = {.backend = KILN_BACKEND_CPU};
        if (kiln_device_open(&options, &device) || kiln_stream_open(device, 0, &stream)) return -1;
    }
    const kiln_add_params params = {.y = y, .a = a, .b = b, .count = 32};
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (int i = 0; i < calls; i++)
        if (kiln_add_f32(&stream, &params)) return -1;
    clock_gettime(CLOCK_MONOTONIC, &end);
    return ((double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec)) / calls;
}
