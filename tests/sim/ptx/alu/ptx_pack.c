/* cvt.pack.sat: two 32-bit integers, saturated to 16 bits or fewer and put side by side, the first above the second;
 * the narrower ones below the low bits of a third operand. */
#include "tests/sim/ptx/decode/ptx_decode.h"
#include "tests/sim/ptx/warp/ptx_lanes.h"

static int64_t saturate(int64_t value, int64_t least, int64_t greatest) {
    return value < least ? least : value > greatest ? greatest : value;
}

/* The value cut to the type's bits. */
static uint32_t narrow(ptx_type type, int32_t value) {
    uint32_t bits = ptx_type_bits(type);
    bool is_signed = ptx_type_class_of(type) == PTX_CLASS_SIGNED;
    int64_t least = is_signed ? -(1 << (bits - 1)) : 0, greatest = (1 << (bits - is_signed)) - 1;
    return (uint32_t)saturate(value, least, greatest) & ((1u << bits) - 1);
}

static void run_pack(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    uint32_t bits = ptx_type_bits(op->type), *d = PTX_ARRAY(uint32_t, op->d[0]);
    const int32_t *a = PTX_ARRAY(int32_t, op->s[0]), *b = PTX_ARRAY(int32_t, op->s[1]);
    const uint32_t *rest_of_d = bits == 16 ? NULL : PTX_ARRAY(uint32_t, op->s[2]);
    PTX_LANES({
        uint32_t both = narrow(op->type, a[l]) << bits | narrow(op->type, b[l]);
        d[l] = rest_of_d ? rest_of_d[l] << 2 * bits | both : both;
    });
}

void ptx_decode_pack(ptx_decoder *decoder) {
    const ptx_operand *operands = decoder->statement->operands;
    ptx_op *op = decoder->op;
    op->type = ptx_type_at(decoder, 0);
    ptx_type_class class = ptx_type_class_of(op->type);
    uint32_t bits = ptx_type_bits(op->type), sources = bits == 16 ? 2 : 3;
    if (!ptx_take(decoder, PTX_M_SAT)) ptx_refuse(decoder, "it needs .sat");
    if (bits > 16 || (class != PTX_CLASS_SIGNED && class != PTX_CLASS_UNSIGNED) || ptx_type_at(decoder, 1) != PTX_s32)
        ptx_refuse(decoder, "it packs s32 into integers of 2, 4, 8 or 16 bits");
    ptx_expect_types(decoder, sources);
    if (sources == 3 && ptx_type_at(decoder, 2) != PTX_b32) ptx_refuse(decoder, "its third type must be b32");
    ptx_need(decoder, 75, 65);
    ptx_expect_operands(decoder, sources + 1, sources + 1);
    op->run = run_pack;
    op->d[0] = ptx_result(decoder, &operands[0], PTX_b32);
    for (uint32_t i = 0; i < sources; i++)
        op->s[i] = ptx_source(decoder, &operands[i + 1], PTX_b32);
}
