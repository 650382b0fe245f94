/* kiln bench: the times of operators beside the copy bandwidth of the same device in the same run. On a simulated
 * device, whose times mean nothing, what a call does is counted instead. */
#include "loader/cli/call.h"
#include "loader/cli/count.h"
#include "loader/cli/device.h"
#include "loader/cli/json.h"
#include "loader/cli/measure.h"
#include <getopt.h>
#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>

enum { DEVICE, SIZE, SET, WITHOUT, TIME, JSON };

static const cli_option options[] = {
    [DEVICE] = {"device", "DEVICE", "cpu, cuda:N, rocm:N, hip:N, a UUID or a PCI address; default: the best there is"},
    [SIZE] = {"size", "MIB", "size of the largest tensor in MiB, and of the copy; default: 64, simulated: 1"},
    [SET] = {"set", "NAME=VALUE", "set a size or an option, where a function has it"},
    [WITHOUT] = {"without", "NAME", "leave an optional tensor out, where a function has it"},
    [TIME] = {"time", "MS", "milliseconds to measure each function for; default: 500"},
    [JSON] = {"json", NULL, "write JSON"},
};

static int run(int argc, char **argv);

const cli_command cli_bench = {
    .name = "bench",
    .operands = "[OP]",
    .summary = "measure operators, and compare with the copy bandwidth",
    .details =
        "OP is an operator or one of its functions; default: all. Times are those of the device's events, after\n"
        "warm-up, over several calls where one is short. The spread is from the fastest tenth to the slowest, as a\n"
        "part of the median. GB/s counts each input and output once. Sizes that are not set are typical, and one\n"
        "follows from --size. Inputs are random, indices and lengths those of a full call; optional ones of integers,\n"
        "which are lengths, indices or seeds, are left out, and the other optional ones are named before the sizes.\n"
        "On a simulated device there are no times: what one call does is counted. Bytes are of global memory, for\n"
        "each element of the output; a request is an access of a warp or wave, a sector 32 bytes.\n",
    .options = options,
    .option_count = CLI_COUNT(options),
    .run = run,
};

typedef struct bench_request {
    const char *operand; /* an operator or a function; NULL: all */
    const char *device;
    uint64_t size; /* bytes; 0: not set */
    double time;   /* nanoseconds */
    bool as_json;
    const char **names; /* of --set */
    const char **values;
    size_t set_count;
    const char **without;
    size_t without_count;
    bool finished; /* help was printed */
} bench_request;

typedef struct bench_result {
    const char *function;
    char sizes[160];   /* after the names of optional inputs */
    uint64_t elements; /* of the outputs */
    uint64_t moved;    /* bytes of inputs and outputs */
    uint64_t memory;   /* moved and the workspace: what the device held */
    measurement time;  /* of a real device */
    counts counts;     /* of a simulated one */
} bench_result;

/* Where the calls run. */
typedef struct bench_place {
    kiln_stream *stream;
    kiln_device_info info;
    bool simulated;
    counting counting;
} bench_place;

/* ---- What is asked for ------------------------------------------------------------------------------------------- */

static bool can_set(const kiln_operator *op, const char *name) {
    for (uint32_t i = 0; i < op->field_count; i++) {
        const kiln_field *field = &op->fields[i];
        if ((field->role == KILN_FIELD_SIZE || field->role == KILN_FIELD_OPTION) && strcmp(field->name, name) == 0)
            return true;
    }
    return false;
}

static bool can_leave_out(const kiln_operator *op, const char *name) {
    for (uint32_t i = 0; i < op->field_count; i++)
        if (op->fields[i].optional && strcmp(op->fields[i].name, name) == 0) return true;
    return false;
}

static bool is_wanted(const bench_request *request, const kiln_operator *op, const kiln_operator_function *function) {
    return !request->operand || strcmp(request->operand, op->name) == 0 ||
           strcmp(request->operand, function->name) == 0;
}

