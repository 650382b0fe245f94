#include "tests/sim/ptx/parse/ptx_arena.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct block {
    struct block *next;
    size_t used, size;
    _Alignas(16) char bytes[];
} block;

struct ptx_arena {
    block *blocks;
};

enum { BLOCK_SIZE = 1 << 16 };

static void *must(void *memory) {
    if (memory) return memory;
    fputs("kiln simulator: no memory\n", stderr);
    abort();
}

ptx_arena *ptx_arena_new(void) {
    return must(calloc(1, sizeof(ptx_arena)));
}

void ptx_arena_free(ptx_arena *arena) {
    if (!arena) return;
    while (arena->blocks) {
        block *next = arena->blocks->next;
        free(arena->blocks);
        arena->blocks = next;
    }
    free(arena);
}

void *ptx_arena_take(ptx_arena *arena, size_t size) {
    size = (size + 15) / 16 * 16;
    block *first = arena->blocks;
    if (!first || first->size - first->used < size) {
        size_t bytes = size > BLOCK_SIZE ? size : BLOCK_SIZE;
        first = must(calloc(1, sizeof *first + bytes));
        first->size = bytes;
        first->next = arena->blocks;
        arena->blocks = first;
    }
    void *taken = first->bytes + first->used;
    first->used += size;
    return taken;
}

char *ptx_arena_text(ptx_arena *arena, const char *bytes, size_t length) {
    char *text = ptx_arena_take(arena, length + 1);
    memcpy(text, bytes, length);
    return text;
}
