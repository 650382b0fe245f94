/* mha_paged for sm_90a, f16 and bf16: attention_sm90a.h tells the tiles and the floor. Heads of
 * 65 to 96 elements go with those of 128: a kernel of their own would be one image too many. */
#define ATTEND mha_paged_attend
#define JOIN   mha_paged_join
#define PAGED  1
#include "kernels/common/attention/attention_sm90a.h"
#include "kernels/common/attention/attention_sm90a_decode.h"

KILN_TUNED_PARTS(f16 bf16)
KILN_SHAPE(mha_paged_wgmma_64, 128, 64, 128, 98848, 100)
KILN_SHAPE(mha_paged_wgmma_128, 128, 128, 128, 197152, 100)
KILN_SHAPE(mha_paged_wgmma_256, 128, 256, 64, 197024, 100)
KILN_SHAPE(mha_paged_decode_narrow_128, 16, 128, 64, 34816, 100)
KILN_SHAPE(mha_paged_decode_narrow_e4m3_128, 16, 128, 128, 36864, 100)
KILN_SHAPE(mha_paged_decode_cluster_128, 16, 128, 128, 69632, 100)
KILN_SHAPE(mha_paged_decode_cluster_256, 16, 256, 64, 67584, 100)
KILN_SHAPE(mha_paged_decode_cluster_e4m3_128, 16, 128, 256, 73728, 100)
KILN_PROGRAMMATIC(mha_paged_attend)
KILN_PROGRAMMATIC(mha_paged_join)
KILN_PROGRAMMATIC(mha_paged_wgmma_64)
KILN_PROGRAMMATIC(mha_paged_wgmma_128)
KILN_PROGRAMMATIC(mha_paged_wgmma_256)
KILN_PROGRAMMATIC(mha_paged_decode_narrow_128)
KILN_PROGRAMMATIC(mha_paged_decode_narrow_e4m3_128)
KILN_PROGRAMMATIC(mha_paged_decode_cluster_128)
KILN_PROGRAMMATIC(mha_paged_decode_cluster_256)
KILN_PROGRAMMATIC(mha_paged_decode_cluster_e4m3_128)

static_assert(layout<64, 128>::BYTES == 98848 && layout<128, 128>::BYTES == 197152 && layout<256, 64>::BYTES == 197024,
              "shared memory");

ATTENTION_ENTRY(mha_paged_wgmma_64, kiln_attention_args, (layout<64, 128>::THREADS)) {
    attend_tiles<64, 128>(args, nullptr);
}

ATTENTION_ENTRY(mha_paged_wgmma_128, kiln_attention_args, (layout<128, 128>::THREADS)) {
    attend_tiles<128, 128>(args, nullptr);
}

ATTENTION_ENTRY(mha_paged_wgmma_256, kiln_attention_args, (layout<256, 64>::THREADS)) {
    attend_tiles<256, 64>(args, nullptr);
}

DECODE_ENTRY(mha_paged_decode_cluster_128, 8) {
    KILN_SHARED decode_shared<128, 8, false> block;
    kiln_sm90a_begin();
    decode_in_clusters(args, &block);
}

DECODE_ENTRY(mha_paged_decode_cluster_256, 4) {
    KILN_SHARED decode_shared<256, 4, false> block;
    kiln_sm90a_begin();
    decode_in_clusters(args, &block);
}

DECODE_ENTRY(mha_paged_decode_cluster_e4m3_128, 8) {
    KILN_SHARED decode_shared<128, 8, true> block;
    kiln_sm90a_begin();
    decode_in_clusters(args, &block);
}

DECODE_ENTRY(mha_paged_decode_narrow_128, 4) {
    KILN_SHARED decode_shared<128, 4, false> block;
    kiln_sm90a_begin();
    decode(args, &block);
}

DECODE_ENTRY(mha_paged_decode_narrow_e4m3_128, 4) {
    KILN_SHARED decode_shared<128, 4, true> block;
    kiln_sm90a_begin();
    decode(args, &block);
}
