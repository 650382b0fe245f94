#include "tests/sim/amdgcn/wave/amd_wave.h"
#include "tests/sim/tests/amdgcn/amdgcn_variants.h"

/* The lane that a lane's first source comes from, or -1. */
static int dpp_lane(const variant *v, int l, int lanes) {
    int row = l & ~15, place = l & 15, by = (int)v->dpp_argument;
    switch (v->dpp) {
    case QUAD_PERM:
        return (l & ~3) + (by >> 2 * (l & 3) & 3);
    case ROW_SHL:
        return place + by <= 15 ? l + by : -1;
    case ROW_SHR:
        return place - by >= 0 ? l - by : -1;
    case ROW_ROR:
        return row + (place + 16 - by) % 16;
    case WAVE_SHL:
        return l + 1 < lanes ? l + 1 : -1;
    case WAVE_ROL:
        return l + 1 < lanes ? l + 1 : 0;
    case WAVE_SHR:
        return l - 1;
    case WAVE_ROR:
        return l ? l - 1 : lanes - 1;
    case ROW_MIRROR:
        return row + 15 - place;
    case ROW_HALF_MIRROR:
        return (l & ~7) + 7 - (l & 7);
    case ROW_BCAST_15:
        return row ? row - 1 : -1;
    case ROW_BCAST_31:
        return l >= 32 ? 31 : -1;
    case ROW_NEWBCAST:
    case ROW_SHARE:
        return row + by;
    case ROW_XMASK:
        return row + (place ^ by);
    case DPP_8:
        return (l & ~7) + (by >> 3 * (l & 7) & 7);
    case DPP_KINDS:
        break;
    }
    return -1;
}

/* False if DPP turns the lane off. from: where the first source comes from, -1: it is 0. */
static bool dpp_route(const variant *v, uint64_t exec, int l, int lanes, int *from) {
    bool eight = v->dpp == DPP_8;
    *from = dpp_lane(v, l, lanes);
    if (*from >= 0 && !(exec >> *from & 1) && !v->fetch_inactive) *from = -1;
    if (!eight && !(v->row_mask >> l / 16 & 1)) return false;
    if (!eight && !(v->bank_mask >> l / 4 % 4 & 1)) return false;
    return *from >= 0 || eight || v->bound_control;
}

static uint32_t selected(uint32_t word, int select, bool extend) {
    int width = select == 0   ? 32
                : select <= 4 ? 8
                              : 16,
        shift = select == 0   ? 0
                : select <= 4 ? 8 * (select - 1)
                              : 16 * (select - 5);
    uint32_t part = width == 32 ? word : word >> shift & ((1u << width) - 1);
    bool negative = extend && width < 32 && part >> (width - 1);
    return negative ? part | ~0u << width : part;
}

/* What a constant is to a source of a type: a literal has 32 bits, the upper half of an f64 or an integer without or
 * with its sign. */
static uint64_t constant_bits(const variant *v) {
    variant_type type = v->type[1 + v->constant_at];
    switch (v->constant) {
    case CONSTANT_NEGATIVE:
        return (uint64_t)-7;
    case CONSTANT_POSITIVE:
        return 37;
    case CONSTANT_LITERAL:
        if (type.bits != 64) return VARIANT_CONSTANT_BITS;
        return type.letter == 'f'   ? (uint64_t)VARIANT_CONSTANT_BITS << 32
               : type.letter == 'i' ? UINT64_MAX << 32 | VARIANT_CONSTANT_BITS
                                    : VARIANT_CONSTANT_BITS;
    default:
        return ref_bits(variant_is_pair_of_integers(v, type) ? F32 : variant_format(type),
                        v->constant == CONSTANT_HALF ? 0.5 : -4, EXACT_RN);
    }
}

/* The 64 bits of a source's registers, in a lane or scalar. */
static uint64_t source_words(const variant *v, const amdgcn_registers *r, int i, int lane) {
    if (i == v->constant_at && v->kind == VARIANT_CONSTANT) return constant_bits(v);
    if (i == 1 && v->row->flags & ROW_LITERAL_B) return VARIANT_LITERAL;
    if (i == 2 && v->row->flags & ROW_LITERAL_C) return VARIANT_LITERAL;
    if (i == 0 && v->kind == VARIANT_SCALAR) return r->s[SCALAR_SOURCE] | (uint64_t)r->s[SCALAR_SOURCE + 1] << 32;
    int at = i == 2 && v->row->flags & ROW_ACCUMULATES ? RESULT : SOURCE + 2 * i;
    return lane < 0 ? 0 : r->v[at][lane] | (uint64_t)r->v[at + 1][lane] << 32;
}

static uint64_t source_bits(const variant *v, const amdgcn_registers *r, int i, int lane, int part, ref_mode mode) {
    variant_type type = v->type[1 + i];
    uint64_t words = source_words(v, r, i, lane);
    bool negate = v->negate[i];
    if (v->row->flags & ROW_PACKED) {
        bool upper = part ? v->half_high[i] : v->half[i];
        bool real = v->kind == VARIANT_CONSTANT && i == v->constant_at && v->constant >= CONSTANT_HALF;
        if (real && v->row->flags & ROW_ACCUMULATES && mode.major >= 11) upper = false;
        if (part) negate = v->negate_high[i];
        words >>= upper ? type.bits : 0;
    } else if (type.letter == 'x') {
        if (v->half_high[i])
            words = ref_convert(F32, F16, (ref_mode){mode.bits | 0x1f0, mode.major},
                                words >> (v->half[i] ? 16 : 0) & 0xffff);
    } else if (v->kind == VARIANT_SDWA && i < 2) {
        words = selected((uint32_t)words, v->select[i], v->extend[i]);
    } else if (type.bits == 16 && v->half[i]) {
        words >>= 16;
    }
    uint64_t bits = type.bits == 64 ? words : words & ((1ull << type.bits) - 1);
    if (!variant_has_signs(type)) return bits;
    if (v->absolute[i]) bits &= ~ref_sign(variant_format(type));
    return negate ? bits ^ ref_sign(variant_format(type)) : bits;
}

