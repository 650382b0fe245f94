/* Bulk copies and reductions: cp.async.bulk, cp.reduce.async.bulk, those of tensors, their groups, and prefetches. (PTX
 * ISA, "Data Movement and Conversion Instructions: Bulk copy", "Tensor copy".)
 *
 * What goes into shared memory lands when a thread sees the end of the barrier's phase. What comes out of it is read,
 * and written to global memory, at once; its source must stay as it is until the thread has waited for the group. */
#include "tests/sim/ptx/memory/ptx_bulk.h"
#include "tests/sim/ptx/decode/ptx_decode.h"
#include "tests/sim/ptx/memory/ptx_atomic.h"
#include "tests/sim/ptx/memory/ptx_landing.h"
#include "tests/sim/ptx/memory/ptx_shared.h"
#include "tests/sim/ptx/memory/ptx_tensor.h"
#include "tests/sim/ptx/warp/ptx_cluster.h"
#include "tests/sim/ptx/warp/ptx_lanes.h"
#include <stdlib.h>
#include <string.h>

enum { GRANULE = 16, TENSOR_ALIGN = 128 };

typedef enum direction { LOAD, STORE, SEND, PREFETCH } direction;

/* An address operand. */
typedef struct pointer {
    uint32_t place;
    uint8_t bits;
    int64_t offset;
} pointer;

struct ptx_bulk {
    direction direction;
    bool tensor, by_pixels, reduces;
    pointer to, from, barrier; /* a tensor's map stands for its memory */
    uint32_t size, mask;       /* places, or PTX_NOWHERE */
    uint32_t rank, offset_count;
    uint32_t at[PTX_TENSOR_RANK], offsets[3];
};

struct ptx_bulk_source {
    const ptx_op *op;
    ptx_warp *warp;
    uint32_t lane, group;
    uint64_t from;
    uint32_t size;
};

/* ---- Sources that are being read ---- */

bool ptx_bulk_reads(const ptx_block *block, uint64_t address) {
    for (uint32_t i = 0; i < block->source_count; i++)
        if (address - block->sources[i].from < block->sources[i].size) return true;
    return false;
}

void ptx_bulk_check(ptx_block *block) {
    if (!block->source_count) return;
    const struct ptx_bulk_source *source = &block->sources[0];
    ptx_fault(source->warp, source->op, SIM_FAULT_IN_FLIGHT, source->lane, source->from,
              "the block ends before its bulk copy was waited for");
}

void ptx_bulk_clear(ptx_block *block) {
    block->source_count = 0;
}

void ptx_bulk_free(ptx_block *block) {
    free(block->sources);
}

static void source_add(ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t from, uint32_t size) {
    ptx_block *block = warp->block;
    if (block->source_count == block->source_room) {
        block->source_room = block->source_room ? block->source_room * 2 : 16;
        block->sources = realloc(block->sources, block->source_room * sizeof *block->sources);
        if (!block->sources) abort();
    }
    block->sources[block->source_count++] =
        (struct ptx_bulk_source){op, warp, lane, warp->bulk_committed[lane], from, size};
}

static void run_commit(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    (void)op;
    PTX_LANES(warp->bulk_committed[l]++);
}

/* All committed groups but the last op->count. */
static void run_wait(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    ptx_block *block = warp->block;
    for (uint32_t i = 0; i < block->source_count;) {
        const struct ptx_bulk_source *source = &block->sources[i];
        if (source->warp == warp && mask >> source->lane & 1 &&
            (uint64_t)source->group + op->count < warp->bulk_committed[source->lane])
            block->sources[i] = block->sources[--block->source_count];
        else
            i++;
    }
}

/* ---- One lane's copy ---- */

typedef struct copy {
    ptx_warp *warp;
    const ptx_op *op;
    uint32_t lane;
    const struct ptx_bulk *bulk;
    ptx_tensor_box box;
    uint32_t size;
    uint8_t *bytes;
} copy;

