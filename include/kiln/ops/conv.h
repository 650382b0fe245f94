/* Convolutions along sequences. ops.h has the rules for every operator. */
#ifndef KILN_OPS_CONV_H
#define KILN_OPS_CONV_H

#include <kiln/ops/operator.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- causal_conv1d: a depthwise causal convolution along sequences ----------------------------------------------- */

typedef enum kiln_conv_activation { KILN_CONV_NONE, KILN_CONV_SILU } kiln_conv_activation;

typedef struct kiln_causal_conv1d_params {
    void *y;              /* [tokens, channels]. May be residual */
    void *final_states;   /* [states, history, channels]: the initial_states of the next call; may be the same tensor as
                           * initial_states; NULL: not written */
    const void *x;        /* [tokens, channels]: of all sequences, concatenated */
    const void *weight;   /* [width, channels]: the last row multiplies the token itself. PyTorch's Conv1d stores the
                           * transpose */
    const void *bias;     /* [channels]; NULL: 0 */
    const void *residual; /* [tokens, channels]: added after the activation; NULL: 0 */
    const void *initial_states; /* [states, history, channels]: x before each sequence, the last row last; NULL: 0 */
    const int32_t *cu_seqlens;  /* [batch + 1], from 0: the row at which each sequence begins, and the end of the last;
                                 * NULL: tokens / batch rows each */
    const int32_t *state_indices; /* [batch]: the state that each sequence uses; NULL: its own number. A state that does
                                   * not exist, such as -1, reads as zeros and is not written */
    int64_t tokens;               /* at most 2^31 - 1 */
    int64_t channels;
    int64_t batch;           /* 0: 1 */
    int64_t width;           /* at most 4 */
    int64_t dilation;        /* 0: 1; at most 65536 */
    int64_t states;          /* 0: batch */
    int64_t history;         /* rows of a state, at least (width - 1) * dilation; 0: the minimum */
    int64_t y_stride;        /* 0: channels */
    int64_t x_stride;        /* 0: channels */
    int64_t residual_stride; /* 0: channels */
    int32_t activation;      /* kiln_conv_activation */
    int32_t reserved;        /* must be 0 */
} kiln_causal_conv1d_params;

/* y[t, c] = activation(bias[c] + the sum over k of weight[k, c] x[t - (width - 1 - k) dilation, c]) + residual[t, c],
 * with the sum in ascending order of k and t counted within its sequence: the short convolution of Mamba (Gu and Dao,
 * arXiv 2312.00752) and, with a dilation, that of Engram. x before the beginning of a sequence comes from
 * initial_states. Rows of y that belong to no sequence are not written.
 *
 * Decoding continues a sequence: given the states of the preceding tokens, the results are the same as for the whole
 * sequence. No two sequences may use the same state. final_states are copied bit for bit from x and initial_states;
 * they need a second launch, unless each sequence has one token and cu_seqlens is NULL. */
KILN_OPERATOR_FUNCTION(causal_conv1d_f32, kiln_causal_conv1d_params)
KILN_OPERATOR_FUNCTION(causal_conv1d_f16, kiln_causal_conv1d_params)
KILN_OPERATOR_FUNCTION(causal_conv1d_bf16, kiln_causal_conv1d_params)

#ifdef __cplusplus
}
#endif

#endif
