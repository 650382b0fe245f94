/* Detection through HSA: what devices there are, none, drivers that lie, forks, orders of teardown; and modules: which
 * image is loaded, which is refused, and what a kernel may not need. */
#include "loader/rocm/rocm_backend.h"
#include "tests/unit/rocm_sim.h"
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GFX90A, GFX90A_XNACK, GFX942, GFX1030, GFX1103, GFX1201, GPUS };

static const char devices[] = "gfx90a:xnack-,gfx90a:xnack+,gfx942:xnack+,gfx1030,gfx1103,gfx1201";

/* First of all: the runtime was not started yet. */
static void without_a_kernel_driver_there_is_no_device(void **state) {
    (void)state;
    int32_t count = 7;
    kiln_device *device;
    const kiln_device_options rocm = {.backend = KILN_BACKEND_ROCM};
    sim.configure("KILN_SIM_DEVICES", NULL);
    assert_ok(kiln_device_count(KILN_BACKEND_ROCM, &count));
    assert_int_equal(count, 0);
    assert_non_null(strstr(kiln_last_error(), "no device"));
    assert_non_null(strstr(kiln_last_error(), "hsa_init: HSA_STATUS_ERROR_OUT_OF_RESOURCES (0x1008)"));
    assert_error(kiln_device_open(&rocm, &device), KILN_ERROR_NO_DRIVER, "rocm: skipped, no device");
    assert_ok(kiln_device_open(NULL, &device));
    assert_non_null(strstr(kiln_device_selection_log(device), "rocm: skipped, no device"));
    kiln_device_close(device);
}

/* A GPU that is there and cannot be used is no reason to fall back. */
static void a_driver_that_is_there_and_does_not_start_is_an_error(void **state) {
    (void)state;
    int32_t count;
    kiln_device *device;
    rocm_kfd = EACCES;
    assert_error(kiln_device_count(KILN_BACKEND_ROCM, &count), KILN_ERROR_DRIVER,
                 "rocm: /dev/kfd may not be opened by this user: hsa_init: HSA_STATUS_ERROR_OUT_OF_RESOURCES (0x1008)");
    assert_error(kiln_device_open(NULL, &device), KILN_ERROR_DRIVER, "may not be opened by this user");
    rocm_kfd = 0;
    assert_error(kiln_device_open(NULL, &device), KILN_ERROR_DRIVER, "rocm: the HSA runtime does not start: hsa_init");
    rocm_kfd = ENOENT;
    sim.configure("KILN_SIM_DEVICES", devices);
    assert_ok(kiln_device_count(KILN_BACKEND_ROCM, &count));
    assert_int_equal(count, GPUS);
}

/* Of the two CPUs; a runtime that does not know the attribute gets the first, and tells of no NUMA node. */
static void host_memory_is_the_nearest_cpus(void **state) {
    (void)state;
    enum { FIRST_CPU = 0x1000 };
    kiln_device_info info;
    sim.configure("KILN_SIM_HOSTS", "2");
    for (int32_t i = 0; i < 2; i++) {
        kiln_device *device = rocm_open(i);
        assert_int_equal(((const kiln__rocm_device *)device->native)->host.handle, FIRST_CPU + i);
        assert_ok(kiln_device_get_info(device, &info));
        assert_int_equal(info.numa_node, i);
        kiln_device_close(device);
    }
    sim.configure("KILN_SIM_NEAREST", "0");
    kiln_device *device = rocm_open(1);
    assert_int_equal(((const kiln__rocm_device *)device->native)->host.handle, FIRST_CPU);
    assert_ok(kiln_device_get_info(device, &info));
    assert_int_equal(info.numa_node, -1);
    kiln_device_close(device);
    sim.configure("KILN_SIM_NEAREST", NULL);
    sim.configure("KILN_SIM_HOSTS", NULL);
    rocm_assert_clean();
}

