/* Continuous batching: generations wait in a queue, run together, a token each a step, and end one by one, so that a
 * short one does not wait for a long one (Yu et al., "Orca", OSDI 2022).
 *
 * A scheduler has one thread, its worker, which owns the engine; the queue alone is shared, under a lock. A generation
 * has the same tokens whatever runs beside it as far as the kernels of its device give a row the same bits in a batch
 * of any size. When the device is lost, what runs and waits fails with the reason, and the next generation that is
 * submitted makes the worker open the device anew, at most once a second. */
#ifndef KILN_TRITON_SCHEDULER_H
#define KILN_TRITON_SCHEDULER_H

#include "engine.h"

/* What a scheduler tells beside ENGINE_COUNTS: (name, text). The first are totals, the others as of now. */
#define SCHEDULER_COUNTS(COUNT)                             \
    COUNT(accepted_requests, "Requests that were accepted") \
    COUNT(refused_requests, "Requests refused since the queue was full")
#define SCHEDULER_GAUGES(COUNT)                                          \
    COUNT(waiting_requests, "Requests that wait")                        \
    COUNT(running_requests, "Requests that run: the size of the batch")  \
    COUNT(used_blocks, "Blocks of the cache that running requests hold") \
    COUNT(total_blocks, "Blocks of the cache")

typedef struct scheduler_counts {
    engine_counts engine;
#define SCHEDULER_COUNT(name, text) int64_t name;
    SCHEDULER_COUNTS(SCHEDULER_COUNT)
    SCHEDULER_GAUGES(SCHEDULER_COUNT)
#undef SCHEDULER_COUNT
} scheduler_counts;

typedef struct scheduler_options {
    engine_options engine;
    int32_t max_queue;                                           /* generations that may wait */
    void (*observe)(void *user, const scheduler_counts *counts); /* called by the worker after each step; or NULL */
    void *user;
} scheduler_options;

typedef struct scheduler scheduler;

/* Starts a worker, and waits until it has loaded the model. On failure *out is NULL and reason says why. The checkpoint
 * must live as long. */
kiln_status scheduler_create(const llama_checkpoint *checkpoint, const scheduler_options *options, scheduler **out,
                             char reason[LLAMA_REASON_SIZE]);

/* Ends every generation that waits or runs with GENERATION_CLOSED, then the worker. NULL is accepted. No other thread
 * may use the scheduler. */
void scheduler_destroy(scheduler *s);

typedef enum submit_result {
    SUBMIT_ACCEPTED,
    SUBMIT_TOO_LONG, /* its prompt and one token are more than the model's length or than the cache holds */
    SUBMIT_FULL,     /* max_queue generations wait */
} submit_result;

/* Lends a generation to the scheduler, if it is accepted. What max_tokens has beyond the model's length and the cache's
 * capacity is cut. Any thread. */
submit_result scheduler_submit(scheduler *s, generation *g);

/* The most tokens that a generation may have, its prompt's included. */
int32_t scheduler_max_length(const scheduler *s);

#endif
