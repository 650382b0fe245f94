/* Raw instructions of AMX: eight tiles, each of up to 16 rows of 64 bytes, and products of them (Intel, "64 and IA-32
 * Architectures Software Developer's Manual", volume 2, and "Intel Architecture Instruction Set Extensions" for
 * TDPFP16PS). One each. A tile is a literal number, and no compiler keeps anything in tiles that is not told to. */
#ifndef KILN_KERNELS_ARCH_AMX_H
#define KILN_KERNELS_ARCH_AMX_H

#include <stdint.h>

/* The shapes of tiles, as LDTILECFG reads them. */
typedef struct kiln_amx_config {
    uint8_t palette; /* 1: eight tiles of 16 rows of 64 bytes at most */
    uint8_t start_row;
    uint8_t reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} kiln_amx_config;
_Static_assert(sizeof(kiln_amx_config) == 64, "is a line of the cache");

/* Shapes the tiles and makes them 0; and gives them up, which makes a thread's switches cheaper. */
#define KILN_AMX_CONFIGURE(config) __asm__ volatile("ldtilecfg %0" ::"m"(*(config)))
#define KILN_AMX_RELEASE()         __asm__ volatile("tilerelease" ::)

#define KILN_AMX_ZERO(tile) __asm__ volatile("tilezero %%tmm" #tile ::)

/* Rows `stride` bytes apart, both ways. */
#define KILN_AMX_LOAD(tile, rows, stride) \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile ::"r"(rows), "r"((int64_t)(stride)) : "memory")
#define KILN_AMX_STORE(tile, rows, stride) \
    __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)" ::"r"(rows), "r"((int64_t)(stride)) : "memory")

/* sums[row][column] += the products of row `row` of a with column `column` of b, whose rows have two numbers of k in a
 * column, or four: f32 sums of bf16 or of f16, int32 sums of int8. Assemblers before binutils 2.40 do not know
 * TDPFP16PS: here are its bytes, a prefix of VEX (whose third byte has b, inverted), the opcode and the other operands.
 */
#define KILN_AMX_DOT_BF16(sums, a, b) __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #sums ::)
#define KILN_AMX_DOT_INT8(sums, a, b) __asm__ volatile("tdpbssd %%tmm" #b ", %%tmm" #a ", %%tmm" #sums ::)
#define KILN_AMX_DOT_F16(sums, a, b) \
    __asm__ volatile(".byte 0xc4, 0xe2, 0x7b - 8 * " #b ", 0x5c, 0xc0 + 8 * " #sums " + " #a ::)

#endif
