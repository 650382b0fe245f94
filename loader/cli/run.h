/* Running a function on files, in the steps that `kiln run` and `kiln trace` share. */
#ifndef KILN_CLI_RUN_H
#define KILN_CLI_RUN_H

#include "loader/cli/call.h"
#include "loader/cli/output.h"

/* An input and the file that it was read from. */
typedef struct run_input {
    const call_field *field;
    const char *path;
} run_input;

/* A wanted output and the file to write it to. */
typedef struct run_output {
    const call_field *field;
    const char *path;
    output_file file;
} run_output;

typedef struct run_job {
    operator_call call;
    const char *device_name; /* NULL: the best */
    kiln_device *device;
    kiln_stream stream;
    run_input *inputs;
    run_output *outputs;
    size_t input_count, output_count;
    bool finished; /* help was printed: there is nothing to run */
} run_job;

/* The steps, in order. Each returns CLI_OK, or the exit code after a message. Call run_end in any case. */
int run_begin(run_job *job, int argc, char **argv); /* reads the arguments and the input files */
int run_open(run_job *job);                         /* opens the device and a stream */
int run_compute(run_job *job);                      /* copies the inputs there, calls the function and waits */
int run_save(run_job *job);                         /* writes the outputs: all of them or none */
void run_end(run_job *job);

/* Checks that path is neither an input nor an output, so that it may be written. Returns CLI_OK, or the exit code after
 * a message, which begins with option. */
int run_check_free(const run_job *job, const char *option, const char *path);

#endif
