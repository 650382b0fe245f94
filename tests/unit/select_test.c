/* Selection: verdicts and sentences written by hand from the vendors' rules, and a brute-force selector that must agree
 * with kiln_select on random bundles and devices. No device, no driver. */
#include "tests/assert_ok.h"
#include <kiln/kiln.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "tests/unit/documented.h"

static const char some_bytes[] = "image";
static const char *const no_kernels[1];

static kiln_image image_of(kiln_image_kind kind, const char *target, uint32_t format, uint32_t driver) {
    return (kiln_image){.target = target,
                        .data = kind == KILN_IMAGE_CPU ? NULL : some_bytes,
                        .size = sizeof some_bytes - 1,
                        .kind = kind,
                        .format_version = format,
                        .driver_version = driver,
                        .kernel_size = sizeof(kiln_kernel_info)};
}

static kiln_part part_of(const kiln_image *images, uint32_t count) {
    return (kiln_part){.name = "f16",
                       .images = images,
                       .image_count = count,
                       .image_size = sizeof *images,
                       .kernel_names = no_kernels};
}

static kiln_bundle bundle_of(const kiln_part *part) {
    return (kiln_bundle){
        .version = KILN_BUNDLE_VERSION, .part_size = sizeof *part, .name = "test", .parts = part, .part_count = 1};
}

static kiln_target target_of(const char *name, int32_t driver) {
    kiln_target target;
    assert_ok(kiln_target_parse(name, driver, &target));
    return target;
}

/* Judges one image alone and returns its sentence. */
static const char *sentence_of(const kiln_image *image, const kiln_target *target, char *text, size_t size) {
    kiln_part part = part_of(image, 1);
    kiln_bundle bundle = bundle_of(&part);
    kiln_candidate candidate;
    uint32_t fitting;
    assert_int_equal(kiln_select(&bundle, &part, target, &candidate, &fitting), KILN_OK);
    assert_int_equal(fitting, candidate.reasons == 0);
    kiln_reason_text(image, target, candidate.reasons, text, size);
    return text;
}

/* ---- Tables of verdicts, a letter each ---- */

/* F fits, X exactly this chip, Y another family, M another major, m lower minor, C lower capability. */
static void expect_nvidia(kiln_image_kind kind, const char *image_target, const char *device, char letter) {
    char expected[256], text[256];
    kiln_image image = image_of(kind, image_target, kind == KILN_IMAGE_PTX ? 90 : 0, 0);
    kiln_target target = target_of(device, 13030);
    const char *kind_name = kind == KILN_IMAGE_PTX ? "ptx" : "cubin";
    const char *need = letter == 'X'   ? "needs exactly %s, device is %s"
                       : letter == 'Y' ? "needs a chip of the family of %s, device is %s"
                       : letter == 'M' ? "needs the same major compute capability of %s, device is %s"
                                       : "needs %s or higher, device is %s";
    char rest[192];
    snprintf(rest, sizeof rest, need, image_target, device);
    snprintf(expected, sizeof expected, "%s %s: %s", image_target, kind_name, letter == 'F' ? "fits" : rest);
    assert_string_equal(sentence_of(&image, &target, text, sizeof text), expected);
}

typedef struct verdict_row {
    const char *image;
    const char *letters;
} verdict_row;

static void expect_rows(kiln_image_kind kind, const char *const *devices, size_t device_count, const verdict_row *rows,
                        size_t row_count) {
    for (size_t r = 0; r < row_count; r++) {
        assert_int_equal(strlen(rows[r].letters), device_count);
        for (size_t d = 0; d < device_count; d++)
            expect_nvidia(kind, rows[r].image, devices[d], rows[r].letters[d]);
    }
}

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const char *const nvidia_devices[] = {"sm_75",  "sm_80",  "sm_86",  "sm_87",  "sm_89", "sm_90",
                                             "sm_100", "sm_103", "sm_110", "sm_120", "sm_121"};

