/* The floating-point control state in which kernels run: round to nearest even, subnormals kept, no traps.
 *
 * An application may have set flush-to-zero or another rounding mode in a thread. Results must not depend on that, and
 * the application must find its settings and its sticky exception flags unchanged. Each thread enters this state before
 * it runs a kernel and leaves it afterwards. */
#ifndef KILN_LOADER_CPU_FLOAT_STATE_H
#define KILN_LOADER_CPU_FLOAT_STATE_H

#include <stdint.h>

#if defined(__x86_64__)

#include <xmmintrin.h>

typedef struct kiln__cpu_float_state {
    uint32_t mxcsr;
} kiln__cpu_float_state;

/* Sets this thread's state; returns the previous one. */
static inline kiln__cpu_float_state kiln__cpu_float_enter(void) {
    enum { ALL_MASKED_NEAREST = 0x1f80 };
    kiln__cpu_float_state before = {_mm_getcsr()};
    _mm_setcsr(ALL_MASKED_NEAREST);
    return before;
}

/* Restores what kiln__cpu_float_enter returned on this thread. */
static inline void kiln__cpu_float_leave(kiln__cpu_float_state before) {
    _mm_setcsr(before.mxcsr);
}

#else

typedef struct kiln__cpu_float_state {
    uint64_t fpcr, fpsr;
} kiln__cpu_float_state;

static inline kiln__cpu_float_state kiln__cpu_float_enter(void) {
    kiln__cpu_float_state before;
    __asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr" : "=r"(before.fpcr), "=r"(before.fpsr));
    __asm__ volatile("msr fpcr, xzr" : : : "memory");
    return before;
}

static inline void kiln__cpu_float_leave(kiln__cpu_float_state before) {
    __asm__ volatile("msr fpcr, %0\n\tmsr fpsr, %1" : : "r"(before.fpcr), "r"(before.fpsr) : "memory");
}

#endif

#endif
