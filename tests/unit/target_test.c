/* The names of targets, and the tables behind them, against numbers written by hand from the vendors' documents. */
#include "loader/target.h"
#include "tests/unit/image_files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/documented.h"

/* The PTX ISA's release history: which CUDA brought which version. */
static void drivers_of_ptx_versions(void **state) {
    (void)state;
    static const struct {
        int32_t ptx, driver;
    } cases[] = {
        {63, 10000}, {64, 10010}, {65, 10020}, {70, 11000}, {71, 11010}, {74, 11040}, {77, 11070},
        {78, 11080}, {80, 12000}, {81, 12010}, {84, 12040}, {85, 12050}, {86, 12070}, {87, 12080},
        {88, 12090}, {90, 13000}, {91, 13010}, {92, 13020}, {93, 13030},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(kiln__ptx_driver(cases[i].ptx), cases[i].driver);
        assert_int_equal(kiln__driver_ptx(cases[i].driver), cases[i].ptx);
    }
    assert_int_equal(kiln__ptx_driver(94), 13040); /* by the rule that has held: 9.x came with 13.x */
    assert_int_equal(kiln__ptx_driver(99), 13090);
    assert_int_equal(kiln__ptx_driver(100), INT32_MAX);
    assert_int_equal(kiln__ptx_driver(60), 10000);
    assert_int_equal(kiln__driver_ptx(9020), 0);
    assert_int_equal(kiln__driver_ptx(12060), 85); /* CUDA 12.6 brought no PTX of its own */
    assert_int_equal(kiln__driver_ptx(13990), 93);
}

static void names_of_nvidia_targets(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int32_t capability; /* 0: none */
        char suffix;
    } cases[] = {
        {"sm_75", 75, 0},     {"sm_90a", 90, 'a'}, {"sm_100f", 100, 'f'}, {"sm_121", 121, 0}, {"sm_103a", 103, 'a'},
        {"sm_7", 0, 0},       {"sm_1000", 0, 0},   {"sm_090", 0, 0},      {"sm_90b", 0, 0},   {"sm_90aa", 0, 0},
        {"sm_90a ", 0, 0},    {"SM_90", 0, 0},     {"sm_", 0, 0},         {"sm90", 0, 0},     {"", 0, 0},
        {"compute_90", 0, 0}, {"sm_-90", 0, 0},    {"sm_9a", 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int32_t capability = 0;
        char suffix = 0;
        assert_int_equal(kiln__nvidia_parse(cases[i].name, &capability, &suffix), cases[i].capability != 0);
        assert_int_equal(capability, cases[i].capability);
        assert_int_equal(suffix, cases[i].suffix);
    }
}

