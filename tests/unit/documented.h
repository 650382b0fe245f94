/* A test that includes this, after all else, calls the library's functions through checks: a status that the comment
 * above the function in its header does not list ends the program. tests/unit/headers_test.sh sees that no function is
 * missing here. */
#ifndef KILN_TESTS_DOCUMENTED_H
#define KILN_TESTS_DOCUMENTED_H

#include <kiln/inspect.h>
#include <kiln/kiln.h>
#include <kiln/plan.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline const char *documented_name(kiln_status status) {
    static const char *const names[] = {
#define DOCUMENTED_NAME(name, text) "KILN_" #name,
        KILN_STATUS_MAP(DOCUMENTED_NAME)
#undef DOCUMENTED_NAME
    };
    return (unsigned)status < sizeof names / sizeof *names ? names[status] : "a number that is no status";
}

/* The headers whose functions are checked, one after the other. */
static inline const char *documented_headers(void) {
    static const char *const names[] = {"include/kiln/kiln.h", "include/kiln/plan.h", "include/kiln/inspect.h"};
    static char text[1 << 17];
    if (*text) return text;
    size_t length = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        FILE *file = fopen(names[i], "r");
        size_t size = file ? fread(text + length, 1, sizeof text - 1 - length, file) : 0;
        if (!size) abort();
        length += size;
        fclose(file);
    }
    return text;
}

