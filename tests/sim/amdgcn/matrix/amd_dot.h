/* Dot products of a lane's registers: amd_dot.def. */
#ifndef KILN_TESTS_SIM_AMD_DOT_H
#define KILN_TESTS_SIM_AMD_DOT_H

#include "tests/sim/amdgcn/matrix/amd_matrix.h"

/* Modifiers that mean something. */
enum {
    AMD_DOT_HALVES = 1, /* op_sel and op_sel_hi of A and B */
    AMD_DOT_NEG = 2,    /* neg_lo and neg_hi of A and B */
    AMD_DOT_NEG_C = 4,  /* neg_lo and, for the absolute value, neg_hi of C */
    AMD_DOT_SIGNED = 8, /* neg_lo of A and B: signed */
    AMD_DOT_CLAMP = 16,
    AMD_DOT_HALF_RESULT = 32 /* op_sel of C and D */
};

/* The rows; op->mode is an index. */
typedef struct amd_dot {
    const char *mnemonic;
    uint8_t a, b, d; /* amd_matrix_type */
    uint8_t modifiers;
    bool adds; /* C is D */
} amd_dot;

enum {
#define AMD_DOT(mnemonic, sources, a, b, d, modifiers) AMD_DOT_ROW_##mnemonic,
#define AMD_DOT_ADDS                                   AMD_DOT
#include "tests/sim/amdgcn/matrix/amd_dot.def"
#undef AMD_DOT
#undef AMD_DOT_ADDS
    AMD_DOT_ROWS
};
extern const amd_dot amd_dots[AMD_DOT_ROWS];

/* False with a reason if the instruction has a modifier that is not simulated. */
bool amd_dot_check(const amd_op *op, char *why, size_t why_size);

#endif
