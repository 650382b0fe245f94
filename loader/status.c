#include "loader/status.h"
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char error_text[KILN__ERROR_TEXT_SIZE];

typedef struct log_target {
    _Atomic(kiln_log_callback) callback;
    _Atomic(void *) user;
} log_target;

static log_target log_to;

static void text_add(kiln__text *text, const char *format, va_list arguments) {
    bool room = text->length < text->size;
    int wanted =
        vsnprintf(room ? text->bytes + text->length : NULL, room ? text->size - text->length : 0, format, arguments);
    if (wanted > 0) text->length += (size_t)wanted;
}

void kiln__text_add(kiln__text *text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    text_add(text, format, arguments);
    va_end(arguments);
}

const char *kiln_status_text(kiln_status status) {
    switch (status) {
#define STATUS_CASE(name, text) \
    case KILN_##name:           \
        return text;
        KILN_STATUS_MAP(STATUS_CASE)
#undef STATUS_CASE
    }
    return "unknown status";
}

uint32_t kiln_version(void) {
    return KILN_VERSION_MAJOR * 10000 + KILN_VERSION_MINOR * 100 + KILN_VERSION_PATCH;
}

const char *kiln_last_error(void) {
    return error_text;
}

kiln_status kiln__fail(kiln_status status, const char *format, ...) {
    /* The arguments may point into the text that is being replaced, so the new one is built separately. */
    char text[KILN__ERROR_TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    memcpy(error_text, text, strlen(text) + 1);
    return status;
}

kiln_status kiln__fail_within(kiln_status status, const char *format, ...) {
    char text[KILN__ERROR_TEXT_SIZE];
    kiln__text whole = {text, sizeof text, 0};
    va_list arguments;
    va_start(arguments, format);
    text_add(&whole, format, arguments);
    va_end(arguments);
    kiln__text_add(&whole, ": %s", error_text);
    memcpy(error_text, text, strlen(text) + 1);
    return status;
}

void kiln_set_log(kiln_log_callback callback, void *user) {
    atomic_store(&log_to.callback, (kiln_log_callback)0);
    atomic_store(&log_to.user, user);
    atomic_store(&log_to.callback, callback);
}

void kiln__log(kiln_log_level level, const char *format, ...) {
    kiln_log_callback callback = atomic_load(&log_to.callback);
    if (!callback) return;
    char text[KILN__ERROR_TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    for (char *line = text, *end; line; line = end) {
        end = strchr(line, '\n');
        if (end) *end++ = '\0';
        callback(atomic_load(&log_to.user), level, line);
    }
}