static uint64_t address_of(const copy *c, const pointer *p) {
    const ptx_warp *warp = c->warp;
    return p->bits == 64 ? PTX_ARRAY(const uint64_t, p->place)[c->lane] + (uint64_t)p->offset
                         : PTX_ARRAY(const uint32_t, p->place)[c->lane] + (uint32_t)p->offset;
}

static uint32_t word_of(const copy *c, uint32_t place) {
    const ptx_warp *warp = c->warp;
    return PTX_ARRAY(const uint32_t, place)[c->lane];
}

static bool fault(const copy *c, sim_fault_kind kind, uint64_t address, const char *what) {
    ptx_fault(c->warp, c->op, kind, c->lane, address, "%s", what);
    return false;
}

static bool aligned(const copy *c, uint64_t address, uint32_t align) {
    return address % align == 0 || fault(c, SIM_FAULT_MISALIGNED, address, "a bulk copy");
}

static bool read_map(const copy *c, uint64_t address, ptx_tensor_map *map) {
    uint8_t bytes[PTX_TENSOR_MAP_BYTES];
    const bool parameter = (address & PTX_WINDOW_MASK) == PTX_WINDOW_PARAM;
    const uint64_t bank = ptx_parameters_address(c->warp->block->launch->program->capability);
    const uint64_t place = parameter ? (address & ~PTX_WINDOW_MASK) + bank : address;
    if (place % PTX_TENSOR_MAP_ALIGN) return fault(c, SIM_FAULT_MISALIGNED, address, "a tensor map");
    for (uint32_t i = 0; i < sizeof bytes; i += 8) {
        const uint8_t *from = ptx_memory_bytes(c->warp, c->op, c->lane, PTX_SPACE_GENERIC, address + i, 8, true, false);
        if (!from) return false;
        memcpy(bytes + i, from, 8);
    }
    memcpy(map, bytes, sizeof *map);
    return map->magic == PTX_TENSOR_MAGIC || fault(c, SIM_FAULT_ILLEGAL, address, "no tensor map is there");
}

/* The box, and how many bytes it has. */
static bool find_box(copy *c) {
    const struct ptx_bulk *bulk = c->bulk;
    const uint64_t at = address_of(c, bulk->direction == STORE ? &bulk->to : &bulk->from);
    ptx_tensor_map *map = &c->box.map;
    if (!read_map(c, at, map)) return false;
    if (map->rank != bulk->rank) return fault(c, SIM_FAULT_ILLEGAL, at, "a tensor map of another rank");
    if (map->by_pixels != bulk->by_pixels) return fault(c, SIM_FAULT_ILLEGAL, at, "a tensor map of another mode");
    for (uint32_t i = 0; i < bulk->rank; i++)
        c->box.at[i] = (int32_t)word_of(c, bulk->at[i]);
    for (uint32_t i = 0; i < bulk->offset_count; i++) {
        const ptx_warp *warp = c->warp;
        c->box.offsets[i] = PTX_ARRAY(const uint16_t, bulk->offsets[i])[c->lane];
    }
    c->size = ptx_tensor_bytes(map);
    if ((int64_t)c->box.at[0] * ptx_tensor_element(map) % GRANULE == 0) return true;
    return fault(c, SIM_FAULT_ILLEGAL, at, "the first coordinate is not at a multiple of 16 bytes");
}

/* ---- Into shared memory ---- */

/* To an offset of a block, whose barrier is told. */
static bool deliver(const copy *c, ptx_block *block, uint64_t to, uint64_t barrier) {
    const uint32_t row = c->bulk->tensor ? ptx_tensor_row(&c->box.map) : c->size;
    const uint32_t pitch = c->bulk->tensor ? ptx_tensor_pitch(&c->box.map) : c->size;
    const uint32_t piece = c->bulk->tensor && c->box.map.swizzle ? GRANULE : row;
    for (uint32_t at = 0; at < c->size; at += piece) {
        uint64_t place = to + at / row * pitch + at % row;
        if (c->bulk->tensor) place = ptx_tensor_swizzle(&c->box.map, place);
        if (!ptx_landing_send(block, c->warp, c->op, c->lane, barrier, place, c->bytes + at, piece)) return false;
    }
    return ptx_mbarrier_complete(block, c->warp, c->op, c->lane, barrier, c->size);
}

