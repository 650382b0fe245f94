/* A request for text, as the scheduler knows it: a prompt in tokens, how to choose those that follow, and whom to tell.
 * It is the caller's, and lent to the scheduler from scheduler_submit until it has called `end`, always once. */
#ifndef KILN_TRITON_GENERATION_H
#define KILN_TRITON_GENERATION_H

#include <kiln/blocks.h>
#include <stdbool.h>

/* Why a generation ended: (name, in words). */
#define GENERATION_ENDS(END)                                                       \
    END(STOP, "stop")           /* the model ended the text */                     \
    END(LENGTH, "length")       /* max_tokens, or the model's length, are there */ \
    END(CANCELLED, "cancelled") /* `is_cancelled` said so */                       \
    END(FAILED, "failed")       /* the device or the model did */                  \
    END(CLOSED, "closed")       /* the scheduler was closed before */

typedef enum generation_end {
#define GENERATION_END(name, text) GENERATION_##name,
    GENERATION_ENDS(GENERATION_END)
#undef GENERATION_END
} generation_end;

/* How a token is chosen, as in kiln_sample_params. */
typedef struct sampling {
    float temperature; /* 0: the most likely token, and what follows does not count */
    float top_p, min_p;
    int32_t top_k;
    int64_t seed; /* the same gives the same tokens, whatever else is in the batch */
} sampling;

typedef struct generation generation;

struct generation {
    int32_t *tokens;    /* the prompt, with room for max_tokens behind it, where the scheduler puts what it generates */
    int32_t count;      /* of the prompt, at least 1; grows */
    int32_t max_tokens; /* at least 1 */
    sampling sampling;
    void *user;

    /* Called by the scheduler's thread; none may call the scheduler or wait for long. */
    void (*token)(generation *g, int32_t token);
    bool (*is_cancelled)(generation *g);
    void (*end)(generation *g, generation_end why, const char *text); /* text: of CANCELLED, FAILED and CLOSED */

    /* The scheduler's own. */
    generation *next;
    kiln_sequence sequence;
    int32_t computed; /* tokens whose keys and values are in the cache */
    int32_t limit;    /* count ends here */
};

#endif
