/* Attention's matrix unit on gfx11: v_wmma 16x16x16, by waves of 32, whose halves both have all of a fragment.
 * attention_gfx.h tells what a unit has. */
#ifndef KILN_KERNELS_COMMON_ATTENTION_ATTENTION_GFX11_H
#define KILN_KERNELS_COMMON_ATTENTION_ATTENTION_GFX11_H

#include "kernels/arch/gfx10.h"
#include "kernels/arch/gfx11.h"
#include "kernels/common/device.h"

struct unit {
    enum : uint32_t { WAVE = 32, SIDE = 16, ELEMENTS = 8, VECTORS = 2, WEIGHT_LOG2 = 0 };
    typedef kiln_gfx11_sums sums;
    typedef kiln_gfx11_row fragment;
    KILN_INLINE uint32_t slot_of(uint32_t number) { return (number & ~15u) | (number & 7) << 1 | (number & 8) >> 3; }
    KILN_INLINE uint32_t number_of(uint32_t slot) { return (slot & ~15u) | (slot & 1) << 3 | (slot & 14) >> 1; }
    KILN_INLINE fragment fragment_of(const kiln_vector *vectors) {
        const uint32_t *l = vectors[0].words, *h = vectors[1].words;
        return {l[0], l[1], l[2], l[3], h[0], h[1], h[2], h[3]};
    }
    /* Both halves need the weights of both. */
    KILN_INLINE fragment weights_of(const kiln_vector &own) {
        bool high = kiln_thread() % WAVE >= SIDE;
        kiln_vector both[2];
        KILN_UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            uint32_t other = kiln_gfx10_permlanex16(own.words[i]);
            both[0].words[i] = high ? other : own.words[i];
            both[1].words[i] = high ? own.words[i] : other;
        }
        return fragment_of(both);
    }
    KILN_INLINE sums multiply(const fragment &a, const fragment &b, sums sum) {
#ifdef KILN_PART_bf16
        return kiln_gfx11_wmma_bf16(a, b, sum);
#else
        return kiln_gfx11_wmma_f16(a, b, sum);
#endif
    }
    KILN_INLINE float other_half(float value) {
        return kiln_float(kiln_gfx10_permlanex16(kiln_bits(value)));
    }
    KILN_INLINE bool any(bool lane) {
        return __builtin_amdgcn_ballot_w32(lane) != 0;
    }
};

/* For 16 rows: the same. */
struct few : unit {
    KILN_INLINE uint32_t key_of(uint32_t, uint32_t slot) { return number_of(slot); }
    KILN_INLINE uint32_t vector_of(uint32_t i) { return 2 * i + kiln_thread() % WAVE / SIDE; }
};

#include "kernels/common/attention/attention_gfx_decode.h"

#endif
