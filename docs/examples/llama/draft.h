/* What guesses the tokens of a tree behind the newest token of a sequence, for the model to look at in one pass. */
#ifndef LLAMA_DRAFT_H
#define LLAMA_DRAFT_H

#include "tree_decoder.h"

enum { LLAMA_RANKS = 10 }; /* how many tokens behind a node a tree may choose between */

/* Which of the draft's candidates behind its parent a node of a tree of choices is, 0 being the likeliest. */
static inline int32_t llama_node_rank(const kiln_tree *tree, int32_t node) {
    return (tree->tokens[node] - 1) % LLAMA_RANKS;
}

typedef struct llama_draft llama_draft;

struct llama_draft {
    /* Gives each node of the tree but the root, which has the sequence's last token already, a token or LLAMA_NO_DRAFT.
     * tokens are those of the sequence, `count` of them. */
    kiln_status (*propose)(llama_draft *draft, const kiln_tree *tree, const int32_t *tokens, int32_t count,
                           int32_t *nodes);

    /* Is told what was accepted of the tree it gave last. */
    kiln_status (*keep)(llama_draft *draft, const kiln_tree *tree, const int32_t *path, int32_t accepted);

    void (*destroy)(llama_draft *draft);
};

/* Prompt lookup: tokens that followed before, in this very sequence, on the last tokens of it: the last three where
 * they stood before, then two, then one, and of these what followed last (Saxena, "Prompt Lookup Decoding", 2023). It
 * needs no device. `length` is the most tokens of a sequence. */
kiln_status llama_draft_ngram_create(int32_t length, llama_draft **out);

/* A small model with the vocabulary of the large one: what it would take itself (Leviathan et al., arXiv 2211.17192),
 * drawn with the random numbers that the large one draws with. The arguments are those of llama_tree_decoder_create,
 * which it is made with. */
kiln_status llama_draft_model_create(kiln_stream *stream, const llama_checkpoint *checkpoint,
                                     const llama_options *options, int32_t length, int32_t nodes, int32_t candidates,
                                     llama_draft **out);

#endif
