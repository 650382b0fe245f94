/* cvt between scalar types. (PTX ISA, "Data Movement and Conversion Instructions: cvt".) Packed ones are in
 * ptx_convert_packed.c. */
#include "tests/sim/ptx/alu/ptx_float.h"
#include <math.h>
#include <string.h>

/* ---- Integers in registers that may be wider than the type ---- */

/* The integers of all lanes, widened to 64 bits; a u64 by its bits. */
static void load_integers(const ptx_warp *warp, uint32_t place, uint32_t register_bits, ptx_type type, int64_t *out) {
#define LOAD(source)                                   \
    do {                                               \
        const source *from = PTX_ARRAY(source, place); \
        for (int l = 0; l < PTX_WARP; l++)             \
            out[l] = (int64_t)from[l];                 \
    } while (0)
#define NARROW(to)                         \
    do {                                   \
        for (int l = 0; l < PTX_WARP; l++) \
            out[l] = (int64_t)(to)out[l];  \
    } while (0)
    switch (register_bits) {
    case 8:
        LOAD(uint8_t);
        break;
    case 16:
        LOAD(uint16_t);
        break;
    case 32:
        LOAD(uint32_t);
        break;
    default:
        LOAD(int64_t);
    }
    switch (type) {
    case PTX_u8:
        NARROW(uint8_t);
        break;
    case PTX_s8:
        NARROW(int8_t);
        break;
    case PTX_u16:
        NARROW(uint16_t);
        break;
    case PTX_s16:
        NARROW(int16_t);
        break;
    case PTX_u32:
        NARROW(uint32_t);
        break;
    case PTX_s32:
        NARROW(int32_t);
        break;
    default:
        break;
    }
#undef LOAD
#undef NARROW
}

static bool is_signed(ptx_type type) {
    return ptx_type_class_of(type) == PTX_CLASS_SIGNED;
}

/* Cuts to the type, and extends to the register by the type's sign. */
static void store_integers(ptx_warp *warp, const ptx_op *op, uint32_t mask, const int64_t *values) {
    uint32_t cut = 64 - ptx_type_bits(op->type);
    int64_t extended[PTX_WARP];
    for (int l = 0; l < PTX_WARP; l++) {
        uint64_t top = (uint64_t)values[l] << cut;
        extended[l] = is_signed(op->type) ? (int64_t)top >> cut : (int64_t)(top >> cut);
    }
#define STORE(target)                            \
    do {                                         \
        target *d = PTX_ARRAY(target, op->d[0]); \
        PTX_LANES(d[l] = (target)extended[l]);   \
    } while (0)
    switch (op->bits[PTX_SOURCES]) {
    case 8:
        STORE(uint8_t);
        break;
    case 16:
        STORE(uint16_t);
        break;
    case 32:
        STORE(uint32_t);
        break;
    default:
        STORE(uint64_t);
    }
#undef STORE
}

static int64_t least(ptx_type type) {
    return is_signed(type) ? (int64_t)(~0ull << (ptx_type_bits(type) - 1)) : 0;
}

/* As bits: of u64 all ones. */
static uint64_t greatest(ptx_type type) {
    return ~0ull >> (64 - ptx_type_bits(type) + is_signed(type));
}

static int64_t clamp(int64_t value, ptx_type to, ptx_type from) {
    bool huge = value < 0 && !is_signed(from); /* a u64 of 2^63 or more */
    if (value < 0 && !huge) return value < least(to) ? least(to) : value;
    return (uint64_t)value > greatest(to) ? (int64_t)greatest(to) : value;
}

static void run_integer(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    int64_t values[PTX_WARP];
    load_integers(warp, op->s[0], op->bits[0], op->from, values);
    if (op->flags & PTX_F_SAT)
        for (int l = 0; l < PTX_WARP; l++)
            values[l] = clamp(values[l], op->type, op->from);
    store_integers(warp, op, mask, values);
}

/* ---- Integer to floating point ---- */

/* An integer as an f64 rounded to odd: below 2^53 it is exact, above enough digits stay for any narrower format. */
static double integer_to_odd(int64_t value, bool negative) {
    uint64_t magnitude = negative ? 0 - (uint64_t)value : (uint64_t)value;
    if (magnitude >> 53) magnitude = (magnitude & ~0x7ffull) | (magnitude & 0x7ff ? 0x800 : 0);
    return negative ? -(double)magnitude : (double)magnitude;
}