static void cubins_run_on_their_major_and_no_lower_minor(void **state) {
    (void)state;
    static const verdict_row rows[] = {
        {"sm_75", "FMMMMMMMMMM"},   {"sm_80", "MFFFFMMMMMM"},   {"sm_86", "MmFFFMMMMMM"},   {"sm_87", "MmmFFMMMMMM"},
        {"sm_89", "MmmmFMMMMMM"},   {"sm_90", "MMMMMFMMMMM"},   {"sm_90a", "XXXXXFXXXXX"},  {"sm_100", "MMMMMMFFMMM"},
        {"sm_100f", "YYYYYYFFYYY"}, {"sm_100a", "XXXXXXFXXXX"}, {"sm_103", "MMMMMMmFMMM"},  {"sm_103f", "YYYYYYmFYYY"},
        {"sm_103a", "XXXXXXXFXXX"}, {"sm_110", "MMMMMMMMFMM"},  {"sm_110f", "YYYYYYYYFYY"}, {"sm_120", "MMMMMMMMMFF"},
        {"sm_120f", "YYYYYYYYYFF"}, {"sm_120a", "XXXXXXXXXFX"}, {"sm_121", "MMMMMMMMMmF"},  {"sm_121a", "XXXXXXXXXXF"},
    };
    expect_rows(KILN_IMAGE_CUBIN, nvidia_devices, COUNT(nvidia_devices), rows, COUNT(rows));
}

static void ptx_runs_on_everything_not_lower_unless_it_has_a_suffix(void **state) {
    (void)state;
    static const verdict_row rows[] = {
        {"sm_75", "FFFFFFFFFFF"},   {"sm_80", "CFFFFFFFFFF"},  {"sm_86", "CCFFFFFFFFF"},   {"sm_89", "CCCCFFFFFFF"},
        {"sm_90", "CCCCCFFFFFF"},   {"sm_90a", "XXXXXFXXXXX"}, {"sm_100", "CCCCCCFFFFF"},  {"sm_100f", "YYYYYYFFYYY"},
        {"sm_100a", "XXXXXXFXXXX"}, {"sm_120", "CCCCCCCCCFF"}, {"sm_120f", "YYYYYYYYYFF"}, {"sm_120a", "XXXXXXXXXFX"},
    };
    expect_rows(KILN_IMAGE_PTX, nvidia_devices, COUNT(nvidia_devices), rows, COUNT(rows));
}

typedef struct sentence_row {
    kiln_image_kind kind;
    const char *image;
    uint32_t format, driver_floor;
    const char *device;
    int32_t driver;
    const char *sentence;
} sentence_row;

static void expect_sentences(const sentence_row *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        char text[256];
        kiln_image image = image_of(rows[i].kind, rows[i].image, rows[i].format, rows[i].driver_floor);
        kiln_target target = target_of(rows[i].device, rows[i].driver);
        assert_string_equal(sentence_of(&image, &target, text, sizeof text), rows[i].sentence);
    }
}

static void a_driver_reads_ptx_up_to_its_own_version(void **state) {
    (void)state;
    static const sentence_row rows[] = {
        {KILN_IMAGE_PTX, "sm_75", 63, 0, "sm_75", 10000, "sm_75 ptx: fits"},
        {KILN_IMAGE_PTX, "sm_75", 64, 0, "sm_75", 10000, "sm_75 ptx: needs driver 10.1 for PTX 6.4, driver is 10.0"},
        {KILN_IMAGE_PTX, "sm_80", 70, 0, "sm_80", 10020, "sm_80 ptx: needs driver 11.0 for PTX 7.0, driver is 10.2"},
        {KILN_IMAGE_PTX, "sm_80", 78, 0, "sm_80", 11080, "sm_80 ptx: fits"},
        {KILN_IMAGE_PTX, "sm_80", 78, 0, "sm_80", 11070, "sm_80 ptx: needs driver 11.8 for PTX 7.8, driver is 11.7"},
        {KILN_IMAGE_PTX, "sm_90", 80, 0, "sm_90", 11080, "sm_90 ptx: needs driver 12.0 for PTX 8.0, driver is 11.8"},
        {KILN_IMAGE_PTX, "sm_90", 84, 0, "sm_90", 12040, "sm_90 ptx: fits"},
        {KILN_IMAGE_PTX, "sm_90", 85, 0, "sm_90", 12040, "sm_90 ptx: needs driver 12.5 for PTX 8.5, driver is 12.4"},
        {KILN_IMAGE_PTX, "sm_100", 86, 0, "sm_100", 12060, "sm_100 ptx: needs driver 12.7 for PTX 8.6, driver is 12.6"},
        {KILN_IMAGE_PTX, "sm_100", 86, 0, "sm_100", 12070, "sm_100 ptx: fits"},
        {KILN_IMAGE_PTX, "sm_120", 87, 0, "sm_120", 12070, "sm_120 ptx: needs driver 12.8 for PTX 8.7, driver is 12.7"},
        {KILN_IMAGE_PTX, "sm_75", 90, 0, "sm_90", 12090, "sm_75 ptx: needs driver 13.0 for PTX 9.0, driver is 12.9"},
        {KILN_IMAGE_PTX, "sm_75", 93, 0, "sm_90", 13020, "sm_75 ptx: needs driver 13.3 for PTX 9.3, driver is 13.2"},
        {KILN_IMAGE_PTX, "sm_75", 99, 0, "sm_90", 13030, "sm_75 ptx: needs driver 13.9 for PTX 9.9, driver is 13.3"},
        {KILN_IMAGE_PTX, "sm_75", 100, 0, "sm_90", 13030,
         "sm_75 ptx: needs driver newer than this kiln knows for PTX 10.0, driver is 13.3"},
        {KILN_IMAGE_PTX, "sm_90a", 80, 0, "sm_80", 11040,
         "sm_90a ptx: needs exactly sm_90a; needs driver 12.0 for PTX 8.0, device is sm_80, driver is 11.4"},
        {KILN_IMAGE_CUBIN, "sm_90", 0, 13000, "sm_90", 12080, "sm_90 cubin: needs driver 13.0, driver is 12.8"},
        {KILN_IMAGE_CUBIN, "sm_90", 0, 13000, "sm_90", 13000, "sm_90 cubin: fits"},
        {KILN_IMAGE_CUBIN, "sm_90a", 0, 0, "sm_120", 13000, "sm_90a cubin: needs exactly sm_90a, device is sm_120"},
    };
    expect_sentences(rows, COUNT(rows));
}

