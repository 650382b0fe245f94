/* kiln_image_inspect: every kind of image, every kind of file that is none, and the room for kernels. */
#include "tests/unit/image_files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/documented.h"

static kiln_status read_all(const void *bytes, size_t size) {
    static const kiln_image_facts no_facts;
    static const kiln_kernel_facts no_kernel;
    kiln_image_facts facts;
    kiln_kernel_facts kernels[4];
    memset(&facts, 0xff, sizeof facts);
    memset(kernels, 0xff, sizeof kernels);
    kiln_status status = kiln_image_inspect(bytes, size, &facts, kernels, 4);
    if (status) {
        assert_memory_equal(&facts, &no_facts, sizeof facts);
        for (size_t i = 0; i < 4; i++)
            assert_memory_equal(&kernels[i], &no_kernel, sizeof no_kernel);
    }
    return status;
}

static void every_kind(void **state) {
    (void)state;
    static const struct {
        const char *file;
        kiln_image_kind kind;
        const char *target;
        uint32_t exact, format_version, driver_version;
    } cases[] = {
        {"sm_75.ptx", KILN_IMAGE_PTX, "sm_75", 0, 63, 10000},
        {"sm_90a.ptx", KILN_IMAGE_PTX, "sm_90a", 0, 80, 12000},
        {"sm_120f.ptx", KILN_IMAGE_PTX, "sm_120f", 0, 88, 12090},
        {"sm_75.cubin", KILN_IMAGE_CUBIN, "sm_75", 0, 8, 0},
        {"sm_80.cubin", KILN_IMAGE_CUBIN, "sm_80", 0, 8, 0},
        {"sm_90a.cubin", KILN_IMAGE_CUBIN, "sm_90", 1, 8, 0},
        {"sm_100f.cubin", KILN_IMAGE_CUBIN, "sm_100", 0, 8, 0},
        {"sm_120.cubin", KILN_IMAGE_CUBIN, "sm_120", 0, 8, 0},
        {"gfx90a.hsaco", KILN_IMAGE_HSACO, "gfx90a", 0, 4, 0},
        {"gfx90a_xnack_off.hsaco", KILN_IMAGE_HSACO, "gfx90a:xnack-", 0, 5, 0},
        {"gfx942_both_on.hsaco", KILN_IMAGE_HSACO, "gfx942:sramecc+:xnack+", 0, 5, 0},
        {"gfx11_generic.hsaco", KILN_IMAGE_HSACO, "gfx11-generic", 0, 6, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        image_file image = image_read(cases[i].file);
        kiln_image_facts facts;
        kiln_kernel_facts kernels[3];
        assert_int_equal(kiln_image_inspect(image.bytes, image.size, &facts, kernels, 3), KILN_OK);
        assert_int_equal(facts.kind, cases[i].kind);
        assert_string_equal(facts.target, cases[i].target);
        assert_int_equal(facts.exact, cases[i].exact);
        assert_int_equal(facts.format_version, cases[i].format_version);
        assert_int_equal(facts.driver_version, cases[i].driver_version);
        assert_int_equal(facts.kernel_count, 3);
        /* scale, turn, mixed; a cubin has them the other way round */
        kiln_kernel_facts *scale = cases[i].kind == KILN_IMAGE_CUBIN ? &kernels[2] : &kernels[0];
        assert_name(scale->name, scale->name_size, "scale");
        assert_int_equal(scale->info.arguments_size, 24);
        assert_int_equal(scale->info.max_threads, 256);
        assert_int_equal(scale->info.registers != 0, cases[i].kind != KILN_IMAGE_PTX);
        assert_name(kernels[1].name, kernels[1].name_size, "turn");
        assert_int_equal(kernels[1].info.shared_bytes, 256);
        kiln_kernel_facts *mixed = cases[i].kind == KILN_IMAGE_CUBIN ? &kernels[0] : &kernels[2];
        assert_int_equal(mixed->info.spill_bytes != 0, cases[i].kind == KILN_IMAGE_HSACO);
        free(image.bytes);
    }
}

static void less_room_than_kernels(void **state) {
    (void)state;
    image_file image = image_read("gfx90a.hsaco");
    kiln_image_facts facts;
    kiln_kernel_facts kernels[5];
    for (size_t room = 0; room <= 5; room++) {
        memset(kernels, 0xff, sizeof kernels);
        assert_int_equal(kiln_image_inspect(image.bytes, image.size, &facts, room ? kernels : NULL, room), KILN_OK);
        assert_int_equal(facts.kernel_count, 3);
        for (size_t i = 0; i < 5; i++) {
            if (i < room && i < 3)
                assert_int_equal(kernels[i].name[0], "stm"[i]);
            else
                assert_int_equal(kernels[i].name_size, i < room ? 0 : SIZE_MAX);
        }
    }
    free(image.bytes);
}

static void wrong_calls(void **state) {
    (void)state;
    kiln_image_facts facts;
    kiln_kernel_facts kernel;
    assert_int_equal(kiln_image_inspect(NULL, 1, &facts, NULL, 0), KILN_ERROR_INVALID_ARGUMENT);
    assert_error_has("bytes is NULL");
    assert_int_equal(kiln_image_inspect("x", 1, NULL, NULL, 0), KILN_ERROR_INVALID_ARGUMENT);
    assert_error_has("out_facts is NULL");
    assert_int_equal(kiln_image_inspect("x", 1, &facts, NULL, 1), KILN_ERROR_INVALID_ARGUMENT);
    assert_error_has("kernels is NULL");
    assert_int_equal(kiln_image_inspect("", 0, &facts, &kernel, 1), KILN_ERROR_CORRUPT_IMAGE);
    assert_error_has("the image is empty");
}

/* Files that people hand over instead: each is named, with what to do. */
static void other_formats(void **state) {
    (void)state;
#define FILE_OF(text) text, sizeof text - 1
    static const struct {
        const char *bytes;
        size_t size;
        const char *text;
    } cases[] = {
        {FILE_OF("\xb1\x43\x62\x46\1\0\0\0"), "an NVIDIA fat binary: compile with nvcc -cubin or -ptx"},
        {FILE_OF("\x50\xed\x55\xba\1\0\x10\0"), "an NVIDIA fat binary"},
        {FILE_OF("CCOB\2\0\1\0"), "a compressed offload bundle: compile with --no-gpu-bundle-output"},
        {FILE_OF("__CLANG_OFFLOAD_BUNDLE__\0\0"), "an offload bundle: compile with --no-gpu-bundle-output"},
        {FILE_OF("\x10\xff\x10\xad\1\0\0\0"), "an LLVM offload binary"},
        {FILE_OF("BC\xc0\xde\x35\x14"), "LLVM bitcode"},
        {FILE_OF("\xde\xc0\x17\x0b\0\0"), "LLVM bitcode"},
        {FILE_OF("!<arch>\nlibx.a/"), "an archive"},
        {FILE_OF("!<thin>\nlibx.a/"), "a thin archive"},
        {FILE_OF("\x7f"), "1 bytes that begin with 7f 00 00 00"},
        {FILE_OF("__CLANG_OFFLOAD_BUNDLE_"), "23 bytes that begin with 5f 5f 43 4c"},
        {FILE_OF("\x1b[2J"), "4 bytes that begin with 1b 5b 32 4a"},
        {FILE_OF("__global__ void k() {}"), "not a PTX, cubin or HSACO image"},
    };
#undef FILE_OF
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        image_file image = image_copy(cases[i].bytes, cases[i].size);
        assert_int_equal(read_all(image.bytes, image.size), KILN_ERROR_UNSUPPORTED);
        assert_error_has(cases[i].text);
        image_try(image.bytes, image.size, read_all);
        free(image.bytes);
    }
}

