/* mha_fp8_fwd on the CPU, the operator's definition: attention on q and k of E4M3 and v of E4M3. attention_codes_cpu.h
 * has all of it, and its floor.
 *
 * Test: build/tests/ops/mha_codes_test. Bench: build/kiln bench mha_fp8_fwd --device cpu */
#include "kernels/common/cpu.h"
#include "kernels/common/formats/float8_cpu.h"

KILN_INLINE void code_numbers(float *to, const uint8_t *codes, size_t count) {
    kiln_e4m3_load(to, codes, count);
}

#define KEYS_ARE_E4M3 1
#define KEYS_UNIT     KILN_E4M3_UNIT

KILN_INLINE void keys_load(float *to, const uint8_t *codes, size_t count) {
    kiln_e4m3_load_units(to, codes, count);
}

#define ATTEND mha_fp8_fwd_attend
#define JOIN   mha_fp8_fwd_join
#include "kernels/common/attention/attention_codes_cpu.h"
