/* add, host side: the tensors are one row. */
#include "kernels/add/add_args.h"
#include <kiln/ops/elementwise.h>
#define KILN_HOST add
#include "kernels/common/operator.h"

static kiln_status add(kiln_stream *stream, const kiln_add_params *params, unsigned part, const char *name) {
    KILN__TRY(kiln__size_check(name, "count", params->count, INT64_MAX >> 3));
    if (!params->count) return KILN_OK;
    kiln__tensor tensors[] = {kiln__tensor_of("y", params->y, 0), kiln__tensor_of("a", params->a, 0),
                              kiln__tensor_of("b", params->b, 0)};
    kiln_add_args args = {.y = params->y, .a = params->a, .b = params->b};
    kiln_launch_config config;
    KILN__TRY(kiln__one_row(name, tensors, 3, params->count, part, &args.shape, &config));
    return launch(stream, part, KERNEL_add, &config, &args, sizeof args);
}
