/* A model's matrices in fewer bits, quantised when they are loaded, and the layers' products with them.
 *
 * W4A16: integers of 4 bits in groups of elements of a row (llama_group_of). The scale and the zero of a group put its
 * least and its greatest element at the ends of the 16 integers. Activations stay as they are.
 *
 * FP8 and INT8: a scale for each row of a matrix, and activations that are quantised row by row as they are made, by
 * rmsnorm_fp8, silu_mul_fp8 and, behind attention, quantize_fp8, or the same of int8.
 *
 * The embedding, the norms and the classifier stay as they are. */
#ifndef LLAMA_QUANTISED_H
#define LLAMA_QUANTISED_H

#include "codes.h"
#include "forward.h"

typedef enum llama_quantisation { LLAMA_AS_THEY_ARE, LLAMA_W4A16, LLAMA_FP8, LLAMA_INT8 } llama_quantisation;

/* "w4a16", "fp8" or "int8"; "none" for weights as they are. Static storage. */
const char *llama_quantisation_name(llama_quantisation quantisation);

/* An array of all layers, in the device's memory. */
typedef struct llama_quantised_array {
    void *codes, *scales, *zeros;   /* zeros: of W4A16 */
    size_t codes_size, scales_size; /* bytes of a layer's matrix */
    int64_t group;                  /* of W4A16 */
    int32_t layout;                 /* kiln_w4a16_layout */
} llama_quantised_array;

/* What takes the place of the layers' matrices, and of their operators where activations are quantised too. */
struct llama_quantised {
    llama_quantised_array arrays[LLAMA_WEIGHT_COUNT];
    const llama_codes_operators *operators; /* NULL: activations stay as they are, as with W4A16 */
    llama_codes activations;                /* that the next products read: [rows, hidden size or size] */
};

/* The layers' operators where `operators` is not NULL: of the residual stream, to which the branch is added before if
 * `add` says so; of gate and up; of attention's result. */
kiln_status llama_quantised_norm(const llama_forward *forward, kiln_stream *stream, const void *weights, bool add);
kiln_status llama_quantised_gate(const llama_forward *forward, kiln_stream *stream);
kiln_status llama_quantised_attended(const llama_forward *forward, kiln_stream *stream);

/* y = x times a layer's matrix, [out, in], transposed. x is not read where there are codes in its place. */
kiln_status llama_quantised_multiply(const llama_forward *forward, kiln_stream *stream, void *y, const void *x,
                                     size_t number, int32_t layer, int64_t out, int64_t in);

/* The kiln_w4a16_layout in which the device's kernels are fastest, if a matrix [n, k] can have it. */
kiln_status llama_w4a16_layout_of(kiln_stream *stream, llama_precision precision, int64_t n, int64_t k, int32_t *out);

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
