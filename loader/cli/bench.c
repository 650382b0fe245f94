/* kiln bench: the times of operators beside the copy bandwidth of the same device in the same run. */
#include "loader/cli/call.h"
#include "loader/cli/device.h"
#include "loader/cli/json.h"
#include "loader/cli/measure.h"
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>

enum { DEVICE, SIZE, SET, JSON };

static const cli_option options[] = {
    [DEVICE] = {"device", "DEVICE", "cpu, cuda:N or rocm:N; default: the best there is"},
    [SIZE] = {"size", "MIB", "size of an output in MiB, and of the measured copy; default: 64"},
    [SET] = {"set", "NAME=VALUE", "set a size or an option, where a function has it"},
    [JSON] = {"json", NULL, "write JSON"},
};

static int run(int argc, char **argv);

const cli_command cli_bench = {
    .name = "bench",
    .operands = "[OP]",
    .summary = "measure operators, and compare with the copy bandwidth",
    .details = "OP is an operator or one of its functions; default: all. Times are those of the device's events, after\n"
               "warm-up. The spread is from the fastest tenth to the slowest, as a part of the median. GB/s counts each\n"
               "input and output once. Sizes that are not set are 4096, and the first follows from --size.\n",
    .options = options,
    .option_count = CLI_COUNT(options),
    .run = run,
};

typedef struct bench_request {
    const char *operand, *device;
    uint64_t size; /* bytes */
    bool as_json;
    char **names; /* of --set */
    const char **values;
    size_t set_count;
} bench_request;

typedef struct bench_result {
    char sizes[96];
    uint64_t moved;  /* bytes of inputs and outputs */
    uint64_t memory; /* moved and the workspace: what the device held */
    measurement time;
    double copy; /* bytes per second */
} bench_result;

/* ---- Inputs ------------------------------------------------------------------------------------------------------ */

/* Fills with numbers of magnitude 0.125 to 4 in either sign, made of their bits; integers get any bits. */
static void fill_random(void *bytes, npy_dtype dtype, uint64_t size, uint64_t *state) {
    uint32_t *words = bytes;
    for (uint64_t i = 0; i < size / 4; i++) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        uint32_t random = (uint32_t)(*state >> 32), sign = random & 0x80008000u;
        uint32_t high = random >> 16 & 0x7fffu, low = random & 0x7fffu;
        if (dtype == NPY_F32) random = (random & 0x80000000u) + 0x3e000000u + (random & 0x7fffffffu) % 0x02800000u;
        if (dtype == NPY_F16) random = sign + ((0x3000u + high % 0x1400u) << 16) + 0x3000u + low % 0x1400u;
        if (dtype == NPY_BF16) random = sign + ((0x3e00u + high % 0x280u) << 16) + 0x3e00u + low % 0x280u;
        words[i] = random;
    }
}

static bool has_field(const kiln_operator *op, const char *name) {
    for (uint32_t i = 0; i < op->field_count; i++)
        if (strcmp(op->fields[i].name, name) == 0) return true;
    return false;
}

/* The sizes that --set leaves open: all but the first are 4096, the first makes an element of so many bytes in each of
 * size bytes. */
static void choose_sizes(operator_call *call, uint64_t size) {
    const int64_t inner = 4096;
    call_field *first = NULL;
    int64_t columns = 1;
    npy_dtype dtype = npy_dtype_find(call->function->part);
    uint64_t element = dtype == NPY_DTYPE_COUNT ? 1 : npy_dtype_size(dtype);
    for (uint32_t i = 0; i < call->op->field_count; i++) {
        call_field *field = &call->fields[i];
        if (field->description->role != KILN_FIELD_SIZE) continue;
        if (!first) {
            first = field;
            continue;
        }
        if (!field->given) field->value = inner;
        field->given = true;
        columns = field->value;
    }
    if (!first || first->given) return;
    int64_t rows = (int64_t)(size / element) / (columns > 0 ? columns : 1);
    first->value = rows > 0 ? rows : 1;
    first->given = true;
}

static int make_tensors(operator_call *call) {
    uint64_t state = 1;
    for (uint32_t i = 0; i < call->op->field_count; i++) {
        call_field *field = &call->fields[i];
        if (!call_is_tensor(field->description)) continue;
        field->given = true;
    }
    for (uint32_t i = 0; i < call->op->field_count; i++) {
        call_field *field = &call->fields[i];
        if (!call_is_tensor(field->description)) continue;
        int code = call_shape(call, field);
        if (code != CLI_OK) return code;
        if (field->description->role == KILN_FIELD_OUTPUT) continue;
        field->host = cli_allocate((size_t)field->array.data_size, 1);
        fill_random(field->host, field->array.dtype, field->array.data_size, &state);
    }
    return CLI_OK;
}

