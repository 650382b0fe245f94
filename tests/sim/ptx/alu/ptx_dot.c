/* Sums of products and differences: sad, dp2a, dp4a, mul24, mad24. */
#include "tests/sim/ptx/decode/ptx_decode.h"
#include "tests/sim/ptx/warp/ptx_lanes.h"
#include <string.h>

/* ---- sad: c + |a - b| ---- */

#define SAD(name, type) \
    PTX_TERNARY(name, type, (uint64_t)c + (a < b ? (uint64_t)b - (uint64_t)a : (uint64_t)a - (uint64_t)b))
SAD(run_sad_u16, uint16_t)
SAD(run_sad_u32, uint32_t)
SAD(run_sad_u64, uint64_t)
SAD(run_sad_s16, int16_t)
SAD(run_sad_s32, int32_t)
SAD(run_sad_s64, int64_t)

static void decode_sad(ptx_decoder *decoder) {
    static const struct {
        ptx_type type;
        ptx_run run;
    } rows[] = {{PTX_u16, run_sad_u16}, {PTX_u32, run_sad_u32}, {PTX_u64, run_sad_u64},
                {PTX_s16, run_sad_s16}, {PTX_s32, run_sad_s32}, {PTX_s64, run_sad_s64}};
    ptx_type type = ptx_type_at(decoder, 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].type == type) decoder->op->run = rows[i].run;
    if (!decoder->op->run) ptx_refuse(decoder, "it has no type %s", ptx_type_name(type));
    ptx_decode_same(decoder, type, 3);
}

/* ---- dp4a, dp2a: bytes of b with bytes or halves of a, each side signed or not ---- */

enum { A_SIGNED = 1, B_SIGNED = 2, UPPER = 4 };

static inline int64_t byte_of(uint32_t word, uint32_t i, bool is_signed) {
    return is_signed ? (int8_t)(word >> i * 8) : (uint8_t)(word >> i * 8);
}

static inline int64_t half_of(uint32_t word, uint32_t i, bool is_signed) {
    return is_signed ? (int16_t)(word >> i * 16) : (uint16_t)(word >> i * 16);
}

static inline int64_t dot_bytes(uint32_t a, uint32_t b, uint32_t mode) {
    int64_t sum = 0;
    for (uint32_t i = 0; i < 4; i++)
        sum += byte_of(a, i, mode & A_SIGNED) * byte_of(b, i, mode & B_SIGNED);
    return sum;
}

static inline int64_t dot_halves(uint32_t a, uint32_t b, uint32_t mode) {
    int64_t sum = 0;
    for (uint32_t i = 0; i < 2; i++)
        sum += half_of(a, i, mode & A_SIGNED) * byte_of(b, i + (mode & UPPER ? 2 : 0), mode & B_SIGNED);
    return sum;
}

PTX_TERNARY(run_dp4a, uint32_t, (uint64_t)dot_bytes(a, b, op->mode) + c)
PTX_TERNARY(run_dp2a, uint32_t, (uint64_t)dot_halves(a, b, op->mode) + c)

static void decode_dot(ptx_decoder *decoder, bool halves) {
    static const int parts[] = {PTX_M_LO, PTX_M_HI};
    ptx_op *op = decoder->op;
    const ptx_operand *operands = decoder->statement->operands;
    ptx_expect_types(decoder, 2);
    ptx_expect_operands(decoder, 4, 4);
    for (uint32_t i = 0; i < 2; i++) {
        ptx_type type = ptx_type_at(decoder, i);
        if (type != PTX_u32 && type != PTX_s32) ptx_refuse(decoder, "it has no type %s", ptx_type_name(type));
        if (type == PTX_s32) op->mode |= i ? B_SIGNED : A_SIGNED;
    }
    if (halves) {
        int part = ptx_take_one(decoder, parts, 2);
        if (part < 0) ptx_refuse(decoder, "it needs .lo or .hi");
        if (part) op->mode |= UPPER;
    }
    op->run = halves ? run_dp2a : run_dp4a;
    op->d[0] = ptx_result(decoder, &operands[0], PTX_b32);
    for (uint32_t i = 0; i < 3; i++)
        op->s[i] = ptx_source(decoder, &operands[i + 1], PTX_b32);
}

/* ---- mul24, mad24: the upper or lower 32 bits of a product of 48 ---- */

static inline uint64_t product_u24(uint32_t a, uint32_t b) {
    return (uint64_t)(a & 0xffffffu) * (b & 0xffffffu);
}

static inline int64_t product_s24(int32_t a, int32_t b) {
    return (int64_t)((int32_t)((uint32_t)a << 8) >> 8) * ((int32_t)((uint32_t)b << 8) >> 8);
}

PTX_BINARY(run_mul24_lo_u32, uint32_t, product_u24(a, b))
PTX_BINARY(run_mul24_hi_u32, uint32_t, product_u24(a, b) >> 16)
PTX_BINARY(run_mul24_lo_s32, int32_t, product_s24(a, b))
PTX_BINARY(run_mul24_hi_s32, int32_t, product_s24(a, b) >> 16)
PTX_TERNARY(run_mad24_lo_u32, uint32_t, product_u24(a, b) + c)
PTX_TERNARY(run_mad24_hi_u32, uint32_t, (product_u24(a, b) >> 16) + c)
PTX_TERNARY(run_mad24_lo_s32, int32_t, product_s24(a, b) + c)
PTX_TERNARY(run_mad24_hi_s32, int32_t, (product_s24(a, b) >> 16) + c)
PTX_TERNARY(run_mad24_sat, int32_t, ptx_saturate((product_s24(a, b) >> 16) + c))

static void decode_24(ptx_decoder *decoder, bool adds) {
    static const int parts[] = {PTX_M_LO, PTX_M_HI};
    static const ptx_run runs[2][2][2] = {
        {{run_mul24_lo_u32, run_mul24_lo_s32}, {run_mul24_hi_u32, run_mul24_hi_s32}},
        {{run_mad24_lo_u32, run_mad24_lo_s32}, {run_mad24_hi_u32, run_mad24_hi_s32}},
    };
    ptx_type type = ptx_type_at(decoder, 0);
    int part = ptx_take_one(decoder, parts, 2);
    if (part < 0) ptx_refuse(decoder, "it needs .lo or .hi");
    if (type != PTX_u32 && type != PTX_s32) ptx_refuse(decoder, "it has no type %s", ptx_type_name(type));
    decoder->op->run = runs[adds][part][type == PTX_s32];
    if (adds && part == 1 && type == PTX_s32 && ptx_take(decoder, PTX_M_SAT)) decoder->op->run = run_mad24_sat;
    ptx_decode_same(decoder, type, adds ? 3 : 2);
}

void ptx_decode_dot(ptx_decoder *decoder) {
    const char *opcode = decoder->statement->opcode;
    if (strcmp(opcode, "sad") == 0) decode_sad(decoder);
    if (strcmp(opcode, "dp4a") == 0) decode_dot(decoder, false);
    if (strcmp(opcode, "dp2a") == 0) decode_dot(decoder, true);
    if (strcmp(opcode, "mul24") == 0) decode_24(decoder, false);
    if (strcmp(opcode, "mad24") == 0) decode_24(decoder, true);
}