/* Elements of shared memory are changed at once. */
static bool reduce_in(const copy *c, ptx_block *block, uint64_t to, uint64_t barrier) {
    for (uint32_t at = 0; at < c->size; at += GRANULE) {
        uint8_t *memory = ptx_shared_bytes_of(block, c->warp, c->op, c->lane, to + at, GRANULE, true, true);
        if (!memory) return false;
        ptx_atomic_reduce(c->op, c->op->type, false, memory, c->bytes + at, GRANULE);
    }
    ptx_shared_detach(block, to, c->size);
    ptx_flag_complete(block, c->warp, c->lane, barrier);
    return ptx_mbarrier_complete(block, c->warp, c->op, c->lane, barrier, c->size);
}

static bool to_shared(const copy *c) {
    const uint64_t target = address_of(c, &c->bulk->to) & ~PTX_WINDOW_MASK;
    const uint64_t bar = address_of(c, &c->bulk->barrier) & ~PTX_WINDOW_MASK;
    uint64_t to, barrier;
    ptx_block *block = ptx_cluster_block(c->warp, c->op, c->lane, target, &to);
    const ptx_block *other = block ? ptx_cluster_block(c->warp, c->op, c->lane, bar, &barrier) : NULL;
    if (!other || !aligned(c, to, c->bulk->tensor ? TENSOR_ALIGN : GRANULE)) return false;
    if (c->bulk->mask == PTX_NOWHERE) {
        if (other != block)
            return fault(c, SIM_FAULT_ILLEGAL, target, "its barrier is of another block of the cluster");
        return c->bulk->reduces ? reduce_in(c, block, to, barrier) : deliver(c, block, to, barrier);
    }
    const ptx_warp *warp = c->warp;
    const uint32_t ranks = PTX_ARRAY(const uint16_t, c->bulk->mask)[c->lane];
    for (uint32_t rest = ranks; rest; rest &= rest - 1) {
        uint64_t same;
        const uint64_t rank = (uint64_t)__builtin_ctz(rest) + 1;
        block = ptx_cluster_block(c->warp, c->op, c->lane, rank << PTX_RANK_SHIFT | to, &same);
        if (!block || !deliver(c, block, to, barrier)) return false;
    }
    return true;
}

/* ---- Out of it ---- */

/* Reads the block's own shared memory, which generic stores must not have written without a proxy fence since. */
static bool gather(const copy *c, uint64_t from) {
    const uint32_t row = c->bulk->tensor ? ptx_tensor_row(&c->box.map) : c->size;
    const uint32_t pitch = c->bulk->tensor ? ptx_tensor_pitch(&c->box.map) : c->size;
    for (uint32_t at = 0; at < c->size; at += GRANULE) {
        uint64_t place = from + at / row * pitch + at % row;
        if (c->bulk->tensor) place = ptx_tensor_swizzle(&c->box.map, place);
        const uint8_t *bytes = ptx_shared_bytes(c->warp, c->op, c->lane, place, GRANULE, true, false);
        if (!bytes || !ptx_shared_fenced(c->warp, c->op, c->lane, place, GRANULE)) return false;
        memcpy(c->bytes + at, bytes, GRANULE);
    }
    if (c->bulk->direction == STORE) source_add(c->warp, c->op, c->lane, from, c->size / row * pitch);
    return true;
}

static bool to_global(const copy *c) {
    if (c->bulk->tensor) return ptx_tensor_store(c->warp, c->op, c->lane, &c->box, c->bytes, c->bulk->reduces);
    const uint64_t to = address_of(c, &c->bulk->to);
    uint8_t *memory = ptx_global_bytes(c->warp, c->op, c->lane, to, c->size, c->bulk->reduces, true);
    if (!memory) return false;
    ptx_memory_count_span(c->warp, to, c->size, true);
    if (c->bulk->reduces)
        ptx_atomic_reduce(c->op, c->op->type, false, memory, c->bytes, c->size);
    else
        memcpy(memory, c->bytes, c->size);
    return true;
}

