/* Memory accesses, with every check: bounds, alignment, what was never written. Global, shared and local memory are in
 * ptx_global.c, ptx_shared.c and ptx_local.c. */
#include "tests/sim/ptx/decode/ptx_decode.h"
#include "tests/sim/ptx/memory/ptx_shared.h"
#include "tests/sim/ptx/memory/ptx_written.h"
#include "tests/sim/ptx/warp/ptx_cluster.h"
#include "tests/sim/ptx/warp/ptx_lanes.h"
#include "tests/sim/ptx/warp/ptx_undefined.h"
#include <stdatomic.h>
#include <string.h>

/* What .const reads, which nothing but it can be. */
static uint8_t *constant_bytes(ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t address, uint32_t size) {
    uint8_t *bytes = ptx_global_bytes(warp, op, lane, address, size, true, false);
    if (!bytes || warp->block->region.constant) return bytes;
    ptx_fault(warp, op, SIM_FAULT_OUT_OF_BOUNDS, lane, address, "%u bytes of memory that is not constant", size);
    return NULL;
}

/* ---- Parameters ---- */

static uint8_t *param_bytes(ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t address, uint32_t size,
                            bool write) {
    const ptx_launch *launch = warp->block->launch;
    if ((address & PTX_WINDOW_MASK) != PTX_WINDOW_PARAM) return ptx_local_bytes(warp, op, lane, address, size, write);
    address &= ~PTX_WINDOW_MASK;
    uint32_t bytes = launch->code->function->parameter_bytes;
    if (write || address >= bytes || size > bytes - address) {
        ptx_fault(warp, op, write ? SIM_FAULT_STORE_TO_CONSTANT : SIM_FAULT_OUT_OF_BOUNDS, lane, address,
                  "%u bytes of the kernel's parameters, which have %u", size, bytes);
        return NULL;
    }
    return (uint8_t *)(uintptr_t)(launch->parameters + address);
}

/* Of the block's own shared memory, or of another's of its cluster. */
static uint8_t *cluster_bytes(ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t address, uint32_t size,
                              bool read, bool write) {
    uint64_t offset;
    ptx_block *block = ptx_cluster_block(warp, op, lane, address, &offset);
    return block ? ptx_shared_bytes_of(block, warp, op, lane, offset, size, read, write) : NULL;
}

uint8_t *ptx_memory_bytes(ptx_warp *warp, const ptx_op *op, uint32_t lane, ptx_space space, uint64_t address,
                          uint32_t size, bool read, bool write) {
    if (space == PTX_SPACE_GENERIC) {
        space = ptx_generic_space(address);
        if (space == PTX_SPACE_SHARED || space == PTX_SPACE_LOCAL) address &= ~PTX_WINDOW_MASK;
        if (space == PTX_SPACE_SHARED) space = PTX_SPACE_CLUSTER;
    }
    if (address & (size - 1)) {
        ptx_fault(warp, op, SIM_FAULT_MISALIGNED, lane, address, "access of %u bytes", size);
        return NULL;
    }
    switch (space) {
    case PTX_SPACE_SHARED:
        return ptx_shared_bytes(warp, op, lane, address, size, read, write);
    case PTX_SPACE_CLUSTER:
        return cluster_bytes(warp, op, lane, address, size, read, write);
    case PTX_SPACE_LOCAL:
        return ptx_local_bytes(warp, op, lane, address, size, write);
    case PTX_SPACE_PARAM:
        return param_bytes(warp, op, lane, address, size, write);
    case PTX_SPACE_CONST:
        return constant_bytes(warp, op, lane, address, size);
    default:
        return ptx_global_bytes(warp, op, lane, address, size, read, write);
    }
}

void *ptx_memory_at(ptx_warp *warp, const ptx_op *op, uint32_t lane, ptx_space space, uint64_t address, uint32_t size) {
    return ptx_memory_bytes(warp, op, lane, space, address, size, true, true);
}

/* ---- Counters ---- */

