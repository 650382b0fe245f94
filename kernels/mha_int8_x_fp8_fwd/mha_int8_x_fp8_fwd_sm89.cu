/* mha_int8_x_fp8_fwd for sm_89 and later, f16 and bf16: attention_codes_sm89.h tells the tiles and the floor. */
#include "kernels/arch/sm80_bytes.h"
#include "kernels/arch/sm89.h"
#include "kernels/common/small_float_gpu.h"

KILN_INLINE float code_number(uint32_t code) {
    return (float)(int8_t)code;
}

struct unit {
    typedef int32_t sums;
    KILN_INLINE void mma(sums *of, const uint32_t *a, const uint32_t *b) { kiln_sm80_mma_s8(of, a, b); }
};

#define ATTEND mha_int8_x_fp8_fwd_attend
#define JOIN   mha_int8_x_fp8_fwd_join
#include "kernels/common/attention_codes_sm89.h"

KILN_TUNED_PARTS(f16 bf16)
KILN_TUNED_ASSEMBLER(12.4.131)
KILN_SHAPE(mha_int8_x_fp8_fwd_mma_64, 128, 64, 64, 31232, 100)
KILN_SHAPE(mha_int8_x_fp8_fwd_mma_128, 128, 128, 64, 55808, 100)

static_assert(tile<64>::BYTES == 31232 && tile<128>::BYTES == 55808, "shared memory");

KILN_ENTRY(mha_int8_x_fp8_fwd_mma_64, kiln_attention_codes_args) {
    attend_tiles<64>(args);
}

KILN_ENTRY(mha_int8_x_fp8_fwd_mma_128, kiln_attention_codes_args) {
    attend_tiles<128>(args);
}
