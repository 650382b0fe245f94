/* What the simulated driver says of the kernels that ship: registers, shared memory and threads are those that the
 * manifest has from the assembler, and as many groups are resident as these let be. */
#include "tests/assert_ok.h"
#include "tests/sim/core/sim_client.h"
#include <kiln/ops.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { WARP = 32, GROUP = 256, DYNAMIC = 20000 };

/* Of a multiprocessor. */
typedef struct limits {
    const char *target;
    uint32_t warps, shared;
} limits;

/* Whether a multiprocessor holds so many groups. A group's warps are as many in each partition, so that the sum of the
 * registers decides; a warp's come by 256, shared memory by 128 bytes. */
static bool fits(const limits *of, const kiln_kernel_info *kernel, uint32_t dynamic, uint32_t groups) {
    const uint32_t warps = GROUP / WARP, registers = (kernel->registers + 7) / 8 * 8;
    const uint32_t shared = (kernel->shared_bytes + dynamic + 1024 + 127) / 128 * 128;
    return groups * warps <= of->warps && groups * warps * WARP * registers <= 65536 && groups * shared <= of->shared;
}

static uint32_t check_part(kiln_device *device, const limits *of, const kiln_bundle *bundle, const kiln_part *part) {
    const kiln_module *module;
    kiln_image image;
    assert_ok(kiln_module_get(device, bundle, part->name, &module));
    assert_ok(kiln_module_get_image(module, &image));
    if (image.kind != KILN_IMAGE_CUBIN) return 0; /* a text has no registers yet */
    for (uint32_t i = 0; i < part->kernel_count; i++) {
        const kiln_kernel_info told = kiln_image_kernel(part, &image, i);
        const kiln_kernel *kernel;
        kiln_kernel_attributes found;
        if (told.absent) continue;
        assert_ok(kiln_module_find_kernel(module, told.name, &kernel));
        assert_ok(kiln_kernel_get_attributes(kernel, &found));
        assert_int_equal(found.registers, told.registers);
        assert_int_equal(found.shared_bytes, told.shared_bytes);
        assert_int_equal(found.max_threads, told.max_threads);
        if (told.max_threads < GROUP) continue; /* none of its blocks is so large */
        for (uint32_t dynamic = 0, groups; dynamic <= DYNAMIC; dynamic += DYNAMIC) {
            assert_ok(kiln_kernel_get_occupancy(kernel, GROUP, dynamic, &groups));
            assert_true(fits(of, &told, dynamic, groups));
            assert_false(fits(of, &told, dynamic, groups + 1));
        }
    }
    return part->kernel_count;
}

static void kernels_are_as_the_manifest_says(void **state) {
    (void)state;
    static const limits devices[] = {
        {"sm_80", 64, 164 << 10},  {"sm_86", 48, 100 << 10},  {"sm_90", 64, 228 << 10},
        {"sm_100", 64, 228 << 10}, {"sm_120", 48, 100 << 10},
    };
    const kiln_operator *const *operators;
    size_t count;
    uint32_t checked = 0;
    assert_ok(kiln_all_operators(&operators, &count));
    for (int32_t d = 0; d < (int32_t)(sizeof devices / sizeof *devices); d++) {
        kiln_device *device;
        assert_ok(kiln_device_open(&(kiln_device_options){.backend = KILN_BACKEND_CUDA, .ordinal = d}, &device));
        for (size_t o = 0; o < count; o++)
            for (uint32_t p = 0; p < operators[o]->bundle->part_count; p++)
                checked += check_part(device, &devices[d], operators[o]->bundle, &operators[o]->bundle->parts[p]);
        kiln_device_close(device);
    }
    assert_true(checked >= count);
}

int main(int argc, char **argv) {
    (void)argc;
    sim_client_start(argv, "sm_80,sm_86,sm_90,sm_100,sm_120");
    const struct CMUnitTest tests[] = {cmocka_unit_test(kernels_are_as_the_manifest_says)};
    return cmocka_run_group_tests_name("cuda_occupancy", tests, NULL, NULL);
}
