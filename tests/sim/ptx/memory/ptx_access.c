/* How a memory access is written: its order and scope, its caches. Memory is sequentially consistent here and caches
 * are not simulated, so that the order matters to the check for races alone; but what the ISA does not allow is
 * refused. (PTX ISA, "ld", "st", "atom", "red", "Memory Consistency Model".) */
#include "tests/sim/ptx/decode/ptx_decode.h"

enum { ORDERS = 8, SCOPES = 4, CACHES = 7 };
enum { WEAK, VOLATILE, RELAXED, ACQUIRE, RELEASE, ACQ_REL, NO_ORDER = -1 };

static const int orders[] = {PTX_M_WEAK, PTX_M_VOLATILE, PTX_M_RELAXED, PTX_M_ACQUIRE, PTX_M_RELEASE, PTX_M_ACQ_REL};
static const int scopes[] = {PTX_M_CTA, PTX_M_CLUSTER, PTX_M_GPU, PTX_M_SYS};

/* The orders that an access may have, as bits. */
static const uint32_t orders_of[] = {
    [PTX_ACCESS_LOAD] = 1u << WEAK | 1u << VOLATILE | 1u << RELAXED | 1u << ACQUIRE,
    [PTX_ACCESS_STORE] = 1u << WEAK | 1u << VOLATILE | 1u << RELAXED | 1u << RELEASE,
    [PTX_ACCESS_ATOMIC] = 1u << RELAXED | 1u << ACQUIRE | 1u << RELEASE | 1u << ACQ_REL,
    [PTX_ACCESS_REDUCTION] = 1u << RELAXED | 1u << RELEASE,
};

static bool is_global(ptx_space space) {
    return space == PTX_SPACE_GLOBAL || space == PTX_SPACE_GENERIC;
}

/* Returns the order. */
static int take_order(ptx_decoder *decoder, ptx_access access, ptx_space space) {
    int order = ptx_take_one(decoder, orders, sizeof orders / sizeof *orders);
    int scope = ptx_take_one(decoder, scopes, SCOPES);
    bool atomic = access == PTX_ACCESS_ATOMIC || access == PTX_ACCESS_REDUCTION;
    if (order >= 0 && !(orders_of[access] >> order & 1)) ptx_refuse(decoder, "it has no such order");
    if (scope == 1) ptx_need(decoder, 90, 78);
    if (ptx_take(decoder, PTX_M_MMIO)) {
        ptx_need(decoder, 70, 82);
        if (order != RELAXED || scope != 3 || !is_global(space) || atomic)
            ptx_refuse(decoder, ".mmio goes with .relaxed.sys and global memory");
    }
    if (atomic) return order;
    if ((order > VOLATILE) != (scope >= 0)) ptx_refuse(decoder, "an order and a scope go together");
    bool shared = space == PTX_SPACE_SHARED || space == PTX_SPACE_CLUSTER;
    if (order > WEAK && !is_global(space) && !shared) ptx_refuse(decoder, "this memory has no order");
    return order;
}

/* What the order says to the check for races. Volatile accesses get no leave from it. */
static uint32_t order_flags(ptx_access access, int order) {
    bool atomic = access == PTX_ACCESS_ATOMIC || access == PTX_ACCESS_REDUCTION;
    bool acquires = order == ACQUIRE || order == ACQ_REL, releases = order == RELEASE || order == ACQ_REL;
    return (atomic || order > VOLATILE ? PTX_F_STRONG : 0u) | (acquires ? PTX_F_ACQUIRE : 0u) |
           (releases ? PTX_F_RELEASE : 0u);
}

/* Returns whether it asks for what memory has now (.cv). */
static bool take_caches(ptx_decoder *decoder, ptx_access access, ptx_space space, int order) {
    static const int load_caches[] = {PTX_M_CA, PTX_M_CG, PTX_M_CS, PTX_M_LU, PTX_M_CV};
    static const int store_caches[] = {PTX_M_WB, PTX_M_CG, PTX_M_CS, PTX_M_WT};
    bool load = access == PTX_ACCESS_LOAD;
    int cache = load ? ptx_take_one(decoder, load_caches, 5) : ptx_take_one(decoder, store_caches, 4);
    if (cache >= 0 && order >= 0) ptx_refuse(decoder, "an order and a cache exclude each other");
    bool current = load && cache == 4;
    if (!load || !ptx_take(decoder, PTX_M_NC)) return current;
    if (space != PTX_SPACE_GLOBAL || order > WEAK || cache > 2)
        ptx_refuse(decoder, ".nc needs .global, and no order or .ca, .cg or .cs");
    return current;
}

static void take_priorities(ptx_decoder *decoder, ptx_access access, ptx_space space) {
    static const int priorities[] = {PTX_M_L1_EVICT_NORMAL, PTX_M_L1_EVICT_UNCHANGED, PTX_M_L1_EVICT_FIRST,
                                     PTX_M_L1_EVICT_LAST, PTX_M_L1_NO_ALLOCATE};
    static const int second[] = {PTX_M_L2_EVICT_NORMAL, PTX_M_L2_EVICT_FIRST, PTX_M_L2_EVICT_LAST};
    static const int prefetches[] = {PTX_M_L2_64B, PTX_M_L2_128B, PTX_M_L2_256B};
    int priority = ptx_take_one(decoder, priorities, 5), prefetch = -1;
    if (access == PTX_ACCESS_LOAD) prefetch = ptx_take_one(decoder, prefetches, 3);
    if (priority >= 0) ptx_need(decoder, 70, 74);
    if (prefetch >= 0) ptx_need(decoder, prefetch == 2 ? 80 : 75, 74);
    if ((priority >= 0 || prefetch >= 0) && !is_global(space))
        ptx_refuse(decoder, "only global memory has such caches");
    /* 256 bits at once, which the caller looks after. */
    bool wide = decoder->op->count * ptx_type_bits(decoder->op->type) == 256;
    if (wide) ptx_take_one(decoder, second, 3);
}

bool ptx_take_access(ptx_decoder *decoder, ptx_access access, ptx_space space) {
    int order = take_order(decoder, access, space);
    decoder->op->flags |= order_flags(access, order);
    decoder->program->uses_flags |= decoder->op->flags & PTX_F_RELEASE && space != PTX_SPACE_GLOBAL;
    if (access != PTX_ACCESS_LOAD && access != PTX_ACCESS_STORE) return is_global(space);
    bool current = take_caches(decoder, access, space, order);
    take_priorities(decoder, access, space);
    return is_global(space) && access == PTX_ACCESS_LOAD && (order > WEAK || current);
}
