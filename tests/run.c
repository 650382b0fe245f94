/* Runs test programs and test scripts and says what came of them:
 *
 *     run [-j JOBS] [-t SECONDS] [-d FOLDER] [-o WORD]... TEST...
 *
 * A TEST is an executable or, if its name ends in .sh, a script for bash. Each runs in the current folder, in a process
 * group of its own, with both outputs in FOLDER/<test>.out and .err, at most JOBS at once, and is killed when it has
 * written nothing for SECONDS (600): a machine may be slow, but a test that hangs is silent. With -o only the tests run
 * whose path contains one of the words. Each test finds in its environment
 *
 *     CMOCKA_MESSAGE_OUTPUT=TAP   so that cmocka speaks TAP
 *     KILN_SCRATCH                an empty folder of its own, removed afterwards
 *     KILN_BUILD, KILN_CONFIG, CC what `make` was called with (set by the Makefile)
 *
 * A test prints TAP: a plan "1..N" before or after its results, and N lines "ok I - name", "not ok I - name" or
 * "ok I - name # SKIP reason". cmocka 1.1.5 writes a skip as "not ok I # SKIP name"; several groups of a program are
 * several plans. Scripts may take tests/tap.sh for it. A test also fails, by one more failure, if it
 *
 *     - prints no plan, or not as many results as it planned,
 *     - dies of a signal or of silence,
 *     - exits with a status other than 0 although no result failed.
 *
 * The last line is "N passed, M failed, K skipped"; what was skipped or failed is named above it, and above that how
 * much processor time the tests took, their children included, and the twenty that took the most. Exit status: 0 if
 * something passed and nothing failed, 1 otherwise, 2 for wrong use. SIGHUP, SIGINT and SIGTERM kill the tests that
 * run, with all that they started, and then the runner. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { JOBS_MAX = 64, LINE_MAX_BYTES = 4096, NAME_MAX_BYTES = 256, WORDS_MAX = 32, LINES_SHOWN = 100, SLOWEST = 20 };

typedef struct options {
    int jobs;
    int seconds;
    const char *folder;
    const char *words[WORDS_MAX];
    int word_count;
} options;

/* A test that runs: its process and where its output goes. */
typedef struct job {
    const char *path;
    char name[NAME_MAX_BYTES]; /* the path without the folders before "tests/", '/' as '-' */
    pid_t pid;                 /* 0: the slot is free */
    struct timespec start;
    struct timespec heard; /* when it was last found to have written more */
    off_t written;         /* bytes of both outputs then */
    bool timed_out;
} job;

typedef struct tally {
    unsigned passed, failed, skipped, planned;
    bool has_plan;
} tally;

/* A test that ended, and the processor time that it took. */
typedef struct cost {
    const char *test;
    double seconds;
} cost;

/* The dearest tests so far, the dearest first; unused ones have no name. */
static cost slowest[SLOWEST];
static double all_seconds; /* of all tests */

/* Lines to show above the last one: what was skipped, what failed. */
static char *skipped_text, *failed_text;
static size_t skipped_size, failed_size;
static FILE *skipped_lines, *failed_lines;

static const char *short_name(const char *path) {
    const char *at = strstr(path, "tests/");
    return at ? at + strlen("tests/") : path;
}

static void output_path(const options *o, const job *j, const char *ending, char *path, size_t size) {
    if ((size_t)snprintf(path, size, "%s/%s%s", o->folder, j->name, ending) >= size) {
        fprintf(stderr, "run: %s: the path is too long\n", j->name);
        exit(2);
    }
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *place) {
    (void)status, (void)type, (void)place;
    return remove(path);
}