static void count_global(ptx_warp *warp, const uint64_t *addresses, uint32_t mask, uint32_t size, bool write) {
    sim_counters *counters = &warp->block->counters;
    uint64_t sectors[PTX_WARP], bytes = (uint64_t)size * (uint32_t)__builtin_popcount(mask);
    uint32_t count = 0, each = size > 32 ? size / 32 : 1;
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        uint64_t sector = addresses[__builtin_ctz(rest)] / 32;
        uint32_t known = 0;
        while (known < count && sectors[known] != sector)
            known++;
        if (known == count) sectors[count++] = sector;
    }
    counters->global_requests++;
    counters->global_sectors += (uint64_t)count * each;
    *(write ? &counters->global_written_bytes : &counters->global_read_bytes) += bytes;
}

void ptx_memory_count_span(ptx_warp *warp, uint64_t address, uint64_t size, bool write) {
    sim_counters *counters = &warp->block->counters;
    counters->global_sectors += (address % 32 + size + 31) / 32;
    *(write ? &counters->global_written_bytes : &counters->global_read_bytes) += size;
}

/* Whether all lanes take part, with addresses that are step apart. */
static bool regular(const uint64_t *addresses, uint32_t mask, uint32_t step) {
    if (mask != 0xffffffffu) return false;
    uint64_t wrong = 0;
    for (uint32_t l = 0; l < PTX_WARP; l++)
        wrong |= addresses[l] - addresses[0] - l * (uint64_t)step;
    return !wrong;
}

/* Whether each lane of a phase has the address of the one before it or the next: no two words are then in one bank. */
static bool are_neighbours(const uint64_t *addresses, uint32_t lanes, uint32_t size) {
    if (!lanes) return true;
    uint64_t last = addresses[__builtin_ctz(lanes)];
    for (uint32_t rest = lanes & (lanes - 1); rest; rest &= rest - 1) {
        uint64_t address = addresses[__builtin_ctz(rest)];
        if (address != last && address != last + size) return false;
        last = address;
    }
    return true;
}

/* A request is done in phases of as many lanes as 128 bytes serve; in a phase each bank gives one word at a time. Each
 * block of a cluster has banks of its own. */
static void count_shared(ptx_warp *warp, const uint64_t *addresses, uint32_t mask, uint32_t size) {
    enum { BANKS = 32 };
    sim_counters *counters = &warp->block->counters;
    uint32_t words = size > 4 ? size / 4 : 1, lanes = PTX_WARP / words;
    counters->shared_requests++;
    const bool alone = !(mask & (mask - 1));
    if (alone || regular(addresses, mask, size) || regular(addresses, mask, 0)) return;
    for (uint32_t first = 0; first < PTX_WARP; first += lanes) {
        if (are_neighbours(addresses, mask & (uint32_t)((1ull << lanes) - 1) << first, size)) continue;
        uint64_t seen[BANKS][BANKS];
        uint32_t depth[BANKS] = {0}, deepest = 1;
        for (uint32_t l = first; l < first + lanes; l++) {
            for (uint32_t w = 0; w < words && mask >> l & 1; w++) {
                uint64_t word = addresses[l] / 4 + w;
                uint32_t bank = word % BANKS, at = depth[bank], words_of_block = 1;
                for (; at && seen[bank][at - 1] != word; at--)
                    words_of_block += seen[bank][at - 1] * 4 >> PTX_RANK_SHIFT == addresses[l] >> PTX_RANK_SHIFT;
                if (at) continue;
                seen[bank][depth[bank]++] = word;
                if (words_of_block > deepest) deepest = words_of_block;
            }
        }
        counters->shared_conflicts += deepest - 1;
    }
}

/* ---- ld and st ---- */

void ptx_addresses(const ptx_warp *warp, uint32_t place, uint32_t bits, int64_t offset, uint64_t *addresses) {
    if (bits == 64) {
        const uint64_t *base = PTX_ARRAY(const uint64_t, place);
        for (int l = 0; l < PTX_WARP; l++)
            addresses[l] = base[l] + (uint64_t)offset;
    } else {
        const uint32_t *base = PTX_ARRAY(const uint32_t, place);
        for (int l = 0; l < PTX_WARP; l++)
            addresses[l] = base[l] + (uint32_t)offset;
    }
}

