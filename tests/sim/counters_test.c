/* What the operators' images touch, counted, on simulated devices of both vendors: each byte is read and written as
 * often as the operator's floor says, in full sectors and whole requests where rows are aligned.
 *
 * KILN_SIM_DEVICES names the devices; unset, one of each architecture. */
#include "tests/sim/core/sim_client.h"
#include <kiln/ops.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define CUDA_DEVICES "sm_75,sm_80,sm_86,sm_89,sm_90,sm_100,sm_120"
#define ROCM_DEVICES "gfx90a,gfx942,gfx1030,gfx1100,gfx1201,gfx906,gfx1010,gfx1032,gfx1102,gfx1200"

enum { TENSORS = 3, LINE_BYTES = 256, SECTOR = 32, VECTOR = 16, CHUNK = 32768, PARTIAL = 8 };

/* The control functions of the driver of the device under test. */
static sim_control sim;
static kiln_device *device;
static kiln_stream stream;
static kiln_device_info info;

/* A device's own words for a failure. */
static char where[256];

/* ---- Calls ------------------------------------------------------------------------------------------------------- */

/* An operator on rows x cols, its tensors so many bytes behind an aligned address. */
typedef struct call {
    const char *op, *part;
    int64_t rows, cols;
    size_t misplaced;
    bool bias; /* add_gelu has one */
} call;

typedef struct count {
    uint64_t launches;
    sim_counters sum;
} count;

static void ok(kiln_status status) {
    if (status != KILN_OK) fail_msg("%s: %s", where, kiln_last_error());
}

static const kiln_operator *operator_of(const char *name) {
    const kiln_operator *const *operators;
    size_t number;
    ok(kiln_all_operators(&operators, &number));
    for (size_t i = 0; i < number; i++)
        if (!strcmp(operators[i]->name, name)) return operators[i];
    fail_msg("there is no operator %s", name);
    return NULL;
}

static const kiln_operator_function *function_of(const call *c) {
    const kiln_operator *op = operator_of(c->op);
    for (uint32_t i = 0; i < op->function_count; i++)
        if (!strcmp(op->functions[i].part, c->part)) return &op->functions[i];
    fail_msg("%s has no %s", c->op, c->part);
    return NULL;
}

static uint64_t element(const call *c) {
    return strcmp(c->part, "f32") ? 2 : 4;
}

/* Input tensors of the size of the output. */
static uint64_t inputs(const call *c) {
    return !strcmp(c->op, "mul_add") ? 3 : !strcmp(c->op, "silu_mul") ? 2 : 1;
}

typedef struct tensors {
    void *memory[TENSORS + 3]; /* inputs, output, bias, workspace */
    char *input[TENSORS], *output, *bias;
} tensors;

static void *zeros(size_t size) {
    void *memory;
    ok(kiln_memory_alloc(device, size + LINE_BYTES, &memory));
    ok(kiln_fill(&stream, memory, 0, size + LINE_BYTES));
    return memory;
}

static tensors tensors_new(const call *c) {
    tensors t = {0};
    size_t bytes = (size_t)(c->rows * c->cols) * element(c);
    for (uint64_t i = 0; i < inputs(c); i++)
        t.input[i] = (char *)(t.memory[i] = zeros(bytes)) + c->misplaced;
    t.output = (char *)(t.memory[TENSORS] = zeros(bytes)) + c->misplaced;
    t.bias = (char *)(t.memory[TENSORS + 1] = zeros((size_t)c->cols * element(c))) + c->misplaced;
    return t;
}

static void tensors_free(tensors *t) {
    for (size_t i = 0; i < sizeof t->memory / sizeof *t->memory; i++)
        kiln_memory_free(device, t->memory[i]);
}

typedef union params {
    kiln_mul_add_params mul_add;
    kiln_silu_mul_params silu_mul;
    kiln_add_gelu_params add_gelu;
    kiln_softmax_params softmax;
} params;

static params params_of(const call *c, tensors *t) {
    params p = {0};
    if (!strcmp(c->op, "mul_add")) {
        p.mul_add = (kiln_mul_add_params){t->output, t->input[0], t->input[1], t->input[2], c->rows * c->cols};
    } else if (!strcmp(c->op, "silu_mul")) {
        p.silu_mul = (kiln_silu_mul_params){
            .y = t->output, .gate = t->input[0], .up = t->input[1], .rows = c->rows, .cols = c->cols};
    } else if (!strcmp(c->op, "add_gelu")) {
        p.add_gelu = (kiln_add_gelu_params){
            .y = t->output, .x = t->input[0], .bias = c->bias ? t->bias : NULL, .rows = c->rows, .cols = c->cols};
    } else {
        p.softmax = (kiln_softmax_params){.y = t->output, .x = t->input[0], .rows = c->rows, .cols = c->cols};
    }
    return p;
}

