/* mha_int8_x_fp8_fwd for sm_89 and later, f16 and bf16: attention_codes_sm89.h and
 * attention_codes_decode.h tell the tiles and the floors. */
#include "kernels/common/attention/attention_codes_products.h"
#include "kernels/common/formats/small_float_gpu.h"

KILN_INLINE float code_number(uint32_t code) {
    return (float)(int8_t)code;
}

typedef products_of_int8 unit;

#define ATTEND mha_int8_x_fp8_fwd_attend
#define JOIN   mha_int8_x_fp8_fwd_join
#include "kernels/common/attention/attention_codes_sm89.h"

#include "kernels/common/attention/attention_codes_decode.h"

KILN_TUNED_PARTS(f16 bf16)
KILN_TUNED_ASSEMBLER(12.4.131)
KILN_SHAPE(mha_int8_x_fp8_fwd_mma_64, 128, 64, 64, 31232, 100)
KILN_SHAPE(mha_int8_x_fp8_fwd_mma_128, 128, 128, 64, 55808, 100)
KILN_SHAPE(mha_int8_x_fp8_fwd_mma_256, 128, 256, 32, 69888, 100)
KILN_SHAPE(mha_int8_x_fp8_fwd_decode_64, 16, 64, 256, 41984, 100)
KILN_SHAPE(mha_int8_x_fp8_fwd_decode_128, 16, 128, 256, 74752, 100)
KILN_SHAPE(mha_int8_x_fp8_fwd_decode_256, 16, 256, 128, 70144, 100)

static_assert(prefilling<64>::BYTES == 31232 && prefilling<128>::BYTES == 55808 && prefilling<256>::BYTES == 69888,
              "shared memory");
static_assert(decoding<64>::STAGE_BYTES == 41984 && decoding<128>::STAGE_BYTES == 74752 &&
                  decoding<256>::STAGE_BYTES == 70144,
              "a stage");

KILN_ENTRY(mha_int8_x_fp8_fwd_mma_64, kiln_attention_codes_args) {
    prefill<64>(args);
}

KILN_ENTRY(mha_int8_x_fp8_fwd_mma_128, kiln_attention_codes_args) {
    prefill<128>(args);
}

KILN_ENTRY(mha_int8_x_fp8_fwd_mma_256, kiln_attention_codes_args) {
    prefill<256>(args);
}

KILN_ENTRY(mha_int8_x_fp8_fwd_decode_64, kiln_attention_codes_args) {
    KILN_SHARED decode_sums<64> sums;
    decode<64>(args, &sums);
}

KILN_ENTRY(mha_int8_x_fp8_fwd_decode_128, kiln_attention_codes_args) {
    KILN_SHARED decode_sums<128> sums;
    decode<128>(args, &sums);
}

KILN_ENTRY(mha_int8_x_fp8_fwd_decode_256, kiln_attention_codes_args) {
    KILN_SHARED decode_sums<256> sums;
    decode<256>(args, &sums);
}
