/* The reader of ELF files: real ones, and each rule broken in turn. */
#include "loader/image/elf.h"
#include "tests/unit/image_files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Offsets in the file header, a section header and a program header. */
enum { E_PHOFF = 32, E_SHOFF = 40, E_PHENTSIZE = 54, E_PHNUM = 56, E_SHENTSIZE = 58, E_SHNUM = 60, E_SHSTRNDX = 62 };
enum { SH_NAME = 0, SH_TYPE = 4, SH_OFFSET = 24, SH_SIZE = 32, SH_LINK = 40, SH_ALIGN = 48, SH_ENTSIZE = 56 };
enum { P_TYPE = 0, P_OFFSET = 8, P_VADDR = 16, P_FILESZ = 32, P_MEMSZ = 40, P_ALIGN = 48 };

static size_t section_header(const image_file *image, uint32_t index) {
    return (size_t)kiln__read_u64(image->bytes + E_SHOFF) + 64 * index;
}

static size_t program_header(const image_file *image, uint32_t index) {
    return (size_t)kiln__read_u64(image->bytes + E_PHOFF) + 56 * index;
}

static uint32_t find_section(const image_file *image, const char *name) {
    kiln__elf elf;
    assert_int_equal(kiln__elf_read(image->bytes, image->size, &elf), KILN_OK);
    for (uint32_t i = 0; i < elf.section_count; i++)
        if (strcmp(kiln__elf_section_at(&elf, i).name, name) == 0) return i;
    fail_msg("no section %s", name);
    return 0;
}

static uint32_t find_program(const image_file *image, uint32_t type) {
    kiln__elf elf;
    assert_int_equal(kiln__elf_read(image->bytes, image->size, &elf), KILN_OK);
    for (uint32_t i = 0; i < elf.program_count; i++)
        if (kiln__elf_program_at(&elf, i).type == type) return i;
    fail_msg("no segment of type %u", type);
    return 0;
}

/* Reads everything that the functions can reach. */
static kiln_status read_all(const void *bytes, size_t size) {
    kiln__elf elf;
    KILN__TRY(kiln__elf_read(bytes, size, &elf));
    volatile uint64_t sum = 0; /* touches each byte that is handed out */
    for (uint32_t i = 0; i < elf.section_count; i++) {
        kiln__elf_section section = kiln__elf_section_at(&elf, i);
        sum += strlen(section.name);
        if (section.bytes.size) sum += section.bytes.at[0] + section.bytes.at[section.bytes.size - 1];
        if (section.type != KILN__ELF_SECTION_SYMBOLS && section.type != KILN__ELF_SECTION_DYNAMIC_SYMBOLS) continue;
        kiln__elf_symbols symbols;
        KILN__TRY(kiln__elf_symbols_read(&elf, &section, &symbols));
        for (size_t s = 0; s < symbols.count; s++)
            sum += strlen(kiln__elf_symbol_at(&symbols, s).name);
    }
    for (uint32_t i = 0; i < elf.program_count; i++) {
        kiln__elf_program program = kiln__elf_program_at(&elf, i);
        if (program.bytes.size) sum += program.bytes.at[0] + program.bytes.at[program.bytes.size - 1];
        while (program.type == KILN__ELF_PROGRAM_NOTE && program.bytes.size > 0) {
            kiln__elf_note note;
            KILN__TRY(kiln__elf_note_next(&program.bytes, program.alignment, &note));
            if (note.description.size) sum += note.description.at[note.description.size - 1];
            if (note.name.size) sum += note.name.at[note.name.size - 1];
        }
    }
    (void)sum;
    return KILN_OK;
}

