/* A request for text: from a prompt to a generation, and from its tokens to responses. */
#include "server_request.h"
#include "text_input.h"
#include "text_model.h"
#include "utf8.h"
#include <stdlib.h>
#include <string.h>

typedef struct text_request {
    generation generation;
    text_instance *instance;
    TRITONBACKEND_Request *request;
    bool stream;
    bool text_lost; /* there was no memory for it */
    uint64_t began;
    int32_t before;   /* the token before the next one */
    int32_t answered; /* tokens, of the prompt or in a response */
    char *text;       /* whole characters that are in no response */
    size_t size, room;
    char cut[4]; /* bytes of a character whose others are in tokens to come */
    size_t cut_size;
} text_request;

/* ---- Text ---- */

static void append(text_request *r, const char *bytes, size_t size) {
    if (r->size + size > r->room) {
        size_t room = 2 * (r->size + size);
        char *longer = realloc(r->text, room);
        r->text_lost |= !longer;
        if (!longer) return;
        r->text = longer;
        r->room = room;
    }
    memcpy(r->text + r->size, bytes, size);
    r->size += size;
}

/* Moves whole characters to the text; a byte that is of none becomes U+FFFD. */
static void settle(text_request *r, bool last) {
    static const char replacement[] = "\xef\xbf\xbd";
    while (r->cut_size) {
        int size = utf8_character(r->cut, r->cut_size);
        if (size == UTF8_CUT && !last) return;
        if (size > 0)
            append(r, r->cut, (size_t)size);
        else
            append(r, replacement, sizeof replacement - 1);
        size_t used = size > 0 ? (size_t)size : 1;
        r->cut_size -= used;
        memmove(r->cut, r->cut + used, r->cut_size);
    }
}

static void append_token(text_request *r, int32_t token) {
    llama_piece piece;
    llama_decode(&r->instance->model->tokenizer, r->before, token, &piece);
    for (size_t i = 0; i < piece.size; i++) {
        r->cut[r->cut_size++] = piece.bytes[i];
        settle(r, false);
    }
    r->before = token;
}

/* ---- Answering ---- */

static TRITONSERVER_Error *add_text(const text_request *r, TRITONBACKEND_Response *response, const char *name,
                                    const char *text, size_t size) {
    const int64_t one = 1;
    const uint32_t length = (uint32_t)size;
    void *memory;
    if (!output_is_wanted(r->request, name)) return NULL;
    TRITON_TRY(output_add(response, name, TRITONSERVER_TYPE_BYTES, &one, 1, sizeof length + size, &memory));
    memcpy(memory, &length, sizeof length);
    if (size) memcpy((char *)memory + sizeof length, text, size);
    return NULL;
}

static TRITONSERVER_Error *fill_response(const text_request *r, TRITONBACKEND_Response *response, const char *reason) {
    const int64_t count = r->generation.count - r->answered;
    const size_t size = sizeof(int32_t) * (size_t)count;
    void *memory;
    TRITON_TRY(add_text(r, response, "text_output", r->text, r->size));
    TRITON_TRY(add_text(r, response, "finish_reason", reason, strlen(reason)));
    if (!output_is_wanted(r->request, "token_ids")) return NULL;
    TRITON_TRY(output_add(response, "token_ids", TRITONSERVER_TYPE_INT32, &count, 1, size, &memory));
    if (size) memcpy(memory, r->generation.tokens + r->answered, size);
    return NULL;
}

/* Sends the tokens and the text that no response has had. */
static void respond(text_request *r, const char *reason, uint32_t flags) {
    TRITONBACKEND_Response *response;
    TRITONSERVER_Error *error = TRITONBACKEND_ResponseNew(&response, r->request);
    if (!error) {
        TRITONSERVER_Error *wrong = fill_response(r, response, reason);
        error = TRITONBACKEND_ResponseSend(response, flags, wrong);
        if (wrong) TRITONSERVER_ErrorDelete(wrong);
    }
    triton_log_error(error, "a response");
    r->answered = r->generation.count;
    r->size = 0;
}

static void free_request(text_request *r) {
    free(r->generation.tokens);
    free(r->text);
    free(r);
}

/* ---- What the scheduler calls ---- */

static void take_token(generation *g, int32_t token) {
    text_request *r = g->user;
    append_token(r, token);
    if (r->stream) respond(r, "", 0);
}

static bool is_cancelled(generation *g) {
    const text_request *r = g->user;
    bool cancelled = false;
    triton_log_error(TRITONBACKEND_RequestIsCancelled(r->request, &cancelled), "a request");
    return cancelled;
}

