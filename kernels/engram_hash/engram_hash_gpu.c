/* engram_hash: the row of a table for each head of each n-gram of tokens, offset + mix modulo prime, in integers.
 *
 * A thread computes one head of up to 16 tokens: it divides once, for the reciprocal of its prime, and then multiplies
 * for each token (ngram.h). The threads of a token's heads, rounded up to a power of two, are neighbours, followed by
 * those of the next token, so that a block writes contiguous lines. Each head of an n-gram computes the mix for itself,
 * from ids that all of them read at once. A block computes one layer; where there are few tokens, a thread takes one
 * token.
 *
 * Floor: a write of 8 bytes a head at memory bandwidth; the ids, the lookup and the layers' numbers lie in caches.
 * docs/kernel-report.md has the instruction counts, which would be about a hundred higher with a division for each
 * head. A decoding step takes as long as its launch and one division. Not measured on hardware.
 * Test: build/tests/ops/engram_hash_test. Bench: build/kiln bench engram_hash */
#include "kernels/common/device.h"

#include "kernels/engram_hash/ngram.h"

KILN_ENTRY(engram_hash, kiln_engram_hash_args) {
    uint32_t column = kiln_thread() & ((1u << args.lanes_log2) - 1), columns = args.orders * args.heads;
    uint32_t slots = KILN_BLOCK >> args.lanes_log2, last = column / args.heads + 1;
    uint64_t layer = kiln_block(), head = layer * columns + column;
    if (column >= columns || layer >= args.layers) return;
    uint64_t token = (uint64_t)kiln_tile() * args.run * slots + (kiln_thread() >> args.lanes_log2);
    const int64_t *multipliers = args.multipliers + layer * (args.orders + 1);
    kiln_modulus modulus = kiln_modulus_of(args.primes[head]);
    int64_t offset = args.offsets ? args.offsets[head] : 0;

    KILN_LOOP
    for (uint32_t i = 0; i < args.run && token < args.tokens; i++, token += slots) {
        kiln_varlen_sequence sequence = kiln_varlen_find(&args.varlen, (uint32_t)token);
        int64_t row = -1;
        if (sequence.number < args.varlen.batch) {
            uint64_t mix = 0;
            KILN_LOOP
            for (uint32_t before = 0; before <= last; before++)
                mix ^= kiln_ngram_product(&args, sequence, (uint32_t)token, before, multipliers);
            row = kiln_modulo((int64_t)mix, modulus);
        }
        args.rows[(layer * args.tokens + token) * columns + column] = row < 0 ? -1 : row + offset;
    }
}
