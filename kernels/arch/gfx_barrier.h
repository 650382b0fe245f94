/* Raw instructions of AMD targets: a barrier of the block with its shared memory alone, beside which loads from global
 * memory stay on their way. From gfx10 on a block's waves may be on two units that have caches of their own, and clang
 * 19 does not know that a barrier can wait while an exception is handled: its own barriers wait for loads as well. */
#ifndef KILN_KERNELS_ARCH_GFX_BARRIER_H
#define KILN_KERNELS_ARCH_GFX_BARRIER_H

static __attribute__((device, always_inline)) inline void kiln_gfx_shared_barrier(void) {
#if defined(__GFX9__)
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
#elif defined(__GFX12__)
    __asm__ volatile("s_wait_dscnt 0x0\n\ts_barrier_signal -1\n\ts_barrier_wait -1" ::: "memory");
#else
    __asm__ volatile("s_waitcnt lgkmcnt(0)\n\ts_barrier" ::: "memory");
#endif
}

#endif
