#include "loader/image/ptx.h"
#include "tests/fuzz/targets.h"

#include <stdlib.h>
#include <string.h>

void fuzz_ptx(const uint8_t *bytes, size_t size) {
    kiln__ptx ptx;
    bool is = kiln__ptx_is(bytes, size);
    if (kiln__ptx_read(bytes, size, &ptx)) return;
    if (!is || !memchr(ptx.target, 0, sizeof ptx.target)) abort();
    kiln__ptx_place place = ptx.body;
    for (uint32_t i = 0; i <= ptx.kernel_count; i++) {
        kiln_kernel_facts kernel;
        kiln_status status = kiln__ptx_kernel_next(&ptx, &place, &kernel);
        if (status != (i < ptx.kernel_count ? KILN_OK : KILN_ERROR_NOT_FOUND)) abort(); /* all was read before */
        if (status == KILN_OK && memchr(kernel.name, 0, kernel.name_size)) abort();
    }
}