static void report(const text_request *r, bool success) {
    uint64_t now = server_time();
    triton_log_error(TRITONBACKEND_ModelInstanceReportStatistics(r->instance->handle, r->request, success, r->began,
                                                                 r->began, now, now),
                     "statistics");
}

static void end(generation *g, generation_end why, const char *text) {
    static const char *const reasons[] = {
#define REASON(name, reason) [GENERATION_##name] = reason,
        GENERATION_ENDS(REASON)
#undef REASON
    };
    text_request *r = g->user;
    bool good = (why == GENERATION_STOP || why == GENERATION_LENGTH) && !r->text_lost;
    report(r, good);
    if (good) {
        settle(r, true);
        respond(r, reasons[why], TRITONSERVER_RESPONSE_COMPLETE_FINAL);
        triton_log_error(TRITONBACKEND_RequestRelease(r->request, TRITONSERVER_REQUEST_RELEASE_ALL), "a request");
    } else {
        TRITONSERVER_Error_Code code = why == GENERATION_CANCELLED ? TRITONSERVER_ERROR_CANCELLED
                                       : why == GENERATION_CLOSED  ? TRITONSERVER_ERROR_UNAVAILABLE
                                                                   : TRITONSERVER_ERROR_INTERNAL;
        request_refuse(r->request, triton_error(code, "%s", r->text_lost ? "no memory for the text" : text));
    }
    free_request(r);
}

/* ---- Taking a request ---- */

/* The prompt in tokens, with room for those that follow. */
static TRITONSERVER_Error *encode(text_request *r, const char *text) {
    const int32_t length = scheduler_max_length(r->instance->scheduler);
    generation *g = &r->generation;
    g->tokens = malloc((size_t)length * sizeof *g->tokens);
    if (!g->tokens) return triton_error(TRITONSERVER_ERROR_INTERNAL, "no memory for the tokens");
    g->count = length > 1 ? llama_encode(&r->instance->model->tokenizer, text, g->tokens, length - 1) : LLAMA_TOO_LONG;
    if (g->count == LLAMA_TOO_LONG)
        return triton_error(TRITONSERVER_ERROR_INVALID_ARG,
                            "text_input is too long: it and one token more must be at most %d tokens", length);
    if (g->count == LLAMA_NO_TOKEN)
        return triton_error(TRITONSERVER_ERROR_INVALID_ARG, "text_input has a character that no token has");
    if (g->count < 0) return triton_error(TRITONSERVER_ERROR_INTERNAL, "no memory for the tokens");
    if (g->max_tokens > length - g->count) g->max_tokens = length - g->count;
    int32_t *fitting = realloc(g->tokens, (size_t)(g->count + g->max_tokens) * sizeof *g->tokens);
    if (fitting) g->tokens = fitting;
    r->before = g->tokens[g->count - 1];
    r->answered = g->count;
    return NULL;
}

static TRITONSERVER_Error *submit(text_request *r) {
    const text_model *m = r->instance->model;
    switch (scheduler_submit(r->instance->scheduler, &r->generation)) {
    case SUBMIT_ACCEPTED:
        return NULL;
    case SUBMIT_TOO_LONG:
        return triton_error(TRITONSERVER_ERROR_INVALID_ARG, "text_input is too long");
    default:
        return triton_error(TRITONSERVER_ERROR_UNAVAILABLE,
                            "the queue of %s is full: %lld requests wait, which is its max_queue; try again later",
                            m->name, (long long)m->max_queue);
    }
}

static TRITONSERVER_Error *take(text_instance *instance, TRITONBACKEND_Request *request) {
    text_input input;
    TRITON_TRY(text_input_read(request, &input));
    text_request *r = calloc(1, sizeof *r);
    TRITONSERVER_Error *error = r ? NULL : triton_error(TRITONSERVER_ERROR_INTERNAL, "no memory for the request");
    if (r) {
        *r = (text_request){.instance = instance, .request = request, .stream = input.stream, .began = server_time()};
        r->generation = (generation){.max_tokens = input.max_tokens,
                                     .sampling = input.sampling,
                                     .user = r,
                                     .token = take_token,
                                     .is_cancelled = is_cancelled,
                                     .end = end};
        error = encode(r, input.text);
        if (!error) error = submit(r);
        if (error) free_request(r);
    }
    free(input.text);
    return error;
}

void text_instance_execute(text_instance *instance, TRITONBACKEND_Request *request) {
    TRITONSERVER_Error *error = take(instance, request);
    if (error) request_refuse(request, error);
}
