/* Machine code to text: LLVM 19's C disassembler, found with dlopen, so that nothing of LLVM is needed to build.
 * Contexts are not shared between threads. */
#ifndef KILN_TESTS_SIM_AMD_LLVM_H
#define KILN_TESTS_SIM_AMD_LLVM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct amd_llvm amd_llvm;

/* True if libLLVM.so.19.1 is here and has the AMD target; else false with the reason, in static storage. */
bool amd_llvm_present(const char **out_why);

/* For others of LLVM's functions: the library with its AMD target set up, or NULL with the reason. Its name for all AMD
 * GPUs, and what to tell it of a processor and the width of its waves. */
void *amd_llvm_library(const char **out_why);
#define AMD_LLVM_TRIPLE "amdgcn-amd-amdhsa"
const char *amd_llvm_features(const char *processor, bool wave64);

/* A disassembler of one processor ("gfx942"); wave64 makes the lane masks of gfx10 and later 64 bits wide. NULL if LLVM
 * is absent or does not know the processor. */
amd_llvm *amd_llvm_open(const char *processor, bool wave64);
void amd_llvm_close(amd_llvm *llvm);

/* Writes the text of the instruction at bytes, without the leading tab, and returns its length in bytes; 0 if it is
 * none. */
size_t amd_llvm_text(amd_llvm *llvm, const uint8_t *bytes, size_t size, uint64_t address, char *text, size_t text_size);

#endif
