#include "loader/backend.h"
#include "loader/trace_record.h"
#include <stdlib.h>
#include <time.h>

enum { DEFAULT_CAPACITY = 65536, MAX_CAPACITY = 1 << 24 };

int64_t kiln__trace_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The calling thread's number: threads are numbered in the order in which they were first recorded. */
static uint64_t thread_number(void) {
    static _Atomic uint64_t last;
    static _Thread_local uint64_t number;
    if (!number) number = atomic_fetch_add(&last, 1) + 1;
    return number;
}

static void trace_free(kiln__trace *trace) {
    if (!trace) return;
    for (size_t i = 0; i < trace->count; i++) {
        kiln_event_destroy(trace->records[i].started);
        kiln_event_destroy(trace->records[i].finished);
    }
    kiln_event_destroy(trace->base);
    free(trace->records);
    free(trace);
}

kiln_status kiln_trace_start(kiln_device *device, size_t capacity) {
    KILN__TRY(kiln__device_argument_check("kiln_trace_start", device));
    if (!capacity) capacity = DEFAULT_CAPACITY;
    KILN__REQUIRE(capacity <= MAX_CAPACITY, "kiln_trace_start: capacity is %zu: must be at most %d", capacity,
                  MAX_CAPACITY);
    kiln__trace *trace = calloc(1, sizeof *trace);
    if (trace) trace->records = calloc(capacity, sizeof *trace->records);
    if (!trace || !trace->records) {
        trace_free(trace);
        return kiln__fail(KILN_ERROR_OUT_OF_MEMORY, "kiln_trace_start: no memory for %zu records", capacity);
    }
    trace->capacity = capacity;
    trace->origin = kiln__trace_now();
    pthread_mutex_lock(&device->trace_lock);
    bool already = device->trace;
    if (!already) {
        device->trace = trace;
        atomic_fetch_or(device->state, KILN__TRACING);
    }
    pthread_mutex_unlock(&device->trace_lock);
    if (!already) return KILN_OK;
    trace_free(trace);
    return kiln__fail(KILN_ERROR_INVALID_ARGUMENT, "kiln_trace_start: the device is being traced already");
}

/* Records a new event on the stream; NULL if that is not possible (a capture, out of memory). */
static kiln_event *mark(kiln_stream *stream) {
    kiln_event *event;
    bool capturing = true;
    if (stream->device->backend->stream_capturing(stream, &capturing) != KILN_OK || capturing) return NULL;
    if (kiln_event_create(stream->device, 0, &event) != KILN_OK) return NULL;
    if (kiln_event_record(event, stream) == KILN_OK) return event;
    kiln_event_destroy(event);
    return NULL;
}

static kiln__trace_record record_begin(kiln_stream *stream, kiln__trace_kind kind) {
    return (kiln__trace_record){
        .kind = kind,
        .thread = thread_number(),
        .stream = stream->native,
        .started = mark(stream),
        .begin = kiln__trace_now(),
    };
}

/* Stores a record or, if it cannot, counts it as dropped and destroys its events. */
static void record_keep(kiln_device *device, kiln__trace_record *record) {
    bool kept = false;
    pthread_mutex_lock(&device->trace_lock);
    kiln__trace *trace = device->trace;
    if (trace && trace->count < trace->capacity) {
        trace->records[trace->count++] = *record;
        kept = true;
    } else if (trace) {
        trace->dropped++;
    }
    pthread_mutex_unlock(&device->trace_lock);
    if (kept) return;
    kiln_event_destroy(record->started);
    kiln_event_destroy(record->finished);
}

/* The first timed call records the event that relates the device's clock to the host's. */
static void set_base(kiln_stream *stream) {
    kiln_device *device = stream->device;
    pthread_mutex_lock(&device->trace_lock);
    bool wanted = device->trace && !device->trace->base;
    pthread_mutex_unlock(&device->trace_lock);
    if (!wanted) return;
    kiln_event *event = mark(stream);
    if (!event) return;
    if (kiln_event_sync(event) != KILN_OK) {
        kiln_event_destroy(event);
        return;
    }
    int64_t now = kiln__trace_now();
    pthread_mutex_lock(&device->trace_lock);
    kiln__trace *trace = device->trace;
    if (trace && !trace->base) {
        trace->base = event;
        trace->base_time = now;
        event = NULL;
    }
    pthread_mutex_unlock(&device->trace_lock);
    kiln_event_destroy(event);
}

