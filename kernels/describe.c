/* The description of one operator, kiln__operator_<op>, from its rows in <op>.def. It is compiled once for each
 * operator, with -DKILN_DESCRIBE=<op>, into an object of its own, which only tools link. */
#include <kiln/ops.h>

#define PASTE3(a, b, c) a##b##c
#define JOIN(a, b, c)   PASTE3(a, b, c)
#define TEXT_OF(x)      #x
#define TEXT(x)         TEXT_OF(x)
/* The formatter would put blanks into the path. */
/* clang-format off */
#define ROWS TEXT(kernels/KILN_DESCRIBE/KILN_DESCRIBE.def)
/* clang-format on */
#define PARAMS           JOIN(kiln_, KILN_DESCRIBE, _params)
#define FUNCTION(suffix) JOIN(kiln_, KILN_DESCRIBE, suffix)

/* The typed functions, called through untyped signatures. */
#define KILN_PART(part)                                                                           \
    static kiln_status call_##part(kiln_stream *stream, const void *params, size_t params_size) { \
        return FUNCTION(_##part##_sized)(stream, params, params_size);                            \
    }
#include ROWS

#define KILN_PART(part)
#define KILN_PART_WITH_WORKSPACE(part)                                                               \
    static kiln_status workspace_##part(kiln_stream *stream, const void *params, size_t params_size, \
                                        size_t *out_size) {                                          \
        return FUNCTION(_##part##_workspace_size_sized)(stream, params, params_size, out_size);      \
    }
#include ROWS

#define KILN_PART(p) {.name = TEXT(KILN_DESCRIBE) "_" #p, .part = #p, .call = call_##p},
#define KILN_PART_WITH_WORKSPACE(p) \
    {.name = TEXT(KILN_DESCRIBE) "_" #p, .part = #p, .call = call_##p, .workspace_size = workspace_##p},
static const kiln_operator_function functions[] = {
#include ROWS
};

#define FIELD(field, field_role, ...)      \
    {.name = #field,                       \
     .role = field_role,                   \
     .offset = offsetof(PARAMS, field),    \
     .size = sizeof(((PARAMS *)0)->field), \
     __VA_ARGS__},
#define TENSOR(field, field_role, type, dimensions, is_optional, help) \
    FIELD(field, field_role, .dtype = type, .shape = dimensions, .choices = "", .optional = is_optional, .text = help)
#define PLAIN(field, field_role, tensor, names, help) \
    FIELD(field, field_role, .dtype = "", .shape = tensor, .choices = names, .text = help)

#define KILN_TENSOR_OUT(name, dtype, shape, text) TENSOR(name, KILN_FIELD_OUTPUT, dtype, shape, 0, text)
#define KILN_TENSOR_IN(name, dtype, shape, text)  TENSOR(name, KILN_FIELD_INPUT, dtype, shape, 0, text)
#define KILN_TENSOR_INTEGERS(name, type, dimensions, numbers, help)                                               \
    FIELD(name, KILN_FIELD_INPUT, .dtype = type, .shape = dimensions, .choices = "", .optional = 0, .text = help, \
          .integers = numbers)
#define KILN_TENSOR_OPTIONAL(name, dtype, shape, text) TENSOR(name, KILN_FIELD_INPUT, dtype, shape, 1, text)
#define KILN_TENSOR_OR(name, other, type, dimensions, help)                                                       \
    FIELD(name, KILN_FIELD_INPUT, .dtype = type, .shape = dimensions, .choices = "", .optional = 1, .text = help, \
          .instead = #other)
#define KILN_TENSOR_OUT_OPTIONAL(name, dtype, shape, text) TENSOR(name, KILN_FIELD_OUTPUT, dtype, shape, 1, text)
#define KILN_TENSOR_UPDATE(name, dtype, shape, text)       TENSOR(name, KILN_FIELD_UPDATE, dtype, shape, 0, text)
#define KILN_SIZE(name, size, help) \
    FIELD(name, KILN_FIELD_SIZE, .dtype = "", .shape = "", .choices = "", .typical = size, .text = help)
#define KILN_SIZE_LEADING(name, size, tensor, help) \
    FIELD(name, KILN_FIELD_SIZE, .dtype = "", .shape = #tensor, .choices = "", .typical = size, .text = help)
#define KILN_SIZE_OF(name, size, other, help)                                                            \
    FIELD(name, KILN_FIELD_SIZE, .dtype = "", .shape = "", .choices = "", .typical = size, .text = help, \
          .follows = other)
#define KILN_STRIDE(name, tensor, text)  PLAIN(name, KILN_FIELD_STRIDE, #tensor, "", text)
#define KILN_OPTION(name, choices, text) PLAIN(name, KILN_FIELD_OPTION, "", choices, text)
#define KILN_INTEGER(name, text)         PLAIN(name, KILN_FIELD_INTEGER, "", "", text)
#define KILN_REAL(name, text)            PLAIN(name, KILN_FIELD_REAL, "", "", text)
#define KILN_WORKSPACE(name, size_name, text)       \
    PLAIN(name, KILN_FIELD_WORKSPACE, "", "", text) \
    PLAIN(size_name, KILN_FIELD_WORKSPACE_SIZE, "", "", "bytes of " #name)
static const kiln_field fields[] = {
#include ROWS
};

extern const kiln_bundle JOIN(kiln__bundle_, KILN_DESCRIBE, );
extern const kiln_operator JOIN(kiln__operator_, KILN_DESCRIBE, );
const kiln_operator JOIN(kiln__operator_, KILN_DESCRIBE, ) = {
    .name = TEXT(KILN_DESCRIBE),
#define KILN_SUMMARY(text) .summary = text,
#include ROWS
    .bundle = &JOIN(kiln__bundle_, KILN_DESCRIBE, ),
    .fields = fields,
    .functions = functions,
    .field_count = sizeof fields / sizeof *fields,
    .function_count = sizeof functions / sizeof *functions,
    .params_size = sizeof(PARAMS),
};
