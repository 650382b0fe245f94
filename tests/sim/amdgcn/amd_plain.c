/* f32 arithmetic over all lanes at once, with the host's own. */
#include "tests/sim/amdgcn/amd_vector.h"
#include <math.h>
#include <string.h>

/* Hands on the results unless one is a NaN. */
static bool deliver(uint32_t n, void *d, const float *results) {
    uint32_t nan = 0;
    for (uint32_t base = 0; base < n; base += 32)
        for (uint32_t i = 0; i < 32; i++) {
            uint32_t bits;
            memcpy(&bits, &results[base + i], sizeof bits);
            nan |= 0x7f800000u - (bits & 0x7fffffff); /* negative: a NaN */
        }
    if (nan >> 31) return false;
    memcpy(d, results, n * sizeof *results);
    return true;
}

#define PLAIN(name, expression)                                                                \
    bool name(uint32_t n, void *d, const void *first, const void *second, const void *third) { \
        const float *a = first, *b = second;                                                   \
        float results[AMD_PLAIN_MAX];                                                          \
        (void)third;                                                                           \
        for (uint32_t base = 0; base < n; base += 32)                                          \
            for (uint32_t i = 0; i < 32; i++)                                                  \
                results[base + i] = expression;                                                \
        return deliver(n, d, results);                                                         \
    }
PLAIN(amd_plain_add, a[base + i] + b[base + i])
PLAIN(amd_plain_sub, a[base + i] - b[base + i])
PLAIN(amd_plain_subrev, b[base + i] - a[base + i])
PLAIN(amd_plain_mul, a[base + i] * b[base + i])

static inline __attribute__((always_inline)) void fma_all(uint32_t n, float *d, const float *a, const float *b,
                                                          const float *c) {
    for (uint32_t base = 0; base < n; base += 32)
        for (uint32_t i = 0; i < 32; i++)
            d[base + i] = fmaf(a[base + i], b[base + i], c[base + i]);
}

#ifdef __x86_64__
/* x86-64 has the instruction since v3; without it each would be a call. */
__attribute__((target("avx2,fma"))) static void fma_v3(uint32_t n, float *d, const float *a, const float *b,
                                                       const float *c) {
    fma_all(n, d, a, b, c);
}
#endif

bool amd_plain_fma(uint32_t n, void *d, const void *a, const void *b, const void *c) {
    float results[AMD_PLAIN_MAX];
#ifdef __x86_64__
    if (__builtin_cpu_supports("fma"))
        fma_v3(n, results, a, b, c);
    else
#endif
        fma_all(n, results, a, b, c);
    return deliver(n, d, results);
}
