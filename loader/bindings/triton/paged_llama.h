/* A Llama model over a paged cache of keys and values: a step takes tokens of many sequences and gives a next token for
 * those that want one. All memory is allocated and every kernel loaded at the start; a step allocates nothing and waits
 * once, for the tokens. Which block holds what is the caller's (kiln/blocks.h). One thread at a time. */
#ifndef KILN_TRITON_PAGED_LLAMA_H
#define KILN_TRITON_PAGED_LLAMA_H

#include "docs/examples/llama/weights.h"

typedef struct paged_llama_options {
    llama_precision precision; /* of weights, activations and cache */
    int32_t max_sequences;     /* of a step */
    int32_t max_rows;          /* tokens of a step; at least max_sequences */
    int32_t block_count;       /* of the cache */
    int32_t block_size;        /* tokens of a block, a power of two */
} paged_llama_options;

/* What a step is told: (name, type, elements). The host's copy is pinned, and goes to the device as one piece; of the
 * block table, which is the last, as many rows as there are sequences. */
#define PAGED_BATCH_ARRAYS(ARRAY)                                                                             \
    ARRAY(slots, int64_t, max_rows)            /* of each row: where its key and value go */                  \
    ARRAY(seeds, int64_t, max_sequences)       /* from here on of each row that is chosen from: */            \
    ARRAY(chosen_rows, int32_t, max_sequences) /* its number, ascending */                                    \
    ARRAY(draws, int32_t, max_sequences)       /* its row_position: the place of its token in its sequence */ \
    ARRAY(top_k, int32_t, max_sequences)       /* this and the next three as in kiln_sample_params */         \
    ARRAY(temperatures, float, max_sequences)                                                                 \
    ARRAY(top_p, float, max_sequences)                                                                        \
    ARRAY(min_p, float, max_sequences)                                                                        \
    ARRAY(tokens, int32_t, max_rows)              /* of each row */                                           \
    ARRAY(positions, int32_t, max_rows)           /* of each row */                                           \
    ARRAY(lengths, int32_t, max_sequences)        /* keys of each sequence, with those of this step */        \
    ARRAY(first_rows, int32_t, max_sequences + 1) /* of each sequence, from 0; then the number of rows */     \
    ARRAY(block_table, int32_t, max_sequences *max_blocks)

typedef struct paged_batch {
    int32_t sequences, rows, chosen; /* at least 1, and chosen at least 0 */
    int32_t max_rows_of_sequence;
    int32_t max_blocks; /* between rows of block_table; set by paged_llama_create */
#define PAGED_BATCH_ARRAY(name, type, count) type *name;
    PAGED_BATCH_ARRAYS(PAGED_BATCH_ARRAY)
#undef PAGED_BATCH_ARRAY
} paged_batch;

typedef struct paged_llama paged_llama;

/* Uploads a model, allocates its cache and takes a first step, which loads the kernels. On failure *out is NULL, and
 * kiln_last_error tells why. The stream must live as long; the checkpoint need not. */
kiln_status paged_llama_create(kiln_stream *stream, const llama_checkpoint *checkpoint,
                               const paged_llama_options *options, paged_llama **out);

/* Waits for the stream and frees everything. NULL is accepted. */
void paged_llama_destroy(paged_llama *model);

/* The batch of the next step, to be filled by the caller. */
paged_batch *paged_llama_batch(paged_llama *model);

/* Takes a step: out_tokens, [chosen], are the tokens chosen, -1 where every logit is NaN or -inf. */
kiln_status paged_llama_step(paged_llama *model, int32_t *out_tokens);

#endif
