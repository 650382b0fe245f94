/* cvt to packed types: from two f32, whose first becomes the upper element, or from another packed type. Elements of 6
 * bits stand in bytes. */
#include "tests/sim/ptx/alu/ptx_float.h"
#include <math.h>
#include <string.h>

/* The elements of a packed type. */
typedef struct packed {
    ptx_type type;
    sim_format format;
    uint32_t bits; /* of an element, and zeros above it */
    uint32_t mask; /* of the element alone */
    uint32_t nan;  /* what NaN becomes */
} packed;

static const packed packed_types[] = {
    {PTX_f16x2, SIM_f16, 16, 0xffff, 0x7fff},
    {PTX_bf16x2, SIM_bf16, 16, 0xffff, 0x7fff},
    {PTX_e4m3x2, SIM_e4m3, 8, 0xff, 0x7f},
    {PTX_e5m2x2, SIM_e5m2, 8, 0xff, 0x7f},
    {PTX_e2m1x2, SIM_e2m1, 4, 0xf, 0x7},
    {PTX_e2m3x2, SIM_e2m3, 8, 0x3f, 0x1f},
    {PTX_e3m2x2, SIM_e3m2, 8, 0x3f, 0x1f},
    {PTX_ue8m0x2, SIM_FORMAT_COUNT, 8, 0xff, 0xff}, /* no format of sim_float's table */
};

/* f32 as the source's type is two of them. family: of the targets that end in a or f only. */
static const struct row {
    ptx_type to, from;
    uint32_t target, version;
    bool family;
    bool toward_zero; /* .rz beside .rn; of ue8m0x2: .rz and .rp */
    bool relu;
    enum { FINITE_NEVER, FINITE_MAY, FINITE_MUST } finite;
} rows[] = {
    {PTX_f16x2, PTX_f32, 80, 70, false, true, true, FINITE_MAY},
    {PTX_bf16x2, PTX_f32, 80, 70, false, true, true, FINITE_MAY},
    {PTX_e4m3x2, PTX_f32, 89, 81, false, false, true, FINITE_MUST},
    {PTX_e5m2x2, PTX_f32, 89, 81, false, false, true, FINITE_MUST},
    {PTX_e4m3x2, PTX_f16x2, 89, 81, false, false, true, FINITE_MUST},
    {PTX_e5m2x2, PTX_f16x2, 89, 81, false, false, true, FINITE_MUST},
    {PTX_f16x2, PTX_e4m3x2, 89, 81, false, false, true, FINITE_NEVER},
    {PTX_f16x2, PTX_e5m2x2, 89, 81, false, false, true, FINITE_NEVER},
    {PTX_e2m1x2, PTX_f32, 100, 86, true, false, true, FINITE_MUST},
    {PTX_e2m1x2, PTX_f16x2, 100, 86, true, false, true, FINITE_MUST},
    {PTX_f16x2, PTX_e2m1x2, 100, 86, true, false, true, FINITE_NEVER},
    {PTX_e2m3x2, PTX_f32, 100, 86, true, false, true, FINITE_MUST},
    {PTX_e3m2x2, PTX_f32, 100, 86, true, false, true, FINITE_MUST},
    {PTX_f16x2, PTX_e2m3x2, 100, 86, true, false, true, FINITE_NEVER},
    {PTX_f16x2, PTX_e3m2x2, 100, 86, true, false, true, FINITE_NEVER},
    {PTX_ue8m0x2, PTX_f32, 100, 86, true, true, false, FINITE_MAY},
    {PTX_ue8m0x2, PTX_bf16x2, 100, 86, true, true, false, FINITE_MAY},
    {PTX_bf16x2, PTX_ue8m0x2, 100, 86, true, false, false, FINITE_NEVER},
};

static const packed *packed_of(ptx_type type) {
    for (size_t i = 0; i < sizeof packed_types / sizeof *packed_types; i++)
        if (packed_types[i].type == type) return &packed_types[i];
    return NULL;
}

