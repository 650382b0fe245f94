/* kiln trace: kiln run with every launch, copy and load recorded. */
#include "loader/cli/run.h"
#include <getopt.h>
#include <string.h>

enum { OUT, TEXT };

static const cli_option options[] = {
    [OUT] = {"out", "FILE", "write the trace to a file; default: stdout"},
    [TEXT] = {"text", NULL, "write a text report; default: Chrome trace JSON"},
};

static int run(int argc, char **argv);

const cli_command cli_trace = {
    .name = "trace",
    .operands = "FUNCTION RUN-ARGUMENT...",
    .summary = "call a function as run does and write a trace of it",
    .details = "The arguments from FUNCTION on are those of kiln run. Perfetto and chrome://tracing open the JSON.\n",
    .options = options,
    .option_count = CLI_COUNT(options),
    .options_first = true,
    .run = run,
};

static int write_stdout(void *user, const char *bytes, size_t size) {
    (void)user;
    return fwrite(bytes, 1, size, stdout) == size ? 0 : -1;
}

static int write_output(void *user, const char *bytes, size_t size) {
    return output_write(user, bytes, size) ? 0 : -1;
}

/* output is NULL for stdout. */
static int save_trace(kiln_device *device, output_file *output, kiln_trace_format format) {
    kiln_status status = kiln_trace_stop(device, format, output ? write_output : write_stdout, output);
    if (status != KILN_OK) return cli_fail(status, "trace");
    return !output || output_commit(output) ? CLI_OK : CLI_USAGE;
}

static int record(run_job *job, output_file *output, kiln_trace_format format) {
    int code = run_open(job);
    if (code != CLI_OK) return code;
    kiln_status status = kiln_trace_start(job->device, 0);
    if (status != KILN_OK) return cli_fail(status, "trace");
    code = run_compute(job);
    if (code == CLI_OK) code = run_save(job);
    return code == CLI_OK ? save_trace(job->device, output, format) : code;
}

/* Sees to it that the trace can be written before anything runs. */
static int record_to(run_job *job, const char *path, kiln_trace_format format) {
    if (!path) return record(job, NULL, format);
    if (run_check_free(job, "trace: --out", path) != CLI_OK) return CLI_USAGE;
    output_file output;
    if (!output_create(&output, path)) return CLI_USAGE;
    int code = record(job, &output, format);
    output_discard(&output);
    return code;
}

static int run(int argc, char **argv) {
    const char *value, *path = NULL;
    kiln_trace_format format = KILN_TRACE_CHROME_JSON;
    for (int option; (option = cli_next_option(&cli_trace, argc, argv, &value)) != CLI_END;) {
        if (option == OUT)
            path = value;
        else if (option == TEXT)
            format = KILN_TRACE_TEXT;
        else
            return cli_stop(&cli_trace, option);
    }
    /* run_begin reads its arguments from 1 on: the word before them takes the command's place. */
    int first = optind - 1;
    argv[first] = argv[0];
    optind = 0;
    run_job job;
    int code = run_begin(&job, argc - first, argv + first);
    if (code == CLI_OK && !job.finished) code = record_to(&job, path, format);
    run_end(&job);
    return code;
}
