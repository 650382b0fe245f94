/* The pool: every group once, on the threads that it was given and no others. */
#include "loader/cpu/cpu_pool.h"
#include "tests/unit/emulated.h"
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static const uint32_t thread_counts[] = {1, 2, 3, 7};
enum { COUNTS = sizeof thread_counts / sizeof thread_counts[0], THREADS_MAX = 64, TIMEOUT_S = 60 };

static kiln__cpu_pool *open_pool(uint32_t threads) {
    kiln__cpu_pool *pool;
    assert_int_equal(kiln__cpu_pool_create(threads, NULL, NULL, &pool), KILN_OK);
    return pool;
}

/* ---- A job that counts its groups -------------------------------------------------------------------------------- */

typedef struct group_tally {
    uint64_t groups;
    _Atomic uint8_t *seen;
    _Atomic uint64_t outside; /* groups beyond the job */
    _Atomic uint64_t shared;  /* calls whose scratch another one wrote to meanwhile */
} group_tally;

enum { SCRATCH_WORDS = KILN_CPU_SCRATCH / sizeof(uint64_t) };

static void count_groups(void *context, void *scratch, uint64_t begin, uint64_t end) {
    group_tally *tally = context;
    volatile uint64_t *words = scratch;
    words[0] = words[SCRATCH_WORDS - 1] = begin;
    for (uint64_t i = begin; i < end; i++) {
        if (i < tally->groups)
            tally->seen[i]++;
        else
            tally->outside++;
    }
    if (words[0] != begin || words[SCRATCH_WORDS - 1] != begin) tally->shared++;
}

static void slow_count(void *context, void *scratch, uint64_t begin, uint64_t end) {
    volatile uint64_t *words = scratch;
    uint64_t mark = (uint64_t)(uintptr_t)&words; /* each thread's own */
    words[1] = mark;
    usleep(100); /* beyond the caller's patience: the workers are called */
    count_groups(context, scratch, begin, end);
    if (words[1] != mark) ((group_tally *)context)->shared++;
}

/* Runs a job and checks that each group was run once, in scratch of its call's own. false if not: for threads other
 * than the test's. */
static bool runs_each_once(kiln__cpu_pool *pool, uint64_t groups, kiln__cpu_body body) {
    group_tally tally = {.groups = groups, .seen = calloc(groups ? groups : 1, 1)};
    void *scratch = calloc(1, KILN_CPU_SCRATCH);
    kiln__cpu_pool_run(pool, groups, body, &tally, scratch);
    bool once = tally.seen != NULL && tally.outside == 0 && tally.shared == 0;
    free(scratch);
    for (uint64_t i = 0; i < groups; i++)
        once = once && tally.seen[i] == 1;
    free((void *)tally.seen);
    return once;
}

static void test_each_group_once(void **state) {
    (void)state;
    unsigned seed = (unsigned)time(NULL);
    print_message("# seed %u\n", seed);
    srand(seed);
    for (int t = 0; t < COUNTS; t++) {
        kiln__cpu_pool *pool = open_pool(thread_counts[t]);
        for (uint64_t groups = 0; groups < 40; groups++)
            assert_true(runs_each_once(pool, groups, count_groups));
        for (int i = 0; i < 50; i++) {
            assert_true(runs_each_once(pool, (uint64_t)rand() % 100000, count_groups));
            assert_true(runs_each_once(pool, (uint64_t)rand() % 300, slow_count));
        }
        kiln__cpu_pool_destroy(pool);
    }
}

/* ---- A job whose threads meet ------------------------------------------------------------------------------------ */

/* Every thread that takes part, and what it was like. */
typedef struct thread_meeting {
    uint32_t expected;
    pthread_mutex_t lock;
    pthread_cond_t all_here;
    uint32_t count;
    pthread_t threads[THREADS_MAX];
    bool signals_blocked[THREADS_MAX], faults_open[THREADS_MAX];
    cpu_set_t masks[THREADS_MAX];
    bool late;
} thread_meeting;

