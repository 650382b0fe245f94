/* The numbers of operators and of parts, which together give an operator's slot in a device's table. */
#ifndef KILN_KERNELS_COMMON_OPERATORS_H
#define KILN_KERNELS_COMMON_OPERATORS_H

enum {
#define KILN_OPERATOR(name) KILN__OPERATOR_##name,
#include "kernels/ops.def"
#undef KILN_OPERATOR
    KILN__OPERATOR_COUNT
};

/* The precisions an operator can be asked for: (name, bytes of an element). Their order numbers the parts. */
#define KILN__FLOAT_PARTS(X) \
    X(f32, 4)                \
    X(f16, 2)                \
    X(bf16, 2)

enum {
#define KILN__PART_ENUM(name, size) KILN__PART_##name,
    KILN__FLOAT_PARTS(KILN__PART_ENUM)
#undef KILN__PART_ENUM
        KILN__PART_COUNT
};

static inline unsigned kiln__operator_slot(unsigned operator_number, unsigned part) {
    return operator_number * KILN__PART_COUNT + part;
}

#endif
