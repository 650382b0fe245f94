/* What an image is, which device takes it, and which kernels it has. Read without the library's parsers, so that the
 * two check each other; a driver gets no length, so the bytes are trusted as far as their own headers go. */
#include "tests/sim/cuda/sim_cuda.h"
#include "tests/sim/ptx/parse/ptx_syntax.h"
#include <ctype.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARGUMENTS_MAX = 32764 };

/* A new entry without parameters; NULL without memory. */
static sim_entry *entry_add(sim_image *image) {
    sim_entry *grown = realloc(image->entries, (image->entry_count + 1) * sizeof *grown);
    if (!grown) return NULL;
    image->entries = grown;
    grown[image->entry_count] = (sim_entry){.max_threads = 1024};
    return &grown[image->entry_count++];
}

/* The parameter of a number, and all before it; NULL without memory, and of more than a kernel can have. */
static sim_parameter *parameter_at(sim_entry *entry, uint32_t number) {
    if (number >= ARGUMENTS_MAX) return NULL;
    if (number >= entry->parameter_count) {
        sim_parameter *grown = realloc(entry->parameters, (number + 1) * sizeof *grown);
        if (!grown) return NULL;
        memset(grown + entry->parameter_count, 0, (number + 1 - entry->parameter_count) * sizeof *grown);
        entry->parameters = grown;
        entry->parameter_count = number + 1;
    }
    return &entry->parameters[number];
}

/* ---- PTX ---- */

/* The highest PTX version (84 is 8.4) that a driver (12040) reads. */
static const struct {
    int32_t driver, ptx;
} ptx_versions[] = {
    {10000, 63}, {10010, 64}, {10020, 65}, {11000, 70}, {11010, 71}, {11020, 72}, {11030, 73}, {11040, 74},
    {11050, 75}, {11060, 76}, {11070, 77}, {11080, 78}, {12000, 80}, {12010, 81}, {12020, 82}, {12030, 83},
    {12040, 84}, {12050, 85}, {12070, 86}, {12080, 87}, {12090, 88}, {13000, 90}, {13010, 91}, {13020, 92},
};

static int32_t highest_ptx(void) {
    int32_t found = 0;
    for (size_t i = 0; i < sizeof ptx_versions / sizeof *ptx_versions; i++)
        if (ptx_versions[i].driver <= sim_cuda_version()) found = ptx_versions[i].ptx;
    return found;
}

/* What the variables of shared memory in a list take behind others. */
static uint32_t shared_behind(uint32_t bytes, const ptx_variable *variables) {
    for (const ptx_variable *v = variables; v; v = v->next)
        if (v->space == PTX_SPACE_SHARED && !v->is_extern)
            bytes = (bytes + v->align - 1) / v->align * v->align + (uint32_t)v->size;
    return bytes;
}

static bool read_entry(const ptx_module *module, const ptx_function *function, sim_entry *entry) {
    if (strlen(function->name) >= SIM_NAME_SIZE) return false;
    strcpy(entry->name, function->name);
    for (const ptx_variable *v = function->parameters; v; v = v->next) {
        sim_parameter *parameter = parameter_at(entry, entry->parameter_count);
        if (!parameter) return false;
        *parameter = (sim_parameter){(uint32_t)v->offset, (uint32_t)v->size};
    }
    entry->arguments_known = true;
    entry->arguments_size = function->parameter_bytes;
    if (function->max_threads) entry->max_threads = function->max_threads;
    entry->shared_bytes = shared_behind(shared_behind(0, module->variables), function->variables);
    return true;
}

/* Whether a device takes a text for a target: "sm_90", "sm_90a" (that alone), "sm_100f" (its family). */
static bool fits(const char *target, int32_t capability) {
    char *suffix;
    if (strncmp(target, "sm_", 3) != 0) return false;
    int32_t wanted = (int32_t)strtol(target + 3, &suffix, 10);
    return *suffix == 'a'   ? capability == wanted
           : *suffix == 'f' ? capability / 10 == wanted / 10 && capability >= wanted
                            : capability >= wanted;
}