/* Where element e of a lane stands in the registers of a frame, or in the account of what is undefined in them. */
static uint8_t *element_at(uint8_t *frame, const ptx_op *op, uint32_t e, uint32_t lane) {
    return frame + op->d[e] + lane * (op->bits[PTX_SOURCES] / 8);
}

/* Puts an element into its register, extended if that is wider. */
static void put_element(uint8_t *frame, const ptx_op *op, uint32_t e, uint32_t lane, const uint8_t *from) {
    uint32_t bytes = ptx_type_bits(op->type) / 8, wide = op->bits[PTX_SOURCES] / 8;
    if (bytes == wide) {
        memcpy(element_at(frame, op, e, lane), from, bytes);
        return;
    }
    uint64_t value[2] = {0};
    memcpy(value, from, bytes);
    if (wide > bytes && ptx_type_class_of(op->type) == PTX_CLASS_SIGNED) {
        uint32_t shift = 64 - bytes * 8;
        value[0] = (uint64_t)((int64_t)(value[0] << shift) >> shift);
        value[1] = (uint64_t)((int64_t)value[0] >> 63);
    }
    memcpy(element_at(frame, op, e, lane), value, wide);
}

static bool is_global(ptx_space space, uint64_t address) {
    return space == PTX_SPACE_GLOBAL || space == PTX_SPACE_CONST ||
           (space == PTX_SPACE_GENERIC && ptx_generic_space(address) == PTX_SPACE_GLOBAL);
}

static bool is_shared(ptx_space space, uint64_t address) {
    return space == PTX_SPACE_SHARED || space == PTX_SPACE_CLUSTER ||
           (space == PTX_SPACE_GENERIC && ptx_generic_space(address) == PTX_SPACE_SHARED);
}

void ptx_count_request(ptx_warp *warp, ptx_space space, const uint64_t *addresses, uint32_t mask, uint32_t size,
                       bool write) {
    uint64_t first = addresses[__builtin_ctz(mask)];
    if (is_global(space, first))
        count_global(warp, addresses, mask, size, write);
    else if (is_shared(space, first))
        count_shared(warp, addresses, mask, size);
}

/* All lanes, one element of the register's width each, side by side in global memory: one check, one copy. false if the
 * lanes must go one by one. */
static bool run_bulk(ptx_warp *warp, const ptx_op *op, const uint64_t *addresses, uint32_t mask, bool write) {
    uint32_t size = ptx_type_bits(op->type) / 8;
    const ptx_launch *launch = warp->block->launch;
    if (launch->unseen || launch->writes) return false;
    if (op->count != 1 || size * 8 != op->bits[PTX_SOURCES] || !is_global(op->space, addresses[0]) ||
        addresses[0] % size || !regular(addresses, mask, size))
        return false;
    sim_region *region = &warp->block->region;
    uint64_t bytes = size * (uint64_t)PTX_WARP, address = addresses[0];
    if (address - region->base >= region->size || bytes > region->size - (address - region->base)) return false;
    if (write ? region->constant || warp->block->copies_in_flight : !ptx_written(region, address, bytes)) return false;
    if (op->space == PTX_SPACE_CONST && !region->constant) return false;
    uint8_t *registers = warp->frame + op->d[0], *memory = (uint8_t *)(uintptr_t)address;
    memcpy(write ? memory : registers, write ? registers : memory, bytes);
    if (write) ptx_written_mark(region, address, bytes);
    warp->block->moved |= write;
    warp->block->counters.global_requests++;
    ptx_memory_count_span(warp, address, bytes, write);
    return true;
}

static bool is_local(ptx_space space, uint64_t address) {
    return space == PTX_SPACE_LOCAL || (space == PTX_SPACE_PARAM && (address & PTX_WINDOW_MASK) != PTX_WINDOW_PARAM) ||
           (space == PTX_SPACE_GENERIC && ptx_generic_space(address) == PTX_SPACE_LOCAL);
}

