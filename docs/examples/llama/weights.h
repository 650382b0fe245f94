/* A model's weights in the memory of a device, in the precision of its activations, and the frequencies of its rotary
 * embedding. */
#ifndef LLAMA_WEIGHTS_H
#define LLAMA_WEIGHTS_H

#include "checkpoint.h"
#include <kiln/kiln.h>

typedef enum llama_precision { LLAMA_F32, LLAMA_F16, LLAMA_BF16 } llama_precision;

/* "f32", "f16" or "bf16": also the part of each operator's bundle. Static storage. */
const char *llama_precision_name(llama_precision precision);

typedef struct llama_weights {
    llama_config config;
    llama_precision precision;
    size_t element;                        /* bytes */
    void *arrays[LLAMA_WEIGHT_COUNT];      /* of all layers; NULL: not used */
    size_t layer_size[LLAMA_WEIGHT_COUNT]; /* bytes of a layer's matrix */
    int64_t *frequencies;                  /* of rope */
} llama_weights;

/* Uploads a model and waits until it is there. progress, which may be NULL, is told how far it is. After a failure
 * *out has what was uploaded, to be freed as ever. */
kiln_status llama_weights_upload(kiln_stream *stream, const llama_checkpoint *checkpoint, llama_precision precision,
                                 void (*progress)(size_t done, size_t all), llama_weights *out);

/* The same without a set of arrays, of which the bits are LLAMA_WEIGHT_COUNT numbers: they stay NULL. */
kiln_status llama_weights_upload_without(kiln_stream *stream, const llama_checkpoint *checkpoint,
                                         llama_precision precision, uint32_t left_out,
                                         void (*progress)(size_t done, size_t all), llama_weights *out);

/* Converts values to the weights' precision in the device's memory, and waits until they are there. */
kiln_status llama_weights_put(kiln_stream *stream, const llama_weights *weights, void *to, const float *from,
                              size_t count);

/* No work in flight may use them. Zeroed weights are accepted. */
void llama_weights_free(kiln_device *device, llama_weights *weights);

/* A layer's matrix. */
static inline const void *llama_layer_weight(const llama_weights *weights, size_t number, int32_t layer) {
    return (const char *)weights->arrays[number] + (size_t)layer * weights->layer_size[number];
}

#endif