static void remove_tree(const char *path) {
    nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void make_folders(const char *path) {
    char part[PATH_MAX];
    for (const char *slash = strchr(path + 1, '/');; slash = strchr(slash + 1, '/')) {
        size_t length = slash ? (size_t)(slash - path) : strlen(path);
        snprintf(part, sizeof part, "%.*s", (int)length, path);
        if (mkdir(part, 0777) != 0 && errno != EEXIST) {
            fprintf(stderr, "run: %s: %s\n", part, strerror(errno));
            exit(2);
        }
        if (!slash) return;
    }
}

/* In the child: never returns. */
static void become_test(const char *path, const char *out, const char *err, const char *scratch) {
    setpgid(0, 0);
    int in = open("/dev/null", O_RDONLY);
    int to = open(out, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    int errors = open(err, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (in < 0 || to < 0 || errors < 0) _exit(126);
    dup2(in, STDIN_FILENO);
    dup2(to, STDOUT_FILENO);
    dup2(errors, STDERR_FILENO);
    setenv("CMOCKA_MESSAGE_OUTPUT", "TAP", 1);
    setenv("KILN_SCRATCH", scratch, 1);
    size_t length = strlen(path);
    if (length > 3 && strcmp(path + length - 3, ".sh") == 0) {
        execlp("bash", "bash", path, (char *)NULL);
    } else {
        execl(path, path, (char *)NULL);
    }
    fprintf(stderr, "%s: %s\n", path, strerror(errno));
    _exit(127);
}

static void start(const options *o, job *j, const char *path) {
    char out[PATH_MAX], err[PATH_MAX], scratch[PATH_MAX];
    *j = (job){.path = path};
    snprintf(j->name, sizeof j->name, "%s", short_name(path));
    for (char *c = j->name; *c; c++) {
        if (*c == '/') *c = '-';
    }
    output_path(o, j, ".out", out, sizeof out);
    output_path(o, j, ".err", err, sizeof err);
    output_path(o, j, ".scratch", scratch, sizeof scratch);
    remove_tree(scratch);
    make_folders(scratch);
    clock_gettime(CLOCK_MONOTONIC, &j->start);
    j->heard = j->start;
    fflush(NULL);
    j->pid = fork();
    if (j->pid < 0) {
        fprintf(stderr, "run: fork: %s\n", strerror(errno));
        exit(2);
    }
    if (j->pid == 0) become_test(path, out, err, scratch);
    setpgid(j->pid, j->pid);
}

/* Adds a line of TAP to the tally and names failures and skips; other lines mean nothing. */
static void read_line(tally *t, const char *test, char *line) {
    unsigned number = 0;
    int end = 0;
    line[strcspn(line, "\r\n")] = '\0';
    if (sscanf(line, "1..%u%n", &number, &end) == 1 && end > 0) {
        t->has_plan = true;
        t->planned += number;
        char *skip = strstr(line + end, "# SKIP");
        if (number == 0 && skip) {
            t->skipped++;
            fprintf(skipped_lines, "skipped: %s: all of it:%s\n", test, skip + strlen("# SKIP"));
        }
        return;
    }
    bool failed = strncmp(line, "not ok ", 7) == 0;
    if (!failed && strncmp(line, "ok ", 3) != 0) return;
    const char *name = line + (failed ? 7 : 3);
    name += strspn(name, "0123456789");
    name += strspn(name, " -");
    if (strstr(line, "# SKIP")) {
        t->skipped++;
        fprintf(skipped_lines, "skipped: %s: %s\n", test, strncmp(name, "# SKIP ", 7) == 0 ? name + 7 : name);
    } else if (failed) {
        t->failed++;
        fprintf(failed_lines, "failed: %s: %s\n", test, name);
    } else {
        t->passed++;
    }
}

static void read_output(tally *t, const char *test, const char *path) {
    char line[LINE_MAX_BYTES];
    FILE *file = fopen(path, "r");
    if (!file) return;
    while (fgets(line, sizeof line, file)) {
        read_line(t, test, line);
    }
    fclose(file);
}

/* The first lines of an output but for the tests that passed; the file has them all. */
static void show_output(const char *path) {
    char line[LINE_MAX_BYTES];
    FILE *file = fopen(path, "r");
    if (!file) return;
    for (int shown = 0; fgets(line, sizeof line, file);) {
        if (strncmp(line, "ok ", 3) == 0) continue;
        if (shown++ == LINES_SHOWN) {
            printf("    ... more in %s\n", path);
            break;
        }
        printf("    %s%s", line, strchr(line, '\n') ? "" : "\n");
    }
    fclose(file);
}

static double seconds_since(const struct timespec *start) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - start->tv_sec) + (double)(now.tv_nsec - start->tv_nsec) * 1e-9;
}

static double seconds_used(const struct rusage *usage) {
    return (double)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) +
           (double)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) * 1e-6;
}

