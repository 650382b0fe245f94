/* A trace as Chrome trace events ("Trace Event Format", which Perfetto and chrome://tracing open) or as a table. */
#include "loader/backend.h"
#include "loader/trace_record.h"
#include <stdio.h>
#include <string.h>

enum { LINE_SIZE = 1536, PROCESS_HOST = 1, PROCESS_DEVICE = 2 };

typedef struct writer {
    kiln_write_callback write;
    void *user;
    bool ended;
} writer;

static void put(writer *out, const char *bytes, size_t size) {
    if (!out->ended && size) out->ended = out->write(out->user, bytes, size) != 0;
}

static void __attribute__((format(printf, 2, 3))) put_line(writer *out, const char *format, ...) {
    char bytes[LINE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(bytes, sizeof bytes, format, arguments);
    va_end(arguments);
    if (length > 0) put(out, bytes, (size_t)length < sizeof bytes ? (size_t)length : sizeof bytes - 1);
}

/* Escapes a foreign name for JSON or a terminal: quotes, backslashes and what is not printable ASCII become \u00xx. */
static const char *escape(const char *name, char *text, size_t size) {
    static const char hex[] = "0123456789abcdef";
    size_t length = 0;
    for (; *name && length + 7 < size; name++) {
        unsigned char c = (unsigned char)*name;
        if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\') {
            text[length++] = (char)c;
            continue;
        }
        memcpy(text + length, "\\u00", 4);
        text[length + 4] = hex[c >> 4];
        text[length + 5] = hex[c & 15];
        length += 6;
    }
    text[length] = '\0';
    return text;
}

static const char *record_name(const kiln__trace_record *record, char *text, size_t size) {
    static const char *const copies[] = {"copy to device", "copy to host", "copy on device"};
    switch (record->kind) {
    case KILN__TRACE_LAUNCH:
        return escape(record->kernel->name, text, size);
    case KILN__TRACE_COPY:
        return copies[record->direction];
    case KILN__TRACE_FILL:
        return "fill";
    case KILN__TRACE_LOAD:
        return escape(record->module->bundle->name, text, size);
    }
    return "";
}

static const char *kind_name(kiln__trace_kind kind) {
    static const char *const names[] = {"launch", "copy", "fill", "load"};
    return names[kind];
}

static void put_details(writer *out, const kiln__trace_record *record) {
    char target[64];
    const uint32_t *grid = record->config.grid, *block = record->config.block;
    put_line(out, "\"args\":{\"status\":\"%s\"", kiln_status_text(record->status));
    if (record->module)
        put_line(out, ",\"image\":\"%s %s\"", escape(record->module->image.target, target, sizeof target),
                 kiln_image_kind_name(record->module->image.kind));
    if (record->kind == KILN__TRACE_LAUNCH)
        put_line(out, ",\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u],\"dynamic_shared_bytes\":%u,\"arguments_size\":%llu",
                 grid[0], grid[1], grid[2], block[0], block[1], block[2], record->config.dynamic_shared_bytes,
                 (unsigned long long)record->bytes);
    else
        put_line(out, ",\"bytes\":%llu", (unsigned long long)record->bytes);
    put_line(out, "}}");
}

static void put_event(writer *out, const kiln__trace *trace, const kiln__trace_record *record, int process,
                      unsigned long long row, double begin, double end) {
    char name[512];
    put_line(out, ",\n{\"name\":\"%s\",\"cat\":\"%s\",\"ph\":\"X\",\"pid\":%d,\"tid\":%llu,\"ts\":%.3f,\"dur\":%.3f,",
             record_name(record, name, sizeof name), kind_name(record->kind), process, row,
             (begin - (double)trace->origin) / 1e3, (end - begin) / 1e3);
    put_details(out, record);
}

static void write_json(writer *out, const kiln_device *device, const kiln__trace *trace) {
    char name[512];
    put_line(out, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"dropped\":%zu},\"traceEvents\":[\n", trace->dropped);
    put_line(out, "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"name\":\"host\"}},\n", PROCESS_HOST);
    put_line(out, "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"name\":\"%s:%d %s\"}}",
             PROCESS_DEVICE, device->backend->name, device->info.ordinal, escape(device->info.name, name, sizeof name));
    for (size_t i = 0; i < trace->count; i++) {
        const kiln__trace_record *record = &trace->records[i];
        put_event(out, trace, record, PROCESS_HOST, record->thread, (double)record->begin, (double)record->end);
        if (record->device_end > 0)
            put_event(out, trace, record, PROCESS_DEVICE, (unsigned long long)(uintptr_t)record->stream,
                      record->device_begin, record->device_end);
    }
    put_line(out, "\n]}\n");
}

static void write_text(writer *out, const kiln_device *device, const kiln__trace *trace) {
    char name[512];
    put_line(out, "%s:%d %s: %zu records, %zu dropped\n", device->backend->name, device->info.ordinal,
             escape(device->info.name, name, sizeof name), trace->count, trace->dropped);
    put_line(out, "%12s %12s %12s %-6s %-40s %-20s %s\n", "start us", "host us", "device us", "kind", "name",
             "grid x block", "status");
    for (size_t i = 0; i < trace->count; i++) {
        const kiln__trace_record *record = &trace->records[i];
        const uint32_t *grid = record->config.grid, *block = record->config.block;
        char shape[96] = "";
        kiln__text text = {shape, sizeof shape, 0};
        if (record->kind == KILN__TRACE_LAUNCH)
            kiln__text_add(&text, "%u,%u,%u x %u,%u,%u", grid[0], grid[1], grid[2], block[0], block[1], block[2]);
        else
            kiln__text_add(&text, "%llu bytes", (unsigned long long)record->bytes);
        char device_time[32] = "-";
        kiln__text time = {device_time, sizeof device_time, 0};
        if (record->device_end > 0) kiln__text_add(&time, "%.3f", (record->device_end - record->device_begin) / 1e3);
        put_line(out, "%12.3f %12.3f %12s %-6s %-40s %-20s %s\n", (double)(record->begin - trace->origin) / 1e3,
                 (double)(record->end - record->begin) / 1e3, device_time, kind_name(record->kind),
                 record_name(record, name, sizeof name), shape, kiln_status_text(record->status));
    }
}

kiln_status kiln__trace_write(const kiln_device *device, const kiln__trace *trace, kiln_trace_format format,
                              kiln_write_callback write, void *user) {
    writer out = {write, user, false};
    if (format == KILN_TRACE_CHROME_JSON)
        write_json(&out, device, trace);
    else
        write_text(&out, device, trace);
    if (out.ended) return kiln__fail(KILN_ERROR_DRIVER, "kiln_trace_stop: write ended the writing");
    return KILN_OK;
}
