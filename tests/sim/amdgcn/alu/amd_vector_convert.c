/* Conversions of the vector ALU. */
#include "tests/sim/amdgcn/alu/amd_vector.h"
#include <math.h>
#include <string.h>

static int32_t amd_floor_integer(uint32_t mode, uint32_t a, double add) {
    return amd_to_signed(floor(amd_value(AMD_SINGLE, amd_input(AMD_SINGLE, mode, a)) + add), 32);
}

/* A fraction of [-1, 1] or [0, 1] to 16 bits, to nearest even. */
static int32_t amd_normalised_signed(double value) {
    return amd_to_signed(nearbyint(fmax(fmin(value, 1), -1) * 32767), 16) * !isnan(value);
}

static uint32_t amd_normalised_unsigned(double value) {
    return isnan(value) ? 0 : amd_to_unsigned(nearbyint(fmax(fmin(value, 1), 0) * 65535), 16);
}

/* v_cvt_pkrtz cuts whatever MODE says. */
static uint32_t amd_half_cut(uint32_t mode, uint32_t a) {
    return (uint32_t)amd_convert(AMD_HALF, AMD_SINGLE, mode | AMD_ROUND_ZERO << AMD_MODE_ROUND_64, a);
}

/* By MODE's rounding, of which the ISA documents say nothing; public emulators that were held against hardware do so.
 */
static uint32_t amd_rounded_byte(uint32_t mode, uint32_t a) {
    const double value = amd_value(AMD_SINGLE, amd_input(AMD_SINGLE, mode, a));
    const uint32_t rounding = mode >> AMD_MODE_ROUND_32 & 3;
    if (isnan(value)) return 0;
    return amd_to_unsigned(rounding == AMD_ROUND_UP     ? ceil(value)
                           : rounding == AMD_ROUND_DOWN ? floor(value)
                           : rounding == AMD_ROUND_ZERO ? trunc(value)
                                                        : nearbyint(value),
                           8);
}

static uint32_t amd_byte_placed(uint32_t word, uint32_t at, uint32_t byte) {
    return (word & ~(0xffu << 8 * at)) | byte << 8 * at;
}

/* ---- 8 bits ---- */

typedef enum eight { AMD_FP8, AMD_BF8 } eight;

static sim_format format_of(const amd_alu *x, eight kind) {
    static const sim_format formats[2][2] = {{SIM_e4m3fnuz, SIM_e5m2fnuz}, {SIM_e4m3, SIM_e5m2}};
    return formats[x->wave->program->target->major >= 12][kind];
}

static uint32_t bits_of(double value) {
    float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    return isnan(value) ? 0xffc00000u : bits;
}

static uint32_t amd_widened(const amd_alu *x, eight kind, uint32_t byte) {
    return bits_of(sim_decode(format_of(x, kind), byte & 0xff));
}

/* SDWA has selected the byte already. */
static uint32_t amd_byte_read(const amd_alu *x) {
    return 8u * x->op->byte_select;
}

static uint64_t amd_widened_pair(const amd_alu *x, eight kind, uint32_t word) {
    uint32_t half = word >> (x->op->op_sel & 1 ? 16 : 0);
    return amd_widened(x, kind, half) | (uint64_t)amd_widened(x, kind, half >> 8) << 32;
}

static uint32_t narrowed(const amd_alu *x, eight kind, uint32_t a) {
    return sim_encode(format_of(x, kind), amd_value(AMD_SINGLE, a), SIM_ROUND_NEAREST_EVEN, false) & 0xff;
}

static uint32_t amd_narrowed_pair(const amd_alu *x, eight kind, uint32_t a, uint32_t b, uint32_t old) {
    uint32_t pair = narrowed(x, kind, a) | narrowed(x, kind, b) << 8;
    return x->op->op_sel >> 2 & 1 ? (old & 0xffff) | pair << 16 : (old & 0xffff0000) | pair;
}

/* Noise is added to the mantissa, which wraps. */
static uint32_t amd_narrowed_noise(const amd_alu *x, eight kind, uint32_t a, uint32_t noise, uint32_t old) {
    uint32_t noisy = (a & 0xff800000) | ((a + noise) & 0x7fffff);
    uint32_t shift = 8u * (x->op->byte_select | (x->op->op_sel >> 2 & 3));
    return (old & ~(0xffu << shift)) | narrowed(x, kind, noisy) << shift;
}

#define AMD_ALU(name, d, a, b, c, value)  AMD_ALU_BODY(name, 0, d, a, b, c, AMD_ALU_STORE(d, value))
#define AMD_ALU_ACC(name, d, a, b, value) AMD_ALU_BODY(name, AMD_ALU_ADDS, d, a, b, d, AMD_ALU_STORE(d, value))
#define AMD_ALU_PARTS                     AMD_ALU
#define AMD_ALU_ACC_PARTS                 AMD_ALU_ACC
#include "tests/sim/amdgcn/alu/amd_vector_convert.def"