/* ---- All of it ---- */

static bool from_shared(const copy *c) {
    uint64_t offset;
    const uint64_t from = address_of(c, &c->bulk->from) & ~PTX_WINDOW_MASK;
    const ptx_block *block = ptx_cluster_block(c->warp, c->op, c->lane, from, &offset);
    if (!block) return false;
    if (block != c->warp->block)
        return fault(c, SIM_FAULT_OUT_OF_BOUNDS, from, "a source in another block of the cluster");
    return aligned(c, offset, c->bulk->tensor ? TENSOR_ALIGN : GRANULE) && gather(c, offset);
}

static bool from_global(const copy *c) {
    if (c->bulk->tensor) return ptx_tensor_load(c->warp, c->op, c->lane, &c->box, c->bytes);
    const uint64_t from = address_of(c, &c->bulk->from);
    const uint8_t *memory = ptx_global_bytes(c->warp, c->op, c->lane, from, c->size, true, false);
    if (!memory) return false;
    ptx_memory_count_span(c->warp, from, c->size, false);
    memcpy(c->bytes, memory, c->size);
    return true;
}

static bool run_lane(copy *c) {
    const struct ptx_bulk *bulk = c->bulk;
    if (bulk->tensor && !find_box(c)) return false;
    if (!bulk->tensor) c->size = word_of(c, bulk->size);
    if (c->size % GRANULE) return fault(c, SIM_FAULT_ILLEGAL, c->size, "a size that is no multiple of 16 bytes");
    if (!bulk->tensor && bulk->direction != SEND && bulk->direction != STORE &&
        !aligned(c, address_of(c, &bulk->from), GRANULE))
        return false;
    if (!bulk->tensor && bulk->direction == STORE && !aligned(c, address_of(c, &bulk->to), GRANULE)) return false;
    if (bulk->direction == PREFETCH) return true;
    c->warp->block->counters.global_requests += bulk->direction == LOAD || bulk->direction == STORE;
    c->bytes = malloc(c->size + 1);
    if (!c->bytes) abort();
    bool ok = true;
    if (bulk->tensor || c->size) ok = bulk->direction == LOAD ? from_global(c) : from_shared(c);
    ok = ok && (bulk->direction == STORE ? !c->size || to_global(c) : to_shared(c));
    free(c->bytes);
    return ok;
}

static void run_bulk(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        copy c = {.warp = warp, .op = op, .lane = (uint32_t)__builtin_ctz(rest), .bulk = op->bulk};
        if (!run_lane(&c)) return;
    }
}

/* ---- Decoding ---- */

static pointer pointer_of(ptx_decoder *decoder, const ptx_operand *operand) {
    ptx_op *op = decoder->op;
    ptx_operand plain = *operand;
    if (plain.kind == PTX_OPERAND_TUPLE) plain.kind = PTX_OPERAND_ADDRESS;
    op->offset = 0;
    ptx_decode_pointer(decoder, &plain);
    return (pointer){op->s[0], op->bits[0], op->offset};
}

/* [map, {c0, c1, ...}] */
static pointer tensor_of(ptx_decoder *decoder, const ptx_operand *operand, struct ptx_bulk *bulk) {
    const ptx_operand *at = operand->kind == PTX_OPERAND_TUPLE ? operand->elements : NULL;
    if (!at || at->kind != PTX_OPERAND_VECTOR || at->element_count != bulk->rank)
        ptx_refuse(decoder, "it needs %u coordinates", bulk->rank);
    for (uint32_t i = 0; i < bulk->rank; i++)
        bulk->at[i] = ptx_source(decoder, &at->elements[i], PTX_s32);
    return pointer_of(decoder, operand);
}

