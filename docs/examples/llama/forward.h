/* The forward pass of a model: tokens in, logits out. Any number of tokens goes through the layers at once, as rows;
 * whose they are only attention knows, which is the caller's, since it depends on the cache. */
#ifndef LLAMA_FORWARD_H
#define LLAMA_FORWARD_H

#include "weights.h"

#define LLAMA_EPSILON 1e-5f /* of the norms */

/* Activations: (name, elements of a row). */
#define LLAMA_ACTIVATIONS(ACTIVATION)   \
    ACTIVATION(residual, c->size)       \
    ACTIVATION(normed, c->size)         \
    ACTIVATION(query, c->size)          \
    ACTIVATION(key, llama_kv_size(c))   \
    ACTIVATION(value, llama_kv_size(c)) \
    ACTIVATION(attended, c->size)       \
    ACTIVATION(branch, c->size)         \
    ACTIVATION(gate, c->hidden_size)    \
    ACTIVATION(up, c->hidden_size)

struct llama_quantised;

typedef struct llama_forward {
    const llama_weights *weights;
    const struct llama_quantised *quantised; /* NULL: the weights are as they are */
    int64_t rows;

    /* On the device, [rows], read when the kernels run: */
    const int32_t *tokens;
    const int32_t *positions;
    const int64_t *slots; /* of the cache, where keys and values go */

    void *key_cache, *value_cache; /* [layers, slots of a layer, kv_heads * head_dim] */
    int64_t capacity;              /* slots of a layer */
    int32_t cache_type;            /* kiln_cache_type of both */

    /* Puts on the stream what makes `attended` of `query` and of a layer's cache. */
    kiln_status (*attend)(void *user, kiln_stream *stream, int32_t layer);
    void *user;

#define LLAMA_ACTIVATION(name, count) void *name;
    LLAMA_ACTIVATIONS(LLAMA_ACTIVATION)
#undef LLAMA_ACTIVATION
} llama_forward;

/* Allocates the activations of so many rows. After a failure some are there, to be freed as ever. */
kiln_status llama_forward_allocate(llama_forward *forward, kiln_device *device, int64_t rows);

/* Frees the activations. */
void llama_forward_free(llama_forward *forward, kiln_device *device);

/* Bytes of a cache, and a layer's part of it. */
size_t llama_cache_size(const llama_forward *forward);
void *llama_layer_cache(const llama_forward *forward, void *cache, int32_t layer);

/* Puts the layers on the stream. `normed` is then what the classifier reads. */
kiln_status llama_forward_layers(const llama_forward *forward, kiln_stream *stream);

/* Puts the classifier on the stream: logits, [rows, vocabulary_size], of rows like those of `normed`. */
kiln_status llama_forward_logits(const llama_forward *forward, kiln_stream *stream, const void *normed, int64_t rows,
                                 void *logits);

#endif
