/* A batch of sequences of the same length at work on the bench's model. Everything that a pass needs is allocated
 * before it, so that it can be captured as a graph. */
#ifndef LLAMA_BENCH_BATCH_H
#define LLAMA_BENCH_BATCH_H

#include "bench_model.h"
#include "graph.h"

typedef struct bench_batch {
    const bench_model *model;
    bench_memory memory;
    int64_t batch, prompt, steps;
    int64_t room;       /* slots of a sequence in the cache, prompt + steps or more */
    int32_t cache_type; /* kiln_cache_type */

    void *residual, *normed, *heads, *attended, *branch, *gates, *hidden, *logits;
    llama_codes codes;             /* of the activations that the next products read */
    void *key_cache, *value_cache; /* [layers, batch, room, kv_heads * head_dim] */
    int32_t *block_table;          /* [batch, 1]: a block of the cache is a sequence's room. NULL: not paged */
    void *workspace;
    size_t workspace_size;

    int32_t *prompt_tokens, *prompt_positions;
    int64_t *prompt_slots;
    int32_t *tokens, *first; /* [batch]: the last ones, and those behind the prompt */
    void *now;               /* of a step: slots, positions and lengths, [batch] each */
    void *schedule;          /* of all steps */
    llama_graph *prefill, *decode;
} bench_batch;

/* Allocates a batch and captures its passes; with fp8_cache keys and values are kept as E4M3. After a failure the batch
 * is to be closed as ever. */
kiln_status bench_batch_open(const bench_model *model, bool fp8_cache, int64_t batch, int64_t prompt, int64_t steps,
                             bench_batch *out);
void bench_batch_close(bench_batch *batch);

/* Puts the pass over the prompt of the first sequence on the stream; `first` is then what follows it. */
kiln_status bench_prefill(bench_batch *batch);

/* Gives all sequences the first one's cache, and its next token. */
kiln_status bench_spread(bench_batch *batch);

/* Puts so many steps on the stream, from the end of the prompt on, each of one token of every sequence. */
kiln_status bench_decode(bench_batch *batch, int64_t steps);

#endif
