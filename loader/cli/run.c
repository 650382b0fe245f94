/* kiln run: any function of any operator on .npy files. */
#include "loader/cli/run.h"
#include "loader/cli/device.h"
#include <getopt.h>
#include <string.h>

enum { IN, OUT, SET, DEVICE };

static const cli_option options[] = {
    [IN] = {"in", "NAME=FILE", "read an input from a .npy file"},
    [OUT] = {"out", "NAME=FILE", "write an output to a .npy file"},
    [SET] = {"set", "NAME=VALUE", "set an option, or check a size"},
    [DEVICE] = {"device", "DEVICE", "cpu, cuda:N, rocm:N, hip:N, a UUID or a PCI address; default: the best there is"},
};

static int run(int argc, char **argv);

const cli_command cli_run = {
    .name = "run",
    .operands = "FUNCTION",
    .summary = "call an operator's function on NumPy files",
    .details =
        "`kiln run --help FUNCTION` lists the function's inputs, outputs and options, and `kiln run --help` all\n"
        "functions. Sizes are taken from the files: the leading dimensions of an array fold into rows, and outputs\n"
        "get them back. bf16 files are those of ml_dtypes, or the bits as uint16. Outputs appear complete or not\n"
        "at all.\n",
    .options = options,
    .option_count = CLI_COUNT(options),
    .run = run,
};

/* An option NAME=VALUE, in the order of the command line. */
typedef struct assignment {
    int option;
    char *name;
    const char *value;
} assignment;

static int split(const char *text, assignment *out) {
    const char *equals = strchr(text, '=');
    if (!equals || equals == text || !equals[1])
        return cli_error(CLI_USAGE, "run: --%s %s: must be %s", options[out->option].name, text,
                         options[out->option].argument);
    out->name = strndup(text, (size_t)(equals - text));
    out->value = equals + 1;
    return out->name ? CLI_OK : cli_error(CLI_SYSTEM, "out of memory");
}

static int read_input(run_job *job, const assignment *input) {
    npy_header header;
    void *data;
    char error[NPY_ERROR_SIZE];
    if (!npy_read(input->value, &header, &data, error))
        return cli_error(CLI_USAGE, "--in %s=%s: %s", input->name, input->value, error);
    int code = call_bind(&job->call, input->name, &header, data);
    if (code != CLI_OK) free(data);
    job->inputs[job->input_count++] = (run_input){call_find(&job->call, input->name), input->value};
    return code;
}

static int assign(run_job *job, const assignment *given) {
    if (given->option == IN) return read_input(job, given);
    if (given->option == SET) return call_set(&job->call, "--set ", given->name, given->value);
    run_output *output = &job->outputs[job->output_count];
    for (const run_output *other = job->outputs; other < output; other++)
        if (strcmp(other->path, given->value) == 0)
            return cli_error(CLI_USAGE, "run: --out %s=%s: is the file of %s", given->name, given->value,
                             other->field->description->name);
    output->path = given->value;
    int code = call_want(&job->call, given->name, &output->field);
    job->output_count += code == CLI_OK;
    return code;
}

static int help(run_job *job, int argc, char **argv) {
    job->finished = true;
    if (optind < argc) {
        int code = call_begin(&job->call, argv[0], argv[optind]);
        if (code == CLI_OK) call_print_help(&job->call);
        return code;
    }
    cli_print_help(&cli_run);
    return call_print_functions(argv[0]);
}

int run_check_free(const run_job *job, const char *option, const char *path) {
    for (size_t i = 0; i < job->input_count; i++)
        if (output_is(job->inputs[i].path, path))
            return cli_error(CLI_USAGE, "%s %s: is the file of the input %s", option, path,
                             job->inputs[i].field->description->name);
    for (size_t i = 0; i < job->output_count; i++)
        if (output_is(job->outputs[i].path, path))
            return cli_error(CLI_USAGE, "%s %s: is the file of the output %s", option, path,
                             job->outputs[i].field->description->name);
    return CLI_OK;
}

/* Everything that the assignments say, once the function is known. */
static int prepare(run_job *job, const char *command, const char *function, const assignment *given, size_t count) {
    int code = call_begin(&job->call, command, function);
    for (int of_set = 1; of_set >= 0; of_set--) /* options first: one may say what an array's dtype is */
        for (size_t i = 0; i < count && code == CLI_OK; i++)
            if ((given[i].option == SET) == of_set) code = assign(job, &given[i]);
    return code == CLI_OK ? call_resolve(&job->call) : code;
}

