#include "tests/sim/amdgcn/decode/amd_llvm.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void *disassembler;

/* Of LLVM's C interface, declared as its documentation has it: the function's name without "LLVM", result, parameters.
 */
#define LLVM_FUNCTIONS(X)                                                                                              \
    X(InitializeAMDGPUTargetInfo, void, (void))                                                                        \
    X(InitializeAMDGPUTarget, void, (void))                                                                            \
    X(InitializeAMDGPUTargetMC, void, (void))                                                                          \
    X(InitializeAMDGPUDisassembler, void, (void))                                                                      \
    X(CreateDisasmCPUFeatures, disassembler,                                                                           \
      (const char *triple, const char *cpu, const char *features, void *data, int tag, void *operands, void *symbols)) \
    X(DisasmDispose, void, (disassembler context))                                                                     \
    X(DisasmInstruction, size_t,                                                                                       \
      (disassembler context, uint8_t * bytes, uint64_t size, uint64_t address, char *text, size_t text_size))

static struct {
#define LLVM_FIELD(name, result, parameters) result(*name) parameters;
    LLVM_FUNCTIONS(LLVM_FIELD)
#undef LLVM_FIELD
} llvm;

static void *library;
static const char *why_absent; /* NULL: LLVM is here */
static pthread_once_t found = PTHREAD_ONCE_INIT;

struct amd_llvm {
    disassembler context;
};

static void find(void) {
    library = dlopen("libLLVM.so.19.1", RTLD_NOW | RTLD_LOCAL);
    why_absent = "libLLVM.so.19.1 is not here (Debian has it in libllvm19)";
    if (!library) return;
    why_absent = "libLLVM.so.19.1 lacks the disassembler of AMD GPUs";
#define LLVM_FIND(name, result, parameters)              \
    *(void **)&llvm.name = dlsym(library, "LLVM" #name); \
    if (!llvm.name) return;
    LLVM_FUNCTIONS(LLVM_FIND)
#undef LLVM_FIND
    llvm.InitializeAMDGPUTargetInfo();
    llvm.InitializeAMDGPUTarget();
    llvm.InitializeAMDGPUTargetMC();
    llvm.InitializeAMDGPUDisassembler();
    why_absent = NULL;
}

bool amd_llvm_present(const char **out_why) {
    pthread_once(&found, find);
    *out_why = why_absent;
    return !why_absent;
}

void *amd_llvm_library(const char **out_why) {
    return amd_llvm_present(out_why) ? library : NULL;
}

const char *amd_llvm_features(const char *processor, bool wave64) {
    return !strncmp(processor, "gfx1", 4) && wave64 ? "-wavefrontsize32,+wavefrontsize64" : "";
}

amd_llvm *amd_llvm_open(const char *processor, bool wave64) {
    const char *why;
    amd_llvm *created = amd_llvm_present(&why) ? calloc(1, sizeof *created) : NULL;
    if (!created) return NULL;
    const char *features = amd_llvm_features(processor, wave64);
    created->context = llvm.CreateDisasmCPUFeatures(AMD_LLVM_TRIPLE, processor, features, NULL, 0, NULL, NULL);
    if (!created->context) {
        free(created);
        return NULL;
    }
    return created;
}

void amd_llvm_close(amd_llvm *closed) {
    if (!closed) return;
    llvm.DisasmDispose(closed->context);
    free(closed);
}

/* Later versions of LLVM fill the sources that a VOP3 or VOP3P instruction does not have with the constant 0, and the
 * one here knows them empty. Empties the last one that is still filled; false if none is. */
static bool field_empty(uint8_t *bytes) {
    enum { FIELDS = 3, FIELD_BITS = 9, FIELD_MASK = (1 << FIELD_BITS) - 1, CONSTANT_0 = 0x80 };
    uint32_t fields;
    if (bytes[3] >> 2 != 0x35 && bytes[3] != 0xcc) return false;
    memcpy(&fields, bytes + 4, sizeof fields);
    for (int field = FIELDS - 1; field >= 0; field--) {
        const int shift = field * FIELD_BITS;
        if ((fields >> shift & FIELD_MASK) != CONSTANT_0) continue;
        fields &= ~((uint32_t)FIELD_MASK << shift);
        memcpy(bytes + 4, &fields, sizeof fields);
        return true;
    }
    return false;
}

size_t amd_llvm_text(amd_llvm *opened, const uint8_t *bytes, size_t size, uint64_t address, char *text,
                     size_t text_size) {
    uint8_t copy[16] = {0}; /* LLVM's parameter is not const */
    size_t given = size < sizeof copy ? size : sizeof copy;
    char buffer[512];
    memcpy(copy, bytes, given);
    size_t length = llvm.DisasmInstruction(opened->context, copy, given, address, buffer, sizeof buffer);
    while (!length && given >= 8 && field_empty(copy))
        length = llvm.DisasmInstruction(opened->context, copy, given, address, buffer, sizeof buffer);
    if (!length) return 0;
    const char *begin = buffer + strspn(buffer, " \t");
    snprintf(text, text_size, "%s", begin);
    for (size_t end = strlen(text); end && (text[end - 1] == ' ' || text[end - 1] == '\n'); end--)
        text[end - 1] = 0;
    return length;
}
