/* What the tests of mha_paged share: caches that have the keys and values of some sequences. */
#ifndef KILN_TESTS_OPS_PAGED_H
#define KILN_TESTS_OPS_PAGED_H

#include "tests/ops/attention.h"

/* A cache that has the keys and values of some sequences in blocks that lie anywhere in it, as they are or as codes of
 * E4M3. */
typedef struct paged {
    int64_t block_size, blocks, max_blocks_per_seq;
    matrix caches[2], block_table, lengths;
    int64_t cache_scales; /* 0: as they are */
    matrix scales[2];     /* of codes */
    matrix workspace;     /* if there is one */
    size_t workspace_size;
} paged;

/* The number of a code of E4M3. */
double paged_e4m3(int code);

/* Makes the cache of the tensors' keys and values. Destroy it in the same test. */
paged paged_create(kiln_stream *stream, precision p, attention_shape s, const attention_tensors *t, int64_t block_size);

/* Makes a cache of random codes, with one scale for all or one for each of the shape's kv_heads, and gives t->k.values
 * and t->v.values their numbers times the scales; what the matrices have on the device is not changed. `nan` of a
 * hundred codes are NaN. */
paged paged_create_codes(kiln_stream *stream, precision p, attention_shape s, attention_tensors *t, int64_t block_size,
                         int64_t cache_scales, int64_t nan);
void paged_destroy(paged *c, attention_shape s);

/* A call with them; p is as for paged_create. */
kiln_mha_paged_params paged_params(const paged *c, const attention_tensors *t, attention_shape s);

#endif
