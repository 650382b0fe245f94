/* The greatest key of a thread's share of a row in top_k, as in greatest.h, in fewer registers where NVIDIA compares
 * elements as they are. */
#ifndef KILN_KERNELS_TOP_K_SHARE_GPU_H
#define KILN_KERNELS_TOP_K_SHARE_GPU_H

#include "kernels/common/device.h"
#include "kernels/common/reduce/greatest.h"

KILN_INLINE uint32_t greater(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

#if defined(__CUDACC__) && __CUDA_ARCH__ >= 800

typedef uint32_t share;

KILN_INLINE share share_none(void) {
    return KILN_GREATEST_NONE;
}

KILN_INLINE void share_take(share *s, kiln_vector vector) {
    KILN_UNROLL
    for (int i = 0; i < KILN_VECTOR_BYTES / 4; i++)
        *s = kiln_greatest_word(*s, vector.words[i]);
}

KILN_INLINE uint32_t share_key(share s) {
#if defined(KILN_PART_f32)
    return kiln_order_key(kiln_float(s));
#else
    return kiln_greatest_of_pair(s);
#endif
}

#else

typedef kiln_greatest share;

KILN_INLINE share share_none(void) {
    return kiln_greatest_none();
}

KILN_INLINE void share_take(share *s, kiln_vector vector) {
    kiln_greatest_take(s, vector);
}

KILN_INLINE uint32_t share_key(share s) {
    return kiln_greatest_key(s);
}

#endif

#endif
