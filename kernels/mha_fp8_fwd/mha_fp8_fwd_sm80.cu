/* mha_fp8_fwd for sm_80 and sm_86, f16 and bf16: attention_codes_sm80.h and attention_codes_decode.h tell the tiles and
 * the floors. */
#include "kernels/common/attention/attention_codes_sm80_products.h"
#include "kernels/common/formats/small_float_gpu.h"

KILN_INLINE float code_number(uint32_t code) {
    return kiln_e4m3_number(code);
}

typedef products_of_numbers unit;

#define ATTEND mha_fp8_fwd_attend
#define JOIN   mha_fp8_fwd_join
#include "kernels/common/attention/attention_codes_sm80.h"

#include "kernels/common/attention/attention_codes_decode.h"

KILN_TUNED_PARTS(f16 bf16)
KILN_SHAPE(mha_fp8_fwd_mma_64, 128, 64, 64, 37376, 100)
KILN_SHAPE(mha_fp8_fwd_mma_128, 128, 128, 64, 70144, 100)
KILN_SHAPE(mha_fp8_fwd_mma_256, 128, 256, 32, 85248, 100)
KILN_SHAPE(mha_fp8_fwd_decode_64, 16, 64, 256, 41984, 100)
KILN_SHAPE(mha_fp8_fwd_decode_128, 16, 128, 256, 74752, 100)
KILN_SHAPE(mha_fp8_fwd_decode_256, 16, 256, 128, 70144, 100)

static_assert(prefilling<64>::BYTES == 37376 && prefilling<128>::BYTES == 70144 && prefilling<256>::BYTES == 85248,
              "shared memory");
static_assert(decoding<64>::STAGE_BYTES == 41984 && decoding<128>::STAGE_BYTES == 74752 &&
                  decoding<256>::STAGE_BYTES == 70144,
              "a stage");

KILN_ENTRY(mha_fp8_fwd_mma_64, kiln_attention_codes_args) {
    prefill<64>(args);
}

KILN_ENTRY(mha_fp8_fwd_mma_128, kiln_attention_codes_args) {
    prefill<128>(args);
}

KILN_ENTRY(mha_fp8_fwd_mma_256, kiln_attention_codes_args) {
    prefill<256>(args);
}

KILN_ENTRY(mha_fp8_fwd_decode_64, kiln_attention_codes_args) {
    KILN_SHARED decode_sums<64> sums;
    decode<64>(args, &sums);
}

KILN_ENTRY(mha_fp8_fwd_decode_128, kiln_attention_codes_args) {
    KILN_SHARED decode_sums<128> sums;
    decode<128>(args, &sums);
}

KILN_ENTRY(mha_fp8_fwd_decode_256, kiln_attention_codes_args) {
    KILN_SHARED decode_sums<256> sums;
    decode<256>(args, &sums);
}
