/* The activations of products, in f64. */
#ifndef KILN_TESTS_OPS_ACTIVATION_H
#define KILN_TESTS_OPS_ACTIVATION_H

#include <kiln/ops/gemm.h>

double activate(kiln_gemm_activation activation, double t);

#endif