static uint32_t local_lanes(const ptx_op *op, const uint64_t *addresses, uint32_t mask) {
    uint32_t lanes = 0;
    if (op->space == PTX_SPACE_GLOBAL || is_shared(op->space, 0)) return 0;
    PTX_LANES(lanes |= (uint32_t)is_local(op->space, addresses[l]) << l);
    return lanes;
}

/* What a lane loaded is undefined where it was never written. */
static void load_undefined(ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t address) {
    uint8_t bits[PTX_ACCESS_MAX];
    uint32_t element = ptx_type_bits(op->type) / 8, size = element * op->count;
    bool shared = warp->unwritten >> lane & 1;
    if (shared) address &= ~PTX_WINDOW_MASK;
    if (shared)
        ptx_shared_undefined(warp->block, address, size, bits);
    else if (!ptx_local_undefined(warp, lane, address, size, bits))
        return;
    for (uint32_t e = 0; e < op->count; e++)
        put_element(ptx_undefined_bits(warp), op, e, lane, bits + e * element);
    ptx_undefined_came(warp, op, lane, shared ? PTX_SPACE_SHARED : PTX_SPACE_LOCAL, address);
}

/* And what it stored. false after a fault. */
static bool store_undefined(ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t address) {
    uint32_t element = ptx_type_bits(op->type) / 8;
    for (uint32_t e = 0; e < op->count; e++) {
        const uint8_t *bits = element_at(ptx_undefined_bits(warp), op, e, lane);
        if (is_local(op->space, address))
            ptx_local_undefine(warp, lane, address + e * element, element, bits);
        else if (!ptx_undefined_shown(warp, op, lane, bits, element))
            return false;
    }
    return true;
}

/* Whether lanes may store to one place of shared memory: their addresses do not rise. */
static bool may_meet(const uint64_t *addresses, uint32_t mask) {
    uint64_t last = addresses[__builtin_ctz(mask)];
    for (uint32_t rest = mask & (mask - 1); rest; rest &= rest - 1) {
        uint64_t address = addresses[__builtin_ctz(rest)];
        if (address <= last) return true;
        last = address;
    }
    return false;
}

/* The lane before this one that stores the same to the same place in this instruction, so that it makes no difference
 * which of them does; -1: none. (CUDA C++ Programming Guide, "SIMT Architecture": one of a warp's lanes does.) */
static int32_t repeated(const ptx_warp *warp, const ptx_op *op, const uint64_t *addresses, uint32_t mask,
                        uint32_t lane) {
    uint32_t element = ptx_type_bits(op->type) / 8;
    for (uint32_t rest = mask & ((1u << lane) - 1); rest; rest &= rest - 1) {
        uint32_t other = (uint32_t)__builtin_ctz(rest);
        bool same = addresses[other] == addresses[lane];
        for (uint32_t e = 0; same && e < op->count; e++)
            same = !memcmp(element_at(warp->frame, op, e, lane), element_at(warp->frame, op, e, other), element);
        if (same) return (int32_t)other;
    }
    return -1;
}

/* Whether the bytes are what a lane stores. */
static bool holds(const ptx_warp *warp, const ptx_op *op, uint32_t lane, const uint8_t *bytes, uint32_t size) {
    uint32_t element = size / op->count;
    bool same = true;
    for (uint32_t e = 0; same && e < op->count; e++)
        same = !memcmp(bytes + e * element, element_at(warp->frame, op, e, lane), element);
    return same;
}

/* The bytes of shared memory to which lanes of this warp that went another way have stored the same: that makes no
 * difference either, and whether they are together is the seed's. NULL: they have not. */
static uint8_t *stored_before(ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t address, uint32_t size) {
    uint8_t *bytes = ptx_shared_written(warp, op, address & ~PTX_WINDOW_MASK, size);
    return bytes && holds(warp, op, lane, bytes, size) ? bytes : NULL;
}