/* How many functions are wanted; with a name, for how many of them it can be set. */
static size_t count_wanted(const bench_request *request, const kiln_operator *const *operators, size_t count,
                           const char *name) {
    size_t wanted = 0;
    for (size_t i = 0; i < count; i++)
        for (uint32_t f = 0; f < operators[i]->function_count; f++)
            if (is_wanted(request, operators[i], &operators[i]->functions[f]))
                wanted += !name || can_set(operators[i], name);
    return wanted;
}

/* Says what --set takes: each name once, though several operators have it. */
static int bad_setting(const bench_request *request, size_t index, const kiln_operator *const *operators,
                       size_t count) {
    char *names = cli_format("%s", "");
    for (size_t i = 0; i < count; i++) {
        for (uint32_t f = 0; f < operators[i]->field_count; f++) {
            const char *name = operators[i]->fields[f].name;
            if (count_wanted(request, &operators[i], 1, name) == 0 || count_wanted(request, operators, i, name) != 0)
                continue;
            char *longer = cli_format("%s%s%s", names, *names ? ", " : "", name);
            free(names);
            names = longer;
        }
    }
    cli_error(CLI_USAGE, "bench: --set %s=%s: the name must be one of %s", request->names[index],
              request->values[index], names);
    free(names);
    return CLI_USAGE;
}

static int check_request(const bench_request *request, const kiln_operator *const *operators, size_t count) {
    if (count_wanted(request, operators, count, NULL) == 0)
        return cli_error(CLI_USAGE, "bench: no operator or function %s", request->operand);
    for (size_t i = 0; i < request->set_count; i++)
        if (count_wanted(request, operators, count, request->names[i]) == 0)
            return bad_setting(request, i, operators, count);
    for (size_t i = 0; i < request->without_count; i++) {
        bool found = false;
        for (size_t o = 0; o < count && !found; o++)
            found = count_wanted(request, &operators[o], 1, NULL) && can_leave_out(operators[o], request->without[i]);
        if (!found)
            return cli_error(CLI_USAGE, "bench: --without %s: no function here has such an optional tensor",
                             request->without[i]);
    }
    return CLI_OK;
}

/* ---- Measuring --------------------------------------------------------------------------------------------------- */

static int make_call(operator_call *call, const char *function, const bench_request *request) {
    int code = call_begin(call, "bench", function);
    for (size_t i = 0; i < request->set_count && code == CLI_OK; i++)
        if (can_set(call->op, request->names[i]))
            code = call_set(call, "--set ", request->names[i], request->values[i]);
    for (size_t i = 0; i < request->without_count && code == CLI_OK; i++)
        if (can_leave_out(call->op, request->without[i])) code = call_leave_out(call, request->without[i]);
    if (code != CLI_OK) return code;
    return call_randomise(call, request->size);
}

static kiln_status launch(void *user, kiln_stream *stream) {
    return call_launch(user, stream);
}

static uint64_t elements_of(const npy_header *array) {
    uint64_t elements = 1;
    for (uint32_t i = 0; i < array->dimensions; i++)
        elements *= (uint64_t)array->shape[i];
    return elements;
}

static void describe(const operator_call *call, bench_result *result) {
    size_t length = 0;
    for (uint32_t i = 0; i < call->op->field_count && length < sizeof result->sizes; i++) {
        const call_field *field = &call->fields[i];
        if (field->given && field->description->optional && field->description->role == KILN_FIELD_INPUT)
            length += (size_t)snprintf(result->sizes + length, sizeof result->sizes - length, "%s%s", length ? " " : "",
                                       field->description->name);
    }
    for (uint32_t i = 0; i < call->op->field_count; i++) {
        const call_field *field = &call->fields[i];
        if (call_is_tensor(field->description) && field->given) result->moved += field->array.data_size;
        if (field->description->role == KILN_FIELD_OUTPUT && field->given)
            result->elements += elements_of(&field->array);
        if (field->description->role == KILN_FIELD_SIZE && field->given && length < sizeof result->sizes)
            length += (size_t)snprintf(result->sizes + length, sizeof result->sizes - length, "%s%s=%" PRId64,
                                       length ? " " : "", field->description->name, field->value);
    }
    result->memory = result->moved + call->workspace_size;
}