static void devices_are_what_the_runtime_says(void **state) {
    (void)state;
    static const struct {
        const char *processor, *generic;
        int32_t xnack, sramecc, wave;
    } expected[GPUS] = {
        {"gfx90a", "", 1, 2, 64},
        {"gfx90a", "", 2, 2, 64},
        {"gfx942", "gfx9-4-generic", 2, 2, 64},
        {"gfx1030", "gfx10-3-generic", 0, 0, 32},
        {"gfx1103", "gfx11-generic", 0, 0, 32},
        {"gfx1201", "gfx12-generic", 0, 0, 32},
    };
    for (int32_t i = 0; i < GPUS; i++) {
        kiln_device_info info;
        kiln_device *device = rocm_open(i);
        assert_ok(kiln_device_get_info(device, &info));
        assert_int_equal(info.backend, KILN_BACKEND_ROCM);
        assert_string_equal(info.target.processor, expected[i].processor);
        assert_string_equal(info.target.generic, expected[i].generic);
        assert_int_equal(info.target.xnack, expected[i].xnack);
        assert_int_equal(info.target.sramecc, expected[i].sramecc);
        assert_int_equal(info.wave_size, expected[i].wave);
        assert_int_equal(info.memory_bytes, 1 << 30);
        assert_int_equal(info.max_threads, 1024);
        assert_int_equal(info.max_shared_bytes, 65536);
        assert_int_equal(info.multiprocessors, 110);
        assert_non_null(strstr(info.name, expected[i].processor));
        assert_string_equal(info.driver, "libhsa-runtime64.so.1, HSA 1.1");
        char uuid[64], pci[64], expected_uuid[64], expected_pci[64];
        snprintf(expected_uuid, sizeof expected_uuid, "GPU-51a000000000000%d", i);
        snprintf(expected_pci, sizeof expected_pci, "0000:%02x:00.0", (unsigned)i + 3);
        kiln_device_uuid_text(&info, uuid, sizeof uuid);
        kiln_device_pci_text(&info, pci, sizeof pci);
        assert_string_equal(uuid, expected_uuid);
        assert_string_equal(pci, expected_pci);
        assert_int_equal(info.numa_node, 0);
        for (int by_pci = 0; by_pci < 2; by_pci++) {
            kiln_device *same;
            assert_ok(kiln_device_open(&(kiln_device_options){.id = by_pci ? pci : uuid}, &same));
            assert_ptr_equal(same, device);
            kiln_device_close(same);
        }
        kiln_device_close(device);
    }
    kiln_device *device;
    const kiln_device_options beyond = {.backend = KILN_BACKEND_ROCM, .ordinal = GPUS};
    assert_error(kiln_device_open(&beyond, &device), KILN_ERROR_NOT_FOUND, "rocm has 6 devices");
    assert_int_equal(sim.calls("hsa_init"), 0); /* the second test's start was the process's only one */
    rocm_assert_clean();
}

static void each_device_gets_its_own_image(void **state) {
    (void)state;
    static const char *const expected[GPUS] = {"gfx90a:xnack-", "gfx90a",        "gfx942:sramecc+:xnack+",
                                               "gfx1030",       "gfx11-generic", "gfx1201"};
    for (int32_t i = 0; i < GPUS; i++) {
        kiln_device *device = rocm_open(i);
        kiln_image image;
        kiln_kernel_attributes attributes;
        uint32_t groups;
        const kiln_kernel *turn = rocm_kernel(device, "turn");
        assert_ok(kiln_module_get_image(turn->module, &image));
        if (i != GFX90A) assert_string_equal(image.target, expected[i]);
        assert_ok(kiln_kernel_get_attributes(turn, &attributes));
        assert_int_equal(attributes.arguments_size, 12);
        assert_int_equal(attributes.shared_bytes, 256);
        assert_int_equal(attributes.max_dynamic_shared_bytes, 65536 - 256);
        assert_int_equal(attributes.max_threads, 1024);
        assert_true(attributes.registers > 0);
        assert_ok(kiln_kernel_get_occupancy(turn, 256, 0, &groups));
        assert_int_equal(groups, i < GFX1030 ? 8 : 4); /* 32 wave slots: groups of 4 waves of 64, or of 8 of 32 */
        assert_ok(kiln_kernel_get_occupancy(turn, 256, 32768, &groups));
        assert_int_equal(groups, 1); /* two would take 66048 bytes of LDS */
        assert_ok(kiln_kernel_get_occupancy(turn, 2048, 0, &groups));
        assert_int_equal(groups, 0);
        kiln_device_close(device);
    }
    rocm_assert_clean();
}

