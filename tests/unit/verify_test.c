/* kiln_image_verify: tables that agree with their image, and each way in which they may not. */
#include "tests/unit/image_files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/documented.h"

enum { KERNELS = 3 };

/* A part with one image of a committed file, and the table that agrees with it. */
typedef struct bundled {
    image_file file;
    const char *names[KERNELS];
    kiln_kernel_info kernels[KERNELS];
    kiln_image image;
    kiln_part part;
} bundled;

static void seal(bundled *fixture) {
    kiln_sha256(fixture->image.data, (size_t)fixture->image.size, fixture->image.sha256);
}

static void fixture_open(bundled *fixture, const char *file, const char *target) {
    memset(fixture, 0, sizeof *fixture);
    fixture->file = image_read(file);
    fixture->file.bytes = realloc(fixture->file.bytes, fixture->file.size + 1);
    assert_non_null(fixture->file.bytes);
    fixture->file.bytes[fixture->file.size] = '\0';
    kiln_image_facts facts;
    kiln_kernel_facts kernels[KERNELS];
    assert_int_equal(kiln_image_inspect(fixture->file.bytes, fixture->file.size, &facts, kernels, KERNELS), KILN_OK);
    assert_int_equal(facts.kernel_count, KERNELS);
    static const char *const names[] = {"mixed", "scale", "turn"}; /* in an order that no file has */
    for (int i = 0; i < KERNELS; i++) {
        fixture->names[i] = names[i];
        for (int k = 0; k < KERNELS; k++)
            if (kiln__bytes_are(kernels[k].name, kernels[k].name_size, names[i])) fixture->kernels[i] = kernels[k].info;
    }
    fixture->image = (kiln_image){
        .target = target,
        .data = fixture->file.bytes,
        .size = fixture->file.size,
        .kind = facts.kind,
        .format_version = facts.kind == KILN_IMAGE_CUBIN ? 0 : facts.format_version,
        .driver_version = facts.driver_version,
        .kernel_size = sizeof(kiln_kernel_info),
        .kernels = fixture->kernels,
    };
    seal(fixture);
    fixture->part = (kiln_part){
        .name = "all",
        .images = &fixture->image,
        .kernel_names = fixture->names,
        .image_count = 1,
        .image_size = sizeof(kiln_image),
        .kernel_count = KERNELS,
    };
}

static void fixture_close(bundled *fixture) {
    free(fixture->file.bytes);
}

static void assert_refused(const bundled *fixture, const char *text) {
    assert_int_equal(kiln_image_verify(&fixture->part, &fixture->image), KILN_ERROR_CORRUPT_IMAGE);
    assert_error_has(text);
    assert_error_has(kiln_image_kind_name(fixture->image.kind));
}