/* Without .satfinite what is beyond 2^127 is NaN. */
static uint32_t encode_power(double value, const ptx_op *op) {
    sim_rounding rounding = (sim_rounding)op->mode;
    bool beyond = isinf(value) || (rounding == SIM_ROUND_UP && fabs(value) > 0x1p127);
    if (beyond && !(op->flags & PTX_F_SATFINITE)) return 0xff;
    return sim_ue8m0_encode(value, rounding);
}

static uint32_t encode(const packed *to, double value, const ptx_op *op) {
    if (to->bits == 16) return ptx_narrow_store(to->format, value, (sim_rounding)op->mode, op->flags);
    if (isnan(value)) return to->nan;
    if (to->type == PTX_ue8m0x2) return encode_power(value, op);
    if (op->flags & PTX_F_RELU && value <= 0) value = 0;
    return sim_encode(to->format, value, (sim_rounding)op->mode, op->flags & PTX_F_SATFINITE);
}

static double decode(const packed *from, uint32_t bits) {
    bits &= from->mask;
    if (from->bits == 16) return ptx_narrow_load(from->format, bits, 0);
    return from->type == PTX_ue8m0x2 ? sim_ue8m0_decode((uint8_t)bits) : sim_decode(from->format, bits);
}

static uint32_t load(const ptx_warp *warp, uint32_t place, uint32_t bits, int l) {
    return bits == 8    ? PTX_ARRAY(uint8_t, place)[l]
           : bits == 16 ? PTX_ARRAY(uint16_t, place)[l]
                        : PTX_ARRAY(uint32_t, place)[l];
}

static void store(ptx_warp *warp, uint32_t place, uint32_t bits, int l, uint32_t value) {
    if (bits == 8)
        PTX_ARRAY(uint8_t, place)[l] = (uint8_t)value;
    else if (bits == 16)
        PTX_ARRAY(uint16_t, place)[l] = (uint16_t)value;
    else
        PTX_ARRAY(uint32_t, place)[l] = value;
}

static void run_pack(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    const packed *to = packed_of(op->type);
    const float *high = PTX_ARRAY(float, op->s[0]), *low = PTX_ARRAY(float, op->s[1]);
    PTX_LANES({
        uint32_t upper = encode(to, (double)high[l], op);
        uint32_t lower = encode(to, (double)low[l], op);
        store(warp, op->d[0], to->bits * 2, l, upper << to->bits | lower);
    });
}

/* Stochastic rounding adds random bits below the last place of the result and cuts: 13 bits for f16, 16 for bf16, from
 * the upper half of the third source for the upper element, and from its lower half for the lower. */
static uint32_t encode_random(const packed *to, float value, uint32_t random, const ptx_op *op) {
    int count = to->type == PTX_f16x2 ? 13 : 16, least = to->type == PTX_f16x2 ? -13 : -125, exponent;
    double limit = to->type == PTX_f16x2 ? 0x1p16 : 0x1p128, magnitude = fabs((double)value);
    if (isnan(value) || isinf(value) || value == 0) return encode(to, (double)value, op);
    frexp(magnitude, &exponent);
    exponent = (exponent > least ? exponent : least) - (to->type == PTX_f16x2 ? 11 : 8); /* of the last place */
    magnitude += ldexp(random & ((1u << count) - 1), exponent - count);
    if (magnitude >= limit) magnitude = INFINITY;
    return encode(to, copysign(magnitude, (double)value), op);
}

static void run_pack_random(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    const packed *to = packed_of(op->type);
    const float *high = PTX_ARRAY(float, op->s[0]), *low = PTX_ARRAY(float, op->s[1]);
    const uint32_t *random = PTX_ARRAY(uint32_t, op->s[2]);
    PTX_LANES({
        uint32_t upper = encode_random(to, high[l], random[l] >> 16, op);
        uint32_t lower = encode_random(to, low[l], random[l], op);
        store(warp, op->d[0], 32, l, upper << 16 | lower);
    });
}

static void run_repack(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    const packed *to = packed_of(op->type), *from = packed_of(op->from);
    PTX_LANES({
        uint32_t both = load(warp, op->s[0], from->bits * 2, l);
        uint32_t upper = encode(to, decode(from, both >> from->bits), op);
        uint32_t lower = encode(to, decode(from, both), op);
        store(warp, op->d[0], to->bits * 2, l, upper << to->bits | lower);
    });
}