/* The same of another warp, where the launch lets them. */
static uint8_t *stored_by_another(ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t address, uint32_t size) {
    _Atomic uint32_t *line = warp->block->launch->same_store;
    if (!line) return NULL;
    uint8_t *bytes = ptx_shared_contested(warp, op, lane, address & ~PTX_WINDOW_MASK, size);
    if (!bytes || !holds(warp, op, lane, bytes, size)) return NULL;
    atomic_store(line, op->line);
    return bytes;
}

/* The host bytes of each lane of mask, after every check. false after a fault. */
static bool lanes_bytes(ptx_warp *warp, const ptx_op *op, const uint64_t *addresses, uint32_t mask, uint32_t size,
                        bool write, uint8_t **out_bytes) {
    bool shared = write && is_shared(op->space, addresses[__builtin_ctz(mask)]);
    bool meet = shared && may_meet(addresses, mask), apart = shared && mask != warp->lanes;
    ptx_count_request(warp, op->space, addresses, mask, size, write);
    if (!write && op->space == PTX_SPACE_SHARED) return ptx_shared_lanes(warp, op, addresses, mask, size, out_bytes);
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        uint32_t l = (uint32_t)__builtin_ctz(rest);
        int32_t other = meet ? repeated(warp, op, addresses, mask, l) : -1;
        if (other >= 0) {
            out_bytes[l] = out_bytes[other];
            continue;
        }
        out_bytes[l] = apart ? stored_before(warp, op, l, addresses[l], size) : NULL;
        if (!out_bytes[l] && shared) out_bytes[l] = stored_by_another(warp, op, l, addresses[l], size);
        if (out_bytes[l]) continue;
        out_bytes[l] = ptx_memory_bytes(warp, op, l, op->space, addresses[l], size, !write, write);
        if (!out_bytes[l]) return false;
    }
    return true;
}

/* Element e of each lane, from its bytes into its register and back: copies of a size that compilers know, where it is
 * the register's. */
static void load_element(ptx_warp *warp, const ptx_op *op, uint32_t mask, uint32_t e, uint8_t *const *bytes) {
    uint32_t size = ptx_type_bits(op->type) / 8;
    uint8_t *to = warp->frame + op->d[e];
    switch (size * 8 == op->bits[PTX_SOURCES] ? size : 0) {
    case 2:
        PTX_LANES(memcpy(to + l * 2, bytes[l] + e * 2, 2));
        break;
    case 4:
        PTX_LANES(memcpy(to + l * 4, bytes[l] + e * 4, 4));
        break;
    case 8:
        PTX_LANES(memcpy(to + l * 8, bytes[l] + e * 8, 8));
        break;
    default:
        PTX_LANES(put_element(warp->frame, op, e, (uint32_t)l, bytes[l] + e * size));
    }
}

static void store_element(ptx_warp *warp, const ptx_op *op, uint32_t mask, uint32_t e, uint8_t *const *bytes) {
    uint32_t size = ptx_type_bits(op->type) / 8;
    const uint8_t *from = warp->frame + op->d[e];
    switch (size * 8 == op->bits[PTX_SOURCES] ? size : 0) {
    case 2:
        PTX_LANES(memcpy(bytes[l] + e * 2, from + l * 2, 2));
        break;
    case 4:
        PTX_LANES(memcpy(bytes[l] + e * 4, from + l * 4, 4));
        break;
    case 8:
        PTX_LANES(memcpy(bytes[l] + e * 8, from + l * 8, 8));
        break;
    default:
        PTX_LANES(memcpy(bytes[l] + e * size, element_at(warp->frame, op, e, (uint32_t)l), size));
    }
}

