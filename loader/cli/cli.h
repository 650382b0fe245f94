/* What the commands of the kiln program share.
 *
 * The program is a client of the library: it includes the public headers alone. Its own names begin with the noun of
 * their file (cli_, json_, npy_, call_, ...), the library's with kiln_.
 *
 * Everything that is shown and was not written here (file names, device names, kernel names, drivers' texts) goes
 * through cli_error, cli_put or a table, which escape it: a hostile name cannot write to the terminal.
 */
#ifndef KILN_CLI_H
#define KILN_CLI_H

#include <kiln/kiln.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- Exit codes -------------------------------------------------------------------------------------------------- */

/* Every exit code: (name, number, meaning). */
#define CLI_EXIT_MAP(X)                                            \
    X(OK, 0, "success")                                            \
    X(NO, 1, "the answer is no: a check failed, or no image fits") \
    X(USAGE, 2, "bad usage or bad input")                          \
    X(SYSTEM, 3, "a device, a driver or the system failed")

enum {
#define CLI_EXIT_ENUM(name, number, text) CLI_##name = number,
    CLI_EXIT_MAP(CLI_EXIT_ENUM)
#undef CLI_EXIT_ENUM
};

/* ---- Commands and options ---------------------------------------------------------------------------------------- */

/* A long option. Every command has --help (-h) beside its own. */
typedef struct cli_option {
    const char *name;     /* "json" */
    const char *argument; /* what help calls its argument ("FILE"); NULL: it takes none */
    const char *help;     /* one line */
} cli_option;

enum { CLI_OPTION_ROOM = 15 }; /* options that a command may have */

typedef struct cli_command {
    const char *name;
    const char *operands; /* as usage shows them: "[OP]", or "" */
    const char *summary;  /* one line */
    const char *details;  /* further lines of help, each ending with a newline; or NULL */
    const cli_option *options;
    size_t option_count;
    bool options_first;                /* options end at the first operand */
    int (*run)(int argc, char **argv); /* argv[0] is the command's name; gives the exit code */
} cli_command;

#define CLI_COUNT(array) (sizeof(array) / sizeof *(array))

enum { CLI_END = -1, CLI_HELP = -2, CLI_BAD = -3 };

/* Takes the next option from argv: its index in command->options, with its argument in *out_value (NULL if it takes
 * none); CLI_END when only operands are left, from argv[optind] on; CLI_HELP; CLI_BAD after a line on stderr. */
int cli_next_option(const cli_command *command, int argc, char **argv, const char **out_value);

/* For what cli_next_option gives beside options and CLI_END: prints the help it asks for. Gives the exit code. */
int cli_stop(const cli_command *command, int option);

/* Prints a command's help on stdout. */
void cli_print_help(const cli_command *command);

/* Of count names, each found by name(names, index), the one that word was probably meant to be; NULL if none is near.
 */
const char *cli_nearest(const char *word, const char *(*name)(const void *names, size_t index), const void *names,
                        size_t count);

/* ---- Text -------------------------------------------------------------------------------------------------------- */

/* Prints "kiln: " and one line on stderr, escaped as a whole, and returns code. */
int cli_error(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same for a failed call of the library: what failed, then kiln_last_error(), further lines of it indented. Returns
 * CLI_USAGE for an invalid argument, CLI_NO if no image fits or one is corrupt, else CLI_SYSTEM. */
int cli_fail(kiln_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes text with every byte that is not printable ASCII as \xNN, and each backslash doubled. */
void cli_put(FILE *file, const char *text);

/* Writes each line of text through cli_put after an indent of so many spaces, and ends the last line. */
void cli_put_lines(FILE *file, int indent, const char *text);

/* A formatted string on the heap; ends the program with CLI_SYSTEM when there is no memory. */
char *cli_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Memory that is zeroed, or the end of the program with CLI_SYSTEM. count * size must not overflow for it to succeed.
 */
void *cli_allocate(size_t count, size_t size);

/* Reads a decimal number from 0 to most, of digits alone. */
bool cli_number(const char *text, int64_t most, int64_t *out_number);

/* "1.5 MiB" for a number of bytes. */
enum { CLI_BYTES_SIZE = 32 };
const char *cli_bytes(uint64_t bytes, char text[CLI_BYTES_SIZE]);

/* "12.4" for the CUDA driver version 12040, "" for 0. */
enum { CLI_VERSION_SIZE = 24 };
const char *cli_driver(int64_t version, char text[CLI_VERSION_SIZE]);

/* "0.1.0": of the library that is linked in. */
const char *cli_kiln_version(char text[CLI_VERSION_SIZE]);

/* One line on stderr that each call replaces, shown only if stderr is a terminal. cli_progress_end removes it. */
void cli_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));
void cli_progress_end(void);

/* ---- Tables ------------------------------------------------------------------------------------------------------ */

/* Rows of cells, printed with columns wide enough for all. Begin with the titles as the first row. */
typedef struct cli_table {
    size_t columns;
    size_t count; /* cells */
    size_t room;
    char **cells;
} cli_table;

/* Appends one cell; a row is full after table->columns cells. */
void cli_cell(cli_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Appends the titles. */
void cli_titles(cli_table *table, const char *const *titles, size_t count);

/* Prints the table on stdout and frees its cells. Prints nothing if there is no row beside the titles. */
void cli_table_print(cli_table *table);

#endif
