#include "tests/sim/tests/amdgcn/amdgcn_assembler.h"
#include "tests/sim/amdgcn/decode/amd_llvm.h"
#include <dlfcn.h>
#include <elf.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* LLVM's types, which only it looks into. */
typedef struct llvm_context llvm_context;
typedef struct llvm_module llvm_module;
typedef struct llvm_target llvm_target;
typedef struct llvm_machine llvm_machine;
typedef struct llvm_buffer llvm_buffer;
typedef struct llvm_diagnostic llvm_diagnostic;
typedef void (*llvm_handler)(llvm_diagnostic *diagnostic, void *data);
enum { LLVM_LEVEL_NONE = 0, LLVM_RELOCATION_PIC = 2, LLVM_CODE_MODEL_DEFAULT = 0, LLVM_OBJECT_FILE = 1 };
enum { LLVM_SEVERITY_ERROR = 0 };

/* Of LLVM's C interface, declared as its documentation has it: the function's name without "LLVM", result, parameters.
 */
#define LLVM_FUNCTIONS(X)                                                                                          \
    X(InitializeAMDGPUAsmParser, void, (void))                                                                     \
    X(InitializeAMDGPUAsmPrinter, void, (void))                                                                    \
    X(ContextCreate, llvm_context *, (void))                                                                       \
    X(ContextDispose, void, (llvm_context * context))                                                              \
    X(ContextSetDiagnosticHandler, void, (llvm_context * context, llvm_handler handler, void *data))               \
    X(GetDiagInfoSeverity, int, (llvm_diagnostic * diagnostic))                                                    \
    X(GetDiagInfoDescription, char *, (llvm_diagnostic * diagnostic))                                              \
    X(DisposeMessage, void, (char *message))                                                                       \
    X(ModuleCreateWithNameInContext, llvm_module *, (const char *name, llvm_context *context))                     \
    X(DisposeModule, void, (llvm_module * module))                                                                 \
    X(SetTarget, void, (llvm_module * module, const char *triple))                                                 \
    X(SetModuleInlineAsm2, void, (llvm_module * module, const char *text, size_t size))                            \
    X(GetTargetFromTriple, int, (const char *triple, llvm_target **target, char **error))                          \
    X(CreateTargetMachine, llvm_machine *,                                                                         \
      (llvm_target * target, const char *triple, const char *cpu, const char *features, int level, int relocation, \
       int code_model))                                                                                            \
    X(DisposeTargetMachine, void, (llvm_machine * machine))                                                        \
    X(TargetMachineEmitToMemoryBuffer, int,                                                                        \
      (llvm_machine * machine, llvm_module * module, int file_type, char **error, llvm_buffer **buffer))           \
    X(GetBufferStart, const char *, (llvm_buffer * buffer))                                                        \
    X(GetBufferSize, size_t, (llvm_buffer * buffer))                                                               \
    X(DisposeMemoryBuffer, void, (llvm_buffer * buffer))

static struct {
#define LLVM_FIELD(name, result, parameters) result(*name) parameters;
    LLVM_FUNCTIONS(LLVM_FIELD)
#undef LLVM_FIELD
} llvm;

static const char *why_absent; /* NULL: LLVM is here */
static pthread_once_t found = PTHREAD_ONCE_INIT;