static void run_to_narrow(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    sim_format format = ptx_format_of(op->type);
    int64_t values[PTX_WARP];
    load_integers(warp, op->s[0], op->bits[0], op->from, values);
    void *d = PTX_ARRAY(void, op->d[0]);
    PTX_LANES({
        double value = integer_to_odd(values[l], is_signed(op->from) && values[l] < 0);
        uint32_t bits = ptx_narrow_store(format, value, (sim_rounding)op->mode, op->flags & ~(uint32_t)PTX_F_FTZ);
        ptx_element_set(d, format, (uint32_t)l, bits);
    });
}

/* The halves of the integer are exact, and their sum rounds once. */
static void run_to_double(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    int64_t values[PTX_WARP];
    double upper[PTX_WARP], lower[PTX_WARP], *d = PTX_ARRAY(double, op->d[0]);
    load_integers(warp, op->s[0], op->bits[0], op->from, values);
    for (int l = 0; l < PTX_WARP; l++) {
        bool negative = is_signed(op->from) && values[l] < 0;
        uint64_t magnitude = negative ? 0 - (uint64_t)values[l] : (uint64_t)values[l];
        upper[l] = (double)(magnitude >> 32) * (negative ? -0x1p32 : 0x1p32);
        lower[l] = (double)(uint32_t)magnitude * (negative ? -1 : 1);
    }
    double *volatile high = upper; /* to be read under the rounding mode */
    ptx_host_rounding((sim_rounding)op->mode);
    PTX_LANES(double sum = high[l] + lower[l]; d[l] = sum != 0 ? sum : 0);
    ptx_host_rounding(SIM_ROUND_NEAREST_EVEN);
    if (op->flags & PTX_F_SAT) PTX_LANES(d[l] = d[l] > 0 ? fmin(d[l], 1) : 0);
}

/* ---- From floating point ---- */

static double load_real(const ptx_warp *warp, const ptx_op *op, int l) {
    if (op->from == PTX_f64) return PTX_ARRAY(double, op->s[0])[l];
    sim_format format = ptx_format_of(op->from);
    /* .ftz is about f32 alone, and not about one that becomes an f16, as was recorded on an H100. */
    uint32_t flags = format == SIM_f32 && op->type != PTX_f16 ? op->flags : 0;
    return ptx_narrow_load(format, ptx_element(PTX_ARRAY(void, op->s[0]), format, (uint32_t)l), flags);
}

static double round_to_integer(double value, sim_rounding rounding) {
    switch (rounding) {
    case SIM_ROUND_ZERO:
        return trunc(value);
    case SIM_ROUND_DOWN:
        return floor(value);
    case SIM_ROUND_UP:
        return ceil(value);
    default:
        return rint(value);
    }
}

/* Beyond the type's range, its end. NaN is 0 between types of at most 32 bits, else the top bit of the result. */
static int64_t to_integer(double value, const ptx_op *op) {
    uint32_t bits = ptx_type_bits(op->type);
    if (isnan(value)) return op->from != PTX_f64 && bits < 64 ? 0 : (int64_t)(1ull << (bits - 1));
    double whole = round_to_integer(value, (sim_rounding)op->mode);
    double limit = ldexp(1, (int)bits - is_signed(op->type));
    if (whole >= limit) return (int64_t)greatest(op->type);
    if (whole <= (double)least(op->type)) return least(op->type);
    return whole < 0x1p63 ? (int64_t)whole : (int64_t)(uint64_t)whole;
}

static void run_to_integer(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    int64_t values[PTX_WARP] = {0};
    PTX_LANES(values[l] = to_integer(load_real(warp, op, l), op));
    store_integers(warp, op, mask, values);
}

