/* Attention on codes of 8 bits for sm_89 and later: the device source of mha_int8_x_fp8_fwd and mha_fp8_fwd by matrix
 * instructions, beside those for few rows (attention_codes_decode.h), and the portable ones (attention_codes_gpu.h) for
 * heads that are not on 16 bytes.
 *
 * A block does 128 rows, 16 by a warp, over tiles of 64 keys; of 32 where heads have more than 128 elements, whose
 * queries stay in shared memory. cp.async fetches the next tile of k, v and k's scales while one is at work: one
 * barrier a tile. The rows with the most keys to see, the last, go first.
 *
 * Floor: 4 * rows * keys * head_dim operations. Not measured; docs/kernel-report.md has the instructions counted.
 * Includers define what attention_codes_gpu.h asks for, and unit (attention_codes_products.h). Test:
 * build/tests/ops/mha_codes_test. */
#ifndef KILN_KERNELS_COMMON_ATTENTION_ATTENTION_CODES_SM89_H
#define KILN_KERNELS_COMMON_ATTENTION_ATTENTION_CODES_SM89_H

#include "kernels/common/attention/attention_codes_sm89_tile.h"
#include "kernels/common/tuned.h"

enum : uint32_t { PREFILL_ROWS = WARPS * WARP_ROWS };

/* Shared memory, in bytes: two tiles of keys, then the queries. */
template <uint32_t DIM> struct prefilling {
    typedef tile<DIM, (DIM > HELD_DIM ? 32 : 64)> keys;
    enum : uint32_t { QUERIES = 2 * keys::BYTES, BYTES = QUERIES + PREFILL_ROWS * (DIM + CODES) };
};

template <uint32_t DIM> KILN_INLINE void prefill(const kiln_attention_codes_args &args) {
    typedef typename prefilling<DIM>::keys stage;
    KILN_DYNAMIC_SHARED(kiln_vector, memory);
    const kiln_attention_args &plain = args.plain;
    uint32_t shared = kiln_sm80_shared(memory), warp = kiln_thread() / LANES;
    kiln_attention_work work = kiln_attention_work_of(&plain, 0, (uint32_t)kiln_block());
    work.row = (plain.row_tiles - 1 - kiln_tile()) * PREFILL_ROWS; /* the last rows first: with causal they see most */
    if (work.batch >= plain.batch) return;                         /* the whole block */
    kiln_sequence s = kiln_sequence_of(&plain, work.batch);
    uint32_t end = s.seqlen_q * plain.group; /* of the rows */
    if (work.row >= end) return;             /* the whole block */
    kiln_attention_trim(&plain, &s, work.row + PREFILL_ROWS < end ? work.row + PREFILL_ROWS : end, &work);

    copy_keys<stage, KILN_BLOCK>(args, s, work.kv_head, work.key, work.key_end, shared);
    copy_queries<DIM, PREFILL_ROWS>(plain, s, work.kv_head, work.row, end, shared + prefilling<DIM>::QUERIES);
    kiln_sm80_cp_async_wait<0>();
    kiln_barrier();
    queries_of_warp<DIM> queries;
    start_queries(&queries, shared + prefilling<DIM>::QUERIES + warp * WARP_ROWS * (DIM + CODES), plain.head_dim);
    uint32_t row = work.row + warp * WARP_ROWS;
    rows_of_warp<DIM> rows;
    start_rows(args, s, work, row, end, &rows);
    KILN_LOOP
    for (uint32_t key = work.key, use = 0; key < work.key_end; key += stage::KEYS, use ^= 1) {
        kiln_sm80_cp_async_wait<0>();
        kiln_barrier();
        copy_keys<stage, KILN_BLOCK>(args, s, work.kv_head, key + stage::KEYS, work.key_end,
                                     shared + (use ^ 1) * stage::BYTES);
        const char *at = (const char *)memory + use * stage::BYTES;
        if (row < end)
            add_keys<stage>(&rows, queries, shared + use * stage::BYTES, (const float *)(at + stage::SCALES), key);
    }
    kiln_sm80_cp_async_wait<0>();
    if (row < end) write_rows(args, s, work, rows, row, end);
}

#endif
