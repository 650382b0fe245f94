/* How many registers a kernel's descriptor gives to a wave, and how many a compute unit has for its groups.
 * (LLVM, "User Guide for AMDGPU Backend": compute_pgm_rsrc1 and 3.) */
#ifndef KILN_TESTS_SIM_AMD_REGISTERS_H
#define KILN_TESTS_SIM_AMD_REGISTERS_H

#include "tests/sim/amdgcn/decode/amd_code.h"

/* Vector registers of a wave, v0 and on, and a0 and on. */
typedef struct amd_registers {
    uint32_t vectors, accumulators;
} amd_registers;

amd_registers amd_registers_of(const amd_target *target, const amd_kernel *kernel);

/* False with a reason if an instruction of the kernel's own code has an operand beyond its registers. */
bool amd_registers_check(const amd_program *program, const amd_kernel *kernel, char *why, size_t why_size);

/* True if the waves of a group of so many work-items have room beside each other. */
bool amd_registers_fit(const amd_target *target, const amd_kernel *kernel, uint32_t work_items);

#endif
