#include "tests/fuzz/targets.h"

#include <kiln/inspect.h>
#include <stdlib.h>
#include <string.h>

void fuzz_inspect(const uint8_t *bytes, size_t size) {
    enum { ROOM = 2 };
    static const kiln_image_facts no_facts;
    kiln_image_facts facts;
    kiln_kernel_facts kernels[ROOM];
    kiln_status status = kiln_image_inspect(bytes, size, &facts, kernels, ROOM);
    if (status != KILN_OK && status != KILN_ERROR_CORRUPT_IMAGE && status != KILN_ERROR_UNSUPPORTED) abort();
    if (status ? memcmp(&facts, &no_facts, sizeof facts) != 0 || !kiln_last_error()[0] : facts.kind == 0) abort();
}
