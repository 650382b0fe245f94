/* Attention's matrix unit on CDNA: v_mfma 32x32x8, by waves of 64. attention_gfx.h tells what a unit has. */
#ifndef KILN_KERNELS_COMMON_ATTENTION_ATTENTION_MFMA_H
#define KILN_KERNELS_COMMON_ATTENTION_ATTENTION_MFMA_H

#include "kernels/arch/gfx90a.h"
#include "kernels/common/device.h"

struct unit {
    enum : uint32_t {
        WAVE = 64,
        SIDE = 32,
        ELEMENTS = 16,
        VECTORS = 1,
#if defined(__gfx90a__) && defined(KILN_PART_f16)
        WEIGHT_LOG2 = 15 /* the products take subnormal numbers for 0 */
#else
        WEIGHT_LOG2 = 0
#endif
    };
    typedef kiln_gfx90a_sums sums;
    typedef kiln_vector fragment;
    KILN_INLINE uint32_t slot_of(uint32_t number) {
        return (number & ~12u) | (number & 4) << 1 | (number & 8) >> 1;
    }
    KILN_INLINE uint32_t number_of(uint32_t slot) {
        return slot_of(slot);
    }
    KILN_INLINE fragment fragment_of(const kiln_vector *vectors) {
        return *vectors;
    }
    KILN_INLINE fragment weights_of(const kiln_vector &own) {
        return own;
    }
    /* Two products: a lane's vector is its part of both, so that k is in another order there, the same for a and b. */
    KILN_INLINE sums multiply(const fragment &a, const fragment &b, sums sum) {
#ifdef KILN_PART_bf16
        sum = kiln_gfx90a_mfma_bf16(a.words, b.words, sum);
        return kiln_gfx90a_mfma_bf16(a.words + 2, b.words + 2, sum);
#else
        sum = kiln_gfx90a_mfma_f16(a.words, b.words, sum);
        return kiln_gfx90a_mfma_f16(a.words + 2, b.words + 2, sum);
#endif
    }
    KILN_INLINE float other_half(float value) {
        return kiln_shuffle_xor(value, WAVE / 2);
    }
    KILN_INLINE bool any(bool lane) {
        return __builtin_amdgcn_ballot_w64(lane) != 0;
    }
};

/* For 16 rows: v_mfma 16x16x16. */
struct few {
    enum : uint32_t { ELEMENTS = 4 };
    typedef kiln_gfx90a_sums_16 sums;
    KILN_INLINE uint32_t key_of(uint32_t n, uint32_t slot) { return slot / 4 * 8 + n * 4 + slot % 4; }
    KILN_INLINE uint32_t vector_of(uint32_t i) { return kiln_thread() % unit::WAVE / 16 * 4 + i; }
    KILN_INLINE sums multiply(const unit::fragment &a, const unit::fragment &b, sums sum) {
#ifdef KILN_PART_bf16
        sum = kiln_gfx90a_mfma_16_bf16(a.words, b.words, sum);
        return kiln_gfx90a_mfma_16_bf16(a.words + 2, b.words + 2, sum);
#else
        sum = kiln_gfx90a_mfma_16_f16(a.words, b.words, sum);
        return kiln_gfx90a_mfma_16_f16(a.words + 2, b.words + 2, sum);
#endif
    }
};

#include "kernels/common/attention/attention_gfx_decode.h"

#endif
