/* vector_search on the CPU: the sums of rows of codes with a query. The plain C function for each kind of code is the
 * definition, and sums the bytes that are left after whole vectors. On x86, AVX2 sums whole vectors; on x86-64-v4, two
 * extensions sum whole rows (VPOPCNTDQ counts bits, VNNI multiplies bytes), if the machine has them, which is checked
 * as the kernel runs.
 *
 * Rows are read once, from the first byte to the last, and prefetched: the processor does not recognise the pattern by
 * itself while rows are this short.
 *
 * Included once, by vector_search_cpu.c. */
#include "kernels/common/cpu.h"
#include "kernels/common/extensions.h"
#include "kernels/vector_search/vector_search_args.h"
#if defined(__AVX2__)
#include "kernels/arch/x86.h"
#endif

enum {
    AHEAD = 8192,          /* bytes, of the prefetch */
    QUERY_STEP = 64,       /* bytes: the codes of queries are filled up to a multiple with codes that add nothing */
    QUERY_BYTES = 48 << 10 /* of a block's queries, which fit into the shared memory of devices too */
};

/* A query as the loops along a row need it. */
typedef struct query_codes {
    const uint8_t *codes; /* bits, or int8; int4 as int8, first the even ones and then the odd ones */
    size_t count, padded; /* bytes of a row, and the same rounded up to a multiple of QUERY_STEP */
    int32_t sum;          /* of the codes, for int8 and int4 */
    uint32_t code_type;
} query_codes;

KILN_INLINE uint32_t query_size(uint32_t count, uint32_t code_type) {
    uint32_t padded = (count + QUERY_STEP - 1) / QUERY_STEP * QUERY_STEP;
    return code_type == KILN_CODE_INT4 ? 2 * padded : padded;
}

static void take_query(query_codes *query, uint8_t *target, const uint8_t *codes, uint32_t count, uint32_t code_type) {
    const uint32_t size = query_size(count, code_type);
    *query = (query_codes){.codes = target, .count = count, .padded = size, .code_type = code_type};
    memset(target, 0, size);
    if (code_type == KILN_CODE_INT4) {
        query->padded = size / 2;
        for (uint32_t i = 0; i < count; i++) {
            target[i] = (uint8_t)((codes[i] & 15) - 8);
            target[query->padded + i] = (uint8_t)((codes[i] >> 4) - 8);
        }
    } else {
        memcpy(target, codes, count);
    }
    for (uint32_t i = 0; i < size && code_type != KILN_CODE_BINARY; i++)
        query->sum += (int8_t)target[i];
}

/* ---- The definitions, for a row from byte i on ---- */

KILN_INLINE int32_t count_bits(const uint8_t *row, const query_codes *query, size_t i) {
    uint64_t bits = 0;
    for (; i + 8 <= query->count; i += 8) {
        uint64_t a, b;
        memcpy(&a, row + i, 8);
        memcpy(&b, query->codes + i, 8);
        bits += (uint64_t)__builtin_popcountll(a ^ b);
    }
    for (; i < query->count; i++)
        bits += (uint64_t)__builtin_popcount((uint32_t)(row[i] ^ query->codes[i]));
    return (int32_t)bits;
}

KILN_INLINE int32_t dot_int8(const uint8_t *row, const query_codes *query, size_t i) {
    const int8_t *a = (const int8_t *)row, *b = (const int8_t *)query->codes;
    int32_t sum = 0;
    for (; i < query->count; i++)
        sum += a[i] * b[i];
    return sum;
}

/* The table's int4 have 8 added. */
KILN_INLINE int32_t dot_int4(const uint8_t *row, const query_codes *query, size_t i) {
    const int8_t *even = (const int8_t *)query->codes, *odd = even + query->padded;
    int32_t sum = 0;
    for (; i < query->count; i++)
        sum += (row[i] & 15) * even[i] + (row[i] >> 4) * odd[i];
    return sum;
}

/* ---- AVX2: adds the products of a vector to four or eight sums ---- */

#if defined(__AVX2__)

KILN_INLINE __m256i load_32(const void *source) {
    return _mm256_loadu_si256(source);
}

