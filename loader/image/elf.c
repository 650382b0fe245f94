#include "loader/image/elf.h"

#include <inttypes.h>
#include <string.h>

enum { HEADER_SIZE = 64, SECTION_SIZE = 64, PROGRAM_SIZE = 56, SYMBOL_SIZE = 24, NOTE_HEADER_SIZE = 12 };
enum { CLASS_64 = 2, LITTLE_ENDIAN_DATA = 1, VERSION_CURRENT = 1 };

/* Section numbers from here on have other meanings, and tables that are longer keep their count elsewhere. */
enum { SECTION_RESERVED = 0xff00 };

/* No image needs more; what asks for more would have a driver reserve it. */
static const uint64_t max_alignment = UINT64_C(1) << 30;

static bool alignment_ok(uint64_t alignment) {
    return (alignment & (alignment - 1)) == 0 && alignment <= max_alignment;
}

static uint64_t align_up(uint64_t value, uint64_t alignment) {
    return (value + alignment - 1) & ~(alignment - 1);
}

bool kiln__elf_is(const void *bytes, size_t size) {
    return size >= 4 && memcmp(bytes, "\177ELF", 4) == 0;
}

/* One of the two tables: its rows lie in the file. */
static kiln_status check_table(const char *what, uint64_t offset, uint32_t count, uint32_t row, uint32_t wanted_row,
                               size_t file_size) {
    if (count == 0) return KILN_OK;
    if (row != wanted_row)
        return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "ELF: %s headers have %u bytes each: must be %u", what, row,
                          wanted_row);
    if (!kiln__within(offset, (uint64_t)count * row, file_size))
        return kiln__fail(KILN_ERROR_CORRUPT_IMAGE,
                          "ELF: %u %s headers at offset %" PRIu64 " do not lie in a file of %zu bytes", count, what,
                          offset, file_size);
    return KILN_OK;
}

static kiln_status read_header(const uint8_t *header, kiln__elf *elf) {
    if (header[4] != CLASS_64) return kiln__fail(KILN_ERROR_UNSUPPORTED, "ELF: class %u: not 64-bit", header[4]);
    if (header[5] != LITTLE_ENDIAN_DATA)
        return kiln__fail(KILN_ERROR_UNSUPPORTED, "ELF: data encoding %u: not little-endian", header[5]);
    if (header[6] != VERSION_CURRENT)
        return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "ELF: version %u: must be 1", header[6]);
    elf->os_abi = header[7];
    elf->abi_version = header[8];
    elf->type = kiln__read_u16(header + 16);
    elf->machine = kiln__read_u16(header + 18);
    elf->flags = kiln__read_u32(header + 48);
    elf->program_count = kiln__read_u16(header + 56);
    elf->section_count = kiln__read_u16(header + 60);
    uint64_t program_offset = kiln__read_u64(header + 32);
    uint64_t section_offset = kiln__read_u64(header + 40);
    if (elf->section_count >= SECTION_RESERVED || (elf->section_count == 0 && section_offset != 0))
        return kiln__fail(KILN_ERROR_UNSUPPORTED, "ELF: more than %d sections", SECTION_RESERVED - 1);
    KILN__TRY(check_table("program", program_offset, elf->program_count, kiln__read_u16(header + 54), PROGRAM_SIZE,
                          elf->file.size));
    KILN__TRY(check_table("section", section_offset, elf->section_count, kiln__read_u16(header + 58), SECTION_SIZE,
                          elf->file.size));
    elf->programs = elf->program_count ? header + program_offset : NULL;
    elf->sections = elf->section_count ? header + section_offset : NULL;
    return KILN_OK;
}

/* A string table that ends with NUL, so that every string which starts in it ends in it. */
static kiln_status read_strings(const kiln__elf *elf, uint32_t index, kiln__bytes *out_strings) {
    if (index >= elf->section_count)
        return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "ELF: string table is section %u of %u", index, elf->section_count);
    const uint8_t *header = elf->sections + (size_t)index * SECTION_SIZE;
    uint64_t offset = kiln__read_u64(header + 24);
    uint64_t size = kiln__read_u64(header + 32);
    if (kiln__read_u32(header + 4) != KILN__ELF_SECTION_STRINGS)
        return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "ELF: section %u is used as a string table and is none", index);
    if (!kiln__within(offset, size, elf->file.size))
        return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "ELF: string table %u does not lie in the file", index);
    if (size == 0 || elf->file.at[offset + size - 1] != 0)
        return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "ELF: string table %u does not end with a NUL byte", index);
    *out_strings = (kiln__bytes){elf->file.at + offset, (size_t)size};
    return KILN_OK;
}

