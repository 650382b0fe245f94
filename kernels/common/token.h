/* Tokens of a tensor of ids with 32 or 64 bits: kiln_index_type. The includer (device.h, cpu.h) defines KILN_INLINE. */
#ifndef KILN_KERNELS_COMMON_TOKEN_H
#define KILN_KERNELS_COMMON_TOKEN_H

#include "kernels/common/global.h"
#include <stdint.h>

/* Token number i; is_64 is 0 or 1. Of 64 bits the lower half is read, which comes first: no vocabulary has more, and
 * one load without a branch serves both. */
KILN_INLINE int32_t kiln_token(const void *tokens, uint32_t is_64, uint64_t i) {
    return KILN_GLOBAL(const int32_t, tokens)[i << is_64];
}

#endif
