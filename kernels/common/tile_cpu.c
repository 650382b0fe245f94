/* Tiles between tensors and registers: what kernels/common/cpu.h declares and every kernel of a level calls, compiled
 * once for each level.
 *
 * Floor: a read and a write of the tile in the first-level cache; the bandwidth of memory where stores are
 * non-temporal. Test: build/tests/ops/add_test. Bench: build/kiln bench add --device cpu */
#include "kernels/common/cpu.h"

void kiln_tile_convert(float *tile, const void *source, size_t count, kiln_cpu_dtype dtype) {
    kiln_halves_load(tile, source, count, dtype);
}

#if defined(__AVX512F__)
/* A whole cache line, whose target is aligned. */
KILN_INLINE void kiln_stream_line(char *to, const char *from) {
    typedef char line __attribute__((vector_size(64)));
    line bytes;
    memcpy(&bytes, from, sizeof bytes);
    __asm__("vmovntdq %1, %0" : "=m"(*(line *)(void *)to) : "v"(bytes));
}
#endif

void kiln_nontemporal_copy(void *target, const void *source, size_t size) {
    char *to = target;
    const char *from = source;
#if defined(__SSE2__)
    if ((uintptr_t)to % 16) {
        size_t head = kiln_min(-(uintptr_t)to % 64, size);
        memcpy(to, from, head);
        to += head, from += head, size -= head;
    }
#if defined(__AVX512F__)
    for (; (uintptr_t)to % 64 && size >= 16; to += 16, from += 16, size -= 16)
        _mm_stream_si128((__m128i *)(void *)to, _mm_loadu_si128((const __m128i *)(const void *)from));
    for (; size >= 64; to += 64, from += 64, size -= 64)
        kiln_stream_line(to, from);
#endif
    for (; size >= 16; to += 16, from += 16, size -= 16)
        _mm_stream_si128((__m128i *)(void *)to, _mm_loadu_si128((const __m128i *)(const void *)from));
#endif
    if (size) memcpy(to, from, size);
}

void kiln_halves_write(void *target, const float *tile, size_t count, kiln_cpu_dtype dtype, bool nontemporal) {
    uint16_t halves[KILN_TILE];
    uint16_t *converted = nontemporal ? halves : target;
    if (dtype == KILN_CPU_f16) {
        kiln_f16_store(converted, tile, count);
    } else {
        for (size_t i = 0; i < count; i++)
            converted[i] = kiln_f32_to_bf16(tile[i]);
    }
    if (nontemporal) kiln_nontemporal_copy(target, halves, count * sizeof *halves);
}
