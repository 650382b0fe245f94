/* The block manager of a paged cache of keys and values.
 *
 * A server keeps the keys and values of its sequences in blocks of a fixed number of tokens (Kwon et al., "Efficient
 * Memory Management for Large Language Model Serving with PagedAttention", arXiv 2309.06180). The manager says which
 * block holds what. It is host code alone: it knows no device, and the cache itself is the caller's memory.
 *
 *   kiln_blocks_create      one manager for one cache
 *   kiln_blocks_begin       a sequence with its prompt: whole blocks that the cache already holds are shared
 *   kiln_blocks_append      room for tokens that follow, with the copy that a shared block needs first
 *   kiln_blocks_fork        a second sequence with the same tokens, which copies nothing yet
 *   kiln_blocks_publish     tokens whose keys and values are in the cache may be reused from now on
 *   kiln_blocks_truncate    takes tokens back: rejected drafts
 *   kiln_blocks_end         a sequence is done; its published blocks stay for reuse until their room is needed
 *
 * and for the operators:
 *
 *   kiln_blocks_get_slots   slot_mapping of kiln_kv_store
 *   kiln_blocks_get_tables  block_table and seqlens_k of kiln_mha_paged
 *
 * - Reuse: a block is found by its tokens, by all tokens before them, and by the sequence's salt. Tokens are compared,
 *   not their hashes alone, so that no collision can make one prompt read another's keys.
 * - Blocks that no sequence holds are taken for new tokens in this order: first those without reusable contents, then
 *   the least recently used. Of one sequence the last blocks go first.
 * - Cost: constant for each token and block; nothing is allocated after kiln_blocks_create.
 * - Failure: a call that fails changes nothing. One that lacks blocks returns KILN_ERROR_OUT_OF_MEMORY.
 * - Threads: one manager is used by one thread at a time; kiln takes no lock. Different managers are independent.
 */
#ifndef KILN_BLOCKS_H
#define KILN_BLOCKS_H

#include <kiln/kiln.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The blocks of one cache. */
typedef struct kiln_blocks kiln_blocks;

/* A sequence of a manager. The number of one that has ended is not given again before 2^31 others of its place. */
typedef int64_t kiln_sequence;

typedef struct kiln_blocks_options {
    int32_t block_count;   /* blocks of the cache, 1 to 2^30 */
    int32_t block_size;    /* tokens of a block, 1 to 2^20; kiln_mha_paged takes powers of two */
    int32_t max_sequences; /* at once, 1 to 2^24 */
    int32_t max_blocks;    /* of one sequence, 1 to 2^24; max_sequences * max_blocks is at most 2^32 */
    int32_t no_reuse;      /* non-zero: prompts share nothing */
    int32_t reserved;      /* must be 0 */
    uint64_t seed;         /* of the hash; a random one keeps hostile prompts from colliding on purpose. 0 is a seed */
} kiln_blocks_options;

/* Creates a manager with every block free. It takes 4 * block_count * block_size bytes for tokens, 4 * max_sequences *
 * max_blocks for tables, of which the system gives pages as they are used, and about 50 bytes a block. Release with
 * kiln_blocks_destroy. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT, KILN_ERROR_OUT_OF_MEMORY. */
KILN_API kiln_status kiln_blocks_create_sized(const kiln_blocks_options *options, size_t options_size,
                                              kiln_blocks **out_blocks);
static inline kiln_status kiln_blocks_create(const kiln_blocks_options *options, kiln_blocks **out_blocks) {
    return kiln_blocks_create_sized(options, sizeof *options, out_blocks);
}

/* Releases a manager and all its sequences. NULL is accepted. */
KILN_API void kiln_blocks_destroy(kiln_blocks *blocks);

/* What a manager holds. */
typedef struct kiln_blocks_info {
    int32_t block_count;
    int32_t free_blocks;     /* that no sequence holds: what an append can take */
    int32_t reusable_blocks; /* published, held by a sequence or not */
    int32_t sequences;
    int64_t prompt_tokens; /* of all kiln_blocks_begin so far */
    int64_t reused_tokens; /* of these, found in the cache */
    int64_t evictions;     /* published blocks that were taken for other tokens */
} kiln_blocks_info;

/* Counts, in constant time. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT. */
KILN_API kiln_status kiln_blocks_get_info(const kiln_blocks *blocks, kiln_blocks_info *out_info);

