/* KILN_SIM_MUTANTS: a process for each mutant of a list, all of them forked from one that has come as far as its
 * driver, whose libraries are loaded. */
#include "tests/sim/core/sim.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIMIT = 600, /* seconds of a mutant */ TEXT_MAX = 65536 };

static const char applied[] = "mutant:";

void sim_noticed(void) {
    if (sim_setting("KILN_SIM_MUTANT")) _exit(EXIT_FAILURE);
}

/* What the file holds; to be freed. The process ends without. */
static char *read_all(const char *path) {
    FILE *file = fopen(path, "r");
    char *text = NULL;
    size_t size = 0;
    if (!file || getdelim(&text, &size, 0, file) < 0) {
        perror(path);
        _exit(EXIT_FAILURE);
    }
    fclose(file);
    return text;
}

/* In the child: its standard error goes to a file in memory, and nothing else anywhere. */
static void become(const char *mutant, int output) {
    unsetenv("KILN_SIM_MUTANTS");
    setenv("KILN_SIM_MUTANT", mutant, 1);
    dup2(output, STDERR_FILENO);
    dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
    alarm(LIMIT);
}

/* A line for a mutant whose process has ended: killed, alive, or absent if its image was not loaded, the mutant as the
 * list has it, and the first that was written after it had been applied. */
static void tell(FILE *verdicts, const char *mutant, int status, int output) {
    static char text[TEXT_MAX];
    ssize_t length = pread(output, text, sizeof text - 1, 0);
    text[length > 0 ? length : 0] = 0;
    char *line = strstr(text, applied), *sign = line ? strchr(line, '\n') : NULL;
    sign = sign ? sign + 1 : text;
    sign[strcspn(sign, "\n")] = 0;
    const char *verdict = !line ? "absent" : status ? "killed" : "alive";
    const bool late = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
    fprintf(verdicts, "%s\t%s\t%s\n", verdict, mutant, late ? "it went on and on" : sign);
    fflush(verdicts);
}

void sim_mutants_run(void) {
    const char *path = getenv("KILN_SIM_MUTANTS"), *out = getenv("KILN_SIM_VERDICTS");
    if (!path || !out) return;
    char *list = read_all(path), *rest = NULL;
    FILE *verdicts = fopen(out, "ae");
    char *mutant = verdicts ? strtok_r(list, "\n", &rest) : NULL;
    for (; mutant; mutant = strtok_r(NULL, "\n", &rest)) {
        int output = memfd_create("standard error", MFD_CLOEXEC), status;
        pid_t child = _Fork(); /* without handlers: they wait for locks that the caller has */
        if (child == 0) {
            become(mutant, output);
            free(list);
            return; /* and goes on as if nothing had been */
        }
        if (child < 0 || waitpid(child, &status, 0) != child) break;
        tell(verdicts, mutant, status, output);
        close(output);
    }
    _exit(verdicts && !mutant ? EXIT_SUCCESS : EXIT_FAILURE);
}