/* An old runtime knows no generic targets and refuses the image. */
static void a_refusal_says_so_and_leaves_the_device_usable(void **state) {
    (void)state;
    const kiln_module *module;
    kiln_device *device = rocm_open(GFX1103);
    sim.configure("KILN_SIM_GENERIC", "0");
    assert_error(kiln_module_get(device, &rocm_bundle, "f32", &module), KILN_ERROR_NO_IMAGE,
                 "was refused by the driver");
    assert_non_null(strstr(kiln_last_error(), "HSA_STATUS_ERROR_INVALID_CODE_OBJECT (0x1010)"));
    sim.configure("KILN_SIM_GENERIC", NULL);
    assert_int_equal(sim.live("executable"), 0);
    assert_int_equal(sim.live("reader"), 0);
    kiln_device_close(device);
    rocm_assert_clean();
}

/* Two images that fit by their names; the better one's bytes are another chip's. */
static void the_next_image_is_tried(void **state) {
    (void)state;
    kiln_image images[2] = {rocm_images[4], rocm_images[3]};
    images[0].target = "gfx1030";
    images[1].target = "gfx10-3-generic";
    kiln_part part = rocm_part;
    part.images = images;
    part.image_count = 2;
    kiln_bundle bundle = rocm_bundle;
    bundle.parts = &part;
    kiln_device *device = rocm_open(GFX1030);
    const kiln_module *module;
    kiln_image chosen;
    assert_ok(kiln_module_get(device, &bundle, "f32", &module));
    assert_ok(kiln_module_get_image(module, &chosen));
    assert_string_equal(chosen.target, "gfx10-3-generic");
    assert_int_equal(sim.calls("hsa_executable_load_agent_code_object"), 2);
    kiln_device_close(device);
    rocm_assert_clean();
}

/* A gfx1030 image with some bytes of its metadata replaced, loaded. */
static void assert_image_refused(const char *old, const char *new, size_t size, kiln_status status, const char *text) {
    kiln_image image = rocm_images[3];
    uint8_t *bytes = malloc(image.size);
    assert_non_null(bytes);
    memcpy(bytes, image.data, image.size);
    int replaced = 0;
    for (size_t i = 0; i + size <= image.size; i++)
        if (!memcmp(bytes + i, old, size)) {
            memcpy(bytes + i, new, size);
            replaced++;
        }
    assert_true(replaced > 0);
    image.data = bytes;
    kiln_part part = rocm_part;
    part.images = &image;
    part.image_count = 1;
    kiln_bundle bundle = rocm_bundle;
    bundle.parts = &part;
    kiln_device *device = rocm_open(GFX1030);
    const kiln_module *module;
    assert_error(kiln_module_get(device, &bundle, "f32", &module), status, text);
    kiln_device_close(device);
    free(bytes);
    rocm_assert_clean();
}

static void kernels_that_need_what_kiln_lacks_are_refused(void **state) {
    (void)state;
    assert_image_refused("hidden_group_size_x", "hidden_private_base", 19, KILN_ERROR_UNSUPPORTED,
                         "kernel turn needs hidden_private_base, which kiln does not provide");
    assert_image_refused("hidden_group_size_x", "hidden_strange_kind", 19, KILN_ERROR_UNSUPPORTED,
                         "a kind unknown to this version");
    assert_image_refused("scale", "scala", 5, KILN_ERROR_NOT_FOUND, "has no kernel scale");
}

static void a_bundle_that_disagrees_with_its_image_is_refused(void **state) {
    (void)state;
    kiln_kernel_info kernels[3] = {rocm_kernels[0], rocm_kernels[1], rocm_kernels[2]};
    kiln_image image = rocm_images[3];
    kiln_part part = rocm_part;
    kiln_bundle bundle = rocm_bundle;
    kernels[2].arguments_size = 24;
    image.kernels = kernels;
    part.images = &image;
    part.image_count = 1;
    bundle.parts = &part;
    kiln_device *device = rocm_open(GFX1030);
    const kiln_module *module;
    assert_error(kiln_module_get(device, &bundle, "f32", &module), KILN_ERROR_CORRUPT_IMAGE,
                 "kernel mixed takes 20 bytes of arguments, its bundle says 24");
    kiln_device_close(device);
    rocm_assert_clean();
}

