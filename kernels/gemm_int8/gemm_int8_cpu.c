/* gemm_int8 on the CPU: the operator's definition, which is in w8a8_cpu.h. gemm_int8_vnni.h computes the same bits by
 * VNNI, on machines of the levels x86-64-v3 and x86-64-v4 that have it.
 *
 * Floor: 2 m n k operations for gemm_int8_tiles, one read of b at memory bandwidth for gemm_int8_rows.
 * Test: build/tests/ops/w8a8_test. Bench: build/kiln bench gemm_int8 --device cpu */
#include "kernels/common/vec.h"

#define W8A8_INTEGERS 1
#define CODES_UNIT    1.0f
enum { CODES_VECS = 1, CODES_PARTS = 1 };

KILN_INLINE void codes_load(float *tile, const uint8_t *codes, size_t count) {
    KILN_INDEPENDENT
    for (size_t i = 0; i < count; i++)
        tile[i] = (float)(int8_t)codes[i];
}

KILN_INLINE void codes_vecs(kiln_vec *to, const uint8_t *codes, size_t part) {
    (void)part;
#if defined(__AVX512F__)
    to[0] = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)codes)));
#elif defined(__AVX2__) && defined(__FMA__)
    to[0] = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)codes)));
#elif defined(__SSE4_1__)
    int32_t four;
    memcpy(&four, codes, sizeof four);
    to[0] = _mm_cvtepi32_ps(_mm_cvtepi8_epi32(_mm_cvtsi32_si128(four)));
#else
    float numbers[KILN_VEC];
    codes_load(numbers, codes, KILN_VEC);
    to[0] = KILN_VEC_LOAD(numbers);
#endif
}

#include "kernels/common/matmul/w8a8_cpu.h"
#include "kernels/gemm_int8/gemm_int8_vnni.h"

KILN_INLINE void gemm_int8_tiles(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    w8a8_tiles(arguments, span, dtype);
}
KILN_CPU_KERNEL(gemm_int8_tiles)

KILN_INLINE void gemm_int8_rows(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    w8a8_rows(arguments, span, dtype);
}
KILN_CPU_KERNEL(gemm_int8_rows)

KILN_INLINE void gemm_int8_join(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    w8a8_join(arguments, span, dtype);
}
KILN_CPU_KERNEL(gemm_int8_join)