static int make_call(operator_call *call, const char *function, const bench_request *request) {
    int code = call_begin(call, "bench", function);
    for (size_t i = 0; i < request->set_count && code == CLI_OK; i++)
        if (has_field(call->op, request->names[i])) code = call_set(call, request->names[i], request->values[i]);
    if (code != CLI_OK) return code;
    choose_sizes(call, request->size);
    return make_tensors(call);
}

/* ---- Measuring --------------------------------------------------------------------------------------------------- */

static kiln_status launch(void *user, kiln_stream *stream) { return call_launch(user, stream); }

static void describe(const operator_call *call, bench_result *result) {
    size_t length = 0;
    for (uint32_t i = 0; i < call->op->field_count; i++) {
        const call_field *field = &call->fields[i];
        if (call_is_tensor(field->description)) result->moved += field->array.data_size;
        if (field->description->role == KILN_FIELD_SIZE && length < sizeof result->sizes)
            length += (size_t)snprintf(result->sizes + length, sizeof result->sizes - length, "%s%s=%" PRId64,
                                       length ? " " : "", field->description->name, field->value);
    }
    result->memory = result->moved + call->workspace_size;
}

static int bench_function(const kiln_operator_function *function, const bench_request *request, kiln_stream *stream,
                          bench_result *result) {
    operator_call call;
    cli_progress("%s ...", function->name);
    int code = make_call(&call, function->name, request);
    if (code == CLI_OK) code = call_upload(&call, stream);
    if (code == CLI_OK) {
        kiln_status status = measure(stream, launch, &call, &result->time);
        if (status != KILN_OK) code = cli_fail(status, "%s", function->name);
        describe(&call, result);
    }
    call_free(&call, stream->device);
    cli_progress_end();
    return code;
}

/* ---- Output ------------------------------------------------------------------------------------------------------ */

static const char *const titles[] = {"function", "sizes", "median", "spread", "GB/s", "of copy", "memory"};

static double bandwidth(const bench_result *result) {
    return result->time.median > 0 ? (double)result->moved / result->time.median : 0; /* GB/s */
}

static void add_row(cli_table *table, const char *function, const bench_result *result) {
    char bytes[CLI_BYTES_SIZE];
    double median = result->time.median;
    cli_cell(table, "%s", function);
    cli_cell(table, "%s", result->sizes);
    cli_cell(table, median < 1e6 ? "%.2f us" : "%.2f ms", median < 1e6 ? median / 1e3 : median / 1e6);
    cli_cell(table, "%.1f%%", median > 0 ? 100 * (result->time.high - result->time.low) / median : 0);
    cli_cell(table, "%.1f", bandwidth(result));
    cli_cell(table, "%.0f%%", 100e9 * bandwidth(result) / result->copy);
    cli_cell(table, "%s", cli_bytes(result->memory, bytes));
}

static void write_row(json_writer *json, const char *function, const bench_result *result) {
    json_object(json, NULL);
    json_string(json, "function", function);
    json_string(json, "sizes", result->sizes);
    json_integer(json, "runs", result->time.runs);
    json_number(json, "median_ns", result->time.median);
    json_number(json, "low_ns", result->time.low);
    json_number(json, "high_ns", result->time.high);
    json_integer(json, "moved_bytes", (int64_t)result->moved);
    json_number(json, "bytes_per_second", 1e9 * bandwidth(result));
    json_number(json, "of_copy", 1e9 * bandwidth(result) / result->copy);
    json_integer(json, "device_bytes", (int64_t)result->memory);
    json_close(json);
}

static bool wanted(const bench_request *request, const kiln_operator *op, const kiln_operator_function *function) {
    return !request->operand || strcmp(request->operand, op->name) == 0 ||
           strcmp(request->operand, function->name) == 0;
}

/* Measures what is wanted, into the table or the JSON. *out_count is how many functions that were. */
static int bench_all(const bench_request *request, kiln_stream *stream, double copy, cli_table *table,
                     json_writer *json, unsigned *out_count) {
    const kiln_operator *const *operators;
    size_t count;
    kiln_status status = kiln_all_operators(&operators, &count);
    if (status != KILN_OK) return cli_fail(status, "bench");
    for (size_t i = 0; i < count; i++) {
        for (uint32_t f = 0; f < operators[i]->function_count; f++) {
            const kiln_operator_function *function = &operators[i]->functions[f];
            if (!wanted(request, operators[i], function)) continue;
            bench_result result = {.copy = copy};
            int code = bench_function(function, request, stream, &result);
            if (code != CLI_OK) return code;
            ++*out_count;
            if (json)
                write_row(json, function->name, &result);
            else
                add_row(table, function->name, &result);
        }
    }
    return CLI_OK;
}