static void *load_and_launch(void *argument) {
    kiln_device *device = argument;
    const kiln_module *module;
    const kiln_kernel *scale;
    const scale_arguments arguments = {.count = 1};
    const kiln_launch_config config = {.grid = {2}, .block = {64}};
    kiln_stream stream;
    if (kiln_module_get(device, &rocm_bundle, "f32", &module) != KILN_OK ||
        kiln_module_find_kernel(module, "scale", &scale) != KILN_OK || kiln_stream_open(device, 0, &stream) != KILN_OK)
        return NULL;
    kiln_status status = KILN_OK;
    for (int i = 0; i < 100 && status == KILN_OK; i++)
        status = kiln_launch(&stream, scale, &config, &arguments, sizeof arguments);
    if (status == KILN_OK) status = kiln_stream_sync(&stream);
    kiln_stream_close(&stream);
    return status == KILN_OK ? device : NULL;
}

/* Two threads a device, all devices at once: the runtime knows which device a kernel object was loaded for. */
static void devices_load_and_launch_at_once(void **state) {
    (void)state;
    kiln_device *opened[GPUS];
    pthread_t threads[2 * GPUS];
    for (int32_t i = 0; i < GPUS; i++)
        opened[i] = rocm_open(i);
    for (int i = 0; i < 2 * GPUS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, load_and_launch, opened[i % GPUS]), 0);
    for (int i = 0; i < 2 * GPUS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        assert_ptr_equal(result, opened[i % GPUS]);
    }
    assert_int_equal(sim.launches(), 2 * GPUS * 100);
    assert_int_equal(sim.calls("hsa_executable_create_alt"), GPUS);
    for (int i = 0; i < GPUS; i++)
        kiln_device_close(opened[i]);
    rocm_assert_clean();
}

static void lying_drivers_are_seen_through(void **state) {
    (void)state;
    static const struct {
        const char *function;
        uint64_t nth;
        const char *text;
    } lies[] = {
        {"hsa_iterate_agents", 2, ""},
        {"hsa_agent_iterate_isas", GPUS * 2 + 1, "instruction set has no name"},
        {"hsa_isa_get_info_alt", 2, "instruction set has no name"},
        {"hsa_agent_get_info", 2 * (GPUS + 1) + 2, "hsa_agent_get_info: reported success without a result"},
        {"hsa_system_get_info", 3, "hsa_system_get_info: reported success without a result"},
        {"hsa_amd_agent_iterate_memory_pools", 3, "no pool of device memory"},
    };
    kiln_device *device;
    const kiln_device_options options = {.backend = KILN_BACKEND_ROCM};
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        sim.fault(lies[i].function, lies[i].nth, SIM_LIE);
        kiln_status status = kiln_device_open(&options, &device);
        assert_int_equal(sim.faulted(), 1);
        if (lies[i].text[0]) {
            assert_int_equal(status, KILN_ERROR_DRIVER);
            if (!strstr(kiln_last_error(), lies[i].text)) fail_msg("%s: %s", lies[i].function, kiln_last_error());
        }
        if (status == KILN_OK) kiln_device_close(device);
    }
    int32_t count;
    sim.fault("hsa_iterate_agents", 1, SIM_LIE); /* a million agents */
    assert_error(kiln_device_count(KILN_BACKEND_ROCM, &count), KILN_ERROR_DRIVER, "hsa_iterate_agents");
    assert_int_equal(count, 0);
    sim.reset();

    static const char *const empty[] = {"hsa_queue_create", "hsa_signal_create", "hsa_amd_memory_pool_allocate"};
    device = rocm_open(GFX90A);
    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++) {
        kiln_stream stream;
        sim.fault(empty[i], 1, SIM_LIE);
        assert_error(kiln_stream_open(device, 0, &stream), KILN_ERROR_DRIVER, "reported success without a result");
    }
    static const char *const loads[] = {"hsa_code_object_reader_create_from_memory", "hsa_executable_create_alt",
                                        "hsa_executable_get_symbol_by_name", "hsa_executable_symbol_get_info"};
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) {
        const kiln_module *module;
        sim.fault(loads[i], 1, SIM_LIE);
        assert_error(kiln_module_get(device, &rocm_bundle, "f32", &module), KILN_ERROR_DRIVER,
                     "reported success without a result");
    }
    kiln_device_close(device);
    rocm_assert_clean();
}

