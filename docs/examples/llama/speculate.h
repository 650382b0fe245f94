/* Speculative decoding (Leviathan et al., arXiv 2211.17192; Miao et al., arXiv 2305.09781): a draft guesses tokens, the
 * model looks at all of them in one pass, and those that it would have taken itself are accepted. The tokens are those
 * of decoding one by one, at any temperature: what the model takes behind a token depends on the tokens before and on
 * the random number of the position, and not on the draft, which decides only how many passes they take. */
#ifndef LLAMA_SPECULATE_H
#define LLAMA_SPECULATE_H

#include "draft.h"

typedef struct llama_speculation_options {
    const char *draft; /* "ngram", or the path of a small model; NULL: there is no draft */
    int32_t layers;    /* of the small model, its first; 0: all */
    int32_t tokens;    /* that are guessed for a pass, at most LLAMA_NODES_MOST - 1, one behind the other */
    const char *tree;  /* instead: "0,1,00,01,000", the paths of a tree; each digit says which of the draft's candidates
                        * comes next, 0 being the likeliest; NULL: none */
} llama_speculation_options;

/* All fields are to be read only. */
typedef struct llama_speculation {
    llama_speculation_options options;
    const kiln_tree *tree;
    llama_checkpoint checkpoint; /* of the small model */
    llama_draft *draft;
    llama_tree_decoder *decoder;
    int32_t *tokens; /* of the sequence, `count` of them */
    int32_t count;
    int64_t passes, drafted, accepted; /* so far: of the model behind the prompt; draft tokens that it looked at; those
                                        * that it took */
} llama_speculation;

/* Makes all that needs no device: opens the draft's model, which must have the vocabulary of the one it drafts for, and
 * begins a sequence of up to `length` tokens. Returns false with a reason that names the option. Release what it leaves
 * with llama_speculation_destroy in any case. */
bool llama_speculation_prepare(llama_speculation *speculation, const llama_speculation_options *options,
                               const llama_config *config, const int32_t *prompt, int32_t prompt_count, int32_t length,
                               char reason[LLAMA_REASON_SIZE]);

/* Uploads the models and loads all kernels. The stream must live as long; the checkpoint need not. progress may be
 * NULL. On failure kiln_last_error tells why. */
kiln_status llama_speculation_create(llama_speculation *speculation, kiln_stream *stream,
                                     const llama_checkpoint *checkpoint, const llama_options *options,
                                     void (*progress)(size_t done, size_t all));

/* Gives the token at a position of the sequence, at most one behind its end, where a pass makes sure of one token or
 * more: -1 where every logit is NaN or -inf. */
kiln_status llama_speculate(llama_speculation *speculation, int32_t position, int32_t *out_token);

/* Waits for the stream and releases everything. A zeroed speculation is accepted. */
void llama_speculation_destroy(llama_speculation *speculation);

#endif
