#include "loader/image/hsaco.h"
#include "tests/fuzz/targets.h"

#include <stdlib.h>
#include <string.h>

static void check(bool holds) {
    if (!holds) abort();
}

/* What the ROCm backend relies on without looking again. */
static void check_kernel(const kiln__hsaco_kernel *kernel) {
    check(!memchr(kernel->name.at, 0, kernel->name.size) && !memchr(kernel->symbol.at, 0, kernel->symbol.size));
    check(kernel->arguments_size <= kernel->kernarg_size && kernel->hidden_count <= KILN__HSACO_HIDDEN_MAX);
    check(kernel->wave_size == 32 || kernel->wave_size == 64);
    check(kernel->kernarg_align && !(kernel->kernarg_align & (kernel->kernarg_align - 1)));
    for (uint32_t i = 0; i < kernel->hidden_count; i++)
        check(kiln__within(kernel->hidden[i].offset, kernel->hidden[i].size, kernel->kernarg_size));
}

void fuzz_hsaco(const uint8_t *bytes, size_t size) {
    kiln__hsaco hsaco;
    kiln__hsaco_kernel kernel;
    if (kiln__hsaco_read(bytes, size, &hsaco)) return;
    check(memchr(hsaco.target, 0, sizeof hsaco.target));
    kiln__bytes rest = hsaco.kernels;
    for (uint32_t i = 0; i < hsaco.kernel_count; i++) {
        if (kiln__hsaco_kernel_next(&rest, &kernel)) break;
        check_kernel(&kernel);
    }
    if (!kiln__hsaco_kernel_read(&hsaco, hsaco.kernel_count / 2, &kernel)) check_kernel(&kernel);
    check(kiln__hsaco_kernel_read(&hsaco, hsaco.kernel_count, &kernel) == KILN_ERROR_INVALID_ARGUMENT);
}