static inline bool documented_is_word(char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* Copies the comment above a function's declaration, that of its _sized form if it has one. */
static inline void documented_comment(const char *function, char *text, size_t size) {
    static const char *const forms[] = {"\nKILN_API kiln_status %s_sized(", "\nKILN_API kiln_status %s("};
    const char *header = documented_headers(), *declaration = NULL, *begin = NULL;
    char line[128];
    for (size_t i = 0; i < 2 && !declaration; i++) {
        snprintf(line, sizeof line, forms[i], function);
        declaration = strstr(header, line);
    }
    for (const char *at = header; declaration && (at = strstr(at, "\n/* ")) && at < declaration; at++)
        begin = at;
    size_t length = begin ? (size_t)(declaration - begin) : 0;
    if (!length || length >= size || memcmp(declaration - 2, "*/", 2) != 0) {
        fprintf(stderr, "%s has no comment of its own\n", function);
        abort();
    }
    memcpy(text, begin, length);
    text[length] = '\0';
}

/* Whether a word stands in the text. */
static inline bool documented_has(const char *text, const char *word) {
    for (const char *at = text; (at = strstr(at, word)); at++)
        if (!documented_is_word(at[-1]) && !documented_is_word(at[strlen(word)])) return true;
    return false;
}

/* Whether a function's comment lists a status, itself or by "as kiln_other". A comment breaks its lines anywhere. */
static inline bool documented_lists(const char *function, kiln_status status) {
    char comment[4096], other[64];
    documented_comment(function, comment, sizeof comment);
    for (char *c = comment; (c = strstr(c, "\n *"));)
        memcpy(c, "   ", 3);
    if (documented_has(comment, documented_name(status))) return true;
    for (const char *as = comment; (as = strstr(as, " as ")); as++) {
        const char *begin = as + 4 + strspn(as + 4, " ");
        size_t length = strspn(begin, "abcdefghijklmnopqrstuvwxyz_");
        if (strncmp(begin, "kiln_", 5) != 0 || length >= sizeof other) continue;
        memcpy(other, begin, length);
        other[length] = '\0';
        if (documented_lists(other, status)) return true;
    }
    return false;
}

/* What was looked up is remembered, by each thread: a function's name is one literal of the test. */
static inline kiln_status documented(const char *function, kiln_status status) {
    static _Thread_local struct {
        const char *function;
        kiln_status status;
    } listed[256];
    size_t i = 0;
    for (; i < sizeof listed / sizeof *listed && listed[i].function; i++)
        if (listed[i].function == function && listed[i].status == status) return status;
    if (!documented_lists(function, status)) {
        fprintf(stderr, "%s returned %s, which its comment does not list: %s\n", function, documented_name(status),
                kiln_last_error());
        abort();
    }
    if (i < sizeof listed / sizeof *listed) {
        listed[i].function = function;
        listed[i].status = status;
    }
    return status;
}

#define kiln_device_count(...)       documented("kiln_device_count", (kiln_device_count)(__VA_ARGS__))
#define kiln_device_open(...)        documented("kiln_device_open", (kiln_device_open)(__VA_ARGS__))
#define kiln_device_get_info(...)    documented("kiln_device_get_info", (kiln_device_get_info)(__VA_ARGS__))
#define kiln_device_enable_peer(...) documented("kiln_device_enable_peer", (kiln_device_enable_peer)(__VA_ARGS__))
#define kiln_stream_open(...)        documented("kiln_stream_open", (kiln_stream_open)(__VA_ARGS__))
#define kiln_stream_borrow(...)      documented("kiln_stream_borrow", (kiln_stream_borrow)(__VA_ARGS__))
#define kiln_stream_set_programmatic(...) \
    documented("kiln_stream_set_programmatic", (kiln_stream_set_programmatic)(__VA_ARGS__))
#define kiln_stream_sync(...)          documented("kiln_stream_sync", (kiln_stream_sync)(__VA_ARGS__))
#define kiln_stream_query(...)         documented("kiln_stream_query", (kiln_stream_query)(__VA_ARGS__))
#define kiln_memory_get_info(...)      documented("kiln_memory_get_info", (kiln_memory_get_info)(__VA_ARGS__))
#define kiln_event_query(...)          documented("kiln_event_query", (kiln_event_query)(__VA_ARGS__))
#define kiln_memory_alloc(...)         documented("kiln_memory_alloc", (kiln_memory_alloc)(__VA_ARGS__))
#define kiln_memory_alloc_async(...)   documented("kiln_memory_alloc_async", (kiln_memory_alloc_async)(__VA_ARGS__))
#define kiln_memory_free_async(...)    documented("kiln_memory_free_async", (kiln_memory_free_async)(__VA_ARGS__))
#define kiln_host_register(...)        documented("kiln_host_register", (kiln_host_register)(__VA_ARGS__))
#define kiln_host_alloc(...)           documented("kiln_host_alloc", (kiln_host_alloc)(__VA_ARGS__))
#define kiln_copy(...)                 documented("kiln_copy", (kiln_copy)(__VA_ARGS__))
#define kiln_fill(...)                 documented("kiln_fill", (kiln_fill)(__VA_ARGS__))
#define kiln_linked_bundles(...)       documented("kiln_linked_bundles", (kiln_linked_bundles)(__VA_ARGS__))
#define kiln_all_bundles(...)          documented("kiln_all_bundles", (kiln_all_bundles)(__VA_ARGS__))
#define kiln_select(...)               documented("kiln_select", (kiln_select)(__VA_ARGS__))
#define kiln_target_parse(...)         documented("kiln_target_parse", (kiln_target_parse)(__VA_ARGS__))
#define kiln_bundle_find_part(...)     documented("kiln_bundle_find_part", (kiln_bundle_find_part)(__VA_ARGS__))
#define kiln_module_get(...)           documented("kiln_module_get", (kiln_module_get)(__VA_ARGS__))
#define kiln_module_get_image(...)     documented("kiln_module_get_image", (kiln_module_get_image)(__VA_ARGS__))
#define kiln_module_find_kernel(...)   documented("kiln_module_find_kernel", (kiln_module_find_kernel)(__VA_ARGS__))
#define kiln_module_find_variable(...) documented("kiln_module_find_variable", (kiln_module_find_variable)(__VA_ARGS__))
#define kiln_kernel_get_attributes(...) \
    documented("kiln_kernel_get_attributes", (kiln_kernel_get_attributes)(__VA_ARGS__))
#define kiln_kernel_get_occupancy(...) documented("kiln_kernel_get_occupancy", (kiln_kernel_get_occupancy)(__VA_ARGS__))
#define kiln_launch(...)               documented("kiln_launch", (kiln_launch)(__VA_ARGS__))
#define kiln_event_create(...)         documented("kiln_event_create", (kiln_event_create)(__VA_ARGS__))
#define kiln_event_borrow(...)         documented("kiln_event_borrow", (kiln_event_borrow)(__VA_ARGS__))
#define kiln_event_record(...)         documented("kiln_event_record", (kiln_event_record)(__VA_ARGS__))
#define kiln_event_sync(...)           documented("kiln_event_sync", (kiln_event_sync)(__VA_ARGS__))
#define kiln_stream_wait_event(...)    documented("kiln_stream_wait_event", (kiln_stream_wait_event)(__VA_ARGS__))
#define kiln_event_elapsed(...)        documented("kiln_event_elapsed", (kiln_event_elapsed)(__VA_ARGS__))
#define kiln_preload(...)              documented("kiln_preload", (kiln_preload)(__VA_ARGS__))
#define kiln_plan_open(...)            documented("kiln_plan_open", (kiln_plan_open)(__VA_ARGS__))
#define kiln_trace_start(...)          documented("kiln_trace_start", (kiln_trace_start)(__VA_ARGS__))
#define kiln_trace_stop(...)           documented("kiln_trace_stop", (kiln_trace_stop)(__VA_ARGS__))
#define kiln_image_inspect(...)        documented("kiln_image_inspect", (kiln_image_inspect)(__VA_ARGS__))
#define kiln_image_verify(...)         documented("kiln_image_verify", (kiln_image_verify)(__VA_ARGS__))

#endif
