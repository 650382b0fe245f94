/* Models that generate text: a Llama model's file and tokenizer, and a scheduler for each instance. */
#ifndef KILN_TRITON_TEXT_MODEL_H
#define KILN_TRITON_TEXT_MODEL_H

#include "docs/examples/llama/tokenizer.h"
#include "metrics.h"
#include "model_config.h"
#include "scheduler.h"

/* Parameters of the model's configuration that are texts: (name, what stands for it where it is absent). */
#define TEXT_MODEL_WORDS(WORD)                                                                       \
    WORD(model_file, "model.bin")         /* path */                                                 \
    WORD(tokenizer_file, "tokenizer.bin") /* path */                                                 \
    WORD(precision, "f32")                /* f32, f16 or bf16 */                                     \
    WORD(device, "") /* cpu, cuda:N or rocm:N, or several with commas, which instances take in turn; \
                      * "": the GPU of an instance of KIND_GPU, else the CPU */

/* Those that are whole numbers: (name, what stands for it where it is absent, least, most). */
#define TEXT_MODEL_NUMBERS(NUMBER)                                                                                    \
    NUMBER(max_batch, 64, 1, 4096)         /* requests that run at once */                                            \
    NUMBER(max_step_tokens, 0, 0, 1 << 20) /* of a step; 0: 512, and at least max_batch */                            \
    NUMBER(block_size, 16, 1, 1 << 20)     /* tokens of a block of the cache, a power of two */                       \
    NUMBER(blocks, 0, 0, 1 << 30)          /* of the cache; 0: enough for max_batch requests of the model's length */ \
    NUMBER(max_queue, 1024, 1, 1 << 20)    /* requests that may wait */                                               \
    NUMBER(prefix_reuse, 1, 0, 1)          /* 0: prompts share no blocks */                                           \
    NUMBER(threads, 0, 0, 1024)            /* of the CPU; 0: all */

typedef struct text_model {
    const char *name; /* the server's */
    uint64_t version;
#define TEXT_MODEL_WORD(name, absent)                const char *name;
#define TEXT_MODEL_NUMBER(name, absent, least, most) int64_t name;
    TEXT_MODEL_WORDS(TEXT_MODEL_WORD)
    TEXT_MODEL_NUMBERS(TEXT_MODEL_NUMBER)
#undef TEXT_MODEL_WORD
#undef TEXT_MODEL_NUMBER
    model_config config; /* what the words point into */
    llama_checkpoint checkpoint;
    llama_tokenizer tokenizer;
    int32_t instances; /* opened so far */
} text_model;

typedef struct text_instance {
    text_model *model;
    TRITONBACKEND_ModelInstance *handle;
    scheduler *scheduler;
    metrics *metrics;
} text_instance;

/* Opens the model's files. Takes the configuration, and completes that of the server where it is asked to. */
TRITONSERVER_Error *text_model_open(TRITONBACKEND_Model *handle, model_config *config, text_model **out);
void text_model_close(text_model *model);

/* Uploads the model to the instance's device. */
TRITONSERVER_Error *text_instance_open(text_model *model, TRITONBACKEND_ModelInstance *handle, text_instance **out);

/* What waits or runs is answered with an error before. */
void text_instance_close(text_instance *instance);

/* Takes a request, and answers it at once if it is wrong: text_request.c. */
void text_instance_execute(text_instance *instance, TRITONBACKEND_Request *request);

#endif
