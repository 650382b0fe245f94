/* The block manager of a paged cache of keys and values.
 *
 * A server keeps the keys and values of its sequences in blocks of a fixed number of tokens (Kwon et al., "Efficient
 * Memory Management for Large Language Model Serving with PagedAttention", arXiv 2309.06180). The manager tracks which
 * block holds which tokens. It runs on the host only and uses no device; the memory of the cache belongs to the caller.
 *
 *   kiln_blocks_create      creates the manager of a cache
 *   kiln_blocks_begin       begins a sequence with its prompt, sharing whole blocks that the cache already holds
 *   kiln_blocks_append      appends tokens, and reports which shared block must be copied first
 *   kiln_blocks_fork        begins a second sequence with the same tokens, without copying yet
 *   kiln_blocks_publish     allows reuse of tokens whose keys and values are in the cache
 *   kiln_blocks_truncate    removes tokens from the end, such as rejected drafts
 *   kiln_blocks_end         ends a sequence; its published blocks stay reusable until their space is needed
 *
 * and for the operators:
 *
 *   kiln_blocks_get_slots   slot_mapping of kiln_kv_store
 *   kiln_blocks_get_tables  block_table and seqlens_k of kiln_mha_paged
 *
 * - Reuse: a block is looked up by its tokens, all tokens before them, and the sequence's salt. The tokens themselves
 *   are compared, not only their hashes, so that a hash collision can never make one prompt read another's keys.
 * - Eviction: of the blocks that no sequence holds, those without reusable contents are reused first, then the least
 *   recently used. Within a sequence the last blocks are evicted first.
 * - Cost: constant per token and block; nothing is allocated after kiln_blocks_create.
 * - Failure: a call that fails leaves the manager unchanged. A call that needs more blocks than are free returns
 *   KILN_ERROR_OUT_OF_MEMORY.
 * - Threads: a manager may be used by only one thread at a time; its functions take no lock. Different managers are
 *   independent.
 */
#ifndef KILN_BLOCKS_H
#define KILN_BLOCKS_H

#include <kiln/kiln.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The manager of the blocks of one cache. */
typedef struct kiln_blocks kiln_blocks;

/* The handle of a sequence. After the sequence has ended, its number is not reused for the next 2^31 sequences in its
 * slot. */
typedef int64_t kiln_sequence;

typedef struct kiln_blocks_options {
    int32_t block_count;   /* blocks of the cache, 1 to 2^30 */
    int32_t block_size;    /* tokens per block, 1 to 2^20; kiln_mha_paged requires a power of two */
    int32_t max_sequences; /* maximum number of sequences at a time, 1 to 2^24 */
    int32_t max_blocks;    /* per sequence, 1 to 2^24; max_sequences * max_blocks is at most 2^32 */
    int32_t no_reuse;      /* non-zero: prompts do not share blocks */
    int32_t reserved;      /* must be 0 */
    uint64_t seed;         /* of the hash; a random seed prevents deliberate collisions. 0 is a valid seed */
} kiln_blocks_options;

/* Creates a manager with all blocks free. It allocates 4 * block_count * block_size bytes for tokens, 4 * max_sequences
 * * max_blocks bytes for tables, whose pages become resident as they are used, and about 50 bytes per block. Release
 * with kiln_blocks_destroy. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT, KILN_ERROR_OUT_OF_MEMORY. */
KILN_API kiln_status kiln_blocks_create_sized(const kiln_blocks_options *options, size_t options_size,
                                              kiln_blocks **out_blocks);
static inline kiln_status kiln_blocks_create(const kiln_blocks_options *options, kiln_blocks **out_blocks) {
    return kiln_blocks_create_sized(options, sizeof *options, out_blocks);
}

/* Releases a manager and all its sequences. NULL is accepted. */
KILN_API void kiln_blocks_destroy(kiln_blocks *blocks);

/* The state of a manager. */
typedef struct kiln_blocks_info {
    int32_t block_count;
    int32_t free_blocks;     /* held by no sequence, hence available to an append */
    int32_t reusable_blocks; /* published, whether or not a sequence holds them */
    int32_t sequences;
    int64_t prompt_tokens; /* passed to kiln_blocks_begin so far */
    int64_t reused_tokens; /* prompt_tokens that were found in the cache */
    int64_t evictions;     /* published blocks that were reassigned to other tokens */
    int64_t reserved[6];
} kiln_blocks_info;

/* Gets the state of a manager, in constant time. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT. */
KILN_API kiln_status kiln_blocks_get_info(const kiln_blocks *blocks, kiln_blocks_info *out_info);

/* Begins a sequence with its prompt of count tokens; if count is 0, tokens may be NULL. The first *out_reused tokens,
 * in whole blocks, are already in the cache, so the model needs to run only on the rest. The last token is never among
 * them, because its logits are needed. Sequences with different salts (tenants, adapters) do not share blocks. Returns
 * KILN_OK; KILN_ERROR_INVALID_ARGUMENT (also if the prompt needs more than max_blocks); KILN_ERROR_OUT_OF_MEMORY (too
 * few free blocks, or max_sequences reached). */
