#include "tokenizer.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare_bytes(const char *a, size_t a_size, const char *b, size_t b_size) {
    int order = memcmp(a, b, a_size < b_size ? a_size : b_size);
    return order ? order : (a_size > b_size) - (a_size < b_size);
}

/* Equal tokens stay in the order of their numbers. */
static int compare_tokens(const void *a, const void *b) {
    const llama_token *i = *(const llama_token *const *)a, *j = *(const llama_token *const *)b;
    int order = compare_bytes(i->bytes, i->size, j->bytes, j->size);
    return order ? order : (i > j) - (i < j);
}

/* Reads the rest of an open file into *out, which is the caller's; NULL with errno set. */
static char *read_all(FILE *file, size_t *out_size) {
    enum { MOST = 1 << 28 };
    char *bytes = NULL;
    size_t size = 0, room = 1 << 16;
    errno = 0;
    for (;;) {
        char *longer = room <= MOST ? realloc(bytes, room) : NULL;
        if (!longer) {
            free(bytes);
            errno = room <= MOST ? ENOMEM : EFBIG;
            return NULL;
        }
        bytes = longer;
        size += fread(bytes + size, 1, room - size, file);
        if (size < room) break;
        room *= 2;
    }
    *out_size = size;
    if (!ferror(file)) return bytes;
    free(bytes);
    return NULL;
}

/* Each token is a score, a length and as many bytes; they are copied, each with a NUL. */
static bool read_tokens(const char *path, const char *file, size_t size, llama_tokenizer *t, char *reason) {
    const size_t head = sizeof(float) + sizeof(int32_t);
    size_t offset = sizeof(int32_t), used = 0;
    for (int32_t i = 0; i < t->count; i++) {
        int32_t length;
        if (size - offset < head)
            return llama_refuse(reason, path, "has fewer tokens than the model: truncated, or another model's");
        memcpy(&t->tokens[i].score, file + offset, sizeof t->tokens[i].score);
        memcpy(&length, file + offset + sizeof(float), sizeof length);
        offset += head;
        if (length < 0 || (size_t)length > size - offset)
            return llama_refuse(reason, path, "ends within a token: truncated");
        t->tokens[i].bytes = t->storage + used;
        t->tokens[i].size = (uint32_t)length;
        if (t->longest < (uint32_t)length) t->longest = (uint32_t)length;
        memcpy(t->storage + used, file + offset, (size_t)length);
        t->storage[used + (size_t)length] = '\0';
        used += (size_t)length + 1;
        offset += (size_t)length;
        t->order[i] = &t->tokens[i];
    }
    if (offset != size) return llama_refuse(reason, path, "has more tokens than the model: another model's");
    qsort(t->order, (size_t)t->count, sizeof *t->order, compare_tokens);
    return true;
}

bool llama_tokenizer_open(const char *path, int32_t count, llama_tokenizer *out, char reason[LLAMA_REASON_SIZE]) {
    *out = (llama_tokenizer){.count = count};
    FILE *stream = fopen(path, "rb");
    if (!stream) return llama_refuse(reason, path, strerror(errno));
    size_t size;
    char *file = read_all(stream, &size);
    if (!file) llama_refuse(reason, path, strerror(errno));
    fclose(stream);
    if (!file) return false;
    out->tokens = calloc((size_t)count, sizeof *out->tokens);
    out->order = calloc((size_t)count, sizeof *out->order);
    out->storage = malloc(size + (size_t)count);
    bool good = size >= sizeof(int32_t) || llama_refuse(reason, path, "is no tokenizer");
    if (good && count <= LLAMA_END) good = llama_refuse(reason, path, "has no tokens to begin and end a text");
    if (good && !(out->tokens && out->order && out->storage))
        good = llama_refuse(reason, path, "there is no memory for it");
    good = good && read_tokens(path, file, size, out, reason);
    free(file);
    if (!good) llama_tokenizer_close(out);
    return good;
}

void llama_tokenizer_close(llama_tokenizer *tokenizer) {
    free(tokenizer->tokens);
    free(tokenizer->order);
    free(tokenizer->storage);
    *tokenizer = (llama_tokenizer){0};
}

/* The token with these bytes, or -1. */
static int32_t find(const llama_tokenizer *t, const char *bytes, size_t size) {
    int32_t low = 0, high = t->count;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        const llama_token *token = t->order[middle];
        if (compare_bytes(token->bytes, token->size, bytes, size) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == t->count) return -1;
    const llama_token *token = t->order[low];
    return compare_bytes(token->bytes, token->size, bytes, size) ? -1 : (int32_t)(token - t->tokens);
}