static void run_load(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    uint64_t addresses[PTX_WARP];
    uint8_t *bytes[PTX_WARP];
    if (op->polls) ptx_wait_ask(warp, op);
    ptx_addresses(warp, op->s[0], op->bits[0], op->offset, addresses);
    if (run_bulk(warp, op, addresses, mask, false)) return;
    uint32_t element = ptx_type_bits(op->type) / 8;
    if (!lanes_bytes(warp, op, addresses, mask, element * op->count, false, bytes)) return;
    for (uint32_t e = 0; e < op->count; e++)
        load_element(warp, op, mask, e, bytes);
    for (uint32_t rest = warp->unwritten | local_lanes(op, addresses, mask); rest; rest &= rest - 1) {
        uint32_t l = (uint32_t)__builtin_ctz(rest);
        load_undefined(warp, op, l, addresses[l]);
    }
    warp->unwritten = 0;
}

static void run_store(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    uint64_t addresses[PTX_WARP];
    uint8_t *bytes[PTX_WARP];
    ptx_addresses(warp, op->s[0], op->bits[0], op->offset, addresses);
    bool undefined = warp->group->frame->undefined;
    if (!undefined && run_bulk(warp, op, addresses, mask, true)) return;
    uint32_t element = ptx_type_bits(op->type) / 8;
    if (!lanes_bytes(warp, op, addresses, mask, element * op->count, true, bytes)) return;
    for (uint32_t e = 0; e < op->count; e++)
        store_element(warp, op, mask, e, bytes);
    for (uint32_t rest = undefined ? mask : 0; rest; rest &= rest - 1) {
        uint32_t l = (uint32_t)__builtin_ctz(rest);
        if (!store_undefined(warp, op, l, addresses[l])) return;
    }
}

ptx_space ptx_take_space(ptx_decoder *decoder) {
    static const struct {
        ptx_space space;
        uint32_t target, version;
    } spaces[] = {{PTX_SPACE_GLOBAL, 0, 0}, {PTX_SPACE_SHARED, 0, 0}, {PTX_SPACE_SHARED, 0, 78},
                  {PTX_SPACE_LOCAL, 0, 0},  {PTX_SPACE_CONST, 0, 0},  {PTX_SPACE_PARAM, 0, 0},
                  {PTX_SPACE_PARAM, 0, 83}, {PTX_SPACE_PARAM, 0, 83}, {PTX_SPACE_CLUSTER, 90, 78}};
    static const int words[] = {PTX_M_GLOBAL, PTX_M_SHARED,      PTX_M_SHARED_CTA, PTX_M_LOCAL,         PTX_M_CONST,
                                PTX_M_PARAM,  PTX_M_PARAM_ENTRY, PTX_M_PARAM_FUNC, PTX_M_SHARED_CLUSTER};
    int word = ptx_take_one(decoder, words, sizeof words / sizeof *words);
    if (word < 0) return PTX_SPACE_GENERIC;
    ptx_need(decoder, spaces[word].target, spaces[word].version);
    return spaces[word].space;
}

/* [register + offset], [variable + offset] or [number]. */
void ptx_decode_pointer(ptx_decoder *decoder, const ptx_operand *operand) {
    ptx_op *op = decoder->op;
    if (operand->kind != PTX_OPERAND_ADDRESS) ptx_refuse(decoder, "expected an address in brackets");
    op->bits[0] = 64;
    if (operand->variable) {
        ptx_operand address = {.kind = PTX_OPERAND_VARIABLE, .variable = operand->variable, .value = operand->value};
        op->s[0] = ptx_source(decoder, &address, PTX_u64);
    } else if (operand->has_register) {
        ptx_operand address = {.kind = PTX_OPERAND_REGISTER, .number = operand->number, .name = "the address"};
        op->s[0] = ptx_source_wide(decoder, &address, PTX_u32, &op->bits[0]);
        op->offset = operand->value;
    } else {
        op->s[0] = ptx_constant_place(decoder, (uint64_t)operand->value, 64);
    }
}

