/* Wait states around matrix instructions, which the hardware does not count for the program: gfx90a and gfx942 need
 * some between an MFMA, or a dot product, and an instruction that touches its registers; gfx11 and gfx12 need an
 * instruction of the vector ALU between two WMMA of which the second multiplies what the first made.
 *
 * Sources: AMD's "CDNA 3" and "RDNA 3" instruction set guides, "manually inserted wait states", as LLVM's
 * GCNHazardRecognizer has them in numbers. The simulator computes the right result all the same; code that comes too
 * early is at fault. */
#ifndef KILN_TESTS_SIM_AMD_HAZARD_H
#define KILN_TESTS_SIM_AMD_HAZARD_H

#include "tests/sim/amdgcn/wave/amd_wave.h"

/* Whether an instruction needs any of this. */
bool amd_hazard_has(const amd_target *target, const amd_op *op);

/* Reports if op comes too early after those before it. */
void amd_hazard_check(amd_wave *wave, const amd_op *op);
/* Notes that op was issued. */
void amd_hazard_note(amd_wave *wave, const amd_op *op);

#endif
