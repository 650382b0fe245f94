#include "tests/sim/ptx/memory/ptx_landing.h"
#include "tests/sim/ptx/memory/ptx_shared.h"
#include <stdlib.h>
#include <string.h>

typedef struct ptx_landing {
    uint64_t barrier, to;
    uint32_t size;
    bool ended; /* the phase in which it came */
    uint8_t *bytes;
} ptx_landing;

static ptx_landing *landing_new(ptx_block *block) {
    if (block->landing_count == block->landing_room) {
        block->landing_room = block->landing_room ? block->landing_room * 2 : 64;
        block->landings = realloc(block->landings, block->landing_room * sizeof *block->landings);
        if (!block->landings) abort();
    }
    return &block->landings[block->landing_count++];
}

bool ptx_landing_send(ptx_block *block, ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t barrier, uint64_t to,
                      const void *bytes, uint32_t size) {
    if (!size) return true;
    if (!ptx_shared_send_to(block, warp, op, lane, to, size)) return false;
    uint8_t *copy = malloc(size);
    if (!copy) abort();
    memcpy(copy, bytes, size);
    *landing_new(block) = (ptx_landing){.barrier = barrier, .to = to, .size = size, .bytes = copy};
    ptx_flag_complete(block, warp, lane, barrier);
    return true;
}

/* Where a barrier stands among those whose phase ended with something that has not landed, or their count. */
static uint32_t find_ended(const ptx_block *block, uint64_t barrier) {
    uint32_t i = 0;
    while (i < block->to_land_count && block->to_land[i] != barrier)
        i++;
    return i;
}

static void add_ended(ptx_block *block, uint64_t barrier) {
    if (find_ended(block, barrier) < block->to_land_count) return;
    if (block->to_land_count == block->to_land_room) {
        block->to_land_room = block->to_land_room ? block->to_land_room * 2 : 16;
        block->to_land = realloc(block->to_land, block->to_land_room * sizeof *block->to_land);
        if (!block->to_land) abort();
    }
    block->to_land[block->to_land_count++] = barrier;
}

void ptx_landing_end_phase(ptx_block *block, uint64_t barrier) {
    bool any = false;
    for (uint32_t i = 0; i < block->landing_count; i++)
        if (block->landings[i].barrier == barrier) any = block->landings[i].ended = true;
    if (any) add_ended(block, barrier);
}

void ptx_landing_land(ptx_block *block, uint64_t barrier) {
    const uint32_t at = find_ended(block, barrier);
    if (at == block->to_land_count) return;
    block->to_land[at] = block->to_land[--block->to_land_count];
    for (uint32_t i = 0; i < block->landing_count;) {
        ptx_landing *landing = &block->landings[i];
        if (landing->barrier != barrier || !landing->ended) {
            i++;
            continue;
        }
        memcpy(ptx_shared_arrive(block, landing->to, landing->size), landing->bytes, landing->size);
        free(landing->bytes);
        *landing = block->landings[--block->landing_count];
    }
}

void ptx_landing_clear(ptx_block *block) {
    while (block->landing_count)
        free(block->landings[--block->landing_count].bytes);
    block->to_land_count = 0;
}

void ptx_landing_free(ptx_block *block) {
    ptx_landing_clear(block);
    free(block->landings);
    free(block->to_land);
}
