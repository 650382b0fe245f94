/* Attention's matrix unit on gfx12: v_wmma 16x16x16, by waves of 32. attention_gfx.h tells what a unit has. */
#ifndef KILN_KERNELS_COMMON_ATTENTION_ATTENTION_GFX12_H
#define KILN_KERNELS_COMMON_ATTENTION_ATTENTION_GFX12_H

#include "kernels/arch/gfx10.h"
#include "kernels/arch/gfx12.h"
#include "kernels/common/device.h"

struct unit {
    enum : uint32_t { WAVE = 32, SIDE = 16, ELEMENTS = 8, VECTORS = 1, WEIGHT_LOG2 = 0 };
    typedef kiln_gfx12_sums sums;
    typedef kiln_gfx12_row fragment;
    KILN_INLINE uint32_t slot_of(uint32_t number) { return number; }
    KILN_INLINE uint32_t number_of(uint32_t slot) { return slot; }
    KILN_INLINE fragment fragment_of(const kiln_vector *vectors) { return __builtin_bit_cast(fragment, *vectors); }
    KILN_INLINE fragment weights_of(const kiln_vector &own) { return fragment_of(&own); }
    KILN_INLINE sums multiply(const fragment &a, const fragment &b, sums sum) {
#ifdef KILN_PART_bf16
        return kiln_gfx12_wmma_bf16(a, b, sum);
#else
        return kiln_gfx12_wmma_f16(a, b, sum);
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
    KILN_INLINE uint32_t key_of(uint32_t, uint32_t slot) { return slot; }
    KILN_INLINE uint32_t vector_of(uint32_t i) { return kiln_thread() % WAVE / SIDE * ELEMENTS + i; }
};

#include "kernels/common/attention/attention_gfx_decode.h"

#endif
