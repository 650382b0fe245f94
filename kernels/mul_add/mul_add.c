/* mul_add, host side: the tensors are one row. */
#include "kernels/common/host.h"
#include "kernels/mul_add/mul_add_args.h"

extern const kiln_bundle kiln__bundle_mul_add;

enum {
#define KILN_KERNEL(name) KERNEL_##name,
#include "kernels/mul_add/mul_add.def"
};

KILN__HOST_SIDE kiln_status launch(kiln_stream *stream, const kiln_mul_add_params *params, const kiln_module *module,
                                   uint32_t wide, unsigned size_log2, const char *name) {
    kiln_mul_add_args args = {.y = params->y, .a = params->a, .b = params->b, .c = params->c};
    kiln_launch_config config;
    KILN__TRY(kiln__elementwise(name, 1, params->count, size_log2, wide, &args.shape, &config));
    return kiln__operator_launch(stream, &module->kernels[KERNEL_mul_add], &config, &args, sizeof args);
}

static uintptr_t addresses_of(const kiln_mul_add_params *params) {
    return (uintptr_t)params->y | (uintptr_t)params->a | (uintptr_t)params->b | (uintptr_t)params->c;
}

/* The rare calls: wrong ones, empty ones, params of another version, and the first one, which loads. */
static kiln_status __attribute__((cold, noinline)) mul_add_any(kiln_stream *stream, const kiln_mul_add_params *params,
                                                               size_t params_size, unsigned part, const char *name) {
    kiln_mul_add_params copy;
    KILN__PARAMS(name, params, params_size, &copy);
    KILN__TRY(kiln__stream_check(name, stream));
    int64_t count = params->count;
    unsigned size_log2 = kiln__part_size_log2(part);
    KILN__REQUIRE(count >= 0, "%s: count is %lld: must not be negative", name, (long long)count);
    if (!count) return KILN_OK;
    KILN__TRY(kiln__tensor_check(name, "y", params->y, 1, count, count, size_log2));
    KILN__TRY(kiln__tensor_check(name, "a", params->a, 1, count, count, size_log2));
    KILN__TRY(kiln__tensor_check(name, "b", params->b, 1, count, count, size_log2));
    KILN__TRY(kiln__tensor_check(name, "c", params->c, 1, count, count, size_log2));
    const kiln_module *module;
    KILN__TRY(kiln__operator_require(stream, KILN__OPERATOR_mul_add, part, &kiln__bundle_mul_add, &module));
    return launch(stream, params, module, addresses_of(params) % KILN_VECTOR_BYTES == 0, size_log2, name);
}

KILN__HOST_SIDE kiln_status mul_add(kiln_stream *stream, const kiln_mul_add_params *params, size_t params_size,
                                    unsigned part, const char *name) {
    if (KILN__UNLIKELY(!kiln__is_current(stream, params, params_size, sizeof *params)))
        return mul_add_any(stream, params, params_size, part, name);
    unsigned size_log2 = kiln__part_size_log2(part);
    uintptr_t addresses = addresses_of(params);
    bool valid = (uint64_t)params->count - 1 < INT64_MAX >> 3 && params->y && params->a && params->b && params->c &&
                 !(addresses & ((1u << size_log2) - 1));
    const kiln_module *module = kiln__operator_get(stream, KILN__OPERATOR_mul_add, part);
    if (KILN__UNLIKELY(!valid || !module)) return mul_add_any(stream, params, params_size, part, name);
    return launch(stream, params, module, addresses % KILN_VECTOR_BYTES == 0, size_log2, name);
}

#define FUNCTION(part, size) KILN__OPERATOR_FUNCTION(mul_add, part)
KILN__FLOAT_PARTS(FUNCTION)
