/* A model's perplexity over a text: e to the mean surprise of its tokens. The surprise of a token is -ln of the
 * probability that the model gave it. */
#ifndef LLAMA_PERPLEXITY_H
#define LLAMA_PERPLEXITY_H

#include <stddef.h>
#include <stdint.h>

typedef struct llama_perplexity {
    double surprise; /* of all tokens */
    int64_t tokens;
} llama_perplexity;

/* Adds the token that came after these logits, [count]. */
void llama_perplexity_add(llama_perplexity *perplexity, const float *logits, size_t count, int32_t token);

/* 1: each token was certain. Of no tokens NaN. */
double llama_perplexity_value(const llama_perplexity *perplexity);

#endif
