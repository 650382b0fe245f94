/* The tokenizer of a llama2.c model: byte pairs, merged by score. */
#ifndef LLAMA_TOKENIZER_H
#define LLAMA_TOKENIZER_H

#include "reason.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LLAMA_BEGIN = 1, LLAMA_END = 2 }; /* tokens before and behind a text */

typedef struct llama_token {
    char *bytes; /* with a NUL behind */
    uint32_t size;
    float score;
} llama_token;

typedef struct llama_tokenizer {
    llama_token *tokens;
    int32_t count;
    uint32_t longest;          /* bytes of a token */
    const llama_token **order; /* by their bytes, for finding */
    char *storage;
} llama_tokenizer;

/* Reads the tokens of a model with so many. Returns false with a reason that names the file. */
bool llama_tokenizer_open(const char *path, int32_t count, llama_tokenizer *out, char reason[LLAMA_REASON_SIZE]);

/* A zeroed tokenizer is accepted. */
void llama_tokenizer_close(llama_tokenizer *tokenizer);

/* Why a prompt has no tokens. */
enum {
    LLAMA_TOO_LONG = -1,  /* it has more */
    LLAMA_NO_TOKEN = -2,  /* it has a byte that no token has */
    LLAMA_NO_MEMORY = -3, /* there is none for its characters */
};

/* The tokens of a prompt, LLAMA_BEGIN first, at most `most` of them. Returns how many, or one of the above. */
int32_t llama_encode(const llama_tokenizer *tokenizer, const char *text, int32_t *tokens, int32_t most);

/* Some bytes of a text. */
typedef struct llama_piece {
    const char *bytes;
    size_t size;
    char byte; /* what bytes points to where the token is a raw byte */
} llama_piece;

/* The bytes that a token stands for behind another one: a space behind LLAMA_BEGIN is left out. out->bytes points into
 * the tokenizer or into *out. */
void llama_decode(const llama_tokenizer *tokenizer, int32_t before, int32_t token, llama_piece *out);

#endif
