#include "loader/image/cubin.h"

#include <string.h>

/* ABI version 1: the SM number is the low byte of e_flags; version 2: the one above. Both have a bit for 'a', which the
 * assembler leaves clear in version 2: there it is an attribute in .nv.compat. */
enum { ABI_1_OS_ABI = 0x33, ABI_1_VERSION = 7, ABI_1_EXACT = 0x800 };
enum { ABI_2_OS_ABI = 0x41, ABI_2_VERSION = 8, ABI_2_EXACT = 0x8 };

enum { SECTION_INFO = 0x70000000, SECTION_COMPAT = 0x70000086 };

/* In a symbol's st_other: an entry point, not a device function. */
enum { SYMBOL_ENTRY = 0x10 };

/* The system's share of each kernel's shared memory, from this compute capability on. */
enum { SYSTEM_SHARED = 1024, SYSTEM_SHARED_FROM = 90 };

enum {
    ATTRIBUTE_MAX_THREADS = 0x05,      /* u32 x, y, z */
    ATTRIBUTE_REQUIRED_THREADS = 0x10, /* the same */
    ATTRIBUTE_PARAMETER = 0x17,        /* u32 0; u16 number, offset; u32 size << 18 and flags */
    ATTRIBUTE_PARAMETERS_SIZE = 0x19,  /* in the value */
    ATTRIBUTE_REGISTERS = 0x2f,        /* u32 symbol, count; of the module */
    COMPAT_EXACT = 0x09                /* in the value */
};

/* ---- Attributes: .nv.info and .nv.compat --------------------------------------------------------------------------
 */

enum { FORMAT_NONE = 1, FORMAT_BYTE, FORMAT_HALF, FORMAT_SIZED };

typedef struct image_attribute {
    uint8_t number;
    uint32_t value;   /* of FORMAT_BYTE and FORMAT_HALF */
    kiln__bytes data; /* of FORMAT_SIZED */
} image_attribute;

/* Reads the attribute in front of *rest. false at the end, and where the layout is not known. */
static bool next_attribute(kiln__bytes *rest, image_attribute *out_attribute) {
    if (rest->size < 4) return false;
    const uint8_t *at = rest->at;
    uint16_t half = kiln__read_u16(at + 2);
    size_t size = 4;
    *out_attribute = (image_attribute){.number = at[1]};
    switch (at[0]) {
    case FORMAT_NONE:
        break;
    case FORMAT_BYTE:
        out_attribute->value = at[2];
        break;
    case FORMAT_HALF:
        out_attribute->value = half;
        break;
    case FORMAT_SIZED:
        size += half;
        if (size > rest->size) return false;
        out_attribute->data = (kiln__bytes){at + 4, half};
        break;
    default:
        return false;
    }
    rest->at += size;
    rest->size -= size;
    return true;
}

static bool has_exact(kiln__bytes compat) {
    image_attribute attribute;
    while (next_attribute(&compat, &attribute))
        if (attribute.number == COMPAT_EXACT) return attribute.value != 0;
    return false;
}

static uint32_t find_registers(kiln__bytes attributes, size_t symbol) {
    image_attribute attribute;
    while (next_attribute(&attributes, &attribute))
        if (attribute.number == ATTRIBUTE_REGISTERS && attribute.data.size == 8 &&
            kiln__read_u32(attribute.data.at) == symbol)
            return kiln__read_u32(attribute.data.at + 4);
    return 0;
}

/* x * y * z, or 0 (not known) if no block can be so large. */
static uint32_t read_threads(const uint8_t *at) {
    uint64_t threads = (uint64_t)kiln__read_u32(at) * kiln__read_u32(at + 4);
    uint32_t depth = kiln__read_u32(at + 8);
    return threads <= UINT32_MAX && threads * depth <= UINT32_MAX ? (uint32_t)(threads * depth) : 0;
}

static void read_kernel_attributes(kiln__bytes attributes, kiln_kernel_info *info) {
    image_attribute attribute;
    while (next_attribute(&attributes, &attribute)) {
        if (attribute.number == ATTRIBUTE_PARAMETERS_SIZE) info->arguments_size = attribute.value;
        if ((attribute.number == ATTRIBUTE_MAX_THREADS || attribute.number == ATTRIBUTE_REQUIRED_THREADS) &&
            attribute.data.size == 12)
            info->max_threads = read_threads(attribute.data.at);
    }
}

/* Whether a parameter is aligned to more than 16 bytes: constant memory begins behind that many, so that there is a gap
 * in front of it that no smaller alignment leaves. The last parameter comes first. */
static bool is_overaligned(kiln__bytes attributes) {
    enum { NONE = -1, GAP = 16 };
    image_attribute attribute;
    int32_t behind = NONE;
    while (next_attribute(&attributes, &attribute)) {
        if (attribute.number != ATTRIBUTE_PARAMETER || attribute.data.size != 12) continue;
        int32_t begin = kiln__read_u16(attribute.data.at + 6);
        int32_t end = begin + (int32_t)(kiln__read_u32(attribute.data.at + 8) >> 18);
        if (behind != NONE && behind - end >= GAP) return true;
        behind = begin;
    }
    return behind >= GAP;
}

/* ---- The file -----------------------------------------------------------------------------------------------------
 */