/* op->count: rounds to an integer, which the result then is exactly. */
static void run_real(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    sim_rounding rounding = (sim_rounding)op->mode;
    sim_format format = ptx_format_of(op->type);
    uint32_t flags = format == SIM_f32 ? op->flags : op->flags & ~(uint32_t)PTX_F_FTZ;
    void *d = PTX_ARRAY(void, op->d[0]);
    PTX_LANES({
        double value = load_real(warp, op, l);
        if (op->count) value = round_to_integer(value, rounding);
        if (op->type == PTX_f64) {
            if (isnan(value)) value = op->flags & PTX_F_SAT ? 0 : ptx_double_nan();
            if (op->flags & PTX_F_SAT) value = value > 0 ? fmin(value, 1) : 0;
            ((double *)d)[l] = value;
        } else {
            ptx_element_set(d, format, (uint32_t)l, ptx_narrow_store(format, value, rounding, flags));
        }
    });
}

/* The ISA leaves open what a NaN becomes; so was it recorded on an H100: .rna cuts it off, and .satfinite takes one off
 * what stands there. */
static uint32_t nan_of_tf32(const ptx_op *op, uint32_t a) {
    if (op->mode != SIM_ROUND_NEAREST_AWAY) return 0x7fffe000u;
    return (a & ~0x1fffu) - (op->flags & PTX_F_SATFINITE ? 0x2000u : 0);
}

static void run_to_tf32(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    uint32_t *d = PTX_ARRAY(uint32_t, op->d[0]);
    PTX_LANES({
        double value = load_real(warp, op, l);
        uint32_t nan = nan_of_tf32(op, PTX_ARRAY(uint32_t, op->s[0])[l]);
        if (op->flags & PTX_F_RELU && value <= 0) value = 0;
        uint32_t bits = sim_encode(SIM_tf32, value, (sim_rounding)op->mode, op->flags & PTX_F_SATFINITE);
        d[l] = isnan(value) ? nan : bits << 13;
    });
}

/* ---- f16 to f32 and back, which kernels do most ---- */

/* The exponent moves by a multiplication, which is exact and takes care of subnormals. */
static void run_half_to_single(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    const uint16_t *a = PTX_ARRAY(uint16_t, op->s[0]);
    uint32_t bits[PTX_WARP];
    float scaled[PTX_WARP];
    for (int l = 0; l < PTX_WARP; l++)
        bits[l] = (uint32_t)(a[l] & 0x7fff) << 13;
    memcpy(scaled, bits, sizeof scaled);
    for (int l = 0; l < PTX_WARP; l++)
        scaled[l] *= 0x1p112f;
    uint32_t *d = PTX_ARRAY(uint32_t, op->d[0]);
    memcpy(bits, scaled, sizeof bits);
    for (int l = 0; l < PTX_WARP; l++) {
        uint32_t magnitude = a[l] & 0x7fff, sign = (uint32_t)(a[l] & 0x8000) << 16;
        uint32_t special = magnitude > 0x7c00 ? 0x7fffffffu : 0x7f800000u | sign;
        bits[l] = magnitude >= 0x7c00 ? special : bits[l] | sign;
    }
    PTX_LANES(d[l] = bits[l]);
}

/* To nearest even, by the digits that go: in integers where the result is normal, by a sum where it is not. */
static void run_single_to_half(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    const uint32_t *a = PTX_ARRAY(uint32_t, op->s[0]);
    uint16_t *d = PTX_ARRAY(uint16_t, op->d[0]), results[PTX_WARP];
    for (int l = 0; l < PTX_WARP; l++) {
        uint32_t magnitude = a[l] & 0x7fffffffu, sign = a[l] >> 16 & 0x8000u;
        uint32_t rounded = (magnitude + 0xfffu + (magnitude >> 13 & 1)) >> 13;
        float value, sum;
        memcpy(&value, &magnitude, sizeof value);
        sum = value + 0.5f; /* whose last place is 2^-24, as that of subnormal f16 */
        uint32_t bits;
        memcpy(&bits, &sum, sizeof bits);
        uint32_t small = bits - 0x3f000000u, normal = rounded - (112u << 10);
        uint32_t result = magnitude < 0x38800000u ? small : magnitude >= 0x477ff000u ? 0x7c00u : normal;
        results[l] = (uint16_t)(magnitude > 0x7f800000u ? 0x7fffu : result | sign);
    }
    PTX_LANES(d[l] = results[l]);
}

/* ---- Decoding ---- */