static void note_thread(thread_meeting *meeting, uint32_t index) {
    static const int sent[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGALRM, SIGCHLD, SIGPROF};
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    meeting->signals_blocked[index] = true;
    for (size_t i = 0; i < sizeof sent / sizeof sent[0]; i++)
        if (!sigismember(&blocked, sent[i])) meeting->signals_blocked[index] = false;
    meeting->faults_open[index] = !sigismember(&blocked, SIGSEGV) && !sigismember(&blocked, SIGBUS);
    sched_getaffinity(0, sizeof meeting->masks[index], &meeting->masks[index]);
    meeting->threads[index] = pthread_self();
}

/* The first group outlasts the caller's patience; in each later share a thread waits until all have come. */
static void meet(void *context, void *scratch, uint64_t begin, uint64_t end) {
    (void)scratch;
    (void)end;
    thread_meeting *meeting = context;
    if (begin == 0) {
        usleep(1000);
        return;
    }
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += TIMEOUT_S;
    pthread_mutex_lock(&meeting->lock);
    bool known = false;
    for (uint32_t i = 0; i < meeting->count; i++)
        if (pthread_equal(meeting->threads[i], pthread_self())) known = true;
    if (!known && meeting->count < THREADS_MAX) note_thread(meeting, meeting->count++);
    if (meeting->count == meeting->expected) pthread_cond_broadcast(&meeting->all_here);
    while (meeting->count < meeting->expected && !meeting->late)
        if (pthread_cond_timedwait(&meeting->all_here, &meeting->lock, &until) == ETIMEDOUT) meeting->late = true;
    pthread_mutex_unlock(&meeting->lock);
}

static thread_meeting hold_meeting(kiln__cpu_pool *pool, uint32_t threads) {
    thread_meeting meeting = {
        .expected = threads, .lock = PTHREAD_MUTEX_INITIALIZER, .all_here = PTHREAD_COND_INITIALIZER};
    kiln__cpu_pool_run(pool, 1000, meet, &meeting, NULL);
    return meeting;
}

static void test_all_threads_take_part_and_no_others(void **state) {
    (void)state;
    for (int t = 0; t < COUNTS; t++) {
        if (thread_counts[t] == 1) continue;
        kiln__cpu_pool *pool = open_pool(thread_counts[t]);
        for (int again = 0; again < 3; again++) {
            thread_meeting meeting = hold_meeting(pool, thread_counts[t]);
            assert_false(meeting.late);
            assert_int_equal(meeting.count, thread_counts[t]);
        }
        kiln__cpu_pool_destroy(pool);
    }
}

static void test_workers_leave_signals_to_the_host(void **state) {
    (void)state;
    kiln__cpu_pool *pool = open_pool(3);
    sigset_t before, after;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    thread_meeting meeting = hold_meeting(pool, 3);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    assert_false(meeting.late);
    for (uint32_t i = 0; i < meeting.count; i++) {
        if (pthread_equal(meeting.threads[i], pthread_self())) continue;
        assert_true(meeting.signals_blocked[i]);
        assert_true(meeting.faults_open[i]);
    }
    for (int signal = 1; signal < 32; signal++)
        assert_int_equal(sigismember(&after, signal), sigismember(&before, signal));
    kiln__cpu_pool_destroy(pool);
}

/* The workers have the mask under which the pool was made, not that of the thread whose job starts them; if it has
 * others than the CPU of that thread, without it. */
static void test_workers_keep_the_pools_mask(void **state) {
    (void)state;
    cpu_set_t all, one, others;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (size_t cpu = 0; CPU_COUNT(&one) == 0; cpu++)
        if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &one);
    CPU_XOR(&others, &all, &one);
    const cpu_set_t *made_under[] = {&one, &all}, *started_under[] = {&all, &one};
    const cpu_set_t *kept[] = {&one, CPU_COUNT(&all) > 1 ? &others : &all};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sched_setaffinity(0, sizeof all, made_under[i]), 0);
        kiln__cpu_pool *pool = open_pool(3);
        assert_int_equal(sched_setaffinity(0, sizeof all, started_under[i]), 0);
        thread_meeting meeting = hold_meeting(pool, 3);
        assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
        assert_false(meeting.late);
        for (uint32_t j = 0; j < meeting.count; j++)
            if (!pthread_equal(meeting.threads[j], pthread_self())) assert_true(CPU_EQUAL(&meeting.masks[j], kept[i]));
        kiln__cpu_pool_destroy(pool);
    }
}

/* ---- Who runs what ----------------------------------------------------------------------------------------------- */

