/* What the special registers hold (PTX ISA, "Special Registers"), but for the clocks, which mov reads anew each time.
 */
#include "tests/sim/ptx/decode/ptx_decode.h"
#include "tests/sim/ptx/warp/ptx_warp.h"
#include <stdio.h>
#include <string.h>

enum { ENVREGS = 32 };

uint32_t ptx_special_find(ptx_decoder *decoder, const char *name, uint32_t bits) {
    static const struct {
        const char *text;
        uint32_t bits, narrowest, target, version;
    } rows[] = {
#define PTX_SPECIAL(name, text, bits, narrowest, target, version) {text, bits, narrowest, target, version},
#include "tests/sim/ptx/warp/ptx_specials.def"
#undef PTX_SPECIAL
    };
    uint32_t row = 0, number = 0;
    int end = 0;
    while (row < PTX_SPECIAL_ENVREG && strcmp(rows[row].text, name) != 0)
        row++;
    if (row == PTX_SPECIAL_ENVREG &&
        (sscanf(name, "%%envreg%2u%n", &number, &end) != 1 || name[end] || number >= ENVREGS))
        ptx_refuse(decoder, "special register %s is not simulated", name);
    const char *opcode = decoder->statement->opcode;
    if (strcmp(opcode, "mov") != 0 && strcmp(opcode, "cvt") != 0) ptx_refuse(decoder, "it reads no special register");
    if (bits > rows[row].bits || bits < rows[row].narrowest)
        ptx_refuse(decoder, "%s has %u bits", name, rows[row].bits);
    ptx_need(decoder, rows[row].target, rows[row].version);
    decoder->program->uses_reserved |= row >= PTX_SPECIAL_RESERVED_BEGIN && row < PTX_SPECIAL_ENVREG;
    return row + number;
}

/* As it is allocated: in whole granules. */
uint32_t ptx_shared_total(const ptx_block *block) {
    uint32_t granule = block->launch->program->capability < 80 ? 256 : 128;
    return (block->shared_bytes + granule - 1) / granule * granule;
}

/* The multiprocessor that the seed gives a block. */
static uint32_t multiprocessor(const ptx_block *block) {
    const ptx_launch *launch = block->launch;
    uint64_t state = launch->seed ^ ((uint64_t)block->id[2] << 32 | block->id[1]) * launch->grid[0] ^ block->id[0];
    return launch->multiprocessors ? (uint32_t)(sim_random(&state) % launch->multiprocessors) : 0;
}

/* Of a vector's element, of which the fourth is 0. */
static uint32_t element(const uint32_t *vector, uint32_t index) {
    return index < 3 ? vector[index] : 0;
}

static uint32_t thread_id(const uint32_t *size, uint32_t thread, uint32_t index) {
    const uint32_t id[3] = {thread % size[0], thread / size[0] % size[1], thread / size[0] / size[1]};
    return element(id, index);
}

/* A block's place in its cluster, of clusters in the grid, ... */
static uint32_t cluster_value(const ptx_block *block, uint32_t special) {
    const ptx_launch *launch = block->launch;
    uint32_t size[3], inside[3], number[3], count[3];
    for (int i = 0; i < 3; i++) {
        size[i] = launch->cluster[i] ? launch->cluster[i] : 1;
        inside[i] = block->id[i] % size[i];
        number[i] = block->id[i] / size[i];
        count[i] = launch->grid[i] / size[i];
    }
    if (special < PTX_SPECIAL_NCLUSTERID_X) return element(number, special - PTX_SPECIAL_CLUSTERID_X);
    if (special < PTX_SPECIAL_CLUSTER_CTAID_X) return element(count, special - PTX_SPECIAL_NCLUSTERID_X);
    if (special < PTX_SPECIAL_CLUSTER_NCTAID_X) return element(inside, special - PTX_SPECIAL_CLUSTER_CTAID_X);
    if (special < PTX_SPECIAL_CLUSTER_CTARANK) return element(size, special - PTX_SPECIAL_CLUSTER_NCTAID_X);
    if (special == PTX_SPECIAL_CLUSTER_CTARANK) return (inside[2] * size[1] + inside[1]) * size[0] + inside[0];
    if (special == PTX_SPECIAL_CLUSTER_NCTARANK) return size[0] * size[1] * size[2];
    return launch->cluster[0] != 0;
}

