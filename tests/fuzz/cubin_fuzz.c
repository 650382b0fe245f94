#include "loader/image/cubin.h"
#include "tests/fuzz/targets.h"

#include <stdlib.h>
#include <string.h>

void fuzz_cubin(const uint8_t *bytes, size_t size) {
    kiln__cubin cubin;
    if (kiln__cubin_read(bytes, size, &cubin)) return;
    size_t cursor = 0;
    for (uint32_t i = 0; i <= cubin.kernel_count; i++) {
        kiln_kernel_facts kernel;
        kiln_status status = kiln__cubin_kernel_next(&cubin, &cursor, &kernel);
        if ((status == KILN_ERROR_NOT_FOUND) != (i == cubin.kernel_count)) abort(); /* as many as were counted */
        if (status) return;
        if (memchr(kernel.name, 0, kernel.name_size)) abort();
    }
}