/* Begins a sequence of count tokens, its prompt (0: an empty one, tokens may be NULL). *out_reused tokens of it, whole
 * blocks, are in the cache already: the model runs on those behind them only. The last token is never among them, since
 * its logits are wanted. Sequences of another salt (a tenant, an adapter) share nothing with it.
 * Returns KILN_OK; KILN_ERROR_INVALID_ARGUMENT (the prompt needs more than max_blocks, too); KILN_ERROR_OUT_OF_MEMORY
 * (too few free blocks, or max_sequences are there). */
KILN_API kiln_status kiln_blocks_begin(kiln_blocks *blocks, const int32_t *tokens, int64_t count, uint64_t salt,
                                       kiln_sequence *out_sequence, int64_t *out_reused);

/* Begins a sequence with the tokens and the blocks of another one. Takes no block, but time for each of them; whoever
 * appends first to a shared block that is not full gets a copy. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT,
 * KILN_ERROR_NOT_FOUND (no such sequence), KILN_ERROR_OUT_OF_MEMORY (max_sequences are there). */
KILN_API kiln_status kiln_blocks_fork(kiln_blocks *blocks, kiln_sequence sequence, kiln_sequence *out_sequence);

/* A block to be copied before the appended tokens are stored: a row of the pairs of kiln_kv_copy_blocks. from -1: none.
 */
typedef struct kiln_block_copy {
    int32_t from;
    int32_t to;
} kiln_block_copy;

/* Makes room for count tokens behind a sequence's last. Where that writes into a block that others hold, the sequence
 * gets one of its own, and *out_copy says which copy must be done before anything is stored there: by
 * kiln_kv_copy_blocks, in stream order before kiln_kv_store. Launch it before a sequence is ended or truncated: the
 * block that it reads may be taken for other tokens then. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT,
 * KILN_ERROR_NOT_FOUND, KILN_ERROR_OUT_OF_MEMORY. */
KILN_API kiln_status kiln_blocks_append(kiln_blocks *blocks, kiln_sequence sequence, const int32_t *tokens,
                                        int64_t count, kiln_block_copy *out_copy);

/* Says that the keys and values of a sequence's first count tokens are in the cache, or will be by work that is ahead
 * in the stream of whatever reads them: whole blocks of them may be reused. Fewer than before is a success that does
 * nothing. A sequence that is cut off before its tokens were computed must not publish them.
 * Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT, KILN_ERROR_NOT_FOUND. */
KILN_API kiln_status kiln_blocks_publish(kiln_blocks *blocks, kiln_sequence sequence, int64_t count);

/* Takes back all tokens behind the first count, and gives back the blocks of theirs alone.
 * Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT (count is beyond the sequence's), KILN_ERROR_NOT_FOUND. */
KILN_API kiln_status kiln_blocks_truncate(kiln_blocks *blocks, kiln_sequence sequence, int64_t count);

/* Ends a sequence and gives back its blocks. A number that is none is left alone, as is a NULL manager. */
KILN_API void kiln_blocks_end(kiln_blocks *blocks, kiln_sequence sequence);

/* Forgets every published block, as after the weights have changed. Sequences go on; what they published before does
 * not come back. */
KILN_API void kiln_blocks_forget(kiln_blocks *blocks);

/* How many tokens a sequence has. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT, KILN_ERROR_NOT_FOUND. */
KILN_API kiln_status kiln_blocks_get_length(const kiln_blocks *blocks, kiln_sequence sequence, int64_t *out_length);

/* The tokens [first, first + count) of a sequence. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT (beyond its length),
 * KILN_ERROR_NOT_FOUND. */
KILN_API kiln_status kiln_blocks_get_tokens(const kiln_blocks *blocks, kiln_sequence sequence, int64_t first,
                                            int64_t count, int32_t *out_tokens);

/* The slots of the tokens [first, first + count) of a sequence, block * block_size + place in it: [count], as the
 * slot_mapping of kiln_kv_store with 64-bit indices. Returns as kiln_blocks_get_tokens. */
KILN_API kiln_status kiln_blocks_get_slots(const kiln_blocks *blocks, kiln_sequence sequence, int64_t first,
                                           int64_t count, int64_t *out_slots);

/* The block tables of count sequences: a row each of out_table, [count, table_stride], whose places behind the
 * sequence's blocks are left as they are; and their lengths in out_lengths, [count], which may be NULL. As block_table
 * and seqlens_k of kiln_mha_paged. Returns KILN_OK; KILN_ERROR_INVALID_ARGUMENT (table_stride is less than the blocks
 * of a sequence, too); KILN_ERROR_NOT_FOUND. */
KILN_API kiln_status kiln_blocks_get_tables(const kiln_blocks *blocks, const kiln_sequence *sequences, int64_t count,
                                            int64_t table_stride, int32_t *out_table, int32_t *out_lengths);

#ifdef __cplusplus
}
#endif

#endif
