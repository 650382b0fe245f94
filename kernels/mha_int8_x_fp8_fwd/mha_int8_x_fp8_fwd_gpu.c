/* mha_int8_x_fp8_fwd: attention on q and k of int8 and v of E4M3. Its tiles and its floor are told in
 * attention_codes_gpu.h, which is the whole of it.
 *
 * Test: build/tests/ops/mha_codes_test. Bench: build/kiln bench mha_int8_x_fp8_fwd */
#include "kernels/common/formats/small_float_gpu.h"

KILN_INLINE float code_number(uint32_t code) {
    return (float)(int8_t)code;
}

#define ATTEND mha_int8_x_fp8_fwd_attend
#define JOIN   mha_int8_x_fp8_fwd_join
#include "kernels/common/attention/attention_codes_gpu.h"