static int read_arguments(run_job *job, int argc, char **argv, assignment *given) {
    size_t count = 0;
    const char *value;
    bool wants_help = false;
    for (int option; (option = cli_next_option(&cli_run, argc, argv, &value)) != CLI_END;) {
        if (option == CLI_BAD) return CLI_USAGE;
        if (option == CLI_HELP) {
            wants_help = true;
        } else if (option == DEVICE) {
            job->device_name = value;
        } else {
            given[count].option = option;
            int code = split(value, &given[count++]);
            if (code != CLI_OK) return code;
        }
    }
    if (wants_help) return help(job, argc, argv);
    if (optind == argc) return cli_error(CLI_USAGE, "%s: which function? see kiln run --help", argv[0]);
    if (optind + 1 < argc) return cli_error(CLI_USAGE, "%s: one function at most", argv[0]);
    return prepare(job, argv[0], argv[optind], given, count);
}

int run_begin(run_job *job, int argc, char **argv) {
    assignment *given = cli_allocate((size_t)argc, sizeof *given);
    *job = (run_job){.inputs = cli_allocate((size_t)argc, sizeof *job->inputs),
                     .outputs = cli_allocate((size_t)argc, sizeof *job->outputs)};
    int code = read_arguments(job, argc, argv, given);
    for (int i = 0; i < argc; i++)
        free(given[i].name);
    free(given);
    return code;
}

int run_open(run_job *job) {
    int code = device_open("run", job->device_name, &job->device);
    if (code != CLI_OK) return code;
    kiln_status status = kiln_stream_open(job->device, 0, &job->stream);
    return status == KILN_OK ? CLI_OK : cli_fail(status, "run: stream");
}

int run_compute(run_job *job) {
    int code = call_upload(&job->call, &job->stream);
    if (code != CLI_OK) return code;
    kiln_status status = call_launch(&job->call, &job->stream);
    if (status == KILN_OK) status = kiln_stream_sync(&job->stream);
    return status == KILN_OK ? CLI_OK : cli_fail(status, "%s", job->call.function->name);
}

static bool write_output(run_output *output) {
    char header[NPY_WRITTEN_SIZE];
    const npy_header *array = &output->field->array;
    return output_create(&output->file, output->path) &&
           output_write(&output->file, header, npy_format_header(array, header)) &&
           output_write(&output->file, output->field->host, (size_t)array->data_size);
}

int run_save(run_job *job) {
    int code = call_download(&job->call, &job->stream);
    for (size_t i = 0; i < job->output_count && code == CLI_OK; i++)
        code = write_output(&job->outputs[i]) ? CLI_OK : CLI_USAGE;
    for (size_t i = 0; i < job->output_count && code == CLI_OK; i++)
        code = output_commit(&job->outputs[i].file) ? CLI_OK : CLI_USAGE;
    return code;
}

void run_end(run_job *job) {
    for (size_t i = 0; i < job->output_count; i++)
        output_discard(&job->outputs[i].file);
    kiln_stream_close(&job->stream); /* waits: nothing in flight uses what is freed next */
    call_free(&job->call, job->device);
    kiln_device_close(job->device);
    free(job->inputs);
    free(job->outputs);
    *job = (run_job){0};
}

/* Says where it ran: falling back to the CPU is not silent. */
static int report(const run_job *job) {
    kiln_device_info info;
    char device[DEVICE_NAME_SIZE], target[TARGET_NAME_SIZE], shape[SHAPE_TEXT_SIZE];
    kiln_status status = kiln_device_get_info(job->device, &info);
    if (status != KILN_OK) return cli_fail(status, "run");
    printf("%s on %s (%s)\n", job->call.function->name, device_name(&info, device), target_name(&info.target, target));
    for (size_t i = 0; i < job->output_count; i++) {
        const call_field *field = job->outputs[i].field;
        printf("%s: %s %s in ", field->description->name, npy_dtype_name(field->array.dtype),
               shape_text(&field->array, shape));
        cli_put(stdout, job->outputs[i].path);
        printf("\n");
    }
    return CLI_OK;
}

static int run(int argc, char **argv) {
    run_job job;
    int code = run_begin(&job, argc, argv);
    if (code == CLI_OK && !job.finished) {
        code = run_open(&job);
        if (code == CLI_OK) code = run_compute(&job);
        if (code == CLI_OK) code = run_save(&job);
        if (code == CLI_OK) code = report(&job);
    }
    run_end(&job);
    return code;
}
