/* The scalar ALU: each row of amd_scalar.def becomes a function. */
#include "tests/sim/amdgcn/amd_wave.h"

static uint64_t amd_field(uint64_t value, uint32_t offset, uint32_t width) {
    value >>= offset;
    return width >= 64 ? value : value & ((1ull << width) - 1);
}

static uint64_t amd_signed_field(int64_t value, uint32_t offset, uint32_t width) {
    uint64_t shifted = (uint64_t)(value >> offset);
    if (!width || width >= 64) return width ? shifted : 0;
    return (uint64_t)((int64_t)(shifted << (64 - width)) >> (64 - width));
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
#define AMD_SALU_COMPARE(mnemonic, bits, condition)             \
    void amd_run_##mnemonic(amd_wave *wave, const amd_op *op) { \
        const uint##bits##_t a = READ(bits, 0);                 \
        const uint##bits##_t b = READ(bits, 1);                 \
        wave->scc = (condition) != 0;                           \
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
#define AMD_SALU_OTHER(mnemonic, handler, mode)
#include "tests/sim/amdgcn/amd_scalar.def"
