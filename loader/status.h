/* Failures: a status and the thread's error text, set together.
 *
 * Internal names have two underscores (kiln__fail); public ones have one; static ones have no prefix. */
#ifndef KILN_LOADER_STATUS_H
#define KILN_LOADER_STATUS_H

#include <kiln/kiln.h>
#include <stdarg.h>
#include <stdbool.h>

#define KILN__LIKELY(x)   __builtin_expect(!!(x), 1)
#define KILN__UNLIKELY(x) __builtin_expect(!!(x), 0)

enum { KILN__ERROR_TEXT_SIZE = 2048 }; /* bytes, NUL included */

/* Sets this thread's error text (replacing it) and returns status. Allocates nothing. */
kiln_status kiln__fail(kiln_status status, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

/* Prepends the formatted prefix and ": " to this thread's error text and returns status. */
kiln_status kiln__fail_within(kiln_status status, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

/* Sends one line to the log callback, if any. Never call this with a lock held. */
void kiln__log(kiln_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

/* Returns from the calling function on failure. */
#define KILN__TRY(expression)                                                     \
    do {                                                                          \
        kiln_status kiln__try_status = (expression);                              \
        if (KILN__UNLIKELY(kiln__try_status != KILN_OK)) return kiln__try_status; \
    } while (0)

/* Returns KILN_ERROR_INVALID_ARGUMENT with a formatted text unless the rule holds. */
#define KILN__REQUIRE(rule, ...)                                                                  \
    do {                                                                                          \
        if (KILN__UNLIKELY(!(rule))) return kiln__fail(KILN_ERROR_INVALID_ARGUMENT, __VA_ARGS__); \
    } while (0)

/* Text appended to a caller's buffer and truncated to its size. length, like snprintf's result, is that of the whole
 * text. */
typedef struct kiln__text {
    char *bytes;
    size_t size;
    size_t length;
} kiln__text;

void kiln__text_add(kiln__text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
