/* Options, help, and the nearest name to a mistyped one. */
#include "loader/cli/cli.h"
#include <assert.h>
#include <ctype.h>
#include <getopt.h>
#include <string.h>

enum { LONG_OPTION = 256 }; /* getopt_long's value of a command's first option */

static const char *option_name(const void *options, size_t index) {
    return ((const cli_option *)options)[index].name;
}

static int unknown_option(const cli_command *command, const char *argument) {
    char name[64];
    size_t length = strcspn(argument + strspn(argument, "-"), "=");
    snprintf(name, sizeof name, "%.*s", (int)length, argument + strspn(argument, "-"));
    const char *nearest = cli_nearest(name, option_name, command->options, command->option_count);
    cli_error(CLI_USAGE, "%s: unknown option %s%s%s%s", command->name, argument, nearest ? "; did you mean --" : "",
              nearest ? nearest : "", nearest ? "?" : "");
    return CLI_BAD;
}

int cli_next_option(const cli_command *command, int argc, char **argv, const char **out_value) {
    struct option table[CLI_OPTION_ROOM + 2] = {0};
    assert(command->option_count <= CLI_OPTION_ROOM);
    for (size_t i = 0; i < command->option_count; i++)
        table[i] =
            (struct option){command->options[i].name, command->options[i].argument ? required_argument : no_argument,
                            NULL, LONG_OPTION + (int)i};
    table[command->option_count] = (struct option){"help", no_argument, NULL, 'h'};

    opterr = 0;
    int next = optind ? optind : 1; /* where getopt_long looks first: names the argument in messages */
    int option = getopt_long(argc, argv, command->options_first ? "+:h" : ":h", table, NULL);
    *out_value = optarg;
    if (option == -1) return CLI_END;
    if (option == 'h') return CLI_HELP;
    if (option >= LONG_OPTION) return option - LONG_OPTION;
    const char *argument = argv[optind > next ? optind - 1 : next];
    if (option == ':') {
        cli_error(CLI_USAGE, "%s: %s needs an argument", command->name, argument);
        return CLI_BAD;
    }
    if (optopt == 'h' || optopt >= LONG_OPTION) {
        cli_error(CLI_USAGE, "%s: %s: takes no argument", command->name, argument);
        return CLI_BAD;
    }
    return unknown_option(command, argument);
}

int cli_stop(const cli_command *command, int option) {
    if (option != CLI_HELP) return CLI_USAGE;
    cli_print_help(command);
    return CLI_OK;
}

void cli_print_help(const cli_command *command) {
    printf("usage: kiln %s%s%s%s\n\n%c%s.\n", command->name, command->option_count ? " [OPTION...]" : "",
           *command->operands ? " " : "", command->operands, toupper((unsigned char)command->summary[0]),
           command->summary + 1);
    if (command->details) printf("\n%s", command->details);
    printf("\n");
    for (size_t i = 0; i < command->option_count; i++) {
        const cli_option *option = &command->options[i];
        char left[48];
        snprintf(left, sizeof left, "--%s%s%s", option->name, option->argument ? " " : "",
                 option->argument ? option->argument : "");
        printf("  %-24s  %s\n", left, option->help);
    }
    printf("  %-24s  %s\n", "-h, --help", "print this help");
}

/* Edits (insert, delete, replace) that make b of a; both shorter than WORD bytes. */
enum { WORD = 32, NEAR = 2 };
static unsigned distance(const char *a, const char *b) {
    unsigned row[WORD + 1];
    size_t length = strlen(b);
    for (size_t j = 0; j <= length; j++)
        row[j] = (unsigned)j;
    for (; *a; a++) {
        unsigned diagonal = row[0]++;
        for (size_t j = 1; j <= length; j++) {
            unsigned replace = diagonal + (*a != b[j - 1]);
            diagonal = row[j];
            unsigned best = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;
            row[j] = replace < best ? replace : best;
        }
    }
    return row[length];
}

const char *cli_nearest(const char *word, const char *(*name)(const void *names, size_t index), const void *names,
                        size_t count) {
    const char *nearest = NULL;
    unsigned best = NEAR + 1;
    if (strlen(word) > WORD) return NULL;
    for (size_t i = 0; i < count; i++) {
        const char *candidate = name(names, i);
        if (strlen(candidate) > WORD) continue;
        unsigned edits = distance(word, candidate);
        if (edits < best && edits < strlen(word)) {
            best = edits;
            nearest = candidate;
        }
    }
    return nearest;
}
