/* An operator's host side, <op>.c, begins with
 *
 *     #define KILN_HOST <op>
 *     #include "kernels/common/operator.h"
 *
 * and defines the functions declared here, once for all precisions: `part` is the precision, `name` the function's name
 * for messages. The exported functions, one for each KILN_PART of <op>.def, come to them with an open stream and params
 * of this version's size. KERNEL_<kernel> numbers the kernels, and launch() loads the operator on first use. An
 * operator that defines KILN_HOST_KEEPS_CALLS, too, launches by launch() or kiln__call_launch: loader/call.h. */
#include "kernels/common/host.h"

#define KILN__JOIN_OF(before, name, after) before##name##after
#define KILN__JOIN(before, name, after)    KILN__JOIN_OF(before, name, after)
#define KILN__TEXT_OF(...)                 #__VA_ARGS__
#define KILN__TEXT(...)                    KILN__TEXT_OF(__VA_ARGS__)
/* The formatter would put blanks into the path. */
/* clang-format off */
#define KILN__ROWS KILN__TEXT(kernels/KILN_HOST/KILN_HOST.def)
/* clang-format on */
#define KILN__HOST_PARAMS           KILN__JOIN(kiln_, KILN_HOST, _params)
#define KILN__HOST_FUNCTION(suffix) KILN__JOIN(kiln_, KILN_HOST, suffix)

enum {
#define KILN_KERNEL(name) KERNEL_##name,
#include KILN__ROWS
};

#ifdef KILN_HOST_KEEPS_CALLS
#define KILN__HOST_SLOT(part)       kiln__operator_slot(KILN__JOIN(KILN__OPERATOR_, KILN_HOST, ), KILN__PART_##part)
#define KILN__HOST_CALL_AGAIN(part) KILN__CALL_AGAIN(stream, KILN__HOST_SLOT(part), params, params_size);
#define KILN__HOST_CALL(part)                                                      \
    kiln__call call;                                                               \
    kiln__call_begin(&call);                                                       \
    const kiln_status status = KILN_HOST(stream, params, KILN__PART_##part, name); \
    return kiln__call_end(&call, stream, KILN__HOST_SLOT(part), params, sizeof *params, status);
#else
#define KILN__HOST_CALL_AGAIN(part)
#define KILN__HOST_CALL(part) return KILN_HOST(stream, params, KILN__PART_##part, name);
#endif

/* Checks and launches. */
static kiln_status KILN_HOST(kiln_stream *stream, const KILN__HOST_PARAMS *params, unsigned part, const char *name);

#define KILN_PART(part)                                                                                     \
    kiln_status KILN__HOST_FUNCTION(_##part##_sized)(kiln_stream * stream, const KILN__HOST_PARAMS *params, \
                                                     size_t params_size) {                                  \
        static const char name[] = KILN__TEXT(KILN_HOST) "_" #part;                                         \
        KILN__HOST_PARAMS copy;                                                                             \
        KILN__HOST_CALL_AGAIN(part)                                                                         \
        KILN__PARAMS(name, params, params_size, &copy);                                                     \
        KILN__TRY(kiln__stream_check(name, stream));                                                        \
        KILN__HOST_CALL(part)                                                                               \
    }
#include KILN__ROWS

/* How much workspace a call needs; *out_size is 0 at first. Only where <op>.def has KILN_PART_WITH_WORKSPACE. */
#define KILN_PART(part)
#define KILN_PART_WITH_WORKSPACE(part)                                                                                 \
    static kiln_status KILN__JOIN(, KILN_HOST, _workspace_size)(kiln_stream * stream, const KILN__HOST_PARAMS *params, \
                                                                unsigned part_number, const char *name,                \
                                                                size_t *out_size);                                     \
    kiln_status KILN__HOST_FUNCTION(_##part##_workspace_size_sized)(                                                   \
        kiln_stream * stream, const KILN__HOST_PARAMS *params, size_t params_size, size_t *out_size) {                 \
        static const char name[] = KILN__TEXT(KILN_HOST) "_" #part;                                                    \
        KILN__HOST_PARAMS copy;                                                                                        \
        KILN__REQUIRE(out_size, "%s_workspace_size: out_size is NULL", name);                                          \
        *out_size = 0;                                                                                                 \
        KILN__PARAMS(name, params, params_size, &copy);                                                                \
        KILN__TRY(kiln__stream_check(name, stream));                                                                   \
        return KILN__JOIN(, KILN_HOST, _workspace_size)(stream, params, KILN__PART_##part, name, out_size);            \
    }
#include KILN__ROWS

extern const kiln_bundle KILN__JOIN(kiln__bundle_, KILN_HOST, );

/* Launches a kernel of the operator, which is loaded on first use. */
static inline kiln_status launch(kiln_stream *stream, unsigned part, unsigned kernel, const kiln_launch_config *config,
                                 const void *args, size_t args_size) {
    const kiln_module *module;
    KILN__TRY(kiln__operator_require(stream, KILN__JOIN(KILN__OPERATOR_, KILN_HOST, ), part,
                                     &KILN__JOIN(kiln__bundle_, KILN_HOST, ), &module));
#ifdef KILN_HOST_KEEPS_CALLS
    return kiln__call_launch(stream, &module->kernels[kernel], config, args, args_size);
#else
    return kiln__operator_launch(stream, &module->kernels[kernel], config, args, args_size);
#endif
}
