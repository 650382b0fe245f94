/* Both vendors' devices and the CPU in one process: two threads on each at once, every operator with the image that was
 * built for its device, and each result that of the device's own work. */
#include "tests/sim/core/sim_client.h"
#include <kiln/ops.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include <cmocka.h>

#define SIMULATED "sm_75,sm_80,sm_120,gfx90a,gfx1030,gfx1201"

/* The image of every operator there. sm_75 has no cubin of its own; the CPU's level is this machine's. */
static const struct {
    kiln_backend_id backend;
    int32_t ordinal;
    const char *target;
    kiln_image_kind kind;
} devices[] = {
    {KILN_BACKEND_CUDA, 0, "sm_75", KILN_IMAGE_PTX},     {KILN_BACKEND_CUDA, 1, "sm_80", KILN_IMAGE_CUBIN},
    {KILN_BACKEND_CUDA, 2, "sm_120", KILN_IMAGE_CUBIN},  {KILN_BACKEND_ROCM, 0, "gfx90a", KILN_IMAGE_HSACO},
    {KILN_BACKEND_ROCM, 1, "gfx1030", KILN_IMAGE_HSACO}, {KILN_BACKEND_ROCM, 2, "gfx1201", KILN_IMAGE_HSACO},
    {KILN_BACKEND_CPU, 0, NULL, KILN_IMAGE_CPU},
};
enum { DEVICES = sizeof devices / sizeof *devices, THREADS = 2 * DEVICES, ROUNDS = 8, COUNT_MAX = 700 };

static sim_control cuda, rocm;
static uint64_t seed;
static pthread_barrier_t line;

/* ---- One thread's work ---- */

typedef struct worker {
    pthread_t thread;
    size_t device;
    uint64_t random;
    char failure[512]; /* "": passed */
} worker;

