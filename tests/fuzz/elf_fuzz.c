#include "loader/image/elf.h"
#include "tests/fuzz/targets.h"

#include <string.h>

static volatile uint64_t sum; /* so that bytes handed out are read */

static void read_bytes(kiln__bytes bytes) {
    if (bytes.size) sum += (uint64_t)bytes.at[0] + bytes.at[bytes.size - 1];
}

static void read_symbols(const kiln__elf *elf, const kiln__elf_section *section) {
    kiln__elf_symbols symbols;
    if (kiln__elf_symbols_read(elf, section, &symbols)) return;
    for (size_t i = 0; i < symbols.count; i++)
        sum += strlen(kiln__elf_symbol_at(&symbols, i).name);
}

void fuzz_elf(const uint8_t *bytes, size_t size) {
    kiln__elf elf;
    if (kiln__elf_read(bytes, size, &elf)) return;
    for (uint32_t i = 0; i < elf.section_count; i++) {
        kiln__elf_section section = kiln__elf_section_at(&elf, i);
        sum += strlen(section.name);
        read_bytes(section.bytes);
        if (section.type == KILN__ELF_SECTION_SYMBOLS || section.type == KILN__ELF_SECTION_DYNAMIC_SYMBOLS)
            read_symbols(&elf, &section);
    }
    for (uint32_t i = 0; i < elf.program_count; i++) {
        kiln__elf_program program = kiln__elf_program_at(&elf, i);
        read_bytes(program.bytes);
        kiln__elf_note note;
        while (program.type == KILN__ELF_PROGRAM_NOTE && program.bytes.size > 0 &&
               !kiln__elf_note_next(&program.bytes, program.alignment, &note)) {
            read_bytes(note.name);
            read_bytes(note.description);
        }
    }
}