/* Adds up what the launches since the last reset counted. */
static count counted(void) {
    static sim_launch launch;
    count c = {.launches = sim.launches()};
    for (uint64_t i = 0; i < c.launches; i++) {
        assert_true(sim.launch(i, &launch));
        assert_true(launch.executed);
        uint64_t *sum = (uint64_t *)&c.sum;
        for (size_t n = 0; n < sizeof c.sum / sizeof *sum; n++)
            sum[n] += ((const uint64_t *)&launch.counters)[n];
    }
    return c;
}

/* Calls the operator with tensors of its own, which the caller may have. */
static count run_on(const call *c, tensors *t) {
    const kiln_operator_function *function = function_of(c);
    const uint32_t size = operator_of(c->op)->params_size;
    params p = params_of(c, t);
    snprintf(where, sizeof where, "%s_%s %lld x %lld at %zu on %s", c->op, c->part, (long long)c->rows,
             (long long)c->cols, c->misplaced, info.name);
    if (function->workspace_size) {
        ok(function->workspace_size(&p, size, &p.softmax.workspace_size));
        p.softmax.workspace = t->memory[TENSORS + 2] = zeros(p.softmax.workspace_size);
    }
    sim.reset();
    ok(function->call(&stream, &p, size));
    ok(kiln_stream_sync(&stream));
    return counted();
}

static count run(const call *c) {
    tensors t = tensors_new(c);
    count n = run_on(c, &t);
    tensors_free(&t);
    return n;
}

