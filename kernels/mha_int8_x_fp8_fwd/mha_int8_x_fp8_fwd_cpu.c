/* mha_int8_x_fp8_fwd on the CPU, the operator's definition: attention on q and k of int8 and v of E4M3.
 * attention_codes_cpu.h has all of it, and its floor.
 *
 * Test: build/tests/ops/mha_codes_test. Bench: build/kiln bench mha_int8_x_fp8_fwd --device cpu */
#include "kernels/common/cpu.h"

KILN_INLINE void code_numbers(float *to, const uint8_t *codes, size_t count) {
    KILN_INDEPENDENT
    for (size_t i = 0; i < count; i++)
        to[i] = (float)(int8_t)codes[i];
}

#define KEYS_ARE_E4M3 0
#define KEYS_UNIT     1.0f

KILN_INLINE void keys_load(float *to, const uint8_t *codes, size_t count) {
    code_numbers(to, codes, count);
}

#define ATTEND mha_int8_x_fp8_fwd_attend
#define JOIN   mha_int8_x_fp8_fwd_join
#include "kernels/common/attention/attention_codes_cpu.h"