static void a_host_program(void **state) {
    (void)state;
    image_file image = image_read("gfx90a.hsaco");
    image_put_u16(&image, 18, 62);
    assert_int_equal(read_all(image.bytes, image.size), KILN_ERROR_UNSUPPORTED);
    assert_error_has("an ELF file for machine 62, which is no GPU");
    free(image.bytes);
}

static void ptx_of_the_future(void **state) {
    (void)state;
    static const char text[] = ".version 99.0\n.target sm_75\n.address_size 64\n";
    assert_int_equal(read_all(text, sizeof text - 1), KILN_ERROR_UNSUPPORTED);
    assert_error_has(".version 99.0 is newer than this version of kiln knows");
}

static void a_bad_kernel_is_named_by_its_number(void **state) {
    (void)state;
    image_file image = image_read("gfx90a.hsaco");
    static const char key[] = ".wavefront_size";
    uint8_t *at = image.bytes, *end = image.bytes + image.size;
    for (int i = 0; i < 2; i++) { /* the second kernel's */
        at = memmem(at, (size_t)(end - at), key, sizeof key - 1);
        assert_non_null(at);
        at += sizeof key - 1;
    }
    *at = 7;
    assert_int_equal(read_all(image.bytes, image.size), KILN_ERROR_CORRUPT_IMAGE);
    assert_error_has("kernel 1: HSACO: .wavefront_size is 7");
    free(image.bytes);
}

static void broken_files(void **state) {
    (void)state;
    image_break("gfx1030.hsaco", read_all);
    image_break("sm_75.cubin", read_all);
    image_break("sm_75.ptx", read_all);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind),
        cmocka_unit_test(less_room_than_kernels),
        cmocka_unit_test(wrong_calls),
        cmocka_unit_test(other_formats),
        cmocka_unit_test(a_host_program),
        cmocka_unit_test(ptx_of_the_future),
        cmocka_unit_test(a_bad_kernel_is_named_by_its_number),
        cmocka_unit_test(broken_files),
    };
    return cmocka_run_group_tests_name("inspect", tests, NULL, NULL);
}
