/* The table of ggml's operators that kiln does. */
#include "loader/bindings/ggml/operators.h"

static const ggml_kiln_operator operators[GGML_OP_COUNT] = {
#define GGML_KILN_OPERATOR(name, function, prepare) \
    [GGML_OP_##name] = {ggml_kiln_##function##_supports, prepare, ggml_kiln_##function##_run},
#include "loader/bindings/ggml/operators.def"
#undef GGML_KILN_OPERATOR
};

const ggml_kiln_operator *ggml_kiln_operator_of(const struct ggml_tensor *op) {
    const ggml_kiln_operator *entry = &operators[op->op];
    return entry->supports && entry->supports(op) ? entry : NULL;
}

kiln_status ggml_kiln_run(ggml_kiln_backend *backend, const struct ggml_tensor *op) {
    return operators[op->op].run(backend, op);
}

bool ggml_kiln_computes(const struct ggml_tensor *op) {
    switch (op->op) {
    case GGML_OP_NONE:
    case GGML_OP_RESHAPE:
    case GGML_OP_VIEW:
    case GGML_OP_PERMUTE:
    case GGML_OP_TRANSPOSE:
        return false;
    default:
        return !ggml_is_empty(op);
    }
}
