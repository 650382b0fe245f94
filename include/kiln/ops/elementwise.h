/* Elementwise operators: sums, products and activations. ops.h has the rules for every operator. */
#ifndef KILN_OPS_ELEMENTWISE_H
#define KILN_OPS_ELEMENTWISE_H

#include <kiln/ops/operator.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- add: y = a + b ---------------------------------------------------------------------------------------------- */

typedef struct kiln_add_params {
    void *y;       /* [count]; may be a or b */
    const void *a; /* [count] */
    const void *b; /* [count] */
    int64_t count;
} kiln_add_params;

/* Adds two tensors elementwise. */
KILN_OPERATOR_FUNCTION(add_f32, kiln_add_params)
KILN_OPERATOR_FUNCTION(add_f16, kiln_add_params)
KILN_OPERATOR_FUNCTION(add_bf16, kiln_add_params)

/* ---- add_gelu: y = gelu(x + bias) -------------------------------------------------------------------------------- */

/* The forms of GELU (Hendrycks and Gimpel, arXiv 1606.08415); t = x + bias. */
typedef enum kiln_gelu {
    KILN_GELU_ERF,   /* 0.5 t (1 + erf(t / sqrt 2)) */
    KILN_GELU_TANH,  /* 0.5 t (1 + tanh(sqrt(2 / pi) (t + 0.044715 t^3))) */
    KILN_GELU_QUICK, /* t sigmoid(1.702 t) */
} kiln_gelu;

typedef struct kiln_add_gelu_params {
    void *y;          /* [rows, cols]; may be x, with the same stride */
    const void *x;    /* [rows, cols] */
    const void *bias; /* [cols]; NULL: 0 */
    int64_t rows;
    int64_t cols;
    int64_t y_stride; /* 0: cols */
    int64_t x_stride; /* 0: cols */
    int32_t approx;   /* kiln_gelu */
    int32_t reserved; /* must be 0 */
} kiln_add_gelu_params;

/* Adds the bias in f32 and applies GELU. gelu(-inf) is -0, gelu(+inf) is +inf. */
KILN_OPERATOR_FUNCTION(add_gelu_f32, kiln_add_gelu_params)
KILN_OPERATOR_FUNCTION(add_gelu_f16, kiln_add_gelu_params)
KILN_OPERATOR_FUNCTION(add_gelu_bf16, kiln_add_gelu_params)

/* ---- mul_add: y = a * b + c -------------------------------------------------------------------------------------- */

typedef struct kiln_mul_add_params {
    void *y;       /* [count]; may be a, b or c */
    const void *a; /* [count] */
    const void *b; /* [count] */
    const void *c; /* [count] */
    int64_t count;
} kiln_mul_add_params;

/* One fused multiply-add in f32, rounded once, and then one rounding to the precision. */
KILN_OPERATOR_FUNCTION(mul_add_f32, kiln_mul_add_params)
KILN_OPERATOR_FUNCTION(mul_add_f16, kiln_mul_add_params)
KILN_OPERATOR_FUNCTION(mul_add_bf16, kiln_mul_add_params)

/* ---- silu_mul: y = act(gate) * up, the gated activation of an MLP ------------------------------------------------ */

/* The activation of the gate (Shazeer, arXiv 2002.05202). */
typedef enum kiln_glu {
    KILN_GLU_SILU,      /* g sigmoid(g) */
    KILN_GLU_GELU_TANH, /* gelu of g, tanh form */
} kiln_glu;

typedef struct kiln_silu_mul_params {
    void *y;          /* [rows, cols]; may be gate or up, with the same stride */
    const void *gate; /* [rows, cols]; if up is NULL, [rows, 2 * cols]: each row contains gate, then up */
    const void *up;   /* [rows, cols] or NULL */
    int64_t rows;
    int64_t cols;        /* of y */
    int64_t y_stride;    /* 0: cols */
    int64_t gate_stride; /* 0: packed */
    int64_t up_stride;   /* 0: cols; must be 0 if up is NULL */
    int32_t activation;  /* kiln_glu */
    int32_t reserved;    /* must be 0 */
} kiln_silu_mul_params;

/* The activation is computed in f32. With SILU a gate below -80 produces 0 (the exact value is above -1.5e-33); with
 * tanh GELU a gate below -9.7 does. The same thresholds apply to the activations of gemm and add_gelu, where that of
 * quick GELU is -47. */
KILN_OPERATOR_FUNCTION(silu_mul_f32, kiln_silu_mul_params)
KILN_OPERATOR_FUNCTION(silu_mul_f16, kiln_silu_mul_params)
KILN_OPERATOR_FUNCTION(silu_mul_bf16, kiln_silu_mul_params)

#ifdef __cplusplus
}
#endif

#endif
