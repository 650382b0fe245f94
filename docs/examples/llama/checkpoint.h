/* A model in the format of llama2.c, version 0: a header, then float32 arrays, mapped and not copied. */
#ifndef LLAMA_CHECKPOINT_H
#define LLAMA_CHECKPOINT_H

#include "reason.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The file's header. */
typedef struct llama_config {
    int32_t size;        /* of the residual stream */
    int32_t hidden_size; /* of the feed-forward layer */
    int32_t layers;
    int32_t heads;
    int32_t kv_heads;
    int32_t vocabulary_size; /* in the file negative where the classifier has weights of its own */
    int32_t length;          /* the most positions */
} llama_config;

/* Elements of a head, and of the keys of a token. */
static inline int32_t llama_head_dim(const llama_config *config) {
    return config->size / config->heads;
}
static inline int32_t llama_kv_size(const llama_config *config) {
    return llama_head_dim(config) * config->kv_heads;
}

/* The arrays in the order of the file, all layers of each: (name, rows, columns of a layer's matrix, layers).
 * Matrices are [out, in]. */
#define LLAMA_WEIGHTS(WEIGHT)                                                 \
    WEIGHT(embedding, c->vocabulary_size, c->size, 1)                         \
    WEIGHT(attention_norm, 1, c->size, c->layers)                             \
    WEIGHT(query, c->size, c->size, c->layers)                                \
    WEIGHT(key, llama_kv_size(c), c->size, c->layers)                         \
    WEIGHT(value, llama_kv_size(c), c->size, c->layers)                       \
    WEIGHT(out, c->size, c->size, c->layers)                                  \
    WEIGHT(hidden_norm, 1, c->size, c->layers)                                \
    WEIGHT(gate, c->hidden_size, c->size, c->layers)                          \
    WEIGHT(down, c->size, c->hidden_size, c->layers)                          \
    WEIGHT(up, c->hidden_size, c->size, c->layers)                            \
    WEIGHT(final_norm, 1, c->size, 1)                                         \
    WEIGHT(old_rope, c->length, llama_head_dim(c), 1) /* not used any more */ \
    WEIGHT(classifier, c->vocabulary_size, c->size, own_classifier ? 1 : 0)

enum {
#define LLAMA_WEIGHT_NUMBER(name, rows, cols, layers) LLAMA_##name,
    LLAMA_WEIGHTS(LLAMA_WEIGHT_NUMBER)
#undef LLAMA_WEIGHT_NUMBER
        LLAMA_WEIGHT_COUNT
};

/* One array of all layers; a layer's matrix has rows * cols elements. */
typedef struct llama_weight {
    const char *name;
    const float *values;
    size_t rows, cols, layers;
} llama_weight;

typedef struct llama_checkpoint {
    llama_config config;
    llama_weight weights[LLAMA_WEIGHT_COUNT];
    bool own_classifier; /* else it is the embedding */
    void *mapping;
    size_t mapping_size;
} llama_checkpoint;

/* Maps a file. Returns false with a reason that names the file and what is wrong with it. */
bool llama_checkpoint_open(const char *path, llama_checkpoint *out, char reason[LLAMA_REASON_SIZE]);

/* Unmaps the file; the weights are gone with it. A zeroed checkpoint is accepted. */
void llama_checkpoint_close(llama_checkpoint *checkpoint);

#endif