static kiln_status check_section(const kiln__elf *elf, uint32_t index, size_t names_size) {
    const uint8_t *header = elf->sections + (size_t)index * SECTION_SIZE;
    uint32_t name = kiln__read_u32(header);
    uint32_t type = kiln__read_u32(header + 4);
    uint64_t offset = kiln__read_u64(header + 24);
    uint64_t size = kiln__read_u64(header + 32);
    uint64_t alignment = kiln__read_u64(header + 48);
    if (type == KILN__ELF_SECTION_NULL) return KILN_OK;
    if (elf->section_names && name >= names_size)
        return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "ELF: the name of section %u, at %u, is not in its table", index,
                          name);
    if (type != KILN__ELF_SECTION_NO_BITS && !kiln__within(offset, size, elf->file.size))
        return kiln__fail(KILN_ERROR_CORRUPT_IMAGE,
                          "ELF: section %u (offset %" PRIu64 ", size %" PRIu64 ") does not lie in a file of %zu bytes",
                          index, offset, size, elf->file.size);
    if (!alignment_ok(alignment))
        return kiln__fail(KILN_ERROR_CORRUPT_IMAGE,
                          "ELF: section %u has alignment %" PRIu64 ": must be a power of two up to 2^30", index,
                          alignment);
    return KILN_OK;
}

static kiln_status check_program(const kiln__elf *elf, uint32_t index) {
    const uint8_t *header = elf->programs + (size_t)index * PROGRAM_SIZE;
    uint64_t offset = kiln__read_u64(header + 8);
    uint64_t address = kiln__read_u64(header + 16);
    uint64_t file_size = kiln__read_u64(header + 32);
    uint64_t memory_size = kiln__read_u64(header + 40);
    uint64_t alignment = kiln__read_u64(header + 48);
    if (!kiln__within(offset, file_size, elf->file.size))
        return kiln__fail(KILN_ERROR_CORRUPT_IMAGE,
                          "ELF: segment %u (offset %" PRIu64 ", size %" PRIu64 ") does not lie in a file of %zu bytes",
                          index, offset, file_size, elf->file.size);
    if (!alignment_ok(alignment))
        return kiln__fail(KILN_ERROR_CORRUPT_IMAGE,
                          "ELF: segment %u has alignment %" PRIu64 ": must be a power of two up to 2^30", index,
                          alignment);
    if (kiln__read_u32(header) == KILN__ELF_PROGRAM_LOAD &&
        (file_size > memory_size || !kiln__within(address, memory_size, UINT64_MAX)))
        return kiln__fail(KILN_ERROR_CORRUPT_IMAGE,
                          "ELF: segment %u has %" PRIu64 " bytes in the file and %" PRIu64
                          " in memory, from address %" PRIu64,
                          index, file_size, memory_size, address);
    return KILN_OK;
}

kiln_status kiln__elf_read(const void *bytes, size_t size, kiln__elf *out_elf) {
    memset(out_elf, 0, sizeof *out_elf);
    if (!kiln__elf_is(bytes, size)) return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "ELF: does not begin with the magic");
    if (size < HEADER_SIZE)
        return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "ELF: %zu bytes are less than the file header", size);
    kiln__elf elf = {.file = {bytes, size}};
    KILN__TRY(read_header(bytes, &elf));
    kiln__bytes names = {NULL, 0};
    uint32_t names_index = kiln__read_u16(elf.file.at + 62);
    if (names_index != 0) KILN__TRY(read_strings(&elf, names_index, &names));
    elf.section_names = (const char *)names.at;
    for (uint32_t i = 0; i < elf.section_count; i++)
        KILN__TRY(check_section(&elf, i, names.size));
    for (uint32_t i = 0; i < elf.program_count; i++)
        KILN__TRY(check_program(&elf, i));
    *out_elf = elf;
    return KILN_OK;
}