#define expect(actual, expected)                                                                                       \
    do {                                                                                                               \
        const uint64_t got = (actual), wanted = (expected);                                                            \
        if (got != wanted)                                                                                             \
            fail_msg("%s: " #actual " is %llu, not %llu", where, (unsigned long long)got, (unsigned long long)wanted); \
    } while (0)

/* ---- Tests ------------------------------------------------------------------------------------------------------- */

static const char *const parts[] = {"f32", "f16", "bf16"};
static const char *const operators[] = {"mul_add", "silu_mul", "add_gelu", "softmax"};
enum { PARTS = sizeof parts / sizeof *parts, OPERATORS = sizeof operators / sizeof *operators };

/* Elements side by side, of any number and at any address. */
static void each_element_is_read_and_written_once(void **state) {
    (void)state;
    static const int64_t shapes[][2] = {{1, 1}, {3, 8}, {33, 64}, {5, 1000}, {2, 4096}, {7, 777}, {1, 8191}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes * OPERATORS * PARTS; i++) {
        const int64_t *shape = shapes[i / OPERATORS / PARTS];
        call c = {operators[i / PARTS % OPERATORS], parts[i % PARTS], shape[0], shape[1], i % 2 * 4, false};
        count n = run(&c);
        uint64_t bytes = (uint64_t)(c.rows * c.cols) * element(&c);
        expect(n.launches, 1);
        expect(n.sum.global_read_bytes, inputs(&c) * bytes);
        expect(n.sum.global_written_bytes, bytes);
        expect(n.sum.matrix_instructions, 0);
    }
}

/* Rows of whole tiles, 16-byte aligned: each request is 16 bytes of every lane, and no sector is asked for twice or in
 * part. */
static void aligned_rows_are_moved_in_whole_vectors(void **state) {
    (void)state;
    for (size_t i = 0; i < OPERATORS * PARTS; i++) {
        call c = {operators[i / PARTS], parts[i % PARTS], 4, 8192, 0, false};
        count n = run(&c);
        uint64_t bytes = (inputs(&c) + 1) * (uint64_t)(c.rows * c.cols) * element(&c);
        expect(n.sum.global_sectors, bytes / SECTOR);
        expect(n.sum.global_requests, bytes / VECTOR / (uint64_t)info.wave_size);
        expect(n.sum.shared_conflicts, 0);
    }
}

/* A bias is read once for each row. */
static void a_bias_is_read_with_each_row(void **state) {
    (void)state;
    call c = {"add_gelu", "f16", 5, 1000, 0, true};
    count n = run(&c);
    expect(n.sum.global_read_bytes, 2 * 5 * 1000 * 2);
    expect(n.sum.global_written_bytes, 5 * 1000 * 2);
}

/* Two launches: the first leaves each chunk's maximum and sum in the workspace, all chunks of the row read them in the
 * second. */
static void long_rows_are_read_twice_by_many_groups(void **state) {
    (void)state;
    for (size_t i = 0; i < PARTS; i++) {
        call c = {"softmax", parts[i], 2, 100000, 0, false};
        count n = run(&c);
        uint64_t bytes = (uint64_t)(c.rows * c.cols) * element(&c);
        uint64_t chunks = ((uint64_t)c.cols * element(&c) + CHUNK - 1) / CHUNK, partials = 2 * chunks * PARTIAL;
        expect(n.launches, 2);
        expect(n.sum.global_written_bytes, bytes + partials);
        /* The maximum alone, then the sum with the maximum. */
        expect(n.sum.global_read_bytes, 2 * bytes + chunks * partials / 2 * 3);
    }
}

/* Launches again what was recorded, over more rows than there are. */
static void launch_beyond(const call *c, const sim_launch *launch) {
    const kiln_module *module;
    const kiln_kernel *kernel;
    kiln_kernel_attributes attributes;
    ok(kiln_module_get(device, operator_of(c->op)->bundle, c->part, &module));
    ok(kiln_module_find_kernel(module, launch->kernel, &kernel));
    ok(kiln_kernel_get_attributes(kernel, &attributes));
    const bool rocm = info.backend == KILN_ROCM; /* its grids count threads, its shared memory is all of it */
    kiln_launch_config config = {.dynamic_shared_bytes = launch->shared_bytes - (rocm ? attributes.shared_bytes : 0)};
    for (int d = 0; d < 3; d++) {
        config.group[d] = launch->group[d];
        config.grid[d] = rocm ? launch->grid[d] / launch->group[d] : launch->grid[d];
    }
    config.grid[1] += 2;
    ok(kiln_launch(&stream, kernel, &config, launch->arguments, launch->arguments_size));
}

/* The groups beyond the last row touch nothing: all launches of a call again, with two blocks of rows more. */
static void groups_beyond_the_last_row_touch_nothing(void **state) {
    (void)state;
    enum { LAUNCHES = 2 };
    static sim_launch launches[LAUNCHES];
    for (size_t i = 0; i < 2 * OPERATORS * PARTS; i++) {
        call c = {operators[i / 2 / PARTS], parts[i / 2 % PARTS], 3, i % 2 ? 20000 : 5000, 0, false};
        tensors t = tensors_new(&c);
        count once = run_on(&c, &t);
        assert_in_range(once.launches, 1, LAUNCHES);
        for (uint64_t n = 0; n < once.launches; n++)
            assert_true(sim.launch(n, &launches[n]));
        sim.reset();
        for (uint64_t n = 0; n < once.launches; n++)
            launch_beyond(&c, &launches[n]);
        ok(kiln_stream_sync(&stream));
        count again = counted();
        expect(again.sum.global_read_bytes, once.sum.global_read_bytes);
        expect(again.sum.global_written_bytes, once.sum.global_written_bytes);
        tensors_free(&t);
    }
}

/* ---- Devices ----------------------------------------------------------------------------------------------------- */

static int setup(void **state) {
    (void)state;
    if (kiln_stream_open(device, 0, &stream) == KILN_OK && kiln_device_get_info(device, &info) == KILN_OK) return 0;
    print_error("%s\n", kiln_last_error());
    return -1;
}

static int teardown(void **state) {
    (void)state;
    kiln_stream_close(&stream);
    kiln_device_close(device);
    return 0;
}

/* Runs the tests on each simulated device of a backend. */
static int run_devices(kiln_backend_id backend, const char *library) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_element_is_read_and_written_once),
        cmocka_unit_test(aligned_rows_are_moved_in_whole_vectors),
        cmocka_unit_test(a_bias_is_read_with_each_row),
        cmocka_unit_test(long_rows_are_read_twice_by_many_groups),
        cmocka_unit_test(groups_beyond_the_last_row_touch_nothing),
    };
    int failed = 0;
    sim_client_open(library, &sim);
    for (int32_t ordinal = 0;; ordinal++) {
        kiln_device_options options = {.backend = backend, .ordinal = ordinal};
        kiln_device_info opened;
        if (kiln_device_open(&options, &device) != KILN_OK) return failed;
        kiln_device_get_info(device, &opened);
        failed += cmocka_run_group_tests_name(opened.name, tests, setup, teardown);
    }
}

int main(int argc, char **argv) {
    (void)argc;
    setenv("KILN_SIM_RECORD", "0", 1);
    setenv("KILN_SIM_DEVICES", CUDA_DEVICES "," ROCM_DEVICES, 0);
    sim_client_start(argv, NULL);
    return run_devices(KILN_CUDA, "libcuda.so.1") + run_devices(KILN_ROCM, "libhsa-runtime64.so.1");
}
