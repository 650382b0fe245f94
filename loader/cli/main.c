/* The kiln program: finds the command and runs it. */
#include "loader/cli/cli.h"
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <string.h>

#define KILN_COMMAND(name) extern const cli_command cli_##name;
#include "loader/cli/commands.def"
#undef KILN_COMMAND

static const cli_command *const commands[] = {
#define KILN_COMMAND(name) &cli_##name,
#include "loader/cli/commands.def"
#undef KILN_COMMAND
};

static const cli_command *find_command(const char *name) {
    for (size_t i = 0; i < CLI_COUNT(commands); i++)
        if (strcmp(commands[i]->name, name) == 0) return commands[i];
    return NULL;
}

static const char *command_name(const void *names, size_t index) {
    return ((const cli_command *const *)names)[index]->name;
}

static int unknown_command(const char *name) {
    const char *nearest = cli_nearest(name, command_name, commands, CLI_COUNT(commands));
    return cli_error(CLI_USAGE, "unknown command %s; %s%s%s", name, nearest ? "did you mean " : "see kiln help",
                     nearest ? nearest : "", nearest ? "?" : "");
}

static void print_usage(FILE *file) {
    fputs("usage: kiln COMMAND [ARGUMENT...]\n"
          "       kiln help [COMMAND]\n"
          "       kiln --version\n\n",
          file);
    for (size_t i = 0; i < CLI_COUNT(commands); i++)
        fprintf(file, "  %-8s  %s\n", commands[i]->name, commands[i]->summary);
    fputs("\nexit codes:\n", file);
#define PRINT_EXIT(name, number, text) fprintf(file, "  %d  %s\n", number, text);
    CLI_EXIT_MAP(PRINT_EXIT)
#undef PRINT_EXIT
}

static int help(int argc, char **argv) {
    if (argc > 2) return cli_error(CLI_USAGE, "help: one command at most");
    if (argc < 2) {
        print_usage(stdout);
        return CLI_OK;
    }
    const cli_command *command = find_command(argv[1]);
    if (!command) return unknown_command(argv[1]);
    cli_print_help(command);
    return CLI_OK;
}

static int run(int argc, char **argv) {
    if (argc < 2) {
        print_usage(stderr);
        return CLI_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--version") == 0) {
        char version[CLI_VERSION_SIZE];
        printf("kiln %s\n", cli_kiln_version(version));
        return CLI_OK;
    }
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return help(argc - 1, argv + 1);
    if (name[0] == '-') return cli_error(CLI_USAGE, "unknown option %s; see kiln help", name);
    const cli_command *command = find_command(name);
    return command ? command->run(argc - 1, argv + 1) : unknown_command(name);
}

int main(int argc, char **argv) {
    /* A file that may grow no more is then an error of its write, after which nothing of it is left. */
    signal(SIGXFSZ, SIG_IGN);
    int code = run(argc, argv);
    cli_progress_end();
    /* A full disk or a closed pipe shows only now. */
    if (fflush(stdout) != 0 || ferror(stdout))
        return cli_error(CLI_SYSTEM, "cannot write the output: %s", strerror(errno));
    return code;
}
