/* Counting bits, and fields of bits: popc, clz, brev, bfind, bfe, bfi, szext, bmsk, fns. */
#include "tests/sim/ptx/decode/ptx_decode.h"
#include "tests/sim/ptx/warp/ptx_lanes.h"
#include <string.h>

/* ---- popc, clz, bfind: a count of 32 bits; brev: as wide as its source ---- */

/* The place of the highest bit that is not a sign, or all ones. */
static inline uint32_t highest(uint64_t a) {
    return a ? 63 - (uint32_t)__builtin_clzll(a) : 0xffffffffu;
}

static inline uint32_t shift_amount(uint64_t a, uint32_t top) {
    return a ? top - highest(a) : 0xffffffffu;
}

static inline uint64_t reverse(uint64_t a) {
    a = (a >> 1 & 0x5555555555555555u) | (a & 0x5555555555555555u) << 1;
    a = (a >> 2 & 0x3333333333333333u) | (a & 0x3333333333333333u) << 2;
    a = (a >> 4 & 0x0f0f0f0f0f0f0f0fu) | (a & 0x0f0f0f0f0f0f0f0fu) << 4;
    return __builtin_bswap64(a);
}

#define COUNT(name, type, expression)                                   \
    static void name(ptx_warp *warp, const ptx_op *op, uint32_t mask) { \
        uint32_t *d = PTX_ARRAY(uint32_t, op->d[0]);                    \
        const type *source = PTX_ARRAY(type, op->s[0]);                 \
        PTX_LANES(type a = source[l]; d[l] = (uint32_t)(expression));   \
    }
COUNT(run_popc_32, uint32_t, __builtin_popcount(a))
COUNT(run_popc_64, uint64_t, __builtin_popcountll(a))
COUNT(run_clz_32, uint32_t, a ? __builtin_clz(a) : 32)
COUNT(run_clz_64, uint64_t, a ? __builtin_clzll(a) : 64)
COUNT(run_bfind_u32, uint32_t, highest(a))
COUNT(run_bfind_u64, uint64_t, highest(a))
COUNT(run_bfind_s32, int32_t, highest((uint64_t)(a < 0 ? ~a : a)))
COUNT(run_bfind_s64, int64_t, highest((uint64_t)(a < 0 ? ~a : a)))
COUNT(run_shiftamt_u32, uint32_t, shift_amount(a, 31))
COUNT(run_shiftamt_u64, uint64_t, shift_amount(a, 63))
COUNT(run_shiftamt_s32, int32_t, shift_amount((uint64_t)(a < 0 ? ~a : a), 31))
COUNT(run_shiftamt_s64, int64_t, shift_amount((uint64_t)(a < 0 ? ~a : a), 63))
PTX_UNARY(run_brev_32, uint32_t, reverse(a) >> 32)
PTX_UNARY(run_brev_64, uint64_t, reverse(a))

void ptx_decode_count(ptx_decoder *decoder) {
    static const struct {
        const char *opcode;
        ptx_type type, result;
        bool shiftamt;
        ptx_run run;
    } rows[] = {
        {"popc", PTX_b32, PTX_u32, false, run_popc_32},      {"popc", PTX_b64, PTX_u32, false, run_popc_64},
        {"clz", PTX_b32, PTX_u32, false, run_clz_32},        {"clz", PTX_b64, PTX_u32, false, run_clz_64},
        {"brev", PTX_b32, PTX_b32, false, run_brev_32},      {"brev", PTX_b64, PTX_b64, false, run_brev_64},
        {"bfind", PTX_u32, PTX_u32, false, run_bfind_u32},   {"bfind", PTX_u64, PTX_u32, false, run_bfind_u64},
        {"bfind", PTX_s32, PTX_u32, false, run_bfind_s32},   {"bfind", PTX_s64, PTX_u32, false, run_bfind_s64},
        {"bfind", PTX_u32, PTX_u32, true, run_shiftamt_u32}, {"bfind", PTX_u64, PTX_u32, true, run_shiftamt_u64},
        {"bfind", PTX_s32, PTX_u32, true, run_shiftamt_s32}, {"bfind", PTX_s64, PTX_u32, true, run_shiftamt_s64},
    };
    const ptx_operand *operands = decoder->statement->operands;
    ptx_op *op = decoder->op;
    ptx_type type = ptx_type_at(decoder, 0);
    bool shiftamt = ptx_take(decoder, PTX_M_SHIFTAMT);
    ptx_expect_types(decoder, 1);
    ptx_expect_operands(decoder, 2, 2);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].opcode, decoder->statement->opcode) != 0 || rows[i].type != type ||
            rows[i].shiftamt != shiftamt)
            continue;
        op->run = rows[i].run;
        op->d[0] = ptx_result(decoder, &operands[0], rows[i].result);
        op->s[0] = ptx_source(decoder, &operands[1], type);
        return;
    }
    ptx_refuse(decoder, "it has no type %s, or not with this modifier", ptx_type_name(type));
}

