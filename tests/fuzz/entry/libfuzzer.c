/* libFuzzer's entry into the target that FUZZ_TARGET names. */
#include "tests/fuzz/targets.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    FUZZ_TARGET(bytes, size);
    return 0;
}
