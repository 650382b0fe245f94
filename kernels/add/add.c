/* add, host side: the tensors are one row. */
#include "kernels/add/add_args.h"
#include "kernels/common/host.h"

extern const kiln_bundle kiln__bundle_add;

enum {
#define KILN_KERNEL(name) KERNEL_##name,
#include "kernels/add/add.def"
};

KILN__HOST_SIDE kiln_status add(kiln_stream *stream, const kiln_add_params *params, size_t params_size, unsigned part,
                                const char *name) {
    kiln_add_params copy;
    KILN__PARAMS(name, params, params_size, &copy);
    KILN__TRY(kiln__stream_check(name, stream));
    int64_t count = params->count;
    unsigned size_log2 = kiln__part_size_log2(part);
    KILN__REQUIRE(count >= 0, "%s: count is %lld: must not be negative", name, (long long)count);
    if (KILN__UNLIKELY(!count)) return KILN_OK;
    KILN__TRY(kiln__tensor_check(name, "y", params->y, 1, count, count, size_log2));
    KILN__TRY(kiln__tensor_check(name, "a", params->a, 1, count, count, size_log2));
    KILN__TRY(kiln__tensor_check(name, "b", params->b, 1, count, count, size_log2));

    const kiln_module *module;
    KILN__TRY(kiln__operator_require(stream, KILN__OPERATOR_add, part, &kiln__bundle_add, &module));
    kiln_add_args args = {.y = params->y, .a = params->a, .b = params->b};
    uintptr_t addresses = (uintptr_t)params->y | (uintptr_t)params->a | (uintptr_t)params->b;
    kiln_launch_config config;
    KILN__TRY(kiln__elementwise(name, 1, count, size_log2, addresses % KILN_VECTOR_BYTES == 0, &args.shape, &config));
    return kiln__operator_launch(stream, &module->kernels[KERNEL_add], &config, &args, sizeof args);
}

#define FUNCTION(part, size) KILN__OPERATOR_FUNCTION(add, part)
KILN__FLOAT_PARTS(FUNCTION)
