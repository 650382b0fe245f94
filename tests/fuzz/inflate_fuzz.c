#include "tests/fuzz/targets.h"

#include "loader/image/inflate.h"
#include <stdlib.h>

/* The first two bytes are the size that is expected of the rest. */
void fuzz_inflate(const uint8_t *bytes, size_t size) {
    if (size < 2) return;
    size_t expected = kiln__read_u16(bytes);
    uint8_t *out = malloc(expected ? expected : 1);
    if (!out) abort();
    kiln_status status = kiln__inflate((kiln__bytes){bytes + 2, size - 2}, out, expected);
    if (status != KILN_OK && status != KILN_ERROR_CORRUPT_IMAGE) abort();
    if (status != KILN_OK && !kiln_last_error()[0]) abort();
    free(out);
}
