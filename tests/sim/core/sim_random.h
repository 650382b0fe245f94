/* Random numbers that a seed repeats: SplitMix64. */
#ifndef KILN_TESTS_SIM_RANDOM_H
#define KILN_TESTS_SIM_RANDOM_H

#include <stdint.h>

/* The next of 64 random bits; any number will do as the first state. */
static inline uint64_t sim_random(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

#endif
