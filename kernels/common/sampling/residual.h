/* Speculative sampling with integers, one source for all backends, which draw the same tokens: which draft tokens are
 * accepted, and what remains of the model's distribution when one is rejected (Leviathan et al., arXiv 2211.17192; for
 * several siblings, Miao et al., arXiv 2305.09781).
 *
 * Probabilities are counted in units of 2^-40, rounded down. The token x of a child is accepted with probability min(1,
 * p(x) / q(x)), where p is the model's distribution after its parent and q the distribution that the child was drawn
 * from. If it is rejected, the positive part of p - q, scaled so that it sums to 1, remains for the next sibling. A
 * child that was chosen instead of drawn is accepted with probability p(x); if it is rejected, p without x remains.
 *
 * The includer (device.h, cpu.h) defines KILN_INLINE and KILN_LOOP. */
#ifndef KILN_KERNELS_COMMON_SAMPLING_RESIDUAL_H
#define KILN_KERNELS_COMMON_SAMPLING_RESIDUAL_H

#include "kernels/common/sampling/philox.h"

/* The units of a probability: above 1 those of 1; 0 for a negative one or NaN. */
KILN_INLINE uint64_t kiln_units(float probability) {
    float units = probability * 0x1p40f;
    units = units > 0.0f ? units : 0.0f;
    return (uint64_t)(units < 0x1p40f ? units : 0x1p40f);
}

/* What remains of p after a node: for drawn children, the factors by which p was multiplied before q was subtracted
 * each time; for chosen ones, the tokens that were removed. */
typedef struct kiln_residual {
    uint32_t *taken; /* floats' bits, or tokens */
    uint32_t count;
    bool drawn;
    float scale; /* makes the remaining units add up to 2^40 */
    uint64_t total;
} kiln_residual;

KILN_INLINE uint64_t kiln_units_scaled(uint64_t units, float scale) {
    return (uint64_t)((float)units * scale);
}

/* What remains of a token's units p, not yet scaled; q are the draft's units. */
KILN_INLINE uint64_t kiln_residual_units(const kiln_residual *r, uint32_t token, uint64_t p, uint64_t q) {
    KILN_LOOP
    for (uint32_t i = 0; i < r->count; i++) {
        uint64_t scaled = r->drawn ? kiln_units_scaled(p, kiln_float(r->taken[i])) : p;
        uint64_t less = r->drawn ? q : r->taken[i] == token ? p : 0;
        p = scaled > less ? scaled - less : 0;
    }
    return p;
}

/* Whether a child is accepted, given the remaining units of its token. */
KILN_INLINE bool kiln_residual_accepts(const kiln_residual *r, uint64_t bits, uint64_t units, uint64_t q) {
    if (r->drawn) return kiln_scaled(bits, q) < kiln_units_scaled(units, r->scale);
    return kiln_scaled(bits, r->total) < units;
}

/* The residual before any child. Rows are assumed to sum to 1. */
KILN_INLINE kiln_residual kiln_residual_of(uint32_t *taken, bool drawn) {
    return (kiln_residual){taken, 0, drawn, 1.0f, (uint64_t)1 << 40};
}

/* The random bits of a node of a sequence; the root's draw the token after the last accepted one. If a sequence has its
 * own seed, its number does not matter. They differ from those of sample for the same seed and position. */
KILN_INLINE uint64_t kiln_node_bits(uint64_t seed, uint64_t position, uint64_t sequence, uint32_t node) {
    return kiln_philox(seed, position, (uint64_t)1 << 63 | sequence << 16 | node);
}

#endif