static int bench_function(const kiln_operator_function *function, const bench_request *request,
                          const bench_place *place, bench_result *result) {
    operator_call call;
    result->function = function->name;
    cli_progress("%s ...", function->name);
    int code = make_call(&call, function->name, request);
    if (code == CLI_OK) code = call_upload(&call, place->stream);
    if (code == CLI_OK) {
        kiln_status status = place->simulated
                                 ? count_call(&place->counting, place->stream, launch, &call, &result->counts)
                                 : measure(place->stream, launch, &call, request->time, &result->time);
        if (status != KILN_OK) code = cli_fail(status, "%s", function->name);
        if (status == KILN_OK && result->counts.launches && !result->counts.instructions)
            code = cli_error(CLI_SYSTEM, "%s: the simulated driver records launches and does not execute them",
                             function->name);
        describe(&call, result);
    }
    call_free(&call, place->stream->device);
    cli_progress_end();
    return code;
}

/* Measures what is wanted into results, which has room for it. */
static int bench_all(const bench_request *request, const kiln_operator *const *operators, size_t count,
                     const bench_place *place, bench_result *results) {
    for (size_t i = 0; i < count; i++) {
        for (uint32_t f = 0; f < operators[i]->function_count; f++) {
            const kiln_operator_function *function = &operators[i]->functions[f];
            if (!is_wanted(request, operators[i], function)) continue;
            int code = bench_function(function, request, place, results++);
            if (code != CLI_OK) return code;
        }
    }
    return CLI_OK;
}

/* ---- Output ------------------------------------------------------------------------------------------------------ */

/* What stands above the results. */
typedef struct bench_summary {
    char device[DEVICE_NAME_SIZE];
    char target[TARGET_NAME_SIZE];
    double copy; /* bytes per second */
    uint64_t size;
    uint64_t host_bytes; /* the most memory that the process had */
    size_t count;
} bench_summary;

static double bandwidth(const bench_result *result) {
    return result->time.median > 0 ? 1e9 * (double)result->moved / result->time.median : 0;
}

static void print_table(const bench_summary *summary, const bench_result *results) {
    static const char *const titles[] = {"function", "sizes", "median", "spread", "GB/s", "of copy", "memory"};
    cli_table table = {0};
    char bytes[CLI_BYTES_SIZE];
    printf("%s (%s): copies of %s at %.1f GB/s\n\n", summary->device, summary->target, cli_bytes(summary->size, bytes),
           summary->copy / 1e9);
    cli_titles(&table, titles, CLI_COUNT(titles));
    for (size_t i = 0; i < summary->count; i++) {
        const bench_result *result = &results[i];
        double median = result->time.median;
        cli_cell(&table, "%s", result->function);
        cli_cell(&table, "%s", result->sizes);
        cli_cell(&table, "%.2f %s", median < 1e6 ? median / 1e3 : median / 1e6, median < 1e6 ? "us" : "ms");
        cli_cell(&table, "%.1f%%", median > 0 ? 100 * (result->time.high - result->time.low) / median : 0);
        cli_cell(&table, "%.1f", bandwidth(result) / 1e9);
        cli_cell(&table, "%.0f%%", 100 * bandwidth(result) / summary->copy);
        cli_cell(&table, "%s", cli_bytes(result->memory, bytes));
    }
    cli_table_print(&table);
    printf("\npeak memory of the process: %s\n", cli_bytes(summary->host_bytes, bytes));
}

static void print_json(const bench_summary *summary, const bench_result *results) {
    json_writer json = {.file = stdout};
    json_object(&json, NULL);
    json_string(&json, "device", summary->device);
    json_string(&json, "target", summary->target);
    json_integer(&json, "copy_bytes", (int64_t)summary->size);
    json_number(&json, "copy_bytes_per_second", summary->copy);
    json_array(&json, "functions");
    for (size_t i = 0; i < summary->count; i++) {
        const bench_result *result = &results[i];
        json_object(&json, NULL);
        json_string(&json, "function", result->function);
        json_string(&json, "sizes", result->sizes);
        json_integer(&json, "runs", result->time.runs);
        json_integer(&json, "calls", result->time.calls);
        json_number(&json, "median_ns", result->time.median);
        json_number(&json, "low_ns", result->time.low);
        json_number(&json, "high_ns", result->time.high);
        json_integer(&json, "moved_bytes", (int64_t)result->moved);
        json_number(&json, "bytes_per_second", bandwidth(result));
        json_number(&json, "of_copy", bandwidth(result) / summary->copy);
        json_integer(&json, "device_bytes", (int64_t)result->memory);
        json_close(&json);
    }
    json_close(&json);
    json_integer(&json, "host_bytes", (int64_t)summary->host_bytes);
    json_close(&json);
}