static void find(void) {
    void *library = amd_llvm_library(&why_absent);
    if (!library) return;
    why_absent = "libLLVM.so.19.1 lacks the assembler of AMD GPUs";
#define LLVM_FIND(name, result, parameters)              \
    *(void **)&llvm.name = dlsym(library, "LLVM" #name); \
    if (!llvm.name) return;
    LLVM_FUNCTIONS(LLVM_FIND)
#undef LLVM_FIND
    llvm.InitializeAMDGPUAsmParser();
    llvm.InitializeAMDGPUAsmPrinter();
    why_absent = NULL;
}

bool amdgcn_assembler_present(const char **out_why) {
    pthread_once(&found, find);
    *out_why = why_absent;
    return !why_absent;
}

/* The first error of an assembly; and of each line whether it is at fault, where that is asked for. */
typedef struct complaint {
    char *why;
    size_t why_size;
    bool made;
    bool *refused; /* of each line; or NULL */
    size_t lines;
} complaint;

static void complain(complaint *about, const char *text) {
    unsigned long line = 0;
    if (!about->made) snprintf(about->why, about->why_size, "%s", text);
    about->made = true;
    if (about->refused && sscanf(text, "<inline asm>:%lu:", &line) == 1 && line >= 1 && line <= about->lines)
        about->refused[line - 1] = true;
}

static void listen(llvm_diagnostic *diagnostic, void *data) {
    if (llvm.GetDiagInfoSeverity(diagnostic) != LLVM_SEVERITY_ERROR) return;
    char *text = llvm.GetDiagInfoDescription(diagnostic);
    complain(data, text);
    llvm.DisposeMessage(text);
}

/* The bytes of .text of a relocatable object, copied. One that is not finished, for a symbol that is missing, has
 * relocations. */
static uint8_t *text_copy(const char *object, size_t size, size_t *out_size, complaint *about) {
    Elf64_Ehdr header;
    memcpy(&header, object, sizeof header); /* it is LLVM's own: what its headers say is so */
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(const void *)(object + header.e_shoff);
    const char *names = object + sections[header.e_shstrndx].sh_offset;
    uint8_t *copy = NULL;
    for (unsigned i = 0; i < header.e_shnum; i++) {
        if (!strcmp(names + sections[i].sh_name, ".rela.text"))
            complain(about, "a symbol that the text does not define");
        if (strcmp(names + sections[i].sh_name, ".text") != 0 || copy) continue;
        *out_size = sections[i].sh_size;
        copy = sections[i].sh_offset + *out_size <= size ? malloc(*out_size + 1) : NULL;
        if (copy) memcpy(copy, object + sections[i].sh_offset, *out_size);
    }
    if (!copy) complain(about, "an object without .text");
    return copy;
}

static uint8_t *emit(llvm_machine *machine, llvm_module *module, size_t *out_size, complaint *about) {
    llvm_buffer *buffer = NULL;
    char *error = NULL;
    if (llvm.TargetMachineEmitToMemoryBuffer(machine, module, LLVM_OBJECT_FILE, &error, &buffer)) {
        complain(about, error);
        llvm.DisposeMessage(error);
        return NULL;
    }
    uint8_t *code =
        about->made ? NULL : text_copy(llvm.GetBufferStart(buffer), llvm.GetBufferSize(buffer), out_size, about);
    llvm.DisposeMemoryBuffer(buffer);
    return code;
}

static uint8_t *assemble(const char *processor, bool wave64, const char *text, size_t *out_size, complaint *about) {
    const char *absent;
    char *error = NULL;
    llvm_target *target;
    if (!amdgcn_assembler_present(&absent)) {
        complain(about, absent);
        return NULL;
    }
    if (llvm.GetTargetFromTriple(AMD_LLVM_TRIPLE, &target, &error)) {
        complain(about, error);
        llvm.DisposeMessage(error);
        return NULL;
    }
    const char *features = amd_llvm_features(processor, wave64);
    llvm_machine *machine = llvm.CreateTargetMachine(target, AMD_LLVM_TRIPLE, processor, features, LLVM_LEVEL_NONE,
                                                     LLVM_RELOCATION_PIC, LLVM_CODE_MODEL_DEFAULT);
    llvm_context *context = llvm.ContextCreate();
    llvm.ContextSetDiagnosticHandler(context, listen, about);
    llvm_module *module = llvm.ModuleCreateWithNameInContext("test", context);
    llvm.SetTarget(module, AMD_LLVM_TRIPLE);
    llvm.SetModuleInlineAsm2(module, text, strlen(text));
    uint8_t *code = emit(machine, module, out_size, about);
    llvm.DisposeModule(module);
    llvm.ContextDispose(context);
    llvm.DisposeTargetMachine(machine);
    if (!about->made) return code;
    free(code);
    return NULL;
}

uint8_t *amdgcn_assemble(const char *processor, bool wave64, const char *text, size_t *out_size, char *why,
                         size_t why_size) {
    complaint about = {.why = why, .why_size = why_size};
    return assemble(processor, wave64, text, out_size, &about);
}

/* Two lines for each: an instruction that was refused leaves its own empty. */
static char *join(const char *const *lines, const bool *refused, size_t count) {
    size_t size = 1, used = 0;
    for (size_t i = 0; i < count; i++)
        size += strlen(lines[i]) + sizeof "\ns_endpgm\n";
    char *text = malloc(size);
    for (size_t i = 0; text && i < count; i++)
        used += (size_t)snprintf(text + used, size - used, "%s\ns_endpgm\n", refused[2 * i] ? "" : lines[i]);
    return text;
}

uint8_t *amdgcn_assemble_each(const char *processor, bool wave64, const char *const *lines, size_t count, bool *taken,
                              size_t *out_size, char *why, size_t why_size) {
    uint8_t *code = NULL;
    complaint about = {.why = why, .why_size = why_size, .refused = calloc(count + 1, 2), .lines = 2 * count};
    /* The second time nothing is left to refuse. */
    for (int pass = 0; about.refused && !code && pass < 2; pass++) {
        char *text = join(lines, about.refused, count);
        about.made = false;
        code = text ? assemble(processor, wave64, text, out_size, &about) : NULL;
        free(text);
    }
    for (size_t i = 0; about.refused && i < count; i++)
        taken[i] = !about.refused[2 * i];
    free(about.refused);
    return code;
}
