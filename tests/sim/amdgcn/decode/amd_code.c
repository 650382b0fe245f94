/* Loads a code object: the image, the kernels and variables that its dynamic symbols name, and its instructions. */
#include "tests/sim/amdgcn/decode/amd_code.h"
#include "tests/sim/amdgcn/decode/amd_llvm.h"
#include "tests/sim/amdgcn/decode/amd_metadata.h"
#include "tests/sim/amdgcn/decode/amd_modifiers.h"
#include "tests/sim/amdgcn/decode/amd_registers.h"
#include "tests/sim/amdgcn/matrix/amd_dot.h"
#include "tests/sim/amdgcn/wave/amd_hazard.h"
#include <elf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PAGE = 4096,
    IMAGE_MAX = 256 << 20,
    TEXT_MAX = 512,
    DESCRIPTOR_SIZE = 64,
    PROPERTY_WAVE32 = 1 << 10,
    PROPERTY_DYNAMIC_STACK = 1 << 11,
    R_AMDGPU_ABS64 = 3,
    R_AMDGPU_RELATIVE64 = 13
};

/* The hexadecimal digits before the last two, read as decimal: 0x1030 is 10. */
#define AMD_MAJOR(version) ((version) >> 12 & 15 ? 10 + ((version) >> 8 & 15) : (version) >> 8)
static const amd_target targets[] = {
#define AMD_TARGET(processor, version, packed, ready, registers, granule)                              \
    {#processor, version, AMD_MAJOR(version), packed, ready, (version) == 0x90a || (version) == 0x942, \
     registers,  granule},
#include "tests/sim/amdgcn/decode/amd_targets.def"
#undef AMD_TARGET
};

const amd_target *amd_target_find(const char *processor) {
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        if (!strcmp(targets[i].processor, processor)) return &targets[i];
    }
    return NULL;
}

/* What loading is about: the file, the program that comes of it, and where to write the reason if none does. */
typedef struct loader {
    const uint8_t *bytes;
    size_t size;
    Elf64_Ehdr header;
    amd_program *program;
    bool both; /* kernels of both wave sizes: each decoding is of the kernels of one, and of what it can read of the
                  rest */
    char *why;
    size_t why_size;
} loader;

