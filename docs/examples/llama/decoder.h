/* A model at work on a stream: its weights and its cache in the device's memory, and the step that makes a token of the
 * one before. All kernels are loaded and all memory is allocated once, here; a step neither allocates nor waits, but
 * for the token that it gives. Any thread may take a step, one at a time. */
#ifndef LLAMA_DECODER_H
#define LLAMA_DECODER_H

#include "quantised.h"

typedef struct llama_options {
    llama_precision precision;       /* of weights and activations, and of the cache unless it is fp8 */
    llama_quantisation quantisation; /* of the layers' matrices */
    bool fp8_cache;                  /* of E4M3, a byte for each element */
    float temperature;               /* 0: the most likely token */
    uint64_t seed;
} llama_options;

typedef struct llama_decoder llama_decoder;

/* Loads the kernels and uploads a model. progress, which may be NULL, is told how far it is. On failure *out is NULL,
 * and kiln_last_error tells why. The stream and the checkpoint must live as long. */
kiln_status llama_decoder_create(kiln_stream *stream, const llama_checkpoint *checkpoint, const llama_options *options,
                                 void (*progress)(size_t done, size_t all), llama_decoder **out);

/* Waits for the stream and frees everything. NULL is accepted. */
void llama_decoder_destroy(llama_decoder *decoder);

/* Puts a token of the vocabulary at a position, which is the next one and below the model's length, and gives the token
 * behind it: -1 where every logit is NaN or -inf. */
kiln_status llama_decoder_step(llama_decoder *decoder, int32_t token, int32_t position, int32_t *out_next);

/* The logits of the last step: [vocabulary_size]. */
kiln_status llama_decoder_logits(llama_decoder *decoder, float *out_logits);

/* Whether steps are replayed as a graph. */
bool llama_decoder_has_graph(const llama_decoder *decoder);

#endif