static void amd_images_need_their_processor_or_its_family_and_equal_features(void **state) {
    (void)state;
    static const sentence_row rows[] = {
        {KILN_IMAGE_HSACO, "gfx942", 5, 0, "gfx942", 0, "gfx942 hsaco: fits"},
        {KILN_IMAGE_HSACO, "gfx942", 5, 0, "gfx90a", 0,
         "gfx942 hsaco: is for another processor, device is gfx90a:sramecc+:xnack-"},
        {KILN_IMAGE_HSACO, "gfx90a", 5, 0, "gfx942", 0,
         "gfx90a hsaco: is for another processor, device is gfx942:sramecc+:xnack-"},
        {KILN_IMAGE_HSACO, "gfx90a:xnack-", 5, 0, "gfx90a", 0, "gfx90a:xnack- hsaco: fits"},
        {KILN_IMAGE_HSACO, "gfx90a:xnack+", 5, 0, "gfx90a", 0,
         "gfx90a:xnack+ hsaco: its xnack setting differs, device is gfx90a:sramecc+:xnack-"},
        {KILN_IMAGE_HSACO, "gfx90a:xnack+", 5, 0, "gfx90a:xnack+", 0, "gfx90a:xnack+ hsaco: fits"},
        {KILN_IMAGE_HSACO, "gfx90a:xnack-", 5, 0, "gfx90a:xnack+", 0,
         "gfx90a:xnack- hsaco: its xnack setting differs, device is gfx90a:sramecc+:xnack+"},
        {KILN_IMAGE_HSACO, "gfx90a:sramecc-", 5, 0, "gfx90a", 0,
         "gfx90a:sramecc- hsaco: its sramecc setting differs, device is gfx90a:sramecc+:xnack-"},
        {KILN_IMAGE_HSACO, "gfx90a:sramecc-", 5, 0, "gfx90a:sramecc-", 0, "gfx90a:sramecc- hsaco: fits"},
        {KILN_IMAGE_HSACO, "gfx90a:sramecc-:xnack+", 5, 0, "gfx90a", 0,
         "gfx90a:sramecc-:xnack+ hsaco: its xnack setting differs; its sramecc setting differs, device is "
         "gfx90a:sramecc+:xnack-"},
        {KILN_IMAGE_HSACO, "gfx942:xnack+", 5, 0, "gfx90a", 0,
         "gfx942:xnack+ hsaco: is for another processor; its xnack setting differs, device is gfx90a:sramecc+:xnack-"},
        {KILN_IMAGE_HSACO, "gfx11-generic", 6, 0, "gfx1100", 0, "gfx11-generic hsaco: fits"},
        {KILN_IMAGE_HSACO, "gfx11-generic", 6, 0, "gfx1103", 0, "gfx11-generic hsaco: fits"},
        {KILN_IMAGE_HSACO, "gfx11-generic", 6, 0, "gfx1151", 0, "gfx11-generic hsaco: fits"},
        {KILN_IMAGE_HSACO, "gfx11-generic", 6, 0, "gfx1201", 0,
         "gfx11-generic hsaco: is for another processor, device is gfx1201"},
        {KILN_IMAGE_HSACO, "gfx12-generic", 6, 0, "gfx1200", 0, "gfx12-generic hsaco: fits"},
        {KILN_IMAGE_HSACO, "gfx12-generic", 6, 0, "gfx1201", 0, "gfx12-generic hsaco: fits"},
        {KILN_IMAGE_HSACO, "gfx10-3-generic", 6, 0, "gfx1030", 0, "gfx10-3-generic hsaco: fits"},
        {KILN_IMAGE_HSACO, "gfx10-3-generic", 6, 0, "gfx1036", 0, "gfx10-3-generic hsaco: fits"},
        {KILN_IMAGE_HSACO, "gfx10-3-generic", 6, 0, "gfx1010", 0,
         "gfx10-3-generic hsaco: is for another processor, device is gfx1010:xnack-"},
        {KILN_IMAGE_HSACO, "gfx10-1-generic", 6, 0, "gfx1013", 0, "gfx10-1-generic hsaco: fits"},
        {KILN_IMAGE_HSACO, "gfx9-generic", 6, 0, "gfx906", 0, "gfx9-generic hsaco: fits"},
        {KILN_IMAGE_HSACO, "gfx9-generic", 6, 0, "gfx900", 0, "gfx9-generic hsaco: fits"},
        {KILN_IMAGE_HSACO, "gfx9-generic", 6, 0, "gfx908", 0,
         "gfx9-generic hsaco: is for another processor, device is gfx908:sramecc+:xnack-"},
        {KILN_IMAGE_HSACO, "gfx9-generic", 6, 0, "gfx90a", 0,
         "gfx9-generic hsaco: is for another processor, device is gfx90a:sramecc+:xnack-"},
        {KILN_IMAGE_HSACO, "gfx9-4-generic", 6, 0, "gfx942", 0, "gfx9-4-generic hsaco: fits"},
        {KILN_IMAGE_HSACO, "gfx1100", 5, 0, "gfx1101", 0, "gfx1100 hsaco: is for another processor, device is gfx1101"},
        {KILN_IMAGE_HSACO, "gfx110", 5, 0, "gfx1100", 0, "gfx110 hsaco: is for another processor, device is gfx1100"},
        {KILN_IMAGE_HSACO, "gfx90a:colour+", 5, 0, "gfx90a", 0, "gfx90a:colour+ hsaco: its table entry is malformed"},
    };
    expect_sentences(rows, COUNT(rows));
}

