/* Live objects and memory, and the report of what leaked. */
#include "tests/sim/core/sim.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GUARD_SIZE = 64, GUARD_BYTE = 0xa5, POISON_BYTE = 0xcd, BUCKETS = 4096, KINDS = 64 };

/* In front of each object. */
typedef struct object {
    struct object *next;   /* of its kind's list */
    struct object *beside; /* of its bucket */
    const char *kind;
    max_align_t payload[];
} object;

typedef struct allocation {
    struct allocation *next;
    sim_memory memory;
    void *block;       /* what free takes: guard, bytes, guard */
    sim_region *parts; /* what kernels may access; NULL: all of it */
    size_t part_count;
} allocation;

static object *objects[KINDS];   /* those of a kind stand in one list, the last made first */
static object *buckets[BUCKETS]; /* the same, by address */
static object *deleted;          /* kept, so that no new object has the address of one of them */
static allocation *allocations;
static pid_t owner_process;

/* ---- Objects ---- */

static object **bucket_of(const void *address) {
    return &buckets[(uintptr_t)address / sizeof(object) % BUCKETS];
}

/* The list of a kind; a few kinds may share it. */
static object **list_of(const char *kind) {
    uint32_t hash = 0;
    for (const char *c = kind; *c; c++)
        hash = hash * 31 + (uint8_t)*c;
    return &objects[hash % KINDS];
}

void *sim_object_new(const char *kind, size_t size) {
    object *created = calloc(1, sizeof *created + size);
    if (!created) return NULL;
    sim_lock();
    created->kind = kind;
    object **list = list_of(kind);
    created->next = *list;
    *list = created;
    object **bucket = bucket_of(created->payload);
    created->beside = *bucket;
    *bucket = created;
    sim_unlock();
    return created->payload;
}

/* The link in its bucket to the live object at an address, which is compared and not read; NULL if there is none. */
static object **live_object(const char *kind, const void *address) {
    object **link = bucket_of(address);
    while (*link && (*link)->payload != address)
        link = &(*link)->beside;
    return *link && !strcmp((*link)->kind, kind) ? link : NULL;
}

bool sim_object_live(const char *kind, const void *address) {
    sim_lock();
    bool live = live_object(kind, address) != NULL;
    sim_unlock();
    return live;
}

void sim_object_delete(const char *kind, void *address) {
    sim_lock();
    object **link = live_object(kind, address);
    if (link) {
        object *gone = *link, **place = list_of(kind);
        *link = gone->beside;
        while (*place != gone)
            place = &(*place)->next;
        *place = gone->next;
        gone->next = deleted;
        deleted = gone;
    } else {
        sim_violation("delete of %p, which is no live %s", address, kind);
    }
    sim_unlock();
}

void *sim_object_find(const char *kind, bool (*match)(const void *object, const void *context), const void *context) {
    void *found = NULL;
    sim_lock();
    for (object *at = *list_of(kind); at && !found; at = at->next) {
        if (!strcmp(at->kind, kind) && match(at->payload, context)) found = at->payload;
    }
    sim_unlock();
    return found;
}

/* ---- Memory ---- */

static void allocation_free(allocation *freed) {
    free(freed->parts);
    free(freed->memory.written);
    free(freed->block);
    free(freed);
}

uint64_t sim_memory_used(const char *kind, int32_t device) {
    uint64_t bytes = 0;
    sim_lock();
    for (const allocation *at = allocations; at; at = at->next) {
        if (at->memory.device == device && !strcmp(at->memory.kind, kind)) bytes += at->memory.size;
    }
    sim_unlock();
    return bytes;
}

void *sim_memory_new(const char *kind, int32_t device, size_t size, size_t alignment, uint64_t owner) {
    uint8_t *bytes = NULL;
    sim_lock();
    uint64_t used = sim_memory_used(kind, device), room = sim_memory_bytes();
    if (used <= room && size <= room - used) {
        allocation *created = calloc(1, sizeof *created);
        size_t front = alignment > GUARD_SIZE ? alignment : GUARD_SIZE;
        size_t total = (front + size + GUARD_SIZE + alignment - 1) / alignment * alignment;
        uint8_t *block = created ? aligned_alloc(alignment, total) : NULL;
        if (block) {
            bytes = block + front;
            memset(block, GUARD_BYTE, front);
            memset(bytes, POISON_BYTE, size);
            memset(bytes + size, GUARD_BYTE, GUARD_SIZE);
            *created =
                (allocation){allocations, {kind, device, size, bytes, owner, NULL, false, false}, block, NULL, 0};
            allocations = created;
        } else {
            free(created);
        }
    }
    sim_unlock();
    return bytes;
}