static uint64_t value_of(const ptx_warp *warp, uint32_t special, uint32_t lane) {
    const ptx_block *block = warp->block;
    const ptx_launch *launch = block->launch;
    if (special <= PTX_SPECIAL_TID_W)
        return thread_id(launch->block, warp->number * PTX_WARP + lane, special - PTX_SPECIAL_TID_X);
    if (special <= PTX_SPECIAL_NTID_W) return element(launch->block, special - PTX_SPECIAL_NTID_X);
    if (special <= PTX_SPECIAL_CTAID_W) return element(block->id, special - PTX_SPECIAL_CTAID_X);
    if (special <= PTX_SPECIAL_NCTAID_W) return element(launch->grid, special - PTX_SPECIAL_NCTAID_X);
    if (special <= PTX_SPECIAL_IS_EXPLICIT_CLUSTER) return cluster_value(block, special);
    switch (special) {
    case PTX_SPECIAL_LANEID:
        return lane;
    case PTX_SPECIAL_WARPID:
        return warp->number;
    case PTX_SPECIAL_NWARPID:
        return block->warp_count;
    case PTX_SPECIAL_SMID:
        return multiprocessor(block);
    case PTX_SPECIAL_NSMID:
        return launch->multiprocessors ? launch->multiprocessors : 1;
    case PTX_SPECIAL_GRIDID:
        return launch->number;
    case PTX_SPECIAL_LANEMASK_EQ:
        return 1u << lane;
    case PTX_SPECIAL_LANEMASK_LT:
        return (1u << lane) - 1;
    case PTX_SPECIAL_LANEMASK_LE:
        return (2u << lane) - 1;
    case PTX_SPECIAL_LANEMASK_GT:
        return ~((2u << lane) - 1);
    case PTX_SPECIAL_LANEMASK_GE:
        return ~((1u << lane) - 1);
    case PTX_SPECIAL_DYNAMIC_SMEM:
        return launch->dynamic_shared_bytes;
    case PTX_SPECIAL_TOTAL_SMEM:
    case PTX_SPECIAL_RESERVED_BEGIN:
    case PTX_SPECIAL_RESERVED_0:
        return ptx_shared_total(block);
    case PTX_SPECIAL_AGGR_SMEM:
    case PTX_SPECIAL_RESERVED_END:
        return ptx_shared_total(block) + launch->reserved_shared_bytes;
    case PTX_SPECIAL_RESERVED_CAP:
        return launch->reserved_shared_bytes;
    case PTX_SPECIAL_RESERVED_1: /* of cooperative groups */
        return ptx_shared_total(block) + launch->reserved_shared_bytes / 2;
    case PTX_SPECIAL_ENVREG + 1: /* where the blocks of a cooperative launch meet, its upper half first */
        return (uint64_t)(uintptr_t)launch->workspace >> 32;
    case PTX_SPECIAL_ENVREG + 2:
        return (uint32_t)(uintptr_t)launch->workspace;
    default: /* of no graph that was launched by a kernel; driver's registers without a use */
        return 0;
    }
}

void ptx_special_fill(const ptx_warp *warp, const ptx_special_use *use, uint8_t *place) {
    uint32_t predicate = 0;
    for (uint32_t l = 0; l < PTX_WARP; l++) {
        uint64_t value = value_of(warp, use->special, l);
        if (use->bits == 1)
            predicate |= (uint32_t)value << l;
        else
            memcpy(place + l * (use->bits / 8), &value, use->bits / 8);
    }
    if (use->bits == 1) memcpy(place, &predicate, sizeof predicate);
}