static void note_cost(cost new) {
    all_seconds += new.seconds;
    for (int i = 0; i < SLOWEST; i++) {
        if (slowest[i].test && slowest[i].seconds >= new.seconds) continue;
        cost pushed = slowest[i];
        slowest[i] = new;
        if (!pushed.test) return;
        new = pushed;
    }
}

static void show_slowest(void) {
    printf("the most processor time, of %.1f s:\n", all_seconds);
    for (int i = 0; i < SLOWEST && slowest[i].test; i++) {
        printf("    %-40s %7.1f s\n", slowest[i].test, slowest[i].seconds);
    }
}

/* Judges a test that has ended and adds it to the totals. */
static void finish(const options *o, job *j, int status, const struct rusage *usage, tally *total) {
    char out[PATH_MAX], err[PATH_MAX], scratch[PATH_MAX];
    const char *test = short_name(j->path);
    tally t = {0};
    note_cost((cost){test, seconds_used(usage)});
    kill(-j->pid, SIGKILL);
    output_path(o, j, ".out", out, sizeof out);
    output_path(o, j, ".err", err, sizeof err);
    output_path(o, j, ".scratch", scratch, sizeof scratch);
    read_output(&t, test, out);
    read_output(&t, test, err);

    char reason[128] = "";
    unsigned results = t.passed + t.failed + t.skipped;
    if (j->timed_out) {
        snprintf(reason, sizeof reason, "wrote nothing for %d s", o->seconds);
    } else if (WIFSIGNALED(status)) {
        snprintf(reason, sizeof reason, "died of signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    } else if (!t.has_plan) {
        snprintf(reason, sizeof reason, "printed no plan (exit status %d)", WEXITSTATUS(status));
    } else if (results != t.planned && !(t.planned == 0 && t.skipped == 1)) {
        snprintf(reason, sizeof reason, "planned %u tests and reported %u", t.planned, results);
    } else if (WEXITSTATUS(status) != 0 && t.failed == 0) {
        snprintf(reason, sizeof reason, "exited with status %d", WEXITSTATUS(status));
    }
    if (reason[0]) {
        t.failed++;
        fprintf(failed_lines, "failed: %s: %s\n", test, reason);
    }
    printf("%-4s %-40s %4u passed %3u failed %3u skipped %7.1f s\n", t.failed ? "FAIL" : "ok", test, t.passed, t.failed,
           t.skipped, seconds_since(&j->start));
    if (t.failed) {
        show_output(out);
        show_output(err);
    }
    fflush(stdout);
    total->passed += t.passed;
    total->failed += t.failed;
    total->skipped += t.skipped;
    remove_tree(scratch);
    j->pid = 0;
}

static off_t file_size(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 ? status.st_size : 0;
}

/* Whether a test has written nothing for too long. */
static bool is_silent(const options *o, job *j) {
    char out[PATH_MAX], err[PATH_MAX];
    if (seconds_since(&j->heard) <= o->seconds) return false;
    output_path(o, j, ".out", out, sizeof out);
    output_path(o, j, ".err", err, sizeof err);
    const off_t written = file_size(out) + file_size(err);
    if (written == j->written) return true;
    j->written = written;
    clock_gettime(CLOCK_MONOTONIC, &j->heard);
    return false;
}

/* Kills what is silent for too long, then collects one test that has ended, waiting a moment if there is none. */
static void collect(const options *o, job *jobs, tally *total) {
    for (int i = 0; i < o->jobs; i++) {
        if (jobs[i].pid && !jobs[i].timed_out && is_silent(o, &jobs[i])) {
            jobs[i].timed_out = true;
            kill(-jobs[i].pid, SIGKILL);
        }
    }
    int status = 0;
    struct rusage usage;
    pid_t pid = wait4(-1, &status, WNOHANG, &usage);
    if (pid <= 0) {
        nanosleep(&(struct timespec){.tv_nsec = 10 * 1000 * 1000}, NULL);
        return;
    }
    for (int i = 0; i < o->jobs; i++) {
        if (jobs[i].pid == pid) finish(o, &jobs[i], status, &usage, total);
    }
}

/* The signal that asked the runner to stop; 0: none. */
static volatile sig_atomic_t stop_signal;

static void on_stop(int signal) {
    stop_signal = signal;
}

/* A signal that the caller has ignored (nohup) stays ignored. */
static void catch_stops(void) {
    static const int signals[] = {SIGHUP, SIGINT, SIGTERM};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct sigaction old;
        sigaction(signals[i], NULL, &old);
        if (old.sa_handler != SIG_IGN) sigaction(signals[i], &(struct sigaction){.sa_handler = on_stop}, NULL);
    }
}

