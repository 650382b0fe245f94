/* A model that looks at several tokens of a sequence in one pass, for speculative decoding: the nodes of a tree of
 * draft tokens behind what its cache holds, or the next tokens of a prompt. All memory is allocated and every kernel
 * loaded at the start; a pass allocates nothing and waits once, for its candidates. One thread at a time. */
#ifndef LLAMA_TREE_DECODER_H
#define LLAMA_TREE_DECODER_H

#include "decoder.h"
#include <kiln/tree.h>

enum {
    LLAMA_NODES_MOST = 64, /* of a pass */
    LLAMA_NO_DRAFT = -2,   /* a node without a token: nothing follows it */
};

typedef struct llama_tree_decoder llama_tree_decoder;

/* Uploads a model for sequences of up to `length` tokens and passes of `nodes`, at most LLAMA_NODES_MOST, after each of
 * which it names so many `candidates`. The stream must live as long; the checkpoint need not. progress may be NULL. On
 * failure *out is NULL, and kiln_last_error tells why. */
kiln_status llama_tree_decoder_create(kiln_stream *stream, const llama_checkpoint *checkpoint,
                                      const llama_options *options, int32_t length, int32_t nodes, int32_t candidates,
                                      void (*progress)(size_t done, size_t all), llama_tree_decoder **out);

/* Waits for the stream and frees everything. NULL is accepted. */
void llama_tree_decoder_destroy(llama_tree_decoder *decoder);

/* Puts those of a sequence's first `count` tokens into the cache that are not in it yet. */
kiln_status llama_tree_decoder_fill(llama_tree_decoder *decoder, const int32_t *tokens, int32_t count);

/* Looks at a tree behind what is in the cache; nodes without a token do no harm. *out_next, [nodes, candidates],
 * are the likeliest tokens behind each node; a single candidate is what llama_decoder_step would give, with the same
 * random number. They last until the next pass. */
kiln_status llama_tree_decoder_pass(llama_tree_decoder *decoder, const kiln_tree *tree, const int32_t *tokens,
                                    const int32_t **out_next);

/* Keeps the first `accepted` nodes of a path of the last pass in the cache, ascending from the root, and forgets the
 * others. */
kiln_status llama_tree_decoder_keep(llama_tree_decoder *decoder, const int32_t *path, int32_t accepted);

/* Whether passes are replayed as a graph. */
bool llama_tree_decoder_has_graph(const llama_tree_decoder *decoder);

#endif
