#include "tests/sim/core/sim_kept.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { IDLE_MAX = 16, TARGET_SIZE = 32 };

typedef struct kept {
    struct kept *next;
    void *program;
    bool idle;
    char target[TARGET_SIZE];
    size_t size;
    unsigned char image[];
} kept;

static kept *all; /* those that were released last come first */

static bool is_of(const kept *k, const void *image, size_t size, const char *target) {
    return k->size == size && !strcmp(k->target, target) && !memcmp(k->image, image, size);
}

void *sim_kept_take(const void *image, size_t size, const char *target) {
    for (kept *k = all; k; k = k->next) {
        if (!k->idle || !is_of(k, image, size, target)) continue;
        k->idle = false;
        return k->program;
    }
    return NULL;
}

void sim_kept_add(const void *image, size_t size, const char *target, void *program) {
    kept *k = getenv("KILN_SIM_MUTANTS") || strlen(target) >= TARGET_SIZE ? NULL : malloc(sizeof *k + size);
    if (!k) return;
    *k = (kept){.next = all, .program = program, .size = size};
    memcpy(k->target, target, strlen(target));
    memcpy(k->image, image, size);
    all = k;
}

/* Takes it off the list. */
static kept *unlink_program(const void *program) {
    kept **link = &all;
    while (*link && (*link)->program != program)
        link = &(*link)->next;
    kept *found = *link;
    if (found) *link = found->next;
    return found;
}

void sim_kept_release(void *program, void (*discard)(void *program)) {
    kept *k = unlink_program(program);
    if (!k) {
        discard(program);
        return;
    }
    k->idle = true;
    k->next = all;
    all = k;
    kept *oldest = NULL;
    uint32_t idle = 0;
    for (kept *other = all; other; other = other->next) {
        if (!other->idle) continue;
        oldest = other;
        idle++;
    }
    if (idle <= IDLE_MAX) return;
    discard(oldest->program);
    free(unlink_program(oldest->program));
}