kiln__elf_section kiln__elf_section_at(const kiln__elf *elf, uint32_t index) {
    const uint8_t *header = elf->sections + (size_t)index * SECTION_SIZE;
    kiln__elf_section section = {
        .name = "",
        .type = kiln__read_u32(header + 4),
        .link = kiln__read_u32(header + 40),
        .info = kiln__read_u32(header + 44),
        .address = kiln__read_u64(header + 16),
        .memory_size = kiln__read_u64(header + 32),
        .entry_size = kiln__read_u64(header + 56),
    };
    if (section.type == KILN__ELF_SECTION_NULL) return section;
    if (elf->section_names) section.name = elf->section_names + kiln__read_u32(header);
    if (section.type != KILN__ELF_SECTION_NO_BITS)
        section.bytes = (kiln__bytes){elf->file.at + kiln__read_u64(header + 24), (size_t)section.memory_size};
    return section;
}

kiln__elf_program kiln__elf_program_at(const kiln__elf *elf, uint32_t index) {
    const uint8_t *header = elf->programs + (size_t)index * PROGRAM_SIZE;
    return (kiln__elf_program){
        .type = kiln__read_u32(header),
        .flags = kiln__read_u32(header + 4),
        .address = kiln__read_u64(header + 16),
        .memory_size = kiln__read_u64(header + 40),
        .alignment = kiln__read_u64(header + 48),
        .bytes = {elf->file.at + kiln__read_u64(header + 8), (size_t)kiln__read_u64(header + 32)},
    };
}

kiln_status kiln__elf_note_next(kiln__bytes *rest, uint64_t alignment, kiln__elf_note *out_note) {
    if (rest->size < NOTE_HEADER_SIZE)
        return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "ELF: %zu bytes are less than a note", rest->size);
    uint32_t name_size = kiln__read_u32(rest->at);
    uint32_t description_size = kiln__read_u32(rest->at + 4);
    uint64_t unit = alignment == 8 ? 8 : 4;
    uint64_t description = align_up(NOTE_HEADER_SIZE + (uint64_t)name_size, unit);
    uint64_t end = description + description_size;
    if (end > rest->size)
        return kiln__fail(KILN_ERROR_CORRUPT_IMAGE,
                          "ELF: a note with a name of %u and a description of %u bytes does not fit in %zu bytes",
                          name_size, description_size, rest->size);
    *out_note = (kiln__elf_note){
        .name = {rest->at + NOTE_HEADER_SIZE, name_size},
        .description = {rest->at + description, description_size},
        .type = kiln__read_u32(rest->at + 8),
    };
    uint64_t next = align_up(end, unit);
    if (next > rest->size) next = rest->size; /* the last note's padding may be missing */
    rest->at += next;
    rest->size -= (size_t)next;
    return KILN_OK;
}

kiln_status kiln__elf_symbols_read(const kiln__elf *elf, const kiln__elf_section *section,
                                   kiln__elf_symbols *out_symbols) {
    memset(out_symbols, 0, sizeof *out_symbols);
    kiln__bytes names;
    KILN__TRY(read_strings(elf, section->link, &names));
    if (section->entry_size != SYMBOL_SIZE || section->bytes.size % SYMBOL_SIZE != 0)
        return kiln__fail(KILN_ERROR_CORRUPT_IMAGE,
                          "ELF: symbol table of %zu bytes with entries of %" PRIu64 ": entries must have %d",
                          section->bytes.size, section->entry_size, SYMBOL_SIZE);
    size_t count = section->bytes.size / SYMBOL_SIZE;
    for (size_t i = 0; i < count; i++) {
        uint32_t name = kiln__read_u32(section->bytes.at + i * SYMBOL_SIZE);
        if (name >= names.size)
            return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "ELF: the name of symbol %zu, at %u, is not in its table", i,
                              name);
    }
    *out_symbols = (kiln__elf_symbols){section->bytes.at, count, (const char *)names.at};
    return KILN_OK;
}

kiln__elf_symbol kiln__elf_symbol_at(const kiln__elf_symbols *symbols, size_t index) {
    const uint8_t *entry = symbols->entries + index * SYMBOL_SIZE;
    return (kiln__elf_symbol){
        .name = symbols->names + kiln__read_u32(entry),
        .type = entry[4] & 15,
        .binding = entry[4] >> 4,
        .other = entry[5],
        .section = kiln__read_u16(entry + 6),
        .value = kiln__read_u64(entry + 8),
        .size = kiln__read_u64(entry + 16),
    };
}