static void a_code_object(void **state) {
    (void)state;
    image_file image = image_read("gfx90a.hsaco");
    kiln__elf elf;
    assert_int_equal(kiln__elf_read(image.bytes, image.size, &elf), KILN_OK);
    assert_int_equal(elf.machine, KILN__ELF_MACHINE_AMDGPU);
    assert_int_equal(elf.type, KILN__ELF_TYPE_SHARED);
    assert_int_equal(elf.os_abi, 64);
    assert_int_equal(elf.abi_version, 2);
    assert_int_equal(elf.flags, 0x53f);
    kiln__elf_section section = kiln__elf_section_at(&elf, find_section(&image, ".dynsym"));
    assert_int_equal(section.type, KILN__ELF_SECTION_DYNAMIC_SYMBOLS);
    kiln__elf_symbols symbols;
    assert_int_equal(kiln__elf_symbols_read(&elf, &section, &symbols), KILN_OK);
    bool found = false;
    for (size_t i = 0; i < symbols.count; i++) {
        kiln__elf_symbol symbol = kiln__elf_symbol_at(&symbols, i);
        if (strcmp(symbol.name, "scale.kd") != 0) continue;
        found = true;
        assert_int_equal(symbol.size, 64);
        assert_int_equal(symbol.type, 1);
    }
    assert_true(found);
    free(image.bytes);
}

static void files_without_tables(void **state) {
    (void)state;
    image_file image = image_read("gfx90a.hsaco");
    image_put_u64(&image, E_SHOFF, 0);
    image_put_u16(&image, E_SHNUM, 0);
    image_put_u16(&image, E_SHSTRNDX, 0);
    assert_int_equal(read_all(image.bytes, image.size), KILN_OK);
    image_put_u16(&image, E_PHNUM, 0);
    assert_int_equal(read_all(image.bytes, image.size), KILN_OK);
    free(image.bytes);
}

static void sections_without_names(void **state) {
    (void)state;
    image_file image = image_read("gfx90a.hsaco");
    image_put_u16(&image, E_SHSTRNDX, 0);
    kiln__elf elf;
    assert_int_equal(kiln__elf_read(image.bytes, image.size, &elf), KILN_OK);
    for (uint32_t i = 0; i < elf.section_count; i++)
        assert_string_equal(kiln__elf_section_at(&elf, i).name, "");
    free(image.bytes);
}

