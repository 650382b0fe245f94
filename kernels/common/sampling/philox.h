/* Counter-based random numbers, one source for all backends: the same wherever and in whatever order they are drawn.
 * The includer (device.h, cpu.h) defines KILN_INLINE; a device source or the includer also KILN_LOOP. */
#ifndef KILN_KERNELS_COMMON_SAMPLING_PHILOX_H
#define KILN_KERNELS_COMMON_SAMPLING_PHILOX_H

/* 64 random bits: Philox 4x32 with 10 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
 */
KILN_INLINE uint64_t kiln_philox(uint64_t seed, uint64_t position, uint64_t row) {
    uint32_t a = (uint32_t)position, b = (uint32_t)(position >> 32), c = (uint32_t)row, d = (uint32_t)(row >> 32);
    uint32_t key = (uint32_t)seed, other_key = (uint32_t)(seed >> 32);
    KILN_LOOP
    for (int round = 0; round < 10; round++) {
        uint64_t first = (uint64_t)a * 0xd2511f53u, second = (uint64_t)c * 0xcd9e8d57u;
        a = (uint32_t)(second >> 32) ^ b ^ key;
        c = (uint32_t)(first >> 32) ^ d ^ other_key;
        b = (uint32_t)second;
        d = (uint32_t)first;
        key += 0x9e3779b9u;
        other_key += 0xbb67ae85u;
    }
    return (uint64_t)b << 32 | a;
}

/* A number from 0 to count - 1, from 64 random bits: the upper half of the product of the two. */
KILN_INLINE uint64_t kiln_scaled(uint64_t bits, uint64_t count) {
    uint64_t low = (uint32_t)bits * (count >> 32), high = (bits >> 32) * (uint32_t)count;
    uint64_t lowest = (bits & 0xffffffffu) * (count & 0xffffffffu);
    uint64_t carry = ((lowest >> 32) + (uint32_t)low + (uint32_t)high) >> 32;
    return (bits >> 32) * (count >> 32) + (low >> 32) + (high >> 32) + carry;
}

#endif