KILN_INLINE __m256i count_32(__m256i sums, const uint8_t *row, const uint8_t *codes) {
    const __m256i counts = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4));
    const __m256i low = _mm256_set1_epi8(15), bits = _mm256_xor_si256(load_32(row), load_32(codes));
    const __m256i first = _mm256_shuffle_epi8(counts, _mm256_and_si256(bits, low));
    const __m256i second = _mm256_shuffle_epi8(counts, _mm256_and_si256(_mm256_srli_epi16(bits, 4), low));
    return _mm256_add_epi64(sums, _mm256_sad_epu8(_mm256_add_epi8(first, second), _mm256_setzero_si256()));
}

KILN_INLINE __m256i widen_16(const uint8_t *source) {
    return _mm256_cvtepi8_epi16(_mm_loadu_si128((const void *)source));
}

KILN_INLINE __m256i dot_32_int8(__m256i sums, const uint8_t *row, const uint8_t *codes) {
    const __m256i first = _mm256_madd_epi16(widen_16(row), widen_16(codes));
    const __m256i second = _mm256_madd_epi16(widen_16(row + 16), widen_16(codes + 16));
    return _mm256_add_epi32(sums, _mm256_add_epi32(first, second));
}

KILN_INLINE __m256i dot_32_int4(__m256i sums, const uint8_t *row, const uint8_t *even, const uint8_t *odd) {
    const __m256i low = _mm256_set1_epi8(15), pairs = load_32(row);
    const __m256i first = _mm256_maddubs_epi16(_mm256_and_si256(pairs, low), load_32(even));
    const __m256i second = _mm256_maddubs_epi16(_mm256_and_si256(_mm256_srli_epi16(pairs, 4), low), load_32(odd));
    return _mm256_add_epi32(sums, _mm256_madd_epi16(_mm256_add_epi16(first, second), _mm256_set1_epi16(1)));
}

/* The same of 64-bit sums that are below 2^31. */
KILN_INLINE int32_t total_32(__m256i sums) {
    __m128i half = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
    half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(half, _mm_shuffle_epi32(half, 0xb1)));
}

/* Sums the whole vectors of a row; *i is where they end. */
KILN_INLINE int32_t sum_vectors(const uint8_t *row, const query_codes *query, uint32_t code_type, size_t *i) {
    __m256i sums = _mm256_setzero_si256();
    for (; *i + 32 <= query->count; *i += 32) {
        const uint8_t *codes = query->codes + *i;
        sums = code_type == KILN_CODE_BINARY ? count_32(sums, row + *i, codes)
               : code_type == KILN_CODE_INT8 ? dot_32_int8(sums, row + *i, codes)
                                             : dot_32_int4(sums, row + *i, codes, codes + query->padded);
    }
    return total_32(sums);
}

#else

KILN_INLINE int32_t sum_vectors(const uint8_t *row, const query_codes *query, uint32_t code_type, size_t *i) {
    (void)row, (void)query, (void)code_type, (void)i;
    return 0;
}

#endif

KILN_INLINE void sum_rows_of(int32_t *sums, const query_codes *query, const uint8_t *rows, int64_t stride, size_t count,
                             uint32_t code_type) {
    for (size_t r = 0; r < count; r++, rows += stride) {
        size_t i = 0;
        kiln_prefetch(rows, query->count, AHEAD);
        int32_t sum = sum_vectors(rows, query, code_type, &i);
        sums[r] = code_type == KILN_CODE_BINARY ? sum + count_bits(rows, query, i)
                  : code_type == KILN_CODE_INT8 ? sum + dot_int8(rows, query, i)
                                                : sum + dot_int4(rows, query, i) - 8 * query->sum;
    }
}

/* ---- Extensions of x86-64-v4 ---- */

#if defined(__AVX512BW__)

#define VNNI      __attribute__((target("avx512vnni")))
#define VPOPCNTDQ __attribute__((target("avx512vpopcntdq")))

/* A vector of a row from byte i on, with zeros after its end. */
KILN_INLINE __m512i load_row(const uint8_t *row, size_t i, size_t count) {
    const size_t left = count - i;
    __builtin_prefetch(row + i + AHEAD);
    return _mm512_maskz_loadu_epi8(left >= 64 ? ~0ull : (1ull << left) - 1, row + i);
}

