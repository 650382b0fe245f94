/* KILN_SIM_MUTANTS: what tests notice of altered instructions. The process runs the images as they are; where a mutant
 * first makes a difference, another process goes on with it. */
#include "tests/sim/core/sim_mutants.h"
#include "tests/sim/core/sim.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <kiln/inspect.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIMIT = 600, /* seconds of a mutant */ SIGN_MAX = 4096, DIGEST_BYTES = 32, DIGITS = 2 * DIGEST_BYTES };

static struct {
    sim_mutant *all;
    FILE *verdicts;
    sim_mutant *mine; /* what this process goes on with; NULL: it runs the images as they are */
} mutants;

void sim_noticed(void) {
    if (mutants.mine) _exit(EXIT_FAILURE);
}

static _Noreturn void give_up(const char *why) {
    fprintf(stderr, "KILN_SIM_MUTANTS: %s\n", why);
    _exit(EXIT_FAILURE);
}

/* ---- The list ---- */

/* "DIGEST PLACE EDIT", which stays. */
static sim_mutant mutant_read(const char *line) {
    static const char *const edits[] = {"removed", "always", "never"};
    sim_mutant mutant = {.line = line};
    char *rest = NULL;
    if (strlen(line) > DIGITS) mutant.place = strtoull(line + DIGITS, &rest, 0);
    for (int edit = 0; rest && edit < 3; edit++) {
        mutant.edit = (sim_edit)edit;
        if (*rest == ' ' && !strcmp(rest + 1, edits[edit])) return mutant;
    }
    give_up("a line is not \"SHA256 PLACE EDIT\", of which the last is removed, always or never");
}

static void tell(sim_mutant *mutant, const char *verdict, const char *sign) {
    mutant->begun = true;
    fprintf(mutants.verdicts, "%s\t%s\t%s\n", verdict, mutant->line, sign);
    fflush(mutants.verdicts);
}

/* At the end of the process that runs the images as they are. */
static void tell_others(int status, void *unused) {
    (void)unused;
    if (mutants.mine) return;
    if (status) give_up("the test fails without a mutant");
    for (sim_mutant *mutant = mutants.all; mutant; mutant = mutant->next)
        if (!mutant->begun) tell(mutant, mutant->met ? "alive" : "absent", "nothing differs");
}

static void list_read(const char *path) {
    const char *out = getenv("KILN_SIM_VERDICTS");
    FILE *file = fopen(path, "re");
    char *text = NULL, *rest = NULL;
    size_t size = 0;
    if (!dlsym(RTLD_DEFAULT, "kiln_sim_one_process")) give_up("tests/sim/mutants/one_process.so is not preloaded");
    if (!file || getdelim(&text, &size, 0, file) < 0) give_up("the file cannot be read");
    fclose(file);
    mutants.verdicts = out ? fopen(out, "ae") : NULL;
    if (!mutants.verdicts || on_exit(tell_others, NULL)) give_up("KILN_SIM_VERDICTS cannot be written");
    for (const char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        sim_mutant *mutant = malloc(sizeof *mutant);
        if (!mutant) give_up("out of memory");
        *mutant = mutant_read(line);
        mutant->next = mutants.all;
        mutants.all = mutant;
    }
}

void sim_mutants_of(const void *image, size_t size, sim_mutant_found *found, void *context) {
    const char *path = getenv("KILN_SIM_MUTANTS");
    uint8_t digest[DIGEST_BYTES];
    char digits[DIGITS + 1];
    if (!path) return;
    if (!mutants.verdicts) list_read(path);
    kiln_sha256(image, size, digest);
    for (size_t i = 0; i < DIGEST_BYTES; i++)
        snprintf(digits + 2 * i, 3, "%02x", digest[i]);
    for (sim_mutant *mutant = mutants.all; mutant; mutant = mutant->next) {
        const bool wanted = mutants.mine ? mutant == mutants.mine : !mutant->begun;
        if (!wanted || strncmp(mutant->line, digits, DIGITS) != 0) continue;
        mutant->met = found(context, mutant);
        if (!mutant->met) sim_violation("KILN_SIM_MUTANTS: no such instruction: %s", mutant->line);
    }
}

/* ---- Processes ---- */

static uint32_t thread_count(void) {
    struct stat tasks;
    return stat("/proc/self/task", &tasks) ? 0 : (uint32_t)tasks.st_nlink - 2;
}

/* In the child: its standard error goes to a file in memory, and nothing else anywhere. */
static void become(sim_mutant *mutant, int output) {
    mutants.mine = mutant;
    dup2(output, STDERR_FILENO);
    dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDOUT_FILENO);
    alarm(LIMIT);
}

/* The first that the process wrote on standard error. */
static const char *sign_of(int status, int output) {
    static char text[SIGN_MAX];
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) return "it went on and on";
    const ssize_t length = pread(output, text, sizeof text - 1, 0);
    text[length > 0 ? length : 0] = 0;
    text[strcspn(text, "\n")] = 0;
    return text;
}

/* By the bare system call: the C library's own would let the child's thread forget which locks it has. */
bool sim_mutant_begin(sim_mutant *mutant) {
    if (mutants.mine || mutant->begun) return false;
    if (thread_count() != 1) give_up("a process of several threads cannot be two");
    const int output = memfd_create("standard error", MFD_CLOEXEC);
    const pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    int status;
    if (child == 0) {
        become(mutant, output);
        return true;
    }
    if (child < 0 || waitpid(child, &status, 0) != child) give_up("no process for a mutant");
    tell(mutant, status ? "killed" : "alive", sign_of(status, output));
    close(output);
    for (mutant = mutants.all; mutant && mutant->begun; mutant = mutant->next)
        ;
    if (!mutant) _exit(EXIT_SUCCESS); /* none is left */
    return false;
}

bool sim_mutant_applies(const sim_mutant *mutant) {
    return mutant == mutants.mine;
}

bool sim_mutant_waits(const sim_mutant *mutant) {
    return !mutants.mine && !mutant->begun;
}