/* ---- bfe, bfi: fields that reach beyond the top are cut there. The ISA says nothing of positions and lengths beyond
 * 255; as was recorded on an H100, those of 32 bits count modulo 256, those of 64 bits as they are ---- */

static inline uint64_t amount(uint32_t written, uint32_t bits) {
    return bits == 32 ? written & 255 : written;
}

static inline uint64_t low_bits(uint64_t count) {
    return count >= 64 ? UINT64_MAX : (1ull << count) - 1;
}

static uint64_t extract(uint64_t a, uint64_t position, uint64_t length, uint32_t bits, bool is_signed) {
    uint64_t present = position >= bits ? 0 : length < bits - position ? length : bits - position;
    uint64_t field = present ? a >> position & low_bits(present) : 0;
    if (!is_signed || length == 0) return field;
    uint64_t last = position + length - 1;
    bool sign = a >> (last < bits ? last : bits - 1) & 1;
    return sign ? field | ~low_bits(present) : field;
}

static uint64_t insert(uint64_t a, uint64_t b, uint64_t position, uint64_t length, uint32_t bits) {
    if (position >= bits) return b;
    uint64_t field = low_bits(length) << position;
    return (b & ~field) | (a << position & field);
}

#define EXTRACT(name, type, is_signed)                                                                     \
    static void name(ptx_warp *warp, const ptx_op *op, uint32_t mask) {                                    \
        type *d = PTX_ARRAY(type, op->d[0]);                                                               \
        const type *a = PTX_ARRAY(type, op->s[0]);                                                         \
        const uint32_t *position = PTX_ARRAY(uint32_t, op->s[1]), *length = PTX_ARRAY(uint32_t, op->s[2]); \
        PTX_LANES(d[l] = (type)extract(a[l], amount(position[l], 8 * sizeof(type)),                        \
                                       amount(length[l], 8 * sizeof(type)), 8 * sizeof(type), is_signed)); \
    }
EXTRACT(run_bfe_u32, uint32_t, false)
EXTRACT(run_bfe_u64, uint64_t, false)
EXTRACT(run_bfe_s32, uint32_t, true)
EXTRACT(run_bfe_s64, uint64_t, true)

#define INSERT(name, type)                                                                                 \
    static void name(ptx_warp *warp, const ptx_op *op, uint32_t mask) {                                    \
        type *d = PTX_ARRAY(type, op->d[0]);                                                               \
        const type *a = PTX_ARRAY(type, op->s[0]), *b = PTX_ARRAY(type, op->s[1]);                         \
        const uint32_t *position = PTX_ARRAY(uint32_t, op->s[2]), *length = PTX_ARRAY(uint32_t, op->s[3]); \
        PTX_LANES(d[l] = (type)insert(a[l], b[l], amount(position[l], 8 * sizeof(type)),                   \
                                      amount(length[l], 8 * sizeof(type)), 8 * sizeof(type)));             \
    }
INSERT(run_bfi_32, uint32_t)
INSERT(run_bfi_64, uint64_t)

