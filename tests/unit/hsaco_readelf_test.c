/* Every committed HSACO image: what kiln reads of it is what llvm-readelf-19 prints of it. */
#include "loader/image/hsaco.h"
#include "tests/unit/image_files.h"

#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The keys of a kernel that both have. */
static const struct {
    const char *key;
    size_t offset;
} numbers[] = {
    {".kernarg_segment_size", offsetof(kiln__hsaco_kernel, kernarg_size)},
    {".kernarg_segment_align", offsetof(kiln__hsaco_kernel, kernarg_align)},
    {".group_segment_fixed_size", offsetof(kiln__hsaco_kernel, group_bytes)},
    {".private_segment_fixed_size", offsetof(kiln__hsaco_kernel, private_bytes)},
    {".max_flat_workgroup_size", offsetof(kiln__hsaco_kernel, max_threads)},
    {".wavefront_size", offsetof(kiln__hsaco_kernel, wave_size)},
    {".vgpr_count", offsetof(kiln__hsaco_kernel, vgprs)},
    {".sgpr_count", offsetof(kiln__hsaco_kernel, sgprs)},
    {".vgpr_spill_count", offsetof(kiln__hsaco_kernel, vgpr_spills)},
    {".sgpr_spill_count", offsetof(kiln__hsaco_kernel, sgpr_spills)},
};
enum { NUMBER_COUNT = sizeof numbers / sizeof *numbers };

/* How much of the listing was recognised, so that a listing in another shape does not pass for agreement. */
typedef struct printed {
    kiln__hsaco hsaco;
    kiln__hsaco_kernel kernel;
    uint32_t kernels, hidden;
    unsigned compared;
    bool has_target;
} printed;

static void end_kernel(const printed *listing) {
    if (listing->kernels == 0) return;
    assert_int_equal(listing->kernel.hidden_count, listing->hidden);
    assert_int_equal(listing->compared, NUMBER_COUNT + 2); /* the name and the symbol */
}

static void begin_kernel(printed *listing) {
    end_kernel(listing);
    assert_int_equal(kiln__hsaco_kernel_read(&listing->hsaco, listing->kernels, &listing->kernel), KILN_OK);
    listing->kernels++;
    listing->hidden = listing->compared = 0;
}

static void compare_key(printed *listing, const char *key, const char *value) {
    const kiln__hsaco_kernel *kernel = &listing->kernel;
    for (size_t i = 0; i < NUMBER_COUNT; i++) {
        if (strcmp(key, numbers[i].key) != 0) continue;
        uint32_t number = *(const uint32_t *)(const void *)((const char *)kernel + numbers[i].offset);
        assert_int_equal(number, strtoul(value, NULL, 10));
        listing->compared++;
    }
    if (strcmp(key, ".name") == 0) assert_name(kernel->name.at, kernel->name.size, value);
    if (strcmp(key, ".symbol") == 0) assert_name(kernel->symbol.at, kernel->symbol.size, value);
    listing->compared += strcmp(key, ".name") == 0 || strcmp(key, ".symbol") == 0;
}

/* One line of YAML. A kernel begins with "  - "; its keys stand 4 columns in, those of its arguments 8. */
static void compare_line(printed *listing, char *line) {
    char key[64], value[512];
    line[strcspn(line, "\n")] = '\0';
    if (strncmp(line, "  - .", 5) == 0) begin_kernel(listing);
    if (sscanf(line, "amdhsa.target: %511s", value) == 1) {
        char target[128];
        /* LLVM quotes a target with features, since it has colons in it */
        snprintf(target, sizeof target, strchr(value, '\'') ? "'amdgcn-amd-amdhsa--%s'" : "amdgcn-amd-amdhsa--%s",
                 listing->hsaco.target);
        assert_string_equal(target, value);
        listing->has_target = true;
    }
    if ((strncmp(line, "    .", 5) == 0 || strncmp(line, "  - .", 5) == 0) &&
        sscanf(line + 4, "%63[^:]: %511s", key, value) == 2)
        compare_key(listing, key, value);
    listing->hidden += strstr(line, ".value_kind:") && strstr(line, " hidden_");
}

/* The next file of the listing, which refers to its bytes. */
static void begin_file(printed *listing, const char *path) {
    static uint8_t bytes[4 << 20];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    *listing = (printed){.kernels = 0};
    assert_int_equal(kiln__hsaco_read(bytes, size, &listing->hsaco), KILN_OK);
}

static void end_file(const printed *listing) {
    end_kernel(listing);
    assert_int_equal(listing->kernels, listing->hsaco.kernel_count);
    assert_true(listing->kernels > 0 && listing->has_target);
}

/* One listing of all, which begins each with its name: starting the tool takes longer than it does for a file. The
 * shell has the files in glob's order. */
static void compare_files(const char *pattern) {
    if (system("command -v llvm-readelf-19 >/dev/null") != 0) {
        print_message("llvm-readelf-19 is not here (Debian: apt-get install llvm-19)\n");
        skip();
    }
    glob_t files;
    char command[512], line[1024], path[512];
    size_t begun = 0;
    static printed listing;
    assert_int_equal(glob(pattern, 0, NULL, &files), 0);
    snprintf(command, sizeof command, "export LC_ALL=C; llvm-readelf-19 --notes %s", pattern);
    FILE *output = popen(command, "r");
    assert_non_null(output);
    while (fgets(line, sizeof line, output)) {
        if (sscanf(line, "File: %511s", path) != 1) {
            compare_line(&listing, line);
            continue;
        }
        if (begun) end_file(&listing);
        assert_true(begun < files.gl_pathc);
        assert_string_equal(path, files.gl_pathv[begun++]);
        begin_file(&listing, path);
    }
    assert_int_equal(pclose(output), 0);
    end_file(&listing);
    assert_int_equal(begun, files.gl_pathc);
    globfree(&files);
}

static void embedded_images(void **state) {
    (void)state;
    compare_files("embedded/*/*.hsaco");
}

static void images_of_the_tests(void **state) {
    (void)state;
    compare_files("tests/unit/images/*.hsaco");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(embedded_images),
        cmocka_unit_test(images_of_the_tests),
    };
    return cmocka_run_group_tests_name("hsaco_readelf", tests, NULL, NULL);
}