static void take_offsets(ptx_decoder *decoder, const ptx_operand *operand, struct ptx_bulk *bulk) {
    bulk->offset_count = bulk->rank - 2;
    if (operand->kind != PTX_OPERAND_VECTOR || operand->element_count != bulk->offset_count)
        ptx_refuse(decoder, "it needs %u offsets", bulk->offset_count);
    for (uint32_t i = 0; i < bulk->offset_count; i++)
        bulk->offsets[i] = ptx_source(decoder, &operand->elements[i], PTX_u16);
}

static void take_tensor(ptx_decoder *decoder, struct ptx_bulk *bulk) {
    static const int ranks[] = {PTX_M_1D, PTX_M_2D, PTX_M_3D, PTX_M_4D, PTX_M_5D};
    bulk->tensor = ptx_take(decoder, PTX_M_TENSOR);
    if (!bulk->tensor) return;
    const int rank = ptx_take_one(decoder, ranks, 5);
    if (rank < 0) ptx_refuse(decoder, "it has no rank");
    bulk->rank = (uint32_t)rank + 1;
    const bool tile = ptx_take(decoder, PTX_M_TILE);
    bulk->by_pixels = ptx_take(decoder, PTX_M_IM2COL);
    if (tile && bulk->by_pixels) ptx_refuse(decoder, ".tile and .im2col exclude each other");
    if (bulk->by_pixels && bulk->rank < 3) ptx_refuse(decoder, ".im2col has 3 dimensions or more");
}

static bool is_global_first(const ptx_statement *statement) {
    uint32_t i = 0;
    while (i < statement->suffix_count && strcmp(statement->suffixes[i], "global") != 0 &&
           strncmp(statement->suffixes[i], "shared", 6) != 0)
        i++;
    return i < statement->suffix_count && *statement->suffixes[i] == 'g';
}

/* Which way it goes, by the spaces and the completion that are written. */
static void take_direction(ptx_decoder *decoder, struct ptx_bulk *bulk) {
    const bool cluster = ptx_take(decoder, PTX_M_SHARED_CLUSTER), own = ptx_take(decoder, PTX_M_SHARED_CTA);
    const bool global = ptx_take(decoder, PTX_M_GLOBAL), counted = ptx_take(decoder, PTX_M_COMPLETE_TX_BYTES);
    const bool grouped = ptx_take(decoder, PTX_M_BULK_GROUP);
    bulk->direction = !global ? SEND : grouped ? STORE : LOAD;
    const bool spaces = bulk->direction == SEND    ? cluster && own
                        : bulk->direction == STORE ? own && !cluster
                                                   : cluster != own;
    if (!spaces || counted == grouped || (bulk->tensor && !global) || (bulk->reduces && bulk->direction == LOAD))
        ptx_refuse(decoder, "it has no such spaces and completion");
    if (bulk->direction == LOAD && own) ptx_need(decoder, 90, 86);
    if (bulk->direction == LOAD && is_global_first(decoder->statement))
        ptx_refuse(decoder, "a store has a .bulk_group");
}

static void take_reduction(ptx_decoder *decoder, const struct ptx_bulk *bulk) {
    ptx_op *op = decoder->op;
    ptx_take_atomic(decoder);
    op->flags |= PTX_F_STRONG;
    ptx_expect_types(decoder, bulk->tensor ? 0 : 1);
    if (bulk->tensor) {
        if (!ptx_atomic_tensor_fits(op)) ptx_refuse(decoder, "it has no such operation");
        return;
    }
    op->type = ptx_type_at(decoder, 0);
    const bool fits = bulk->direction == SEND ? ptx_atomic_async_fits(op) : ptx_atomic_bulk_fits(op);
    if (!fits) ptx_refuse(decoder, "it has no such type");
    const bool narrow = op->mode == 0 && (op->type == PTX_f16 || op->type == PTX_bf16);
    if (narrow != ptx_take(decoder, PTX_M_NOFTZ)) ptx_refuse(decoder, ".noftz goes with .add of f16 and bf16");
}

