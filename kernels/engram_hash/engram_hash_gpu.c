/* engram_hash: the row of a table for each head of each n-gram of tokens, offset + mix modulo prime, in integers.
 *
 * A thread computes one head of up to 16 tokens. The threads of a token's heads, rounded up to a power of two, are
 * neighbours, followed by those of the next token, so that a block writes contiguous lines. The first token's threads
 * divide, once for each head, for the reciprocals of the primes, by which all multiply (ngram.h). Each head of an
 * n-gram computes the mix for itself, from ids that all of them read at once: those of shorter n-grams go through the
 * longest one's too, so that a warp stays together. A block computes one layer; where there are few tokens, a thread
 * takes one token.
 *
 * Floor: a write of 8 bytes a head at memory bandwidth; the ids, the lookup and the layers' numbers lie in caches.
 * docs/kernel-report.md has the instruction counts, which would be about a hundred higher with a division for each
 * head. A decoding step takes as long as its launch and one division. Not measured on hardware.
 * Test: build/tests/ops/engram_hash_test. Bench: build/kiln bench engram_hash */
#include "kernels/common/device.h"

#include "kernels/engram_hash/ngram.h"

/* The sequence of a token; without a division where there is one sequence. */
KILN_INLINE kiln_varlen_sequence sequence_of(const kiln_engram_hash_args *args, uint32_t token) {
    if (args->varlen.batch == 1 && !args->varlen.cu_seqlens) return (kiln_varlen_sequence){0, 0, args->tokens};
    return kiln_varlen_find(&args->varlen, token);
}

/* The mix of the n-gram of a column's order: its column is not below that of a term's first n-gram. */
KILN_INLINE uint64_t mix_of(const kiln_engram_hash_args *args, kiln_varlen_sequence sequence, uint32_t token,
                            uint32_t column, const int64_t *multipliers) {
    uint64_t mix = kiln_ngram_product(args, sequence, token, 0, multipliers);
    KILN_LOOP
    for (uint32_t before = 1, first = 0; before <= args->orders; before++, first += args->heads) {
        const uint64_t product = kiln_ngram_product(args, sequence, token, before, multipliers);
        mix ^= column < first ? 0 : product;
    }
    return mix;
}

KILN_ENTRY(engram_hash, kiln_engram_hash_args) {
    KILN_SHARED uint64_t reciprocals[KILN_BLOCK];
    const uint32_t columns = args.orders * args.heads, slots = KILN_BLOCK >> args.lanes_log2;
    const uint32_t column = kiln_thread() & ((1u << args.lanes_log2) - 1);
    const uint64_t layer = kiln_block(), head = layer * columns + column;
    if (layer >= args.layers) return; /* the whole block */
    uint32_t token = kiln_tile() * args.run * slots + (kiln_thread() >> args.lanes_log2);
    const bool has = column < columns && token < args.tokens;
    kiln_modulus modulus = {has ? args.primes[head] : 0, 0};
    if (kiln_thread() < columns) reciprocals[column] = kiln_modulus_of(modulus.value).reciprocal;
    kiln_barrier();
    if (!has) return;
    modulus.reciprocal = reciprocals[column];
    const int64_t *multipliers = args.multipliers + layer * (args.orders + 1);
    const int64_t offset = args.offsets ? args.offsets[head] : 0;
    int64_t *target = args.rows + (layer * args.tokens + token) * columns + column;

    KILN_LOOP
    for (uint32_t i = 0; i < args.run && token < args.tokens; i++, token += slots, target += slots * columns) {
        const kiln_varlen_sequence sequence = sequence_of(&args, token);
        int64_t row = -1;
        if (sequence.number < args.varlen.batch)
            row = kiln_modulo((int64_t)mix_of(&args, sequence, token, column, multipliers), modulus);
        *target = row < 0 ? -1 : row + offset;
    }
}
