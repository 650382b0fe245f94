/* Registers with bits that came from local or shared memory that was never written.
 *
 * Compilers copy whole structures, padding included, and load early what they may not use; so do programs that merge or
 * search, which read one element too many and discard it. So such bits may be moved and computed with; but nothing may
 * depend on them: no branch or guard, no address, nothing that other lanes or other memory get whole. A frame keeps
 * account of the bits only once it has loaded such. */
#ifndef KILN_TESTS_SIM_PTX_UNDEFINED_H
#define KILN_TESTS_SIM_PTX_UNDEFINED_H

#include "tests/sim/ptx/warp/ptx_warp.h"

typedef struct ptx_decoder ptx_decoder;

/* What becomes of undefined bits in an instruction. Sets op->use. */
void ptx_undefined_decode(ptx_decoder *decoder, const char *opcode);

/* Before an instruction that lanes of a frame with an account run: what is undefined of its results. false after a
 * fault, where something depends on undefined bits. */
bool ptx_undefined_step(ptx_warp *warp, const ptx_op *op, uint32_t mask);

/* The account of the running frame, as large as the frame, a bit for each bit; made if there is none. */
uint8_t *ptx_undefined_bits(ptx_warp *warp);
/* Whether an instruction is a load whose registers may become undefined; others need all that they read. */
bool ptx_undefined_loads(const ptx_op *op);
/* A lane loaded undefined bytes into the registers of a load: where they came from. */
void ptx_undefined_came(ptx_warp *warp, const ptx_op *op, uint32_t lane, ptx_space space, uint64_t address);
/* A lane stores an element for others to see. false after a fault: it is more than a byte, and all of it undefined. */
bool ptx_undefined_shown(ptx_warp *warp, const ptx_op *op, uint32_t lane, const uint8_t *bits, uint32_t size);

void ptx_undefined_free(ptx_frame *frame);

#endif