static void names_of_amd_targets(void **state) {
    (void)state;
    static const struct {
        const char *isa, *processor, *generic; /* processor NULL: malformed */
        int32_t xnack, sramecc;
    } cases[] = {
        {"amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-", "gfx942", "gfx9-4-generic", 1, 2},
        {"amdgcn-amd-amdhsa--gfx90a:sramecc-:xnack+", "gfx90a", "", 2, 1},
        {"amdgcn-amd-amdhsa--gfx1100", "gfx1100", "gfx11-generic", 0, 0},
        {"gfx942:xnack-:sramecc+", "gfx942", "gfx9-4-generic", 1, 2},
        {"gfx90a", "gfx90a", "", 0, 0},
        {"gfx906:sramecc+:xnack-", "gfx906", "gfx9-generic", 1, 2},
        {"gfx11-generic", "gfx11-generic", "", 0, 0},
        {"gfx1399", "gfx1399", "", 0, 0}, /* not in the list: no family */
        {"gfx", NULL, NULL, 0, 0},
        {"gfx94", NULL, NULL, 0, 0},
        {"sm_90", NULL, NULL, 0, 0},
        {"", NULL, NULL, 0, 0},
        {"gfx942:", NULL, NULL, 0, 0},
        {"gfx942:xnack", NULL, NULL, 0, 0},
        {"gfx942:xnack*", NULL, NULL, 0, 0},
        {"gfx942:xnack+:xnack+", NULL, NULL, 0, 0},
        {"gfx942:xnack+,sramecc+", NULL, NULL, 0, 0},
        {"gfx942:tgsplit+", NULL, NULL, 0, 0},
        {"gfx99999999999999999999999999999", NULL, NULL, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kiln_target target;
        assert_int_equal(kiln__amd_parse(cases[i].isa, &target), cases[i].processor != NULL);
        if (!cases[i].processor) continue;
        assert_int_equal(target.backend, KILN_BACKEND_ROCM);
        assert_string_equal(target.processor, cases[i].processor);
        assert_string_equal(target.generic, cases[i].generic);
        assert_int_equal(target.xnack, cases[i].xnack);
        assert_int_equal(target.sramecc, cases[i].sramecc);
    }
}

/* EF_AMDGPU_MACH, and which processors may be asked about xnack and sramecc. (LLVM, AMDGPUUsage.) */
static void machines_of_amd_targets(void **state) {
    (void)state;
    static const struct {
        uint32_t machine;
        const char *name;
        bool xnack, sramecc;
    } cases[] = {
        {0x2c, "gfx900", true, false},
        {0x2f, "gfx906", true, true},
        {0x30, "gfx908", true, true},
        {0x3f, "gfx90a", true, true},
        {0x4c, "gfx942", true, true},
        {0x4f, "gfx950", true, true},
        {0x33, "gfx1010", true, false},
        {0x36, "gfx1030", false, false},
        {0x41, "gfx1100", false, false},
        {0x46, "gfx1101", false, false},
        {0x47, "gfx1102", false, false},
        {0x44, "gfx1103", false, false},
        {0x43, "gfx1150", false, false},
        {0x4a, "gfx1151", false, false},
        {0x55, "gfx1152", false, false},
        {0x58, "gfx1153", false, false},
        {0x48, "gfx1200", false, false},
        {0x4e, "gfx1201", false, false},
        {0x51, "gfx9-generic", true, false},
        {0x52, "gfx10-1-generic", true, false},
        {0x53, "gfx10-3-generic", false, false},
        {0x54, "gfx11-generic", false, false},
        {0x59, "gfx12-generic", false, false},
        {0x5f, "gfx9-4-generic", true, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const kiln__amd_target *row = kiln__amd_target_by_machine(cases[i].machine);
        assert_non_null(row);
        assert_string_equal(row->name, cases[i].name);
        assert_int_equal(row->xnack, cases[i].xnack);
        assert_int_equal(row->sramecc, cases[i].sramecc);
        assert_ptr_equal(kiln__amd_target_find(cases[i].name, strlen(cases[i].name)), row);
    }
    assert_null(kiln__amd_target_by_machine(0));
    assert_null(kiln__amd_target_find("gfx94", 5));
    assert_null(kiln__amd_target_find("gfx9421", 7));
}

static void rows_are_consistent(void **state) {
    (void)state;
    for (size_t i = 0; i < kiln__amd_target_count; i++) {
        const kiln__amd_target *row = &kiln__amd_targets[i];
        assert_ptr_equal(kiln__amd_target_by_machine(row->machine), row); /* no number twice */
        if (!row->generic[0]) continue;
        const kiln__amd_target *generic = kiln__amd_target_find(row->generic, strlen(row->generic));
        assert_non_null(generic);
        assert_string_equal(generic->generic, "");
    }
    for (size_t i = 0; i < kiln__nvidia_target_count; i++) {
        const kiln__nvidia_target *row = &kiln__nvidia_targets[i];
        int32_t capability;
        char suffix;
        assert_true(kiln__nvidia_parse(row->name, &capability, &suffix));
        assert_int_equal(capability, row->capability);
        assert_int_equal(suffix, row->suffix);
        assert_int_not_equal(kiln__ptx_driver(row->ptx_version), INT32_MAX);
    }
}

/* llvm-readelf-19 names the machine in a file's flags: it must be the row's name. */
static void machines_as_llvm_names_them(void **state) {
    (void)state;
    if (system("command -v llvm-readelf-19 >/dev/null") != 0) {
        print_message("llvm-readelf-19 is not here (Debian: apt-get install llvm-19)\n");
        skip();
    }
    image_file image = image_read("gfx90a.hsaco");
    image.bytes[8] = 4;
    unsigned named = 0;
    for (size_t i = 0; i < kiln__amd_target_count; i++) {
        const char *name = kiln__amd_targets[i].name;
        char path[] = "/tmp/kiln-target-XXXXXX", command[256], line[512], wanted[64];
        image_put_u32(&image, 48, kiln__amd_targets[i].machine);
        int file = mkstemp(path);
        assert_true(file >= 0);
        assert_int_equal(write(file, image.bytes, image.size), (ssize_t)image.size);
        close(file);
        snprintf(command, sizeof command, "llvm-readelf-19 -h %s", path);
        FILE *output = popen(command, "r");
        assert_non_null(output);
        snprintf(wanted, sizeof wanted, ", %s\n", name);
        while (fgets(line, sizeof line, output)) {
            if (!strstr(line, "Flags:") || !strstr(line, ", gfx")) continue; /* a number that it does not know */
            if (!strstr(line, wanted)) fail_msg("%s is, to LLVM, %s", name, line);
            named++;
        }
        pclose(output);
        unlink(path);
    }
    assert_true(named + 3 >= kiln__amd_target_count); /* gfx950, gfx1153 and gfx9-4-generic are younger than LLVM 19 */
    free(image.bytes);
}

/* A name, what it means, and its text again. */
static void names_that_can_be_asked_about(void **state) {
    (void)state;
    static const struct {
        const char *name, *text;
        kiln_backend_id backend;
        int32_t capability;
    } cases[] = {
        {"sm_90", "sm_90", KILN_BACKEND_CUDA, 90},
        {"sm_90a", "sm_90", KILN_BACKEND_CUDA, 90}, /* the same chip */
        {"sm_120f", "sm_120", KILN_BACKEND_CUDA, 120},
        {"gfx942", "gfx942:sramecc+:xnack-", KILN_BACKEND_ROCM, 0},
        {"gfx942:xnack+", "gfx942:sramecc+:xnack+", KILN_BACKEND_ROCM, 0},
        {"gfx942:xnack+:sramecc-", "gfx942:sramecc-:xnack+", KILN_BACKEND_ROCM, 0},
        {"gfx900", "gfx900:xnack-", KILN_BACKEND_ROCM, 0},
        {"gfx1100", "gfx1100", KILN_BACKEND_ROCM, 0},
        {"x86-64-v3", "x86-64-v3", KILN_BACKEND_CPU, 0},
        {"aarch64", "aarch64", KILN_BACKEND_CPU, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kiln_target target;
        char text[64];
        assert_int_equal(kiln_target_parse(cases[i].name, 0, &target), KILN_OK);
        assert_int_equal(target.backend, cases[i].backend);
        assert_int_equal(target.compute_capability, cases[i].capability);
        assert_int_equal(target.driver_version, cases[i].backend == KILN_BACKEND_CUDA ? 13030 : 0);
        assert_int_equal(kiln_target_text(&target, text, sizeof text), strlen(cases[i].text));
        assert_string_equal(text, cases[i].text);
    }
    kiln_target target;
    assert_int_equal(kiln_target_parse("sm_80", 11040, &target), KILN_OK);
    assert_int_equal(target.driver_version, 11040);
}

static void names_that_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int32_t driver;
        kiln_status status;
        const char *text;
    } cases[] = {
        {"gfx1100:xnack-", 0, KILN_ERROR_INVALID_ARGUMENT, "gfx1100 has no xnack setting"},
        {"gfx1010:sramecc+", 0, KILN_ERROR_INVALID_ARGUMENT, "gfx1010 has no sramecc setting"},
        {"gfx1399", 0, KILN_ERROR_NOT_FOUND, "sm_120a"},
        {"sm_9", 0, KILN_ERROR_NOT_FOUND, "x86-64-v4"},
        {"", 0, KILN_ERROR_NOT_FOUND, "gfx11-generic"},
        {"sm_90", -1, KILN_ERROR_INVALID_ARGUMENT, "driver_version is -1"},
        {NULL, 0, KILN_ERROR_INVALID_ARGUMENT, "name is NULL"},
    };
    static const kiln_target zero;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kiln_target target;
        memset(&target, 0xff, sizeof target);
        assert_int_equal(kiln_target_parse(cases[i].name, cases[i].driver, &target), cases[i].status);
        assert_error_has(cases[i].text);
        assert_memory_equal(&target, &zero, sizeof target);
    }
    assert_int_equal(kiln_target_parse("sm_90", 0, NULL), KILN_ERROR_INVALID_ARGUMENT);
}

