/* What the commands of the kiln program share.
 *
 * The program is a client of the library and includes only its public headers. Its own names begin with the noun of
 * their file (cli_, json_, npy_, call_, ...), the library's with kiln_.
 *
 * All foreign text that is shown (file, device and kernel names, drivers' messages) goes through cli_error, cli_put or
 * a table, which escape it: a hostile name cannot send control sequences to the terminal. */
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

/* A long option. Every command also has --help (-h). */
typedef struct cli_option {
    const char *name;     /* "json" */
    const char *argument; /* its argument's name in the help ("FILE"); NULL: takes none */
    const char *help;     /* one line */
} cli_option;

enum { CLI_OPTION_ROOM = 15 }; /* most options of a command */

typedef struct cli_command {
    const char *name;
    const char *operands; /* as in the usage line: "[OP]", or "" */
    const char *summary;  /* one line */
    const char *details;  /* further lines of help, each ending with a newline; or NULL */
    const cli_option *options;
    size_t option_count;
    bool options_first;                /* options end at the first operand */
    int (*run)(int argc, char **argv); /* argv[0] is the command's name; returns the exit code */
} cli_command;

#define CLI_COUNT(array) (sizeof(array) / sizeof *(array))

enum { CLI_END = -1, CLI_HELP = -2, CLI_BAD = -3 };

/* Takes the next option from argv. Returns its index in command->options, with its argument in *out_value (NULL if it
 * takes none); CLI_END when only operands are left, from argv[optind] on; CLI_HELP; or CLI_BAD after a message on
 * stderr. */
int cli_next_option(const cli_command *command, int argc, char **argv, const char **out_value);

/* Handles CLI_HELP and CLI_BAD from cli_next_option: prints the help if requested. Returns the exit code. */
int cli_stop(const cli_command *command, int option);

/* Prints a command's help on stdout. */
void cli_print_help(const cli_command *command);

/* Of count names, given by name(names, index), the one that word is probably a misspelling of; NULL if none is close.
 */
const char *cli_nearest(const char *word, const char *(*name)(const void *names, size_t index), const void *names,
                        size_t count);

/* ---- Text -------------------------------------------------------------------------------------------------------- */

/* Prints "kiln: " and one line on stderr, escaped as a whole, and returns code. */
int cli_error(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same for a failed library call: the formatted text, then kiln_last_error(), with its further lines indented.
 * Returns CLI_USAGE for an invalid argument, CLI_NO if no image fits or one is corrupt, else CLI_SYSTEM. */
int cli_fail(kiln_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes text with each byte that is not printable ASCII as \xNN and each backslash doubled. */
void cli_put(FILE *file, const char *text);

/* Writes each line of text with cli_put, indented by indent spaces, and ends the last line. */
void cli_put_lines(FILE *file, int indent, const char *text);

/* A formatted string on the heap. Exits with CLI_SYSTEM if out of memory. */
char *cli_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Zeroed memory, as from calloc. Exits with CLI_SYSTEM if out of memory or if count * size overflows. */
void *cli_allocate(size_t count, size_t size);

/* Parses a decimal number from 0 to most, digits only. */
bool cli_number(const char *text, int64_t most, int64_t *out_number);

/* "1.5 MiB" for a number of bytes. */
enum { CLI_BYTES_SIZE = 32 };
const char *cli_bytes(uint64_t bytes, char text[CLI_BYTES_SIZE]);

/* "12.4" for the CUDA driver version 12040, "" for 0. */
enum { CLI_VERSION_SIZE = 24 };
const char *cli_driver(int64_t version, char text[CLI_VERSION_SIZE]);

/* "0.1.0", the version of the linked library. */
const char *cli_kiln_version(char text[CLI_VERSION_SIZE]);

/* Shows a line on stderr, if that is a terminal, that the next call replaces and cli_progress_end removes. */
void cli_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));
void cli_progress_end(void);

/* ---- Tables ------------------------------------------------------------------------------------------------------ */

/* Rows of cells, printed in aligned columns. The first row is the titles. */
typedef struct cli_table {
    size_t columns;
    size_t count; /* cells */
    size_t room;
    char **cells;
} cli_table;

/* Appends one cell; every table->columns cells make a row. */
void cli_cell(cli_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Appends the titles. */
void cli_titles(cli_table *table, const char *const *titles, size_t count);

/* Prints the table on stdout and frees its cells. Prints nothing if there are no rows but the titles. */
void cli_table_print(cli_table *table);

#endif