/* The bytes of a character of UTF-8 that begins here. */
static size_t character_size(const char *text) {
    size_t size = 1;
    while (size < 4 && ((unsigned char)text[size] & 0xc0) == 0x80)
        size++;
    return size;
}

/* Appends a character's token, or those of its bytes. Returns the new count, or LLAMA_NO_TOKEN. */
static int32_t append_character(const llama_tokenizer *t, const char *text, size_t size, int32_t *tokens,
                                int32_t count) {
    int32_t token = find(t, text, size);
    if (token >= 0) tokens[count++] = token;
    for (size_t i = 0; i < size && token < 0; i++) {
        char name[8];
        int length = snprintf(name, sizeof name, "<0x%02X>", (unsigned char)text[i]);
        tokens[count] = find(t, name, (size_t)length);
        if (tokens[count++] < 0) return LLAMA_NO_TOKEN;
    }
    return count;
}

/* Appends the tokens of a text's characters. Returns the new count, or LLAMA_NO_TOKEN. */
static int32_t append_characters(const llama_tokenizer *t, const char *text, int32_t *tokens, int32_t count) {
    for (size_t size; *text && count >= 0; text += size) {
        size = character_size(text);
        count = append_character(t, text, size, tokens, count);
    }
    return count;
}

/* The token that two neighbours merge to, or -1. */
static int32_t merge(const llama_tokenizer *t, int32_t first, int32_t second) {
    char bytes[512];
    size_t size = t->tokens[first].size, other = t->tokens[second].size;
    if (size + other > sizeof bytes) return -1;
    memcpy(bytes, t->tokens[first].bytes, size);
    memcpy(bytes + size, t->tokens[second].bytes, other);
    return find(t, bytes, size + other);
}

/* Merges the best pair that there is until there is none. pairs has room for what each token and the one behind it
 * merge to: a merge changes two of them. Returns the new count. */
static int32_t merge_all(const llama_tokenizer *t, int32_t *tokens, int32_t *pairs, int32_t count) {
    for (int32_t i = 0; i + 1 < count; i++)
        pairs[i] = merge(t, tokens[i], tokens[i + 1]);
    for (;;) {
        int32_t best = -1;
        for (int32_t i = 0; i + 1 < count; i++)
            if (pairs[i] >= 0 && (best < 0 || t->tokens[pairs[i]].score > t->tokens[pairs[best]].score)) best = i;
        if (best < 0) return count;
        const size_t behind = (size_t)(count - best - 2);
        tokens[best] = pairs[best];
        memmove(tokens + best + 1, tokens + best + 2, sizeof *tokens * behind);
        memmove(pairs + best, pairs + best + 1, sizeof *pairs * behind);
        count--;
        if (best > 0) pairs[best - 1] = merge(t, tokens[best - 1], tokens[best]);
        if (best + 1 < count) pairs[best] = merge(t, tokens[best], tokens[best + 1]);
    }
}

int32_t llama_encode(const llama_tokenizer *t, const char *text, int32_t *tokens, int32_t most) {
    const size_t size = strlen(text);
    tokens[0] = LLAMA_BEGIN;
    if (!size) return 1;
    if (size > (size_t)most * t->longest) return LLAMA_TOO_LONG; /* not worth the merging */
    int32_t *all = malloc(2 * (size + 1) * sizeof *all);
    if (!all) return LLAMA_NO_MEMORY;
    int32_t count = append_character(t, " ", 1, all, 0); /* as the model was trained */
    if (count >= 0) count = append_characters(t, text, all, count);
    if (count >= 0) count = merge_all(t, all, all + size + 1, count);
    if (count > most - 1) count = LLAMA_TOO_LONG;
    if (count >= 0) memcpy(tokens + 1, all, sizeof *all * (size_t)count);
    free(all);
    return count < 0 ? count : count + 1;
}

void llama_decode(const llama_tokenizer *t, int32_t before, int32_t token, llama_piece *out) {
    unsigned byte;
    char end;
    *out = (llama_piece){.bytes = t->tokens[token].bytes, .size = t->tokens[token].size};
    if (before == LLAMA_BEGIN && out->size && *out->bytes == ' ') {
        out->bytes++;
        out->size--;
    }
    if (out->size != 6 || sscanf(out->bytes, "<0x%02X%c", &byte, &end) != 2 || end != '>') return;
    out->byte = (char)byte;
    out->bytes = &out->byte;
    out->size = 1;
}