static kiln_status record_end(kiln_stream *stream, kiln__trace_record *record, kiln_status status) {
    record->status = status;
    record->end = kiln__trace_now();
    if (record->started && status == KILN_OK) record->finished = mark(stream);
    record_keep(stream->device, record);
    return status;
}

kiln_status kiln__trace_launch(kiln_stream *stream, const kiln_kernel *kernel, const kiln_launch_config *config,
                               const void *arguments, size_t arguments_size) {
    set_base(stream);
    kiln__trace_record record = record_begin(stream, KILN__TRACE_LAUNCH);
    record.kernel = kernel;
    record.module = kernel->module;
    record.config = *config;
    for (int i = 0; i < 3; i++) { /* zero means 1 */
        record.config.grid[i] += !config->grid[i];
        record.config.block[i] += !config->block[i];
    }
    record.bytes = arguments_size;
    return record_end(stream, &record, kiln__launch(stream, kernel, config, arguments, arguments_size));
}

kiln_status kiln__trace_copy(kiln_stream *stream, void *destination, const void *source, size_t size,
                             kiln_copy_direction direction) {
    set_base(stream);
    kiln__trace_record record = record_begin(stream, KILN__TRACE_COPY);
    record.direction = direction;
    record.bytes = size;
    return record_end(stream, &record, stream->device->backend->copy(stream, destination, source, size, direction));
}

kiln_status kiln__trace_fill(kiln_stream *stream, void *destination, uint8_t value, size_t size) {
    set_base(stream);
    kiln__trace_record record = record_begin(stream, KILN__TRACE_FILL);
    record.bytes = size;
    return record_end(stream, &record, stream->device->backend->fill(stream, destination, value, size));
}

void kiln__trace_load(const kiln_module *module, int64_t begin) {
    kiln_device *device = module->device;
    if (!(atomic_load(device->state) & KILN__TRACING)) return;
    kiln__trace_record record = {
        .kind = KILN__TRACE_LOAD,
        .thread = thread_number(),
        .module = module,
        .bytes = module->image.size,
        .begin = begin,
        .end = kiln__trace_now(),
    };
    record_keep(device, &record);
}

/* Detaches the trace from the device, so that no call records in it any more. */
static kiln__trace *trace_take(kiln_device *device) {
    pthread_mutex_lock(&device->trace_lock);
    kiln__trace *trace = device->trace;
    device->trace = NULL;
    atomic_fetch_and(device->state, ~(uint32_t)KILN__TRACING);
    pthread_mutex_unlock(&device->trace_lock);
    return trace;
}

void kiln__trace_discard(kiln_device *device) {
    trace_free(trace_take(device));
}

/* Converts the events to times. Those that the device cannot measure stay zero. */
static void trace_resolve(kiln__trace *trace) {
    for (size_t i = 0; i < trace->count; i++) {
        kiln__trace_record *record = &trace->records[i];
        double begin, end;
        if (!trace->base || !record->started || !record->finished) continue;
        if (kiln_event_sync(record->finished) != KILN_OK) continue;
        if (kiln_event_elapsed(trace->base, record->started, &begin) != KILN_OK) continue;
        if (kiln_event_elapsed(trace->base, record->finished, &end) != KILN_OK) continue;
        record->device_begin = (double)trace->base_time + begin;
        record->device_end = (double)trace->base_time + end;
    }
}

kiln_status kiln_trace_stop(kiln_device *device, kiln_trace_format format, kiln_write_callback write, void *user) {
    KILN__TRY(kiln__device_argument_check("kiln_trace_stop", device));
    KILN__REQUIRE(write, "kiln_trace_stop: write is NULL");
    KILN__REQUIRE(format == KILN_TRACE_CHROME_JSON || format == KILN_TRACE_TEXT,
                  "kiln_trace_stop: format is %d: not a kiln_trace_format", (int)format);
    kiln__trace *trace = trace_take(device);
    KILN__REQUIRE(trace, "kiln_trace_stop: the device is not being traced");
    trace_resolve(trace);
    kiln_status status = kiln__trace_write(device, trace, format, write, user);
    trace_free(trace);
    return status;
}
