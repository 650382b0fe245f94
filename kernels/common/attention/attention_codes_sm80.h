/* Attention on codes of 8 bits for sm_80 and sm_86: the device source of mha_int8_x_fp8_fwd and mha_fp8_fwd by matrix
 * instructions, beside those for few rows (attention_codes_decode.h), and the portable ones (attention_codes_gpu.h) for
 * heads that are not on 16 bytes.
 *
 * A block does 128 rows, 16 by a warp, over tiles of 64 keys; of 32 where heads have more than 128 elements, whose
 * queries stay in shared memory. The next tile comes by cp.async while one is at work, to places from which each thread
 * reads again what it has copied itself: once all warps are done with a tile it makes numbers of the codes of the next
 * one in its place. Two barriers a tile. The rows with the most keys to see, the last, go first.
 *
 * Floor: 4 * rows * keys * head_dim operations, of which those of E4M3 are done in 16 bits: as much as mha has with
 * mha_fp8_fwd, three quarters with mha_int8_x_fp8_fwd; what is gained beside is half of the bytes. Not measured;
 * docs/kernel-report.md has the instructions counted. Numbers made by each warp as it reads codes would be eight times
 * as many instructions, more than all others together (counted in the source). Includers define what
 * attention_codes_gpu.h asks for, and unit (attention_codes_products.h). Test: build/tests/ops/mha_codes_test. */
#ifndef KILN_KERNELS_COMMON_ATTENTION_ATTENTION_CODES_SM80_H
#define KILN_KERNELS_COMMON_ATTENTION_ATTENTION_CODES_SM80_H

#include "kernels/common/attention/attention_codes_sm80_tile.h"
#include "kernels/common/tuned.h"

enum : uint32_t { PREFILL_ROWS = WARPS * WARP_ROWS };

/* Shared memory, in bytes: a tile of numbers, the codes of the next one, then the queries. */
template <uint32_t DIM> struct prefilling {
    typedef number_tile<DIM, (DIM > HELD_DIM ? 32 : 64)> keys;
    typedef code_tile<DIM, keys::KEYS, DIM> codes;
    enum : uint32_t {
        NEXT = keys::BYTES,
        QUERIES = NEXT + codes::BYTES,
        BYTES = QUERIES + PREFILL_ROWS * (DIM + CODES)
    };
};

/* Puts the numbers of 16 codes into shared memory, those of odd codes so many bytes behind those of even ones. */
KILN_INLINE void put_numbers(char *to, uint32_t odd, const kiln_vector &codes) {
    kiln_vector numbers[2];
    KILN_UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t pairs[2];
        pairs_of_codes(pairs, codes.words[i]);
        numbers[0].words[i] = pairs[0];
        numbers[1].words[i] = pairs[1];
    }
    *(kiln_vector *)to = numbers[0];
    *(kiln_vector *)(to + odd) = numbers[1];
}

/* Makes a tile of what this thread has copied of the next one. */
template <uint32_t DIM> KILN_INLINE void take_next(char *memory) {
    typedef typename prefilling<DIM>::keys keys;
    typedef typename prefilling<DIM>::codes codes;
    const char *next = memory + prefilling<DIM>::NEXT;
    KILN_UNROLL
    for (uint32_t i = kiln_thread(); i < keys::KEYS * codes::VECTORS; i += KILN_BLOCK) {
        const uint32_t row = i / codes::VECTORS, vector = i % codes::VECTORS;
        const kiln_vector k = ((const kiln_vector *)next)[i];
        char *to = memory + row * keys::KEY_ROW + vector * CODES;
        if (unit::FRAGMENTS == 1)
            *(kiln_vector *)to = k;
        else
            put_numbers(to, DIM, k);
        put_numbers(memory + keys::V + row * keys::ROW + vector * CODES, DIM,
                    ((const kiln_vector *)(next + codes::V))[i]);
    }
    if (kiln_thread() < keys::KEYS)
        ((float *)(memory + keys::SCALES))[kiln_thread()] = ((const float *)(next + codes::SCALES))[kiln_thread()];
}

template <uint32_t DIM> KILN_INLINE void prefill(const kiln_attention_codes_args &args) {
    typedef typename prefilling<DIM>::keys stage;
    typedef typename prefilling<DIM>::codes codes;
    KILN_DYNAMIC_SHARED(kiln_vector, memory);
    const kiln_attention_args &plain = args.plain;
    const uint32_t shared = kiln_sm80_shared(memory), next = shared + prefilling<DIM>::NEXT;
    const uint32_t warp = kiln_thread() / LANES;
    kiln_attention_work work = kiln_attention_work_of(&plain, 0, (uint32_t)kiln_block());
    work.row = (plain.row_tiles - 1 - kiln_tile()) * PREFILL_ROWS; /* the last rows first: with causal they see most */
    if (work.batch >= plain.batch) return;                         /* the whole block */
    const kiln_sequence s = kiln_sequence_of(&plain, work.batch);
    const uint32_t end = s.seqlen_q * plain.group; /* of the rows */
    if (work.row >= end) return;                   /* the whole block */
    kiln_attention_trim(&plain, &s, work.row + PREFILL_ROWS < end ? work.row + PREFILL_ROWS : end, &work);

    copy_keys<codes, KILN_BLOCK>(args, s, work.kv_head, work.key, work.key_end, next);
    copy_queries<DIM, PREFILL_ROWS>(plain, s, work.kv_head, work.row, end, shared + prefilling<DIM>::QUERIES);
    kiln_sm80_cp_async_wait<0>();
    kiln_barrier();
    queries_of_warp<DIM> queries;
    start_queries(&queries, shared + prefilling<DIM>::QUERIES + warp * WARP_ROWS * (DIM + CODES), plain.head_dim);
    const uint32_t row = work.row + warp * WARP_ROWS;
    rows_of_warp<DIM> rows;
    start_rows(args, s, work, row, end, &rows);
    KILN_LOOP
    for (uint32_t key = work.key; key < work.key_end; key += stage::KEYS) {
        kiln_sm80_cp_async_wait<0>();
        kiln_barrier(); /* all are done with the tile before */
        take_next<DIM>((char *)memory);
        copy_keys<codes, KILN_BLOCK>(args, s, work.kv_head, key + stage::KEYS, work.key_end, next);
        kiln_barrier();
        if (row < end)
            add_keys<stage>(&rows, queries, shared, (const float *)((const char *)memory + stage::SCALES), key);
    }
    kiln_sm80_cp_async_wait<0>();
    if (row < end) write_rows(args, s, work, rows, row, end);
}

#endif
