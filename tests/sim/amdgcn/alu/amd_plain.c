/* f32 arithmetic over all lanes at once, with the host's own. */
#include "tests/sim/amdgcn/alu/amd_vector.h"
#include <math.h>
#include <string.h>

/* Each function twice: for any host, and for x86-64-v3, whose vectors are wider and which can fuse. All lanes are
 * computed before any is written, since a result may be a source and is not to be written if there is a NaN. A loop of
 * 32 and no other number is one that compilers make vectors of. */
#define BODY(expression)                                                  \
    float results[AMD_PLAIN_MAX];                                         \
    uint32_t nan = 0;                                                     \
    for (size_t base = 0; base < n; base += 32)                           \
        for (size_t i = 0; i < 32; i++) {                                 \
            const size_t l = base + i;                                    \
            uint32_t bits;                                                \
            results[l] = expression;                                      \
            memcpy(&bits, &results[l], sizeof bits);                      \
            nan |= 0x7f800000u - (bits & 0x7fffffff); /* negative: NaN */ \
        }                                                                 \
    if (nan >> 31) return false;                                          \
    memcpy(d, results, n * sizeof *results);                              \
    return true

#ifdef __x86_64__
#define WIDE_VERSION(name, expression)                                                                              \
    __attribute__((target("avx2,fma"))) static bool name##_v3(uint32_t n, float *d, const float *a, const float *b, \
                                                              const float *c) {                                     \
        (void)c;                                                                                                    \
        BODY(expression);                                                                                           \
    }
#define TRY_WIDE(name) \
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return name##_v3(n, d, a, b, c)
#else
#define WIDE_VERSION(name, expression)
#define TRY_WIDE(name)
#endif

#define PLAIN(name, expression)                                                                    \
    WIDE_VERSION(name, expression)                                                                 \
    static bool name##_any(uint32_t n, float *d, const float *a, const float *b, const float *c) { \
        (void)c;                                                                                   \
        BODY(expression);                                                                          \
    }                                                                                              \
    bool name(uint32_t n, void *d, const void *a, const void *b, const void *c) {                  \
        TRY_WIDE(name);                                                                            \
        return name##_any(n, d, a, b, c);                                                          \
    }
PLAIN(amd_plain_add, a[l] + b[l])
PLAIN(amd_plain_sub, a[l] - b[l])
PLAIN(amd_plain_subrev, b[l] - a[l])
PLAIN(amd_plain_mul, a[l] * b[l])
PLAIN(amd_plain_fma, fmaf(a[l], b[l], c[l]))
