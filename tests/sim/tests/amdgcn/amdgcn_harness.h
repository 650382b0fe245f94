/* Runs a few AMD instructions on registers that the test gives, on the interpreter alone: for tests of single
 * instructions. No instruction but those under test runs: the harness sets the registers of each wave before the first
 * one and reads them after the last. */
#ifndef KILN_TESTS_SIM_AMDGCN_HARNESS_H
#define KILN_TESTS_SIM_AMDGCN_HARNESS_H

#include "tests/sim/amdgcn/decode/amd_code.h"
#include "tests/sim/core/sim_space.h"
#include "tests/sim/core/sim_sum.h"

/* What a wave has, under the numbers of amd_code.h: a0 is v[AMD_ACCUMULATORS], EXEC is s[AMD_EXEC] and the next. */
typedef struct amdgcn_registers {
    uint32_t v[AMD_VECTORS][AMD_LANES];
    uint32_t s[AMD_SCALARS];
    bool scc;
    uint32_t mode; /* the MODE register */
} amdgcn_registers;

/* MODE as compilers start a kernel: all denormals, rounding to even, DX10_CLAMP, IEEE. */
enum { AMDGCN_MODE = 0x3f0 };

/* What else there is; all zero: one wave, neither LDS nor memory. */
typedef struct amdgcn_setting {
    uint32_t waves;         /* 0: 1 */
    uint32_t group_bytes;   /* LDS */
    uint32_t private_bytes; /* scratch of each lane; then FLAT_SCRATCH is set up on every target */
    sim_region_find find;   /* global memory; NULL: none */
    void *find_context;
    uint64_t seed;
    sim_sum_mode sums; /* of matrix instructions */
    bool unaligned;    /* loads and stores may stand anywhere */
} amdgcn_setting;

/* The code of a text, with an s_endpgm behind it, for a processor; gfx9 needs wave64. Fails the running cmocka test if
 * the assembler or the interpreter refuses it. Free it with amd_program_free. */
amd_program *amdgcn_load(const char *processor, bool wave64, const char *text);

/* The code of many single instructions. entries[i] is where instruction i begins, for the program's kernel to be set to
 * before it runs, or AMD_NO_OP if the processor does not have it. */
amd_program *amdgcn_load_each(const char *processor, bool wave64, const char *const *lines, size_t count,
                              uint32_t *entries);

/* The interpreter's reason for refusing a text that the assembler takes; it is a failure of the test if either is not
 * so. Valid until the next call. */
const char *amdgcn_refusal(const char *processor, bool wave64, const char *text);

/* Random scalar and vector registers, EXEC of all lanes of the program's waves, AMDGCN_MODE, SCC 0. */
void amdgcn_registers_fill(amdgcn_registers *registers, const amd_program *program, uint64_t *random);

/* Runs the code on the registers of each wave, in place; setting may be NULL. Fails the running test on a fault. */
void amdgcn_run(const amd_program *program, const amdgcn_setting *setting, amdgcn_registers *registers);

/* The same for tests of faults: false with the report if there was one. */
bool amdgcn_try(const amd_program *program, const amdgcn_setting *setting, amdgcn_registers *registers,
                sim_report *report);

/* For main: false if the tests must be skipped because LLVM is absent, which it says on both streams. */
bool amdgcn_harness_ready(void);

#endif
