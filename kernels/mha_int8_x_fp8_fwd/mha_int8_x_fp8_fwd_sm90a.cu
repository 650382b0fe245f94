/* mha_int8_x_fp8_fwd for sm_90a, f16 and bf16: attention_codes_sm90a.h and
 * attention_codes_decode.h tell the tiles and the floors. */
#include "kernels/arch/sm90a_wgmma.h"
#include "kernels/common/attention/attention_codes_products.h"
#include "kernels/common/formats/small_float_gpu.h"

KILN_INLINE float code_number(uint32_t code) {
    return (float)(int8_t)code;
}

struct unit : products_of_int8 {
    enum : uint32_t { IN_FLIGHT = 16 }; /* all */
    KILN_INLINE sums greater(sums a, sums b) { return max(a, b); }
    KILN_INLINE void multiply(sums *of, uint64_t a, uint64_t b, bool add) { kiln_sm90a_wgmma_s8_n128(of, a, b, add); }
};

#define ATTEND mha_int8_x_fp8_fwd_attend
#define JOIN   mha_int8_x_fp8_fwd_join
#include "kernels/common/attention/attention_codes_sm90a.h"

#include "kernels/common/attention/attention_codes_sm89.h"

#include "kernels/common/attention/attention_codes_decode.h"

KILN_TUNED_PARTS(f16 bf16)
KILN_TUNED_ASSEMBLER(12.8.93)
KILN_SHAPE(mha_int8_x_fp8_fwd_wgmma_64, 192, 64, 128, 164984, 100)
KILN_SHAPE(mha_int8_x_fp8_fwd_wgmma_96, 192, 96, 128, 177528, 100)
KILN_SHAPE(mha_int8_x_fp8_fwd_wgmma_128, 192, 128, 128, 190072, 100)
KILN_SHAPE(mha_int8_x_fp8_fwd_mma_256, 128, 256, 32, 69888, 100)
KILN_SHAPE(mha_int8_x_fp8_fwd_decode_64, 16, 64, 256, 41984, 100)
KILN_SHAPE(mha_int8_x_fp8_fwd_decode_128, 16, 128, 256, 74752, 100)
KILN_SHAPE(mha_int8_x_fp8_fwd_decode_256, 16, 256, 128, 70144, 100)
KILN_TENSOR_MAPS(mha_int8_x_fp8_fwd_wgmma_64, 368, 128x1x128, 128x1x128)
KILN_TENSOR_MAPS(mha_int8_x_fp8_fwd_wgmma_96, 368, 128x1x128, 128x1x128)
KILN_TENSOR_MAPS(mha_int8_x_fp8_fwd_wgmma_128, 368, 128x1x128, 128x1x128)

static_assert(offsetof(kiln_attention_codes_mapped_args, maps) == 368 && KILN_TENSOR_MAP_FITS_SM90(368), "tensor maps");
static_assert(layout<64>::BYTES == 164984 && layout<96>::BYTES == 177528 && layout<128>::BYTES == 190072,
              "shared memory");
static_assert(prefilling<256>::BYTES == 69888, "shared memory");
static_assert(decoding<64>::STAGE_BYTES == 41984 && decoding<128>::STAGE_BYTES == 74752 &&
                  decoding<256>::STAGE_BYTES == 70144,
              "a stage");

CODES_ENTRY(mha_int8_x_fp8_fwd_wgmma_64, 64) {
    attend_tiles<64>(args);
}

CODES_ENTRY(mha_int8_x_fp8_fwd_wgmma_96, 96) {
    attend_tiles<96>(args);
}

CODES_ENTRY(mha_int8_x_fp8_fwd_wgmma_128, 128) {
    attend_tiles<128>(args);
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
