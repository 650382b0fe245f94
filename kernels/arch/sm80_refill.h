/* More raw instructions of sm_80 and later: loads into registers that keep what they hold where there is nothing to
 * load. Volatile: they stay before later writes. And what asks L2, which is coherent, for a line of 128 bytes. */
#ifndef KILN_KERNELS_ARCH_SM80_REFILL_H
#define KILN_KERNELS_ARCH_SM80_REFILL_H

#include <stdint.h>

static __device__ __forceinline__ void kiln_sm80_refill_v4(uint32_t *words, const void *global, bool present) {
    asm volatile("{.reg .pred present; setp.ne.u32 present, %5, 0; @present ld.global.v4.b32 {%0, %1, %2, %3}, [%4];}"
                 : "+r"(words[0]), "+r"(words[1]), "+r"(words[2]), "+r"(words[3])
                 : "l"(global), "r"((uint32_t)present));
}

/* The same of what is read once: the first-level cache keeps none of it, and L2 fetches 256 bytes. PTX 7.4. */
static __device__ __forceinline__ void kiln_sm80_refill_v4_once(uint32_t *words, const void *global, bool present) {
    asm volatile("{.reg .pred present; setp.ne.u32 present, %5, 0; "
                 "@present ld.global.L1::no_allocate.L2::256B.v4.b32 {%0, %1, %2, %3}, [%4];}"
                 : "+r"(words[0]), "+r"(words[1]), "+r"(words[2]), "+r"(words[3])
                 : "l"(global), "r"((uint32_t)present));
}

static __device__ __forceinline__ void kiln_sm80_refill_u16(uint16_t *half, const void *global, bool present) {
    asm volatile("{.reg .pred present; setp.ne.u32 present, %2, 0; @present ld.global.u16 %0, [%1];}"
                 : "+h"(*half)
                 : "l"(global), "r"((uint32_t)present));
}

static __device__ __forceinline__ void kiln_sm80_prefetch(const void *global) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(global) : "memory");
}

#endif
