/* The scalar ALU: each row of amd_scalar.def becomes a function. */
#include "tests/sim/amdgcn/alu/amd_float.h"
#include "tests/sim/amdgcn/wave/amd_wave.h"

static uint64_t amd_field(uint64_t value, uint32_t offset, uint32_t width) {
    value >>= offset;
    return width >= 64 ? value : value & ((1ull << width) - 1);
}

static uint64_t amd_signed_field(int64_t value, uint32_t offset, uint32_t width) {
    uint64_t shifted = (uint64_t)(value >> offset);
    if (!width || width >= 64) return width ? shifted : 0;
    return (uint64_t)((int64_t)(shifted << (64 - width)) >> (64 - width));
}

static uint64_t amd_reverse(uint64_t value) {
    uint64_t reversed = 0;
    for (uint32_t i = 0; i < 64; i++)
        reversed |= (value >> i & 1) << (63 - i);
    return reversed;
}

/* Each bit twice. */
static uint64_t amd_replicate(uint32_t value) {
    uint64_t twice = 0;
    for (uint32_t i = 0; i < 32; i++)
        twice |= (uint64_t)(value >> i & 1) * 3 << 2 * i;
    return twice;
}

/* A bit for each four bits of which any is set; and those four bits, all set. */
static uint64_t amd_quads(uint64_t value) {
    uint64_t quads = 0;
    for (uint32_t i = 0; i < 16; i++)
        quads |= (uint64_t)((value >> 4 * i & 15) != 0) << i;
    return quads;
}

static uint64_t amd_whole_quads(uint64_t value) {
    uint64_t whole = 0;
    for (uint32_t i = 0; i < 16; i++)
        whole |= (value >> 4 * i & 15 ? 15ull : 0) << 4 * i;
    return whole;
}

/* How many leading bits are as the sign is; -1 if all are. */
static uint32_t amd_sign_bits(int64_t value, uint32_t width) {
    uint64_t differ = (uint64_t)(value ^ (value < 0 ? -1 : 0));
    return differ ? width - 64 + (uint32_t)__builtin_clzll(differ) : ~0u;
}

/* The lower or upper of two, where a number wins against every NaN. */
static uint64_t amd_number(amd_format format, uint32_t mode, uint64_t a, uint64_t b,
                           uint64_t (*choose)(amd_format, uint32_t, uint64_t, uint64_t)) {
    if (amd_is_nan(format, a) && amd_is_nan(format, b)) return a | amd_quiet(format);
    return choose(format, mode & ~(uint32_t)AMD_MODE_IEEE, a, b);
}

#define READ(bits, number) amd_read##bits(wave, &op->operand[number])

/* Sources are read in full before SCC and the result are written. An absent b reads as 0. */
#define AMD_SALU(mnemonic, bits, a_bits, b_bits, result, new_scc) \
    void amd_run_##mnemonic(amd_wave *wave, const amd_op *op) {   \
        const uint##a_bits##_t a = READ(a_bits, 1);               \
        const uint##b_bits##_t b = READ(b_bits, 2);               \
        const bool scc = wave->scc;                               \
        (void)a, (void)b, (void)scc;                              \
        const uint##bits##_t d = (uint##bits##_t)(result);        \
        wave->scc = (new_scc) != 0;                               \
        amd_write##bits(wave, &op->operand[0], d);                \
    }
#define AMD_SALU_UPDATE(mnemonic, bits, a_bits, result, new_scc) \
    void amd_run_##mnemonic(amd_wave *wave, const amd_op *op) {  \
        const uint##a_bits##_t a = READ(a_bits, 1);              \
        const uint##bits##_t old = READ(bits, 0);                \
        const bool scc = wave->scc;                              \
        const uint##bits##_t d = (uint##bits##_t)(result);       \
        wave->scc = (new_scc) != 0;                              \
        amd_write##bits(wave, &op->operand[0], d);               \
    }
#define AMD_SALU_K(mnemonic, result, new_scc)                   \
    void amd_run_##mnemonic(amd_wave *wave, const amd_op *op) { \
        const uint32_t a = READ(32, 0);                         \
        const uint32_t b = (uint32_t)(int16_t)op->immediate;    \
        const bool scc = wave->scc;                             \
        (void)a, (void)scc;                                     \
        const uint32_t d = result;                              \
        wave->scc = (new_scc) != 0;                             \
        amd_write32(wave, &op->operand[0], d);                  \
    }
#define AMD_SALU_COMPARE(mnemonic, a_bits, b_bits, condition)   \
    void amd_run_##mnemonic(amd_wave *wave, const amd_op *op) { \
        const uint##a_bits##_t a = READ(a_bits, 0);             \
        const uint##b_bits##_t b = READ(b_bits, 1);             \
        wave->scc = (condition) != 0;                           \
    }
#define AMD_SALU_COMPARE_K(mnemonic, condition)                 \
    void amd_run_##mnemonic(amd_wave *wave, const amd_op *op) { \
        const uint32_t a = READ(32, 0);                         \
        const uint32_t b = (uint32_t)(int16_t)op->immediate;    \
        wave->scc = (condition) != 0;                           \
    }
#define AMD_SALU_FLOAT(mnemonic, bits, result)                        \
    void amd_run_##mnemonic(amd_wave *wave, const amd_op *op) {       \
        const uint32_t mode = wave->mode | AMD_MODE_IEEE;             \
        const uint32_t a = READ(bits, 1), b = READ(bits, 2);          \
        const uint32_t c = READ(bits, op->operand_count > 3 ? 3 : 0); \
        (void)mode, (void)b, (void)c;                                 \
        amd_write32(wave, &op->operand[0], (uint32_t)(result));       \
    }
#define AMD_SALU_FLOAT_COMPARE(mnemonic, bits, format, condition)                                    \
    void amd_run_##mnemonic(amd_wave *wave, const amd_op *op) {                                      \
        const int r = amd_compare(format, wave->mode | AMD_MODE_IEEE, READ(bits, 0), READ(bits, 1)); \
        wave->scc = condition;                                                                       \
    }
#define AMD_SALU_SAVEEXEC(mnemonic, bits, result)                                                    \
    void amd_run_##mnemonic(amd_wave *wave, const amd_op *op) {                                      \
        static const amd_operand exec = {.kind = AMD_OPERAND_SCALAR, .index = AMD_EXEC, .count = 2}; \
        const uint##bits##_t a = READ(bits, 1);                                                      \
        const uint##bits##_t d = amd_read##bits(wave, &exec);                                        \
        const uint##bits##_t left = result;                                                          \
        amd_write##bits(wave, &op->operand[0], d);                                                   \
        amd_write##bits(wave, &exec, left);                                                          \
        wave->scc = left != 0;                                                                       \
    }
#define AMD_SALU_WREXEC(mnemonic, bits, result)                                                      \
    void amd_run_##mnemonic(amd_wave *wave, const amd_op *op) {                                      \
        static const amd_operand exec = {.kind = AMD_OPERAND_SCALAR, .index = AMD_EXEC, .count = 2}; \
        const uint##bits##_t a = READ(bits, 1);                                                      \
        const uint##bits##_t d = amd_read##bits(wave, &exec);                                        \
        const uint##bits##_t left = result;                                                          \
        amd_write##bits(wave, &op->operand[0], left);                                                \
        amd_write##bits(wave, &exec, left);                                                          \
        wave->scc = left != 0;                                                                       \
    }
#define AMD_SALU_OTHER(mnemonic, handler, mode)
#include "tests/sim/amdgcn/alu/amd_scalar.def"
