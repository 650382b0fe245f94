/* Which modifiers mean something to an instruction. */
#ifndef KILN_TESTS_SIM_AMD_MODIFIERS_H
#define KILN_TESTS_SIM_AMD_MODIFIERS_H

#include "tests/sim/amdgcn/decode/amd_code.h"

/* The first modifier of op that its instruction does not heed, by name; NULL if there is none. Instructions that are
 * neither scalar, nor of memory, nor of the tables of the vector ALU look after themselves. */
const char *amd_modifiers_check(const amd_op *op);

/* Sets op_sel where the text of an instruction has none: from operands that are named as upper halves, else from the
 * first word of VOP3, since LLVM 19 leaves op_sel out of 16-bit instructions of gfx11 and gfx12. Returns as
 * amd_modifiers_check. */
const char *amd_modifiers_halves(amd_op *op, uint32_t word);

#endif
