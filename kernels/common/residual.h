/* Speculative sampling by integers, one text for all backends, which draw the same: which draft tokens are accepted,
 * and what is left of the model's distribution where one is not (Leviathan et al., arXiv 2211.17192; of several
 * siblings, Miao et al., arXiv 2305.09781).
 *
 * Probabilities are counted in units of 2^-40, rounded down. The token x of a child is accepted with probability
 * min(1, p(x) / q(x)), p being the model's distribution behind its parent and q what the child was drawn from. If it is
 * not, p less q, and of that the positive part, is what remains for the next sibling, scaled up to add up to 1 again. A
 * child that was chosen, not drawn, is accepted with probability p(x), and then p without x remains.
 *
 * The includer (device.h, cpu.h) defines KILN_INLINE and KILN_LOOP. */
#ifndef KILN_KERNELS_COMMON_RESIDUAL_H
#define KILN_KERNELS_COMMON_RESIDUAL_H

#include "kernels/common/philox.h"

/* Of a probability; of one above 1 that of 1, of one that is negative or NaN 0. */
KILN_INLINE uint64_t kiln_units(float probability) {
    float units = probability * 0x1p40f;
    return units > 0.0f ? (uint64_t)(units < 0x1p40f ? units : 0x1p40f) : 0;
}

/* What remains of p behind a node: of drawn children, what p was multiplied by before each q was taken from it; of
 * chosen ones, the tokens that were taken. */
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

/* What remains of a token's units p, not yet scaled; q are the draft's. */
KILN_INLINE uint64_t kiln_residual_units(const kiln_residual *r, uint32_t token, uint64_t p, uint64_t q) {
    KILN_LOOP
    for (uint32_t i = 0; i < r->count; i++) {
        uint64_t scaled = r->drawn ? kiln_units_scaled(p, kiln_float(r->taken[i])) : p;
        uint64_t less = r->drawn ? q : r->taken[i] == token ? p : 0;
        p = scaled > less ? scaled - less : 0;
    }
    return p;
}

/* Whether a child is accepted; units are what remains of its token's. */
KILN_INLINE bool kiln_residual_accepts(const kiln_residual *r, uint64_t bits, uint64_t units, uint64_t q) {
    if (r->drawn) return kiln_scaled(bits, q) < kiln_units_scaled(units, r->scale);
    return kiln_scaled(bits, r->total) < units;
}

/* Before any child. Rows are taken to add up to 1. */
KILN_INLINE kiln_residual kiln_residual_of(uint32_t *taken, bool drawn) {
    return (kiln_residual){taken, 0, drawn, 1.0f, (uint64_t)1 << 40};
}

/* The random bits of a node of a sequence; the root's draw the token behind the last that is accepted. With a seed of
 * its own a sequence's do not depend on its number. They differ from those of sample for the same seed and position. */
KILN_INLINE uint64_t kiln_node_bits(uint64_t seed, uint64_t position, uint64_t sequence, uint32_t node) {
    return kiln_philox(seed, position, (uint64_t)1 << 63 | sequence << 16 | node);
}

#endif
