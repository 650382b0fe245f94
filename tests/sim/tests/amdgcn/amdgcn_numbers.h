/* The numbers of AMD's matrix and dot instructions, decoded and encoded apart from the simulator. */
#ifndef KILN_TESTS_SIM_AMDGCN_NUMBERS_H
#define KILN_TESTS_SIM_AMDGCN_NUMBERS_H

#include "tests/sim/amdgcn/matrix/amd_matrix.h"
#include "tests/sim/tests/common/exact.h"

bool amdgcn_is_integer(amd_matrix_type type);

/* The value of a floating-point number's bits; of an integer's. iu types are unsigned unless is_signed. */
double amdgcn_decode(amd_matrix_type type, uint64_t bits);
int64_t amdgcn_integer(amd_matrix_type type, bool is_signed, uint64_t bits);

/* The bits of a small whole number, which must be exact. */
uint64_t amdgcn_encode(amd_matrix_type type, int value);

/* A sum rounded to a type, to nearest even. */
uint64_t amdgcn_round(amd_matrix_type type, const exact *sum);

#endif
