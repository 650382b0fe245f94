/* st.async and red.async: stores and reductions in shared memory of a block of the cluster, which a barrier of that
 * block counts. (PTX ISA, "st.async", "red.async".) What st.async stores lands when a thread sees the barrier's phase
 * end; red.async is done at once. */
#include "tests/sim/ptx/decode/ptx_decode.h"
#include "tests/sim/ptx/memory/ptx_atomic.h"
#include "tests/sim/ptx/memory/ptx_landing.h"
#include "tests/sim/ptx/memory/ptx_shared.h"
#include "tests/sim/ptx/warp/ptx_cluster.h"
#include "tests/sim/ptx/warp/ptx_lanes.h"
#include <string.h>

/* Where a lane sends to, and the barrier there. */
typedef struct target {
    ptx_block *block;
    uint64_t address, to, barrier;
} target;

static bool find_target(ptx_warp *warp, const ptx_op *op, uint32_t lane, uint32_t size, target *out) {
    uint64_t to[PTX_WARP], barrier[PTX_WARP];
    ptx_addresses(warp, op->s[0], op->bits[0], op->offset, to);
    ptx_addresses(warp, op->s[1], op->bits[1], op->source_offset, barrier);
    out->address = to[lane];
    const bool generic = op->space == PTX_SPACE_GENERIC;
    if (generic &&
        (ptx_generic_space(to[lane]) != PTX_SPACE_SHARED || ptx_generic_space(barrier[lane]) != PTX_SPACE_SHARED)) {
        ptx_fault(warp, op, SIM_FAULT_ILLEGAL, lane, to[lane], "an address that is not of shared memory");
        return false;
    }
    const uint64_t mask = generic ? ~PTX_WINDOW_MASK : ~0ull;
    out->block = ptx_cluster_block(warp, op, lane, to[lane] & mask, &out->to);
    const ptx_block *other = out->block ? ptx_cluster_block(warp, op, lane, barrier[lane] & mask, &out->barrier) : NULL;
    if (!other) return false;
    if (other != out->block) {
        ptx_fault(warp, op, SIM_FAULT_ILLEGAL, lane, to[lane], "its barrier is of block %u of the cluster",
                  other->rank);
        return false;
    }
    if (out->to % size == 0) return true;
    ptx_fault(warp, op, SIM_FAULT_MISALIGNED, lane, to[lane], "access of %u bytes", size);
    return false;
}

static void run_store(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    const uint32_t element = ptx_type_bits(op->type) / 8, size = element * op->count;
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        const uint32_t l = (uint32_t)__builtin_ctz(rest);
        uint8_t bytes[16];
        target at;
        if (!find_target(warp, op, l, size, &at)) return;
        for (uint32_t e = 0; e < op->count; e++)
            memcpy(bytes + e * element, warp->frame + op->list[e] + l * element, element);
        if (!ptx_landing_send(at.block, warp, op, l, at.barrier, at.to, bytes, size) ||
            !ptx_mbarrier_complete(at.block, warp, op, l, at.barrier, size))
            return;
    }
}

static void run_reduction(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    const uint32_t size = ptx_type_bits(op->type) / 8;
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        const uint32_t l = (uint32_t)__builtin_ctz(rest);
        uint64_t value = 0;
        target at;
        if (!find_target(warp, op, l, size, &at)) return;
        void *memory = ptx_memory_at(warp, op, l, op->space, at.address, size);
        if (!memory) return;
        memcpy(&value, warp->frame + op->list[0] + l * size, size);
        ptx_atomic_apply(op, memory, value);
        ptx_shared_detach(at.block, at.to, size);
        ptx_flag_complete(at.block, warp, l, at.barrier);
        if (!ptx_mbarrier_complete(at.block, warp, op, l, at.barrier, size)) return;
    }
}

/* The operands of both: [a], b, [barrier]. */
static void decode_operands(ptx_decoder *decoder) {
    ptx_op *op = decoder->op;
    const ptx_operand *operands = decoder->statement->operands, *value = &operands[1];
    op->space = ptx_take(decoder, PTX_M_SHARED_CLUSTER) ? PTX_SPACE_CLUSTER : PTX_SPACE_GENERIC;
    if (!ptx_take(decoder, PTX_M_COMPLETE_TX_BYTES)) ptx_refuse(decoder, "it names no way to complete");
    ptx_expect_types(decoder, 1);
    op->type = ptx_type_at(decoder, 0);
    ptx_expect_operands(decoder, 3, 3);
    ptx_decode_pointer(decoder, &operands[2]);
    op->s[1] = op->s[0];
    op->bits[1] = op->bits[0];
    op->source_offset = op->offset;
    op->offset = 0;
    ptx_decode_pointer(decoder, &operands[0]);
    const uint32_t count = value->kind == PTX_OPERAND_VECTOR ? value->element_count : 1;
    if (count != op->count) ptx_refuse(decoder, "%u elements where %u are wanted", count, op->count);
    uint32_t *places = ptx_arena_take(decoder->program->module->arena, count * sizeof *places);
    for (uint32_t e = 0; e < count; e++)
        places[e] = ptx_source(decoder, value->kind == PTX_OPERAND_VECTOR ? &value->elements[e] : value, op->type);
    op->list = places;
    decoder->program->uses_flags = true;
}

void ptx_decode_store_async(ptx_decoder *decoder) {
    static const int vectors[] = {PTX_M_V2, PTX_M_V4};
    ptx_op *op = decoder->op;
    ptx_need(decoder, 90, 81);
    ptx_take(decoder, PTX_M_WEAK);
    const int vector = ptx_take_one(decoder, vectors, 2);
    op->count = vector < 0 ? 1 : 2u << vector;
    op->run = run_store;
    decode_operands(decoder);
    const ptx_type_class class = ptx_type_class_of(op->type);
    const uint32_t bits = ptx_type_bits(op->type);
    if ((bits != 32 && bits != 64) || bits * op->count > 128 || class == PTX_CLASS_PRED ||
        (class == PTX_CLASS_FLOAT && op->type != PTX_f32 && op->type != PTX_f64))
        ptx_refuse(decoder, "%u elements of %s are not stored", op->count, ptx_type_name(op->type));
}

void ptx_decode_reduce_async(ptx_decoder *decoder) {
    ptx_op *op = decoder->op;
    ptx_need(decoder, 90, 81);
    if (!ptx_take(decoder, PTX_M_RELAXED) || !ptx_take(decoder, PTX_M_CLUSTER))
        ptx_refuse(decoder, "it goes with .relaxed.cluster");
    op->count = 1;
    op->flags |= PTX_F_STRONG;
    op->run = run_reduction;
    ptx_take_atomic(decoder);
    decode_operands(decoder);
    if (!ptx_atomic_async_fits(op)) ptx_refuse(decoder, "it has no such type");
}
