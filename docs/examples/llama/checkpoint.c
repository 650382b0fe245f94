#include "checkpoint.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Sizes that a model may have; their products then fit in 64 bits. */
static const char *wrong_config(const llama_config *c) {
    const int32_t sizes[] = {c->size, c->hidden_size, c->layers, c->heads, c->kv_heads, c->vocabulary_size, c->length};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i] < 1 || sizes[i] > 1 << 20) return "its header has a size that is not from 1 to 2^20: no model";
    if (c->size % c->heads || llama_head_dim(c) % 2) return "its size is not an even multiple of its heads";
    if (llama_head_dim(c) > 256) return "its heads have more than 256 elements";
    if (c->heads % c->kv_heads) return "its heads are not a multiple of its key heads";
    return NULL;
}

/* Where each array lies. */
static bool place_weights(const char *path, llama_checkpoint *checkpoint, char *reason) {
    const llama_config *c = &checkpoint->config;
    bool own_classifier = checkpoint->own_classifier;
    const struct {
        const char *name;
        int32_t rows, cols, layers;
    } shapes[] = {
#define LLAMA_WEIGHT_SHAPE(name, rows, cols, layers) {#name, rows, cols, layers},
        LLAMA_WEIGHTS(LLAMA_WEIGHT_SHAPE)
#undef LLAMA_WEIGHT_SHAPE
    };
    const char *file = checkpoint->mapping;
    size_t offset = sizeof *c;
    for (size_t i = 0; i < LLAMA_WEIGHT_COUNT; i++) {
        llama_weight *weight = &checkpoint->weights[i];
        *weight = (llama_weight){.name = shapes[i].name,
                                 .rows = (size_t)shapes[i].rows,
                                 .cols = (size_t)shapes[i].cols,
                                 .layers = (size_t)shapes[i].layers};
        size_t size = weight->rows * weight->cols * weight->layers * sizeof(float);
        if (size > checkpoint->mapping_size - offset) {
            snprintf(reason, LLAMA_REASON_SIZE, "%s: ends within %s: truncated, or no model", path, weight->name);
            return false;
        }
        weight->values = (const float *)(const void *)(file + offset);
        offset += size;
    }
    if (offset == checkpoint->mapping_size) return true;
    snprintf(reason, LLAMA_REASON_SIZE, "%s: has %zu bytes behind its weights: no model of version 0", path,
             checkpoint->mapping_size - offset);
    return false;
}

static bool read_checkpoint(const char *path, llama_checkpoint *checkpoint, char *reason) {
    llama_config *config = &checkpoint->config;
    if (checkpoint->mapping_size < sizeof *config) return llama_refuse(reason, path, "is shorter than a header");
    memcpy(config, checkpoint->mapping, sizeof *config);
    checkpoint->own_classifier = config->vocabulary_size < 0;
    if (config->vocabulary_size < 0 && config->vocabulary_size > INT32_MIN)
        config->vocabulary_size = -config->vocabulary_size;
    const char *why = wrong_config(config);
    return why ? llama_refuse(reason, path, why) : place_weights(path, checkpoint, reason);
}

bool llama_checkpoint_open(const char *path, llama_checkpoint *out, char reason[LLAMA_REASON_SIZE]) {
    struct stat status;
    *out = (llama_checkpoint){0};
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* or a FIFO would wait for who writes it */
    if (file < 0) return llama_refuse(reason, path, strerror(errno));
    if (fstat(file, &status) || !S_ISREG(status.st_mode) || status.st_size < 1) {
        close(file);
        return llama_refuse(reason, path, "is empty, or no regular file");
    }
    out->mapping_size = (size_t)status.st_size;
    out->mapping = mmap(NULL, out->mapping_size, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (out->mapping == MAP_FAILED) {
        out->mapping = NULL;
        return llama_refuse(reason, path, strerror(errno));
    }
    if (read_checkpoint(path, out, reason)) return true;
    llama_checkpoint_close(out);
    return false;
}

void llama_checkpoint_close(llama_checkpoint *checkpoint) {
    if (checkpoint->mapping) munmap(checkpoint->mapping, checkpoint->mapping_size);
    *checkpoint = (llama_checkpoint){0};
}
