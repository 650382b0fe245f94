/* mul_add, host side: the tensors are one row. */
#include "kernels/common/host.h"
#include "kernels/mul_add/mul_add_args.h"

extern const kiln_bundle kiln__bundle_mul_add;

enum {
#define KILN_KERNEL(name) KERNEL_##name,
#include "kernels/mul_add/mul_add.def"
};

/* Says which of the inputs is NULL or not aligned. */
static kiln_status __attribute__((cold, noinline))
explain(const char *name, const kiln_mul_add_params *params, unsigned size_log2) {
    int64_t count = params->count;
    KILN__TRY(kiln__tensor_check(name, "a", params->a, 1, count, count, size_log2));
    KILN__TRY(kiln__tensor_check(name, "b", params->b, 1, count, count, size_log2));
    return kiln__tensor_check(name, "c", params->c, 1, count, count, size_log2);
}

KILN__HOST_SIDE kiln_status mul_add(kiln_stream *stream, const kiln_mul_add_params *params, size_t params_size,
                                    unsigned part, const char *name) {
    kiln_mul_add_params copy;
    KILN__PARAMS(name, params, params_size, &copy);
    KILN__TRY(kiln__stream_check(name, stream));
    int64_t count = params->count;
    KILN__REQUIRE(count >= 0, "%s: count is %lld: must not be negative", name, (long long)count);
    if (KILN__UNLIKELY(!count)) return KILN_OK;

    unsigned size_log2 = kiln__part_size_log2(part);
    uintptr_t addresses = (uintptr_t)params->y | (uintptr_t)params->a | (uintptr_t)params->b | (uintptr_t)params->c;
    KILN__TRY(kiln__tensor_check(name, "y", params->y, 1, count, count, size_log2));
    if (KILN__UNLIKELY(!params->a || !params->b || !params->c || addresses & ((1u << size_log2) - 1)))
        return explain(name, params, size_log2);

    const kiln_kernel *kernels;
    KILN__TRY(kiln__operator_get(stream, KILN__OPERATOR_mul_add, part, &kiln__bundle_mul_add, &kernels));
    kiln_mul_add_args args = {.y = params->y, .a = params->a, .b = params->b, .c = params->c};
    kiln_launch_config config = {0};
    KILN__TRY(kiln__elementwise(name, 1, count, size_log2, addresses % KILN_VECTOR_BYTES == 0, &args.shape, &config));
    return kiln__operator_launch(stream, &kernels[KERNEL_mul_add], &config, &args, sizeof args);
}

#define FUNCTION(part, size)                                                                        \
    kiln_status kiln_mul_add_##part##_sized(kiln_stream *stream, const kiln_mul_add_params *params, \
                                            size_t params_size) {                                   \
        return mul_add(stream, params, params_size, KILN__PART_##part, "mul_add_" #part);           \
    }
KILN__FLOAT_PARTS(FUNCTION)
