/* Which threads of a wave hold something true, on AMD. */
#ifndef KILN_KERNELS_ARCH_GFX_BALLOT_H
#define KILN_KERNELS_ARCH_GFX_BALLOT_H

#include <stdbool.h>
#include <stdint.h>

/* A bit for each thread that takes part: a comparison writes it to scalar registers. */
static __attribute__((device, always_inline)) inline uint64_t kiln_gfx_ballot(bool holds) {
#if defined(__GFX9__)
    return __builtin_amdgcn_ballot_w64(holds);
#else
    return __builtin_amdgcn_ballot_w32(holds);
#endif
}

#endif