static bool starts_with(const char *text, const char *prefix) {
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static void read_flags(const kiln__elf *elf, kiln__cubin *cubin) {
    if (elf->os_abi == ABI_1_OS_ABI && elf->abi_version == ABI_1_VERSION) {
        cubin->capability = (int32_t)(elf->flags & 0xff);
        cubin->exact = (elf->flags & ABI_1_EXACT) != 0;
    } else if (elf->os_abi == ABI_2_OS_ABI && elf->abi_version == ABI_2_VERSION) {
        cubin->capability = (int32_t)(elf->flags >> 8 & 0xff);
        cubin->exact = (elf->flags & ABI_2_EXACT) != 0;
    }
}

static kiln_status read_sections(kiln__cubin *cubin) {
    const kiln__elf *elf = &cubin->elf;
    for (uint32_t i = 0; i < elf->section_count; i++) {
        kiln__elf_section section = kiln__elf_section_at(elf, i);
        if (section.type == KILN__ELF_SECTION_SYMBOLS)
            KILN__TRY(kiln__elf_symbols_read(elf, &section, &cubin->symbols));
        if (section.type == SECTION_INFO && strcmp(section.name, ".nv.info") == 0) cubin->attributes = section.bytes;
        if (section.type == SECTION_COMPAT && has_exact(section.bytes)) cubin->exact = true;
    }
    return KILN_OK;
}

static bool is_kernel(const kiln__cubin *cubin, const kiln__elf_symbol *symbol) {
    return symbol->type == KILN__ELF_SYMBOL_FUNCTION && symbol->binding != KILN__ELF_SYMBOL_LOCAL &&
           (symbol->other & SYMBOL_ENTRY) != 0 && symbol->section != 0 && symbol->section < cubin->elf.section_count;
}

kiln_status kiln__cubin_read(const void *bytes, size_t size, kiln__cubin *out_cubin) {
    memset(out_cubin, 0, sizeof *out_cubin);
    kiln__cubin cubin = {.capability = 0};
    KILN__TRY(kiln__elf_read(bytes, size, &cubin.elf));
    if (cubin.elf.machine != KILN__ELF_MACHINE_CUDA)
        return kiln__fail(KILN_ERROR_UNSUPPORTED, "cubin: ELF machine %u: must be %d", cubin.elf.machine,
                          KILN__ELF_MACHINE_CUDA);
    if (cubin.elf.type == KILN__ELF_TYPE_RELOCATABLE)
        return kiln__fail(KILN_ERROR_UNSUPPORTED,
                          "cubin: relocatable device code: link it, or compile with -rdc=false");
    read_flags(&cubin.elf, &cubin);
    if (cubin.capability >= SYSTEM_SHARED_FROM) cubin.reserved_shared = SYSTEM_SHARED;
    KILN__TRY(read_sections(&cubin));
    for (size_t i = 0; i < cubin.symbols.count; i++) {
        kiln__elf_symbol symbol = kiln__elf_symbol_at(&cubin.symbols, i);
        if (is_kernel(&cubin, &symbol)) cubin.kernel_count++;
    }
    if (cubin.kernel_count > KILN__CUBIN_KERNELS_MAX)
        return kiln__fail(KILN_ERROR_UNSUPPORTED, "cubin: %u kernels: at most %d are supported", cubin.kernel_count,
                          KILN__CUBIN_KERNELS_MAX);
    *out_cubin = cubin;
    return KILN_OK;
}

/* A kernel's own sections name the section of its code in sh_info. */
static kiln_status read_kernel_sections(const kiln__cubin *cubin, uint32_t code, kiln_kernel_facts *kernel) {
    kiln_kernel_info *info = &kernel->info;
    for (uint32_t i = 0; i < cubin->elf.section_count; i++) {
        kiln__elf_section section = kiln__elf_section_at(&cubin->elf, i);
        if (section.info != code) continue;
        if (section.type == SECTION_INFO && starts_with(section.name, ".nv.info.")) {
            if (is_overaligned(section.bytes))
                return kiln__fail(KILN_ERROR_UNSUPPORTED,
                                  "cubin: kernel %s: a parameter is aligned to more than 16 bytes, by its address in "
                                  "constant memory: its offset is not a C struct's",
                                  kernel->name);
            read_kernel_attributes(section.bytes, info);
        }
        if (section.type == KILN__ELF_SECTION_NO_BITS && starts_with(section.name, ".nv.shared.") &&
            section.memory_size >= cubin->reserved_shared && section.memory_size <= UINT32_MAX)
            info->shared_bytes = (uint32_t)section.memory_size - cubin->reserved_shared;
    }
    return KILN_OK;
}

kiln_status kiln__cubin_kernel_next(const kiln__cubin *cubin, size_t *cursor, kiln_kernel_facts *out_kernel) {
    memset(out_kernel, 0, sizeof *out_kernel);
    for (; *cursor < cubin->symbols.count; ++*cursor) {
        kiln__elf_symbol symbol = kiln__elf_symbol_at(&cubin->symbols, *cursor);
        if (!is_kernel(cubin, &symbol)) continue;
        size_t length = strlen(symbol.name);
        if (length == 0)
            return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "cubin: the kernel of symbol %zu has no name", *cursor);
        out_kernel->name = symbol.name;
        out_kernel->name_size = length;
        KILN__TRY(read_kernel_sections(cubin, symbol.section, out_kernel));
        out_kernel->info.registers = find_registers(cubin->attributes, *cursor);
        ++*cursor;
        return KILN_OK;
    }
    return kiln__fail(KILN_ERROR_NOT_FOUND, "cubin: there are no more kernels");
}