static void cpu_levels_and_foreign_backends(void **state) {
    (void)state;
    static const sentence_row rows[] = {
        {KILN_IMAGE_CPU, "x86-64-v2", 0, 0, "x86-64-v3", 0, "x86-64-v2 cpu: fits"},
        {KILN_IMAGE_CPU, "x86-64-v3", 0, 0, "x86-64-v3", 0, "x86-64-v3 cpu: fits"},
        {KILN_IMAGE_CPU, "x86-64-v4", 0, 0, "x86-64-v3", 0, "x86-64-v4 cpu: needs x86-64-v4, device is x86-64-v3"},
        {KILN_IMAGE_CPU, "x86-64-v2", 0, 0, "aarch64", 0, "x86-64-v2 cpu: is for another processor, device is aarch64"},
        {KILN_IMAGE_CPU, "aarch64", 0, 0, "aarch64", 0, "aarch64 cpu: fits"},
        {KILN_IMAGE_CPU, "riscv64", 0, 0, "x86-64-v2", 0,
         "riscv64 cpu: its target is not known to this version of kiln"},
        {KILN_IMAGE_CPU, "x86-64-v2", 0, 0, "sm_90", 0, "x86-64-v2 cpu: is for another backend, device is on cuda"},
        {KILN_IMAGE_PTX, "sm_75", 63, 0, "gfx942", 0, "sm_75 ptx: is for another backend, device is on rocm"},
        {KILN_IMAGE_CUBIN, "sm_80", 0, 0, "x86-64-v3", 0, "sm_80 cubin: is for another backend, device is on cpu"},
        {KILN_IMAGE_HSACO, "gfx942", 5, 0, "sm_90", 0, "gfx942 hsaco: is for another backend, device is on cuda"},
        {KILN_IMAGE_CUBIN, "sm_9", 0, 0, "sm_90", 0, "sm_9 cubin: its table entry is malformed"},
        {KILN_IMAGE_CUBIN, "sm_90x", 0, 0, "sm_90", 0, "sm_90x cubin: its table entry is malformed"},
        {KILN_IMAGE_CUBIN, "sm_1234", 0, 0, "sm_90", 0, "sm_1234 cubin: its table entry is malformed"},
        {KILN_IMAGE_PTX, "compute_90", 80, 0, "sm_90", 0, "compute_90 ptx: its table entry is malformed"},
    };
    expect_sentences(rows, COUNT(rows));
}

