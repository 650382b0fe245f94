/* The engine of a scheduler: a device, a model on it, the blocks of its cache and the generations that run. Each step
 * gives every running generation a token, or computes a part of its prompt. Used by one thread. */
#ifndef KILN_TRITON_ENGINE_H
#define KILN_TRITON_ENGINE_H

#include "generation.h"
#include "paged_llama.h"

typedef struct engine_options {
    kiln_device_options device;
    llama_precision precision;
    int32_t max_batch;       /* generations that run at once */
    int32_t max_step_tokens; /* of a step, prompts and generated; at least max_batch */
    int32_t block_count;     /* of the cache */
    int32_t block_size;      /* tokens, a power of two */
    int32_t no_reuse;        /* non-zero: no prompt shares blocks with another */
    uint64_t hash_seed;      /* of the prefix hashes */
} engine_options;

/* What an engine has done: (name, text). */
#define ENGINE_COUNTS(COUNT)                                               \
    COUNT(steps, "Steps of the model")                                     \
    COUNT(step_tokens, "Tokens that went through the model")               \
    COUNT(generated_tokens, "Tokens that were generated")                  \
    COUNT(prompt_tokens, "Tokens of prompts that were begun")              \
    COUNT(reused_tokens, "Tokens of prompts that were found in the cache") \
    COUNT(preemptions, "Generations put back to wait for blocks")          \
    COUNT(cancelled_requests, "Requests that were cancelled")              \
    COUNT(failed_requests, "Requests that failed after they were accepted")

typedef struct engine_counts {
#define ENGINE_COUNT(name, text) int64_t name;
    ENGINE_COUNTS(ENGINE_COUNT)
#undef ENGINE_COUNT
} engine_counts;

typedef struct engine {
    const llama_checkpoint *checkpoint; /* must live as long */
    engine_options options;
    kiln_device *device; /* NULL: not open */
    kiln_stream stream;
    paged_llama *model;
    kiln_blocks *blocks;
    generation **running; /* [max_batch], in the order of their admission */
    int32_t running_count;
    struct engine_part *parts; /* [max_batch]: the step's */
    kiln_sequence *sequences;  /* [max_batch] */
    int32_t *chosen;           /* [max_batch] */
    engine_counts counts;
} engine;

/* Opens the device and loads the model; options and checkpoint are set, all else is zero or as engine_close left it.
 * After a failure, which kiln_last_error explains, nothing is open. */
kiln_status engine_open(engine *e);

/* Releases everything but the counts. Nothing may run. */
void engine_close(engine *e);

/* Lets a generation run. False: there is no room for it now. */
bool engine_admit(engine *e, generation *g);

/* Takes a step with what runs, which may be nothing. Generations that are cancelled end before it, those that are
 * done after it. *out_preempted is a list of those that had to give their blocks to others, the oldest first. After a
 * failure everything still runs, and is to be ended. */
kiln_status engine_step(engine *e, generation **out_preempted);

/* Ends everything that runs. */
void engine_end_all(engine *e, generation_end why, const char *text);

/* Blocks that generations hold. */
int32_t engine_used_blocks(const engine *e);

#endif
