/* The kernels of mha_paged on gfx11 and gfx12, f16 and bf16, by WMMA. The includer includes attention_gfx11.h or
 * attention_gfx12.h before, and states the tiles. */
#ifndef KILN_KERNELS_MHA_PAGED_WMMA_H
#define KILN_KERNELS_MHA_PAGED_WMMA_H

#include "kernels/common/attention/attention_gfx_wide.h"

KILN_ENTRY(mha_paged_prefill_64, kiln_attention_args) {
    prefill<64>(args);
}

KILN_ENTRY(mha_paged_prefill_96, kiln_attention_args) {
    prefill<128, 96>(args);
}

KILN_ENTRY(mha_paged_prefill_128, kiln_attention_args) {
    prefill<128>(args);
}

ENTRY_OF_THREADS(mha_paged_prefill_256, WIDE_THREADS) {
    prefill_wide(args);
}

DECODE_ENTRY(mha_paged_decode_128) {
    decode<1>(args);
}

DECODE_ENTRY(mha_paged_decode_256) {
    decode<2>(args);
}

#endif
