/* Every kernel of every operator, at each level of this machine, on threads with small stacks: the caller's, as a fiber
 * has it, and those of a host's own pool. Below a stack lies a page that nothing may touch. What is called follows from
 * the operators' descriptions, with sizes that bring each kernel to a launch. */
#include "loader/target.h"
#include "tests/ops/harness.h"
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    SIDE = 17,    /* every size but one, or 1: beyond what products have kernels for few rows for */
    LONG = 17000, /* that one: beyond the rows and sums that one group does; a quarter where the others are no 1 */
    TENSOR_BYTES = 128 << 20,
    TENSORS_MAX = 20,
    PARAMS_MAX = 512,
    TRACE_BYTES = 1 << 20
};

/* ---- Small stacks ---- */

/* There if the library was built with a sanitizer, whose frames, and own data on a stack, are larger: the calls are
 * made all the same. */
void __asan_init(void) __attribute__((weak));
void __tsan_init(void) __attribute__((weak));

static size_t most_taken;

/* Bytes for the calls, beyond the least that a stack may have and what a thread that calls nothing takes of it. */
static size_t room(void) {
    return __asan_init || __tsan_init ? 4096u << 10 : 16u << 10;
}

/* Runs a function on a thread of its own, and waits for it. The stack holds what the C library puts there, too. */
static size_t thread_takes; /* of a thread that calls nothing: its descriptor and static thread-local storage */

