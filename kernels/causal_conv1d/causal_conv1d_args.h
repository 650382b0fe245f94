/* causal_conv1d: the one argument of its kernels, on every backend. */
#ifndef KILN_KERNELS_CAUSAL_CONV1D_ARGS_H
#define KILN_KERNELS_CAUSAL_CONV1D_ARGS_H

#include "kernels/common/geometry.h"
#include "kernels/common/varlen_args.h"

enum { KILN_CONV_TAPS = 4 }; /* at most */

KILN_ARGS_BEGIN
typedef struct kiln_causal_conv1d_args {
    void *y;
    void *final_states; /* NULL: not wanted, or not written by this kernel */
    const void *x;
    const void *weight;
    const void *bias;     /* NULL: 0 */
    const void *residual; /* NULL: 0 */
    const void *initial_states;
    const int32_t *state_indices;
    kiln_varlen varlen;
    kiln_shape shape; /* a row for each token, or each sequence */
    int64_t y_stride;
    int64_t x_stride;
    int64_t residual_stride;
    int64_t states;
    uint32_t tokens;
    uint32_t history;
    uint32_t width;
    uint32_t dilation;
    uint32_t activation; /* kiln_conv_activation */
    uint32_t padding;
} kiln_causal_conv1d_args;
KILN_ARGS_END

#endif
