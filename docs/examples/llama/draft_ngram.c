#include "draft.h"
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 3 }; /* tokens that are looked for */

typedef struct ngram_draft {
    llama_draft draft;
    int32_t *sequence; /* the tokens and, behind them, those of a path */
} ngram_draft;

static bool is_among(const int32_t *tokens, int32_t count, int32_t token) {
    for (int32_t i = 0; i < count; i++)
        if (tokens[i] == token) return true;
    return false;
}

/* Adds what followed on these tokens' last n, before them, to the candidates, until there are `most`; what followed
 * last first, and each token once. */
static int32_t find(const int32_t *tokens, int32_t count, int32_t n, int32_t *candidates, int32_t found, int32_t most) {
    const size_t size = (size_t)n * sizeof *tokens;
    for (int32_t begin = count - n - 1; begin >= 0 && found < most; begin--)
        if (!memcmp(tokens + begin, tokens + count - n, size) && !is_among(candidates, found, tokens[begin + n]))
            candidates[found++] = tokens[begin + n];
    return found;
}

static int32_t guess(const int32_t *tokens, int32_t count, int32_t rank) {
    int32_t candidates[LLAMA_RANKS], found = 0;
    for (int32_t n = LONGEST; n > 0; n--)
        found = find(tokens, count, n, candidates, found, rank + 1);
    return found > rank ? candidates[rank] : LLAMA_NO_DRAFT;
}

static kiln_status propose(llama_draft *draft, const kiln_tree *tree, const int32_t *tokens, int32_t count,
                           int32_t *nodes) {
    int32_t *sequence = ((ngram_draft *)draft)->sequence;
    memcpy(sequence, tokens, (size_t)count * sizeof *tokens);
    for (int32_t i = 1; i < tree->nodes; i++) {
        int32_t known = count + tree->positions[tree->parents[i]];
        for (int32_t node = tree->parents[i]; node > 0; node = tree->parents[node])
            sequence[count + tree->positions[node] - 1] = nodes[node];
        bool follows = nodes[tree->parents[i]] != LLAMA_NO_DRAFT;
        nodes[i] = follows ? guess(sequence, known, llama_node_rank(tree, i)) : LLAMA_NO_DRAFT;
    }
    return KILN_OK;
}

static kiln_status keep(llama_draft *draft, const kiln_tree *tree, const int32_t *path, int32_t accepted) {
    (void)draft, (void)tree, (void)path, (void)accepted;
    return KILN_OK;
}

static void destroy(llama_draft *draft) {
    free(((ngram_draft *)draft)->sequence);
    free(draft);
}

kiln_status llama_draft_ngram_create(int32_t length, llama_draft **out) {
    ngram_draft *made = calloc(1, sizeof *made);
    *out = NULL;
    if (!made) return KILN_ERROR_OUT_OF_MEMORY;
    made->draft = (llama_draft){propose, keep, destroy};
    made->sequence = malloc(((size_t)length + LLAMA_NODES_MOST) * sizeof *made->sequence);
    if (!made->sequence) {
        free(made);
        return KILN_ERROR_OUT_OF_MEMORY;
    }
    *out = &made->draft;
    return KILN_OK;
}