static void texts_that_are_cut(void **state) {
    (void)state;
    kiln_target target;
    char text[8];
    assert_int_equal(kiln_target_parse("gfx942", 0, &target), KILN_OK);
    assert_int_equal(kiln_target_text(&target, NULL, 0), strlen("gfx942:sramecc+:xnack-"));
    for (size_t size = 1; size <= sizeof text; size++) {
        memset(text, 'x', sizeof text);
        assert_int_equal(kiln_target_text(&target, text, size), strlen("gfx942:sramecc+:xnack-"));
        assert_int_equal(strlen(text), size - 1);
        assert_memory_equal(text, "gfx942:", size - 1);
    }
    assert_int_equal(kiln_target_text(NULL, text, sizeof text), 0);
    assert_string_equal(text, "");
    target.backend = KILN_BACKEND_ANY;
    assert_int_equal(kiln_target_text(&target, text, sizeof text), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drivers_of_ptx_versions),
        cmocka_unit_test(names_of_nvidia_targets),
        cmocka_unit_test(names_of_amd_targets),
        cmocka_unit_test(machines_of_amd_targets),
        cmocka_unit_test(rows_are_consistent),
        cmocka_unit_test(machines_as_llvm_names_them),
        cmocka_unit_test(names_that_can_be_asked_about),
        cmocka_unit_test(names_that_are_refused),
        cmocka_unit_test(texts_that_are_cut),
    };
    return cmocka_run_group_tests_name("target", tests, NULL, NULL);
}
