/* Every operator's images go into a strict driver of every architecture: the image that selection picks is the one that
 * loads, and the driver agrees on its kernels and the size of their arguments. Nothing is executed. */
#include "tests/unit/cuda_fixture.h"

static const char devices[] = "sm_75,sm_80,sm_86,sm_87,sm_89,sm_90,sm_100,sm_103,sm_120,sm_121";
enum { DEVICE_COUNT = 10 };

/* The portable images' targets, by device. */
static const char *const expected[DEVICE_COUNT] = {"sm_75", "sm_80",  "sm_86",  "sm_86",  "sm_89",
                                                   "sm_90", "sm_100", "sm_100", "sm_120", "sm_120"};

typedef struct tally {
    int results, wrong;
} tally;

static void count_result(void *user, const kiln_check_result *result) {
    tally *counted = user;
    kiln_device_info info;
    counted->results++;
    kiln_device_get_info(result->device, &info);
    if (result->status == KILN_OK && !strcmp(result->target, expected[info.ordinal])) return;
    print_error("%s %s on %s: %s\n", result->bundle->name, result->part, info.name, result->text);
    counted->wrong++;
}

static void test_every_operator_loads_on_every_architecture(void **state) {
    (void)state;
    const kiln_bundle *const *bundles;
    size_t bundle_count;
    kiln_device *opened[DEVICE_COUNT];
    tally counted = {0, 0};
    int parts = 0;
    assert_ok(kiln_all_bundles(&bundles, &bundle_count));
    assert_true(bundle_count > 0);
    for (size_t i = 0; i < bundle_count; i++)
        parts += (int)bundles[i]->part_count;
    for (int32_t i = 0; i < DEVICE_COUNT; i++)
        opened[i] = fixture_open(i);
    assert_ok(kiln_check(opened, DEVICE_COUNT, bundles, bundle_count, count_result, &counted));
    assert_int_equal(counted.wrong, 0);
    assert_int_equal(counted.results, parts * DEVICE_COUNT);
    for (int32_t i = 0; i < DEVICE_COUNT; i++)
        kiln_device_close(opened[i]);
}

int main(int argc, char **argv) {
    (void)argc;
    fixture_start(argv, devices);
    const struct CMUnitTest tests[] = {fixture_test(test_every_operator_loads_on_every_architecture)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
