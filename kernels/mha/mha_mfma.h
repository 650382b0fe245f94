/* The kernels of mha on gfx90a and gfx942, f16 and bf16, by MFMA. The includer states the tiles. */
#ifndef KILN_KERNELS_MHA_MFMA_H
#define KILN_KERNELS_MHA_MFMA_H

#define ATTEND mha_attend
#define JOIN   mha_join
#define PAGED  0
#include "kernels/common/attention/attention_mfma.h"

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

#endif