/* ---- Output of counts ------------------------------------------------------------------------------------------- */

static double ratio(uint64_t part, uint64_t whole) {
    return whole ? (double)part / (double)whole : 0;
}

static void print_counts(const bench_summary *summary, const bench_result *results) {
    static const char *const titles[] = {"function",     "sizes",           "launches",  "instructions", "read/elem",
                                         "written/elem", "sectors/request", "conflicts", "divergent",    "matrix"};
    cli_table table = {0};
    printf("%s (%s): simulated: what one call does, and no times\n\n", summary->device, summary->target);
    cli_titles(&table, titles, CLI_COUNT(titles));
    for (size_t i = 0; i < summary->count; i++) {
        const bench_result *result = &results[i];
        const counts *counted = &result->counts;
        cli_cell(&table, "%s", result->function);
        cli_cell(&table, "%s", result->sizes);
        cli_cell(&table, "%" PRIu64, counted->launches);
        cli_cell(&table, "%" PRIu64, counted->instructions);
        cli_cell(&table, "%.2f", ratio(counted->global_read_bytes, result->elements));
        cli_cell(&table, "%.2f", ratio(counted->global_written_bytes, result->elements));
        cli_cell(&table, "%.2f", ratio(counted->global_sectors, counted->global_requests));
        cli_cell(&table, "%" PRIu64, counted->shared_conflicts);
        cli_cell(&table, "%" PRIu64, counted->divergent_branches);
        cli_cell(&table, "%" PRIu64, counted->matrix_instructions);
    }
    cli_table_print(&table);
}

static void print_counts_json(const bench_summary *summary, const bench_result *results) {
    json_writer json = {.file = stdout};
    json_object(&json, NULL);
    json_string(&json, "device", summary->device);
    json_string(&json, "target", summary->target);
    json_bool(&json, "simulated", true);
    json_array(&json, "functions");
    for (size_t i = 0; i < summary->count; i++) {
        const bench_result *result = &results[i];
        json_object(&json, NULL);
        json_string(&json, "function", result->function);
        json_string(&json, "sizes", result->sizes);
        json_integer(&json, "elements", (int64_t)result->elements);
        json_integer(&json, "launches", (int64_t)result->counts.launches);
#define PRINT_COUNT(name) json_integer(&json, #name, (int64_t)result->counts.name);
        COUNTERS(PRINT_COUNT)
#undef PRINT_COUNT
        json_close(&json);
    }
    json_close(&json);
    json_close(&json);
}

/* ---- The command ------------------------------------------------------------------------------------------------- */

enum { MIB = 1 << 20, MIB_MEASURED = 64, MIB_COUNTED = 1 };

static int summarise(const bench_request *request, const bench_place *place, bench_summary *summary) {
    struct rusage usage;
    kiln_status status = KILN_OK;
    if (!place->simulated) status = measure_copy(place->stream, (size_t)summary->size, request->time, &summary->copy);
    if (status != KILN_OK) return cli_fail(status, "bench");
    device_name(&place->info, summary->device);
    target_name(&place->info.target, summary->target);
    if (getrusage(RUSAGE_SELF, &usage) == 0) summary->host_bytes = (uint64_t)usage.ru_maxrss * 1024;
    return CLI_OK;
}

/* Prints the results, as times or as counts, for people or for programs. */
static void print_results(bool simulated, bool as_json, const bench_summary *summary, const bench_result *results) {
    static void (*const printers[2][2])(const bench_summary *, const bench_result *) = {
        {print_table, print_json}, {print_counts, print_counts_json}};
    printers[simulated][as_json](summary, results);
}