static uint64_t result_bits(const variant *v, row_wide value, ref_mode mode) {
    variant_type type = v->type[0];
    uint64_t mask = type.bits == 64 ? ~0ull : (1ull << type.bits) - 1;
    if (type.letter == 'f') return ref_modified(variant_format(type), mode, (uint64_t)value & mask, v->omod, v->clamp);
    if (v->clamp) {
        row_wide least = type.letter == 'i' ? -((row_wide)1 << (type.bits - 1)) : 0;
        row_wide most = type.letter == 'i' ? -least - 1 : (row_wide)mask;
        value = value < least ? least : value > most ? most : value;
    }
    return (uint64_t)value & mask;
}

static uint32_t sdwa_placed(const variant *v, uint32_t old, uint32_t value) {
    int s = v->result_select;
    int width = s == 0 ? 32 : s <= 4 ? 8 : 16, shift = s == 0 ? 0 : s <= 4 ? 8 * (s - 1) : 16 * (s - 5);
    if (width == 32) return value;
    uint32_t field = ((1u << width) - 1) << shift, part = value << shift & field;
    if (v->unused == 2) return (old & ~field) | part;
    if (v->unused == 1 && part >> (shift + width - 1) & 1)
        for (int i = shift + width; i < 32; i++)
            part |= 1u << i;
    return part;
}

/* A result of 16 bits in its register. */
static uint32_t half_placed(const variant *v, uint32_t major, uint32_t old, uint32_t value) {
    unsigned flags = v->row->flags;
    if (flags & ROW_UPPER || v->half[ROW_SOURCES]) return (old & 0xffff) | value << 16;
    bool keeps = major >= 10 || (v->sources == 3 && !(flags & ROW_ZEROES)) || flags & ROW_KEEPS;
    return keeps ? (old & 0xffff0000) | value : value;
}

static void lane_expect(const variant *v, uint32_t major, const amdgcn_registers *before, amdgcn_registers *r, int l,
                        int from) {
    row_operands x = {.lane = (uint32_t)l, .mode = {before->mode, major}};
    row_result d = {0};
    uint64_t result = 0;
    int parts = v->row->flags & ROW_PACKED ? 2 : 1;
    int mask = v->in_vcc || v->row->flags & ROW_VCC_IN ? AMD_VCC : MASK_IN;
    x.in = before->s[mask + l / 32] >> l % 32 & 1;
    for (int part = 0; part < parts; part++) {
        for (int i = 0; i < v->sources; i++) {
            variant_type type = v->type[1 + i];
            x.bits[i] = source_bits(v, before, i, i == 0 ? from : l, part, x.mode);
            x.value[i] = (row_wide)x.bits[i];
            if (type.letter == 'i' && x.bits[i] >> (type.bits - 1)) x.value[i] -= (row_wide)1 << type.bits;
        }
        v->row->expect(&x, &d);
        if (!(v->row->flags & ROW_COMPARE)) result |= result_bits(v, d.value, x.mode) << part * v->type[0].bits;
    }
    int marks = v->in_vcc ? AMD_VCC : MASK_OUT;
    if (v->row->flags & (ROW_MASK_OUT | ROW_COMPARE) && !v->maskless)
        r->s[marks + l / 32] |= (uint32_t)d.mark << l % 32;
    if (v->row->flags & ROW_EXEC) r->s[AMD_EXEC + l / 32] |= (uint32_t)d.mark << l % 32;
    if (v->row->flags & ROW_COMPARE) return;
    uint32_t old = before->v[RESULT][l];
    r->v[RESULT][l] = (uint32_t)result;
    if (v->kind == VARIANT_SDWA)
        r->v[RESULT][l] = sdwa_placed(v, old, (uint32_t)result);
    else if (v->type[0].bits == 16 && parts == 1)
        r->v[RESULT][l] = half_placed(v, major, old, (uint32_t)result);
    if (variant_words(v, 0) == 2) r->v[RESULT + 1][l] = (uint32_t)(result >> 32);
}

void variant_expect(const variant *v, const amd_program *program, amdgcn_registers *registers) {
    static amdgcn_registers before;
    int lanes = program->kernels[0].wave32 ? 32 : 64;
    uint64_t exec = registers->s[AMD_EXEC] | (uint64_t)registers->s[AMD_EXEC + 1] << 32;
    before = *registers;
    for (int i = 0; i < lanes / 32; i++) {
        if (v->row->flags & (ROW_MASK_OUT | ROW_COMPARE) && !v->maskless)
            registers->s[(v->in_vcc ? AMD_VCC : MASK_OUT) + i] = 0;
        if (v->row->flags & ROW_EXEC) registers->s[AMD_EXEC + i] = 0;
    }
    for (int l = 0; l < lanes; l++) {
        int from = l;
        bool on = exec >> l & 1;
        if (v->kind == VARIANT_DPP || v->kind == VARIANT_E64_DPP) on = dpp_route(v, exec, l, lanes, &from) && on;
        if (on) lane_expect(v, program->target->major, &before, registers, l, from);
    }
}