static bool is_real(ptx_type type) {
    return type == PTX_f16 || type == PTX_bf16 || type == PTX_f32 || type == PTX_f64;
}

static bool is_integer(ptx_type type) {
    ptx_type_class class = ptx_type_class_of(type);
    return ptx_type_bits(type) >= 8 && (class == PTX_CLASS_UNSIGNED || class == PTX_CLASS_SIGNED);
}

static bool take_whole_rounding(ptx_decoder *decoder, sim_rounding *out_rounding) {
    static const int modifiers[] = {PTX_M_RNI, PTX_M_RZI, PTX_M_RMI, PTX_M_RPI};
    static const sim_rounding roundings[] = {SIM_ROUND_NEAREST_EVEN, SIM_ROUND_ZERO, SIM_ROUND_DOWN, SIM_ROUND_UP};
    int found = ptx_take_one(decoder, modifiers, 4);
    if (found >= 0) *out_rounding = roundings[found];
    return found >= 0;
}

/* Integers may stand in registers wider than their type, but for conversions from and to bf16. */
static void decode_operands(ptx_decoder *decoder) {
    const ptx_operand *operands = decoder->statement->operands;
    ptx_op *op = decoder->op;
    bool brain = op->type == PTX_bf16 || op->from == PTX_bf16;
    ptx_expect_operands(decoder, 2, 2);
    op->bits[PTX_SOURCES] = (uint8_t)ptx_type_bits(op->type);
    op->bits[0] = (uint8_t)ptx_type_bits(op->from);
    if (is_integer(op->type) && !brain)
        op->d[0] = ptx_result_wide(decoder, &operands[0], op->type, &op->bits[PTX_SOURCES]);
    else
        op->d[0] = ptx_result(decoder, &operands[0], op->type);
    if (is_integer(op->from) && !brain)
        op->s[0] = ptx_source_wide(decoder, &operands[1], op->from, &op->bits[0]);
    else
        op->s[0] = ptx_source(decoder, &operands[1], op->from);
}

/* bf16 came to cvt in two steps. */
static void need_brain(ptx_decoder *decoder) {
    ptx_type to = decoder->op->type, from = decoder->op->from;
    if (to != PTX_bf16 && from != PTX_bf16) return;
    if (to == PTX_bf16 && from == PTX_f32)
        ptx_need(decoder, 80, 70);
    else if (to == PTX_f32 && !(decoder->op->flags & PTX_F_FTZ))
        ptx_need(decoder, 80, 71);
    else
        ptx_need(decoder, 90, 78);
}

static void take_saturation(ptx_decoder *decoder) {
    ptx_type to = decoder->op->type, from = decoder->op->from;
    if (to != PTX_bf16 && from != PTX_bf16) ptx_take_flag(decoder, PTX_M_SAT, PTX_F_SAT);
}

static void decode_to_integer(ptx_decoder *decoder) {
    ptx_op *op = decoder->op;
    sim_rounding rounding = SIM_ROUND_NEAREST_EVEN;
    if (!take_whole_rounding(decoder, &rounding)) ptx_refuse(decoder, "it has no rounding to an integer");
    op->mode = (uint32_t)rounding;
    ptx_take(decoder, PTX_M_SAT); /* which it does anyway */
    op->run = run_to_integer;
}

static void decode_from_integer(ptx_decoder *decoder) {
    ptx_op *op = decoder->op;
    op->mode = (uint32_t)ptx_take_rounding(decoder, -1);
    take_saturation(decoder);
    op->run = op->type == PTX_f64 ? run_to_double : run_to_narrow;
}

/* .relu and .satfinite, of f32 to f16 and bf16. */
static void take_relu(ptx_decoder *decoder) {
    ptx_op *op = decoder->op;
    ptx_take_flag(decoder, PTX_M_RELU, PTX_F_RELU);
    ptx_take_flag(decoder, PTX_M_SATFINITE, PTX_F_SATFINITE);
    if (op->flags & PTX_F_RELU) ptx_need(decoder, 80, 70);
    if (op->flags & PTX_F_SATFINITE) ptx_need(decoder, 75, 81);
    if (op->flags & PTX_F_SAT && op->flags & (PTX_F_RELU | PTX_F_SATFINITE))
        ptx_refuse(decoder, ".sat excludes .relu and .satfinite");
    bool directed = op->mode == SIM_ROUND_DOWN || op->mode == SIM_ROUND_UP;
    if (directed && op->flags & (PTX_F_RELU | PTX_F_SATFINITE))
        ptx_refuse(decoder, ".rm and .rp exclude .relu and .satfinite");
}

