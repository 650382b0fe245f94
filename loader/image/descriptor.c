#include "loader/image/descriptor.h"

#include <inttypes.h>
#include <string.h>

/* Of a descriptor, and where its fields stand. */
enum { DESCRIPTOR_SIZE = 64, GROUP_BYTES = 0, PRIVATE_BYTES = 4, KERNARG_SIZE = 8, ENTRY_OFFSET = 16 };

kiln_status kiln__descriptor_symbols(const kiln__elf *elf, kiln__elf_symbols *out_symbols) {
    memset(out_symbols, 0, sizeof *out_symbols);
    for (uint32_t i = 0; i < elf->section_count; i++) {
        kiln__elf_section section = kiln__elf_section_at(elf, i);
        if (section.type == KILN__ELF_SECTION_DYNAMIC_SYMBOLS)
            return kiln__elf_symbols_read(elf, &section, out_symbols);
    }
    return KILN_OK;
}

static bool find_symbol(const kiln__elf_symbols *symbols, kiln__bytes name, kiln__elf_symbol *out_symbol) {
    for (size_t i = 0; i < symbols->count; i++) {
        *out_symbol = kiln__elf_symbol_at(symbols, i);
        if (out_symbol->section != 0 && kiln__bytes_are(name.at, name.size, out_symbol->name)) return true;
    }
    return false;
}

const char *kiln__descriptor_name(const kiln__elf_symbols *symbols, const kiln__hsaco_kernel *kernel) {
    kiln__elf_symbol symbol;
    return find_symbol(symbols, kernel->symbol, &symbol) ? symbol.name : NULL;
}

/* The bytes that are loaded to an address, from the file; NULL if there are fewer than size. */
static const uint8_t *find_loaded(const kiln__elf *elf, uint64_t address, uint64_t size, uint32_t flags) {
    for (uint32_t i = 0; i < elf->program_count; i++) {
        kiln__elf_program program = kiln__elf_program_at(elf, i);
        if (program.type == KILN__ELF_PROGRAM_LOAD && (program.flags & flags) == flags && address >= program.address &&
            kiln__within(address - program.address, size, program.bytes.size))
            return program.bytes.at + (address - program.address);
    }
    return NULL;
}

static kiln_status check_number(const char *what, uint32_t descriptor, uint32_t metadata) {
    if (descriptor != metadata)
        return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "HSACO: its descriptor has %u bytes of %s: the metadata says %u",
                          descriptor, what, metadata);
    return KILN_OK;
}

kiln_status kiln__descriptor_check(const kiln__elf *elf, const kiln__elf_symbols *symbols,
                                   const kiln__hsaco_kernel *kernel) {
    enum { ONE_INSTRUCTION = 4 };
    kiln__elf_symbol symbol;
    if (!find_symbol(symbols, kernel->symbol, &symbol))
        return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "HSACO: no symbol in the file is its descriptor's");
    const uint64_t address = symbol.value;
    const uint8_t *descriptor = find_loaded(elf, address, DESCRIPTOR_SIZE, 0);
    if (!descriptor)
        return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "HSACO: its descriptor, at address %" PRIu64 ", is not in the file",
                          address);
    KILN__TRY(check_number("static LDS", kiln__read_u32(descriptor + GROUP_BYTES), kernel->group_bytes));
    KILN__TRY(check_number("private segment", kiln__read_u32(descriptor + PRIVATE_BYTES), kernel->private_bytes));
    KILN__TRY(check_number("kernarg segment", kiln__read_u32(descriptor + KERNARG_SIZE), kernel->kernarg_size));
    /* The entry is relative to the descriptor, in either direction. */
    uint64_t entry = address + kiln__read_u64(descriptor + ENTRY_OFFSET);
    if (!find_loaded(elf, entry, ONE_INSTRUCTION, KILN__ELF_PROGRAM_EXECUTABLE))
        return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "HSACO: its code, at address %" PRIu64 ", is not in the file",
                          entry);
    return KILN_OK;
}
