#include "perplexity.h"
#include <math.h>

void llama_perplexity_add(llama_perplexity *p, const float *logits, size_t count, int32_t token) {
    double most = (double)logits[0], sum = 0;
    for (size_t i = 1; i < count; i++)
        most = fmax(most, (double)logits[i]);
    for (size_t i = 0; i < count; i++)
        sum += exp((double)logits[i] - most);
    p->surprise += log(sum) + most - (double)logits[token];
    p->tokens++;
}

double llama_perplexity_value(const llama_perplexity *p) {
    return exp(p->surprise / (double)p->tokens);
}
