/* The block manager's state, for its own files: blocks.c sequences, pool.c free blocks, prefix.c reuse. */
#ifndef KILN_LOADER_BLOCKS_MANAGER_H
#define KILN_LOADER_BLOCKS_MANAGER_H

#include <kiln/blocks.h>
#include <stdbool.h>

enum { KILN__NO_BLOCK = -1 };

/* One published block, which is found by the one before it in its prompt. Its number alone would not do: the block may
 * have been taken for other tokens meanwhile, which gives it a new serial. */
typedef struct kiln__prefix {
    int32_t block;   /* KILN__NO_BLOCK: the beginning of a prompt */
    uint64_t serial; /* at the beginning the sequence's salt */
} kiln__prefix;

typedef struct kiln__block {
    int32_t holders;              /* sequences that have it in their tables */
    int32_t free_prev, free_next; /* without holders: in the list of free blocks, the next to be taken first */
    int32_t same_prev, same_next; /* published: in the list of its hash */
    uint32_t bucket;
    bool published;
    uint64_t serial;     /* counts how often it was unpublished */
    kiln__prefix parent; /* published: what stands before it */
} kiln__block;

typedef struct kiln__sequence {
    int64_t length;      /* tokens */
    int32_t block_count; /* of its table */
    int32_t published;   /* its first blocks that are published, by it or by another */
    kiln__prefix last;   /* the last of these */
    uint64_t salt;
    uint64_t epoch;      /* of the manager when it began: an earlier one publishes nothing any more */
    uint32_t generation; /* the upper half of its number */
    int32_t next;        /* not in use: the next such place */
    bool used;
} kiln__sequence;

struct kiln_blocks {
    kiln_blocks_options options;
    kiln_blocks_info info;
    kiln__block *blocks; /* [block_count] */
    int32_t *tokens;     /* [block_count, block_size] */
    int32_t free_first, free_last;
    int32_t *buckets; /* [bucket_mask + 1]: the first block of each hash */
    uint32_t bucket_mask;
    uint64_t epoch;            /* counts kiln_blocks_forget */
    kiln__sequence *sequences; /* [max_sequences] */
    int32_t *tables;           /* [max_sequences, max_blocks] */
    int32_t sequence_free;     /* the first place without a sequence */
};

/* pool.c: holders and the list of free blocks. */

/* Puts every block of a new manager into the list. */
void kiln__pool_fill(kiln_blocks *blocks);

/* Takes a free block, of which there must be one, for other tokens; its holder is the caller. */
int32_t kiln__pool_take(kiln_blocks *blocks);

/* One holder more of a block, which may be free. */
void kiln__pool_hold(kiln_blocks *blocks, int32_t block);

/* One holder less; without any the block is free. */
void kiln__pool_release(kiln_blocks *blocks, int32_t block);

/* prefix.c: published blocks by what they hold and what stands before them. */

/* The published block with these tokens, [block_size], behind parent; KILN__NO_BLOCK if there is none. */
int32_t kiln__prefix_find(const kiln_blocks *blocks, kiln__prefix parent, const int32_t *tokens);

/* Publishes a full block behind parent, unless it is. */
void kiln__prefix_add(kiln_blocks *blocks, kiln__prefix parent, int32_t block);

/* Unpublishes a block if it is published. */
void kiln__prefix_remove(kiln_blocks *blocks, int32_t block);

/* What stands behind a block is found by this. */
kiln__prefix kiln__prefix_of(const kiln_blocks *blocks, int32_t block);

/* Whether it is still published as it was then; the beginning of a prompt always is. */
bool kiln__prefix_holds(const kiln_blocks *blocks, kiln__prefix prefix);

#endif