static bool refuse(loader *l, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool refuse(loader *l, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(l->why, l->why_size, format, arguments);
    va_end(arguments);
    return false;
}

/* ---- The image ---- */

static bool segment_read(const loader *l, unsigned index, Elf64_Phdr *segment) {
    uint64_t at = l->header.e_phoff + (uint64_t)index * sizeof *segment;
    if (at > l->size || sizeof *segment > l->size - at) return false;
    memcpy(segment, l->bytes + at, sizeof *segment);
    return segment->p_type != PT_LOAD ||
           (segment->p_offset <= l->size && segment->p_filesz <= l->size - segment->p_offset &&
            segment->p_filesz <= segment->p_memsz && segment->p_vaddr < IMAGE_MAX && segment->p_memsz < IMAGE_MAX);
}

static bool segment_add(amd_program *program, uint64_t offset, uint64_t size, bool constant) {
    if (program->segment_count == AMD_SEGMENTS) return false;
    program->segments[program->segment_count++] =
        (sim_region){(uintptr_t)program->image + offset, size, NULL, constant};
    return true;
}

/* The bytes of the segments, and zeros between them. */
static void image_fill(const loader *l) {
    amd_program *program = l->program;
    Elf64_Phdr segment;
    memset(program->image, 0, program->image_size);
    for (unsigned i = 0; i < l->header.e_phnum; i++)
        if (segment_read(l, i, &segment) && segment.p_type == PT_LOAD)
            memcpy(program->image + segment.p_vaddr, l->bytes + segment.p_offset, segment.p_filesz);
}

static bool image_load(loader *l) {
    amd_program *program = l->program;
    Elf64_Phdr segment;
    uint64_t end = 0;
    if (l->size < sizeof l->header || memcmp(l->bytes, ELFMAG, SELFMAG) != 0) return refuse(l, "not an ELF file");
    memcpy(&l->header, l->bytes, sizeof l->header);
    for (unsigned i = 0; i < l->header.e_phnum; i++) {
        if (!segment_read(l, i, &segment)) return refuse(l, "program header %u is outside of the file", i);
        if (segment.p_type != PT_LOAD) continue;
        if (segment.p_vaddr + segment.p_memsz > end) end = segment.p_vaddr + segment.p_memsz;
        if (!(segment.p_flags & PF_X)) continue;
        if (program->text_end) return refuse(l, "two executable segments");
        program->text_begin = (uint32_t)segment.p_vaddr;
        program->text_end = (uint32_t)(segment.p_vaddr + segment.p_filesz);
    }
    if (!program->text_end || program->text_begin % 4) return refuse(l, "no executable segment");
    program->image_size = (end + PAGE - 1) / PAGE * PAGE;
    program->image = aligned_alloc(PAGE, program->image_size);
    if (!program->image) return refuse(l, "out of memory");
    image_fill(l);
    for (unsigned i = 0; i < l->header.e_phnum; i++) {
        if (!segment_read(l, i, &segment) || segment.p_type != PT_LOAD) continue;
        if (!segment_add(program, segment.p_vaddr, segment.p_memsz, !(segment.p_flags & PF_W)))
            return refuse(l, "more than %d segments", AMD_SEGMENTS);
    }
    return true;
}

/* Bytes of the image, or NULL beyond its end. */
static uint8_t *image_at(const amd_program *program, uint64_t address, uint64_t size) {
    return address <= program->image_size && size <= program->image_size - address ? program->image + address : NULL;
}

static uint32_t word_at(const uint8_t *bytes) {
    uint32_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

/* ---- Symbols and relocations: through the dynamic segment, as a loader finds them ---- */

typedef struct dynamic {
    uint64_t symbols, strings, strings_size, hash, relocations, relocations_size;
} dynamic;

static dynamic dynamic_read(const loader *l) {
    dynamic found = {0};
    Elf64_Phdr segment;
    for (unsigned i = 0; i < l->header.e_phnum; i++) {
        if (!segment_read(l, i, &segment) || segment.p_type != PT_DYNAMIC) continue;
        for (uint64_t at = segment.p_vaddr; at < segment.p_vaddr + segment.p_memsz; at += sizeof(Elf64_Dyn)) {
            Elf64_Dyn entry;
            const uint8_t *bytes = image_at(l->program, at, sizeof entry);
            if (!bytes) break;
            memcpy(&entry, bytes, sizeof entry);
            if (entry.d_tag == DT_SYMTAB) found.symbols = entry.d_un.d_ptr;
            if (entry.d_tag == DT_STRTAB) found.strings = entry.d_un.d_ptr;
            if (entry.d_tag == DT_STRSZ) found.strings_size = entry.d_un.d_val;
            if (entry.d_tag == DT_HASH) found.hash = entry.d_un.d_ptr;
            if (entry.d_tag == DT_RELA) found.relocations = entry.d_un.d_ptr;
            if (entry.d_tag == DT_RELASZ) found.relocations_size = entry.d_un.d_val;
        }
    }
    return found;
}

static bool symbol_read(const amd_program *program, const dynamic *from, uint32_t index, Elf64_Sym *symbol) {
    const uint8_t *bytes = image_at(program, from->symbols + (uint64_t)index * sizeof *symbol, sizeof *symbol);
    if (bytes) memcpy(symbol, bytes, sizeof *symbol);
    return bytes != NULL;
}

static bool relocate(loader *l, const dynamic *from) {
    for (uint64_t at = 0; at + sizeof(Elf64_Rela) <= from->relocations_size; at += sizeof(Elf64_Rela)) {
        Elf64_Rela entry;
        Elf64_Sym symbol = {0};
        const uint8_t *bytes = image_at(l->program, from->relocations + at, sizeof entry);
        if (!bytes) return refuse(l, "a relocation is outside of the image");
        memcpy(&entry, bytes, sizeof entry);
        uint32_t type = (uint32_t)ELF64_R_TYPE(entry.r_info);
        uint8_t *place = image_at(l->program, entry.r_offset, sizeof(uint64_t));
        if (type == R_AMDGPU_ABS64 && !symbol_read(l->program, from, (uint32_t)ELF64_R_SYM(entry.r_info), &symbol))
            return refuse(l, "a relocation without its symbol");
        if (!place || (type != R_AMDGPU_ABS64 && type != R_AMDGPU_RELATIVE64))
            return refuse(l, "relocation of type %u is not simulated", type);
        uint64_t value = (uint64_t)(uintptr_t)l->program->image + symbol.st_value + (uint64_t)entry.r_addend;
        memcpy(place, &value, sizeof value);
    }
    return true;
}

/* ---- Instructions ---- */

static bool is_branch(const char *text) {
    return !strncmp(text, "s_branch ", 9) || !strncmp(text, "s_cbranch_", 10) || !strncmp(text, "s_call_b64 ", 11);
}

/* What is behind the last instruction of a function: LLVM pads with these, and nothing may run into them. */
static bool pads(const char *text) {
    return !strncmp(text, "s_code_end", 10);
}

static bool op_decode(loader *l, amd_op *op, char *text, uint32_t *dual_count) {
    amd_program *program = l->program;
    char why[400];
    amd_op *second = &program->duals[*dual_count];
    uint32_t address = op->address, size = op->size;
    if (!amd_decode(text, op, second, why, sizeof why)) return refuse(l, "instruction at 0x%x: %s", address, why);
    if (op->class == AMD_CLASS_MATRIX && !amd_matrix_check(program->target, program->wave32, op, why, sizeof why))
        return refuse(l, "instruction at 0x%x: %s", address, why);
    if (op->class == AMD_CLASS_DOT && !amd_dot_check(op, why, sizeof why))
        return refuse(l, "instruction at 0x%x: %s", address, why);
    program->hazards |= amd_hazard_has(program->target, op);
    uint32_t word = word_at(program->image + address);
    op->immediate = word & 0xffff;
    const char *odd = amd_modifiers_halves(op, word);
    if (odd)
        return refuse(l, "instruction at 0x%x: %s: its encoding has %s, which it does not heed", address, text, odd);
    if (op->dual) {
        second->address = address;
        second->size = (uint8_t)size;
        ++*dual_count;
    }
    if (is_branch(text)) {
        int64_t to = (int64_t)address + 4 + (int64_t)(int16_t)op->immediate * 4;
        bool inside = to >= program->text_begin && to < program->text_end;
        op->target = inside ? program->op_at[(to - program->text_begin) / 4] : AMD_NO_OP;
        if (op->target == AMD_NO_OP) return refuse(l, "branch at 0x%x: its target is no instruction", address);
    }
    return true;
}

/* The kernel whose code an address is in, or NULL. */
static const amd_kernel *kernel_around(const amd_program *program, uint32_t address) {
    for (uint32_t i = 0; i < program->kernel_count; i++) {
        const amd_kernel *kernel = &program->kernels[i];
        if (address >= kernel->code_begin && address < kernel->code_end) return kernel;
    }
    return NULL;
}

/* Lays the texts out one after the other and notes which address is which op. */
static bool disassemble(loader *l, amd_llvm *llvm, const amd_program *kernels, bool wave64) {
    amd_program *program = l->program;
    uint32_t words = (program->text_end - program->text_begin) / 4;
    size_t used = 0, room = (size_t)words * TEXT_MAX / 4 + TEXT_MAX;
    program->op_at = calloc(words + 1, sizeof *program->op_at);
    program->ops = calloc(words + 1, sizeof *program->ops);
    program->duals = calloc(words + 1, sizeof *program->duals);
    program->texts = malloc(room);
    if (!program->op_at || !program->ops || !program->duals || !program->texts) return refuse(l, "out of memory");
    memset(program->op_at, 0xff, (words + 1) * sizeof *program->op_at);
    for (uint32_t at = program->text_begin; at < program->text_end;) {
        char *text = program->texts + used;
        if (room - used < TEXT_MAX) return refuse(l, "instruction texts of uncommon length");
        const amd_kernel *kernel = l->both ? kernel_around(kernels, at) : NULL;
        bool other = kernel && kernel->wave32 == wave64;
        size_t size = other ? 0 : amd_llvm_text(llvm, program->image + at, program->text_end - at, at, text, TEXT_MAX);
        if (!size && (other || (l->both && !kernel))) {
            at += 4;
            continue;
        }
        if (!size) return refuse(l, "0x%08x at 0x%x is no instruction", word_at(program->image + at), at);
        amd_op *op = &program->ops[program->op_count];
        op->address = at;
        op->size = (uint8_t)size;
        op->text = text;
        program->op_at[(at - program->text_begin) / 4] = program->op_count++;
        used += strlen(text) + 1;
        at += (uint32_t)size;
    }
    return true;
}

/* kernels: the program that has them. */
static bool text_decode(loader *l, const amd_program *kernels, bool wave64) {
    amd_program *program = l->program;
    amd_llvm *llvm = amd_llvm_open(program->target->processor, wave64);
    const char *why;
    if (!llvm) return refuse(l, "%s", amd_llvm_present(&why) ? "LLVM does not know the processor" : why);
    program->wave32 = !wave64;
    bool good = disassemble(l, llvm, kernels, wave64);
    amd_llvm_close(llvm);
    uint32_t dual_count = 0;
    for (uint32_t i = 0; i < program->op_count && good; i++) {
        amd_op *op = &program->ops[i];
        if (pads(op->text) || op_decode(l, op, (char *)(uintptr_t)op->text, &dual_count)) continue;
        good = l->both && !kernel_around(kernels, op->address);
        op->run = NULL;
    }
    return good;
}

/* ---- Kernels ---- */

/* A zeroed one behind the others; NULL without memory. */
static amd_kernel *kernel_new(amd_program *program) {
    amd_kernel *grown = realloc(program->kernels, (program->kernel_count + 1) * sizeof *grown);
    if (!grown) return NULL;
    program->kernels = grown;
    grown[program->kernel_count] = (amd_kernel){0};
    return &grown[program->kernel_count++];
}

static bool kernel_add(loader *l, const char *name, size_t length, uint64_t address) {
    amd_program *program = l->program;
    const uint8_t *descriptor = image_at(program, address, DESCRIPTOR_SIZE);
    if (!descriptor) return refuse(l, "kernel %s has no descriptor", name);
    amd_kernel *kernel = kernel_new(program);
    if (!kernel) return refuse(l, "out of memory");
    if (length >= sizeof kernel->name) return refuse(l, "kernel %s: a name of uncommon length", name);
    memcpy(kernel->name, name, length);
    kernel->descriptor = (uint32_t)address;
    kernel->group_bytes = word_at(descriptor);
    kernel->private_bytes = word_at(descriptor + 4);
    kernel->kernarg_bytes = word_at(descriptor + 8);
    kernel->rsrc3 = word_at(descriptor + 44);
    kernel->rsrc1 = word_at(descriptor + 48);
    kernel->rsrc2 = word_at(descriptor + 52);
    kernel->properties = (uint16_t)word_at(descriptor + 56);
    kernel->wave32 = kernel->properties & PROPERTY_WAVE32;
    kernel->dynamic_stack = kernel->properties & PROPERTY_DYNAMIC_STACK;
    kernel->metadata = amd_metadata_read(l->bytes, l->size, kernel->name);
    kernel->preload_count = word_at(descriptor + 56) >> 16 & 127;
    kernel->preload_first = word_at(descriptor + 56) >> 23;
    return true;
}

/* As the hash table says; 0 without one. */
static uint32_t symbol_count(const amd_program *program, const dynamic *from) {
    const uint8_t *hash = image_at(program, from->hash, 8);
    return from->hash && from->symbols && hash ? word_at(hash + 4) : 0;
}

/* A variable that another module would define has no address here. */
static bool is_variable(const Elf64_Sym *symbol) {
    return ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT && symbol->st_shndx != SHN_UNDEF && symbol->st_size;
}

static bool variable_add(loader *l, const char *name, const Elf64_Sym *symbol) {
    amd_program *program = l->program;
    const uint8_t *at = image_at(program, symbol->st_value, symbol->st_size);
    if (!at) return refuse(l, "variable %s is outside of the image", name);
    sim_region *grown = realloc(program->variables, (program->variable_count + 1) * sizeof *grown);
    if (!grown) return refuse(l, "out of memory");
    program->variables = grown;
    grown[program->variable_count++] = (sim_region){.base = (uintptr_t)at, .size = symbol->st_size};
    return true;
}

static int by_address(const void *a, const void *b) {
    const sim_region *x = a, *y = b;
    return x->base < y->base ? -1 : x->base > y->base;
}

/* Several names of the same bytes become one variable. */
static void variables_order(amd_program *program) {
    sim_region *all = program->variables;
    uint32_t kept = 0;
    if (!all) return;
    qsort(all, program->variable_count, sizeof *all, by_address);
    for (uint32_t i = 1; i < program->variable_count; i++) {
        const uint64_t end = all[i].base + all[i].size;
        if (all[i].base - all[kept].base >= all[kept].size)
            all[++kept] = all[i];
        else if (end - all[kept].base > all[kept].size)
            all[kept].size = end - all[kept].base;
    }
    program->variable_count = kept + 1;
}

static bool symbols_list(loader *l, const dynamic *from) {
    amd_program *program = l->program;
    if (!symbol_count(program, from)) return refuse(l, "no dynamic symbols");
    for (uint32_t i = 0; i < symbol_count(program, from); i++) {
        Elf64_Sym symbol;
        if (!symbol_read(program, from, i, &symbol)) return refuse(l, "symbol %u is outside of the image", i);
        const char *name = (const char *)image_at(program, from->strings + symbol.st_name, 1);
        size_t room = name ? (size_t)(program->image + program->image_size - (const uint8_t *)name) : 0;
        size_t length = name ? strnlen(name, room) : 0;
        if (!name || length == room) return refuse(l, "symbol %u has no name", i);
        const bool kernel = length > 3 && !strcmp(name + length - 3, ".kd");
        if (kernel && !kernel_add(l, name, length - 3, symbol.st_value)) return false;
        if (!kernel && is_variable(&symbol) && !variable_add(l, name, &symbol)) return false;
    }
    variables_order(program);
    return true;
}

/* Where the code of each kernel begins, which the descriptor gives relative to itself, and ends, as its symbol says. In
 * front of a kernel with preloaded arguments stand 256 bytes for processors that cannot preload them. */
static bool codes_find(loader *l, const dynamic *from) {
    amd_program *program = l->program;
    for (uint32_t i = 0; i < program->kernel_count; i++) {
        amd_kernel *kernel = &program->kernels[i];
        int64_t offset;
        memcpy(&offset, program->image + kernel->descriptor + 16, sizeof offset);
        int64_t at = (int64_t)kernel->descriptor + offset;
        if (at < program->text_begin || at >= program->text_end || at % 4)
            return refuse(l, "kernel %s: its entry is outside of the code", kernel->name);
        kernel->code_begin = kernel->code_end = (uint32_t)at;
        Elf64_Sym symbol;
        for (uint32_t n = 0; n < symbol_count(program, from) && symbol_read(program, from, n, &symbol); n++) {
            if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_value == kernel->code_begin)
                kernel->code_end += (uint32_t)symbol.st_size;
        }
    }
    return true;
}

static bool entries_find(loader *l) {
    enum { WITHOUT_PRELOAD = 256 };
    amd_program *program = l->program;
    for (uint32_t i = 0; i < program->kernel_count; i++) {
        amd_kernel *kernel = &program->kernels[i];
        uint32_t at = kernel->code_begin + (kernel->preload_count ? WITHOUT_PRELOAD : 0);
        bool inside = at < program->text_end;
        kernel->entry = inside ? amd_program_for(program, kernel)->op_at[(at - program->text_begin) / 4] : AMD_NO_OP;
        if (kernel->entry == AMD_NO_OP) return refuse(l, "kernel %s: its entry is no instruction", kernel->name);
        if (!amd_registers_check(amd_program_for(program, kernel), kernel, l->why, l->why_size)) return false;
    }
    return true;
}

/* The same image decoded for waves of the other size. */
static bool twin_make(loader *l, bool wave64) {
    amd_program *program = l->program, *twin = calloc(1, sizeof *twin);
    if (!twin) return refuse(l, "out of memory");
    twin->target = program->target;
    twin->image = program->image;
    twin->image_size = program->image_size;
    twin->text_begin = program->text_begin;
    twin->text_end = program->text_end;
    program->twin = twin;
    l->program = twin;
    bool good = text_decode(l, program, wave64);
    l->program = program;
    return good;
}

static bool load(loader *l) {
    if (!image_load(l)) return false;
    amd_program *program = l->program;
    dynamic from = dynamic_read(l);
    if (!relocate(l, &from) || !symbols_list(l, &from) || !codes_find(l, &from)) return false;
    bool wave64 = program->kernel_count && !program->kernels[0].wave32;
    for (uint32_t i = 1; i < program->kernel_count; i++)
        l->both |= program->kernels[i].wave32 == wave64;
    return text_decode(l, program, wave64) && (!l->both || twin_make(l, !wave64)) && entries_find(l);
}

/* An empty program for a processor, or NULL with a reason. */
static amd_program *program_new(loader *l, const char *processor) {
    const amd_target *target = amd_target_find(processor);
    if (!target) {
        refuse(l, "%s is not simulated", processor);
        return NULL;
    }
    l->program = calloc(1, sizeof *l->program);
    if (!l->program) {
        refuse(l, "out of memory");
        return NULL;
    }
    l->program->target = target;
    return l->program;
}

amd_program *amd_program_load(const void *bytes, size_t size, const char *processor, char *why, size_t why_size) {
    loader l = {.bytes = bytes, .size = size, .why = why, .why_size = why_size};
    if (!program_new(&l, processor)) return NULL;
    if (load(&l)) return l.program;
    amd_program_free(l.program);
    return NULL;
}

void amd_program_renew(amd_program *program, const void *bytes, size_t size) {
    loader l = {.bytes = bytes, .size = size, .program = program};
    memcpy(&l.header, bytes, sizeof l.header);
    image_fill(&l);
    const dynamic from = dynamic_read(&l);
    relocate(&l, &from);
}

/* The image is the code alone. */
static bool load_code(loader *l, const amd_kernel *kernel) {
    amd_program *program = l->program;
    program->image_size = (l->size + PAGE - 1) / PAGE * PAGE;
    program->image = aligned_alloc(PAGE, program->image_size);
    if (!program->image) return refuse(l, "out of memory");
    memset(program->image, 0, program->image_size);
    memcpy(program->image, l->bytes, l->size);
    program->text_end = (uint32_t)l->size;
    segment_add(program, 0, program->image_size, true);
    amd_kernel *only = kernel_new(program);
    if (!only) return refuse(l, "out of memory");
    *only = *kernel;
    return text_decode(l, program, !kernel->wave32);
}

amd_program *amd_program_of_code(const void *code, size_t size, const char *processor, const amd_kernel *kernel,
                                 char *why, size_t why_size) {
    loader l = {.bytes = code, .size = size, .why = why, .why_size = why_size};
    if (!program_new(&l, processor)) return NULL;
    if (load_code(&l, kernel)) return l.program;
    amd_program_free(l.program);
    return NULL;
}

static void code_free(amd_program *program) {
    free(program->ops);
    free(program->op_at);
    free(program->duals);
    free(program->texts);
    free(program->kernels);
    free(program);
}

void amd_program_free(amd_program *program) {
    if (!program) return;
    free(program->image);
    free(program->variables);
    if (program->twin) code_free(program->twin);
    code_free(program);
}

const amd_program *amd_program_for(const amd_program *program, const amd_kernel *kernel) {
    return kernel->wave32 == program->kernels[0].wave32 ? program : program->twin;
}

const amd_kernel *amd_program_find(const amd_program *program, const char *name) {
    for (uint32_t i = 0; i < program->kernel_count; i++) {
        if (!strcmp(program->kernels[i].name, name)) return &program->kernels[i];
    }
    return NULL;
}
