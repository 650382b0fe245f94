/* mha for sm_75, f16: attention_sm80.h tells the tiles and the floor. Of heads of 128 elements there is room for tiles
 * of 32 keys. A warp has 16 rows, for which it reads of shared memory as many bytes as a multiprocessor reads while its
 * matrix units multiply: neither is faster. Not measured. Simulated, 512 rows and 512 keys of such heads: 1445090
 * instructions of a warp, 11427015 by the portable kernel; 4 rows and 1024 keys: 95168, 676704.
 *
 * Of heads of 256 elements 64 KiB have room for 64 rows of queries and one tile of 16 keys. Four of a block's warps
 * have these rows, and all copy: with four in all, what is on its way took registers that a result of 128 leaves no
 * room for. Simulated, thousands of instructions of a warp, and by the portable kernel: 112 and 2700 of 128 rows and
 * 256 keys, 115 and 1052 of 4 rows and 1024 keys. */
#define ATTEND mha_attend
#define JOIN   mha_join
#define PAGED  0
#include "kernels/common/attention/attention_sm80_decode.h"

KILN_TUNED_PARTS(f16)
KILN_SHAPE(mha_prefill_64, 128, 64, 64, 36864, 100)
KILN_SHAPE(mha_prefill_96, 128, 96, 64, 53248, 100)
KILN_SHAPE(mha_prefill_128, 128, 128, 32, 52224, 100)
KILN_SHAPE(mha_prefill_256, 64, 256, 16, 50688, 100)
KILN_SHAPE(mha_decode_128, 16, 128, 64, 34816, 100)

KILN_ENTRY(mha_prefill_64, kiln_attention_args) {
    prefill<64, 64>(args);
}

KILN_ENTRY(mha_prefill_96, kiln_attention_args) {
    prefill<96, 64>(args);
}

KILN_ENTRY(mha_prefill_128, kiln_attention_args) {
    prefill<128, 32>(args);
}

KILN_ENTRY(mha_prefill_256, kiln_attention_args) {
    prefill<256, 16, 64, 1>(args);
}

DECODE_ENTRY(mha_decode_128, 4) {
    KILN_SHARED decode_shared<128, 4, false> block;
    decode(args, &block);
}
