/* A bounded reader of ELF files: 64-bit, little-endian, as GPU images are. (System V ABI, chapters 4 and 5.)
 *
 * kiln__elf_read checks the header and both tables completely: every offset, size, alignment and name. What it accepts
 * can be read without further checks; the other functions require only that indices are below their count. Nothing is
 * copied or allocated: strings and bytes point into the file, which must outlive their use. Drivers take images without
 * a length, so extents are checked here or nowhere. */
#ifndef KILN_LOADER_IMAGE_ELF_H
#define KILN_LOADER_IMAGE_ELF_H

#include "loader/image/bytes.h"
#include "loader/status.h"

enum { KILN__ELF_TYPE_RELOCATABLE = 1, KILN__ELF_TYPE_SHARED = 3 };

enum { KILN__ELF_MACHINE_CUDA = 190, KILN__ELF_MACHINE_AMDGPU = 224 };

enum {
    KILN__ELF_SECTION_NULL = 0,
    KILN__ELF_SECTION_SYMBOLS = 2,
    KILN__ELF_SECTION_STRINGS = 3,
    KILN__ELF_SECTION_NO_BITS = 8,
    KILN__ELF_SECTION_DYNAMIC_SYMBOLS = 11
};

enum { KILN__ELF_PROGRAM_LOAD = 1, KILN__ELF_PROGRAM_NOTE = 4 };

enum { KILN__ELF_PROGRAM_EXECUTABLE = 1 }; /* in flags */

enum { KILN__ELF_SYMBOL_LOCAL = 0 };    /* bindings */
enum { KILN__ELF_SYMBOL_FUNCTION = 2 }; /* types */

typedef struct kiln__elf {
    kiln__bytes file;
    uint8_t os_abi;
    uint8_t abi_version;
    uint16_t type;
    uint16_t machine;
    uint32_t flags;
    uint32_t section_count;
    uint32_t program_count;
    const uint8_t *sections;   /* the section headers */
    const uint8_t *programs;   /* the program headers */
    const char *section_names; /* NULL: sections have no names */
} kiln__elf;

typedef struct kiln__elf_section {
    const char *name; /* "" if it has none */
    uint32_t type;
    uint32_t link;
    uint32_t info;
    uint64_t address;
    uint64_t memory_size; /* size when loaded; equals bytes.size unless SHT_NOBITS */
    uint64_t entry_size;
    kiln__bytes bytes; /* empty for SHT_NOBITS */
} kiln__elf_section;

typedef struct kiln__elf_program {
    uint32_t type;
    uint32_t flags;
    uint64_t address;
    uint64_t memory_size;
    uint64_t alignment;
    kiln__bytes bytes;
} kiln__elf_program;

typedef struct kiln__elf_note {
    kiln__bytes name; /* NUL included */
    kiln__bytes description;
    uint32_t type;
} kiln__elf_note;

/* A checked symbol table. */
typedef struct kiln__elf_symbols {
    const uint8_t *entries;
    size_t count;
    const char *names;
} kiln__elf_symbols;

typedef struct kiln__elf_symbol {
    const char *name;
    uint8_t type;
    uint8_t binding;
    uint8_t other;    /* st_other, machine-specific flags */
    uint16_t section; /* index; may be reserved or beyond the last section */
    uint64_t value;
    uint64_t size;
} kiln__elf_symbol;

/* Whether the bytes begin with the ELF magic. */
bool kiln__elf_is(const void *bytes, size_t size);

/* Reads and checks a whole file: header, section headers, program headers.
 * Returns KILN_OK, KILN_ERROR_CORRUPT_IMAGE, KILN_ERROR_UNSUPPORTED (32-bit, big-endian, 65280 or more sections). */
kiln_status kiln__elf_read(const void *bytes, size_t size, kiln__elf *out_elf);

/* A section or program header, by an index below the count. */
kiln__elf_section kiln__elf_section_at(const kiln__elf *elf, uint32_t index);
kiln__elf_program kiln__elf_program_at(const kiln__elf *elf, uint32_t index);

/* Reads the note at *rest and advances *rest past it. alignment is the segment's; any value but 8 means 4. Returns
 * KILN_OK, KILN_ERROR_CORRUPT_IMAGE. */
kiln_status kiln__elf_note_next(kiln__bytes *rest, uint64_t alignment, kiln__elf_note *out_note);

/* Checks the symbol table in a section of this file. Returns KILN_OK, KILN_ERROR_CORRUPT_IMAGE. */
kiln_status kiln__elf_symbols_read(const kiln__elf *elf, const kiln__elf_section *section,
                                   kiln__elf_symbols *out_symbols);

/* A symbol, by an index below the count. */
kiln__elf_symbol kiln__elf_symbol_at(const kiln__elf_symbols *symbols, size_t index);

#endif