KILN_API kiln_status kiln_blocks_begin(kiln_blocks *blocks, const int32_t *tokens, int64_t count, uint64_t salt,
                                       kiln_sequence *out_sequence, int64_t *out_reused);

/* Begins a sequence with the tokens and the blocks of another one. This allocates no block, and takes time proportional
 * to the number of shared blocks. The first sequence to append to a shared block that is not full gets a copy. Returns
 * KILN_OK, KILN_ERROR_INVALID_ARGUMENT, KILN_ERROR_NOT_FOUND (no such sequence), KILN_ERROR_OUT_OF_MEMORY
 * (max_sequences reached). */
KILN_API kiln_status kiln_blocks_fork(kiln_blocks *blocks, kiln_sequence sequence, kiln_sequence *out_sequence);

/* A block to be copied before the appended tokens are stored: a row of the pairs of kiln_kv_copy_blocks. If from is -1,
 * no copy is needed. */
typedef struct kiln_block_copy {
    int32_t from;
    int32_t to;
} kiln_block_copy;

/* Appends count tokens to a sequence and allocates blocks for them. If they begin in a block that other sequences also
 * hold, this sequence gets a block of its own, and *out_copy is the copy that kiln_kv_copy_blocks must make, in stream
 * order before kiln_kv_store. Launch the copy before any sequence is ended or truncated, because the block that it
 * reads may then be reassigned to other tokens. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT, KILN_ERROR_NOT_FOUND,
 * KILN_ERROR_OUT_OF_MEMORY. */
KILN_API kiln_status kiln_blocks_append(kiln_blocks *blocks, kiln_sequence sequence, const int32_t *tokens,
                                        int64_t count, kiln_block_copy *out_copy);

/* Declares that the keys and values of a sequence's first count tokens are in the cache, or will be, written by work
 * that precedes all reads in stream order. Whole blocks of these tokens may then be reused. A count below the previous
 * one succeeds and has no effect. A sequence that is aborted before its tokens are computed must not publish them.
 * Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT, KILN_ERROR_NOT_FOUND. */
KILN_API kiln_status kiln_blocks_publish(kiln_blocks *blocks, kiln_sequence sequence, int64_t count);

/* Removes all tokens after the first count, and releases the blocks that held only such tokens.
 * Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT (count exceeds the sequence's length), KILN_ERROR_NOT_FOUND. */
KILN_API kiln_status kiln_blocks_truncate(kiln_blocks *blocks, kiln_sequence sequence, int64_t count);

/* Ends a sequence and releases its blocks. Has no effect if there is no such sequence, or if blocks is NULL. */
KILN_API void kiln_blocks_end(kiln_blocks *blocks, kiln_sequence sequence);

/* Withdraws all published blocks, which is necessary after the weights have changed. Sequences continue, but the tokens
 * that they published before remain withdrawn. */
KILN_API void kiln_blocks_forget(kiln_blocks *blocks);

/* Gets the number of tokens of a sequence. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT, KILN_ERROR_NOT_FOUND. */
KILN_API kiln_status kiln_blocks_get_length(const kiln_blocks *blocks, kiln_sequence sequence, int64_t *out_length);

/* Gets the tokens [first, first + count) of a sequence. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT (beyond its
 * length), KILN_ERROR_NOT_FOUND. */
KILN_API kiln_status kiln_blocks_get_tokens(const kiln_blocks *blocks, kiln_sequence sequence, int64_t first,
                                            int64_t count, int32_t *out_tokens);

/* Gets the slots of the tokens [first, first + count) of a sequence, block * block_size + offset in the block, in the
 * format of the slot_mapping of kiln_kv_store with 64-bit indices: [count]. Returns the same statuses as
 * kiln_blocks_get_tokens. */
KILN_API kiln_status kiln_blocks_get_slots(const kiln_blocks *blocks, kiln_sequence sequence, int64_t first,
                                           int64_t count, int64_t *out_slots);

/* Gets the block tables and lengths of count sequences, in the format of block_table and seqlens_k of kiln_mha_paged.
 * Each sequence has a row of out_table, [count, table_stride], whose entries after the sequence's blocks are left
 * unchanged. out_lengths, [count], may be NULL. Returns KILN_OK; KILN_ERROR_INVALID_ARGUMENT (also if table_stride is
 * less than the number of a sequence's blocks); KILN_ERROR_NOT_FOUND. */
KILN_API kiln_status kiln_blocks_get_tables(const kiln_blocks *blocks, const kiln_sequence *sequences, int64_t count,
                                            int64_t table_stride, int32_t *out_table, int32_t *out_lengths);

#ifdef __cplusplus
}
#endif

#endif