static void decode_groups(ptx_decoder *decoder) {
    ptx_op *op = decoder->op;
    const ptx_operand *operand = &decoder->statement->operands[0];
    ptx_expect_types(decoder, 0);
    if (ptx_take(decoder, PTX_M_COMMIT_GROUP)) {
        ptx_expect_operands(decoder, 0, 0);
        op->run = run_commit;
        return;
    }
    ptx_take(decoder, PTX_M_WAIT_GROUP);
    ptx_take(decoder, PTX_M_READ);
    ptx_expect_operands(decoder, 1, 1);
    if (operand->kind != PTX_OPERAND_INTEGER) ptx_refuse(decoder, "a size or count must be a constant");
    op->count = (uint32_t)operand->value;
    op->run = run_wait;
}

static bool is_group(const ptx_statement *statement) {
    const char *last = statement->suffix_count > 2 ? statement->suffixes[2] : "";
    return strcmp(last, "commit_group") == 0 || strcmp(last, "wait_group") == 0;
}

/* The operands in the order of the text. */
static void decode_operands(ptx_decoder *decoder, struct ptx_bulk *bulk, bool multicast) {
    const ptx_operand *operands = decoder->statement->operands;
    const bool prefetch = bulk->direction == PREFETCH, counted = bulk->direction == LOAD || bulk->direction == SEND;
    const uint32_t policies = bulk->direction == SEND ? 0 : ptx_take_policy(decoder);
    const uint32_t count = (prefetch ? 1u : 2u) + !bulk->tensor + counted + bulk->by_pixels + multicast + policies;
    ptx_expect_operands(decoder, count, count);
    uint32_t next = 0;
    if (!prefetch) {
        bulk->to = bulk->tensor && bulk->direction == STORE ? tensor_of(decoder, &operands[next], bulk)
                                                            : pointer_of(decoder, &operands[next]);
        next++;
    }
    bulk->from = bulk->tensor && bulk->direction != STORE ? tensor_of(decoder, &operands[next], bulk)
                                                          : pointer_of(decoder, &operands[next]);
    next++;
    if (!bulk->tensor) bulk->size = ptx_source(decoder, &operands[next++], PTX_u32);
    if (counted) bulk->barrier = pointer_of(decoder, &operands[next++]);
    if (bulk->by_pixels && bulk->direction != STORE) take_offsets(decoder, &operands[next++], bulk);
    if (multicast) bulk->mask = ptx_source(decoder, &operands[next++], PTX_u16);
}

void ptx_decode_bulk(ptx_decoder *decoder, bool reduces) {
    ptx_op *op = decoder->op;
    ptx_need(decoder, 90, 80);
    if (is_group(decoder->statement)) {
        decode_groups(decoder);
        return;
    }
    struct ptx_bulk *bulk = ptx_arena_take(decoder->program->module->arena, sizeof *bulk);
    *bulk = (struct ptx_bulk){.reduces = reduces, .size = PTX_NOWHERE, .mask = PTX_NOWHERE};
    take_tensor(decoder, bulk);
    bool multicast = false;
    if (ptx_take(decoder, PTX_M_PREFETCH)) {
        if (!ptx_take(decoder, PTX_M_L2) || !ptx_take(decoder, PTX_M_GLOBAL))
            ptx_refuse(decoder, "it has no such level");
        bulk->direction = PREFETCH;
    } else {
        take_direction(decoder, bulk);
        multicast = bulk->direction == LOAD && ptx_take(decoder, PTX_M_MULTICAST);
    }
    if (reduces)
        take_reduction(decoder, bulk);
    else
        ptx_expect_types(decoder, 0);
    if (bulk->by_pixels && bulk->direction == STORE) ptx_refuse(decoder, "stores of .im2col are not simulated");
    decode_operands(decoder, bulk, multicast);
    op->bulk = bulk;
    op->run = run_bulk;
    decoder->program->uses_flags = true;
}