bool sim_memory_adopt(const char *kind, int32_t device, void *bytes, size_t size, uint64_t owner) {
    allocation *created = calloc(1, sizeof *created);
    if (!created) return false;
    sim_lock();
    *created = (allocation){allocations, {kind, device, size, bytes, owner, NULL, false, false}, NULL, NULL, 0};
    allocations = created;
    sim_unlock();
    return true;
}

const sim_memory *sim_memory_find(const void *address, size_t size) {
    const sim_memory *found = NULL;
    uintptr_t wanted = (uintptr_t)address;
    sim_lock();
    for (const allocation *at = allocations; at && !found; at = at->next) {
        uintptr_t begin = (uintptr_t)at->memory.bytes;
        if (wanted >= begin && wanted - begin <= at->memory.size && size <= at->memory.size - (wanted - begin))
            found = &at->memory;
    }
    sim_unlock();
    return found;
}

static allocation *allocation_of(const void *address) {
    for (allocation *at = allocations; at; at = at->next) {
        uintptr_t offset = (uintptr_t)address - (uintptr_t)at->memory.bytes;
        if ((uintptr_t)address >= (uintptr_t)at->memory.bytes && offset < at->memory.size) return at;
    }
    return NULL;
}

void sim_memory_track(void *bytes) {
    sim_lock();
    allocation *found = allocation_of(bytes);
    if (found && !found->memory.written) found->memory.written = calloc(1, found->memory.size / 8 + 1);
    sim_unlock();
}

void sim_memory_set_absent(void *bytes, bool absent) {
    sim_lock();
    allocation *found = allocation_of(bytes);
    if (found) found->memory.absent = absent;
    sim_unlock();
}

void sim_memory_set_leaving(void *bytes) {
    sim_lock();
    allocation *found = allocation_of(bytes);
    if (found) found->memory.leaving = true;
    sim_unlock();
}

bool sim_memory_add_part(void *bytes, size_t offset, size_t size, bool constant) {
    sim_lock();
    allocation *found = allocation_of(bytes);
    sim_region *grown = found ? realloc(found->parts, (found->part_count + 1) * sizeof *grown) : NULL;
    if (grown) {
        found->parts = grown;
        grown[found->part_count++] = (sim_region){(uintptr_t)found->memory.bytes + offset, size, NULL, constant};
    }
    sim_unlock();
    return grown;
}

/* A byte whose bit shares a byte with those of others, which a kernel may write at the same time. */
static void mark_written(const sim_memory *memory, size_t at) {
    __atomic_fetch_or(&memory->written[at / 8], (uint8_t)(1u << at % 8), __ATOMIC_RELAXED);
}

void sim_memory_wrote(const void *address, size_t size) {
    sim_lock();
    allocation *found = allocation_of(address);
    if (found && found->memory.written) {
        const size_t begin = (size_t)((const uint8_t *)address - found->memory.bytes);
        const size_t end = size < found->memory.size - begin ? begin + size : found->memory.size;
        size_t at = begin;
        for (; at < end && at % 8; at++)
            mark_written(&found->memory, at);
        if (end - at >= 8) memset(&found->memory.written[at / 8], 0xff, (end - at) / 8);
        for (at += (end - at) / 8 * 8; at < end; at++)
            mark_written(&found->memory, at);
    }
    sim_unlock();
}

static int by_address(const void *a, const void *b) {
    const sim_region *x = a, *y = b;
    return x->base < y->base ? -1 : x->base > y->base;
}

static bool is_one_of(const uint64_t *owners, size_t count, uint64_t owner) {
    for (size_t i = 0; i < count; i++)
        if (owners[i] == owner) return true;
    return false;
}

