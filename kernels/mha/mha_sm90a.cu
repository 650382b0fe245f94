/* mha for sm_90a, f16 and bf16: attention_sm90a.h tells the tiles and the floor. */
#define ATTEND mha_attend
#define JOIN   mha_join
#define PAGED  0
#include "kernels/arch/sm89.h"
#include "kernels/common/attention/attention_sm90a.h"
#include "kernels/common/attention/attention_sm90a_decode.h"

KILN_TUNED_PARTS(f16 bf16)
KILN_TUNED_ASSEMBLER(12.8.93)
KILN_SHAPE(mha_wgmma_64, 192, 64, 128, 139904, 100)
KILN_SHAPE(mha_wgmma_96, 192, 96, 128, 229920, 100)
KILN_SHAPE(mha_wgmma_128, 128, 128, 128, 230016, 100)
KILN_SHAPE(mha_wgmma_256, 128, 256, 64, 197024, 100)
KILN_SHAPE(mha_wgmma_mask_64, 192, 64, 128, 139904, 100)
KILN_SHAPE(mha_wgmma_mask_128, 128, 128, 128, 230016, 100)
KILN_SHAPE(mha_decode_narrow_128, 16, 128, 64, 34816, 100)
KILN_SHAPE(mha_decode_cluster_128, 16, 128, 128, 69632, 100)
KILN_SHAPE(mha_decode_cluster_256, 16, 256, 64, 67584, 100)
KILN_TENSOR_MAPS(mha_wgmma_64, 240, 64x1x128, 64x1x128)
KILN_TENSOR_MAPS(mha_wgmma_96, 240, 64x1x128, 64x1x128)
KILN_TENSOR_MAPS(mha_wgmma_128, 240, 64x1x128, 64x1x128)
KILN_TENSOR_MAPS(mha_wgmma_256, 240, 64x1x64, 64x1x64)
KILN_TENSOR_MAPS(mha_wgmma_mask_64, 240, 64x1x128, 64x1x128)
KILN_TENSOR_MAPS(mha_wgmma_mask_128, 240, 64x1x128, 64x1x128)
KILN_PROGRAMMATIC(mha_attend)
KILN_PROGRAMMATIC(mha_join)
KILN_PROGRAMMATIC(mha_wgmma_64)
KILN_PROGRAMMATIC(mha_wgmma_96)
KILN_PROGRAMMATIC(mha_wgmma_128)
KILN_PROGRAMMATIC(mha_wgmma_256)
KILN_PROGRAMMATIC(mha_wgmma_mask_64)
KILN_PROGRAMMATIC(mha_wgmma_mask_128)
KILN_PROGRAMMATIC(mha_decode_narrow_128)
KILN_PROGRAMMATIC(mha_decode_cluster_128)
KILN_PROGRAMMATIC(mha_decode_cluster_256)

static_assert(offsetof(kiln_attention_mapped_args, maps) == 240 && KILN_TENSOR_MAP_FITS_SM90(240), "tensor maps");
static_assert(layout<64, 128>::BYTES == 139904 && layout<96, 128>::BYTES == 229920 &&
                  layout<128, 128>::BYTES == 230016 && layout<256, 64>::BYTES == 197024,
              "shared memory");

ATTENTION_ENTRY(mha_wgmma_64, kiln_attention_mapped_args, (layout<64, 128>::THREADS)) {
    attend_tiles<64, 128>(args.plain, args.maps);
}

ATTENTION_ENTRY(mha_wgmma_96, kiln_attention_mapped_args, (layout<96, 128>::THREADS)) {
    attend_tiles<96, 128>(args.plain, args.maps);
}

ATTENTION_ENTRY(mha_wgmma_128, kiln_attention_mapped_args, (layout<128, 128>::THREADS)) {
    attend_tiles<128, 128>(args.plain, args.maps);
}

ATTENTION_ENTRY(mha_wgmma_256, kiln_attention_mapped_args, (layout<256, 64>::THREADS)) {
    attend_tiles<256, 64>(args.plain, args.maps);
}

ATTENTION_ENTRY(mha_wgmma_mask_64, kiln_attention_mapped_args, (layout<64, 128>::THREADS)) {
    attend_tiles<64, 128, true>(args.plain, args.maps);
}

ATTENTION_ENTRY(mha_wgmma_mask_128, kiln_attention_mapped_args, (layout<128, 128>::THREADS)) {
    attend_tiles<128, 128, true>(args.plain, args.maps);
}

DECODE_ENTRY(mha_decode_cluster_128, 8) {
    KILN_SHARED decode_shared<128, 8, false> block;
    kiln_sm90a_begin();
    decode_in_clusters(args, &block);
}

DECODE_ENTRY(mha_decode_cluster_256, 4) {
    KILN_SHARED decode_shared<256, 4, false> block;
    kiln_sm90a_begin();
    decode_in_clusters(args, &block);
}

DECODE_ENTRY(mha_decode_narrow_128, 4) {
    KILN_SHARED decode_shared<128, 4, false> block;
    kiln_sm90a_begin();
    decode(args, &block);
}
