/* What the tests of the CUDA backend share: the recording driver, and a bundle with PTX and cubins of two kernels. */
#ifndef KILN_TESTS_CUDA_FIXTURE_H
#define KILN_TESTS_CUDA_FIXTURE_H

/* cmocka wants these four before its own header. */
#include "tests/assert_ok.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/cuda/cuda_abi.h"
#include "tests/sim/core/sim_client.h"
#include <cmocka.h>
#include <elf.h>
#include <kiln/kiln.h>
#include <stdbool.h>

static sim_control sim;

/* The driver's own functions, for a test that plays the application. */
struct CUgraph_st;
struct CUgraphExec_st;
struct CUctxCreateParams_st;
struct CUgraphExecUpdateResultInfo_st;
struct CUDA_MEMCPY2D_st;
struct CUuuid_st;
struct CUmemPoolHandle_st;
static struct {
#define KILN_CUDA(field, name, requirement, result, parameters) result(*field) parameters;
#include "loader/cuda/symbols.def"
#include "tests/sim/cuda/extra_symbols.def"
#undef KILN_CUDA
} cuda;

/* Call first in main. subfolder: "" for the newest driver, "cuda-10", "cuda-9". */
static inline void fixture_start_in(char **argv, const char *devices, const char *subfolder) {
    sim_client_start_in(argv, devices, subfolder);
    void *handle = sim_client_open("libcuda.so.1", &sim);
#define KILN_CUDA(field, name, requirement, result, parameters) *(void **)&cuda.field = dlsym(handle, #name);
#include "loader/cuda/symbols.def"
#include "tests/sim/cuda/extra_symbols.def"
#undef KILN_CUDA
}

static inline void fixture_start(char **argv, const char *devices) {
    fixture_start_in(argv, devices, "");
}

/* ---- Images ---- */

typedef struct scale_arguments {
    const float *x;
    float *y;
    uint64_t n;
    uint8_t rest[24];
} scale_arguments;

#define FIXTURE_KERNELS                                                                   \
    ".address_size 64\n.visible .global .align 4 .u32 tally[3];\n"                        \
    ".visible .entry scale(\n.param .align 8 .b8 scale_p[48]\n)\n.maxntid 256, 1, 1\n{\n" \
    ".shared .align 4 .b8 scale_s[128];\nret;\n}\n"                                       \
    ".visible .entry pair(\n.param .u64 pair_p0,\n.param .u32 pair_p1\n)\n{\nret;\n}\n"

static const char fixture_ptx[] = ".version 6.3\n.target sm_75\n" FIXTURE_KERNELS;

/* A cubin without code: the header, the section names, and a .nv.info for each of the two kernels. */
typedef struct fixture_cubin {
    Elf64_Ehdr header;
    Elf64_Shdr sections[4];
    char names[48];
    uint16_t scale_info[14]; /* maximum threads 256x1x1, parameters 48 bytes */
    uint16_t pair_info[6];   /* parameters 12 bytes */
} fixture_cubin;

static inline fixture_cubin fixture_make_cubin(uint32_t capability) {
    static const char names[] = "\0.shstrtab\0.nv.info.scale\0.nv.info.pair";
    fixture_cubin made = {
        .header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT, 0x41, 8},
                   .e_type = ET_EXEC,
                   .e_machine = 190,
                   .e_version = EV_CURRENT,
                   .e_shoff = offsetof(fixture_cubin, sections),
                   .e_flags = 0x06000002 | capability << 8,
                   .e_ehsize = sizeof(Elf64_Ehdr),
                   .e_shentsize = sizeof(Elf64_Shdr),
                   .e_shnum = 4,
                   .e_shstrndx = 1},
        .sections = {{0},
                     {.sh_name = 1,
                      .sh_type = SHT_STRTAB,
                      .sh_offset = offsetof(fixture_cubin, names),
                      .sh_size = sizeof names,
                      .sh_addralign = 1},
                     {.sh_name = 11,
                      .sh_type = SHT_LOPROC,
                      .sh_offset = offsetof(fixture_cubin, scale_info),
                      .sh_size = sizeof made.scale_info,
                      .sh_addralign = 4},
                     {.sh_name = 26,
                      .sh_type = SHT_LOPROC,
                      .sh_offset = offsetof(fixture_cubin, pair_info),
                      .sh_size = sizeof made.pair_info,
                      .sh_addralign = 4}},
        .scale_info = {0x0504, 12, 256, 0, 1, 0, 1, 0, 0x0a04, 8, 0, 0, 0x210, 48},
        .pair_info = {0x0a04, 8, 0, 0, 0x210, 12},
    };
    memcpy(made.names, names, sizeof names);
    return made;
}