/* Says what went wrong, once. */
#define FAIL(self, ...) (snprintf((self)->failure, sizeof(self)->failure, __VA_ARGS__), false)
#define TRY(self, call) \
    if ((call) != KILN_OK) return FAIL(self, #call ": %s", kiln_last_error())

static uint32_t draw(worker *self, uint32_t below) {
    self->random = self->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(self->random >> 33) % below;
}

typedef struct operands {
    float a[COUNT_MAX], b[COUNT_MAX], c[COUNT_MAX], y[COUNT_MAX]; /* y last: the only one that comes back */
} operands;

typedef struct shape {
    uint32_t rows, cols;
} shape;

typedef kiln_status (*caller)(kiln_stream *stream, operands *device, shape s);
typedef double (*definition)(const operands *host, shape s, uint32_t at);

static kiln_status call_mul_add(kiln_stream *stream, operands *device, shape s) {
    return kiln_mul_add_f32(
        stream, &(kiln_mul_add_params){
                    .y = device->y, .a = device->a, .b = device->b, .c = device->c, .count = (int64_t)s.rows * s.cols});
}

static double define_mul_add(const operands *host, shape s, uint32_t at) {
    (void)s;
    return (double)host->a[at] * host->b[at] + host->c[at];
}

static kiln_status call_add_gelu(kiln_stream *stream, operands *device, shape s) {
    return kiln_add_gelu_f32(
        stream,
        &(kiln_add_gelu_params){.y = device->y, .x = device->a, .bias = device->b, .rows = s.rows, .cols = s.cols});
}

static double define_add_gelu(const operands *host, shape s, uint32_t at) {
    const double t = (double)host->a[at] + host->b[at % s.cols];
    return 0.5 * t * (1 + erf(t * 0.70710678118654752));
}

static kiln_status call_silu_mul(kiln_stream *stream, operands *device, shape s) {
    return kiln_silu_mul_f32(
        stream,
        &(kiln_silu_mul_params){.y = device->y, .gate = device->a, .up = device->b, .rows = s.rows, .cols = s.cols});
}

static double define_silu_mul(const operands *host, shape s, uint32_t at) {
    (void)s;
    return host->a[at] / (1 + exp(-(double)host->a[at])) * host->b[at];
}

static kiln_status call_softmax(kiln_stream *stream, operands *device, shape s) {
    return kiln_softmax_f32(stream,
                            &(kiln_softmax_params){.y = device->y, .x = device->a, .rows = s.rows, .cols = s.cols});
}

static double define_softmax(const operands *host, shape s, uint32_t at) {
    const float *row = host->a + at / s.cols * s.cols;
    double sum = 0;
    for (uint32_t i = 0; i < s.cols; i++)
        sum += exp((double)row[i]);
    return exp((double)host->a[at]) / sum;
}

static const struct {
    const char *name;
    caller call;
    definition define;
} operators[] = {
    {"mul_add", call_mul_add, define_mul_add},
    {"add_gelu", call_add_gelu, define_add_gelu},
    {"silu_mul", call_silu_mul, define_silu_mul},
    {"softmax", call_softmax, define_softmax},
};
enum { OPERATORS = sizeof operators / sizeof *operators };

/* Every part of the operator has the image that the device is listed with. */
static bool image_is_right(worker *self, kiln_device *device, const char *operator) {
    const kiln_bundle *const *bundles;
    size_t count;
    TRY(self, kiln_linked_bundles(&bundles, &count));
    for (size_t i = 0; i < count; i++) {
        if (strcmp(bundles[i]->name, operator) != 0) continue;
        for (uint32_t part = 0; part < bundles[i]->part_count; part++) {
            const kiln_module *module;
            kiln_image image;
            TRY(self, kiln_module_get(device, bundles[i], bundles[i]->parts[part].name, &module));
            TRY(self, kiln_module_get_image(module, &image));
            const char *target = devices[self->device].target;
            if (image.kind != devices[self->device].kind || (target && strcmp(image.target, target) != 0))
                return FAIL(self, "%s %s: the image is of %s", operator, bundles[i]->parts[part].name, image.target);
        }
        return true;
    }
    return FAIL(self, "%s is not linked", operator);
}

/* Calls all operators in one stream and only then looks at the results, which the stream brought back in order. */
static bool round_is_right(worker *self, kiln_stream *stream, operands *memory) {
    operands host;
    float results[OPERATORS][COUNT_MAX];
    const shape s = {1 + draw(self, 7), 1 + draw(self, 100)};
    const uint32_t count = s.rows * s.cols;
    memset(&host, 0xff, sizeof host); /* NaN */
    for (uint32_t i = 0; i < count; i++) {
        host.a[i] = (float)draw(self, 1 << 20) * 0x1p-17f - 4;
        host.b[i] = (float)draw(self, 1 << 20) * 0x1p-17f - 4;
        host.c[i] = (float)draw(self, 1 << 20) * 0x1p-17f - 4;
    }
    for (int op = 0; op < OPERATORS; op++) {
        TRY(self, kiln_copy(stream, memory, &host, sizeof host, KILN_COPY_TO_DEVICE));
        TRY(self, operators[op].call(stream, memory, s));
        TRY(self, kiln_copy(stream, results[op], memory->y, sizeof *results, KILN_COPY_TO_HOST));
    }
    TRY(self, kiln_stream_sync(stream));
    for (int op = 0; op < OPERATORS; op++) {
        for (uint32_t i = 0; i < COUNT_MAX; i++) {
            if (i >= count && !memcmp(&results[op][i], &host.y[i], sizeof *host.y)) continue;
            const double expected = i < count ? operators[op].define(&host, s, i) : NAN;
            if (!(fabs(results[op][i] - expected) <= 2e-6 * fabs(expected) + 1e-6))
                return FAIL(self, "%s of %u x %u: element %u is %g: must be %g", operators[op].name, s.rows, s.cols, i,
                            (double)results[op][i], expected);
        }
    }
    return true;
}

static bool work(worker *self, kiln_device **out_device, kiln_stream *stream, operands **out_memory) {
    const kiln_device_options options = {.backend = devices[self->device].backend,
                                         .ordinal = devices[self->device].ordinal};
    TRY(self, kiln_device_open(&options, out_device));
    TRY(self, kiln_stream_open(*out_device, 0, stream));
    TRY(self, kiln_memory_alloc(*out_device, sizeof(operands), (void **)out_memory));
    for (int i = 0; i < ROUNDS; i++)
        if (!round_is_right(self, stream, *out_memory)) return false;
    for (int op = 0; op < OPERATORS; op++)
        if (!image_is_right(self, *out_device, operators[op].name)) return false;
    return true;
}

static void *run(void *argument) {
    worker *self = argument;
    kiln_device *device = NULL;
    kiln_stream stream = {0};
    operands *memory = NULL;
    pthread_barrier_wait(&line);
    work(self, &device, &stream, &memory);
    kiln_stream_close(&stream);
    if (device) kiln_memory_free(device, memory);
    kiln_device_close(device);
    return NULL;
}

/* ---- The test ---- */

static void each_operator_gets_its_devices_image_and_result(void **state) {
    (void)state;
    static worker workers[THREADS];
    print_message("seed %llu\n", (unsigned long long)seed);
    assert_int_equal(pthread_barrier_init(&line, NULL, THREADS), 0);
    for (size_t i = 0; i < THREADS; i++) {
        workers[i] = (worker){.device = i % DEVICES, .random = seed + i};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, run, &workers[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
    pthread_barrier_destroy(&line);
    for (size_t i = 0; i < THREADS; i++) {
        const char *target = devices[workers[i].device].target;
        if (workers[i].failure[0])
            fail_msg("KILN_TEST_SEED=%llu, thread %zu on %s: %s", (unsigned long long)seed, i, target ? target : "cpu",
                     workers[i].failure);
    }
}

/* What was called on a device was executed there, and nothing else was. */
static void assert_executed(const sim_control *sim, int32_t device_count) {
    uint64_t launches[3] = {0};
    sim_launch *launch = malloc(sizeof *launch);
    assert_non_null(launch);
    for (uint64_t i = 0; i < sim->launches(); i++) {
        assert_true(sim->launch(i, launch));
        assert_true(launch->executed && launch->device < device_count);
        launches[launch->device]++;
    }
    free(launch);
    for (int32_t i = 0; i < device_count; i++)
        assert_int_equal(launches[i], 2 * ROUNDS * OPERATORS);
    if (sim->violations()) fail_msg("%s", sim->violation());
    assert_int_equal(sim->live("*"), 0);
}

static void each_device_did_its_own_work(void **state) {
    (void)state;
    assert_executed(&cuda, 3);
    assert_executed(&rocm, 3);
}

int main(int argc, char **argv) {
    (void)argc;
    setenv("KILN_SIM_RECORD", "0", 1);
    sim_client_start(argv, SIMULATED);
    const char *given = getenv("KILN_TEST_SEED");
    seed = given ? strtoull(given, NULL, 0) : (uint64_t)getpid() * 2654435761u + (uint64_t)time(NULL);
    sim_client_open("libcuda.so.1", &cuda);
    sim_client_open("libhsa-runtime64.so.1", &rocm);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_operator_gets_its_devices_image_and_result),
        cmocka_unit_test(each_device_did_its_own_work),
    };
    return cmocka_run_group_tests_name("mixed_devices", tests, NULL, NULL);
}
