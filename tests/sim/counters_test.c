/* What the operators' PTX touches on a simulated device, counted: every byte of a short row is read once and written
 * once, in full sectors where rows are aligned; a long row is read twice. */
#include "tests/sim/core/sim_client.h"
#include <kiln/ops.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static sim_control sim;

typedef struct fixture {
    kiln_device *device;
    kiln_stream stream;
} fixture;

static int setup(void **state) {
    static fixture f;
    kiln_device_options options = {.backend = KILN_CUDA};
    if (kiln_device_open(&options, &f.device) != KILN_OK || kiln_stream_open(f.device, 0, &f.stream) != KILN_OK) {
        print_error("%s\n", kiln_last_error());
        return -1;
    }
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    kiln_stream_close(&f->stream);
    kiln_device_close(f->device);
    return 0;
}

static void *device_zeros(fixture *f, size_t size) {
    void *memory;
    assert_int_equal(kiln_memory_alloc(f->device, size, &memory), KILN_OK);
    assert_int_equal(kiln_fill(&f->stream, memory, 0, size), KILN_OK);
    return memory;
}

/* Runs softmax_f16 and adds up what its launches counted. */
static sim_counters softmax(fixture *f, int64_t rows, int64_t cols, uint64_t *out_launches) {
    size_t bytes = (size_t)(rows * cols) * 2;
    void *x = device_zeros(f, bytes), *y = device_zeros(f, bytes), *workspace = NULL;
    kiln_softmax_params params = {.y = y, .x = x, .rows = rows, .cols = cols};
    assert_int_equal(kiln_softmax_f16_workspace_size(&params, &params.workspace_size), KILN_OK);
    assert_int_equal(kiln_memory_alloc(f->device, params.workspace_size, &workspace), KILN_OK);
    params.workspace = workspace;
    sim.reset();
    if (kiln_softmax_f16(&f->stream, &params) != KILN_OK) fail_msg("%s", kiln_last_error());
    assert_int_equal(kiln_stream_sync(&f->stream), KILN_OK);
    sim_counters sum = {0};
    *out_launches = sim.launches();
    for (uint64_t i = 0; i < *out_launches; i++) {
        static sim_launch launch;
        assert_true(sim.launch(i, &launch));
        assert_true(launch.executed);
        sum.global_read_bytes += launch.counters.global_read_bytes;
        sum.global_written_bytes += launch.counters.global_written_bytes;
        sum.global_sectors += launch.counters.global_sectors;
        sum.shared_conflicts += launch.counters.shared_conflicts;
    }
    kiln_memory_free(f->device, x);
    kiln_memory_free(f->device, y);
    kiln_memory_free(f->device, workspace);
    return sum;
}

static void short_rows_are_read_once(void **state) {
    fixture *f = *state;
    static const int64_t shapes[][2] = {{1, 1}, {3, 8}, {33, 64}, {5, 1000}, {2, 4096}, {3, 16384}, {7, 777}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        uint64_t launches, bytes = (uint64_t)(shapes[i][0] * shapes[i][1]) * 2;
        sim_counters counted = softmax(f, shapes[i][0], shapes[i][1], &launches);
        assert_int_equal(launches, 1);
        assert_int_equal(counted.global_read_bytes, bytes);
        assert_int_equal(counted.global_written_bytes, bytes);
    }
}

/* Rows of whole 512-byte requests: no sector is asked for twice, none in part. */
static void aligned_rows_touch_each_sector_once(void **state) {
    fixture *f = *state;
    uint64_t launches;
    sim_counters counted = softmax(f, 4, 8192, &launches);
    assert_int_equal(counted.global_sectors, 2 * 4 * 8192 * 2 / 32);
}

static void long_rows_are_read_twice_by_many_groups(void **state) {
    fixture *f = *state;
    uint64_t launches, rows = 2, cols = 100000, bytes = rows * cols * 2;
    sim_counters counted = softmax(f, (int64_t)rows, (int64_t)cols, &launches);
    assert_int_equal(launches, 2);
    uint64_t chunks = (cols * 2 + 32767) / 32768;
    uint64_t partials = rows * chunks * 8; /* written once, and read by every chunk of the row */
    assert_true(counted.global_read_bytes >= 2 * bytes);
    assert_true(counted.global_read_bytes <= 2 * bytes + 2 * chunks * partials);
    assert_int_equal(counted.global_written_bytes, bytes + partials);
}

int main(int argc, char **argv) {
    (void)argc;
    setenv("KILN_SIM_RECORD", "0", 1);
    sim_client_start(argv, "sm_90");
    sim_client_open("libcuda.so.1", &sim);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_rows_are_read_once),
        cmocka_unit_test(aligned_rows_touch_each_sector_once),
        cmocka_unit_test(long_rows_are_read_twice_by_many_groups),
    };
    return cmocka_run_group_tests_name("counters", tests, setup, teardown);
}