/* A CPU below every level: no image fits, and the sentence says what would. */
static void a_cpu_below_every_level_is_told_what_it_lacks(void **state) {
    (void)state;
    char text[256];
    kiln_image image = image_of(KILN_IMAGE_CPU, "x86-64-v2", 0, 0);
    kiln_target target = {.backend = KILN_BACKEND_CPU};
    assert_string_equal(sentence_of(&image, &target, text, sizeof text),
                        "x86-64-v2 cpu: needs x86-64-v2, device is a CPU below every level");
}

/* ---- The order ---- */

typedef struct order_row {
    const char *device;
    int32_t driver;
    const char *picked; /* every image that fits, best first */
} order_row;

/* A bundle with everything in it. */
static uint32_t everything(kiln_image images[32]) {
    static const char *const nvidia[] = {"sm_75",  "sm_80",   "sm_86",   "sm_89",  "sm_90",   "sm_90a",
                                         "sm_100", "sm_100f", "sm_100a", "sm_120", "sm_120f", "sm_120a"};
    static const uint32_t ptx[] = {63, 70, 71, 78, 78, 80, 86, 88, 86, 87, 88, 87};
    static const char *const amd[] = {"gfx9-generic", "gfx11-generic", "gfx1100", "gfx90a", "gfx90a:xnack-", "gfx942"};
    uint32_t count = 0;
    for (size_t i = 0; i < COUNT(nvidia); i++)
        images[count++] = image_of(KILN_IMAGE_PTX, nvidia[i], ptx[i], 0);
    for (size_t i = 0; i < COUNT(nvidia); i++)
        images[count++] = image_of(KILN_IMAGE_CUBIN, nvidia[i], 0, 0);
    for (size_t i = 0; i < COUNT(amd); i++)
        images[count++] = image_of(KILN_IMAGE_HSACO, amd[i], 5, 0);
    images[count++] = image_of(KILN_IMAGE_CPU, "x86-64-v2", 0, 0);
    images[count++] = image_of(KILN_IMAGE_CPU, "x86-64-v4", 0, 0);
    return count;
}

static void expect_order(const kiln_part *part, const order_row *row) {
    kiln_candidate candidates[32];
    uint32_t fitting;
    kiln_bundle bundle = bundle_of(part);
    kiln_target target = target_of(row->device, row->driver);
    assert_int_equal(kiln_select(&bundle, part, &target, candidates, &fitting), KILN_OK);
    char text[512] = "";
    for (uint32_t i = 0; i < fitting; i++) {
        const kiln_image *image = &part->images[candidates[i].image];
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s %s", i ? ", " : "", image->target,
                 kiln_image_kind_name(image->kind));
    }
    assert_string_equal(text, row->picked);
    for (uint32_t i = fitting; i < part->image_count; i++)
        assert_true(candidates[i].reasons != 0 && candidates[i].rank == 0);
}

