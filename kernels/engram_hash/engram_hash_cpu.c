/* engram_hash on the CPU: the operator's definition. engram_hash_gpu.c says what its blocks do.
 *
 * Floor: about ten instructions per head; without the reciprocal there would be a 64-bit division among them.
 * Test: build/tests/ops/engram_hash_test. Bench: build/kiln bench engram_hash --device cpu */
#include "kernels/common/cpu.h"

#include "kernels/engram_hash/ngram.h"

/* The rows of one token: the mixes of its n-grams, one order after the other. */
KILN_INLINE void hash(const kiln_engram_hash_args *args, uint64_t layer, uint32_t token, const uint64_t *reciprocals) {
    uint32_t columns = args->orders * args->heads;
    const int64_t *primes = args->primes + layer * columns;
    const int64_t *offsets = args->offsets ? args->offsets + layer * columns : NULL;
    const int64_t *multipliers = args->multipliers + layer * (args->orders + 1);
    int64_t *rows = args->rows + (layer * args->tokens + token) * columns;
    kiln_varlen_sequence sequence = kiln_varlen_find(&args->varlen, token);
    if (sequence.number >= args->varlen.batch) {
        memset(rows, 0xff, columns * sizeof *rows);
        return;
    }
    uint64_t mix = kiln_ngram_product(args, sequence, token, 0, multipliers);
    for (uint32_t order = 0, column = 0; order < args->orders; order++) {
        mix ^= kiln_ngram_product(args, sequence, token, order + 1, multipliers);
        for (uint32_t head = 0; head < args->heads; head++, column++) {
            kiln_modulus modulus = {primes[column], reciprocals[column]};
            int64_t row = kiln_modulo((int64_t)mix, modulus);
            rows[column] = row < 0 ? -1 : row + (offsets ? offsets[column] : 0);
        }
    }
}

KILN_OUTLINED void engram_hash(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_engram_hash_args args =
        *(const kiln_engram_hash_args *)arguments; /* a copy, which no store can change */
    const uint32_t columns = args.orders * args.heads, tile = args.run * (KILN_BLOCK >> args.lanes_log2);
    uint64_t reciprocals[KILN_BLOCK], filled = UINT64_MAX;
    (void)dtype;
    for (uint64_t block = span->begin; block < span->end; block++) {
        uint64_t layer = block / span->grid[0], token = block % span->grid[0] * tile;
        uint64_t end = kiln_min(token + tile, args.tokens);
        for (uint32_t i = 0; i < columns && filled != layer; i++)
            reciprocals[i] = kiln_modulus_of(args.primes[layer * columns + i]).reciprocal;
        filled = layer;
        for (; token < end; token++)
            hash(&args, layer, (uint32_t)token, reciprocals);
    }
}
KILN_CPU_KERNEL(engram_hash)