/* ---- szext: the lowest b bits of a, extended; bmsk: b ones from bit a on ---- */

static uint32_t extend(uint32_t a, uint32_t width, bool clamp, bool is_signed) {
    if (clamp && width >= 32) return a;
    width &= 31;
    uint32_t field = a & (uint32_t)low_bits(width);
    bool sign = is_signed && width && a >> (width - 1) & 1;
    return sign ? field | ~(uint32_t)low_bits(width) : field;
}

static uint32_t ones(uint32_t position, uint32_t width, bool clamp) {
    if (clamp && position >= 32) return 0;
    if (clamp && width >= 32) width = 32;
    if (!clamp) width &= 31;
    return (uint32_t)(low_bits(width) << (position & 31));
}

PTX_BINARY(run_szext_u32, uint32_t, extend(a, b, op->mode, false))
PTX_BINARY(run_szext_s32, uint32_t, extend(a, b, op->mode, true))
PTX_BINARY(run_bmsk, uint32_t, ones(a, b, op->mode))

/* ---- fns: the place of the offset-th one of a mask, upwards from a base or, if negative, downwards ---- */

static uint32_t find_one(uint32_t ones_of, uint32_t base, int32_t offset) {
    if (offset == INT32_MIN) return 0; /* as was recorded on an H100, as is what a base above 31 gives */
    if (base > 31) return 0xffffffffu;
    if (offset == 0) return ones_of >> base & 1 ? base : 0xffffffffu;
    uint32_t left = offset < 0 ? 0 - (uint32_t)offset : (uint32_t)offset;
    for (uint32_t at = base; at<32; offset> 0 ? at++ : at--)
        if (ones_of >> at & 1 && --left == 0) return at;
    return 0xffffffffu;
}

PTX_TERNARY(run_fns, uint32_t, find_one(a, b, (int32_t)c))

void ptx_decode_field(ptx_decoder *decoder) {
    static const int modes[] = {PTX_M_WRAP, PTX_M_CLAMP};
    static const struct {
        const char *opcode;
        ptx_type type;
        uint32_t values, amounts; /* sources of the type, and of u32 behind them */
        bool moded;
        ptx_run run;
    } rows[] = {
        {"bfe", PTX_u32, 1, 2, false, run_bfe_u32},    {"bfe", PTX_u64, 1, 2, false, run_bfe_u64},
        {"bfe", PTX_s32, 1, 2, false, run_bfe_s32},    {"bfe", PTX_s64, 1, 2, false, run_bfe_s64},
        {"bfi", PTX_b32, 2, 2, false, run_bfi_32},     {"bfi", PTX_b64, 2, 2, false, run_bfi_64},
        {"szext", PTX_u32, 1, 1, true, run_szext_u32}, {"szext", PTX_s32, 1, 1, true, run_szext_s32},
        {"bmsk", PTX_b32, 0, 2, true, run_bmsk},       {"fns", PTX_b32, 3, 0, false, run_fns},
    };
    const ptx_operand *operands = decoder->statement->operands;
    ptx_op *op = decoder->op;
    ptx_type type = ptx_type_at(decoder, 0);
    ptx_expect_types(decoder, 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].opcode, decoder->statement->opcode) != 0 || rows[i].type != type) continue;
        uint32_t count = rows[i].values + rows[i].amounts;
        ptx_expect_operands(decoder, count + 1, count + 1);
        if (rows[i].moded) {
            int mode = ptx_take_one(decoder, modes, 2);
            if (mode < 0) ptx_refuse(decoder, "it needs .wrap or .clamp");
            ptx_need(decoder, 70, 76);
            op->mode = (uint32_t)mode;
        }
        op->run = rows[i].run;
        op->d[0] = ptx_result(decoder, &operands[0], type);
        for (uint32_t s = 0; s < count; s++)
            op->s[s] = ptx_source(decoder, &operands[s + 1], s < rows[i].values ? type : PTX_u32);
        return;
    }
    ptx_refuse(decoder, "it has no type %s", ptx_type_name(type));
}
