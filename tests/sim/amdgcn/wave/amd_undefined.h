/* Registers with bits that came from scratch that was never written.
 *
 * Compilers copy whole structures, padding included, and load early what they may not use. So such bits may be moved
 * and computed with by the lanes; but nothing may depend on them: no branch, nor which lanes are on, no address,
 * nothing that other lanes or other memory get whole, and of the scalars, which all lanes share, nothing but masks and
 * copies. A wave keeps account of the bits only once it has loaded such: registers and scratch of the same form as its
 * own, in which a bit is set where the wave's is undefined. */
#ifndef KILN_TESTS_SIM_AMD_UNDEFINED_H
#define KILN_TESTS_SIM_AMD_UNDEFINED_H

#include "tests/sim/amdgcn/wave/amd_wave.h"

/* Where a register's undefined bits came from. */
typedef struct amd_origin {
    const amd_op *load;
    uint32_t offset; /* in scratch */
} amd_origin;

/* Vector registers behind the wave's own, for operands of instructions that run on the account: two for each. */
enum { AMD_SPARE_VECTORS = 2 * AMD_OPERANDS };

typedef struct amd_undefined {
    uint32_t (*v)[AMD_LANES];
    uint32_t s[AMD_SCALARS]; /* of EXEC always 0 */
    bool scc;
    uint8_t *scratch;
    amd_origin vector_from[AMD_VECTORS], scalar_from[AMD_SCALARS], scc_from;
    amd_origin latest; /* stands in where M0 named the register */
} amd_undefined;

/* The account of a wave that has so many bytes of scratch; NULL without memory. */
amd_undefined *amd_undefined_new(size_t scratch_size);
/* A wave starts: no register is undefined, and all scratch is, of which the wave before wrote so many bytes. */
void amd_undefined_begin(amd_undefined *undefined, size_t scratch_used, bool had_undefined);
void amd_undefined_free(amd_undefined *undefined);

/* Before an instruction of a wave that has undefined bits: what is undefined of its results. false after a fault, where
 * something depends on undefined bits. */
bool amd_undefined_step(amd_wave *wave, const amd_op *op);

/* Lets the account's vector registers and scratch change places with the wave's own. */
void amd_undefined_swap(amd_wave *wave);
/* Lanes loaded from scratch, and so did the account: notes where what is undefined came from. */
void amd_undefined_came(amd_wave *wave, const amd_op *op, uint64_t lanes, const uint32_t *offsets,
                        const amd_operand *registers);

/* ---- Between the two files ---- */

/* Whether a scalar or SCC has undefined bits that an operand reads, or a vector register in any of the lanes: those
 * lanes; of a scalar, all. */
uint64_t amd_undefined_lanes(const amd_wave *wave, const amd_operand *operand, uint64_t lanes);
/* false after a fault: it has. */
bool amd_undefined_none(amd_wave *wave, const amd_op *op, const amd_operand *operand, uint64_t lanes);
void amd_undefined_fault(amd_wave *wave, const amd_op *op, uint32_t lane, const amd_operand *operand);
/* Makes a result defined, or undefined, in lanes. */
void amd_undefined_set(amd_wave *wave, const amd_operand *result, uint64_t lanes, bool undefined);

/* The vector and the scalar ALU: amd_undefined_alu.c. */
bool amd_undefined_alu(amd_wave *wave, const amd_op *op);

#endif
