/* The activations of matrix products, for their host sides. */
#ifndef KILN_KERNELS_COMMON_MATMUL_MATMUL_GATE_H
#define KILN_KERNELS_COMMON_MATMUL_MATMUL_GATE_H

#include <kiln/ops/gemm.h>

#include "kernels/common/gates.h"
#include "kernels/common/host.h"

enum { MATMUL_COEFFICIENTS = 9 };

/* The fields of the argument structs that describe an activation, copied as they are. */
typedef struct matmul_gate {
    uint32_t gated;
    float bound;
    float coefficients[MATMUL_COEFFICIENTS];
} matmul_gate;

static const matmul_gate matmul_gates[] = {
    [KILN_GEMM_NONE] = {0},
    [KILN_GEMM_GELU_ERF] = {1, KILN__GATE_GELU_ERF},
    [KILN_GEMM_GELU_TANH] = {1, KILN__GATE_GELU_TANH},
    [KILN_GEMM_GELU_QUICK] = {1, KILN__GATE_GELU_QUICK},
    [KILN_GEMM_SILU] = {1, KILN__GATE_SILU},
};

static inline kiln_status matmul_activation_check(const char *name, int32_t activation) {
    KILN__REQUIRE((uint32_t)activation < sizeof matmul_gates / sizeof *matmul_gates,
                  "%s: activation is %d: must be none (0), gelu_erf (1), gelu_tanh (2), gelu_quick (3) or silu (4)",
                  name, activation);
    return KILN_OK;
}

#endif
