/* mha_paged for sm_75, f16: attention_sm80.h tells the tiles and the floor. On a cache of codes, few rows are done by
 * prefill. Not measured. */
#define ATTEND mha_paged_attend
#define JOIN   mha_paged_join
#define PAGED  1
#include "kernels/common/attention/attention_sm80_decode.h"

KILN_TUNED_PARTS(f16)
KILN_SHAPE(mha_paged_prefill_64, 128, 64, 64, 36864, 100)
KILN_SHAPE(mha_paged_prefill_96, 128, 96, 64, 53248, 100)
KILN_SHAPE(mha_paged_prefill_128, 128, 128, 32, 52224, 100)
KILN_SHAPE(mha_paged_prefill_256, 64, 256, 16, 50688, 100)
KILN_SHAPE(mha_paged_decode_128, 16, 128, 64, 34816, 100)

KILN_ENTRY(mha_paged_prefill_64, kiln_attention_args) {
    prefill<64, 64>(args);
}

KILN_ENTRY(mha_paged_prefill_96, kiln_attention_args) {
    prefill<96, 64>(args);
}

KILN_ENTRY(mha_paged_prefill_128, kiln_attention_args) {
    prefill<128, 32>(args);
}

KILN_ENTRY(mha_paged_prefill_256, kiln_attention_args) {
    prefill<256, 16, 64, 1>(args);
}

DECODE_ENTRY(mha_paged_decode_128, 4) {
    KILN_SHARED decode_shared<128, 4, false> block;
    decode(args, &block);
}
