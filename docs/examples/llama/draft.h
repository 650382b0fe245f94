/* What guesses the tokens of a tree behind the newest token of a sequence, for the model to look at in one pass. */
#ifndef LLAMA_DRAFT_H
#define LLAMA_DRAFT_H

#include "tree_decoder.h"

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

/* Prompt lookup: a token that followed before, in this very sequence, on the last tokens of it: the last three where
 * they stood before, else two, else one (Saxena, "Prompt Lookup Decoding", 2023). It needs no device. `length` is the
 * most tokens of a sequence. */
kiln_status llama_draft_ngram_create(int32_t length, llama_draft **out);

/* A small model with the vocabulary of the large one: what it would take itself (Leviathan et al., arXiv 2211.17192),
 * drawn with the random numbers that the large one draws with. The arguments are those of llama_tree_decoder_create,
 * which it is made with. */
kiln_status llama_draft_model_create(kiln_stream *stream, const llama_checkpoint *checkpoint,
                                     const llama_options *options, int32_t length, int32_t nodes, llama_draft **out);

#endif
