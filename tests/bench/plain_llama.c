#include "tests/bench/plain_llama.h"
#include <math.h>
#include <string.h>

static const float *weight(const plain_llama *l, size_t number, int32_t layer) {
    const llama_weight *w = &l->checkpoint->weights[number];
    return w->values + (size_t)layer * w->rows * w->cols;
}

/* y = matrix x, for a matrix [out, in]. */
static void multiply(float *y, const float *x, const float *matrix, int32_t out, int32_t in) {
    for (int32_t row = 0; row < out; row++) {
        float sum = 0.0f;
        for (int32_t col = 0; col < in; col++)
            sum += matrix[row * in + col] * x[col];
        y[row] = sum;
    }
}

static void norm(float *y, const float *x, const float *weights, int32_t count) {
    float sum = 0.0f;
    for (int32_t i = 0; i < count; i++)
        sum += x[i] * x[i];
    float scale = 1.0f / sqrtf(sum / (float)count + 1e-5f);
    for (int32_t i = 0; i < count; i++)
        y[i] = weights[i] * (scale * x[i]);
}

static void rotate(float *x, int32_t count, int32_t head_dim, int32_t position) {
    for (int32_t i = 0; i < count; i += 2) {
        float angle = (float)position * powf(10000.0f, -(float)(i % head_dim) / (float)head_dim);
        float cosine = cosf(angle), sine = sinf(angle), first = x[i], second = x[i + 1];
        x[i] = first * cosine - second * sine;
        x[i + 1] = first * sine + second * cosine;
    }
}

static void softmax(float *x, int32_t count) {
    float max = x[0], sum = 0.0f;
    for (int32_t i = 1; i < count; i++)
        max = x[i] > max ? x[i] : max;
    for (int32_t i = 0; i < count; i++)
        sum += x[i] = expf(x[i] - max);
    for (int32_t i = 0; i < count; i++)
        x[i] /= sum;
}

static void attend(plain_llama *l, int32_t layer, int32_t position) {
    const llama_config *c = &l->checkpoint->config;
    int32_t head_dim = llama_head_dim(c), kv_size = llama_kv_size(c), group = c->heads / c->kv_heads;
    float *keys = l->keys + layer * c->length * kv_size, *values = l->values + layer * c->length * kv_size;
    float *key = keys + position * kv_size, *value = values + position * kv_size;
    multiply(l->query, l->normed, weight(l, LLAMA_query, layer), c->size, c->size);
    multiply(key, l->normed, weight(l, LLAMA_key, layer), kv_size, c->size);
    multiply(value, l->normed, weight(l, LLAMA_value, layer), kv_size, c->size);
    rotate(l->query, c->size, head_dim, position);
    rotate(key, kv_size, head_dim, position);
    for (int32_t head = 0; head < c->heads; head++) {
        const float *query = l->query + head * head_dim;
        float *out = l->attended + head * head_dim;
        int32_t place = head / group * head_dim;
        for (int32_t i = 0; i <= position; i++) {
            float sum = 0.0f;
            for (int32_t d = 0; d < head_dim; d++)
                sum += query[d] * keys[i * kv_size + place + d];
            l->scores[i] = sum / sqrtf((float)head_dim);
        }
        softmax(l->scores, position + 1);
        memset(out, 0, (size_t)head_dim * sizeof *out);
        for (int32_t i = 0; i <= position; i++)
            for (int32_t d = 0; d < head_dim; d++)
                out[d] += l->scores[i] * values[i * kv_size + place + d];
    }
    multiply(l->branch, l->attended, weight(l, LLAMA_out, layer), c->size, c->size);
}

static void feed_forward(plain_llama *l, int32_t layer) {
    const llama_config *c = &l->checkpoint->config;
    multiply(l->gate, l->normed, weight(l, LLAMA_gate, layer), c->hidden_size, c->size);
    multiply(l->up, l->normed, weight(l, LLAMA_up, layer), c->hidden_size, c->size);
    for (int32_t i = 0; i < c->hidden_size; i++)
        l->gate[i] = l->gate[i] / (1.0f + expf(-l->gate[i])) * l->up[i];
    multiply(l->branch, l->gate, weight(l, LLAMA_down, layer), c->size, c->hidden_size);
}

static void add_branch(plain_llama *l) {
    for (int32_t i = 0; i < l->checkpoint->config.size; i++)
        l->residual[i] += l->branch[i];
}

#define PASTE(name, level)     name##level
#define LEVEL_OF(name, level)  PASTE(name, level)
#define PLAIN_LLAMA_STEP_LEVEL LEVEL_OF(plain_llama_step_, KILN_CPU_LEVEL)

int32_t PLAIN_LLAMA_STEP_LEVEL(plain_llama *l, int32_t token, int32_t position) {
    const llama_config *c = &l->checkpoint->config;
    memcpy(l->residual, weight(l, LLAMA_embedding, 0) + token * c->size, (size_t)c->size * sizeof *l->residual);
    for (int32_t layer = 0; layer < c->layers; layer++) {
        norm(l->normed, l->residual, weight(l, LLAMA_attention_norm, layer), c->size);
        attend(l, layer, position);
        add_branch(l);
        norm(l->normed, l->residual, weight(l, LLAMA_hidden_norm, layer), c->size);
        feed_forward(l, layer);
        add_branch(l);
    }
    norm(l->normed, l->residual, weight(l, LLAMA_final_norm, 0), c->size);
    size_t classifier = l->checkpoint->own_classifier ? LLAMA_classifier : LLAMA_embedding;
    multiply(l->logits, l->normed, weight(l, classifier, 0), c->vocabulary_size, c->size);
    int32_t best = 0;
    for (int32_t i = 1; i < c->vocabulary_size; i++)
        best = l->logits[i] > l->logits[best] ? i : best;
    return best;
}
