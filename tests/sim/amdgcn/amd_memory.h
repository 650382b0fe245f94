/* The mode of a memory instruction's row: how many bytes each lane moves, and what becomes of them. */
#ifndef KILN_TESTS_SIM_AMD_MEMORY_H
#define KILN_TESTS_SIM_AMD_MEMORY_H

#include "tests/sim/amdgcn/amd_wave.h"

enum {
    AMD_MEMORY_BYTES = 0x3f, /* 64 stands as 0 */
    AMD_MEMORY_SIGNED = 0x40,
    AMD_MEMORY_D16 = 0x80,      /* a load: into the lower half of a register, the rest stays */
    AMD_MEMORY_HIGH = 0x100,    /* of the upper half of a register, or into it */
    AMD_MEMORY_STRIDE64 = 0x200 /* ds read2 and write2: offsets count 64 elements */
};

static inline uint32_t amd_memory_bytes(const amd_op *op) {
    uint32_t bytes = op->mode & AMD_MEMORY_BYTES;
    return bytes ? bytes : 64;
}

/* The host's bytes behind a global address, after every check: alive, aligned, written before it is read, not constant
 * before it is written. NULL after a fault. */
uint8_t *amd_global_at(amd_wave *wave, const amd_op *op, uint32_t lane, uint64_t address, uint32_t size, bool store);

/* The same of LDS; atomics of several waves may meet. */
typedef enum amd_access { AMD_READ, AMD_WRITE, AMD_UPDATE } amd_access;
uint8_t *amd_shared_at(amd_wave *wave, const amd_op *op, uint32_t lane, uint32_t address, uint32_t size,
                       amd_access access);

/* The address of a lane in a global access: of vector 64 bits, or 32 beside a scalar base. */
uint64_t amd_global_address(const amd_wave *wave, const amd_op *op, const amd_operand *vector, const amd_operand *base,
                            uint32_t lane);

/* Puts what a lane loaded into its registers, as the row says; takes what it stores out of them. */
void amd_lane_put(amd_wave *wave, const amd_op *op, const amd_operand *to, uint32_t lane, const uint8_t *bytes);
void amd_lane_get(const amd_wave *wave, const amd_op *op, const amd_operand *from, uint32_t lane, uint8_t *bytes);

#endif
