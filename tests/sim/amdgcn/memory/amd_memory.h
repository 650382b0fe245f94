/* What memory instructions share: the mode of their rows, the addresses of a wave's lanes, and the checks of each
 * space. */
#ifndef KILN_TESTS_SIM_AMD_MEMORY_H
#define KILN_TESTS_SIM_AMD_MEMORY_H

#include "tests/sim/amdgcn/wave/amd_wave.h"

/* How many bytes each lane moves, and what becomes of them. */
enum {
    AMD_MEMORY_BYTES = 0x3f, /* 64 stands as 0 */
    AMD_MEMORY_SIGNED = 0x40,
    AMD_MEMORY_D16 = 0x80,       /* a load: into the lower half of a register, the rest stays */
    AMD_MEMORY_HIGH = 0x100,     /* of the upper half of a register, or into it */
    AMD_MEMORY_STRIDE64 = 0x200, /* ds read2 and write2: offsets count 64 elements */
    AMD_MEMORY_RETURNS = 0x400,  /* ds atomics: the old value is the first operand */
    AMD_MEMORY_TWO = 0x800       /* ds atomics with two data operands */
};

static inline uint32_t amd_memory_bytes(const amd_op *op) {
    uint32_t bytes = op->mode & AMD_MEMORY_BYTES;
    return bytes ? bytes : 64;
}

/* Puts what a lane loaded into its registers, as the row says; takes what it stores out of them. */
void amd_lane_put(amd_wave *wave, const amd_op *op, const amd_operand *to, uint32_t lane, const uint8_t *bytes);
void amd_lane_get(const amd_wave *wave, const amd_op *op, const amd_operand *from, uint32_t lane, uint8_t *bytes);

/* An address is a multiple of size, or of 4 if that is more; else a fault. */
bool amd_aligned(amd_wave *wave, const amd_op *op, uint32_t lane, uint64_t address, uint32_t size);

/* ---- Global memory: amd_global.c ---- */

/* The host's bytes behind a global address, after every check: alive, aligned, written before it is read, not constant
 * before it is written. NULL after a fault. */
uint8_t *amd_global_at(amd_wave *wave, const amd_op *op, uint32_t lane, uint64_t address, uint32_t size, bool store);

/* A request of a wave: what each lane of exec accesses. */
typedef struct amd_request {
    uint64_t exec;
    uint32_t size;               /* bytes of each lane */
    bool contiguous;             /* every lane of the wave takes part, one behind the other without a gap */
    uint64_t address[AMD_LANES]; /* of a contiguous one the first; amd_request_fill gives the others */
    uint64_t partly;             /* lanes, not in exec, of which a buffer holds some dwords only: the first ones */
    uint8_t dwords[AMD_LANES];   /* how many */
} amd_request;

/* The addresses of an instruction of the global class: of vector 64 bits, or 32 beside a scalar base. */
void amd_request_make(const amd_wave *wave, const amd_op *op, const amd_operand *vector, const amd_operand *base,
                      amd_request *made);
/* Sees whether a request of exec, size and address is contiguous. */
void amd_request_settle(const amd_wave *wave, amd_request *made);
/* Gives every lane of a contiguous request its address. */
void amd_request_fill(amd_request *made);
/* What a lane loads, after every check; NULL after a fault. */
const uint8_t *amd_request_lane(amd_wave *wave, const amd_op *op, const amd_request *made, uint32_t lane);
/* Counts a request. */
void amd_request_count(amd_wave *wave, const amd_request *made, bool store);
/* Counts it, checks it and moves the bytes. False after a fault. */
bool amd_request_load(amd_wave *wave, const amd_op *op, amd_request *made, const amd_operand *to);
bool amd_request_store(amd_wave *wave, const amd_op *op, amd_request *made, const amd_operand *from);

/* ---- LDS: amd_lds.c ---- */

/* As amd_global_at; atomics of several waves may meet. */
typedef enum amd_access { AMD_READ, AMD_WRITE, AMD_UPDATE } amd_access;
uint8_t *amd_shared_at(amd_wave *wave, const amd_op *op, uint32_t lane, uint32_t address, uint32_t size,
                       amd_access access);

/* ---- Scratch: amd_scratch.c ---- */

/* Moves an element of each lane of exec from or to its own offset in scratch. False after a fault. */
bool amd_scratch_move(amd_wave *wave, const amd_op *op, uint64_t exec, const uint32_t *offsets,
                      const amd_operand *registers, bool store);
/* FLAT_SCRATCH is the wave's own; else a fault. */
bool amd_scratch_ready(amd_wave *wave, const amd_op *op);

/* ---- Flat and buffer accesses: which space each lane reaches ---- */

/* The lanes of a flat request by what their addresses mean. */
typedef struct amd_flat_lanes {
    uint64_t global, shared, scratch;
} amd_flat_lanes;
amd_flat_lanes amd_flat_split(const amd_request *made);

/* The addresses of a buffer access. Lanes outside of the buffer are taken out of made->exec, and loads and stores of
 * several dwords that are outside in part are in made->partly. False after a fault.
 * *out_scratch: the buffer is the wave's scratch, and made->address has offsets in it. */
bool amd_buffer_make(amd_wave *wave, const amd_op *op, const amd_operand *vector, amd_request *made, bool *out_scratch);

/* The address of a scalar load from a buffer. False after a fault. */
bool amd_buffer_scalar(amd_wave *wave, const amd_op *op, const amd_operand *descriptor, uint64_t offset,
                       uint64_t *out_address, bool *out_outside);

#endif
