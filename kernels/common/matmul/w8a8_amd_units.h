/* What the matrix units of AMD chips take of codes of 8 bits (w8a8_amd.h, w8a8_amd_rows.h): where the rows, columns and
 * sums of a product are in a wave, and what becomes of codes before they are multiplied. Which codes of k make a
 * product is the same for both factors, and so their order does not matter. */
#ifndef KILN_KERNELS_COMMON_MATMUL_W8A8_AMD_UNITS_H
#define KILN_KERNELS_COMMON_MATMUL_W8A8_AMD_UNITS_H

#include "kernels/common/matmul/matmul_amd.h"
#include "kernels/common/matmul/matmul_sums_amd.h"

/* ---- Codes ---- */

/* Codes as they are. */
struct codes_plain {
    enum : uint32_t { WIDTH = 1 };
    struct taken { /* 16 codes as they are multiplied */
        kiln_vector of[WIDTH];
    };
    KILN_INLINE taken take(kiln_vector codes) { return {{codes}}; }
    KILN_INLINE void put(kiln_vector codes, kiln_vector *to) { *to = codes; }
    KILN_INLINE float value(int32_t sum) { return (float)sum; }
    KILN_INLINE float value(float sum) { return sum; }
};

/* E4M3 for units of E4M3 FNUZ, which reads the same bits as half the number; but -0 becomes 0, and NaN its NaN:
 * kiln_e4m3_fnuz_of_half of float8.h, of four at once. */
struct codes_fnuz {
    enum : uint32_t { WIDTH = 1 };
    typedef codes_plain::taken taken;
    KILN_INLINE uint32_t fnuz_of(uint32_t codes) {
        const uint32_t magnitudes = codes & 0x7f7f7f7fu, top = 0x80808080u;
        const uint32_t nan = (magnitudes + 0x01010101u) & top, some = magnitudes + 0x7f7f7f7fu;
        const uint32_t numbers = codes & (some | 0x7f7f7f7fu) & ~(nan - (nan >> 7)); /* without the sign of 0 */
        return numbers | nan;
    }
    KILN_INLINE taken take(kiln_vector codes) {
        KILN_UNROLL
        for (uint32_t w = 0; w < 4; w++)
            codes.words[w] = fnuz_of(codes.words[w]);
        return {{codes}};
    }
    KILN_INLINE void put(kiln_vector codes, kiln_vector *to) { *to = take(codes).of[0]; }
    KILN_INLINE float value(float sum) { return sum * 4; }
};

/* E4M3 as f16, exactly, for chips without units of E4M3. A code's bits, moved, are the f16 of the number times 2^-8. No
 * number is subnormal in f16 (gfx90a's units take such for 0). */
struct codes_f16 {
    enum : uint32_t { WIDTH = 2 };
    struct taken {
        kiln_vector of[WIDTH];
    };
    /* The codes in the upper bytes of both halves of a word. nan: their highest bits where they are NaN. */
    KILN_INLINE uint32_t pair_of(uint32_t upper, uint32_t nan) {
        typedef _Float16 half2 __attribute__((ext_vector_type(2)));
        const uint32_t bits = (upper & 0x80008000u) | (upper >> 1 & 0x3f803f80u);
        const half2 numbers = __builtin_bit_cast(half2, bits) * (half2){256, 256};
        return __builtin_bit_cast(uint32_t, numbers) | (nan - (nan >> 5)); /* all of the exponent: 480 becomes NaN */
    }
    KILN_INLINE taken take(kiln_vector codes) {
        taken to;
        KILN_UNROLL
        for (uint32_t w = 0; w < 4; w++) {
            const uint32_t word = codes.words[w], nan = (word & 0x7f7f7f7fu) + 0x01010101u;
            to.of[w / 2].words[w % 2 * 2] = pair_of(word << 8, nan << 8 & 0x80008000u);
            to.of[w / 2].words[w % 2 * 2 + 1] = pair_of(word, nan & 0x80008000u);
        }
        return to;
    }
    KILN_INLINE void put(kiln_vector codes, kiln_vector *to) {
        const taken numbers = take(codes);
        to[0] = numbers.of[0];
        to[1] = numbers.of[1];
    }
    KILN_INLINE float value(float sum) { return sum; }
};

/* ---- Waves ---- */

/* MFMA 32x32. A lane's 16 bytes of a row are its part of several products. */
struct mfma_tile : sums_mfma_32 {
    typedef kiln_vector fragment;
    KILN_INLINE fragment load(const kiln_vector *row, uint32_t lane) {
        typedef uint32_t uint4 __attribute__((ext_vector_type(4)));
        uint4 vector = __builtin_bit_cast(uint4, row[lane % SIDE * ROW_PITCH + lane / SIDE]);
        asm("" : "+v"(vector)); /* else it may be read in halves, which meet banks twice */
        return __builtin_bit_cast(fragment, vector);
    }
};

/* MFMA 16x16. */
struct mfma_rows : sums_mfma_16 {
    enum : uint32_t { PARTS = WAVE / SIDE }; /* vectors of a row that its lanes have, each another */
};

/* WMMA 16x16 of gfx11: both halves of a wave have the same rows. */
struct wmma_gfx11 : sums_gfx11 {
    enum : uint32_t { DIES = 1, PARTS = 1 };
    struct fragment {
        kiln_vector of[2];
    };
    KILN_INLINE fragment load(const kiln_vector *row, uint32_t lane) {
        return {{row[lane % SIDE * ROW_PITCH], row[lane % SIDE * ROW_PITCH + 1]}};
    }
};

/* WMMA 16x16 of gfx12. */
struct wmma_gfx12 : sums_gfx12 {
    enum : uint32_t { DIES = 1, PARTS = 2 };
    typedef kiln_vector fragment;
    KILN_INLINE fragment load(const kiln_vector *row, uint32_t lane) {
        return row[lane % SIDE * ROW_PITCH + lane / SIDE];
    }
};

#endif
