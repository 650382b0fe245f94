/* mha for gfx90a, f16 and bf16: attention_gfx.h tells the tiles and the floor. */
#include "kernels/mha/mha_mfma.h"

KILN_TUNED_PARTS(f16 bf16)
KILN_SHAPE(mha_prefill_64, 128, 64, 64, 16384, 100)
KILN_SHAPE(mha_prefill_96, 128, 96, 64, 32768, 100)
KILN_SHAPE(mha_prefill_128, 128, 128, 64, 32768, 100)
KILN_SHAPE(mha_prefill_256, 128, 256, 64, 65536, 100)
KILN_SHAPE(mha_decode_128, 16, 128, 128, 16896, 100)
KILN_SHAPE(mha_decode_256, 16, 256, 64, 24576, 100)
KILN_STAGES(mha_decode_128, 1)
KILN_STAGES(mha_decode_256, 1)
