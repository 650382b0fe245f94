#include "tests/sim/amdgcn/decode/amd_llvm.h"
#include <ctype.h>
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
    bool halves; /* 16-bit operands of 32-bit encodings are halves of registers */
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
    created->halves = !strncmp(processor, "gfx11", 5) || !strncmp(processor, "gfx12", 5);
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

/* In VOP1, VOP2 and VOPC of gfx11 and later, 16-bit operands are halves of v0 to v127: the number of an upper half is
 * 128 above its register's. LLVM 19 takes it for a register that may not be there, and says so behind its name. Names
 * the half instead: "v129" with such a comment is "v1.h". */
static void halves_name(char *text) {
    static const char begin[] = "/*Invalid register, operand has '";
    for (char *at; (at = strstr(text, begin));) {
        char *class = at + sizeof begin - 1, *end = strstr(class, "*/"), *number = at;
        const char *limited = strstr(class, "_Lo128'");
        while (number > text && isdigit((unsigned char)number[-1]))
            number--;
        const unsigned long encoded = strtoul(number, NULL, 10);
        if (!end || !limited || limited > end || number == text || number[-1] != 'v' || encoded < 128) return;
        const int length = sprintf(number, "%lu.h", encoded - 128);
        memmove(number + length, end + 2, strlen(end + 2) + 1);
    }
}

/* Writes ".h" behind an operand that is a vector register. */
static bool half_append(char *text, unsigned operand) {
    char *at = strchr(text + strspn(text, " \t"), ' ');
    for (; at && operand; operand--)
        at = strchr(at + 1, ' ');
    if (!at || at[1] != 'v' || !isdigit((unsigned char)at[2])) return false;
    at += 2 + strspn(at + 2, "0123456789");
    memmove(at + 2, at, strlen(at) + 1);
    memcpy(at, ".h", 2);
    return true;
}

/* Of the result and the second source LLVM 19 takes no number above 127. Decodes the instruction with their lower
 * halves and names the upper ones. Returns its size, or 0. */
static size_t halves_decode(amd_llvm *opened, uint8_t *bytes, size_t size, uint64_t address, char *text,
                            size_t text_size) {
    enum { VOPC = 0x3e, VOP1 = 0x3f };
    const uint32_t result = 1u << 24, second = 1u << 16;
    uint32_t word;
    memcpy(&word, bytes, sizeof word);
    const uint32_t kind = word >> 25, upper = word & ((kind == VOPC ? 0 : result) | (kind == VOP1 ? 0 : second));
    if (!opened->halves || kind > VOP1 || !upper) return 0;
    word &= ~upper;
    memcpy(bytes, &word, sizeof word);
    const size_t length = llvm.DisasmInstruction(opened->context, bytes, size, address, text, text_size);
    if (!length || (upper & result && !half_append(text, 0))) return 0;
    const bool maskless = kind == VOPC && strstr(text, "v_cmpx_");
    return upper & second && !half_append(text, maskless ? 1 : 2) ? 0 : length;
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
    if (!length && given >= 4) {
        memcpy(copy, bytes, given);
        length = halves_decode(opened, copy, given, address, buffer, sizeof buffer - 8);
    }
    if (!length) return 0;
    halves_name(buffer);
    const char *begin = buffer + strspn(buffer, " \t");
    snprintf(text, text_size, "%s", begin);
    for (size_t end = strlen(text); end && (text[end - 1] == ' ' || text[end - 1] == '\n'); end--)
        text[end - 1] = 0;
    return length;
}
