/* SHA-256, as FIPS 180-4 describes it in sections 4.1.2, 4.2.2, 5 and 6.2. */
#include <kiln/inspect.h>

#include <string.h>

enum { BLOCK_SIZE = 64, LENGTH_SIZE = 8, ROUNDS = 64 };

/* The first 32 bits of the fractions of the cube roots of the first 64 primes. */
static const uint32_t round_constants[ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t value, unsigned bits) {
    return value >> bits | value << (32 - bits);
}

static uint32_t read_word(const uint8_t *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void write_word(uint8_t *at, uint32_t word) {
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(word >> (24 - 8 * i));
}

static void expand(const uint8_t *block, uint32_t schedule[ROUNDS]) {
    for (int t = 0; t < 16; t++)
        schedule[t] = read_word(block + 4 * t);
    for (int t = 16; t < ROUNDS; t++) {
        uint32_t w2 = schedule[t - 2], w15 = schedule[t - 15];
        uint32_t sigma1 = rotate(w2, 17) ^ rotate(w2, 19) ^ w2 >> 10;
        uint32_t sigma0 = rotate(w15, 7) ^ rotate(w15, 18) ^ w15 >> 3;
        schedule[t] = sigma1 + schedule[t - 7] + sigma0 + schedule[t - 16];
    }
}

static void compress(uint32_t state[8], const uint8_t *block) {
    uint32_t schedule[ROUNDS];
    expand(block, schedule);
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    for (int t = 0; t < ROUNDS; t++) {
        uint32_t sum1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
        uint32_t choice = (e & f) ^ (~e & g);
        uint32_t t1 = h + sum1 + choice + round_constants[t] + schedule[t];
        uint32_t sum0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
        uint32_t majority = (a & b) ^ (a & c) ^ (b & c);
        h = g;
        g = f;
        f = e;
        e = d + t1;
        d = c;
        c = b;
        b = a;
        a = t1 + sum0 + majority;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
    state[5] += f;
    state[6] += g;
    state[7] += h;
}

void kiln_sha256(const void *bytes, size_t size, uint8_t out_digest[32]) {
    /* The first 32 bits of the fractions of the square roots of the first 8 primes. */
    uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    const uint8_t *at = bytes;
    size_t rest = size;
    for (; rest >= BLOCK_SIZE; rest -= BLOCK_SIZE, at += BLOCK_SIZE)
        compress(state, at);
    /* The end: what is left, a one bit, zeros, and the length in bits. */
    uint8_t tail[2 * BLOCK_SIZE] = {0};
    if (rest) memcpy(tail, at, rest);
    tail[rest] = 0x80;
    size_t tail_size = rest + 1 + LENGTH_SIZE <= BLOCK_SIZE ? BLOCK_SIZE : 2 * BLOCK_SIZE;
    uint64_t bits = (uint64_t)size * 8;
    write_word(tail + tail_size - 8, (uint32_t)(bits >> 32));
    write_word(tail + tail_size - 4, (uint32_t)bits);
    for (size_t i = 0; i < tail_size; i += BLOCK_SIZE)
        compress(state, tail + i);
    for (int i = 0; i < 8; i++)
        write_word(out_digest + 4 * i, state[i]);
}