static kiln__cu_result read_ptx(const char *text, int32_t capability, sim_image *image, char *log, size_t size) {
    uint32_t version, highest = (uint32_t)highest_ptx();
    char target[16];
    if (!ptx_module_head(text, strlen(text), &version, target, log, size)) return SIM_CUDA_INVALID_PTX;
    if (version > highest) {
        snprintf(log, size, "Unsupported .version %u.%u; current version is '%u.%u'\n", version / 10, version % 10,
                 highest / 10, highest % 10);
        return SIM_CUDA_UNSUPPORTED_PTX_VERSION;
    }
    if (!fits(target, capability)) {
        snprintf(log, size, "target %s on a device of sm_%d\n", target, capability);
        return SIM_CUDA_NO_BINARY_FOR_GPU;
    }
    ptx_module *module = ptx_module_parse(text, strlen(text), log, size);
    if (!module) return SIM_CUDA_INVALID_PTX;
    ptx_module_place_parameters(module, capability);
    image->virtual_target = (uint32_t)strtoul(target + strlen("sm_"), NULL, 10);
    image->target = (uint32_t)capability;
    bool read = true;
    for (const ptx_function *f = module->functions; f && read; f = f->next) {
        if (!f->is_entry || !f->is_defined) continue;
        sim_entry *entry = entry_add(image);
        read = entry && read_entry(module, f, entry);
    }
    ptx_module_free(module);
    if (read) return SIM_CUDA_SUCCESS;
    snprintf(log, size, "an .entry that cannot be read\n");
    return SIM_CUDA_INVALID_PTX;
}

/* ---- Cubin ---- */

enum { CUDA_MACHINE = 190, CUDA_ABI_2 = 8 };
/* Records of a .nv.info section: format and attribute, a byte each. */
enum {
    INFO_MAX_THREADS = 0x0504,
    INFO_PARAMETERS = 0x0a04,
    INFO_PARAMETER = 0x1704,
    INFO_REGISTERS = 0x2f04, /* a symbol, and how many its code has; in .nv.info, which is of the whole file */
    INFO_LONG = 4
};
/* Of a kernel's section of shared memory, in files that have one for the system. */
enum { RESERVED_SHARED = 1024, RESERVED_SHARED_FROM = 90 };

