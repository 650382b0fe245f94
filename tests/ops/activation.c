#include "tests/ops/activation.h"
#include <math.h>

double activate(kiln_gemm_activation activation, double t) {
    switch (activation) {
    case KILN_GEMM_NONE:
        return t;
    case KILN_GEMM_GELU_ERF:
        return 0.5 * t * (1 + erf(t / sqrt(2)));
    case KILN_GEMM_GELU_TANH:
        return 0.5 * t * (1 + tanh(sqrt(2 / acos(-1)) * (t + 0.044715 * t * t * t)));
    case KILN_GEMM_GELU_QUICK:
        return t / (1 + exp(-1.702 * t));
    case KILN_GEMM_SILU:
        return t / (1 + exp(-t));
    }
    return NAN;
}
