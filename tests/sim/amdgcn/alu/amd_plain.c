/* f32 arithmetic over all lanes at once, with the host's own. */
#include "tests/sim/amdgcn/alu/amd_vector.h"
#include <math.h>
#include <string.h>

/* The elements of a lane that writes are copied, unless one is NaN: then the lane is left to the caller. */
static uint64_t keep_numbers(uint32_t per_lane, uint64_t exec, float *d, const float *results) {
    uint64_t left = 0;
    for (uint64_t rest = exec; rest; rest &= rest - 1) {
        const size_t l = (size_t)__builtin_ctzll(rest), at = l * per_lane, size = per_lane * sizeof *d;
        if (isnan(results[at]) || isnan(results[at + per_lane - 1]))
            left |= 1ull << l;
        else
            memcpy(&d[at], &results[at], size);
    }
    return left;
}

/* Each function twice: for any host, and for x86-64-v3, whose vectors are wider and which can fuse. All lanes are
 * computed before any is written, since a result may be a source and is not to be written if it is NaN. A loop of
 * 32 and no other number is one that compilers make vectors of. */
#define BODY(expression)                                                    \
    const uint32_t n = lanes * per_lane;                                    \
    float results[AMD_PLAIN_MAX];                                           \
    uint32_t nan = 0;                                                       \
    for (size_t base = 0; base < n; base += 32)                             \
        for (size_t i = 0; i < 32; i++) {                                   \
            const size_t l = base + i;                                      \
            uint32_t bits;                                                  \
            results[l] = expression;                                        \
            memcpy(&bits, &results[l], sizeof bits);                        \
            nan |= 0x7f800000u - (bits & 0x7fffffff); /* negative: NaN */   \
        }                                                                   \
    const bool all = lanes == 64 ? !~exec : exec == 0xffffffff;             \
    if (nan >> 31 || !all) return keep_numbers(per_lane, exec, d, results); \
    memcpy(d, results, n * sizeof *results);                                \
    return 0

#ifdef __x86_64__
#define WIDE_VERSION(name, expression)                                \
    __attribute__((target("avx2,fma"))) static AMD_PLAIN(name##_v3) { \
        (void)c;                                                      \
        BODY(expression);                                             \
    }
#define TRY_WIDE(name)                                                   \
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) \
    return name##_v3(lanes, per_lane, exec, d, a, b, c)
#else
#define WIDE_VERSION(name, expression)
#define TRY_WIDE(name)
#endif

#define PLAIN(name, expression)                               \
    WIDE_VERSION(name, expression)                            \
    static AMD_PLAIN(name##_any) {                            \
        (void)c;                                              \
        BODY(expression);                                     \
    }                                                         \
    AMD_PLAIN(name) {                                         \
        TRY_WIDE(name);                                       \
        return name##_any(lanes, per_lane, exec, d, a, b, c); \
    }
PLAIN(amd_plain_add, a[l] + b[l])
PLAIN(amd_plain_sub, a[l] - b[l])
PLAIN(amd_plain_subrev, b[l] - a[l])
PLAIN(amd_plain_mul, a[l] * b[l])
PLAIN(amd_plain_fma, fmaf(a[l], b[l], c[l]))
