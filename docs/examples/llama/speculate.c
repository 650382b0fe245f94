#include "speculate.h"
#include "try.h"
#include <stdlib.h>
#include <string.h>

/* ---- What needs no device ---- */

/* Leaves a model its first layers, then the final norm and the classifier. */
static void keep_layers(llama_checkpoint *checkpoint, int32_t layers) {
    checkpoint->config.layers = layers;
    for (size_t i = 0; i < LLAMA_WEIGHT_COUNT; i++)
        if (checkpoint->weights[i].layers > (size_t)layers) checkpoint->weights[i].layers = (size_t)layers;
}

static bool open_model(llama_speculation *s, const llama_config *config, char *reason) {
    const llama_config *draft = &s->checkpoint.config;
    if (!llama_checkpoint_open(s->options.draft, &s->checkpoint, reason)) return false;
    if (draft->vocabulary_size != config->vocabulary_size)
        return llama_refuse(reason, s->options.draft, "has another vocabulary than the model it drafts for");
    if (s->options.layers > draft->layers) {
        snprintf(reason, LLAMA_REASON_SIZE, "--draft-layers %d: must be at most those of --draft, which has %d",
                 s->options.layers, draft->layers);
        return false;
    }
    if (s->options.layers) keep_layers(&s->checkpoint, s->options.layers);
    return true;
}

static bool is_ngram(const llama_speculation *s) {
    return !strcmp(s->options.draft, "ngram");
}

/* The numbers of all paths, one behind the other, and how many each has. */
typedef struct choices {
    int32_t numbers[LLAMA_NODES_MOST * LLAMA_NODES_MOST], lengths[LLAMA_NODES_MOST];
    int32_t count;
} choices;

static bool read_choices(const char *text, choices *out, char *reason) {
    int32_t *number = out->numbers;
    const char *path = text;
    for (bool last = false; !last; path++) {
        size_t length = strspn(path, "0123456789");
        if (!length || length >= LLAMA_NODES_MOST || !strchr(",", path[length]))
            return llama_refuse(reason, "--tree", "must be paths of digits with commas between them, as 0,1,00,01");
        if (out->count == LLAMA_NODES_MOST - 1) return llama_refuse(reason, "--tree", "has more than 63 paths");
        out->lengths[out->count++] = (int32_t)length;
        for (size_t i = 0; i < length; i++)
            *number++ = path[i] - '0';
        path += length;
        last = !*path;
    }
    return true;
}

static void make_chain(int32_t tokens, choices *out) {
    for (out->count = 0; out->count < tokens; out->count++)
        out->lengths[out->count] = out->count + 1;
}

static bool make_tree(llama_speculation *s, char *reason) {
    choices *made = calloc(1, sizeof *made);
    if (!made) return llama_refuse(reason, "--draft", "there is no memory for it");
    bool good = !s->options.tree || read_choices(s->options.tree, made, reason);
    if (!s->options.tree) make_chain(s->options.tokens, made);
    if (good && kiln_tree_create_from_choices(made->numbers, made->lengths, made->count, LLAMA_RANKS, &s->tree))
        good = llama_refuse(reason, "--tree", kiln_last_error());
    free(made);
    return good;
}

/* How many candidates behind a node the tree chooses between. */
static int32_t candidates_of(const kiln_tree *tree) {
    int32_t most = 0;
    for (int32_t i = 1; i < tree->nodes; i++)
        if (llama_node_rank(tree, i) > most) most = llama_node_rank(tree, i);
    return most + 1;
}

bool llama_speculation_prepare(llama_speculation *s, const llama_speculation_options *options,
                               const llama_config *config, const int32_t *prompt, int32_t prompt_count, int32_t length,
                               char reason[LLAMA_REASON_SIZE]) {
    *s = (llama_speculation){.options = *options, .count = prompt_count};
    if (options->layers && is_ngram(s)) return llama_refuse(reason, "--draft-layers", "wants a model as --draft");
    if (!is_ngram(s) && !open_model(s, config, reason)) return false;
    s->tokens = malloc(((size_t)length + LLAMA_NODES_MOST) * sizeof *s->tokens);
    if (!s->tokens) return llama_refuse(reason, "--draft", "there is no memory for it");
    if (!make_tree(s, reason)) return false;
    memcpy(s->tokens, prompt, (size_t)prompt_count * sizeof *prompt);
    return true;
}

/* ---- Life ---- */

kiln_status llama_speculation_create(llama_speculation *s, kiln_stream *stream, const llama_checkpoint *checkpoint,
                                     const llama_options *options, void (*progress)(size_t done, size_t all)) {
    const int32_t length = checkpoint->config.length, nodes = s->tree->nodes;
    TRY(llama_tree_decoder_create(stream, checkpoint, options, length, nodes, 1, progress, &s->decoder));
    return is_ngram(s) ? llama_draft_ngram_create(length, &s->draft)
                       : llama_draft_model_create(stream, &s->checkpoint, options, length, nodes,
                                                  candidates_of(s->tree), &s->draft);
}

void llama_speculation_destroy(llama_speculation *s) {
    if (s->draft) s->draft->destroy(s->draft);
    llama_tree_decoder_destroy(s->decoder);
    llama_checkpoint_close(&s->checkpoint);
    kiln_tree_destroy(s->tree);
    free(s->tokens);
    *s = (llama_speculation){0};
}

/* ---- A pass ---- */

static kiln_status accept(llama_speculation *s, const int32_t *nodes, const int32_t *next) {
    int32_t path[LLAMA_NODES_MOST], accepted, last;
    TRY(kiln_tree_verify_greedy(s->tree, nodes, next, path, &accepted, &last));
    TRY(llama_tree_decoder_keep(s->decoder, path, accepted));
    TRY(s->draft->keep(s->draft, s->tree, path, accepted));
    for (int32_t i = 1; i < accepted; i++)
        s->tokens[s->count++] = nodes[path[i]];
    s->tokens[s->count++] = last;
    s->accepted += accepted - 1;
    return KILN_OK;
}

static kiln_status pass(llama_speculation *s) {
    int32_t nodes[LLAMA_NODES_MOST];
    const int32_t *next;
    TRY(llama_tree_decoder_fill(s->decoder, s->tokens, s->count - 1));
    nodes[0] = s->tokens[s->count - 1];
    TRY(s->draft->propose(s->draft, s->tree, s->tokens, s->count, nodes));
    TRY(llama_tree_decoder_pass(s->decoder, s->tree, nodes, &next));
    s->passes++;
    for (int32_t i = 1; i < s->tree->nodes; i++)
        s->drafted += nodes[i] != LLAMA_NO_DRAFT;
    return accept(s, nodes, next);
}

kiln_status llama_speculate(llama_speculation *s, int32_t position, int32_t *out_token) {
    if (position == s->count) TRY(pass(s));
    *out_token = s->tokens[position];
    return KILN_OK;
}