VPOPCNTDQ static void count_rows(int32_t *sums, const query_codes *query, const uint8_t *rows, int64_t stride,
                                 size_t count) {
    for (size_t r = 0; r < count; r++, rows += stride) {
        __m512i sum = _mm512_setzero_si512();
        for (size_t i = 0; i < query->count; i += 64) {
            const __m512i codes = load_row(rows, i, query->count), other = _mm512_loadu_si512(query->codes + i);
            sum = _mm512_add_epi64(sum, _mm512_popcnt_epi64(_mm512_xor_si512(codes, other)));
        }
        sums[r] = (int32_t)_mm512_reduce_add_epi64(sum);
    }
}

/* VNNI multiplies unsigned bytes with signed ones: 128 is added to the table's bytes, and its products are subtracted
 * from the sum. */
VNNI static void dot_rows_int8(int32_t *sums, const query_codes *query, const uint8_t *rows, int64_t stride,
                               size_t count) {
    const __m512i high = _mm512_set1_epi8((char)0x80);
    for (size_t r = 0; r < count; r++, rows += stride) {
        __m512i sum = _mm512_setzero_si512();
        for (size_t i = 0; i < query->count; i += 64) {
            const __m512i codes = load_row(rows, i, query->count), other = _mm512_loadu_si512(query->codes + i);
            sum = _mm512_dpbusd_epi32(sum, _mm512_xor_si512(codes, high), other);
        }
        sums[r] = _mm512_reduce_add_epi32(sum) - 128 * query->sum;
    }
}

VNNI static void dot_rows_int4(int32_t *sums, const query_codes *query, const uint8_t *rows, int64_t stride,
                               size_t count) {
    const __m512i low = _mm512_set1_epi8(15);
    for (size_t r = 0; r < count; r++, rows += stride) {
        __m512i even = _mm512_setzero_si512(), odd = _mm512_setzero_si512();
        for (size_t i = 0; i < query->count; i += 64) {
            const __m512i codes = load_row(rows, i, query->count);
            even = _mm512_dpbusd_epi32(even, _mm512_and_si512(codes, low), _mm512_loadu_si512(query->codes + i));
            odd = _mm512_dpbusd_epi32(odd, _mm512_and_si512(_mm512_srli_epi16(codes, 4), low),
                                      _mm512_loadu_si512(query->codes + query->padded + i));
        }
        sums[r] = _mm512_reduce_add_epi32(_mm512_add_epi32(even, odd)) - 8 * query->sum;
    }
}

/* Sums rows by an extension. Returns whether there is one. */
KILN_INLINE bool sum_rows_extended(int32_t *sums, const query_codes *query, const uint8_t *rows, int64_t stride,
                                   size_t count) {
    if (query->code_type == KILN_CODE_BINARY) {
        if (!KILN_CPU_HAS("avx512vpopcntdq")) return false;
        count_rows(sums, query, rows, stride, count);
        return true;
    }
    if (!KILN_CPU_HAS("avx512vnni")) return false;
    if (query->code_type == KILN_CODE_INT8)
        dot_rows_int8(sums, query, rows, stride, count);
    else
        dot_rows_int4(sums, query, rows, stride, count);
    return true;
}

#else

KILN_INLINE bool sum_rows_extended(int32_t *sums, const query_codes *query, const uint8_t *rows, int64_t stride,
                                   size_t count) {
    (void)sums, (void)query, (void)rows, (void)stride, (void)count;
    return false;
}

#endif

/* The sums of count rows with a query: bits that differ, or products. */
static void sum_rows(int32_t *sums, const query_codes *query, const uint8_t *rows, int64_t stride, size_t count) {
    if (sum_rows_extended(sums, query, rows, stride, count)) return;
    if (query->code_type == KILN_CODE_BINARY)
        sum_rows_of(sums, query, rows, stride, count, KILN_CODE_BINARY);
    else if (query->code_type == KILN_CODE_INT8)
        sum_rows_of(sums, query, rows, stride, count, KILN_CODE_INT8);
    else
        sum_rows_of(sums, query, rows, stride, count, KILN_CODE_INT4);
}
