#include "tests/sim/ptx/parse/ptx_lexer.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static bool is_word(int c) {
    return isalnum(c) || c == '_' || c == '$' || c == '%';
}

/* Skips white space and comments; says whether there was any. */
static bool skip_space(ptx_lexer *lexer) {
    const char *start = lexer->at;
    while (lexer->at < lexer->end) {
        char c = *lexer->at;
        bool two = lexer->end - lexer->at > 1;
        if (c == '\n') {
            lexer->line++;
            lexer->at++;
        } else if (c == ' ' || c == '\t' || c == '\r') {
            lexer->at++;
        } else if (c == '/' && two && lexer->at[1] == '/') {
            while (lexer->at < lexer->end && *lexer->at != '\n')
                lexer->at++;
        } else if (c == '/' && two && lexer->at[1] == '*') {
            for (lexer->at += 2; lexer->at < lexer->end; lexer->at++) {
                if (*lexer->at == '\n') lexer->line++;
                if (lexer->at[-1] == '*' && *lexer->at == '/') break;
            }
            if (lexer->at < lexer->end) lexer->at++;
        } else {
            break;
        }
    }
    return lexer->at != start;
}

static size_t word_length(const char *at, const char *end) {
    const char *start = at;
    while (at < end && is_word((unsigned char)*at))
        at++;
    return (size_t)(at - start);
}

/* 0f3F800000 and 0d3FF0000000000000: the bits, in hexadecimal. */
static bool lex_float_bits(ptx_token *token, size_t length) {
    bool single = token->bytes[1] == 'f' || token->bytes[1] == 'F';
    bool both = token->bytes[1] == 'd' || token->bytes[1] == 'D';
    if (token->bytes[0] != '0' || length != (single ? 10u : 18u) || (!single && !both)) return false;
    char digits[20] = "";
    memcpy(digits, token->bytes + 2, length - 2);
    if (strspn(digits, "0123456789abcdefABCDEF") != length - 2) return false;
    uint64_t bits = strtoull(digits, NULL, 16);
    token->kind = PTX_TOKEN_FLOAT;
    token->single = single;
    token->bits = (uint32_t)bits;
    if (single) {
        float narrow;
        memcpy(&narrow, &token->bits, sizeof narrow);
        double wide = (double)narrow;
        memcpy(&bits, &wide, sizeof bits);
    }
    token->value = bits;
    return true;
}

static void lex_number(ptx_lexer *lexer, ptx_token *token) {
    char digits[80] = "";
    size_t length = word_length(lexer->at, lexer->end);
    if (lex_float_bits(token, length)) {
        token->length = length;
        return;
    }
    bool decimal_float = lexer->at + length < lexer->end && lexer->at[length] == '.';
    if (decimal_float) length += 1 + word_length(lexer->at + length + 1, lexer->end);
    bool hex = length > 1 && token->bytes[0] == '0' && (token->bytes[1] == 'x' || token->bytes[1] == 'X');
    const char *exponent = hex ? NULL : memchr(lexer->at, 'e', length);
    if (exponent == lexer->at + length - 1 && lexer->at + length < lexer->end &&
        (lexer->at[length] == '-' || lexer->at[length] == '+'))
        length += 1 + word_length(lexer->at + length + 1, lexer->end);
    token->length = length;
    token->kind = PTX_TOKEN_BAD;
    if (length >= sizeof digits) return;
    memcpy(digits, token->bytes, length);
    char *rest;
    if (decimal_float || exponent) {
        double value = strtod(digits, &rest);
        memcpy(&token->value, &value, sizeof value);
        if (!*rest) token->kind = PTX_TOKEN_FLOAT;
        return;
    }
    if (digits[0] == '0' && (digits[1] == 'b' || digits[1] == 'B'))
        token->value = strtoull(digits + 2, &rest, 2);
    else
        token->value = strtoull(digits, &rest, 0);
    if (*rest == 'U' || *rest == 'u') rest++;
    if (!*rest) token->kind = PTX_TOKEN_INTEGER;
}

ptx_token ptx_lexer_next(ptx_lexer *lexer) {
    bool spaced = skip_space(lexer);
    ptx_token token = {.spaced = spaced, .line = lexer->line, .bytes = lexer->at};
    if (lexer->at >= lexer->end || !*lexer->at) return token;
    char c = *lexer->at;
    if (isdigit((unsigned char)c)) {
        lex_number(lexer, &token);
    } else if (is_word((unsigned char)c)) {
        token.kind = PTX_TOKEN_WORD;
        token.length = word_length(lexer->at, lexer->end);
    } else if (c == '.' && lexer->at + 1 < lexer->end && is_word((unsigned char)lexer->at[1])) {
        token.kind = PTX_TOKEN_DOT;
        token.bytes++;
        lexer->at++;
        token.length = word_length(lexer->at, lexer->end);
        while (lexer->end - lexer->at > (ptrdiff_t)token.length + 2 && memcmp(lexer->at + token.length, "::", 2) == 0)
            token.length += 2 + word_length(lexer->at + token.length + 2, lexer->end);
    } else if (c == '"') {
        const char *close = memchr(lexer->at + 1, '"', (size_t)(lexer->end - lexer->at - 1));
        token.kind = close ? PTX_TOKEN_STRING : PTX_TOKEN_BAD;
        token.length = close ? (size_t)(close - lexer->at + 1) : 1;
    } else {
        token.kind = PTX_TOKEN_PUNCTUATION;
        token.length = 1;
    }
    lexer->at += token.length;
    return token;
}