static const kiln_kernel_info fixture_kernels[] = {
    {.name = "scale", .arguments_size = 48, .max_threads = 256},
    {.name = "pair", .arguments_size = 12},
};
static const char *const fixture_names[] = {"scale", "pair"};

static inline kiln_image fixture_image(const char *target, kiln_image_kind kind, const void *data, size_t size) {
    return (kiln_image){.target = target,
                        .data = data,
                        .size = size,
                        .kind = kind,
                        .format_version = kind == KILN_IMAGE_PTX ? 63 : 0,
                        .kernel_size = sizeof(kiln_kernel_info),
                        .kernels = fixture_kernels};
}

/* A bundle of one part "f32" with the given images. */
typedef struct fixture_bundle {
    kiln_part part;
    kiln_bundle bundle;
} fixture_bundle;

static inline void fixture_bundle_init(fixture_bundle *made, const kiln_image *images, uint32_t image_count) {
    made->part = (kiln_part){.name = "f32",
                             .images = images,
                             .kernel_names = fixture_names,
                             .image_count = image_count,
                             .image_size = sizeof *images,
                             .kernel_count = 2};
    made->bundle = (kiln_bundle){.version = KILN_BUNDLE_VERSION,
                                 .part_size = sizeof made->part,
                                 .name = "fixture",
                                 .parts = &made->part,
                                 .part_count = 1};
}

/* The whole bundle: PTX for sm_75, cubins for sm_80, sm_90 and sm_120. */
static inline const kiln_bundle *fixture_whole(void) {
    static fixture_cubin cubins[3];
    static kiln_image images[4];
    static fixture_bundle made;
    cubins[0] = fixture_make_cubin(80);
    cubins[1] = fixture_make_cubin(90);
    cubins[2] = fixture_make_cubin(120);
    images[0] = fixture_image("sm_75", KILN_IMAGE_PTX, fixture_ptx, sizeof fixture_ptx - 1);
    images[1] = fixture_image("sm_80", KILN_IMAGE_CUBIN, &cubins[0], sizeof cubins[0]);
    images[2] = fixture_image("sm_90", KILN_IMAGE_CUBIN, &cubins[1], sizeof cubins[1]);
    images[3] = fixture_image("sm_120", KILN_IMAGE_CUBIN, &cubins[2], sizeof cubins[2]);
    fixture_bundle_init(&made, images, 4);
    return &made.bundle;
}

/* The PTX alone, which has a variable too. */
static inline const kiln_bundle *fixture_text(void) {
    static kiln_image image;
    static fixture_bundle made;
    image = fixture_image("sm_75", KILN_IMAGE_PTX, fixture_ptx, sizeof fixture_ptx - 1);
    fixture_bundle_init(&made, &image, 1);
    return &made.bundle;
}

/* Loads it as a driver that executes does: one that only records has no variables. */
static inline kiln_status fixture_load_text(kiln_device *device, const kiln_module **out_module) {
    sim.configure("KILN_SIM_RECORD", "0");
    kiln_status status = kiln_module_get(device, fixture_text(), "f32", out_module);
    sim.configure("KILN_SIM_RECORD", "1");
    return status;
}

/* ---- What every test begins and ends with ---- */

#define assert_status(expression, status) assert_int_equal(expression, status)

/* The last error's text holds the words. */
static inline void assert_told(const char *words) {
    if (strstr(kiln_last_error(), words)) return;
    print_error("\"%s\" is not in \"%s\"\n", words, kiln_last_error());
    fail();
}

static inline kiln_device *fixture_open(int32_t ordinal) {
    kiln_device *device = NULL;
    assert_ok(kiln_device_open(&(kiln_device_options){.backend = KILN_BACKEND_CUDA, .ordinal = ordinal}, &device));
    return device;
}

static inline const kiln_kernel *fixture_kernel(kiln_device *device, const char *name) {
    const kiln_module *module;
    const kiln_kernel *kernel;
    assert_ok(kiln_module_get(device, fixture_whole(), "f32", &module));
    assert_ok(kiln_module_find_kernel(module, name, &kernel));
    return kernel;
}

static inline int fixture_setup(void **state) {
    (void)state;
    sim.reset();
    return 0;
}

/* Nothing that the driver gave is left, and no rule of its was broken. */
static inline int fixture_teardown(void **state) {
    (void)state;
    sim.fault(NULL, 0, 0);
    if (sim.violations()) print_error("violation: %s\n", sim.violation());
    if (sim.live("*")) print_error("%d objects leaked\n", (int)sim.live("*"));
    return sim.violations() || sim.live("*");
}

#define fixture_test(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

/* From here on every status is one that its function lists. */
#include "tests/unit/documented.h"

#endif
