/* exp and ln in f64, without libm, which nothing else in the library needs. */
#ifndef KILN_LOADER_ELEMENTARY_H
#define KILN_LOADER_ELEMENTARY_H

#include <stdint.h>
#include <string.h>

/* ln 2 in two parts; the high one has 32 bits, so that its products with exponents are exact. */
#define KILN__LN2_HIGH 0x1.62e42feep-1
#define KILN__LN2_LOW  0x1.a39ef35793c76p-33

/* e^x for x <= 700; relative error at most 3e-16; 0 for x < -700; NaN for NaN.
 *
 * x = n ln 2 + r with |r| <= ln 2 / 2; the Taylor series of e^r to r^13 has a remainder below 5e-18. Adding 1.5 * 2^52
 * rounds n to an integer, which is then in the low bits. */
static inline double kiln__exp(double x) {
    const double magic = 0x1.8p52;
    double low = x < -700 ? -700 : x, shifted = low * 0x1.71547652b82fep0 + magic, n = shifted - magic;
    double r = (low - n * KILN__LN2_HIGH) - n * KILN__LN2_LOW, p = 1;
    for (int k = 13; k > 0; k--)
        p = p * r / k + 1;
    int64_t bits, power;
    memcpy(&bits, &shifted, sizeof bits);
    power = (int64_t)((uint64_t)(bits + 1023) << 52);
    double scale;
    memcpy(&scale, &power, sizeof scale);
    return x < -700 ? 0 : p * scale;
}

/* ln x for normal x; relative error at most 6e-16; -inf for 0; +inf and NaN are returned as they are.
 *
 * x = m 2^n with m in [sqrt 1/2, sqrt 2); ln m = 2 artanh z with z = (m - 1) / (m + 1), a series in z^2 <= 0.03. */
static inline double kiln__ln(double x) {
    const uint64_t root = 0x3fe6a09e667f3bcd; /* sqrt 1/2 */
    const double infinity = __builtin_inf();
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits -= root;
    double n = (double)((int64_t)bits >> 52), m;
    bits = (bits & 0xfffffffffffff) + root;
    memcpy(&m, &bits, sizeof m);
    double z = (m - 1) / (m + 1), square = z * z, series = 0;
    for (int k = 21; k > 1; k -= 2)
        series = (series + 1.0 / k) * square;
    double result = n * KILN__LN2_HIGH + (n * KILN__LN2_LOW + 2 * series * z + 2 * z);
    return x == 0 ? -infinity : x < infinity ? result : x;
}

#endif
