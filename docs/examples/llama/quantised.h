/* A model's matrices in fewer bits, quantised when they are loaded, and the layers' products with them.
 *
 * W4A16: integers of 4 bits in groups of 32 elements of a row, or the whole row where 32 does not divide it. The scale
 * and the zero of a group put its least and its greatest element at the ends of the 16 integers. Activations stay as
 * they are.
 *
 * FP8 and INT8: a scale for each row of a matrix, and activations that are quantised row by row as they are made, by
 * rmsnorm_fp8, silu_mul_fp8 and, behind attention, quantize_fp8, or the same of int8.
 *
 * The embedding, the norms and the classifier stay as they are. */
#ifndef LLAMA_QUANTISED_H
#define LLAMA_QUANTISED_H

#include "forward.h"

typedef enum llama_quantisation { LLAMA_AS_THEY_ARE, LLAMA_W4A16, LLAMA_FP8, LLAMA_INT8 } llama_quantisation;

/* An array of all layers, in the device's memory. */
typedef struct llama_quantised_array {
    void *codes, *scales, *zeros;   /* zeros: of W4A16 */
    size_t codes_size, scales_size; /* bytes of a layer's matrix */
    int64_t group;                  /* of W4A16 */
    int32_t layout;                 /* kiln_w4a16_layout */
} llama_quantised_array;

/* What takes the place of the layers' operators on weights as they are. norm, gate and attended leave codes and a scale
 * for each row for the products behind them; NULL where activations stay as they are. */
struct llama_quantised {
    llama_quantised_array arrays[LLAMA_WEIGHT_COUNT];
    void *codes; /* of the activations that the next products read: [rows, hidden size or size] */
    float *code_scales;

    /* Of the residual stream, to which the branch is added before if `add` says so. */
    kiln_status (*norm)(const llama_forward *forward, kiln_stream *stream, const void *weights, bool add);
    /* Of gate and up. */
    kiln_status (*gate)(const llama_forward *forward, kiln_stream *stream);
    /* Of attention's result. */
    kiln_status (*attended)(const llama_forward *forward, kiln_stream *stream);
    /* y = x times a layer's matrix, [out, in], transposed. x is not read where there are codes in its place. */
    kiln_status (*multiply)(const llama_forward *forward, kiln_stream *stream, void *y, const void *x, size_t number,
                            int32_t layer, int64_t out, int64_t in);
};

/* The set of arrays that llama_quantised_create quantises, for llama_weights_upload_without. */
uint32_t llama_quantised_set(llama_quantisation quantisation);

/* Quantises a model's matrices and allocates the codes of so many rows of activations; waits until all is there. After
 * LLAMA_AS_THEY_ARE *out is NULL. After a failure *out has what was made, to be freed as ever. */
kiln_status llama_quantised_create(kiln_stream *stream, const llama_checkpoint *checkpoint,
                                   llama_quantisation quantisation, const llama_weights *weights, int64_t rows,
                                   struct llama_quantised **out);

/* No work in flight may use it. NULL is accepted. */
void llama_quantised_destroy(kiln_device *device, struct llama_quantised *quantised);

#endif
