/* Every operator's description (describe.c). An object of its own: only what refers to it links all images. */
#include "loader/status.h"
#include <kiln/ops/describe.h>

#define KILN_OPERATOR(name) extern const kiln_operator kiln__operator_##name;
#include "kernels/ops.def"
#undef KILN_OPERATOR

kiln_status kiln_all_operators(const kiln_operator *const **out_operators, size_t *out_count) {
    static const kiln_operator *const operators[] = {
#define KILN_OPERATOR(name) &kiln__operator_##name,
#include "kernels/ops.def"
#undef KILN_OPERATOR
    };
    if (out_operators) *out_operators = NULL;
    if (out_count) *out_count = 0;
    KILN__REQUIRE(out_operators, "kiln_all_operators: out_operators is NULL");
    KILN__REQUIRE(out_count, "kiln_all_operators: out_count is NULL");
    *out_operators = operators;
    *out_count = sizeof operators / sizeof *operators;
    return KILN_OK;
}
