/* Which modifiers mean something to an instruction. */
#ifndef KILN_TESTS_SIM_AMD_MODIFIERS_H
#define KILN_TESTS_SIM_AMD_MODIFIERS_H

#include "tests/sim/amdgcn/decode/amd_code.h"

/* The first modifier of op that its instruction does not heed, by name; NULL if there is none. Instructions that are
 * neither scalar, nor of memory, nor of the tables of the vector ALU look after themselves. */
const char *amd_modifiers_check(const amd_op *op);

/* Sets op_sel of an instruction of VOP3 by the bits of its first word, where its text has none: LLVM 19 leaves it out
 * of 16-bit instructions of gfx11 and gfx12. Returns as amd_modifiers_check. */
const char *amd_modifiers_halves(amd_op *op, uint32_t word);

#endif
