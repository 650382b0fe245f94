/* Text to machine code of AMD GPUs: LLVM 19's own assembler behind its C interface, found with dlopen, for tests that
 * write instructions as text. */
#ifndef KILN_TESTS_SIM_AMDGCN_ASSEMBLER_H
#define KILN_TESTS_SIM_AMDGCN_ASSEMBLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* True if libLLVM.so.19.1 is here and can assemble; else false with the reason, in static storage. */
bool amdgcn_assembler_present(const char **out_why);

/* The machine code of a text, one instruction or label a line, for a processor ("gfx942"). wave64 makes the lane masks
 * of gfx10 and later 64 bits wide; gfx9 always has it. Free it with free(). NULL with the assembler's own words if
 * there is anything in the text that the processor does not have. */
uint8_t *amdgcn_assemble(const char *processor, bool wave64, const char *text, size_t *out_size, char *why,
                         size_t why_size);

/* The same of many single instructions, each with an s_endpgm behind it, of which the processor may lack some:
 * taken[i] tells which it has. */
uint8_t *amdgcn_assemble_each(const char *processor, bool wave64, const char *const *lines, size_t count, bool *taken,
                              size_t *out_size, char *why, size_t why_size);

#endif
