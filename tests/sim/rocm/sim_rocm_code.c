/* Code objects: is it one for this agent, and which kernels and variables are in it, read from the kernel descriptors
 * and the dynamic symbols as the real runtime does (LLVM, "User Guide for AMDGPU Backend", ELF header and Kernel
 * Descriptor). */
#include "tests/sim/amdgcn/decode/amd_code.h"
#include "tests/sim/rocm/sim_rocm.h"
#include <elf.h>
#include <stdlib.h>
#include <string.h>

enum {
    MACHINE_AMDGPU = 224,
    OSABI_HSA = 64,
    FLAG_MACHINE = 0xff,
    FLAG_XNACK = 8, /* shifts of two bits: 0 unsupported, 1 any, 2 off, 3 on */
    FLAG_SRAMECC = 10,
    DESCRIPTOR_SIZE = 64,
    DESCRIPTOR_PROPERTIES = 56,
    PROPERTY_DYNAMIC_STACK = 1 << 11,
    KERNARG_ALIGNMENT = 16,
};

/* Of symbols, beside those that kiln asks for. */
enum {
    SYMBOL_TYPE = 0,
    SYMBOL_NAME_LENGTH = 1,
    SYMBOL_NAME = 2,
    SYMBOL_MODULE_NAME_LENGTH = 3,
    SYMBOL_MODULE_NAME = 4,
    SYMBOL_LINKAGE = 5,
    SYMBOL_KERNARG_ALIGNMENT = 12,
    SYMBOL_IS_DEFINITION = 17,
    SYMBOL_AGENT = 20,
    KIND_VARIABLE = 0,
    KIND_KERNEL = 1,
    LINKAGE_MODULE = 0,
    LINKAGE_PROGRAM = 1
};

/* A range of the file, or NULL beyond its end. */
static const uint8_t *file_at(const sim_reader *reader, uint64_t offset, uint64_t size) {
    return offset <= reader->size && size <= reader->size - offset ? reader->bytes + offset : NULL;
}

static bool feature_fits(uint32_t flags, int shift, int device) {
    const uint32_t image = flags >> shift & 3;
    return image < 2 || (int)image - 1 == device;
}

/* Is it an AMD code object that this runtime reads, and does the agent run it? */
static kiln__hsa_status header_check(const Elf64_Ehdr *header, int32_t device) {
    sim_target target;
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 ||
        header->e_ident[EI_OSABI] != OSABI_HSA || header->e_machine != MACHINE_AMDGPU ||
        header->e_ident[EI_ABIVERSION] < 1 || header->e_ident[EI_ABIVERSION] > 4)
        return SIM_HSA_ERROR_INVALID_CODE_OBJECT;
    if (!sim_rocm_target(device, &target)) return SIM_HSA_ERROR_INVALID_AGENT;
    const uint32_t machine = header->e_flags & FLAG_MACHINE;
    const bool generic = header->e_flags >> 24;
    if (generic && !sim_setting_number("KILN_SIM_GENERIC", 1)) return SIM_HSA_ERROR_INVALID_CODE_OBJECT;
    if (machine != (generic ? target.generic : target.machine)) return SIM_HSA_ERROR_INCOMPATIBLE_ARGUMENTS;
    if (!feature_fits(header->e_flags, FLAG_XNACK, target.xnack) ||
        !feature_fits(header->e_flags, FLAG_SRAMECC, target.sramecc))
        return SIM_HSA_ERROR_INCOMPATIBLE_ARGUMENTS;
    return KILN__HSA_STATUS_SUCCESS;
}

/* The file's bytes at a virtual address, through the program headers. */
static const uint8_t *address_at(const sim_reader *reader, const Elf64_Ehdr *header, uint64_t address, uint64_t size) {
    for (unsigned i = 0; i < header->e_phnum; i++) {
        Elf64_Phdr segment;
        const uint8_t *bytes = file_at(reader, header->e_phoff + i * sizeof segment, sizeof segment);
        if (!bytes) return NULL;
        memcpy(&segment, bytes, sizeof segment);
        if (segment.p_type == PT_LOAD && address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_filesz)
            return file_at(reader, segment.p_offset + (address - segment.p_vaddr), size);
    }
    return NULL;
}

