/* mul_add, host side: the tensors are one row. */
#include "kernels/mul_add/mul_add_args.h"
#include <kiln/ops/elementwise.h>
#define KILN_HOST mul_add
#include "kernels/common/operator.h"

static kiln_status mul_add(kiln_stream *stream, const kiln_mul_add_params *params, unsigned part, const char *name) {
    KILN__TRY(kiln__size_check(name, "count", params->count, INT64_MAX >> 3));
    if (!params->count) return KILN_OK;
    kiln__tensor tensors[] = {kiln__tensor_of("y", params->y, 0), kiln__tensor_of("a", params->a, 0),
                              kiln__tensor_of("b", params->b, 0), kiln__tensor_of("c", params->c, 0)};
    kiln_mul_add_args args = {.y = params->y, .a = params->a, .b = params->b, .c = params->c};
    kiln_launch_config config;
    KILN__TRY(kiln__one_row(name, tensors, 4, params->count, part, &args.shape, &config));
    return launch(stream, part, KERNEL_mul_add, &config, &args, sizeof args);
}
