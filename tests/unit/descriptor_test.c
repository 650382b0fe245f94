/* Kernel descriptors: those of real code objects, and each way in which one may contradict the metadata. */
#include "loader/image/descriptor.h"
#include "tests/unit/image_files.h"

#include <kiln/inspect.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A committed code object, and where the descriptor of its kernel "turn" and the symbol of that stand in it. */
typedef struct opened_file {
    image_file image;
    size_t descriptor, symbol;
} opened_file;

static void open_turn(opened_file *opened) {
    opened->image = image_read("gfx90a.hsaco");
    kiln__elf elf;
    kiln__elf_symbols symbols;
    assert_int_equal(kiln__elf_read(opened->image.bytes, opened->image.size, &elf), KILN_OK);
    assert_int_equal(kiln__descriptor_symbols(&elf, &symbols), KILN_OK);
    for (size_t i = 0; i < symbols.count; i++) {
        kiln__elf_symbol symbol = kiln__elf_symbol_at(&symbols, i);
        if (strcmp(symbol.name, "turn.kd") != 0) continue;
        /* the section has the same offset in the file as address: it is in the first segment */
        opened->descriptor = (size_t)symbol.value;
        opened->symbol = (size_t)(symbols.entries - opened->image.bytes) + 24 * i;
    }
    assert_int_not_equal(opened->symbol, 0);
    assert_int_equal(kiln__read_u32(opened->image.bytes + opened->descriptor), 256);
}

static kiln_status check_turn(const image_file *image) {
    kiln__elf elf;
    kiln__elf_symbols symbols;
    kiln__hsaco hsaco;
    kiln__hsaco_kernel kernel;
    KILN__TRY(kiln__hsaco_read(image->bytes, image->size, &hsaco));
    KILN__TRY(kiln__hsaco_kernel_read(&hsaco, 1, &kernel));
    assert_name(kernel.name.at, kernel.name.size, "turn");
    KILN__TRY(kiln__elf_read(image->bytes, image->size, &elf));
    KILN__TRY(kiln__descriptor_symbols(&elf, &symbols));
    return kiln__descriptor_check(&elf, &symbols, &kernel);
}

static void real_files(void **state) {
    (void)state;
    static const char *const files[] = {HSACO_FILES};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        image_file image = image_read(files[i]);
        assert_int_equal(check_turn(&image), KILN_OK);
        free(image.bytes);
    }
}

static void descriptors_that_disagree(void **state) {
    (void)state;
    static const struct {
        bool in_symbol;
        size_t offset, size;
        uint64_t value;
        const char *text;
    } cases[] = {
        {false, 0, 4, 512, "its descriptor has 512 bytes of static LDS: the metadata says 256"},
        {false, 4, 4, 16, "its descriptor has 16 bytes of private segment: the metadata says 0"},
        {false, 8, 4, 304, "its descriptor has 304 bytes of kernarg segment: the metadata says 12"},
        {false, 16, 8, 0, "its code, at address"}, /* the descriptor itself is not executable */
        {false, 16, 8, UINT64_C(1) << 40, "its code, at address"},
        {false, 16, 8, UINT64_MAX, "its code, at address"},
        {true, 8, 8, UINT64_MAX, "its descriptor, at address 18446744073709551615, is not in the file"},
        {true, 8, 8, 1 << 30, "its descriptor, at address 1073741824, is not in the file"},
        {true, 6, 2, 0, "no symbol in the file is its descriptor's"}, /* undefined */
        {true, 0, 4, 0, "no symbol in the file is its descriptor's"}, /* without a name */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        opened_file opened;
        open_turn(&opened);
        assert_int_equal(check_turn(&opened.image), KILN_OK);
        uint8_t *at = opened.image.bytes + (cases[i].in_symbol ? opened.symbol : opened.descriptor) + cases[i].offset;
        for (size_t b = 0; b < cases[i].size; b++)
            at[b] = (uint8_t)(cases[i].value >> 8 * b);
        assert_int_equal(check_turn(&opened.image), KILN_ERROR_CORRUPT_IMAGE);
        assert_error_has(cases[i].text);
        free(opened.image.bytes);
    }
}

/* Without section headers there is no table to look kernels up in. */
static void a_file_without_symbols(void **state) {
    (void)state;
    image_file image = image_read("gfx90a.hsaco");
    image_put_u64(&image, 40, 0);
    image_put_u16(&image, 60, 0);
    image_put_u16(&image, 62, 0);
    assert_int_equal(check_turn(&image), KILN_ERROR_CORRUPT_IMAGE);
    assert_error_has("no symbol in the file is its descriptor's");
    kiln_image_facts facts;
    assert_int_equal(kiln_image_inspect(image.bytes, image.size, &facts, NULL, 0), KILN_ERROR_CORRUPT_IMAGE);
    assert_error_has("kernel 0: HSACO: no symbol");
    free(image.bytes);
}

static void broken_files(void **state) {
    (void)state;
    opened_file opened;
    open_turn(&opened);
    for (size_t i = 0; i < 64; i++)
        for (int bit = 0; bit < 8; bit++) {
            opened.image.bytes[opened.descriptor + i] ^= (uint8_t)(1 << bit);
            kiln_status status = check_turn(&opened.image);
            assert_true(status == KILN_OK || status == KILN_ERROR_CORRUPT_IMAGE);
            if (i < 12) assert_int_equal(status, KILN_ERROR_CORRUPT_IMAGE);
            opened.image.bytes[opened.descriptor + i] ^= (uint8_t)(1 << bit);
        }
    free(opened.image.bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(real_files),
        cmocka_unit_test(descriptors_that_disagree),
        cmocka_unit_test(a_file_without_symbols),
        cmocka_unit_test(broken_files),
    };
    return cmocka_run_group_tests_name("descriptor", tests, NULL, NULL);
}