static void decode_real(ptx_decoder *decoder) {
    ptx_op *op = decoder->op;
    sim_rounding rounding = SIM_ROUND_NEAREST_EVEN;
    bool narrows =
        ptx_type_bits(op->type) < ptx_type_bits(op->from) || (ptx_type_bits(op->type) == 16 && op->from != op->type);
    op->count = op->type == op->from && take_whole_rounding(decoder, &rounding);
    if (narrows) rounding = ptx_take_rounding(decoder, -1);
    op->mode = (uint32_t)rounding;
    take_saturation(decoder);
    if (op->from == PTX_f32 && ptx_type_bits(op->type) == 16) take_relu(decoder);
    op->run = run_real;
    if (op->flags) return;
    if (op->type == PTX_f32 && op->from == PTX_f16) op->run = run_half_to_single;
    if (op->type == PTX_f16 && op->from == PTX_f32 && rounding == SIM_ROUND_NEAREST_EVEN) op->run = run_single_to_half;
}

static void decode_tf32(ptx_decoder *decoder) {
    ptx_op *op = decoder->op;
    if (op->from != PTX_f32) ptx_refuse(decoder, "tf32 is made of f32 only");
    bool away = ptx_take(decoder, PTX_M_RNA);
    sim_rounding rounding = away ? SIM_ROUND_NEAREST_AWAY : ptx_take_rounding(decoder, -1);
    if (rounding == SIM_ROUND_DOWN || rounding == SIM_ROUND_UP) ptx_refuse(decoder, "tf32 has .rn, .rz and .rna");
    ptx_take_flag(decoder, PTX_M_SATFINITE, PTX_F_SATFINITE);
    if (!away) ptx_take_flag(decoder, PTX_M_RELU, PTX_F_RELU);
    bool finite = op->flags & PTX_F_SATFINITE;
    ptx_need(decoder, away ? 80 : finite ? 100 : 90, away ? finite ? 81 : 70 : finite ? 86 : 78);
    op->mode = (uint32_t)rounding;
    op->run = run_to_tf32;
}

void ptx_decode_convert(ptx_decoder *decoder) {
    ptx_op *op = decoder->op;
    if (ptx_take(decoder, PTX_M_PACK)) {
        ptx_decode_pack(decoder);
        return;
    }
    ptx_expect_types(decoder, 2);
    op->type = ptx_type_at(decoder, 0);
    op->from = ptx_type_at(decoder, 1);
    if (ptx_type_class_of(op->type) == PTX_CLASS_PACKED) {
        ptx_decode_convert_packed(decoder);
        return;
    }
    bool from_real = is_real(op->from), to_real = is_real(op->type);
    if ((op->from == PTX_f32 || op->type == PTX_f32)) ptx_take_flag(decoder, PTX_M_FTZ, PTX_F_FTZ);
    if (op->type == PTX_tf32 && from_real) {
        op->flags = 0;
        decode_tf32(decoder);
    } else if (is_integer(op->type) && is_integer(op->from)) {
        ptx_take_flag(decoder, PTX_M_SAT, PTX_F_SAT);
        if (op->flags & PTX_F_SAT && least(op->from) >= least(op->type) && greatest(op->from) <= greatest(op->type))
            ptx_refuse(decoder, "there is nothing to saturate");
        op->run = run_integer;
    } else if (is_integer(op->type) && from_real) {
        decode_to_integer(decoder);
    } else if (to_real && is_integer(op->from)) {
        decode_from_integer(decoder);
    } else if (to_real && from_real) {
        decode_real(decoder);
    } else {
        ptx_refuse(decoder, "%s from %s is not simulated", ptx_type_name(op->type), ptx_type_name(op->from));
    }
    need_brain(decoder);
    decode_operands(decoder);
}