static const struct row *row_of(ptx_decoder *decoder) {
    ptx_type to = decoder->op->type, from = decoder->op->from;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].to == to && rows[i].from == from) return &rows[i];
    ptx_refuse(decoder, "%s from %s is not simulated", ptx_type_name(to), ptx_type_name(from));
}

static void check_target(ptx_decoder *decoder, const struct row *row) {
    const char *target = decoder->program->module->target;
    char last = target[strlen(target) - 1];
    /* sm_90 had the conversions to 8 bits before sm_89. */
    bool early = row->target == 89 && strncmp(target, "sm_89", 5) != 0;
    ptx_need(decoder, row->target, early ? 78 : row->version);
    if (row->family && last != 'a' && last != 'f') ptx_refuse(decoder, "needs a target like sm_100a or sm_100f");
}

static void check_modifiers(ptx_decoder *decoder, const struct row *row) {
    ptx_op *op = decoder->op;
    sim_rounding rounding = ptx_take_rounding(decoder, -1);
    bool power = row->to == PTX_ue8m0x2;
    bool good = power ? rounding == SIM_ROUND_ZERO || rounding == SIM_ROUND_UP
                      : rounding == SIM_ROUND_NEAREST_EVEN || (row->toward_zero && rounding == SIM_ROUND_ZERO);
    if (!good) ptx_refuse(decoder, "it has no such rounding");
    op->mode = (uint32_t)rounding;
    if (row->relu) ptx_take_flag(decoder, PTX_M_RELU, PTX_F_RELU);
    if (row->finite != FINITE_NEVER) ptx_take_flag(decoder, PTX_M_SATFINITE, PTX_F_SATFINITE);
    bool finite = op->flags & PTX_F_SATFINITE;
    if (row->finite == FINITE_MUST && !finite) ptx_refuse(decoder, "it needs .satfinite");
    if (finite && row->target == 80) ptx_need(decoder, 80, 81);
}

/* cvt.rs.{f16x2,bf16x2}.f32 d, a, b, random bits: of targets that end in a, but not of sm_120. */
static void decode_random(ptx_decoder *decoder) {
    const ptx_operand *operands = decoder->statement->operands;
    ptx_op *op = decoder->op;
    const char *target = decoder->program->module->target;
    if ((op->type != PTX_f16x2 && op->type != PTX_bf16x2) || op->from != PTX_f32)
        ptx_refuse(decoder, "only f16x2 and bf16x2 are simulated with .rs");
    ptx_need(decoder, 100, 87);
    if (target[strlen(target) - 1] != 'a' || strncmp(target, "sm_10", 5) != 0)
        ptx_refuse(decoder, "needs a target like sm_100a");
    ptx_take_flag(decoder, PTX_M_RELU, PTX_F_RELU);
    ptx_take_flag(decoder, PTX_M_SATFINITE, PTX_F_SATFINITE);
    ptx_expect_operands(decoder, 4, 4);
    if (operands[3].kind != PTX_OPERAND_REGISTER) ptx_refuse(decoder, "its random bits must be a register");
    op->mode = SIM_ROUND_ZERO;
    op->run = run_pack_random;
    op->d[0] = ptx_result(decoder, &operands[0], op->type);
    for (uint32_t i = 0; i < 3; i++)
        op->s[i] = ptx_source(decoder, &operands[i + 1], i < 2 ? PTX_f32 : PTX_b32);
}

void ptx_decode_convert_packed(ptx_decoder *decoder) {
    ptx_op *op = decoder->op;
    const ptx_operand *operands = decoder->statement->operands;
    if (ptx_take(decoder, PTX_M_RS)) {
        decode_random(decoder);
        return;
    }
    const struct row *row = row_of(decoder);
    uint32_t sources = op->from == PTX_f32 ? 2 : 1;
    check_target(decoder, row);
    check_modifiers(decoder, row);
    ptx_expect_operands(decoder, sources + 1, sources + 1);
    op->d[0] = ptx_result(decoder, &operands[0], op->type);
    for (uint32_t i = 0; i < sources; i++)
        op->s[i] = ptx_source(decoder, &operands[i + 1], op->from);
    op->run = sources == 2 ? run_pack : run_repack;
}
