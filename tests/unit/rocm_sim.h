/* Tests of the ROCm backend against the recording runtime: its start, its controls, and a bundle of real code objects
 * (tests/unit/images: scale, turn and mixed). Nothing is executed: calls, packets and arguments are what is shown. */
#ifndef KILN_TESTS_ROCM_SIM_H
#define KILN_TESTS_ROCM_SIM_H

#include "tests/assert_ok.h"
#include "tests/sim/core/sim_client.h"
#include "tests/sim/rocm/sim_rocm_control.h"
#include <errno.h>
#include <fcntl.h>
#include <kiln/kiln.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

#define ROCM_IMAGES(X)                             \
    X(gfx90a, "gfx90a", 4)                         \
    X(gfx90a_xnack_off, "gfx90a:xnack-", 5)        \
    X(gfx942_both_on, "gfx942:sramecc+:xnack+", 5) \
    X(gfx1030, "gfx1030", 5)                       \
    X(gfx1201, "gfx1201", 6)                       \
    X(gfx11_generic, "gfx11-generic", 6)

/* The files' bytes, as rocm_<file> up to rocm_<file>_end. */
#define ROCM_INCLUDE(file, target, version)                                                             \
    __asm__(".pushsection .rodata\n.balign 4096\n.global rocm_" #file "\nrocm_" #file                   \
            ":\n.incbin \"tests/unit/images/" #file ".hsaco\"\n.global rocm_" #file "_end\nrocm_" #file \
            "_end:\n.byte 0\n.popsection\n");                                                           \
    extern const uint8_t rocm_##file[], rocm_##file##_end[];
ROCM_IMAGES(ROCM_INCLUDE)

typedef struct scale_arguments {
    const float *x;
    float *y;
    uint32_t count, reserved;
} scale_arguments;

static const kiln_kernel_info rocm_kernels[] = {
    {.name = "scale", .arguments_size = 24},
    {.name = "turn", .arguments_size = 12},
    {.name = "mixed", .arguments_size = 20},
};
static const char *const rocm_kernel_names[] = {"scale", "turn", "mixed"};

static kiln_image rocm_images[] = {
#define ROCM_IMAGE(file, name, version)       \
    {.target = name,                          \
     .kind = KILN_IMAGE_HSACO,                \
     .format_version = version,               \
     .kernel_size = sizeof(kiln_kernel_info), \
     .kernels = rocm_kernels,                 \
     .data = rocm_##file},
    ROCM_IMAGES(ROCM_IMAGE)
#undef ROCM_IMAGE
};
enum { ROCM_IMAGE_COUNT = sizeof rocm_images / sizeof *rocm_images };

static const kiln_part rocm_part = {
    .name = "f32",
    .images = rocm_images,
    .kernel_names = rocm_kernel_names,
    .image_count = ROCM_IMAGE_COUNT,
    .image_size = sizeof(kiln_image),
    .kernel_count = 3,
};
static const kiln_bundle rocm_bundle = {.version = KILN_BUNDLE_VERSION,
                                        .part_size = sizeof(kiln_part),
                                        .name = "user",
                                        .parts = &rocm_part,
                                        .part_count = 1};

/* What access says of the kernel driver's file: 0, or an error. The machine's own is not asked. */
static int rocm_kfd = ENOENT;

int access(const char *path, int mode) {
    if (strcmp(path, "/dev/kfd") != 0) return faccessat(AT_FDCWD, path, mode, 0);
    errno = rocm_kfd;
    return rocm_kfd ? -1 : 0;
}

static sim_control sim;
static sim_rocm_control sim_rocm;
static void *sim_library;

/* First in main: devices is the list of KILN_SIM_DEVICES; subfolder "" for the newest runtime, or "rocm-5". */
static inline void rocm_sim_start_in(char **argv, const char *devices, const char *subfolder) {
    sim_client_start_in(argv, devices, subfolder);
    sim_library = sim_client_open("libhsa-runtime64.so.1", &sim);
#define ROCM_CONTROL_LOAD(result, name, parameters) \
    *(void **)&sim_rocm.name = dlsym(sim_library, "kiln_sim_rocm_" #name);
    SIM_ROCM_CONTROL_MAP(ROCM_CONTROL_LOAD)
#undef ROCM_CONTROL_LOAD
    const size_t sizes[] = {
#define ROCM_SIZE(file, target, version) (size_t)(rocm_##file##_end - rocm_##file),
        ROCM_IMAGES(ROCM_SIZE)
#undef ROCM_SIZE
    };
    for (size_t i = 0; i < ROCM_IMAGE_COUNT; i++)
        rocm_images[i].size = sizes[i];
}

static inline void rocm_sim_start(char **argv, const char *devices) {
    rocm_sim_start_in(argv, devices, "");
}

/* Opens an AMD GPU; ends the test if it cannot. */
static inline kiln_device *rocm_open(int32_t ordinal) {
    kiln_device *device;
    const kiln_device_options options = {.backend = KILN_BACKEND_ROCM, .ordinal = ordinal};
    assert_ok(kiln_device_open(&options, &device));
    return device;
}

static inline kiln_stream rocm_stream(kiln_device *device, uint32_t flags) {
    kiln_stream stream;
    assert_ok(kiln_stream_open(device, flags, &stream));
    return stream;
}

static inline const kiln_kernel *rocm_kernel(kiln_device *device, const char *name) {
    const kiln_module *module;
    const kiln_kernel *kernel = NULL;
    assert_ok(kiln_module_get(device, &rocm_bundle, "f32", &module));
    assert_ok(kiln_module_find_kernel(module, name, &kernel));
    return kernel;
}

/* What every test leaves behind: no breach of the runtime's rules, and nothing alive in it. */
static inline void rocm_assert_clean(void) {
    if (sim.violations()) fail_msg("%s", sim.violation());
    assert_int_equal(sim.live("*"), 0);
}

static inline int rocm_reset(void **state) {
    (void)state;
    sim_rocm.hold(0);
    sim_rocm.copy_error(0);
    sim_rocm.untimed(0);
    sim.configure("KILN_SIM_DELAY", NULL);
    sim.reset();
    return 0;
}

#define assert_error(call, status, text)                                                                 \
    do {                                                                                                 \
        assert_int_equal(call, status);                                                                  \
        if (!strstr(kiln_last_error(), text)) fail_msg("\"%s\" is not in: %s", text, kiln_last_error()); \
    } while (0)

/* From here on every status is one that its function lists. */
#include "tests/unit/documented.h"

#endif