static void decode_elements(ptx_decoder *decoder, const ptx_operand *operand) {
    ptx_op *op = decoder->op;
    const ptx_operand *elements = operand->kind == PTX_OPERAND_VECTOR ? operand->elements : operand;
    uint32_t count = operand->kind == PTX_OPERAND_VECTOR ? operand->element_count : 1;
    bool load = op->run == run_load;
    if (count != op->count) ptx_refuse(decoder, "%u elements where %u are wanted", count, op->count);
    for (uint32_t e = 0; e < count; e++) {
        uint8_t bits;
        op->d[e] = load ? ptx_result_wide(decoder, &elements[e], op->type, &bits)
                        : ptx_source_wide(decoder, &elements[e], op->type, &bits);
        if (e && bits != op->bits[PTX_SOURCES]) ptx_refuse(decoder, "its elements have different widths");
        op->bits[PTX_SOURCES] = bits;
    }
}

/* Which widths there are: up to 128 bits, and 256 of global memory since sm_100. */
static void check_width(ptx_decoder *decoder) {
    const ptx_op *op = decoder->op;
    ptx_type_class class = ptx_type_class_of(op->type);
    uint32_t bits = ptx_type_bits(op->type) * op->count;
    bool global = op->space == PTX_SPACE_GLOBAL || op->space == PTX_SPACE_GENERIC;
    bool type = class == PTX_CLASS_BITS || class == PTX_CLASS_UNSIGNED || class == PTX_CLASS_SIGNED ||
                op->type == PTX_f32 || op->type == PTX_f64;
    if (!type || ptx_type_bits(op->type) < 8) ptx_refuse(decoder, "it has no type %s", ptx_type_name(op->type));
    if (bits > 256 || (bits == 256 && (!global || ptx_type_bits(op->type) < 32 || op->type == PTX_b128)) ||
        (op->count == 8 && bits < 256))
        ptx_refuse(decoder, "%u elements of %s do not go together", op->count, ptx_type_name(op->type));
    if (bits == 256) ptx_need(decoder, 100, 88);
    if (op->type == PTX_b128) ptx_need(decoder, 70, 83);
}

/* The access of a call's parameter is neither ordered nor cached, and a kernel's are constants. */
static void check_space(ptx_decoder *decoder, bool load, const ptx_operand *address) {
    ptx_space space = decoder->op->space;
    bool uniform = strcmp(decoder->statement->opcode, "ldu") == 0;
    if (uniform && space != PTX_SPACE_GLOBAL && space != PTX_SPACE_GENERIC) ptx_refuse(decoder, "it needs .global");
    if (load) return;
    if (space == PTX_SPACE_CONST) ptx_refuse(decoder, "constants cannot be written");
    const ptx_function *function = decoder->code->function;
    for (const ptx_variable *p = function->is_entry ? function->parameters : NULL; p; p = p->next)
        if (space == PTX_SPACE_PARAM && address->variable == p)
            ptx_refuse(decoder, "the kernel's parameters cannot be written");
}

void ptx_decode_memory(ptx_decoder *decoder) {
    static const int vectors[] = {PTX_M_V2, PTX_M_V4, PTX_M_V8};
    ptx_op *op = decoder->op;
    const ptx_operand *operands = decoder->statement->operands;
    bool load = strcmp(decoder->statement->opcode, "st") != 0;
    if (!load && ptx_take(decoder, PTX_M_ASYNC)) {
        ptx_decode_store_async(decoder);
        return;
    }
    op->space = ptx_take_space(decoder);
    int vector = ptx_take_one(decoder, vectors, 3);
    op->count = vector < 0 ? 1 : 2u << vector;
    op->type = ptx_type_at(decoder, 0);
    ptx_expect_types(decoder, 1);
    op->polls = ptx_take_access(decoder, load ? PTX_ACCESS_LOAD : PTX_ACCESS_STORE, op->space);
    uint32_t policies = ptx_take_policy(decoder);
    ptx_expect_operands(decoder, 2 + policies, 2 + policies);
    if (policies && op->space != PTX_SPACE_GLOBAL && op->space != PTX_SPACE_GENERIC)
        ptx_refuse(decoder, "only global memory has cache policies");
    op->run = load ? run_load : run_store;
    check_width(decoder);
    ptx_decode_pointer(decoder, &operands[load ? 1 : 0]);
    check_space(decoder, load, &operands[load ? 1 : 0]);
    decode_elements(decoder, &operands[load ? 0 : 1]);
}
