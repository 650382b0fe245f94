#include "tests/sim/ptx/memory/ptx_heap.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { GRANULE = 16 };

/* In use, by offset. */
typedef struct part {
    uint64_t offset, size;
} part;

struct ptx_heap {
    pthread_mutex_t lock;
    uint8_t *bytes, *written; /* a bit for each byte */
    uint64_t size;
    uint64_t next; /* where the last part that was taken ends: the next one is looked for from there */
    part *parts;
    size_t count, room;
};

ptx_heap *ptx_heap_new(uint64_t bytes) {
    ptx_heap *heap = calloc(1, sizeof *heap);
    if (!heap) return NULL;
    heap->size = bytes / GRANULE * GRANULE;
    heap->bytes = aligned_alloc(GRANULE, heap->size + GRANULE);
    heap->written = calloc(heap->size / 8 + 1, 1);
    pthread_mutex_init(&heap->lock, NULL);
    if (heap->bytes && heap->written) return heap;
    ptx_heap_free(heap);
    return NULL;
}

void ptx_heap_free(ptx_heap *heap) {
    if (!heap) return;
    pthread_mutex_destroy(&heap->lock);
    free(heap->bytes);
    free(heap->written);
    free(heap->parts);
    free(heap);
}

/* How many parts begin at or before an offset. */
static size_t parts_until(const ptx_heap *heap, uint64_t offset) {
    size_t low = 0, high = heap->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (heap->parts[middle].offset <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static uint64_t end_of(const part *p) {
    return p->offset + (p->size + GRANULE - 1) / GRANULE * GRANULE;
}

/* The first room for size bytes and a gap from an offset on; false if there is none up to the end. */
static bool find_room(const ptx_heap *heap, uint64_t from, uint64_t size, uint64_t *out_offset) {
    for (size_t i = parts_until(heap, from);; i++) {
        if (i && end_of(&heap->parts[i - 1]) + GRANULE > from) from = end_of(&heap->parts[i - 1]) + GRANULE;
        uint64_t to = i < heap->count ? heap->parts[i].offset : heap->size;
        *out_offset = from;
        if (from < to && size + GRANULE <= to - from) return true;
        if (i == heap->count) return false;
    }
}

static bool insert(ptx_heap *heap, uint64_t offset, uint64_t size) {
    if (heap->count == heap->room) {
        size_t room = heap->room ? heap->room * 2 : 64;
        part *grown = realloc(heap->parts, room * sizeof *grown);
        if (!grown) return false;
        heap->parts = grown;
        heap->room = room;
    }
    size_t at = parts_until(heap, offset);
    memmove(heap->parts + at + 1, heap->parts + at, (heap->count++ - at) * sizeof *heap->parts);
    heap->parts[at] = (part){offset, size};
    return true;
}

uint64_t ptx_heap_take(ptx_heap *heap, uint64_t size) {
    uint64_t offset, address = 0;
    if (!size || size > heap->size) return 0;
    pthread_mutex_lock(&heap->lock);
    if ((find_room(heap, heap->next, size, &offset) || find_room(heap, 0, size, &offset)) &&
        insert(heap, offset, size)) {
        part *taken = &heap->parts[parts_until(heap, offset) - 1];
        heap->next = end_of(taken) + GRANULE;
        memset(heap->written + offset / 8, 0, (end_of(taken) - offset) / 8);
        address = (uintptr_t)heap->bytes + offset;
    }
    pthread_mutex_unlock(&heap->lock);
    return address;
}

bool ptx_heap_give(ptx_heap *heap, uint64_t address) {
    uint64_t offset = address - (uintptr_t)heap->bytes;
    pthread_mutex_lock(&heap->lock);
    size_t at = offset < heap->size ? parts_until(heap, offset) : 0;
    bool is = at && heap->parts[at - 1].offset == offset;
    if (is) {
        memmove(heap->parts + at - 1, heap->parts + at, (heap->count - at) * sizeof *heap->parts);
        heap->count--;
    }
    pthread_mutex_unlock(&heap->lock);
    return is;
}

bool ptx_heap_find(ptx_heap *heap, uint64_t address, sim_region *out_region) {
    uint64_t offset = address - (uintptr_t)heap->bytes;
    if (offset >= heap->size) return false;
    pthread_mutex_lock(&heap->lock);
    size_t at = parts_until(heap, offset);
    const part *p = at ? &heap->parts[at - 1] : NULL;
    bool is = p && offset - p->offset < p->size;
    if (is)
        *out_region = (sim_region){(uintptr_t)heap->bytes + p->offset, p->size, heap->written + p->offset / 8, false};
    pthread_mutex_unlock(&heap->lock);
    return is;
}
