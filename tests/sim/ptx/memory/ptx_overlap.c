/* Written bytes, a bit for each, in pages. (PTX ISA, "griddepcontrol"; CUDA Programming Guide, "Programmatic Dependent
 * Launch and Synchronization".) */
#include "tests/sim/ptx/memory/ptx_overlap.h"
#include <pthread.h>
#include <stdlib.h>

enum { PAGE_BYTES = 4096, BUCKETS = 1024 };

typedef struct page {
    struct page *next;
    uint64_t number;
    uint8_t written[PAGE_BYTES / 8];
} page;

struct ptx_writes {
    pthread_mutex_t lock;
    bool waited;
    page *pages[BUCKETS];
};

ptx_writes *ptx_writes_new(void) {
    ptx_writes *writes = calloc(1, sizeof *writes);
    if (writes) pthread_mutex_init(&writes->lock, NULL);
    return writes;
}

void ptx_writes_free(ptx_writes *writes) {
    for (int i = 0; writes && i < BUCKETS; i++) {
        for (page *p = writes->pages[i], *next; p; p = next) {
            next = p->next;
            free(p);
        }
    }
    if (writes) pthread_mutex_destroy(&writes->lock);
    free(writes);
}

static page *page_at(const ptx_writes *writes, uint64_t number) {
    page *found = writes->pages[number % BUCKETS];
    while (found && found->number != number)
        found = found->next;
    return found;
}

static page *page_take(ptx_writes *writes, uint64_t number) {
    page *taken = page_at(writes, number);
    if (taken) return taken;
    taken = calloc(1, sizeof *taken);
    if (!taken) abort();
    page **bucket = &writes->pages[number % BUCKETS];
    taken->number = number;
    taken->next = *bucket;
    *bucket = taken;
    return taken;
}

void ptx_writes_add(ptx_writes *writes, uint64_t address, uint64_t size) {
    pthread_mutex_lock(&writes->lock);
    for (uint64_t at = address; at < address + size; at++)
        page_take(writes, at / PAGE_BYTES)->written[at % PAGE_BYTES / 8] |= (uint8_t)(1u << at % 8);
    pthread_mutex_unlock(&writes->lock);
}

bool ptx_writes_meet(const ptx_writes *writes, uint64_t address, uint64_t size) {
    for (uint64_t at = address; at < address + size; at++) {
        const page *found = page_at(writes, at / PAGE_BYTES);
        if (found && found->written[at % PAGE_BYTES / 8] >> at % 8 & 1) return true;
    }
    return false;
}

void ptx_writes_waited(ptx_writes *writes) {
    __atomic_store_n(&writes->waited, true, __ATOMIC_RELAXED);
}

void ptx_writes_follow(ptx_writes *writes, const ptx_writes *front) {
    for (int i = 0; i < BUCKETS && !writes->waited; i++) {
        for (const page *from = front->pages[i]; from; from = from->next) {
            page *to = page_take(writes, from->number);
            for (int b = 0; b < PAGE_BYTES / 8; b++)
                to->written[b] |= from->written[b];
        }
    }
}
