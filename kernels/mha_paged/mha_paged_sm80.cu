/* mha_paged for sm_80 and later, f16 and bf16: attention_sm80.h tells the tiles and the floor. */
#define ATTEND mha_paged_attend
#define JOIN   mha_paged_join
#define PAGED  1
#include "kernels/common/attention/attention_sm80_decode.h"

KILN_TUNED_PARTS(f16 bf16)
KILN_SHAPE(mha_paged_prefill_64, 128, 64, 64, 36864, 100)
KILN_SHAPE(mha_paged_prefill_96, 128, 96, 64, 53248, 100)
KILN_SHAPE(mha_paged_prefill_128, 128, 128, 64, 69632, 100)
KILN_SHAPE(mha_paged_prefill_256, 128, 256, 16, 101376, 100)
KILN_SHAPE(mha_paged_decode_128, 16, 128, 128, 69632, 100)
KILN_SHAPE(mha_paged_decode_256, 16, 256, 64, 67584, 100)
KILN_SHAPE(mha_paged_decode_e4m3_128, 16, 128, 256, 73728, 100)

KILN_ENTRY(mha_paged_prefill_64, kiln_attention_args) {
    prefill<64, 64>(args);
}

KILN_ENTRY(mha_paged_prefill_96, kiln_attention_args) {
    prefill<96, 64>(args);
}

KILN_ENTRY(mha_paged_prefill_128, kiln_attention_args) {
    prefill<128, 64>(args);
}

KILN_ENTRY(mha_paged_prefill_256, kiln_attention_args) {
    prefill<256, 16>(args);
}

DECODE_ENTRY(mha_paged_decode_128, 8) {
    KILN_SHARED decode_shared<128, 8, false> block;
    decode(args, &block);
}

DECODE_ENTRY(mha_paged_decode_256, 4) {
    KILN_SHARED decode_shared<256, 4, false> block;
    decode(args, &block);
}

DECODE_ENTRY(mha_paged_decode_e4m3_128, 8) {
    KILN_SHARED decode_shared<128, 8, true> block;
    decode(args, &block);
}