/* Device by device, what is picked from all of it. */
static void the_best_image_comes_first(void **state) {
    (void)state;
    static const order_row rows[] = {
        {"sm_75", 13000, "sm_75 cubin, sm_75 ptx"},
        {"sm_70", 13000, ""},
        {"sm_80", 13000, "sm_80 cubin, sm_80 ptx, sm_75 ptx"},
        {"sm_86", 13000, "sm_86 cubin, sm_80 cubin, sm_86 ptx, sm_80 ptx, sm_75 ptx"},
        {"sm_87", 13000, "sm_86 cubin, sm_80 cubin, sm_86 ptx, sm_80 ptx, sm_75 ptx"},
        {"sm_89", 13000, "sm_89 cubin, sm_86 cubin, sm_80 cubin, sm_89 ptx, sm_86 ptx, sm_80 ptx, sm_75 ptx"},
        {"sm_90", 13000,
         "sm_90a cubin, sm_90 cubin, sm_90a ptx, sm_90 ptx, sm_89 ptx, sm_86 ptx, sm_80 ptx, sm_75 ptx"},
        {"sm_90", 11080, "sm_90a cubin, sm_90 cubin, sm_90 ptx, sm_89 ptx, sm_86 ptx, sm_80 ptx, sm_75 ptx"},
        {"sm_90", 11000, "sm_90a cubin, sm_90 cubin, sm_80 ptx, sm_75 ptx"},
        {"sm_100", 12070,
         "sm_100a cubin, sm_100f cubin, sm_100 cubin, sm_100a ptx, sm_100 ptx, sm_90 ptx, sm_89 ptx, sm_86 ptx, sm_80 "
         "ptx, sm_75 ptx"},
        {"sm_103", 13000,
         "sm_100f cubin, sm_100 cubin, sm_100f ptx, sm_100 ptx, sm_90 ptx, sm_89 ptx, sm_86 ptx, sm_80 ptx, sm_75 ptx"},
        {"sm_110", 13000, "sm_100 ptx, sm_90 ptx, sm_89 ptx, sm_86 ptx, sm_80 ptx, sm_75 ptx"},
        {"sm_120", 13000,
         "sm_120a cubin, sm_120f cubin, sm_120 cubin, sm_120a ptx, sm_120f ptx, sm_120 ptx, sm_100 ptx, sm_90 ptx, "
         "sm_89 ptx, sm_86 ptx, sm_80 ptx, sm_75 ptx"},
        {"sm_121", 12080,
         "sm_120f cubin, sm_120 cubin, sm_120 ptx, sm_100 ptx, sm_90 ptx, sm_89 ptx, sm_86 ptx, sm_80 ptx, sm_75 ptx"},
        {"gfx90a", 0, "gfx90a:xnack- hsaco, gfx90a hsaco"},
        {"gfx90a:xnack+", 0, "gfx90a hsaco"},
        {"gfx942", 0, "gfx942 hsaco"},
        {"gfx906", 0, "gfx9-generic hsaco"},
        {"gfx1100", 0, "gfx1100 hsaco, gfx11-generic hsaco"},
        {"gfx1102", 0, "gfx11-generic hsaco"},
        {"gfx1201", 0, ""},
        {"x86-64-v2", 0, "x86-64-v2 cpu"},
        {"x86-64-v3", 0, "x86-64-v2 cpu"},
        {"x86-64-v4", 0, "x86-64-v4 cpu, x86-64-v2 cpu"},
        {"aarch64", 0, ""},
    };
    kiln_image images[32];
    kiln_part part = part_of(images, everything(images));
    for (size_t r = 0; r < COUNT(rows); r++)
        expect_order(&part, &rows[r]);
}