/* Also memory of the runtime's that the application has granted to another GPU alone is copied, through a buffer. */
static void pinned_memory_is_every_gpus(void **state) {
    (void)state;
    kiln_device *owner = rocm_open(GFX90A), *other = rocm_open(GFX1030);
    const kiln__rocm_device *rocm = owner->native;
    kiln_stream stream = rocm_stream(other, 0);
    uint32_t *host;
    void *memory;
    assert_ok(kiln_host_alloc(owner, 64, (void **)&host));
    assert_ok(kiln_memory_alloc(other, 64, &memory));
    for (uint32_t staged = 0; staged < 2; staged++) {
        if (staged) assert_int_equal(kiln__rocm.agents_allow_access(1, &rocm->agent, NULL, host), 0);
        sim.reset();
        host[0] = 7 + staged;
        host[1] = 0;
        assert_ok(kiln_copy(&stream, memory, host, 4, KILN_COPY_TO_DEVICE));
        assert_ok(kiln_copy(&stream, host + 1, memory, 4, KILN_COPY_TO_HOST));
        assert_ok(kiln_stream_sync(&stream));
        assert_int_equal(host[1], 7 + staged);
        assert_int_equal(sim.calls("hsa_amd_memory_lock"), 0);
        assert_int_equal(sim.calls("hsa_amd_memory_pool_allocate"), staged);
    }
    kiln_host_free(owner, host);
    kiln_memory_free(other, memory);
    kiln_stream_close(&stream);
    kiln_device_close(other);
    kiln_device_close(owner);
    rocm_assert_clean();
}

/* The child may not touch the runtime, which would say so, and the parent goes on. */
static void a_forked_child_gets_a_status(void **state) {
    (void)state;
    kiln_device *device = rocm_open(GFX90A);
    kiln_stream stream = rocm_stream(device, 0);
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int32_t count;
        void *memory;
        const bool refused = kiln_stream_sync(&stream) == KILN_ERROR_FORKED &&
                             kiln_memory_alloc(device, 64, &memory) == KILN_ERROR_FORKED &&
                             kiln_device_count(KILN_BACKEND_ROCM, &count) == KILN_ERROR_FORKED;
        kiln_stream_close(&stream);
        kiln_device_close(device);
        _exit(refused && sim.violations() == 0 ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_ok(kiln_stream_sync(&stream));
    kiln_stream_close(&stream);
    kiln_device_close(device);
    rocm_assert_clean();
}

/* A device is opened once however often it is opened, and a stream and event may go in any order. */
static void any_order_of_teardown_is_clean(void **state) {
    (void)state;
    for (int order = 0; order < 2; order++) {
        kiln_device *device = rocm_open(GFX90A), *again = rocm_open(GFX90A);
        kiln_stream stream = rocm_stream(device, 0);
        kiln_event *event;
        assert_ptr_equal(device, again);
        assert_ok(kiln_event_create(device, 0, &event));
        assert_ok(kiln_event_record(event, &stream));
        if (order) kiln_event_destroy(event);
        kiln_stream_close(&stream);
        if (!order) kiln_event_destroy(event);
        kiln_stream_close(&stream);
        kiln_device_close(device);
        kiln_device_close(again);
        rocm_assert_clean();
    }
}

int main(int argc, char **argv) {
    (void)argc;
    rocm_sim_start(argv, devices);
#define TEST(name) cmocka_unit_test_setup(name, rocm_reset)
    const struct CMUnitTest tests[] = {
        TEST(without_a_kernel_driver_there_is_no_device),
        TEST(a_driver_that_is_there_and_does_not_start_is_an_error),
        TEST(host_memory_is_the_nearest_cpus),
        TEST(devices_are_what_the_runtime_says),
        TEST(each_device_gets_its_own_image),
        TEST(a_refusal_says_so_and_leaves_the_device_usable),
        TEST(the_next_image_is_tried),
        TEST(kernels_that_need_what_kiln_lacks_are_refused),
        TEST(a_bundle_that_disagrees_with_its_image_is_refused),
        TEST(devices_load_and_launch_at_once),
        TEST(lying_drivers_are_seen_through),
        TEST(pinned_memory_is_every_gpus),
        TEST(a_forked_child_gets_a_status),
        TEST(any_order_of_teardown_is_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
