/* mul_add, host side: the tensors are one row. */
#include "kernels/common/host.h"
#include "kernels/mul_add/mul_add_args.h"

extern const kiln_bundle kiln__bundle_mul_add;

enum {
#define KILN_KERNEL(name) KERNEL_##name,
#include "kernels/mul_add/mul_add.def"
};

/* Says what is wrong with the call, if it is not only that there is nothing to do. */
static kiln_status __attribute__((cold, noinline))
explain(const char *name, const kiln_stream *stream, const kiln_mul_add_params *params, unsigned size_log2) {
    KILN__TRY(kiln__stream_check(name, stream));
    int64_t count = params->count;
    KILN__REQUIRE(count >= 0, "%s: count is %lld: must not be negative", name, (long long)count);
    if (!count) return KILN_OK;
    KILN__TRY(kiln__tensor_check(name, "y", params->y, 1, count, count, size_log2));
    KILN__TRY(kiln__tensor_check(name, "a", params->a, 1, count, count, size_log2));
    KILN__TRY(kiln__tensor_check(name, "b", params->b, 1, count, count, size_log2));
    return kiln__tensor_check(name, "c", params->c, 1, count, count, size_log2);
}

KILN__HOST_SIDE kiln_status mul_add(kiln_stream *stream, const kiln_mul_add_params *params, unsigned part,
                                    const char *name,
                                    kiln_status (*again)(kiln_stream *, const kiln_mul_add_params *, size_t)) {
    int64_t count = params->count;
    unsigned size_log2 = kiln__part_size_log2(part);
    uintptr_t addresses = (uintptr_t)params->y | (uintptr_t)params->a | (uintptr_t)params->b | (uintptr_t)params->c;
    bool valid = stream && stream->device && (uint64_t)count - 1 < INT64_MAX >> 3 && params->y && params->a &&
                 params->b && params->c && !(addresses & ((1u << size_log2) - 1));
    if (KILN__UNLIKELY(!valid)) return explain(name, stream, params, size_log2);

    const kiln_module *module = kiln__operator_get(stream, KILN__OPERATOR_mul_add, part);
    if (KILN__UNLIKELY(!module)) return again(stream, params, sizeof *params);
    kiln_mul_add_args args = {.y = params->y, .a = params->a, .b = params->b, .c = params->c};
    kiln_launch_config config;
    KILN__TRY(kiln__elementwise(name, 1, count, size_log2, addresses % KILN_VECTOR_BYTES == 0, &args.shape, &config));
    return kiln__operator_launch(stream, &module->kernels[KERNEL_mul_add], &config, &args, sizeof args);
}

#define FUNCTION(part, size) KILN__OPERATOR_FUNCTION(mul_add, part)
KILN__FLOAT_PARTS(FUNCTION)