static void tables_that_agree(void **state) {
    (void)state;
    static const struct {
        const char *file, *target;
    } cases[] = {
        {"sm_75.ptx", "sm_75"},
        {"sm_90a.ptx", "sm_90a"},
        {"sm_120f.ptx", "sm_120f"},
        {"sm_75.cubin", "sm_75"},
        {"sm_90a.cubin", "sm_90a"},
        {"sm_100f.cubin", "sm_100f"},
        {"sm_100f.cubin", "sm_100"}, /* no file tells f from plain */
        {"sm_120.cubin", "sm_120"},
        {"gfx90a.hsaco", "gfx90a"},
        {"gfx90a_xnack_off.hsaco", "gfx90a:xnack-"},
        {"gfx942_both_on.hsaco", "gfx942:sramecc+:xnack+"},
        {"gfx942_both_on.hsaco", "gfx942:xnack+:sramecc+"},
        {"gfx11_generic.hsaco", "gfx11-generic"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bundled fixture;
        fixture_open(&fixture, cases[i].file, cases[i].target);
        assert_int_equal(kiln_image_verify(&fixture.part, &fixture.image), KILN_OK);
        fixture_close(&fixture);
    }
}

static void other_targets(void **state) {
    (void)state;
    static const struct {
        const char *file, *target;
    } cases[] = {
        {"sm_75.ptx", "sm_80"},
        {"sm_90a.ptx", "sm_90"},
        {"sm_120f.ptx", "sm_120"},
        {"sm_75.cubin", "sm_80"},
        {"sm_75.cubin", "gfx942"},
        {"sm_90a.cubin", "sm_90"},
        {"sm_120.cubin", "sm_120a"},
        {"gfx90a.hsaco", "gfx942"},
        {"gfx90a.hsaco", "sm_90"},
        {"gfx90a.hsaco", "gfx90a:xnack-"},
        {"gfx90a_xnack_off.hsaco", "gfx90a"},
        {"gfx90a_xnack_off.hsaco", "gfx90a:xnack+"},
        {"gfx942_both_on.hsaco", "gfx942:sramecc-:xnack+"},
        {"gfx11_generic.hsaco", "gfx1100"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bundled fixture;
        fixture_open(&fixture, cases[i].file, cases[i].target);
        assert_refused(&fixture, "it is for ");
        assert_error_has(cases[i].target);
        fixture_close(&fixture);
    }
}

/* Any byte of the data changed: the hash tells. */
static void any_changed_byte(void **state) {
    (void)state;
    bundled fixture;
    fixture_open(&fixture, "sm_75.ptx", "sm_75");
    for (size_t i = 0; i < fixture.file.size; i++) {
        fixture.file.bytes[i] ^= 1;
        assert_refused(&fixture, "sm_75 ptx: its sha256 is not the one in the table");
        fixture.file.bytes[i] ^= 1;
    }
    fixture_close(&fixture);
}

static void a_text_without_its_end(void **state) {
    (void)state;
    bundled fixture;
    fixture_open(&fixture, "sm_75.ptx", "sm_75");
    fixture.file.bytes[fixture.file.size] = ' ';
    assert_refused(&fixture, "no NUL byte follows the PTX text");
    fixture_close(&fixture);
}

static void numbers_that_differ(void **state) {
    (void)state;
    static const struct {
        const char *file, *target;
        size_t offset; /* in kiln_kernel_info of "scale" or "mixed" */
        int kernel;
        const char *text;
    } cases[] = {
        {"sm_75.ptx", "sm_75", offsetof(kiln_kernel_info, arguments_size), 1, "kernel 1: 24 bytes of arguments"},
        {"sm_75.ptx", "sm_75", offsetof(kiln_kernel_info, max_threads), 1, "kernel 1: 256 threads at most"},
        {"sm_75.cubin", "sm_75", offsetof(kiln_kernel_info, arguments_size), 2, "kernel 2: 12 bytes of arguments"},
        {"sm_75.cubin", "sm_75", offsetof(kiln_kernel_info, registers), 1, "kernel 1: 10 registers"},
        {"sm_75.cubin", "sm_75", offsetof(kiln_kernel_info, shared_bytes), 2, "kernel 2: 256 bytes of shared memory"},
        {"gfx1030.hsaco", "gfx1030", offsetof(kiln_kernel_info, registers), 1, "kernel 1: 4 registers"},
        {"gfx1030.hsaco", "gfx1030", offsetof(kiln_kernel_info, spill_bytes), 0, "kernel 0: 140 bytes of spills"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bundled fixture;
        fixture_open(&fixture, cases[i].file, cases[i].target);
        uint32_t *number = (uint32_t *)(void *)((char *)&fixture.kernels[cases[i].kernel] + cases[i].offset);
        assert_int_not_equal(*number, 0);
        ++*number;
        assert_refused(&fixture, cases[i].text);
        *number = 0; /* not known */
        assert_int_equal(kiln_image_verify(&fixture.part, &fixture.image), KILN_OK);
        fixture_close(&fixture);
    }
}

static void tables_that_are_wrong(void **state) {
    (void)state;
    bundled fixture;
    fixture_open(&fixture, "sm_75.ptx", "sm_75");
    fixture.names[2] = "turned";
    assert_refused(&fixture, "kernel 2: it is not in the file");
    fixture.names[2] = "turn";
    fixture.image.format_version = 64;
    assert_refused(&fixture, "its format version is 63: the table says 64");
    fixture.image.format_version = 63;
    fixture.image.driver_version = 10010;
    assert_refused(&fixture, "it needs driver version 10000: the table says 10010");
    fixture.image.driver_version = 10000;
    fixture.image.kind = KILN_IMAGE_CUBIN;
    assert_refused(&fixture, "it is a ptx image: the table says cubin");
    fixture.image.kind = KILN_IMAGE_PTX;
    fixture.image.size = 0;
    assert_refused(&fixture, "it has no data");
    fixture.image.size = fixture.file.size;
    fixture.image.data = NULL;
    assert_refused(&fixture, "it has no data");
    fixture_close(&fixture);
}

/* Broken, but with the hash of what is broken: the structure is still checked. */
static void broken_structures(void **state) {
    (void)state;
    bundled fixture;
    fixture_open(&fixture, "gfx1030.hsaco", "gfx1030");
    for (size_t size = 1; size < fixture.file.size; size += 97) {
        fixture.image.size = size;
        seal(&fixture);
        kiln_status status = kiln_image_verify(&fixture.part, &fixture.image);
        assert_true(status == KILN_ERROR_CORRUPT_IMAGE || status == KILN_ERROR_UNSUPPORTED);
        assert_error_has("gfx1030 hsaco: ");
    }
    fixture_close(&fixture);
}

static void run_nothing(const void *arguments, const kiln_cpu_span *span) {
    (void)arguments;
    (void)span;
}

static void cpu_images(void **state) {
    (void)state;
    static const char *const names[] = {"first", "second"};
    kiln_kernel_info kernels[] = {{.name = "first", .function = run_nothing},
                                  {.name = "second", .function = run_nothing}};
    kiln_image image = {
        .target = "x86-64-v2", .kind = KILN_IMAGE_CPU, .kernel_size = sizeof *kernels, .kernels = kernels};
    kiln_part part = {.name = "f32",
                      .images = &image,
                      .kernel_names = names,
                      .image_count = 1,
                      .image_size = sizeof image,
                      .kernel_count = 2};
    assert_int_equal(kiln_image_verify(&part, &image), KILN_OK);
    kernels[1].function = NULL;
    assert_int_equal(kiln_image_verify(&part, &image), KILN_ERROR_CORRUPT_IMAGE);
    assert_error_has("x86-64-v2 cpu: kernel 1 has no function");
}

static void wrong_calls(void **state) {
    (void)state;
    kiln_part part = {.name = "f32"};
    kiln_image image = {.target = NULL};
    assert_int_equal(kiln_image_verify(NULL, &image), KILN_ERROR_INVALID_ARGUMENT);
    assert_error_has("part is NULL");
    assert_int_equal(kiln_image_verify(&part, NULL), KILN_ERROR_INVALID_ARGUMENT);
    assert_error_has("image is NULL");
    assert_int_equal(kiln_image_verify(&part, &image), KILN_ERROR_INVALID_ARGUMENT);
    assert_error_has("image->target is NULL");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_that_agree),   cmocka_unit_test(other_targets),
        cmocka_unit_test(any_changed_byte),    cmocka_unit_test(a_text_without_its_end),
        cmocka_unit_test(numbers_that_differ), cmocka_unit_test(tables_that_are_wrong),
        cmocka_unit_test(broken_structures),   cmocka_unit_test(cpu_images),
        cmocka_unit_test(wrong_calls),
    };
    return cmocka_run_group_tests_name("verify", tests, NULL, NULL);
}
