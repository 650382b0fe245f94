/* The activations as t sigmoid(t P(t^2)), for host sides: the bound and P's coefficients that kiln_gated (math.h)
 * takes. tanh, quick and SiLU have this form by definition. For erf, t P(t^2) is fitted to ln(F / (1 - F)), F the
 * normal distribution: the error is below 1e-7, and 2e-4 relative where the result goes to 0. */
#ifndef KILN_KERNELS_COMMON_GATES_H
#define KILN_KERNELS_COMMON_GATES_H

#define KILN__GATE_GELU_ERF                                                                                    \
    5.8f, {                                                                                                    \
        0x1.9884a4p+0f, 0x1.2995bap-4f, -0x1.b116eap-15f, -0x1.e7fb1ep-14f, 0x1.315dd2p-17f, -0x1.9d7ad8p-22f, \
            0x1.495728p-27f, -0x1.1f9992p-33f, 0x1.a799f2p-41f                                                 \
    }
#define KILN__GATE_GELU_TANH       \
    9.7f, {                        \
        1.59576912f, 0.0713548163f \
    } /* 2 sqrt(2 / pi), and 0.044715 times it */
#define KILN__GATE_GELU_QUICK \
    47.0f, {                  \
        1.702f                \
    }
#define KILN__GATE_SILU \
    80.0f, {            \
        1.0f            \
    }

#endif