/* One field of the file header set to a value: the status and a part of the sentence. */
static void broken_headers(void **state) {
    (void)state;
    static const struct {
        size_t offset, size;
        uint64_t value;
        kiln_status status;
        const char *text;
    } cases[] = {
        {0, 1, 0x7e, KILN_ERROR_CORRUPT_IMAGE, "does not begin with the magic"},
        {4, 1, 1, KILN_ERROR_UNSUPPORTED, "class 1: not 64-bit"},
        {5, 1, 2, KILN_ERROR_UNSUPPORTED, "data encoding 2: not little-endian"},
        {6, 1, 0, KILN_ERROR_CORRUPT_IMAGE, "version 0: must be 1"},
        {E_PHOFF, 8, UINT64_MAX, KILN_ERROR_CORRUPT_IMAGE, "program headers at offset 18446744073709551615"},
        {E_PHOFF, 8, UINT64_MAX - 100, KILN_ERROR_CORRUPT_IMAGE, "program headers at offset"},
        {E_SHOFF, 8, UINT64_MAX, KILN_ERROR_CORRUPT_IMAGE, "section headers at offset 18446744073709551615"},
        {E_SHOFF, 8, UINT64_C(1) << 63, KILN_ERROR_CORRUPT_IMAGE, "section headers at offset"},
        {E_PHENTSIZE, 2, 55, KILN_ERROR_CORRUPT_IMAGE, "program headers have 55 bytes each: must be 56"},
        {E_SHENTSIZE, 2, 0, KILN_ERROR_CORRUPT_IMAGE, "section headers have 0 bytes each: must be 64"},
        {E_PHNUM, 2, 0xffff, KILN_ERROR_CORRUPT_IMAGE, "65535 program headers"},
        {E_SHNUM, 2, 0xfeff, KILN_ERROR_CORRUPT_IMAGE, "65279 section headers"},
        {E_SHNUM, 2, 0xff00, KILN_ERROR_UNSUPPORTED, "more than 65279 sections"},
        {E_SHNUM, 2, 0, KILN_ERROR_UNSUPPORTED, "more than 65279 sections"},
        {E_SHSTRNDX, 2, 0xfffe, KILN_ERROR_CORRUPT_IMAGE, "string table is section 65534 of"},
        {E_SHSTRNDX, 2, 1, KILN_ERROR_CORRUPT_IMAGE, "section 1 is used as a string table and is none"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        image_file image = image_read("gfx90a.hsaco");
        for (size_t b = 0; b < cases[i].size; b++)
            image.bytes[cases[i].offset + b] = (uint8_t)(cases[i].value >> 8 * b);
        assert_int_equal(read_all(image.bytes, image.size), cases[i].status);
        assert_error_has(cases[i].text);
        free(image.bytes);
    }
}

static void broken_sections(void **state) {
    (void)state;
    static const struct {
        const char *section;
        size_t offset, size;
        uint64_t value;
        const char *text; /* NULL: accepted */
    } cases[] = {
        {".text", SH_ALIGN, 8, 0, NULL},
        {".text", SH_ALIGN, 8, 1, NULL},
        {".text", SH_ALIGN, 8, UINT64_C(1) << 30, NULL},
        {".text", SH_ALIGN, 8, 3, "alignment 3: must be a power of two"},
        {".text", SH_ALIGN, 8, UINT64_C(1) << 31, "alignment 2147483648"},
        {".text", SH_ALIGN, 8, UINT64_C(1) << 63, "alignment 9223372036854775808"},
        {".text", SH_OFFSET, 8, UINT64_MAX, "does not lie in a file"},
        {".text", SH_OFFSET, 8, UINT64_MAX - 255, "does not lie in a file"},
        {".text", SH_SIZE, 8, UINT64_MAX, "does not lie in a file"},
        {".text", SH_SIZE, 8, UINT64_C(1) << 63, "does not lie in a file"},
        {".text", SH_NAME, 4, UINT32_MAX, "the name of section"},
        {".text", SH_TYPE, 4, KILN__ELF_SECTION_NO_BITS, NULL},
        {".shstrtab", SH_SIZE, 8, 0, "does not end with a NUL byte"},
        {".shstrtab", SH_SIZE, 8, 5, "does not end with a NUL byte"},
        {".shstrtab", SH_OFFSET, 8, UINT64_MAX, "does not lie in the file"},
        {".dynsym", SH_ENTSIZE, 8, 0, "symbol table of"},
        {".dynsym", SH_ENTSIZE, 8, 23, "entries must have 24"},
        {".dynsym", SH_SIZE, 8, 25, "symbol table of 25 bytes"},
        {".dynsym", SH_LINK, 4, UINT32_MAX, "string table is section 4294967295"},
        {".dynsym", SH_LINK, 4, 0, "section 0 is used as a string table"},
        {".dynstr", SH_SIZE, 8, 1, "the name of symbol 1"},
        {".dynstr", SH_SIZE, 8, 3, "does not end with a NUL byte"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        image_file image = image_read("gfx90a.hsaco");
        size_t header = section_header(&image, find_section(&image, cases[i].section));
        for (size_t b = 0; b < cases[i].size; b++)
            image.bytes[header + cases[i].offset + b] = (uint8_t)(cases[i].value >> 8 * b);
        assert_int_equal(read_all(image.bytes, image.size), cases[i].text ? KILN_ERROR_CORRUPT_IMAGE : KILN_OK);
        if (cases[i].text) assert_error_has(cases[i].text);
        free(image.bytes);
    }
}

static void broken_segments(void **state) {
    (void)state;
    static const struct {
        uint32_t type;
        size_t offset;
        uint64_t value;
        const char *text; /* NULL: accepted */
    } cases[] = {
        {KILN__ELF_PROGRAM_LOAD, P_ALIGN, 0, NULL},
        {KILN__ELF_PROGRAM_LOAD, P_ALIGN, 5, "alignment 5"},
        {KILN__ELF_PROGRAM_LOAD, P_ALIGN, UINT64_C(1) << 63, "alignment 9223372036854775808"},
        {KILN__ELF_PROGRAM_LOAD, P_OFFSET, UINT64_MAX, "does not lie in a file"},
        {KILN__ELF_PROGRAM_LOAD, P_FILESZ, UINT64_MAX, "does not lie in a file"},
        {KILN__ELF_PROGRAM_LOAD, P_MEMSZ, 1, "and 1 in memory"},
        {KILN__ELF_PROGRAM_LOAD, P_VADDR, UINT64_MAX, "from address 18446744073709551615"},
        {KILN__ELF_PROGRAM_NOTE, P_FILESZ, 11, "11 bytes are less than a note"},
        {KILN__ELF_PROGRAM_NOTE, P_FILESZ, 30, "does not fit in 30 bytes"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        image_file image = image_read("gfx90a.hsaco");
        image_put_u64(&image, program_header(&image, find_program(&image, cases[i].type)) + cases[i].offset,
                      cases[i].value);
        assert_int_equal(read_all(image.bytes, image.size), cases[i].text ? KILN_ERROR_CORRUPT_IMAGE : KILN_OK);
        if (cases[i].text) assert_error_has(cases[i].text);
        free(image.bytes);
    }
}

/* Two notes: "ABCDE" of type 7 with "hello", and "C" of type 8 with "!", whose padding is missing. */
static void notes_of_either_alignment(void **state) {
    (void)state;
    static const char by_4[] = "\6\0\0\0\5\0\0\0\7\0\0\0ABCDE\0\0\0hello\0\0\0"
                               "\2\0\0\0\1\0\0\0\10\0\0\0C\0\0\0!";
    static const char by_8[] = "\6\0\0\0\5\0\0\0\7\0\0\0ABCDE\0\0\0\0\0\0\0hello\0\0\0"
                               "\2\0\0\0\1\0\0\0\10\0\0\0C\0\0\0!";
    for (int alignment = 4; alignment <= 8; alignment += 4) {
        image_file bytes = alignment == 4 ? image_copy(by_4, sizeof by_4 - 1) : image_copy(by_8, sizeof by_8 - 1);
        kiln__bytes rest = {bytes.bytes, bytes.size};
        kiln__elf_note note;
        assert_int_equal(kiln__elf_note_next(&rest, (uint64_t)alignment, &note), KILN_OK);
        assert_int_equal(note.type, 7);
        assert_int_equal(note.name.size, 6);
        assert_int_equal(note.description.size, 5);
        assert_memory_equal(note.description.at, "hello", 5);
        assert_int_equal(kiln__elf_note_next(&rest, (uint64_t)alignment, &note), KILN_OK);
        assert_int_equal(note.type, 8);
        assert_memory_equal(note.description.at, "!", 1);
        assert_int_equal(rest.size, 0);
        free(bytes.bytes);
    }
}

static void notes_that_promise_too_much(void **state) {
    (void)state;
    static const char *const notes[] = {"\377\377\377\377\0\0\0\0\7\0\0\0AB\0\0",
                                        "\0\0\0\0\377\377\377\377\7\0\0\0AB\0\0",
                                        "\377\377\377\377\377\377\377\377\7\0\0\0AB\0\0"};
    for (size_t i = 0; i < sizeof notes / sizeof *notes; i++) {
        image_file bytes = image_copy(notes[i], 16);
        kiln__bytes rest = {bytes.bytes, bytes.size};
        kiln__elf_note note;
        assert_int_equal(kiln__elf_note_next(&rest, 4, &note), KILN_ERROR_CORRUPT_IMAGE);
        assert_int_equal(kiln__elf_note_next(&rest, 8, &note), KILN_ERROR_CORRUPT_IMAGE);
        free(bytes.bytes);
    }
}

static void broken_files(void **state) {
    (void)state;
    image_break("gfx90a.hsaco", read_all);
    image_break("gfx11_generic.hsaco", read_all);
    image_break("sm_75.cubin", read_all);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_code_object),
        cmocka_unit_test(files_without_tables),
        cmocka_unit_test(sections_without_names),
        cmocka_unit_test(broken_headers),
        cmocka_unit_test(broken_sections),
        cmocka_unit_test(broken_segments),
        cmocka_unit_test(notes_of_either_alignment),
        cmocka_unit_test(notes_that_promise_too_much),
        cmocka_unit_test(broken_files),
    };
    return cmocka_run_group_tests_name("elf", tests, NULL, NULL);
}