static void on_small_stack(void *(*run)(void *context), void *context) {
    size_t guard = (size_t)sysconf(_SC_PAGESIZE), size = (size_t)PTHREAD_STACK_MIN + thread_takes + room();
    char *memory = mmap(NULL, guard + size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    assert_int_equal(mprotect(memory + guard, size, PROT_READ | PROT_WRITE), 0);
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    assert_int_equal(pthread_attr_setstack(&attributes, memory + guard, size), 0);
    assert_int_equal(pthread_create(&thread, &attributes, run, context), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    size_t untouched = 0;
    while (!memory[guard + untouched])
        untouched++;
    if (size - untouched > most_taken) most_taken = size - untouched;
    munmap(memory, guard + size);
}

static void *call_nothing(void *context) {
    return context;
}

typedef struct host_call {
    size_t count;
    void (*body)(void *context, size_t index);
    void *context;
} host_call;

static void *run_bodies(void *context) {
    const host_call *call = context;
    for (size_t i = 0; i < call->count; i++)
        call->body(call->context, i);
    return NULL;
}

static void host_pool(void *user, size_t count, void (*body)(void *context, size_t index), void *context) {
    (void)user;
    host_call call = {count, body, context};
    on_small_stack(run_bodies, &call);
}

/* ---- Calls ---- */

typedef struct operator_call {
    const kiln_operator_function *function;
    kiln_stream *stream;
    unsigned char params[PARAMS_MAX];
    size_t params_size;
    kiln_status status;
    char error[256];
} operator_call;

static void *make_call(void *context) {
    operator_call *call = context;
    call->status = call->function->call(call->stream, call->params, call->params_size);
    if (call->status != KILN_OK) snprintf(call->error, sizeof call->error, "%s", kiln_last_error());
    return NULL;
}

/* What a call gives: number big of the sizes is LONG, the others are `side`; and whether it has the optional tensors.
 */
typedef struct given {
    uint32_t big;
    int64_t side;
    bool optional;
} given;

/* Tensors one after the other, everything but them and the sizes 0. false: there is no size with that number. */
static bool fill_params(operator_call *call, const kiln_operator *op, given g, char *tensors) {
    bool found = false;
    uint32_t sizes = 0, tensor = 0;
    memset(call->params, 0, sizeof call->params);
    call->params_size = op->params_size;
    for (uint32_t i = 0; i < op->field_count; i++) {
        const kiln_field *field = &op->fields[i];
        char *place = tensors + (size_t)tensor * TENSOR_BYTES;
        int64_t size = g.side;
        switch (field->role) {
        case KILN_FIELD_INPUT:
        case KILN_FIELD_OUTPUT:
        case KILN_FIELD_UPDATE:
        case KILN_FIELD_WORKSPACE:
            assert_true(++tensor <= TENSORS_MAX);
            if (!strcmp(field->name, "mask")) break; /* its sizes go with others */
            if (field->optional && !g.optional) break;
            memcpy(call->params + field->offset, &place, sizeof place);
            break;
        case KILN_FIELD_SIZE:
            if (sizes++ == g.big) size = g.side == 1 ? LONG : LONG / 4, found = true;
            if (strstr(field->name, "scale_")) size = 1;  /* one scale goes with every size */
            if (strstr(field->name, "_scale_")) size = 0; /* of a factor of a product: as many as it has to have */
            if (!strcmp(field->name, "head_blocks") || !strcmp(field->name, "v_blocks"))
                size = 0; /* the same, of NVFP4 */
            memcpy(call->params + field->offset, &size, sizeof size);
            break;
        default:
            break;
        }
    }
    return found;
}

/* Says how much workspace there is: what the call asks for. */
static void size_workspace(operator_call *call, const kiln_operator *op) {
    size_t size = 0;
    if (!call->function->workspace_size ||
        call->function->workspace_size(call->stream, call->params, call->params_size, &size) != KILN_OK)
        return;
    assert_true(size <= TENSOR_BYTES);
    for (uint32_t i = 0; i < op->field_count; i++)
        if (op->fields[i].role == KILN_FIELD_WORKSPACE_SIZE)
            memcpy(call->params + op->fields[i].offset, &size, sizeof size);
}

/* A trace, as text. */
typedef struct text {
    size_t size;
    char bytes[TRACE_BYTES];
} text;

static int append(void *user, const char *bytes, size_t size) {
    text *trace = user;
    if (size >= sizeof trace->bytes - trace->size) return 1;
    memcpy(trace->bytes + trace->size, bytes, size);
    trace->size += size;
    return 0;
}

static bool was_launched(const text *trace, const char *kernel) {
    for (const char *line = strstr(trace->bytes, " launch "); line; line = strstr(line + 1, " launch ")) {
        const char *end = strchr(line, '\n'), *name = strstr(line, kernel);
        if (name && name < end) return true;
    }
    return false;
}

/* Sizes that do not go together are refused, which is as good. */
static void try_call(operator_call *call, const kiln_operator *op) {
    size_workspace(call, op);
    on_small_stack(make_call, call);
    if (call->status != KILN_OK && call->status != KILN_ERROR_INVALID_ARGUMENT)
        fail_msg("%s: %s", call->function->name, call->error);
}

/* The last choice of each option, with the others at 0. */
static void try_options(operator_call *call, const kiln_operator *op, given g, char *tensors) {
    for (uint32_t i = 0; i < op->field_count; i++) {
        const kiln_field *field = &op->fields[i];
        if (field->role != KILN_FIELD_OPTION) continue;
        int32_t choice = 0;
        for (const char *at = field->choices; *at; at++)
            choice += *at == ',';
        fill_params(call, op, g, tensors);
        memcpy(call->params + field->offset, &choice, sizeof choice);
        try_call(call, op);
    }
}

/* Columns apart and rows adjacent, where the operator takes both strides. */
static void try_transposed(operator_call *call, const kiln_operator *op, given g, char *tensors) {
    const int64_t row_stride = 1, col_stride = SIDE;
    bool found = false;
    fill_params(call, op, g, tensors);
    for (uint32_t i = 0; i < op->field_count; i++) {
        const kiln_field *field = &op->fields[i];
        if (field->role != KILN_FIELD_STRIDE) continue;
        const bool columns = strcmp(field->name, "x_col_stride") == 0;
        if (columns || strcmp(field->name, "x_stride") == 0)
            memcpy(call->params + field->offset, columns ? &col_stride : &row_stride, sizeof col_stride);
        found = found || columns;
    }
    if (found) try_call(call, op);
}

/* Whether no CPU image has the kernel. */
static bool absent(const kiln_part *part, uint32_t kernel) {
    for (uint32_t i = 0; i < part->image_count; i++) {
        const kiln_image image = kiln_part_image(part, i);
        if (image.kind == KILN_IMAGE_CPU && !kiln_image_kernel(part, &image, kernel).absent) return false;
    }
    return true;
}

static void call_function(kiln_stream *stream, const kiln_operator *op, const kiln_operator_function *function,
                          char *tensors) {
    static text trace;
    operator_call call = {.function = function, .stream = stream};
    kiln_part part;
    trace = (text){0};
    harness_ok(kiln_trace_start(stream->device, 0));
    for (int optional = 0; optional <= 1; optional++) {
        const int64_t most = optional ? SIDE : 1; /* without them the larger calls would take no other kernels */
        for (int64_t side = 1; side <= most; side += SIDE - 1)
            for (given g = {0, side, optional}; fill_params(&call, op, g, tensors); g.big++)
                try_call(&call, op);
        try_options(&call, op, (given){UINT32_MAX, SIDE, optional}, tensors);
        for (int64_t side = 1; side <= SIDE; side += SIDE - 1)
            try_transposed(&call, op, (given){UINT32_MAX, side, optional}, tensors);
    }
    harness_ok(kiln_trace_stop(stream->device, KILN_TRACE_TEXT, append, &trace));
    harness_ok(kiln_bundle_find_part(op->bundle, function->part, &part));
    for (uint32_t i = 0; i < part.kernel_count; i++)
        if (!absent(&part, i) && !was_launched(&trace, part.kernel_names[i]))
            fail_msg("%s: kernel %s was not launched:\n%s", function->name, part.kernel_names[i], trace.bytes);
}

static void call_operators(const char *level, char *tensors) {
    const kiln_device_options options = {
        .backend = KILN_BACKEND_CPU, .cpu_level = level, .threads = 2, .parallel_for = host_pool};
    const kiln_operator *const *operators;
    size_t count;
    kiln_device *device;
    kiln_stream stream;
    kiln_status status = kiln_device_open(&options, &device);
    if (status == KILN_ERROR_UNSUPPORTED) return; /* not of this machine */
    harness_ok(status);
    harness_ok(kiln_stream_open(device, 0, &stream));
    harness_ok(kiln_all_operators(&operators, &count));
    assert_true(count > 0);
    most_taken = thread_takes = 0;
    on_small_stack(call_nothing, NULL);
    thread_takes = most_taken;
    for (size_t i = 0; i < count; i++)
        for (uint32_t f = 0; f < operators[i]->function_count; f++)
            call_function(&stream, operators[i], &operators[i]->functions[f], tensors);
    print_message("# %s: at most %zu bytes of stack, and %zu for the thread\n", level, most_taken - thread_takes,
                  thread_takes);
    assert_in_range(most_taken - thread_takes, 1, room());
    kiln_stream_close(&stream);
    kiln_device_close(device);
}

static void every_kernel_runs_on_a_small_stack(void **state) {
    (void)state;
    size_t size = (size_t)TENSORS_MAX * TENSOR_BYTES;
    char *tensors = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(tensors != MAP_FAILED);
    for (size_t i = 0; i < kiln__cpu_target_count; i++)
        call_operators(kiln__cpu_targets[i].name, tensors);
    munmap(tensors, size);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_kernel_runs_on_a_small_stack)};
    return cmocka_run_group_tests_name("small_stack", tests, NULL, NULL);
}
