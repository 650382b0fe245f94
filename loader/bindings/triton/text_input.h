/* What a request for text says, in tensors and parameters. */
#ifndef KILN_TRITON_TEXT_INPUT_H
#define KILN_TRITON_TEXT_INPUT_H

#include "generation.h"
#include "model_config.h"

typedef struct text_input {
    char *text; /* UTF-8; the caller's, to be freed */
    int32_t max_tokens;
    sampling sampling;
    bool stream; /* a response for each token, and one for the end; else one for all */
} text_input;

/* Reads and checks a request. After an error *out is zero. */
TRITONSERVER_Error *text_input_read(TRITONBACKEND_Request *request, text_input *out);

/* Writes the inputs and outputs of a model of text, for its configuration. */
void text_describe_tensors(json_writer *json);

#endif