static uint32_t word(const uint8_t *at) {
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static uint16_t half(const uint8_t *at) {
    uint16_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static void read_parameter_info(const uint8_t *record, sim_entry *entry) {
    sim_parameter *parameter = parameter_at(entry, half(record + 4));
    if (parameter) *parameter = (sim_parameter){half(record + 6), word(record + 8) >> 18};
}

static void read_info(const uint8_t *at, size_t size, sim_entry *entry) {
    const uint8_t *end = at + size;
    while (end - at >= 4) {
        uint16_t kind = half(at), length = (at[0] == INFO_LONG) ? half(at + 2) : 0;
        const uint8_t *record = at + 4;
        if (length > end - record) return;
        if (kind == INFO_MAX_THREADS && length == 12)
            entry->max_threads = word(record) * word(record + 4) * word(record + 8);
        if (kind == INFO_PARAMETERS && length == 8) {
            entry->arguments_size = half(record + 6);
            entry->arguments_known = true;
        }
        if (kind == INFO_PARAMETER && length == 12) read_parameter_info(record, entry);
        at = record + length;
    }
}

static sim_entry *entry_named(sim_image *image, const char *name) {
    for (uint32_t i = 0; i < image->entry_count; i++)
        if (!strcmp(image->entries[i].name, name)) return &image->entries[i];
    sim_entry *created = entry_add(image);
    if (created) snprintf(created->name, sizeof created->name, "%s", name);
    return created;
}

typedef struct cubin {
    const uint8_t *bytes;
    const Elf64_Shdr *sections;
    const char *names; /* of sections */
    unsigned count;
} cubin;

static const Elf64_Shdr *section_named(const cubin *file, const char *name) {
    for (unsigned i = 0; i < file->count; i++)
        if (!strcmp(file->names + file->sections[i].sh_name, name)) return &file->sections[i];
    return NULL;
}

/* No more threads are launched than have room with their registers. */
static void set_registers(sim_entry *entry, uint32_t registers) {
    const uint32_t most = registers ? sim_cuda_threads_with(registers) : entry->max_threads;
    entry->registers = registers;
    if (most < entry->max_threads) entry->max_threads = most;
}

static void read_registers(const cubin *file, sim_image *image) {
    const Elf64_Shdr *info = section_named(file, ".nv.info"), *table = section_named(file, ".symtab");
    if (!info || !table) return;
    const Elf64_Sym *symbols = (const void *)(file->bytes + table->sh_offset);
    const char *names = (const char *)file->bytes + file->sections[table->sh_link].sh_offset;
    const uint8_t *at = file->bytes + info->sh_offset, *end = at + info->sh_size;
    for (uint16_t length; end - at >= 4; at += 4 + length) {
        length = at[0] == INFO_LONG ? half(at + 2) : 0;
        if (half(at) != INFO_REGISTERS || end - at < 12 || word(at + 4) >= table->sh_size / sizeof *symbols) continue;
        for (uint32_t i = 0; i < image->entry_count; i++)
            if (!strcmp(image->entries[i].name, names + symbols[word(at + 4)].st_name))
                set_registers(&image->entries[i], word(at + 8));
    }
}

/* ".nv.info.scale" and ".nv.shared.scale" tell of the kernel whose code is ".text.scale". */
static void read_section(const cubin *file, const Elf64_Shdr *section, sim_image *image) {
    const char *name = file->names + section->sh_name;
    static const char info[] = ".nv.info.", shared[] = ".nv.shared.", reserved[] = ".nv.shared.reserved";
    sim_entry *entry = NULL;
    if (!strncmp(name, info, sizeof info - 1) && (entry = entry_named(image, name + sizeof info - 1)))
        read_info(file->bytes + section->sh_offset, section->sh_size, entry);
    if (!strncmp(name, shared, sizeof shared - 1) && strncmp(name, reserved, sizeof reserved - 1) &&
        (entry = entry_named(image, name + sizeof shared - 1)))
        entry->shared_bytes =
            (uint32_t)section->sh_size - (image->target >= RESERVED_SHARED_FROM ? RESERVED_SHARED : 0);
}

static kiln__cu_result read_cubin(const uint8_t *bytes, int32_t capability, sim_image *image, char *log, size_t size) {
    const Elf64_Ehdr *elf = (const void *)bytes;
    if (elf->e_ident[EI_CLASS] != ELFCLASS64 || elf->e_machine != CUDA_MACHINE) {
        snprintf(log, size, "no cubin: machine %u\n", elf->e_machine);
        return SIM_CUDA_INVALID_IMAGE;
    }
    int32_t wanted = elf->e_ident[EI_ABIVERSION] >= CUDA_ABI_2 ? elf->e_flags >> 8 & 0xff : elf->e_flags & 0xff;
    if (wanted / 10 != capability / 10 || wanted > capability) {
        snprintf(log, size, "cubin of sm_%d on a device of sm_%d\n", wanted, capability);
        return SIM_CUDA_NO_BINARY_FOR_GPU;
    }
    image->virtual_target = image->target = (uint32_t)wanted;
    cubin file = {bytes, (const void *)(bytes + elf->e_shoff), NULL, elf->e_shnum};
    file.names = (const char *)bytes + file.sections[elf->e_shstrndx].sh_offset;
    for (unsigned i = 0; i < file.count; i++)
        read_section(&file, &file.sections[i], image);
    read_registers(&file, image);
    return SIM_CUDA_SUCCESS;
}

kiln__cu_result sim_cuda_image_read(const void *bytes, int32_t capability, sim_image *out_image, char *log,
                                    size_t log_size) {
    const char *text = bytes;
    memset(out_image, 0, sizeof *out_image);
    if (!memcmp(text, ELFMAG, SELFMAG)) return read_cubin(bytes, capability, out_image, log, log_size);
    if (text[0] == '.' || text[0] == '/' || isspace((unsigned char)text[0]))
        return read_ptx(text, capability, out_image, log, log_size);
    snprintf(log, log_size, "neither PTX nor a cubin\n");
    return SIM_CUDA_INVALID_IMAGE;
}

void sim_cuda_image_free(sim_image *image) {
    for (uint32_t i = 0; i < image->entry_count; i++)
        free(image->entries[i].parameters);
    free(image->entries);
    *image = (sim_image){0};
}
