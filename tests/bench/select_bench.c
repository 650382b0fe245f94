/* What selection costs: 1,000 bundles of 20 images each, judged for devices of each vendor. Prints the nanoseconds of
 * one bundle, the least of several rounds. */
#include "loader/target.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { BUNDLES = 1000, IMAGES = 20, ROUNDS = 20, LIMIT_NS = 1000 };

static kiln_image images[BUNDLES][IMAGES];
static kiln_part parts[BUNDLES];
static kiln_bundle bundles[BUNDLES];

/* The images that a portable operator has, and a few more: rows of both vendors' lists in turn. */
static kiln_image make_image(size_t number) {
    kiln_image image = {.data = "", .size = 1, .kernel_size = sizeof(kiln_kernel_info)};
    if (number % 2) {
        image.target = kiln__amd_targets[number / 2 % kiln__amd_target_count].name;
        image.kind = KILN_IMAGE_HSACO;
        image.format_version = 5;
    } else {
        const kiln__nvidia_target *row = &kiln__nvidia_targets[number / 2 % kiln__nvidia_target_count];
        image.target = row->name;
        image.kind = number % 4 ? KILN_IMAGE_CUBIN : KILN_IMAGE_PTX;
        image.format_version = (uint32_t)row->ptx_version;
        image.driver_version = (uint32_t)kiln__ptx_driver(row->ptx_version);
    }
    return image;
}

static void make_bundles(void) {
    static const char *const kernel_names[] = {"kernel"};
    static const kiln_kernel_info kernels[] = {{.name = "kernel"}};
    for (size_t i = 0; i < BUNDLES; i++) {
        for (size_t j = 0; j < IMAGES; j++) {
            images[i][j] = make_image(i + j);
            images[i][j].kernels = kernels;
        }
        parts[i] = (kiln_part){.name = "f16",
                               .images = images[i],
                               .kernel_names = kernel_names,
                               .image_count = IMAGES,
                               .image_size = sizeof(kiln_image),
                               .kernel_count = 1};
        bundles[i] = (kiln_bundle){.version = KILN_BUNDLE_VERSION,
                                   .part_size = sizeof(kiln_part),
                                   .name = "bench",
                                   .parts = &parts[i],
                                   .part_count = 1};
    }
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Nanoseconds for each bundle. */
static double measure(const kiln_target *target) {
    double least = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        double begin = seconds();
        for (size_t i = 0; i < BUNDLES; i++) {
            kiln_candidate candidates[IMAGES];
            uint32_t fitting;
            if (kiln_select(&bundles[i], &parts[i], target, candidates, &fitting) != KILN_OK) return -1;
        }
        double each = (seconds() - begin) / BUNDLES * 1e9;
        if (each < least) least = each;
    }
    return least;
}

int main(int argc, char **argv) {
    static const char *const names[] = {"sm_75", "sm_90", "sm_120", "gfx942", "gfx1100", "x86-64-v3"};
    make_bundles();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        kiln_target target;
        double each = kiln_target_parse(names[i], 0, &target) == KILN_OK ? measure(&target) : -1;
        if (each < 0) {
            fprintf(stderr, "select_bench: %s\n", kiln_last_error());
            return 1;
        }
        printf("selection: %.0f ns (%s, a bundle of %d images, one of %d; limit %d: %s; config=%s)\n", each, names[i],
               IMAGES, BUNDLES, LIMIT_NS, each <= LIMIT_NS ? "ok" : "over the limit", argc > 1 ? argv[1] : "");
    }
    return 0;
}