static uint32_t word_at(const uint8_t *bytes) {
    uint32_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

static kiln__hsa_status kernel_add(sim_executable *executable, const char *symbol, const uint8_t *descriptor) {
    sim_kernel *kernel = executable->kernel_count < SIM_KERNEL_MAX ? sim_object_new(".kernel", sizeof *kernel) : NULL;
    if (!kernel || strlen(symbol) >= sizeof kernel->symbol) return SIM_HSA_ERROR_OUT_OF_RESOURCES;
    strcpy(kernel->symbol, symbol);
    kernel->group_bytes = word_at(descriptor);
    kernel->private_bytes = word_at(descriptor + 4);
    kernel->kernarg_bytes = word_at(descriptor + 8);
    kernel->dynamic_stack = word_at(descriptor + DESCRIPTOR_PROPERTIES) & PROPERTY_DYNAMIC_STACK;
    kernel->device = executable->device;
    executable->kernels[executable->kernel_count++] = kernel;
    return KILN__HSA_STATUS_SUCCESS;
}

static bool section_at(const sim_reader *reader, const Elf64_Ehdr *header, unsigned index, Elf64_Shdr *out_section) {
    const uint8_t *bytes = index < header->e_shnum
                               ? file_at(reader, header->e_shoff + index * sizeof *out_section, sizeof *out_section)
                               : NULL;
    if (bytes) memcpy(out_section, bytes, sizeof *out_section);
    return bytes;
}

static bool ends_with(const char *name, size_t length, const char *end) {
    return length > strlen(end) && !strcmp(name + length - strlen(end), end);
}

/* Its alignment is its section's: a symbol has none. */
static kiln__hsa_status variable_add(const sim_reader *reader, const Elf64_Ehdr *header, const char *name,
                                     const Elf64_Sym *symbol, sim_executable *executable) {
    Elf64_Shdr section;
    sim_variable variable = {
        .address = symbol->st_value,
        .initial = address_at(reader, header, symbol->st_value, symbol->st_size),
        .size = (uint32_t)symbol->st_size,
        .weak = ELF64_ST_BIND(symbol->st_info) != STB_GLOBAL,
    };
    if (!section_at(reader, header, symbol->st_shndx, &section)) return SIM_HSA_ERROR_INVALID_CODE_OBJECT;
    if (strlen(name) >= sizeof variable.symbol) return SIM_HSA_ERROR_OUT_OF_RESOURCES;
    strcpy(variable.symbol, name);
    variable.alignment = (uint32_t)section.sh_addralign;
    variable.writable = section.sh_flags & SHF_WRITE;
    return sim_rocm_variable_add(executable, &variable);
}

/* A kernel by its descriptor, or a variable; functions are no symbols of an executable. */
static kiln__hsa_status symbol_add(const sim_reader *reader, const Elf64_Ehdr *header, const char *name, size_t length,
                                   const Elf64_Sym *symbol, sim_executable *executable) {
    if (ends_with(name, length, ".kd")) {
        const uint8_t *descriptor = address_at(reader, header, symbol->st_value, DESCRIPTOR_SIZE);
        return descriptor ? kernel_add(executable, name, descriptor) : SIM_HSA_ERROR_INVALID_CODE_OBJECT;
    }
    SIM_HSA_RULE(symbol->st_shndx != SHN_UNDEF, SIM_HSA_ERROR_VARIABLE_UNDEFINED,
                 "a code object needs %s, which nothing defines", name);
    if (ELF64_ST_TYPE(symbol->st_info) != STT_OBJECT) return KILN__HSA_STATUS_SUCCESS;
    SIM_HSA_RULE(!ends_with(name, length, ".managed"), SIM_HSA_ERROR_INVALID_CODE_OBJECT,
                 "variable %s: there is no managed memory", name);
    return variable_add(reader, header, name, symbol, executable);
}

static kiln__hsa_status symbols_read(const sim_reader *reader, const Elf64_Ehdr *header, const Elf64_Shdr *symbols,
                                     const Elf64_Shdr *strings, sim_executable *executable) {
    for (uint64_t i = 0; i < symbols->sh_size / sizeof(Elf64_Sym); i++) {
        Elf64_Sym symbol;
        const uint8_t *bytes = file_at(reader, symbols->sh_offset + i * sizeof symbol, sizeof symbol);
        if (!bytes) return SIM_HSA_ERROR_INVALID_CODE_OBJECT;
        memcpy(&symbol, bytes, sizeof symbol);
        const char *name = (const char *)file_at(reader, strings->sh_offset + symbol.st_name, 1);
        const size_t room = name ? reader->size - (size_t)((const uint8_t *)name - reader->bytes) : 0;
        const size_t length = name ? strnlen(name, room) : 0;
        if (!name || length == room) return SIM_HSA_ERROR_INVALID_CODE_OBJECT;
        if (!length) continue;
        kiln__hsa_status status = symbol_add(reader, header, name, length, &symbol, executable);
        if (status != KILN__HSA_STATUS_SUCCESS) return status;
    }
    return KILN__HSA_STATUS_SUCCESS;
}

kiln__hsa_status sim_rocm_code_read(const sim_reader *reader, int32_t device, sim_executable *out_executable) {
    Elf64_Ehdr header;
    if (reader->size < sizeof header) return SIM_HSA_ERROR_INVALID_CODE_OBJECT;
    memcpy(&header, reader->bytes, sizeof header);
    kiln__hsa_status status = header_check(&header, device);
    for (unsigned i = 0; i < header.e_shnum && status == KILN__HSA_STATUS_SUCCESS; i++) {
        Elf64_Shdr section, strings;
        if (!section_at(reader, &header, i, &section)) return SIM_HSA_ERROR_INVALID_CODE_OBJECT;
        if (section.sh_type != SHT_DYNSYM) continue;
        if (!section_at(reader, &header, section.sh_link, &strings)) return SIM_HSA_ERROR_INVALID_CODE_OBJECT;
        status = symbols_read(reader, &header, &section, &strings, out_executable);
    }
    return status;
}

/* ---- The driver's functions ---- */

kiln__hsa_status hsa_code_object_reader_create_from_memory(const void *bytes, size_t size,
                                                           kiln__hsa_reader *out_reader) {
    SIM_HSA_ENTER();
    SIM_HSA_RULE(bytes && size && out_reader, SIM_HSA_ERROR_INVALID_ARGUMENT,
                 "hsa_code_object_reader_create_from_memory: NULL or no bytes");
    sim_reader *reader = sim_object_new("reader", sizeof *reader);
    if (!reader) return SIM_HSA_ERROR_OUT_OF_RESOURCES;
    *reader = (sim_reader){bytes, size};
    out_reader->handle = (uint64_t)(uintptr_t)reader;
    return KILN__HSA_STATUS_SUCCESS;
}

kiln__hsa_status hsa_code_object_reader_destroy(kiln__hsa_reader reader) {
    SIM_HSA_ENTER_RELEASE();
    SIM_HSA_RULE(sim_object_live("reader", (void *)(uintptr_t)reader.handle), SIM_HSA_ERROR_INVALID_CODE_OBJECT_READER,
                 "hsa_code_object_reader_destroy: no live reader");
    sim_object_delete("reader", (void *)(uintptr_t)reader.handle);
    SIM_HSA_RELEASED();
}

kiln__hsa_status hsa_executable_create_alt(uint32_t profile, uint32_t rounding, const char *options,
                                           kiln__hsa_executable *out_executable) {
    SIM_HSA_ENTER();
    SIM_HSA_RULE(profile <= 1 && rounding <= 2 && !options && out_executable, SIM_HSA_ERROR_INVALID_ARGUMENT,
                 "hsa_executable_create_alt: profile %u, rounding %u", profile, rounding);
    sim_executable *executable = sim_object_new("executable", sizeof *executable);
    if (!executable) return SIM_HSA_ERROR_OUT_OF_RESOURCES;
    out_executable->handle = (uint64_t)(uintptr_t)executable;
    return KILN__HSA_STATUS_SUCCESS;
}

static sim_executable *executable_of(const char *function, kiln__hsa_executable executable) {
    void *object = (void *)(uintptr_t)executable.handle;
    if (sim_object_live("executable", object)) return object;
    sim_violation("%s: no live executable", function);
    return NULL;
}

kiln__hsa_status hsa_executable_destroy(kiln__hsa_executable handle) {
    SIM_HSA_ENTER_RELEASE();
    sim_executable *executable = executable_of(__func__, handle);
    if (!executable) return SIM_HSA_ERROR_INVALID_EXECUTABLE;
    for (uint32_t i = 0; i < executable->kernel_count; i++)
        if (executable->kernels[i]->running) sim_violation("an executable was destroyed before its kernel was done");
    sim_rocm_kernels_wait();
    for (uint32_t i = 0; i < executable->kernel_count; i++)
        sim_object_delete(".kernel", executable->kernels[i]);
    sim_rocm_variables_delete(executable);
    sim_rocm_program_unload(executable);
    sim_object_delete("executable", executable);
    SIM_HSA_RELEASED();
}

kiln__hsa_status hsa_executable_load_agent_code_object(kiln__hsa_executable handle, kiln__hsa_agent agent,
                                                       kiln__hsa_reader reader_handle, const char *options,
                                                       void *out_loaded) {
    SIM_HSA_ENTER();
    const sim_reader *reader = (const void *)(uintptr_t)reader_handle.handle;
    sim_executable *executable = executable_of(__func__, handle);
    if (!executable) return SIM_HSA_ERROR_INVALID_EXECUTABLE;
    if (executable->frozen) return SIM_HSA_ERROR_FROZEN_EXECUTABLE;
    if (sim_rocm_device(agent) < 0) return SIM_HSA_ERROR_INVALID_AGENT;
    SIM_HSA_RULE(sim_object_live("reader", reader) && !options && !out_loaded, SIM_HSA_ERROR_INVALID_CODE_OBJECT_READER,
                 "hsa_executable_load_agent_code_object: no live reader, or options");
    executable->device = sim_rocm_device(agent);
    executable->reader = reader;
    kiln__hsa_status status = sim_rocm_code_read(reader, executable->device, executable);
    if (status == KILN__HSA_STATUS_SUCCESS) status = sim_rocm_program_load(executable);
    if (status == KILN__HSA_STATUS_SUCCESS) status = sim_rocm_variables_place(executable);
    executable->loaded = status == KILN__HSA_STATUS_SUCCESS;
    return status;
}

kiln__hsa_status hsa_executable_freeze(kiln__hsa_executable handle, const char *options) {
    SIM_HSA_ENTER();
    sim_executable *executable = executable_of(__func__, handle);
    if (!executable || options) return SIM_HSA_ERROR_INVALID_EXECUTABLE;
    SIM_HSA_RULE(executable->loaded && !executable->frozen, SIM_HSA_ERROR_FROZEN_EXECUTABLE,
                 "hsa_executable_freeze: nothing was loaded, or it is frozen");
    executable->frozen = true;
    return KILN__HSA_STATUS_SUCCESS;
}

kiln__hsa_status hsa_executable_get_symbol_by_name(kiln__hsa_executable handle, const char *name,
                                                   const kiln__hsa_agent *agent, kiln__hsa_symbol *out_symbol) {
    SIM_HSA_ENTER();
    const sim_executable *executable = executable_of(__func__, handle);
    if (!executable) return SIM_HSA_ERROR_INVALID_EXECUTABLE;
    SIM_HSA_RULE(name && agent && out_symbol && executable->frozen, SIM_HSA_ERROR_INVALID_ARGUMENT,
                 "hsa_executable_get_symbol_by_name: NULL, or the executable is not frozen");
    if (sim_rocm_device(*agent) != executable->device) return SIM_HSA_ERROR_INVALID_SYMBOL_NAME;
    SIM_HSA_RULE(sim_object_live("reader", executable->reader), SIM_HSA_ERROR_INVALID_CODE_OBJECT_READER,
                 "hsa_executable_get_symbol_by_name: the reader was destroyed before its executable");
    for (uint32_t i = 0; i < executable->kernel_count; i++) {
        if (strcmp(executable->kernels[i]->symbol, name) != 0) continue;
        out_symbol->handle = (uint64_t)(uintptr_t)executable->kernels[i];
        return KILN__HSA_STATUS_SUCCESS;
    }
    for (const sim_variable *variable = executable->variables; variable; variable = variable->next) {
        if (strcmp(variable->symbol, name) != 0) continue;
        out_symbol->handle = (uint64_t)(uintptr_t)variable;
        return KILN__HSA_STATUS_SUCCESS;
    }
    return SIM_HSA_ERROR_INVALID_SYMBOL_NAME;
}

kiln__hsa_status hsa_executable_iterate_agent_symbols(
    kiln__hsa_executable handle, kiln__hsa_agent agent,
    kiln__hsa_status (*callback)(kiln__hsa_executable, kiln__hsa_agent, kiln__hsa_symbol, void *), void *data) {
    int32_t planned = sim_enter(__func__);
    if (planned) return planned == SIM_LIE ? KILN__HSA_STATUS_SUCCESS : (kiln__hsa_status)planned;
    sim_rocm_lock();
    const sim_executable *executable = sim_rocm_started(__func__) ? executable_of(__func__, handle) : NULL;
    const bool has = executable && executable->device == sim_rocm_device(agent);
    const uint32_t count = has ? executable->kernel_count : 0;
    const sim_variable *variable = has ? executable->variables : NULL;
    sim_rocm_unlock();
    if (!executable) return SIM_HSA_ERROR_INVALID_EXECUTABLE;
    kiln__hsa_status status = KILN__HSA_STATUS_SUCCESS;
    for (uint32_t i = 0; i < count && status == KILN__HSA_STATUS_SUCCESS; i++)
        status = callback(handle, agent, (kiln__hsa_symbol){(uint64_t)(uintptr_t)executable->kernels[i]}, data);
    for (; variable && status == KILN__HSA_STATUS_SUCCESS; variable = variable->next)
        status = callback(handle, agent, (kiln__hsa_symbol){(uint64_t)(uintptr_t)variable}, data);
    return status;
}

/* What is said of every symbol. False: it is no such attribute. Names are without a zero at their end. */
static bool symbol_info(const char *name, uint32_t type, uint32_t linkage, int32_t device, uint32_t attribute,
                        void *value) {
    const kiln__hsa_agent agent = {SIM_GPU_AGENT + (uint64_t)device};
    const uint32_t length = (uint32_t)strlen(name), none = 0;
    const bool defined = true;
    switch (attribute) {
    case SYMBOL_TYPE:
        memcpy(value, &type, sizeof type);
        return true;
    case SYMBOL_NAME_LENGTH:
        memcpy(value, &length, sizeof length);
        return true;
    case SYMBOL_NAME:
        memcpy(value, name, length);
        return true;
    case SYMBOL_MODULE_NAME_LENGTH:
        memcpy(value, &none, sizeof none);
        return true;
    case SYMBOL_MODULE_NAME:
        return true;
    case SYMBOL_LINKAGE:
        memcpy(value, &linkage, sizeof linkage);
        return true;
    case SYMBOL_IS_DEFINITION:
        memcpy(value, &defined, sizeof defined);
        return true;
    case SYMBOL_AGENT:
        memcpy(value, &agent, sizeof agent);
        return true;
    default:
        return false;
    }
}

kiln__hsa_status hsa_executable_symbol_get_info(kiln__hsa_symbol symbol, uint32_t attribute, void *value) {
    SIM_HSA_ENTER();
    const sim_variable *variable = sim_rocm_variable_of(symbol);
    if (variable) {
        const uint32_t linkage = variable->weak ? LINKAGE_MODULE : LINKAGE_PROGRAM;
        if (symbol_info(variable->symbol, KIND_VARIABLE, linkage, variable->device, attribute, value))
            return KILN__HSA_STATUS_SUCCESS;
        return sim_rocm_variable_info(variable, attribute, value);
    }
    const sim_kernel *kernel = (const void *)(uintptr_t)symbol.handle;
    if (!sim_object_live(".kernel", kernel)) return SIM_HSA_ERROR_INVALID_EXECUTABLE_SYMBOL;
    if (symbol_info(kernel->symbol, KIND_KERNEL, LINKAGE_PROGRAM, kernel->device, attribute, value))
        return KILN__HSA_STATUS_SUCCESS;
    switch (attribute) {
    case SYMBOL_KERNARG_ALIGNMENT:
        memcpy(value, &(uint32_t){KERNARG_ALIGNMENT}, sizeof(uint32_t));
        return KILN__HSA_STATUS_SUCCESS;
    case KILN__HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT:
        memcpy(value, &symbol.handle, sizeof symbol.handle);
        return KILN__HSA_STATUS_SUCCESS;
    case KILN__HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE:
        memcpy(value, &kernel->kernarg_bytes, sizeof kernel->kernarg_bytes);
        return KILN__HSA_STATUS_SUCCESS;
    case KILN__HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE:
        memcpy(value, &kernel->group_bytes, sizeof kernel->group_bytes);
        return KILN__HSA_STATUS_SUCCESS;
    case KILN__HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE:
        memcpy(value, &kernel->private_bytes, sizeof kernel->private_bytes);
        return KILN__HSA_STATUS_SUCCESS;
    case KILN__HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_DYNAMIC_CALLSTACK:
        memcpy(value, &kernel->dynamic_stack, sizeof kernel->dynamic_stack);
        return KILN__HSA_STATUS_SUCCESS;
    default:
        sim_violation("hsa_executable_symbol_get_info: attribute %u", attribute);
        return SIM_HSA_ERROR_INVALID_ARGUMENT;
    }
}
