/* Copies of 16 bytes from global to shared memory that are under way while a block does something else. From sm_80 on
 * they are cp.async; before, loads into registers, which `land` stores: so one stage at most is under way.
 *
 *   start, for each vector; copies_commit
 *   what is done meanwhile
 *   land; copies_wait, and a barrier, before anyone reads what was copied */
#ifndef KILN_KERNELS_COMMON_COPIES_H
#define KILN_KERNELS_COMMON_COPIES_H

#include "kernels/common/device.h"
#if __CUDA_ARCH__ >= 800
#include "kernels/arch/sm80.h"
#else
#include "kernels/arch/sm75.h"
#endif

/* COUNT vectors of a thread. Of one the first `bytes` bytes are copied, a multiple of UNIT (1, 2 or all), and the
 * others are zeros. Both addresses are 16-byte aligned. */
#if __CUDA_ARCH__ >= 800
template <uint32_t COUNT, uint32_t UNIT = KILN_VECTOR_BYTES> struct copies {
    __device__ __forceinline__ void start(uint32_t, uint32_t shared, const void *global, uint32_t bytes) {
        kiln_sm80_cp_async(shared, global, bytes);
    }
    __device__ __forceinline__ void land() {}
};

/* A word of a thread, or a zero where `bytes` is 0 and not 4. Both addresses are 4-byte aligned. */
struct word_copy {
    __device__ __forceinline__ void start(uint32_t shared, const float *global, uint32_t bytes) {
        kiln_sm80_cp_async_4(shared, global, bytes);
    }
    __device__ __forceinline__ void land() {}
};

KILN_INLINE void copies_commit(void) {
    kiln_sm80_cp_async_commit();
}

/* Waits until at most PENDING of this thread's committed sets of copies are under way. */
template <int PENDING> KILN_INLINE void copies_wait(void) {
    kiln_sm80_cp_async_wait<PENDING>();
}
#else
template <uint32_t COUNT, uint32_t UNIT = KILN_VECTOR_BYTES> struct copies {
    kiln_vector held[COUNT];
    uint32_t to[COUNT];

    __device__ __forceinline__ void start(uint32_t i, uint32_t shared, const void *global, uint32_t bytes) {
        uint32_t *words = held[i].words;
        to[i] = shared;
        kiln_sm80_load_v4(words, global, bytes == KILN_VECTOR_BYTES);
        if constexpr (UNIT < KILN_VECTOR_BYTES) {
            KILN_LOOP
            for (uint32_t at = bytes % KILN_VECTOR_BYTES; at; at -= UNIT) { /* from behind: registers have no index */
                const char *unit = (const char *)global + at - UNIT;
                words[3] = __funnelshift_l(words[2], words[3], 8 * UNIT);
                words[2] = __funnelshift_l(words[1], words[2], 8 * UNIT);
                words[1] = __funnelshift_l(words[0], words[1], 8 * UNIT);
                words[0] = words[0] << 8 * UNIT | (UNIT == 1 ? kiln_sm75_load_u8(unit) : kiln_sm75_load_u16(unit));
            }
        }
    }

    __device__ __forceinline__ void land() {
        KILN_UNROLL
        for (uint32_t i = 0; i < COUNT; i++)
            kiln_sm80_shared_store_v4(to[i], held[i].words);
    }
};

struct word_copy {
    float held;
    uint32_t to;

    __device__ __forceinline__ void start(uint32_t shared, const float *global, uint32_t bytes) {
        to = shared;
        kiln_sm80_load_f32(&held, global, bytes != 0);
    }
    __device__ __forceinline__ void land() { kiln_sm75_store_f32(to, held); }
};

KILN_INLINE void copies_commit(void) {}
template <int PENDING> KILN_INLINE void copies_wait(void) {}
#endif

#endif