static void remember_caller(void *context, void *scratch, uint64_t begin, uint64_t end) {
    (void)scratch;
    (void)end;
    _Atomic uint32_t *elsewhere = context;
    static pthread_t first;
    if (begin == 0) first = pthread_self();
    if (!pthread_equal(first, pthread_self())) (*elsewhere)++;
}

static void test_one_group_or_one_thread_stays_with_the_caller(void **state) {
    (void)state;
    _Atomic uint32_t elsewhere = 0;
    kiln__cpu_pool *pool = open_pool(7);
    for (int i = 0; i < 100; i++)
        kiln__cpu_pool_run(pool, 1, remember_caller, &elsewhere, NULL);
    kiln__cpu_pool_destroy(pool);
    pool = open_pool(1);
    kiln__cpu_pool_run(pool, 100000, remember_caller, &elsewhere, NULL);
    kiln__cpu_pool_destroy(pool);
    assert_int_equal(elsewhere, 0);
}

typedef struct pool_use {
    kiln__cpu_pool *pool;
    _Atomic uint32_t failures;
} pool_use;

static void run_inner(void *context, void *scratch, uint64_t begin, uint64_t end) {
    (void)scratch;
    pool_use *use = context;
    for (uint64_t i = begin; i < end; i++)
        if (!runs_each_once(use->pool, 30, slow_count)) use->failures++;
}

static void test_nested_jobs_finish(void **state) {
    (void)state;
    for (int t = 0; t < COUNTS; t++) {
        pool_use use = {.pool = open_pool(thread_counts[t])};
        kiln__cpu_pool_run(use.pool, 40, run_inner, &use, NULL);
        kiln__cpu_pool_destroy(use.pool);
        assert_int_equal(use.failures, 0);
    }
}

static void *call_often(void *context) {
    pool_use *use = context;
    for (int i = 0; i < 100; i++) {
        if (!runs_each_once(use->pool, 50, slow_count)) use->failures++;
        if (!runs_each_once(use->pool, 5000, count_groups)) use->failures++;
    }
    return NULL;
}

static void test_concurrent_callers_finish(void **state) {
    (void)state;
    pool_use use = {.pool = open_pool(3)};
    pthread_t callers[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&callers[i], NULL, call_often, &use), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(callers[i], NULL);
    kiln__cpu_pool_destroy(use.pool);
    assert_int_equal(use.failures, 0);
}

/* ---- The host's pool --------------------------------------------------------------------------------------------- */

typedef struct host_pool {
    uint32_t calls;
    size_t count;
} host_pool;

static void run_backwards(void *user, size_t count, void (*body)(void *context, size_t index), void *context) {
    host_pool *host = user;
    host->calls++;
    host->count += count;
    for (size_t i = count; i-- > 0;)
        body(context, i);
}

static void test_parallel_for_replaces_the_threads(void **state) {
    (void)state;
    host_pool host = {0};
    kiln__cpu_pool *pool;
    assert_int_equal(kiln__cpu_pool_create(7, run_backwards, &host, &pool), KILN_OK);
    assert_true(runs_each_once(pool, 70, slow_count));
    assert_int_equal(host.calls, 1);
    assert_int_equal(host.count, 7); /* each helps until nothing is left */
    thread_meeting meeting = hold_meeting(pool, 1);
    assert_int_equal(meeting.count, 1);
    assert_true(pthread_equal(meeting.threads[0], pthread_self()));
    assert_int_equal(host.calls, 2);
    kiln__cpu_pool_destroy(pool);
}

/* A host that runs the bodies of a call on threads of its own, each all those that the others leave. */
enum { HOST_THREADS = 8 };

typedef struct host_call {
    void (*body)(void *context, size_t index);
    void *context;
    size_t count;
    _Atomic size_t next;
} host_call;

static void *run_bodies(void *context) {
    host_call *call = context;
    for (size_t i; (i = call->next++) < call->count;)
        call->body(call->context, i);
    return NULL;
}

static void run_on_threads(void *user, size_t count, void (*body)(void *context, size_t index), void *context) {
    (void)user;
    host_call call = {body, context, count, 0};
    pthread_t threads[HOST_THREADS];
    int started = 0;
    while (started < HOST_THREADS && !pthread_create(&threads[started], NULL, run_bodies, &call))
        started++;
    while (started-- > 0)
        pthread_join(threads[started], NULL);
}

