/* mha for gfx942, f16 and bf16: attention_gfx.h tells the tiles and the floor. */
#define ATTEND mha_attend
#define JOIN   mha_join
#define PAGED  0
#include "kernels/common/attention/attention_mfma.h"

KILN_TUNED_PARTS(f16 bf16)
KILN_SHAPE(mha_prefill_64, 128, 64, 64, 16384, 100)
KILN_SHAPE(mha_prefill_96, 128, 96, 64, 32768, 100)
KILN_SHAPE(mha_prefill_128, 128, 128, 64, 32768, 100)
KILN_SHAPE(mha_prefill_256, 128, 256, 64, 65536, 100)
KILN_SHAPE(mha_decode_128, 16, 128, 128, 16896, 100)
KILN_SHAPE(mha_decode_256, 16, 256, 64, 24576, 100)
KILN_STAGES(mha_decode_128, 1)
KILN_STAGES(mha_decode_256, 1)

__attribute__((amdgpu_waves_per_eu(2))) KILN_ENTRY(mha_prefill_64, kiln_attention_args) {
    prefill<64>(args);
}

__attribute__((amdgpu_waves_per_eu(2))) KILN_ENTRY(mha_prefill_96, kiln_attention_args) {
    prefill<128, 96>(args);
}

__attribute__((amdgpu_waves_per_eu(2))) KILN_ENTRY(mha_prefill_128, kiln_attention_args) {
    prefill<128>(args);
}

__attribute__((amdgpu_waves_per_eu(1, 1))) KILN_ENTRY(mha_prefill_256, kiln_attention_args) {
    prefill<256>(args);
}

__attribute__((amdgpu_waves_per_eu(2))) DECODE_ENTRY(mha_decode_128) {
    decode<1>(args);
}

__attribute__((amdgpu_waves_per_eu(2))) DECODE_ENTRY(mha_decode_256) {
    decode<2>(args);
}
