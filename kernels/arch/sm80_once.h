/* More raw instructions of sm_80 and later: loads of what is read once. PTX 7.4. */
#ifndef KILN_KERNELS_ARCH_SM80_ONCE_H
#define KILN_KERNELS_ARCH_SM80_ONCE_H

#include <stdint.h>

/* kiln_sm80_load_v4 of what is read once: the first-level cache keeps none of it, and L2 fetches 256 bytes. */
static __device__ __forceinline__ void kiln_sm80_load_v4_once(uint32_t *words, const void *global, bool present) {
    asm volatile("{.reg .pred present; setp.ne.u32 present, %5, 0; mov.b32 %0, 0; mov.b32 %1, 0; mov.b32 %2, 0; "
                 "mov.b32 %3, 0; @present ld.global.L1::no_allocate.L2::256B.v4.b32 {%0, %1, %2, %3}, [%4];}"
                 : "=&r"(words[0]), "=&r"(words[1]), "=&r"(words[2]), "=&r"(words[3])
                 : "l"(global), "r"((uint32_t)present));
}

#endif
