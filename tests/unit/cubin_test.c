/* The reader of cubins: real ones, the first ABI version, and attributes of unknown layout. */
#include "loader/image/cubin.h"
#include "tests/unit/image_files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { E_OS_ABI = 7, E_ABI_VERSION = 8, E_TYPE = 16, E_MACHINE = 18, E_FLAGS = 48, E_SHOFF = 40 };

static kiln_status read_all(const void *bytes, size_t size) {
    kiln__cubin cubin;
    KILN__TRY(kiln__cubin_read(bytes, size, &cubin));
    size_t cursor = 0;
    kiln_kernel_facts kernel;
    for (uint32_t i = 0; i < cubin.kernel_count; i++) {
        KILN__TRY(kiln__cubin_kernel_next(&cubin, &cursor, &kernel));
        assert_true(kernel.name_size > 0 && !memchr(kernel.name, 0, kernel.name_size));
    }
    assert_int_equal(kiln__cubin_kernel_next(&cubin, &cursor, &kernel), KILN_ERROR_NOT_FOUND);
    return KILN_OK;
}

static void assert_kernel(const kiln__cubin *cubin, size_t *cursor, const char *name, kiln_kernel_info wanted) {
    kiln_kernel_facts kernel;
    assert_int_equal(kiln__cubin_kernel_next(cubin, cursor, &kernel), KILN_OK);
    assert_name(kernel.name, kernel.name_size, name);
    assert_int_equal(kernel.info.arguments_size, wanted.arguments_size);
    assert_int_equal(kernel.info.registers, wanted.registers);
    assert_int_equal(kernel.info.shared_bytes, wanted.shared_bytes);
    assert_int_equal(kernel.info.max_threads, wanted.max_threads);
    assert_int_equal(kernel.info.spill_bytes, 0);
    assert_null(kernel.info.name);
}

/* Registers and shared memory are those that ptxas -v reports. */
static void real_files(void **state) {
    (void)state;
    static const struct {
        const char *file;
        int32_t capability;
        bool exact;
        uint32_t mixed_registers;
    } cases[] = {
        {"sm_75.cubin", 75, false, 12},    {"sm_80.cubin", 80, false, 12},   {"sm_90a.cubin", 90, true, 14},
        {"sm_100f.cubin", 100, false, 16}, {"sm_120.cubin", 120, false, 16},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        image_file image = image_read(cases[i].file);
        kiln__cubin cubin;
        assert_int_equal(kiln__cubin_read(image.bytes, image.size, &cubin), KILN_OK);
        assert_int_equal(cubin.capability, cases[i].capability);
        assert_int_equal(cubin.exact, cases[i].exact);
        assert_int_equal(cubin.kernel_count, 3);
        size_t cursor = 0;
        assert_kernel(&cubin, &cursor, "mixed",
                      (kiln_kernel_info){.arguments_size = 20, .registers = cases[i].mixed_registers});
        assert_kernel(&cubin, &cursor, "turn",
                      (kiln_kernel_info){.arguments_size = 12, .registers = 10, .shared_bytes = 256});
        assert_kernel(&cubin, &cursor, "scale",
                      (kiln_kernel_info){.arguments_size = 24, .registers = 10, .max_threads = 256});
        free(image.bytes);
    }
}