bool sim_regions_take(const uint64_t *owners, size_t owner_count, sim_regions *out_regions) {
    *out_regions = (sim_regions){0};
    sim_lock();
    size_t count = 0;
    for (const allocation *at = allocations; at; at = at->next)
        count += at->part_count ? at->part_count : 1;
    sim_region *regions = calloc(count + 1, sizeof *regions);
    for (const allocation *at = allocations; regions && at; at = at->next) {
        bool host = strstr(at->memory.kind, "host") != NULL;
        if (at->memory.absent || (!host && !is_one_of(owners, owner_count, at->memory.owner))) continue;
        sim_region whole = {(uintptr_t)at->memory.bytes, at->memory.size, at->memory.written, false};
        size_t parts = at->part_count ? at->part_count : 1;
        out_regions->host |= host;
        memcpy(regions + out_regions->count, at->part_count ? at->parts : &whole, parts * sizeof whole);
        out_regions->count += parts;
    }
    sim_unlock();
    if (!regions) return false;
    qsort(regions, out_regions->count, sizeof *regions, by_address);
    out_regions->regions = regions;
    return true;
}

bool sim_regions_find(void *context, uint64_t address, sim_region *out_region) {
    const sim_regions *all = context;
    size_t low = 0, high = all->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const sim_region *region = &all->regions[middle];
        if (address < region->base) {
            high = middle;
        } else if (address - region->base >= region->size) {
            low = middle + 1;
        } else {
            *out_region = *region;
            return true;
        }
    }
    return false;
}

static bool guards_whole(const allocation *checked) {
    const uint8_t *bytes = checked->memory.bytes;
    if (!checked->block) return true; /* the application's */
    for (size_t i = 0; i < GUARD_SIZE; i++) {
        if (bytes[checked->memory.size + i] != GUARD_BYTE || bytes[-(ptrdiff_t)i - 1] != GUARD_BYTE) return false;
    }
    return true;
}

bool sim_memory_delete(const char *kind, void *bytes) {
    sim_lock();
    allocation **link = &allocations;
    while (*link && ((*link)->memory.bytes != bytes || strcmp((*link)->memory.kind, kind)))
        link = &(*link)->next;
    allocation *found = *link;
    if (found) {
        if (!guards_whole(found)) sim_violation("%s at %p: bytes beside it were written", kind, (void *)bytes);
        *link = found->next;
        allocation_free(found);
    } else {
        sim_violation("free of %p, which is no live %s", bytes, kind);
    }
    sim_unlock();
    return found != NULL;
}

void sim_memory_sweep(const char *kind, uint64_t owner) {
    sim_lock();
    for (allocation **link = &allocations; *link;) {
        allocation *found = *link;
        if (found->memory.owner == owner && !strcmp(found->memory.kind, kind)) {
            *link = found->next;
            allocation_free(found);
        } else {
            link = &found->next;
        }
    }
    sim_unlock();
}

/* ---- Leaks ---- */

static bool counts(const char *pattern, const char *kind) {
    return kind[0] != '.' && (!strcmp(pattern, "*") || !strcmp(pattern, kind));
}

SIM_EXPORT uint64_t kiln_sim_live(const char *kind) {
    uint64_t count = 0;
    sim_lock();
    for (int i = 0; i < KINDS; i++)
        for (const object *at = objects[i]; at; at = at->next)
            count += counts(kind, at->kind);
    for (const allocation *at = allocations; at; at = at->next)
        count += counts(kind, at->memory.kind);
    sim_unlock();
    return count;
}

__attribute__((constructor)) static void remember_process(void) {
    owner_process = getpid();
}

/* A forked child inherits its parent's objects; only the parent answers for them. */
__attribute__((destructor)) static void report_leaks(void) {
    if (getpid() != owner_process || sim_setting_number("KILN_SIM_STANDARD", 0)) return;
    for (int i = 0; i < KINDS; i++)
        for (const object *at = objects[i]; at; at = at->next)
            if (counts("*", at->kind)) fprintf(stderr, "sim: leak: %s %p\n", at->kind, (const void *)at->payload);
    for (const allocation *at = allocations; at; at = at->next) {
        if (counts("*", at->memory.kind))
            fprintf(stderr, "sim: leak: %s %p of %zu bytes\n", at->memory.kind, (void *)at->memory.bytes,
                    at->memory.size);
    }
}
