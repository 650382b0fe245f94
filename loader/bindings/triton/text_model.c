#include "text_model.h"
#include "device_choice.h"
#include "text_input.h"
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* ---- Parameters ---- */

static TRITONSERVER_Error *refuse_unknown(const model_config *config) {
    static const char *const names[] = {
#define NAME(name, ...) #name,
        TEXT_MODEL_WORDS(NAME) TEXT_MODEL_NUMBERS(NAME)
#undef NAME
    };
#define LISTED(name, ...) " " #name
    static const char list[] = TEXT_MODEL_WORDS(LISTED) TEXT_MODEL_NUMBERS(LISTED);
#undef LISTED
    for (size_t i = 0; i < config->count; i++) {
        bool known = false;
        for (size_t n = 0; n < sizeof names / sizeof *names; n++)
            known |= !strcmp(config->parameters[i].name, names[n]);
        if (!known)
            return triton_error(TRITONSERVER_ERROR_INVALID_ARG,
                                "parameter %s: a model of text has these:%s; one of an operator has function",
                                config->parameters[i].name, list);
    }
    return NULL;
}

static TRITONSERVER_Error *read_parameters(text_model *m) {
    const char *value;
    TRITON_TRY(refuse_unknown(&m->config));
#define WORD(name, absent)                        \
    value = model_config_find(&m->config, #name); \
    m->name = value ? value : (absent);
#define NUMBER(name, absent, least, most) \
    TRITON_TRY(model_config_integer(&m->config, #name, absent, least, most, &m->name));
    TEXT_MODEL_WORDS(WORD)
    TEXT_MODEL_NUMBERS(NUMBER)
#undef WORD
#undef NUMBER
    if (m->block_size & (m->block_size - 1))
        return triton_error(TRITONSERVER_ERROR_INVALID_ARG, "parameter block_size must be a power of two");
    if (!m->max_step_tokens) m->max_step_tokens = m->max_batch > 512 ? m->max_batch : 512;
    if (m->max_step_tokens >= m->max_batch) return NULL;
    return triton_error(TRITONSERVER_ERROR_INVALID_ARG, "parameter max_step_tokens must be at least max_batch");
}

static TRITONSERVER_Error *read_precision(const char *word, llama_precision *out) {
    for (*out = LLAMA_F32; *out <= LLAMA_BF16; ++*out)
        if (!strcmp(word, llama_precision_name(*out))) return NULL;
    return triton_error(TRITONSERVER_ERROR_INVALID_ARG, "parameter precision is \"%s\": must be f32, f16 or bf16",
                        word);
}

/* ---- The model ---- */

static void describe(void *user, json_writer *json) {
    (void)user;
    text_describe_tensors(json);
}

/* The path of a file in the folder of the model's version. */
static TRITONSERVER_Error *find_file(const text_model *m, TRITONBACKEND_Model *handle, const char *file, size_t size,
                                     char *path) {
    const char *folder;
    TRITONBACKEND_ArtifactType type;
    TRITON_TRY(TRITONBACKEND_ModelRepository(handle, &type, &folder));
    int length = *file == '/' ? snprintf(path, size, "%s", file)
                              : snprintf(path, size, "%s/%llu/%s", folder, (unsigned long long)m->version, file);
    if (length >= 0 && (size_t)length < size) return NULL;
    return triton_error(TRITONSERVER_ERROR_INVALID_ARG, "the path of %s is too long", file);
}

static TRITONSERVER_Error *open_files(text_model *m, TRITONBACKEND_Model *handle) {
    char path[1024], reason[LLAMA_REASON_SIZE];
    TRITON_TRY(find_file(m, handle, m->model_file, sizeof path, path));
    if (!llama_checkpoint_open(path, &m->checkpoint, reason))
        return triton_error(TRITONSERVER_ERROR_INVALID_ARG, "%s", reason);
    TRITON_TRY(find_file(m, handle, m->tokenizer_file, sizeof path, path));
    if (!llama_tokenizer_open(path, m->checkpoint.config.vocabulary_size, &m->tokenizer, reason))
        return triton_error(TRITONSERVER_ERROR_INVALID_ARG, "%s", reason);
    return NULL;
}

static TRITONSERVER_Error *open_model(text_model *m, TRITONBACKEND_Model *handle) {
    llama_precision precision;
    TRITON_TRY(TRITONBACKEND_ModelName(handle, &m->name));
    TRITON_TRY(TRITONBACKEND_ModelVersion(handle, &m->version));
    TRITON_TRY(read_parameters(m));
    TRITON_TRY(read_precision(m->precision, &precision));
    TRITON_TRY(open_files(m, handle));
    return model_config_complete(handle, &m->config, true, describe, NULL);
}

TRITONSERVER_Error *text_model_open(TRITONBACKEND_Model *handle, model_config *config, text_model **out) {
    text_model *m = calloc(1, sizeof *m);
    if (!m) return triton_error(TRITONSERVER_ERROR_INTERNAL, "no memory for the model");
    m->config = *config;
    *config = (model_config){0};
    TRITONSERVER_Error *error = open_model(m, handle);
    if (error)
        text_model_close(m);
    else
        *out = m;
    return error;
}

void text_model_close(text_model *m) {
    llama_tokenizer_close(&m->tokenizer);
    llama_checkpoint_close(&m->checkpoint);
    model_config_free(&m->config);
    free(m);
}

/* ---- An instance ---- */

static TRITONSERVER_Error *choose_engine(text_model *m, TRITONBACKEND_ModelInstance *handle, engine_options *out) {
    const int64_t length = m->checkpoint.config.length;
    const int64_t enough = m->max_batch * ((length + m->block_size - 1) / m->block_size);
    *out = (engine_options){.max_batch = (int32_t)m->max_batch,
                            .max_step_tokens = (int32_t)m->max_step_tokens,
                            .block_count = (int32_t)(m->blocks          ? m->blocks
                                                     : enough > 1 << 30 ? 1 << 30
                                                                        : enough),
                            .block_size = (int32_t)m->block_size,
                            .no_reuse = !m->prefix_reuse};
    if (getrandom(&out->hash_seed, sizeof out->hash_seed, 0) != (ssize_t)sizeof out->hash_seed)
        return triton_error(TRITONSERVER_ERROR_INTERNAL, "the system gives no random numbers");
    TRITON_TRY(read_precision(m->precision, &out->precision));
    TRITON_TRY(device_choose(m->device, m->instances++, handle, &out->device));
    out->device.threads = (int32_t)m->threads;
    return NULL;
}

static TRITONSERVER_Error *open_instance(text_instance *i) {
    text_model *m = i->model;
    scheduler_options options = {.max_queue = (int32_t)m->max_queue, .observe = metrics_observe};
    char reason[LLAMA_REASON_SIZE];
    const char *name;
    TRITON_TRY(TRITONBACKEND_ModelInstanceName(i->handle, &name));
    TRITON_TRY(choose_engine(m, i->handle, &options.engine));
    options.user = i->metrics = metrics_create(m->name, m->version, name);
    if (scheduler_create(&m->checkpoint, &options, &i->scheduler, reason) == KILN_OK) return NULL;
    return triton_error(TRITONSERVER_ERROR_UNAVAILABLE, "%s", reason);
}

TRITONSERVER_Error *text_instance_open(text_model *model, TRITONBACKEND_ModelInstance *handle, text_instance **out) {
    text_instance *i = calloc(1, sizeof *i);
    if (!i) return triton_error(TRITONSERVER_ERROR_INTERNAL, "no memory for the instance");
    i->model = model;
    i->handle = handle;
    TRITONSERVER_Error *error = open_instance(i);
    if (error)
        text_instance_close(i);
    else
        *out = i;
    return error;
}

void text_instance_close(text_instance *i) {
    scheduler_destroy(i->scheduler);
    metrics_destroy(i->metrics);
    free(i);
}