/* e_flags of both ABI versions, and of one that is not known. */
static void targets_of_flags(void **state) {
    (void)state;
    static const struct {
        uint8_t os_abi, abi_version;
        uint32_t flags;
        int32_t capability;
        bool exact;
    } cases[] = {
        {0x33, 7, 0x00500550, 80, false},  {0x33, 7, 0x005a055a, 90, false}, {0x33, 7, 0x005a0d5a, 90, true},
        {0x41, 8, 0x06004b04, 75, false},  {0x41, 8, 0x06005a04, 90, false}, {0x41, 8, 0x06006402, 100, false},
        {0x41, 8, 0x06007802, 120, false}, {0x41, 8, 0x0600780a, 120, true}, {0x41, 9, 0x06007802, 0, false},
        {0x00, 0, 0x06007802, 0, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        image_file image = image_read("sm_75.cubin");
        image.bytes[E_OS_ABI] = cases[i].os_abi;
        image.bytes[E_ABI_VERSION] = cases[i].abi_version;
        image_put_u32(&image, E_FLAGS, cases[i].flags);
        kiln__cubin cubin;
        assert_int_equal(kiln__cubin_read(image.bytes, image.size, &cubin), KILN_OK);
        assert_int_equal(cubin.capability, cases[i].capability);
        assert_int_equal(cubin.exact, cases[i].exact);
        assert_int_equal(cubin.kernel_count, 3);
        free(image.bytes);
    }
}

/* The bytes of a section in the image. */
static kiln__bytes find_section(const image_file *image, const char *name, size_t *out_header) {
    kiln__elf elf;
    assert_int_equal(kiln__elf_read(image->bytes, image->size, &elf), KILN_OK);
    for (uint32_t i = 0; i < elf.section_count; i++) {
        kiln__elf_section section = kiln__elf_section_at(&elf, i);
        *out_header = (size_t)kiln__read_u64(image->bytes + E_SHOFF) + 64 * i;
        if (strcmp(section.name, name) == 0) return section.bytes;
    }
    fail_msg("no section %s", name);
    return (kiln__bytes){NULL, 0};
}

/* A parameter with a gap of 16 bytes in front of it: no smaller alignment than 32 leaves one. */
static void a_parameter_of_too_large_an_alignment(void **state) {
    (void)state;
    for (uint32_t moved = 0; moved < 32; moved += 8) {
        image_file image = image_read("sm_90a.cubin");
        size_t header;
        kiln__bytes section = find_section(&image, ".nv.info.scale", &header);
        uint8_t *at = image.bytes + (section.at - image.bytes), *end = at + section.size;
        for (; at + 16 <= end; at += 4) /* a record of a parameter: its offset */
            if (at[0] == 4 && at[1] == 0x17 && at[2] == 12 && at[3] == 0) at[4 + 6] = (uint8_t)(at[4 + 6] + moved);
        if (moved < 16) {
            assert_int_equal(read_all(image.bytes, image.size), KILN_OK);
        } else {
            assert_int_equal(read_all(image.bytes, image.size), KILN_ERROR_UNSUPPORTED);
            assert_non_null(strstr(kiln_last_error(), "scale: a parameter is aligned to more than 16 bytes"));
        }
        free(image.bytes);
    }
}

/* Attributes that are not understood leave the facts not known: the image is taken all the same. */
static void attributes_of_unknown_layout(void **state) {
    (void)state;
    static const struct {
        const char *section;
        uint8_t format; /* of the first attribute */
        uint16_t size;
    } cases[] = {{".nv.info", 9, 8}, {".nv.info", 4, 0xffff}, {".nv.info", 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        image_file image = image_read("sm_75.cubin");
        size_t header;
        kiln__bytes section = find_section(&image, cases[i].section, &header);
        uint8_t *at = image.bytes + (section.at - image.bytes);
        at[0] = cases[i].format;
        at[2] = (uint8_t)cases[i].size;
        at[3] = (uint8_t)(cases[i].size >> 8);
        kiln__cubin cubin;
        kiln_kernel_facts kernel;
        size_t cursor = 0;
        assert_int_equal(kiln__cubin_read(image.bytes, image.size, &cubin), KILN_OK);
        assert_int_equal(kiln__cubin_kernel_next(&cubin, &cursor, &kernel), KILN_OK);
        assert_int_equal(kernel.info.registers, 0);
        assert_int_equal(kernel.info.arguments_size, 20);
        free(image.bytes);
    }
}

/* A group of 2^96 threads is not known, rather than some other number. */
static void threads_that_overflow(void **state) {
    (void)state;
    image_file image = image_read("sm_75.cubin");
    size_t header;
    kiln__bytes section = find_section(&image, ".nv.info.scale", &header);
    static const uint8_t wanted[] = {4, 5, 12, 0, 0, 1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0};
    uint8_t *at = memmem(image.bytes + (section.at - image.bytes), section.size, wanted, sizeof wanted);
    assert_non_null(at);
    kiln__cubin cubin;
    kiln_kernel_facts kernel;
    for (int dimensions = 2; dimensions <= 3; dimensions++) {
        memset(at + 4, 0xff, 4 * (size_t)dimensions);
        size_t cursor = 0;
        assert_int_equal(kiln__cubin_read(image.bytes, image.size, &cubin), KILN_OK);
        for (int i = 0; i < 3; i++)
            assert_int_equal(kiln__cubin_kernel_next(&cubin, &cursor, &kernel), KILN_OK);
        assert_name(kernel.name, kernel.name_size, "scale");
        assert_int_equal(kernel.info.max_threads, 0);
    }
    free(image.bytes);
}

static void other_elf_files(void **state) {
    (void)state;
    image_file image = image_read("sm_75.cubin");
    image_put_u16(&image, E_TYPE, 1);
    assert_int_equal(read_all(image.bytes, image.size), KILN_ERROR_UNSUPPORTED);
    assert_error_has("relocatable device code: link it");
    image_put_u16(&image, E_MACHINE, 62);
    assert_int_equal(read_all(image.bytes, image.size), KILN_ERROR_UNSUPPORTED);
    assert_error_has("ELF machine 62");
    free(image.bytes);
}

/* Every symbol's name is the whole string table: one long name, or nothing. */
static void names_that_are_no_names(void **state) {
    (void)state;
    for (int filled = 0; filled <= 1; filled++) {
        image_file image = image_read("sm_75.cubin");
        size_t header;
        kiln__bytes strings = find_section(&image, ".strtab", &header);
        memset(image.bytes + (strings.at - image.bytes), filled ? 'n' : '\0', strings.size - 1);
        kiln__bytes symbols = find_section(&image, ".symtab", &header);
        for (size_t offset = 0; offset < symbols.size; offset += 24)
            image_put_u32(&image, (size_t)(symbols.at - image.bytes) + offset, 0);
        assert_int_equal(read_all(image.bytes, image.size), filled ? KILN_OK : KILN_ERROR_CORRUPT_IMAGE);
        if (!filled) assert_error_has("has no name");
        free(image.bytes);
    }
}

/* More entry points than are looked up: a symbol table of copies. */
static void too_many_kernels(void **state) {
    (void)state;
    image_file small = image_read("sm_75.cubin");
    size_t header;
    kiln__bytes symbols = find_section(&small, ".symtab", &header);
    enum { ENTRY = 24, COUNT = KILN__CUBIN_KERNELS_MAX + 1 };
    const uint8_t *entry = NULL; /* the last global function */
    for (size_t i = 0; i < symbols.size; i += ENTRY)
        if (symbols.at[i + 4] == 0x12 && symbols.at[i + 5] & 0x10) entry = symbols.at + i;
    assert_non_null(entry);
    image_file image = {malloc(small.size + (size_t)COUNT * ENTRY), small.size + (size_t)COUNT * ENTRY};
    assert_non_null(image.bytes);
    memcpy(image.bytes, small.bytes, small.size);
    for (size_t i = 0; i < COUNT; i++)
        memcpy(image.bytes + small.size + i * ENTRY, entry, ENTRY);
    image_put_u64(&image, header + 24, small.size);
    image_put_u64(&image, header + 32, (uint64_t)COUNT * ENTRY);
    assert_int_equal(read_all(image.bytes, image.size), KILN_ERROR_UNSUPPORTED);
    assert_error_has("4097 kernels: at most 4096");
    image_put_u64(&image, header + 32, (uint64_t)(COUNT - 1) * ENTRY);
    assert_int_equal(read_all(image.bytes, image.size), KILN_OK);
    free(image.bytes);
    free(small.bytes);
}

static void broken_files(void **state) {
    (void)state;
    static const char *const files[] = {CUBIN_FILES};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        image_break(files[i], read_all);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(real_files),
        cmocka_unit_test(targets_of_flags),
        cmocka_unit_test(attributes_of_unknown_layout),
        cmocka_unit_test(a_parameter_of_too_large_an_alignment),
        cmocka_unit_test(threads_that_overflow),
        cmocka_unit_test(other_elf_files),
        cmocka_unit_test(names_that_are_no_names),
        cmocka_unit_test(too_many_kernels),
        cmocka_unit_test(broken_files),
    };
    return cmocka_run_group_tests_name("cubin", tests, NULL, NULL);
}
