/* The mix of an n-gram and its remainder modulo a prime: one source for all backends. The includer (device.h, cpu.h)
 * defines KILN_INLINE. */
#ifndef KILN_KERNELS_ENGRAM_HASH_NGRAM_H
#define KILN_KERNELS_ENGRAM_HASH_NGRAM_H

#include "kernels/common/index.h"
#include "kernels/common/varlen.h"
#include "kernels/engram_hash/engram_hash_args.h"

/* The upper 64 bits of a product. */
KILN_INLINE uint64_t kiln_multiply_high(uint64_t a, uint64_t b) {
#if defined(__CUDA_ARCH__)
    return __umul64hi(a, b);
#else
    uint64_t a_low = (uint32_t)a, a_high = a >> 32, b_low = (uint32_t)b, b_high = b >> 32;
    uint64_t middle = a_high * b_low + (a_low * b_low >> 32);
    uint64_t carry = a_low * b_high + (uint32_t)middle;
    return a_high * b_high + (middle >> 32) + (carry >> 32);
#endif
}

/* Division by an invariant number as a multiplication: the reciprocal is (2^64 - 1) / value, rounded down. */
typedef struct kiln_modulus {
    int64_t value;
    uint64_t reciprocal;
} kiln_modulus;

KILN_INLINE kiln_modulus kiln_modulus_of(int64_t value) {
    kiln_modulus modulus;
    modulus.value = value;
    modulus.reciprocal = value > 0 ? UINT64_MAX / (uint64_t)value : 0;
    return modulus;
}

/* The remainder of x, from 0 to the modulus less 1; -1 if the modulus is below 1. The quotient x * reciprocal / 2^64 is
 * at most one too small: the reciprocal is less than 1 below 2^64 / value, and x is below 2^64. Of a negative x the
 * complement, -1 - x, is divided. */
KILN_INLINE int64_t kiln_modulo(int64_t x, kiln_modulus modulus) {
    uint64_t sign = x < 0 ? UINT64_MAX : 0, value = (uint64_t)modulus.value, bits = (uint64_t)x ^ sign;
    uint64_t left = bits - kiln_multiply_high(bits, modulus.reciprocal) * value;
    left = left >= value ? left - value : left;
    left = sign ? value - 1 - left : left;
    return modulus.value > 0 ? (int64_t)left : -1;
}

/* The id a number of tokens before one of a sequence, or the id that stands for what precedes the sequence. */
KILN_INLINE int64_t kiln_ngram_id(const kiln_engram_hash_args *args, kiln_varlen_sequence sequence, uint32_t token,
                                  uint32_t before) {
    uint32_t place = token - sequence.begin;
    int64_t id = args->pad_id;
    if (before <= place)
        id = (int64_t)kiln_index(args->ids, args->ids_64, token - before);
    else if (args->history)
        id = (int64_t)kiln_index(args->history, args->ids_64,
                                 (uint64_t)sequence.number * args->orders + (args->orders + place - before));
    return (uint64_t)id < (uint64_t)args->vocabulary ? args->lookup[id] : id;
}

/* The term of a mix that such an id contributes. */
KILN_INLINE uint64_t kiln_ngram_product(const kiln_engram_hash_args *args, kiln_varlen_sequence sequence,
                                        uint32_t token, uint32_t before, const int64_t *multipliers) {
    return (uint64_t)kiln_ngram_id(args, sequence, token, before) * (uint64_t)multipliers[before];
}

#endif
