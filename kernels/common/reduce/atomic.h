/* Atomic operations of a block on its shared memory. */
#ifndef KILN_KERNELS_COMMON_REDUCE_ATOMIC_H
#define KILN_KERNELS_COMMON_REDUCE_ATOMIC_H

#include "kernels/common/device.h"

/* Leaves the lesser of value and the word there; other threads see it after the next barrier. */
KILN_INLINE void kiln_shared_min(uint32_t *word, uint32_t value) {
#if defined(__CUDACC__)
    atomicMin(word, value);
#elif defined(__HIP__)
    __hip_atomic_fetch_min(word, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
#endif
}

/* Adds value to the word there, and returns what it was. */
KILN_INLINE uint32_t kiln_shared_add(uint32_t *word, uint32_t value) {
#if defined(__CUDACC__)
    return atomicAdd(word, value);
#elif defined(__HIP__)
    return __hip_atomic_fetch_add(word, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
#endif
}

#endif
