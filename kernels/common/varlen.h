/* Sequences whose tokens are stored one after the other: finding the sequence of a token. The includer (device.h,
 * cpu.h) defines KILN_INLINE. */
#ifndef KILN_KERNELS_COMMON_VARLEN_H
#define KILN_KERNELS_COMMON_VARLEN_H

#include "kernels/common/varlen_args.h"

/* A sequence: its number, and its tokens. */
typedef struct kiln_varlen_sequence {
    uint32_t number; /* batch: no sequence has the token */
    uint32_t begin, end;
} kiln_varlen_sequence;

/* Where a sequence begins or ends; never below 0. */
KILN_INLINE uint32_t kiln_varlen_bound(const kiln_varlen *varlen, uint32_t number) {
    if (!varlen->cu_seqlens) return number * varlen->seqlen;
    int32_t bound = varlen->cu_seqlens[number];
    return bound < 0 ? 0 : (uint32_t)bound;
}

/* The first sequence that ends after a token, if it begins at the token or before it. */
KILN_INLINE kiln_varlen_sequence kiln_varlen_find(const kiln_varlen *varlen, uint32_t token) {
    kiln_varlen_sequence found = {0, 0, 0}, none = {varlen->batch, 0, 0};
    if (!varlen->cu_seqlens) {
        found.number = token / varlen->seqlen;
    } else {
        uint32_t end = varlen->batch;
        while (found.number < end) {
            uint32_t middle = found.number + (end - found.number) / 2;
            if (kiln_varlen_bound(varlen, middle + 1) > token)
                end = middle;
            else
                found.number = middle + 1;
        }
        if (found.number == varlen->batch) return none;
    }
    found.begin = kiln_varlen_bound(varlen, found.number);
    found.end = kiln_varlen_bound(varlen, found.number + 1);
    if (found.begin > token) return none;
    return found;
}

/* A sequence by its number, limited to the tokens that exist. */
KILN_INLINE kiln_varlen_sequence kiln_varlen_of(const kiln_varlen *varlen, uint32_t number, uint32_t tokens) {
    kiln_varlen_sequence sequence = {number, 0, 0};
    uint32_t begin = kiln_varlen_bound(varlen, number), end = kiln_varlen_bound(varlen, number + 1);
    sequence.end = end < tokens ? end : tokens;
    sequence.begin = begin < sequence.end ? begin : sequence.end;
    return sequence;
}

#endif
