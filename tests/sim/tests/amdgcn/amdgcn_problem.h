/* Problems for AMD's matrix instructions: matrices as bits of their types, placed in registers by a derivation of the
 * layouts that is not the simulator's (amdgcn_matrix_layouts.def), run, and compared with sums in C. */
#ifndef KILN_TESTS_SIM_AMDGCN_PROBLEM_H
#define KILN_TESTS_SIM_AMDGCN_PROBLEM_H

#include "tests/sim/amdgcn/matrix/amd_matrix.h"
#include "tests/sim/tests/amdgcn/amdgcn_harness.h"

enum { PROBLEM_INPUTS = 512, PROBLEM_OUTPUTS = 2048 };

/* ---- Layouts ---- */

typedef struct place {
    uint32_t lane, element;
} place;

typedef struct second_mfma {
    uint8_t rows, k, blocks, bits, group_size, groups, threads, input_blocks, block_k;
} second_mfma;

typedef struct second_wmma {
    uint8_t variant, k, bits, lanes, group_k, step, rows[4];
} second_wmma;

/* An instruction as one target has it. */
typedef struct shape {
    const amd_matrix *matrix;
    amd_variant variant;
    const char *processor;
    bool wave64;
    uint32_t a_bits, b_bits, d_bits;
    const second_mfma *mfma; /* one of both */
    const second_wmma *wmma;
} shape;

/* Calls a function for each instruction of each target that has it; fails the test if one is nowhere. */
void problem_each_shape(void (*visit)(const shape *s));

/* The shape of a mnemonic on a target. */
shape problem_shape_of(const char *mnemonic, const char *processor, bool wave64);

/* Where A's element in row i is; B's in column i is there, too. Replicas: the first of the places. */
place problem_input(const shape *s, uint32_t block, uint32_t i, uint32_t k);
place problem_output(const shape *s, uint32_t block, uint32_t row, uint32_t column);

/* ---- Problems ---- */

typedef struct problem {
    shape s;
    uint64_t a[PROBLEM_INPUTS], b[PROBLEM_INPUTS]; /* by block, row or column, k */
    uint64_t c[PROBLEM_OUTPUTS], d[PROBLEM_OUTPUTS];
    const char *modifiers;
    bool accumulators; /* all operands in AGPRs */
    bool constant;     /* C is 1.0 or 1 */
    bool high;         /* gfx11: op_sel of the upper halves */
    sim_sum_mode sums;
} problem;

#define EACH_INPUT(m)                                              \
    for (uint32_t block = 0, at = 0; block < (m)->blocks; block++) \
        for (uint32_t i = 0; i < (m)->rows; i++)                   \
            for (uint32_t k = 0; k < (m)->k; k++, at++)
#define EACH_OUTPUT(m)                                             \
    for (uint32_t block = 0, at = 0; block < (m)->blocks; block++) \
        for (uint32_t i = 0; i < (m)->rows; i++)                   \
            for (uint32_t j = 0; j < (m)->rows; j++, at++)

extern uint64_t problem_random_state;
/* Those of the last problem; before is what it ran on. */
extern amdgcn_registers problem_before, problem_after;

/* Random matrices: finite numbers of any size, those of 32 bits and more near to each other. */
void problem_draw(problem *p);

/* The instruction's program; puts random numbers into all registers, too. */
amd_program *problem_load(const problem *p);
/* Runs it; D goes to p->d. No other register may change. */
void problem_run(problem *p, const amd_program *program);

/* Fails the test over an element of D. */
void problem_differs(const problem *p, uint32_t at, uint64_t expected);

/* D must be the sums of products, rounded once, or near to it where p->sums is another way; counts those that are not
 * the same in problem_inexact. */
void problem_check_real(const problem *p);
void problem_check_integer(const problem *p, bool a_signed, bool b_signed, bool clamp);
extern uint64_t problem_inexact[SIM_SUM_MODES];

#endif