/* The tests have process groups of their own, so nobody else's signal reaches them. Never returns: ends as the signal
 * would have ended a program that does not catch it. */
static void stop(const options *o, const job *jobs) {
    char scratch[PATH_MAX];
    for (int i = 0; i < o->jobs; i++) {
        if (!jobs[i].pid) continue;
        kill(-jobs[i].pid, SIGKILL);
        waitpid(jobs[i].pid, NULL, 0);
        output_path(o, &jobs[i], ".scratch", scratch, sizeof scratch);
        remove_tree(scratch);
    }
    fprintf(stderr, "run: stopped by signal %d (%s)\n", (int)stop_signal, strsignal(stop_signal));
    signal(stop_signal, SIG_DFL);
    raise(stop_signal);
    _exit(1);
}

static bool chosen(const options *o, const char *path) {
    for (int i = 0; i < o->word_count; i++) {
        const char *word = o->words[i];
        if (strncmp(word, "tests/", strlen("tests/")) == 0) word += strlen("tests/");
        if (strstr(short_name(path), word)) return true;
    }
    return o->word_count == 0;
}

static void run_all(const options *o, char **paths, int count, tally *total) {
    static job jobs[JOBS_MAX];
    int next = 0, running;
    do {
        if (stop_signal) stop(o, jobs);
        running = 0;
        for (int i = 0; i < o->jobs; i++) {
            while (!jobs[i].pid && next < count) {
                const char *path = paths[next++];
                if (chosen(o, path)) start(o, &jobs[i], path);
            }
            running += jobs[i].pid != 0;
        }
        if (running) collect(o, jobs, total);
    } while (running || next < count);
}

static int read_number(const char *text, int most) {
    char *end;
    long number = strtol(text, &end, 10);
    if (*end || end == text || number < 1 || number > most) {
        fprintf(stderr, "run: %s is not a number from 1 to %d\n", text, most);
        exit(2);
    }
    return (int)number;
}

static options read_options(int argc, char **argv) {
    options o = {.jobs = 1, .seconds = 600, .folder = "."};
    for (int c; (c = getopt(argc, argv, "j:t:d:o:")) != -1;) {
        if (c == 'j') {
            o.jobs = read_number(optarg, JOBS_MAX);
        } else if (c == 't') {
            o.seconds = read_number(optarg, 86400);
        } else if (c == 'd') {
            o.folder = optarg;
        } else if (c == 'o' && o.word_count < WORDS_MAX) {
            o.words[o.word_count++] = optarg;
        } else {
            fprintf(stderr, "usage: run [-j JOBS] [-t SECONDS] [-d FOLDER] [-o WORD]... TEST...\n");
            exit(2);
        }
    }
    return o;
}

int main(int argc, char **argv) {
    options o = read_options(argc, argv);
    tally total = {0};
    skipped_lines = open_memstream(&skipped_text, &skipped_size);
    failed_lines = open_memstream(&failed_text, &failed_size);
    if (!skipped_lines || !failed_lines) return 2;

    /* Absolute, since tests may change their folder. */
    char folder[PATH_MAX];
    make_folders(o.folder);
    if (!realpath(o.folder, folder)) return 2;
    o.folder = folder;

    catch_stops();
    run_all(&o, argv + optind, argc - optind, &total);

    fclose(skipped_lines);
    fclose(failed_lines);
    show_slowest();
    printf("%s%s%u passed, %u failed, %u skipped\n", skipped_text, failed_text, total.passed, total.failed,
           total.skipped);
    return total.failed == 0 && total.passed > 0 ? 0 : 1;
}
