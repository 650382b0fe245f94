#include "kernels/common/host.h"

const char *const kiln__part_names[KILN__PART_COUNT] = {
#define PART_NAME(name, size) #name,
    KILN__FLOAT_PARTS(PART_NAME)
#undef PART_NAME
};

kiln_status kiln__tensor_explain(const char *name, const char *tensor, const void *data, int64_t rows, int64_t cols,
                                 int64_t stride, unsigned size_log2) {
    KILN__REQUIRE(data, "%s: %s is NULL", name, tensor);
    KILN__REQUIRE(!((uintptr_t)data & ((1u << size_log2) - 1)),
                  "%s: %s is %p: must be aligned to its elements of %u bytes", name, tensor, data, 1u << size_log2);
    KILN__REQUIRE(stride >= cols, "%s: %s_stride is %lld: must be 0 or at least the %lld elements of a row", name,
                  tensor, (long long)stride, (long long)cols);
    return kiln__fail(KILN_ERROR_INVALID_ARGUMENT, "%s: %s is too large: %lld rows with a stride of %lld elements",
                      name, tensor, (long long)rows, (long long)stride);
}