static void bad_arguments_are_refused(void **state) {
    (void)state;
    kiln_image image = image_of(KILN_IMAGE_PTX, "sm_75", 63, 0);
    kiln_part part = part_of(&image, 1);
    kiln_bundle bundle = bundle_of(&part);
    kiln_target target = target_of("sm_90", 0);
    kiln_candidate candidate;
    uint32_t fitting = 7;
    assert_int_equal(kiln_select(NULL, &part, &target, &candidate, &fitting), KILN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(fitting, 0);
    assert_int_equal(kiln_select(&bundle, NULL, &target, &candidate, &fitting), KILN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(kiln_select(&bundle, &part, NULL, &candidate, &fitting), KILN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(kiln_select(&bundle, &part, &target, NULL, &fitting), KILN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(kiln_select(&bundle, &part, &target, &candidate, NULL), KILN_ERROR_INVALID_ARGUMENT);
    bundle.version = 2;
    assert_int_equal(kiln_select(&bundle, &part, &target, &candidate, &fitting), KILN_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(kiln_last_error(), "version 2"));
    bundle.version = KILN_BUNDLE_VERSION;
    part.image_size = 12;
    assert_int_equal(kiln_select(&bundle, &part, &target, &candidate, &fitting), KILN_ERROR_INVALID_ARGUMENT);
    part.image_size = sizeof image;
    part.images = NULL;
    assert_int_equal(kiln_select(&bundle, &part, &target, &candidate, &fitting), KILN_ERROR_INVALID_ARGUMENT);
}

/* A table compiled against a later kiln has longer entries: each is found all the same. */
static void tables_with_longer_entries_are_read(void **state) {
    (void)state;
    struct {
        kiln_image image;
        uint64_t later[3];
    } images[3] = {{image_of(KILN_IMAGE_PTX, "sm_75", 63, 0), {~0ull, ~0ull, ~0ull}},
                   {image_of(KILN_IMAGE_CUBIN, "sm_90", 0, 0), {~0ull, ~0ull, ~0ull}},
                   {image_of(KILN_IMAGE_CUBIN, "sm_90a", 0, 0), {~0ull, ~0ull, ~0ull}}};
    kiln_part part = part_of(&images[0].image, 3);
    part.image_size = sizeof images[0];
    kiln_bundle bundle = bundle_of(&part);
    kiln_target target = target_of("sm_90", 0);
    kiln_candidate candidates[3];
    uint32_t fitting;
    assert_int_equal(kiln_select(&bundle, &part, &target, candidates, &fitting), KILN_OK);
    assert_int_equal(fitting, 3);
    assert_int_equal(candidates[0].image, 2);
    assert_int_equal(candidates[1].image, 1);
    assert_int_equal(candidates[2].image, 0);
}

/* ---- A second selector, as plain as can be, against random bundles ---- */

typedef struct fact {
    int fits, tier, number, suffix;
} fact;

static int first_driver(uint32_t ptx) {
    return (int)ptx == 63 ? 10000
           : ptx < 80     ? 11000 + ((int)ptx - 70) * 10
           : ptx < 86     ? 12000 + ((int)ptx - 80) * 10
                          : 12070 + ((int)ptx - 86) * 10;
}

static fact brute_nvidia(const kiln_image *image, const kiln_target *target) {
    int number = atoi(image->target + 3), device = target->compute_capability;
    char suffix = image->target[strlen(image->target) - 1];
    int is_ptx = image->kind == KILN_IMAGE_PTX, same_major = number / 10 == device / 10;
    fact out = {0, 0, number, suffix == 'a' ? 2 : suffix == 'f' ? 1 : 0};
    out.fits = suffix == 'a'   ? number == device
               : suffix == 'f' ? same_major && device >= number
               : is_ptx        ? device >= number
                               : same_major && device >= number;
    if (is_ptx && target->driver_version < first_driver(image->format_version)) out.fits = 0;
    if (image->driver_version > (uint32_t)target->driver_version) out.fits = 0;
    out.tier = is_ptx ? 0 : number == device ? 2 : 1;
    return out;
}

static fact brute_amd(const kiln_image *image, const kiln_target *target) {
    char name[64];
    snprintf(name, sizeof name, "%s", image->target);
    char *features = strchr(name, ':');
    int stated = 0, wrong = 0;
    if (features) {
        *features++ = '\0';
        stated = 1 + (strchr(features, ':') != NULL);
        if (strstr(features, "xnack+") && target->xnack != 2) wrong = 1;
        if (strstr(features, "xnack-") && target->xnack != 1) wrong = 1;
        if (strstr(features, "sramecc+") && target->sramecc != 2) wrong = 1;
        if (strstr(features, "sramecc-") && target->sramecc != 1) wrong = 1;
    }
    int exact = strcmp(name, target->processor) == 0, generic = strcmp(name, target->generic) == 0;
    return (fact){!wrong && (exact || generic), exact, stated, 0};
}

static fact brute(const kiln_image *image, const kiln_target *target) {
    if (image->kind == KILN_IMAGE_CPU && target->backend == KILN_BACKEND_CPU) {
        int wanted = image->target[8] - '0', machine = target->processor[8] - '0';
        return (fact){wanted <= machine, wanted, 0, 0};
    }
    if (image->kind == KILN_IMAGE_HSACO && target->backend == KILN_BACKEND_ROCM) return brute_amd(image, target);
    if (image->kind <= KILN_IMAGE_CUBIN && target->backend == KILN_BACKEND_CUDA) return brute_nvidia(image, target);
    return (fact){0, 0, 0, 0};
}

static int better(fact a, fact b) {
    if (a.tier != b.tier) return a.tier > b.tier;
    if (a.number != b.number) return a.number > b.number;
    return a.suffix > b.suffix;
}

static unsigned next_random(uint64_t *seed) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(*seed >> 33);
}

static kiln_image random_image(uint64_t *seed) {
    static const char *const nvidia[] = {"sm_75",   "sm_80",   "sm_86",  "sm_89",   "sm_90",  "sm_90a",  "sm_100",
                                         "sm_100f", "sm_100a", "sm_103", "sm_103f", "sm_120", "sm_120f", "sm_120a"};
    static const uint32_t ptx[] = {63, 70, 72, 78, 80, 82, 84, 86, 87, 88};
    static const char *const amd[] = {
        "gfx90a", "gfx90a:xnack-", "gfx90a:xnack+", "gfx942",        "gfx942:sramecc+:xnack-",
        "gfx906", "gfx9-generic",  "gfx1100",       "gfx11-generic", "gfx9-4-generic"};
    static const char *const cpu[] = {"x86-64-v2", "x86-64-v3", "x86-64-v4"};
    switch (next_random(seed) % 4) {
    case 0:
        return image_of(KILN_IMAGE_PTX, nvidia[next_random(seed) % COUNT(nvidia)], ptx[next_random(seed) % COUNT(ptx)],
                        0);
    case 1:
        return image_of(KILN_IMAGE_CUBIN, nvidia[next_random(seed) % COUNT(nvidia)], 0,
                        next_random(seed) % 3 ? 0 : 12080);
    case 2:
        return image_of(KILN_IMAGE_HSACO, amd[next_random(seed) % COUNT(amd)], 5, 0);
    default:
        return image_of(KILN_IMAGE_CPU, cpu[next_random(seed) % COUNT(cpu)], 0, 0);
    }
}

static void a_brute_force_selector_agrees_on_random_bundles(void **state) {
    (void)state;
    static const char *const devices[] = {"sm_75",         "sm_80",     "sm_86",           "sm_89",    "sm_90",
                                          "sm_100",        "sm_103",    "sm_120",          "sm_121",   "gfx90a",
                                          "gfx90a:xnack+", "gfx942",    "gfx942:sramecc-", "gfx906",   "gfx1100",
                                          "gfx1103",       "x86-64-v2", "x86-64-v3",       "x86-64-v4"};
    const char *given = getenv("KILN_TEST_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    print_message("# seed %llu\n", (unsigned long long)seed);
    for (int round = 0; round < 20000; round++) {
        kiln_image images[24];
        uint32_t count = next_random(&seed) % 25;
        for (uint32_t i = 0; i < count; i++)
            images[i] = random_image(&seed);
        kiln_part part = part_of(images, count);
        kiln_bundle bundle = bundle_of(&part);
        kiln_target target = target_of(devices[next_random(&seed) % COUNT(devices)],
                                       (int32_t)(next_random(&seed) % 2 ? 13000 : 11000 + next_random(&seed) % 9 * 10));
        kiln_candidate candidates[24];
        uint32_t fitting, expected_fitting = 0, seen = 0;
        assert_int_equal(kiln_select(&bundle, &part, &target, candidates, &fitting), KILN_OK);
        for (uint32_t i = 0; i < count; i++)
            expected_fitting += (uint32_t)brute(&images[i], &target).fits;
        assert_int_equal(fitting, expected_fitting);
        for (uint32_t i = 0; i < count; i++) {
            fact here = brute(&images[candidates[i].image], &target);
            assert_int_equal(here.fits, i < fitting);
            seen |= 1u << candidates[i].image;
            if (i == 0 || i >= fitting) continue;
            fact before = brute(&images[candidates[i - 1].image], &target);
            assert_false(better(here, before));
            if (!better(before, here)) assert_true(candidates[i - 1].image < candidates[i].image);
        }
        assert_int_equal(seen, count == 24 ? 0xffffffu : (1u << count) - 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cubins_run_on_their_major_and_no_lower_minor),
        cmocka_unit_test(ptx_runs_on_everything_not_lower_unless_it_has_a_suffix),
        cmocka_unit_test(a_driver_reads_ptx_up_to_its_own_version),
        cmocka_unit_test(amd_images_need_their_processor_or_its_family_and_equal_features),
        cmocka_unit_test(cpu_levels_and_foreign_backends),
        cmocka_unit_test(a_cpu_below_every_level_is_told_what_it_lacks),
        cmocka_unit_test(the_best_image_comes_first),
        cmocka_unit_test(bad_arguments_are_refused),
        cmocka_unit_test(tables_with_longer_entries_are_read),
        cmocka_unit_test(a_brute_force_selector_agrees_on_random_bundles),
    };
    return cmocka_run_group_tests_name("select", tests, NULL, NULL);
}
