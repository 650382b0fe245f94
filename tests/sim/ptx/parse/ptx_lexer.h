/* PTX text as tokens. */
#ifndef KILN_TESTS_SIM_PTX_LEXER_H
#define KILN_TESTS_SIM_PTX_LEXER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum ptx_token_kind {
    PTX_TOKEN_END,
    PTX_TOKEN_WORD,    /* a name: letters, digits, _ $ %; "%tid" and "L__BB0_1" alike */
    PTX_TOKEN_DOT,     /* a dot and the word after it, "::" and a further word included: ".shared::cta" */
    PTX_TOKEN_INTEGER, /* value */
    PTX_TOKEN_FLOAT,   /* value: the bits of an f64; single and bits: written as 0f */
    PTX_TOKEN_STRING,
    PTX_TOKEN_PUNCTUATION, /* one character */
    PTX_TOKEN_BAD
} ptx_token_kind;

typedef struct ptx_token {
    ptx_token_kind kind;
    const char *bytes; /* without the dot */
    size_t length;
    uint64_t value;
    uint32_t bits;
    bool single;
    bool spaced; /* white space stands before it */
    uint32_t line;
} ptx_token;

typedef struct ptx_lexer {
    const char *at, *end;
    uint32_t line;
} ptx_lexer;

ptx_token ptx_lexer_next(ptx_lexer *lexer);

#endif
