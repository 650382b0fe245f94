#include "draft.h"
#include "try.h"
#include <stdlib.h>

typedef struct model_draft {
    llama_draft draft;
    llama_tree_decoder *decoder;
    int32_t candidates;
} model_draft;

/* Level by level: a pass over the nodes that are known gives the tokens of their children. */
static kiln_status propose(llama_draft *draft, const kiln_tree *tree, const int32_t *tokens, int32_t count,
                           int32_t *nodes) {
    llama_tree_decoder *decoder = ((model_draft *)draft)->decoder;
    const int32_t candidates = ((model_draft *)draft)->candidates;
    TRY(llama_tree_decoder_fill(decoder, tokens, count - 1));
    for (int32_t i = 1; i < tree->nodes; i++)
        nodes[i] = LLAMA_NO_DRAFT;
    for (int32_t level = 1; level < tree->depth; level++) {
        const int32_t *next;
        TRY(llama_tree_decoder_pass(decoder, tree, nodes, &next));
        for (int32_t i = 1; i < tree->nodes; i++)
            if (tree->positions[i] == level) nodes[i] = next[tree->parents[i] * candidates + llama_node_rank(tree, i)];
    }
    return KILN_OK;
}

/* The deepest nodes had no pass of their own: the next `fill` makes up for one that is accepted. */
static kiln_status keep(llama_draft *draft, const kiln_tree *tree, const int32_t *path, int32_t accepted) {
    int32_t seen = tree->depth > 1 ? tree->depth - 1 : 0;
    return llama_tree_decoder_keep(((model_draft *)draft)->decoder, path, accepted < seen ? accepted : seen);
}

static void destroy(llama_draft *draft) {
    llama_tree_decoder_destroy(((model_draft *)draft)->decoder);
    free(draft);
}

kiln_status llama_draft_model_create(kiln_stream *stream, const llama_checkpoint *checkpoint,
                                     const llama_options *options, int32_t length, int32_t nodes, int32_t candidates,
                                     llama_draft **out) {
    model_draft *made = calloc(1, sizeof *made);
    *out = NULL;
    if (!made) return KILN_ERROR_OUT_OF_MEMORY;
    made->draft = (llama_draft){propose, keep, destroy};
    made->candidates = candidates;
    kiln_status status =
        llama_tree_decoder_create(stream, checkpoint, options, length, nodes, candidates, NULL, &made->decoder);
    if (status == KILN_OK)
        *out = &made->draft;
    else
        free(made);
    return status;
}