/* Each group sleeps, and notes how many were at it at once. */
typedef struct crowd {
    group_tally tally;
    _Atomic int here, most;
} crowd;

static void crowd_in(void *context, void *scratch, uint64_t begin, uint64_t end) {
    crowd *seen = context;
    int here = ++seen->here, most = seen->most;
    while (most < here && !atomic_compare_exchange_weak(&seen->most, &most, here))
        continue;
    slow_count(&seen->tally, scratch, begin, end);
    seen->here--;
}

static void test_a_hosts_many_threads_share_the_pools_scratch(void **state) {
    (void)state;
    _Atomic uint8_t times[200] = {0};
    crowd seen = {.tally = {.groups = 200, .seen = times}};
    kiln__cpu_pool *pool;
    assert_int_equal(kiln__cpu_pool_create(3, run_on_threads, NULL, &pool), KILN_OK);
    void *scratch = calloc(1, KILN_CPU_SCRATCH);
    kiln__cpu_pool_run(pool, 200, crowd_in, &seen, scratch);
    free(scratch);
    for (int i = 0; i < 200; i++)
        assert_int_equal(times[i], 1);
    assert_int_equal(seen.tally.outside + seen.tally.shared, 0);
    assert_in_range(seen.most, 1, 3);
    pool_use use = {.pool = pool};
    pthread_t callers[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&callers[i], NULL, call_often, &use), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(callers[i], NULL);
    kiln__cpu_pool_destroy(pool);
    assert_int_equal(use.failures, 0);
}

/* ---- Fork -------------------------------------------------------------------------------------------------------- */

/* The child starts threads of its own, and closes what it inherited. */
static void run_in_child(kiln__cpu_pool *pool, int depth) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(TIMEOUT_S);
        thread_meeting meeting = hold_meeting(pool, 3);
        bool good = !meeting.late && meeting.count == 3 && runs_each_once(pool, 100, slow_count);
        if (depth > 1) run_in_child(pool, depth - 1);
        kiln__cpu_pool_destroy(pool);
        _exit(good ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_fork_remakes_the_threads(void **state) {
    (void)state;
    if (!child_starts_threads()) skip();
    kiln__cpu_pool *pool = open_pool(3);
    run_in_child(pool, 1); /* before the parent has started any */
    assert_true(runs_each_once(pool, 100, slow_count));
    run_in_child(pool, 2);
    assert_true(runs_each_once(pool, 100, slow_count));
    kiln__cpu_pool_destroy(pool);
}

static void *keep_busy(void *context) {
    pool_use *use = context;
    while (!use->failures) /* here: the sign to stop */
        runs_each_once(use->pool, 50, slow_count);
    return NULL;
}

/* A hold that another thread had on the pool when the process forked holds nobody up. */
static void test_fork_during_a_job(void **state) {
    (void)state;
    if (!child_starts_threads()) skip();
    pool_use use = {.pool = open_pool(3)};
    pthread_t other;
    assert_int_equal(pthread_create(&other, NULL, keep_busy, &use), 0);
    for (int i = 0; i < 10; i++)
        run_in_child(use.pool, 1);
    use.failures = 1;
    pthread_join(other, NULL);
    kiln__cpu_pool_destroy(use.pool);
}

static void test_close_without_a_job(void **state) {
    (void)state;
    kiln__cpu_pool_destroy(NULL);
    kiln__cpu_pool_destroy(open_pool(7));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_group_once),
        cmocka_unit_test(test_all_threads_take_part_and_no_others),
        cmocka_unit_test(test_workers_leave_signals_to_the_host),
        cmocka_unit_test(test_workers_keep_the_pools_mask),
        cmocka_unit_test(test_one_group_or_one_thread_stays_with_the_caller),
        cmocka_unit_test(test_nested_jobs_finish),
        cmocka_unit_test(test_concurrent_callers_finish),
        cmocka_unit_test(test_parallel_for_replaces_the_threads),
        cmocka_unit_test(test_a_hosts_many_threads_share_the_pools_scratch),
        cmocka_unit_test(test_fork_remakes_the_threads),
        cmocka_unit_test(test_fork_during_a_job),
        cmocka_unit_test(test_close_without_a_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