static int bench(const bench_request *request, const kiln_operator *const *operators, size_t count,
                 const bench_place *place) {
    bench_summary summary = {.size = request->size, .count = count_wanted(request, operators, count, NULL)};
    bench_result *results = cli_allocate(summary.count, sizeof *results);
    int code = bench_all(request, operators, count, place, results);
    if (code == CLI_OK) code = summarise(request, place, &summary);
    if (code == CLI_OK) print_results(place->simulated, request->as_json, &summary, results);
    free(results);
    return code;
}

static int open_and_bench(bench_request *request) {
    const kiln_operator *const *operators;
    size_t count;
    kiln_device *device = NULL;
    kiln_stream stream = {0};
    bench_place place = {.stream = &stream};
    kiln_status status = kiln_all_operators(&operators, &count);
    if (status != KILN_OK) return cli_fail(status, "bench");
    int code = check_request(request, operators, count);
    if (code == CLI_OK) code = device_open("bench", request->device, &device);
    if (code != CLI_OK) return code;
    status = kiln_stream_open(device, KILN_STREAM_TIMING, &stream);
    if (status == KILN_OK) status = kiln_device_get_info(device, &place.info);
    place.simulated = status == KILN_OK && counting_find(&place.info, &place.counting);
    if (!request->size) request->size = (uint64_t)(place.simulated ? MIB_COUNTED : MIB_MEASURED) * MIB;
    code = status == KILN_OK ? bench(request, operators, count, &place) : cli_fail(status, "bench");
    kiln_stream_close(&stream);
    kiln_device_close(device);
    return code;
}

/* Splits NAME=VALUE, which stays where it is. */
static int take_set(bench_request *request, char *text) {
    char *equals = strchr(text, '=');
    if (!equals || equals == text || !equals[1])
        return cli_error(CLI_USAGE, "bench: --set %s: must be NAME=VALUE", text);
    *equals = '\0';
    request->names[request->set_count] = text;
    request->values[request->set_count++] = equals + 1;
    return CLI_OK;
}

static int take_size(bench_request *request, const char *text) {
    int64_t size;
    if (!cli_number(text, 1024 * 1024, &size) || size < 1)
        return cli_error(CLI_USAGE, "bench: --size %s: must be a number of MiB from 1 to 1048576", text);
    request->size = (uint64_t)size * MIB;
    return CLI_OK;
}

static int take_time(bench_request *request, const char *text) {
    enum { MOST = 3600000, NANOSECONDS = 1000000 };
    int64_t time;
    if (!cli_number(text, MOST, &time) || time < 1)
        return cli_error(CLI_USAGE, "bench: --time %s: must be a number of milliseconds from 1 to %d", text, MOST);
    request->time = (double)time * NANOSECONDS;
    return CLI_OK;
}

static int read_arguments(int argc, char **argv, bench_request *request) {
    const char *value;
    for (int option; (option = cli_next_option(&cli_bench, argc, argv, &value)) != CLI_END;) {
        int code = CLI_OK;
        switch (option) {
        case DEVICE:
            request->device = value;
            break;
        case SIZE:
            code = take_size(request, value);
            break;
        case SET:
            code = take_set(request, optarg);
            break;
        case WITHOUT:
            request->without[request->without_count++] = value;
            break;
        case TIME:
            code = take_time(request, value);
            break;
        case JSON:
            request->as_json = true;
            break;
        default:
            request->finished = true;
            return cli_stop(&cli_bench, option);
        }
        if (code != CLI_OK) return code;
    }
    if (optind + 1 < argc) return cli_error(CLI_USAGE, "bench: one operator at most");
    if (optind < argc) request->operand = argv[optind];
    return CLI_OK;
}

static int run(int argc, char **argv) {
    bench_request request = {.time = MEASURED_NANOSECONDS};
    request.names = cli_allocate((size_t)argc, sizeof *request.names);
    request.values = cli_allocate((size_t)argc, sizeof *request.values);
    request.without = cli_allocate((size_t)argc, sizeof *request.without);
    int code = read_arguments(argc, argv, &request);
    if (code == CLI_OK && !request.finished) code = open_and_bench(&request);
    free(request.names);
    free(request.values);
    free(request.without);
    return code;
}
